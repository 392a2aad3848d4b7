"""Words for readers: numbers with their nouns."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """A number with its noun: 1 task, 2 tasks, 2 processes."""
    plural = "es" if what.endswith("s") else "s"
    return f"{number} {what}{'' if number == 1 else plural}"


def part_of(number: int, whole: int, what: str) -> str:
    """A part of so many with its verb: 1 of 2 files is, 0 of 1 file is, 2 of 3 files are."""
    return f"{number} of {counted(whole, what)} {'is' if 1 in (number, whole) else 'are'}"


def duration(seconds: float) -> str:
    """About how long: 8 s, 12 min, 3.4 h, 2.1 days."""
    for size, unit, digits in ((90, "s", 0), (5400, "min", 0), (48 * 3600, "h", 1)):
        if seconds < size:
            return f"{seconds / {'s': 1, 'min': 60, 'h': 3600}[unit]:.{digits}f} {unit}"
    return f"{seconds / 86400:.1f} days"


def time_left(seconds: float, low: float, high: float) -> str:
    """How long the rest takes, with its uncertainty: "about 3 min (2 to 5 min)"."""
    ends = [duration(each) for each in (low, high)]
    if ends[0].split()[1] == ends[1].split()[1]:
        ends[0] = ends[0].split()[0]
    return f"about {duration(seconds)} ({' to '.join(ends)})"
