"""The table of docs/papers.md that leads from a paper's figure to its suites, what they take, and
its claims.

python -m docs.website.figure_map             writes the table from prose/figures.yaml and results/figure_times.json
python -m docs.website.figure_map --measure   asks --dry-run of every suite first, and stores what it says (minutes)

Suites that need recorded data are asked with the data's look-alike, which has as many actions and
takes as long.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from cbobench import resources
from cbobench.results.provenance import cpu_kind
from docs.results import gallery
from docs.results.markdown import fill_sections, tabulate
from docs.website.printed import environment

DOCS = Path(__file__).parents[1]
PAGE, TIMES = DOCS / "papers.md", DOCS / "results" / "figure_times.json"
SEEDS = 5
RECORDED = ("light-sensors", "stocks")
TIME = re.compile(r"^time: (.+?) on \d+ CPU", flags=re.M)


def list_suites() -> list[str]:
    """The suites of all figures, by the letter and nearest to the paper."""
    names = dict.fromkeys(figure.suite for figure in gallery.read_figures())
    return [name + ending for name in names for ending in ("", "_fit")]


def with_look_alikes(suite: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """A suite with look-alikes in place of recorded data, and whether it needs any."""
    problems = []
    for entry in suite["problems"]:
        name, settings = next(iter(entry.items())) if isinstance(entry, dict) else (entry, {})
        problems.append({name: settings | ({"data": "look-alike"} if name in RECORDED else {})})
    return suite | {"problems": problems}, any(
        name in RECORDED for problem in problems for name in problem
    )


def measure(name: str, folder: Path) -> dict[str, Any]:
    """What --dry-run says of a suite."""
    suite, recorded = with_look_alikes(
        yaml.safe_load(resources.suites()[name].read_text(encoding="utf-8"))
    )
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False, allow_unicode=True), encoding="utf-8")
    call = [sys.executable, "-m", "cbobench", "run", str(path), "--seeds", str(SEEDS), "--dry-run"]
    done = subprocess.run(
        call, cwd=folder, env=environment(), capture_output=True, text=True, check=True
    )
    found = TIME.search(done.stdout)
    assert found, done.stdout
    return {"time": found[1], "recorded": recorded}


def measure_all() -> dict[str, Any]:
    """What --dry-run says of every suite, and of which machine."""
    with tempfile.TemporaryDirectory() as place:
        suites = {}
        for name in list_suites():
            suites[name] = measure(name, Path(place))
            print(f"{name}: {suites[name]['time']}", flush=True)
    about = {
        "at": time.strftime("%Y-%m-%d"),
        "cpu": cpu_kind(),
        "cpus": os.cpu_count(),
        "seeds": SEEDS,
    }
    return about | {"suites": suites}


def describe_map() -> str:
    """The table, and how its times were found."""
    found = json.loads(TIMES.read_text(encoding="utf-8"))
    head = ("figure", "by the letter", "takes", "nearest to the paper", "takes", "claims")
    lines, paper = [], ""
    for figure in gallery.read_figures():
        # The paper's name is long, and stands once.
        named, paper = ("" if figure.paper == paper else f"{figure.paper} "), figure.paper
        cells = [f"{named}{figure.number}"]
        for suite in (figure.suite, f"{figure.suite}_fit"):
            one = found["suites"][suite]
            cells += [f"`{suite}`", one["time"] + (" ᵈ" if one["recorded"] else "")]
        cells.append(", ".join(dict.fromkeys(claim for claim, _ in figure.claims)))
        lines.append(cells)
    note = (
        f"With `--seeds {found['seeds']}`, estimated by `--dry-run` on {found['at']}; "
        f"{found['cpus']} CPUs, "
        f"{found['cpu']}; right within a factor of about two. ᵈ: needs recorded data; estimated "
        "with its look-alike."
    )
    return f"{tabulate(head, lines)}\n\n{note}"


def in_page(text: str) -> str:
    """docs/papers.md with the table."""
    return fill_sections(text, lambda name: describe_map() if name == "map" else None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description="Write the table of docs/papers.md from figures to suites."
    )
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args(arguments).measure:
        TIMES.write_text(
            json.dumps(measure_all(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    PAGE.write_text(in_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
