"""Shipped suites and recipes, found by path: inside the wheel, or beside the package in a
checkout.
"""

from __future__ import annotations

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
    raise unknown(
        "suite",
        str(name),
        shipped,
        listing="cbobench list suites",
        then="or give the path of a YAML file",
    )
