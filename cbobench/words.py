"""Words for readers: numbers with their nouns."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """A number with its noun: 1 task, 2 tasks, 2 processes."""
    plural = "es" if what.endswith("s") else "s"
    return f"{number} {what}{'' if number == 1 else plural}"


def part_of(number: int, whole: int, what: str) -> str:
    """A part of so many with its verb: 1 of 2 files is, 0 of 1 file is, 2 of 3 files are."""
    return f"{number} of {counted(whole, what)} {'is' if 1 in (number, whole) else 'are'}"
