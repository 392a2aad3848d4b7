"""Rows of a table as lines of a terminal: how wide columns are, and how their words are wrapped.

Widths are those of the terminal's cells, of which some letters take two and some none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text


def choose_sizes(columns: Sequence[Sequence[str]], left: int, width: int) -> list[int]:
    """How wide columns are: as their texts, but narrower for the widest of words where that is more
    than `width`.

    Numbers are never cut: where these alone are wider, so is the table.

    Args:
        columns: headings and cells.
        left: how many leading columns are words.
    """
    sizes = [max(map(cell_len, column)) for column in columns]
    for _ in range(sum(sizes) + 2 * len(sizes) + 1 - width):
        widest = max(range(left), key=lambda i: (sizes[i], i))
        sizes[widest] = max(1, sizes[widest] - 1)
    return sizes


def lay_out_row(row: Sequence[str], sizes: Sequence[int], left: int, step: int = 1) -> list[str]:
    """The lines of a row: words from the left and wrapped in the `left` first columns, numbers from
    the right.

    Args:
        step: 1 where what takes fewer lines is above, -1 where it is below, as in headings.
    """
    parts = []
    for i, (cell, size) in enumerate(zip(row, sizes, strict=True)):
        if i < left:
            lines = [line.plain.rstrip() for line in Text(cell).wrap(Console(), size)]
        else:
            lines = [" " * (size - cell_len(cell.rstrip())) + cell.rstrip()]
        parts.append((lines or [""])[::step])
    lines = [
        "".join(
            f"  {text}{' ' * (size - cell_len(text))}"
            for text, size in zip(texts, sizes, strict=True)
        ).rstrip()
        for texts in zip_longest(*parts, fillvalue="")
    ]
    return lines[::step]
