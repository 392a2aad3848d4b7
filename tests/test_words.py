"""Numbers with their nouns and verbs."""

from __future__ import annotations

import pytest

from cbobench.report.quantities import chosen
from cbobench.words import counted, part_of


def test_a_number_has_its_noun_and_verb():
    assert [counted(n, "file") for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [part_of(*n, "file") for n in ((1, 2), (0, 1), (2, 3), (0, 2), (1, 1))] == [
        "1 of 2 files is", "0 of 1 file is", "2 of 3 files are", "0 of 2 files are", "1 of 1 file is",
    ]  # fmt: skip


@pytest.mark.parametrize(("word", "name"), [("V+", "violation_hard"), ("R+", "regret_plus"), ("V⁺", "violation_hard")])
def test_symbols_as_a_keyboard_has_them(word, name):
    assert [quantity.name for quantity in chosen(word)] == [name]
