"""Builds the site: python -m website [--out build/site] [--pictures NAME ...] (or: make site).

Warnings are errors, and a link that leads nowhere is a warning.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import unknown
from cbobench.problems import PROBLEMS
from website import pages
from website.pictures import GALLERY, Pictures

HERE = Path(__file__).parent
ROOT = HERE.parent


def build(pages_in: Path, out: Path) -> int:
    """Runs Sphinx on assembled pages; its exit code."""
    from sphinx.cmd.build import main as sphinx

    return sphinx(
        ["-q", "-W", "--keep-going", "-n", "-b", "html", "-c", str(HERE), str(pages_in), str(out)]
    )


def forget(pages_in: Path, out: Path) -> None:
    """Removes what Sphinx has made of pages that are gone; it leaves that to others."""
    kept = out / ".doctrees"
    for tree in [*kept.rglob("*.doctree")]:
        page = tree.relative_to(kept)
        if not (pages_in / page).with_suffix(".md").exists():
            (out / page).with_suffix(".html").unlink(missing_ok=True)
            tree.unlink()


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m website", description="Build the documentation site."
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    parser.add_argument(
        "--work", type=Path, default=ROOT / ".make" / "site", help="assembled pages, and pictures"
    )
    parser.add_argument(
        "--pictures",
        nargs="*",
        metavar="NAME",
        help="only of these methods and problems, and of the gallery if named",
    )
    options = parser.parse_args(given)
    if missing := [name for name in ("sphinx", "myst_parser", "furo") if find_spec(name) is None]:
        print(
            f"the site needs {', '.join(missing)}, not installed here; to install: pip install "
            "-e '.[docs]'"
        )
        return 2
    known = [*ALGORITHMS.names(), *PROBLEMS.names(), GALLERY]
    for name in options.pictures or ():
        if name not in known:
            print(unknown("method or problem", name, known))
            return 2
    began = time.process_time()
    pictures = Pictures(options.work / "pictures", options.pictures)
    written = pages.assemble(options.work / "pages", pictures)
    forget(options.work / "pages", options.out)
    drawn = time.process_time()
    code = build(options.work / "pages", options.out)
    ended = time.process_time()
    print(
        f"{written} pages; {drawn - began:.0f} s of CPU for them and {pictures.made} new "
        "pictures, ",
        end="",
    )
    print(f"{ended - drawn:.0f} s for HTML")
    if code == 0:
        print(f"open {options.out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
