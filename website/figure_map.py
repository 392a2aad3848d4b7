"""The table of docs/papers.md that leads from a paper's figure to its suites, what these took, and
its claims.

python -m website.figure_map

The times are those of the bundles in published/papers.
"""

from __future__ import annotations

from pathlib import Path

from analysis.bundles import read_about
from analysis.markdown import fill_sections, tabulate
from analysis.papers import gallery
from analysis.papers.bundles import bundle_of
from cbobench import resources
from cbobench.suite import yamlio
from cbobench.words import duration

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
RECORDED = ("light-sensors", "stocks")
NOTE = (
    "*takes*: CPU time of all seeds of the suite, as it was played for "
    "[what is reproduced](reproduction.md#bundles), which says where and by which code. "
    "ᵈ: needs recorded data."
)


def say_time(suite: str) -> str:
    """What the bundle of a suite cost, and a mark where it needs recorded data."""
    problems = yamlio.read(resources.suites()[suite])["problems"]
    names = {next(iter(entry)) if isinstance(entry, dict) else entry for entry in problems}
    mark = " ᵈ" if names.intersection(RECORDED) else ""
    return duration(read_about(bundle_of(suite))["seconds"]) + mark


def describe_map() -> str:
    """The table, and how its times were found."""
    head = ("figure", "by the letter", "takes", "nearest to the paper", "takes", "claims")
    lines, paper = [], ""
    for figure in gallery.read_figures():
        # The paper's name is long, and stands once.
        named, paper = ("" if figure.paper == paper else f"{figure.paper} "), figure.paper
        cells = [f"{named}{figure.number}"]
        for suite in (figure.suite, f"{figure.suite}_fit"):
            cells += [f"`{suite}`", say_time(suite)]
        cells.append(", ".join(dict.fromkeys(claim for claim, _ in figure.claims)))
        lines.append(cells)
    return f"{tabulate(head, lines)}\n\n{NOTE}"


def in_page(text: str) -> str:
    """docs/papers.md with the table."""
    return fill_sections(text, lambda name: describe_map() if name == "map" else None)


def main() -> None:
    """Write the table."""
    PAGE.write_text(in_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
