"""Tables as a terminal shows them, beside those that rich draws."""

from __future__ import annotations

import io
import random

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from cbobench.report.formats import Marked, TextTable, render

WORDS = ["rkhs", "long-name[beta_scale=0.25,h=0.5]", "φ", "h = B/2", "ckb-ucb", "数学", "word,"]
NUMBERS = ["0", "12 [3, 4]", "–", "0.001 [0, 0.022]", "∞ 3/5", "1,234"]


def draw_with_rich(table, width):
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for i, name in enumerate(table.columns):
        side = "left" if i < table.left else "right"
        grid.add_column(name, justify=side, no_wrap=i >= table.left, overflow="fold")
    for row in table.rows:
        grid.add_row(*row)
    text = io.StringIO()
    Console(file=text, width=width, color_system=None, markup=False, highlight=False).print(grid)
    return [line.rstrip() for line in text.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize("width", [66, 80, 100])
def test_rows_lie_as_rich_lays_them(width):
    draw, wrapped = random.Random(width), 0
    for _ in range(60):
        # One column of words is wrapped: of two equal ones rich narrows now the first, now the
        # last.
        words = [" ".join(draw.choices(WORDS, k=draw.randint(1, 4))) for _ in range(5)]
        rows = [[str(i), words[i], *draw.choices(NUMBERS, k=2)] for i in range(draw.randint(0, 4))]
        table = TextTable(["problem", words[4], "V⁺", "N"], rows, left=2)
        lines = render(table, "table", width).splitlines()
        assert lines == draw_with_rich(table, width)
        wrapped += len(lines) > len(rows) + 2
    assert wrapped > 3, "some words do not fit"


def test_numbers_are_never_cut():
    """Nor is a row lost, where even they are wider than the terminal."""
    numbers = ["1" * 30, Marked("2" * 30)]
    table = TextTable(["name", "a", "b"], [["x", *numbers]], left=1, weights=[0] * 3)
    assert render(table, "table", 40).split()[-3:] == ["x", numbers[0], f"{numbers[1]}*"]
