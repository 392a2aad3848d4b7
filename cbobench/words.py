"""Words for readers: numbers with their nouns, and text that does nothing but be read."""

from __future__ import annotations

import unicodedata


def counted(number: int, what: str) -> str:
    """A number with its noun: 1 task, 2 tasks."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    r"""The text with everything that a terminal obeys, and does not show, as its escape: \x1b, \u202e, \n."""
    if text.isprintable():
        return text
    return "".join(char.encode("unicode_escape").decode() if _obeyed(char) else char for char in text)


def _obeyed(char: str) -> bool:
    """Controls, marks of direction, line ends, and what has no glyph of its own."""
    kind = unicodedata.category(char)
    return kind[0] == "C" or kind in ("Zl", "Zp")
