"""Tables as a terminal shows them."""

from __future__ import annotations

from cbobench.report.tables.formats import Marked, TextTable, render


def test_numbers_are_never_cut():
    """Nor is a row lost, where even they are wider than the terminal."""
    numbers = ["1" * 30, Marked("2" * 30)]
    table = TextTable(["name", "a", "b"], [["x", *numbers]], left=1, weights=[0] * 3)
    assert render(table, "table", 40).split()[-3:] == ["x", numbers[0], f"{numbers[1]}*"]
