"""Draws the rooms of cbobench/ and who imports whom: make pages writes architecture.svg.

A room is a directory of the package. Rooms stand in layers: each imports only from layers below it.
An arrow that follows from a chain of others is left out, and so are imports of the leaves at the
top level (errors, registry, ...).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from html import escape
from pathlib import Path

import cbobench

PACKAGE = Path(cbobench.__file__).parent
PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "architecture.svg"
WIDTH, HEIGHT, GAP, ABOVE = 230, 46, 24, 44  # of a box, beside it, and above it


def imports_of(path: Path) -> set[str]:
    """Rooms that a file imports, imports within functions included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name and name.startswith("cbobench."):
                found.add(name.split(".")[1])
    return found


def read_rooms(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Per room of the package the other rooms that its files import."""
    rooms = {p.parent.name: p.parent for p in package.glob("*/__init__.py")}
    graph = {
        name: set().union(*map(imports_of, folder.rglob("*.py"))) & rooms.keys()
        for name, folder in rooms.items()
    }
    return {name: below - {name} for name, below in graph.items()}


def find_layers(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """The layer of each room, from below: above all that it imports, and as near to its importers
    as it can be.

    Raises:
        ValueError: rooms import each other in a circle.
    """
    layers: dict[str, int] = {}
    while len(layers) < len(graph):
        ready = {r for r, below in graph.items() if r not in layers and below <= layers.keys()}
        if not ready:
            raise ValueError(
                f"a circle of imports among {', '.join(sorted(graph.keys() - layers.keys()))}"
            )
        layers |= {
            room: 1 + max((layers[other] for other in graph[room]), default=-1) for room in ready
        }
    for room in sorted(layers, key=lambda room: -layers[room]):
        above = [layers[other] for other in graph if room in graph[other]]
        layers[room] = min(above) - 1 if above else layers[room]
    return layers


def direct(graph: Mapping[str, set[str]], layers: Mapping[str, int]) -> list[tuple[str, str]]:
    """Arrows that no chain of other arrows implies."""
    reach: dict[str, set[str]] = {}
    for room in sorted(graph, key=lambda room: layers[room]):
        reach[room] = graph[room].union(*(reach[other] for other in graph[room]))
    return sorted(
        (room, other)
        for room, below in graph.items()
        for other in below
        if not any(other in reach[between] for between in below - {other})
    )


def summarise(room: str, package: Path = PACKAGE) -> str:
    """The first words of a room's docstring."""
    doc = ast.get_docstring(ast.parse((package / room / "__init__.py").read_text())) or ""
    first = doc.split("\n")[0].removeprefix(f"{room.capitalize()}: ").rstrip(".")
    return first if len(first) <= 38 else first[:38].rsplit(" ", 1)[0].rstrip(",:") + " …"


def draw(graph: Mapping[str, set[str]]) -> str:
    """The picture as SVG, readable on light and dark pages."""
    layers = find_layers(graph)
    rows = [
        sorted(r for r in graph if layers[r] == k)
        for k in reversed(range(1 + max(layers.values())))
    ]
    widest = max(map(len, rows)) * (WIDTH + GAP) + GAP
    place: dict[str, tuple[float, float]] = {}
    for i, row in enumerate(rows):
        left = (widest - len(row) * (WIDTH + GAP) + GAP) / 2
        place |= {
            room: (left + k * (WIDTH + GAP), GAP + i * (HEIGHT + ABOVE))
            for k, room in enumerate(row)
        }
    height = GAP + len(rows) * (HEIGHT + ABOVE)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest} {height}" '
        'font-family="sans-serif">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#888"/></marker></defs>',
    ]
    for room, other in direct(graph, layers):
        (x, y), (u, v) = place[room], place[other]
        lines.append(
            f'<path d="M{x + WIDTH / 2} {y + HEIGHT} C{x + WIDTH / 2} {y + HEIGHT + ABOVE / 2} '
            f"{u + WIDTH / 2} "
            f'{v - ABOVE / 2} {u + WIDTH / 2} {v - 1}" fill="none" stroke="#888" '
            'marker-end="url(#tip)"/>'
        )
    for room, (x, y) in place.items():
        middle = f'x="{x + WIDTH / 2}" text-anchor="middle"'
        lines.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#eef3f8" '
            'stroke="#557"/>'
            f'<text {middle} y="{y + 19}" font-size="14" font-weight="bold">{room}</text>'
            f'<text {middle} y="{y + 36}" font-size="10">{escape(summarise(room))}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(read_rooms()))
    print(f"wrote {PICTURE.name}")
