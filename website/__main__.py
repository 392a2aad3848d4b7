"""Builds the site: python -m website [--out build/site] [--pictures NAME ...] (or: make site).

Warnings are errors, and a link that leads nowhere is a warning.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import unknown
from cbobench.problems import PROBLEMS
from website.pages import write_sources
from website.pictures import picture_all

HERE = Path(__file__).parent
ROOT = HERE.parent
LIBRARIES = ("sphinx", "myst_nb", "sphinxcontrib.autoprogram", "furo")


def build(sources: Path, out: Path) -> int:
    """Runs Sphinx on the sources; its exit code."""
    from sphinx.cmd.build import main as sphinx

    return sphinx(
        ["-q", "-W", "--keep-going", "-b", "html", "-c", str(HERE), str(sources), str(out)]
    )


def find_missing() -> list[str]:
    """The libraries of the site that are not installed here."""
    return [name for name in LIBRARIES if not find_spec(name.partition(".")[0])]


def main(given: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m website", description="Build the documentation site."
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    parser.add_argument(
        "--work", type=Path, default=ROOT / ".make" / "site", help="sources, and pictures"
    )
    parser.add_argument(
        "--pictures", nargs="*", metavar="NAME", help="only of these methods and problems"
    )
    options = parser.parse_args(given)
    if missing := find_missing():
        print(f"the site needs {', '.join(missing)}; to install: pip install -e '.[docs]'")
        return 2
    known = [*ALGORITHMS.names(), *PROBLEMS.names()]
    for name in options.pictures or ():
        if name not in known:
            print(unknown("method or problem", name, known))
            return 2
    write_sources(options.work, picture_all(options.work / "pictures", options.pictures))
    code = build(options.work, options.out)
    if code == 0:
        print(f"open {options.out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
