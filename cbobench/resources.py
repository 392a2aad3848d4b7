"""Shipped suites and recipes, found by path: inside the wheel, or beside the package in a
checkout.
"""

from __future__ import annotations

from pathlib import Path

from cbobench.errors import unknown

PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """The folder of shipped "suites" or "analysis", or of what is said of "published" bundles."""
    inside = PACKAGE / f"_{name}"
    if inside.is_dir():
        return inside
    return PACKAGE.parent / name


def suites() -> dict[str, Path]:
    """Shipped suites by name, whatever folder they lie in: no two have one name."""
    files = {path.stem: path for path in folder("suites").rglob("*.yaml")}
    return dict(sorted(files.items()))


def recipes(kind: str = "recipes") -> dict[str, Path]:
    """Shipped "recipes" of figures, or files of "claims", by name."""
    return {path.stem: path for path in sorted((folder("analysis") / kind).glob("*.py"))}


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
    beside = [str(file) for file in path.parent.glob("*.y*ml")]
    raise unknown(
        "suite",
        str(name),
        [*shipped, *beside],
        listing="cbobench list suites",
        then="or give the path of a YAML file",
    )
