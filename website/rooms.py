"""The rooms of cbobench/, which are its directories, and which of them each imports."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import cbobench
from analysis.markdown import tabulate

PACKAGE = Path(cbobench.__file__).parent


def find_imports(folder: Path) -> set[str]:
    """The names `cbobench.NAME` that the files of a folder import, also within functions."""
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in found if name.startswith("cbobench.")}


def read_rooms() -> dict[str, list[str]]:
    """Per room of the package, which is a directory, the other rooms that its files import."""
    rooms = {path.parent.name: path.parent for path in sorted(PACKAGE.glob("*/__init__.py"))}
    return {
        name: sorted(find_imports(folder) & rooms.keys() - {name}) for name, folder in rooms.items()
    }


def order_rooms(rooms: Mapping[str, Iterable[str]]) -> list[str]:
    """The rooms, each above all that it imports.

    Raises:
        CycleError: rooms import each other in a circle.
    """
    return [*graphlib.TopologicalSorter(rooms).static_order()][::-1]


def tabulate_rooms() -> str:
    """The rooms from above to below, each with the rooms that it imports."""
    rooms = read_rooms()
    rows = [
        [f"`{room}`", ", ".join(f"`{name}`" for name in rooms[room])] for room in order_rooms(rooms)
    ]
    return tabulate(["room", "imports"], rows)
