"""Shipped suites and recipes, found by path: inside the wheel, or beside the package in a
checkout.
"""

from __future__ import annotations

import re
from pathlib import Path

from cbobench.errors import Misuse, nearest, show, unknown

PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """The folder of shipped "suites" or "analysis"."""
    inside = PACKAGE / f"_{name}"
    return inside if inside.is_dir() else PACKAGE.parent / name


def suites() -> dict[str, Path]:
    """Shipped suites by name, whatever folder they lie in: no two have one name."""
    files = {path.stem: path for path in folder("suites").rglob("*.yaml")}
    return dict(sorted(files.items()))


def recipes(kind: str = "recipes") -> dict[str, Path]:
    """Shipped "recipes" of figures, or files of "claims", by name."""
    return {path.stem: path for path in sorted((folder("analysis") / kind).glob("*.py"))}


FIGURE = re.compile(r"(\w+?)_?(?:figure|fig)[_.-]?(\d+)\W?([a-z]?)\W?", flags=re.I)
FIGURES = re.compile(r"Figures? (\d+)(?:\(([a-z](?:, [a-z])*)\))?(?: and (\d+))?")


def suites_of_figure(name: str) -> list[str]:
    """The shipped suites that a name such as "zhou_ji_2022_figure1a" means, by what they say they
    are about.
    """
    match = FIGURE.fullmatch(name)
    if match is None:
        return []
    paper, number, panel = match[1].lower(), match[2], match[3].lower()
    result = []
    for suite, path in suites().items():
        about = re.search(r"^about: .*", path.read_text(encoding="utf-8"), flags=re.M)
        figures = FIGURES.search(about[0]) if about else None
        if not figures or not suite.startswith(paper) or number not in (figures[1], figures[3]):
            continue
        if not panel or not figures[2] or panel in figures[2].split(", "):
            result.append(suite)
    return result


def find_suite(name: str | Path) -> Path:
    """Return a suite file by path, or a shipped one by name.

    Raises:
        Misuse: neither exists.
    """
    path = Path(name)
    if path.is_file():
        return path
    shipped = suites()
    if str(name) in shipped:
        return shipped[str(name)]
    if path.suffix in (".yaml", ".yml") or path.parent != Path():
        close = nearest(path.name, [file.name for file in path.parent.glob("*.y*ml")])
        suggestion = f"; did you mean {show(str(path.with_name(close)))}?" if close else ""
        raise Misuse(
            f"there is no suite file {show(str(name))}{suggestion}; give the path of a YAML "
            "file, or one of the "
            f"{len(shipped)} names of: cbobench list suites"
        )
    files = [path.with_name(f"{path.name}{suffix}") for suffix in (".yaml", ".yml")]
    if beside := next((file for file in files if file.is_file()), None):
        raise Misuse(
            f"there is no shipped suite {show(str(name))}; did you mean the file "
            f"{show(str(beside))}?"
        )
    if of_figure := suites_of_figure(str(name)):
        raise Misuse(
            f"unknown suite {show(str(name))}; that figure is of "
            f"{' and '.join(map(show, of_figure))} (_fit: nearest "
            "to the paper); all figures: docs/papers.md"
        )
    raise unknown(
        "suite",
        str(name),
        shipped,
        listing="cbobench list suites",
        then="or give the path of a YAML file",
    )
