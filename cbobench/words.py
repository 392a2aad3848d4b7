"""Words for readers: numbers with their nouns."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """A number with its noun: 1 task, 2 tasks, 2 processes."""
    plural = "es" if what.endswith("s") else "s"
    return f"{number} {what}{'' if number == 1 else plural}"
