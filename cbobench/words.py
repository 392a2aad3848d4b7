"""Words for readers: numbers with nouns, durations, and ASCII forms of other characters."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterable

UNCERTAINTY = 1.3  # factor by which the time left may be wrong
SPELLED = "cbobench.spelled"  # error handler that spells unencodable characters in ASCII
FORMS = {
    "–": "-",
    "—": "-",
    "−": "-",
    "─": "-",
    "│": "|",
    "‖": "||",
    "·": "*",
    "±": "+-",
    "×": "x",
    "µ": "u",
    "†": "#",
    "∞": "inf",
    "≤": "<=",
    "≥": ">=",
    "√": "sqrt ",
    "∇": "grad ",
    "∩": "&",
    "⌈": "ceil(",
    "⌉": ")",
    "←": "<-",
    "→": "->",
    "′": "'",
}


def in_ascii(text: str) -> str:
    """Return a text in ASCII: signs by `FORMS`, Greek letters by name, other letters without
    accents, else "?".
    """
    return "".join(char if char.isascii() else _form(char) for char in text)


def _form(char: str) -> str:
    if char in FORMS:
        return FORMS[char]
    kind, _, letter = unicodedata.name(char, "").partition(" LETTER ")
    if kind in ("GREEK SMALL", "GREEK CAPITAL") and letter.isalpha():
        if kind == "GREEK SMALL":
            return letter.lower()
        return letter.capitalize()
    plain = unicodedata.normalize("NFKD", char)
    if plain != char:
        return in_ascii("".join(part for part in plain if not unicodedata.combining(part)))
    if unicodedata.combining(char):
        return ""
    return "?"


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return in_ascii(error.object[error.start : error.end]), error.end


codecs.register_error(SPELLED, _spell)


def encodable(text: str, encoding: str | None) -> str:
    """Return a text as an encoding can show it."""
    return text.encode(encoding or "utf-8", SPELLED).decode(encoding or "utf-8")


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun: 1 task, 2 tasks, 20,000 processes."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def list_names(names: Iterable[str], most: int = 6, between: str = ", ") -> str:
    """Return names in a row, the first `most` of them and how many more there are: a, b and 3
    more.
    """
    listed = list(names)
    text = between.join(listed[:most])
    if len(listed) > most:
        return f"{text} and {len(listed) - most:,} more"
    return text


def join_words(names: Iterable[str]) -> str:
    """Return names as a sentence lists them: optuna; optuna and torch; optuna, torch and pymoo."""
    *first, last = names
    if first:
        return f"{', '.join(first)} and {last}"
    return last


def part_of(number: int, total: int, noun: str) -> str:
    """Return a part of a total with its verb: 1 of 2 files is, 0 of 1 file is, 2 of 3 files are."""
    return f"{number:,} of {count_noun(total, noun)} {'is' if 1 in (number, total) else 'are'}"


def duration(seconds: float) -> str:
    """Return an approximate duration: 8 s, 12 min, 3.4 h, 2.1 days."""
    for most, size, unit, digits in (
        (90, 1, "s", 0),
        (5400, 60, "min", 0),
        (172_800, 3600, "h", 1),
    ):
        if seconds < most:
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds / 86400:.1f} days"


def describe_rate(rounds_per_second: float) -> str:
    """Return a speed with two digits at least: 1,234 rounds/s, 0.013 rounds/s."""
    if rounds_per_second >= 10:
        return f"{rounds_per_second:,.0f} rounds/s"
    return f"{rounds_per_second:.2g} rounds/s"


def time_left(seconds: float) -> str:
    """Return the time left with its uncertainty: "about 3 min (2 to 4 min)"."""
    ends = [duration(end) for end in (seconds / UNCERTAINTY, seconds * UNCERTAINTY)]
    if ends[0].split()[1] == ends[1].split()[1]:
        ends[0] = ends[0].split()[0]
    return f"about {duration(seconds)} ({' to '.join(ends)})"
