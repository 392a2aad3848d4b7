"""Words for readers: numbers with nouns, and durations."""

from __future__ import annotations

from collections.abc import Collection, Iterable

UNCERTAINTY = 1.3  # factor by which the time left may be wrong


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun: 1 task, 2 tasks, 20,000 processes."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def count_span(counts: Collection[int], noun: str) -> str:
    """Several counts of one thing, such as "10 seeds" or "3 to 10 seeds"."""
    least, most = min(counts), max(counts)
    span = "" if least == most else f"{least:,} to "
    return span + count_noun(most, noun)


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
