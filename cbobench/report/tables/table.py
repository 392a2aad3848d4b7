"""A table of strings, its cells and its note: what every format renders; and how numbers are
written in it, in so many digits that what differs is seen, and intervals to the place of their
width.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

BEST = "*best*"  # what a note says of `Best` cells, as a terminal shows them
INTERVAL = re.compile(r" \[[^]]*\]")  # after a median

LONG = 6  # digits beside a power of ten; numbers with more are written out
ROUNDED = 1e-9  # of numbers: those that differ by less are one


class Marked(str):
    """A cell with a star, in every format."""


class Best(Marked):
    """A cell that stands out: between stars in a terminal, bold elsewhere."""


class Code(str):
    """A cell that is typed as it stands: in backticks in Markdown."""


@dataclass(frozen=True)
class TextTable:
    """Strings in rows under a heading; where two columns or more are words, the first one sections
    the rows.

    Attributes:
        columns, rows: headings, and as many cells per row; a `Marked` one has a star, a `Best` one
            stands out.
        title, note: above and below.
        left: how many leading columns are words (left-aligned).
        weights: per column, in what order columns are taken as long as they fit; 0 is never left
            out, nor is any column where there are none.
        folded: whether the first column is in lines of its own, above the rows that share it.
        brief: columns that may be shown without intervals, by position; the first gives way first.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""
    left: int = 2
    weights: Sequence[int] = ()
    folded: bool = False
    brief: Sequence[int] = ()

    def with_note(self, sentences: Sequence[str]) -> TextTable:
        """The table with one more line below it."""
        return replace(self, note="\n".join(filter(None, [self.note, "; ".join(sentences)])))

    def without(self, dropped: set[int]) -> TextTable:
        """The table without some columns, by position."""
        positions = [i for i in range(len(self.columns)) if i not in dropped]
        return replace(
            self,
            columns=[self.columns[i] for i in positions],
            rows=[[row[i] for i in positions] for row in self.rows],
            weights=[self.weights[i] for i in positions] if self.weights else (),
            left=sum(i < self.left for i in positions),
        )

    def fit(self, fits: Callable[[TextTable], bool]) -> TextTable:
        """The table without columns that have weights, then with each, by weight, that still
        fits.
        """
        dropped = {i for i, weight in enumerate(self.weights) if weight}
        for i in sorted(dropped, key=lambda i: self.weights[i]):
            if fits(self.without(dropped - {i})):
                dropped.remove(i)
        return self.without(dropped)


def mark_cell(text: str, is_best: bool, is_marked: bool) -> str:
    """A cell that stands out, or has a star, or none."""
    if is_best:
        return Best(text)
    if is_marked:
        return Marked(text)
    return text


def mark(cell: str, text: str, best: str, marked: str, plain: str = "{}") -> str:
    """The text of a cell in the marks of a format, each with {} for it: of `Best`, of other
    `Marked` cells, and of the others.
    """
    form = best if isinstance(cell, Best) else marked if isinstance(cell, Marked) else plain
    return form.replace("{}", text)


def strip_interval(text: str) -> str:
    """A cell, or another text, without the intervals behind its numbers."""
    return type(text)(INTERVAL.sub("", text))


def explain_bold(note: str) -> str:
    """A note that explains bold cells where a terminal has stars around them.

    Only its first line, which holds no labels, explains them.
    """
    first_line, *other_lines = note.split("\n")
    return "\n".join([first_line.replace(BEST, "bold: best"), *other_lines])


def find_gap(values: Iterable[float]) -> float:
    """The smallest difference between finite numbers that are not one but for rounding; 0 where
    there is none.
    """
    finite = sorted(value for value in values if value is not None and math.isfinite(value))
    most = max(map(abs, finite), default=0.0)
    gaps = [high - low for low, high in pairwise(finite)]
    gap = min((gap for gap in gaps if gap > ROUNDED * most), default=0.0)
    return float(f"{gap:.6g}")  # 0.1, not 0.0999999


def format_number(value: float, is_count: bool = False, apart: float = 0.0) -> str:
    """A number with four significant digits at most, or a dash for none.

    Args:
        is_count: whether it is a count, or the middle of two counts: 0.5, not 0.5000.
        apart: a difference to others that is to be seen, even if that takes more digits (see
            `find_gap`).
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        if value > 0:
            return "∞"
        return "-∞"
    if value == 0:
        return "0"
    if is_count and 2 * value == int(2 * value):
        if value == int(value):
            return f"{value:,.0f}"
        return f"{value:,.1f}"
    exponent = _find_exponent(value)
    digits = 0
    decimals = 3 - exponent
    if apart > ROUNDED * abs(value):
        digits = exponent - _find_exponent(apart) + 1
    if not 1e-3 <= abs(value) < 1e6 and digits <= LONG:
        return f"{value:.{max(digits, 3) - 1}e}"
    if digits > 4:
        decimals = -_find_exponent(apart)
    return f"{value:,.{max(0, decimals)}f}"


def format_interval(
    middle: float, low: float, high: float, is_count: bool = False, apart: float = 0.0
) -> str:
    """middle [low, high], to the place of two significant digits of half its width, or of four of
    the middle.

    More of the middle are shown where `apart` (see `format_number`) takes more, and the width from
    a million on.
    """
    if math.isnan(low) or math.isnan(high) or math.isinf(middle):
        return format_number(middle, is_count, apart)
    ends = (middle, low, high)
    are_counts = all(2 * end == int(2 * end) for end in ends if math.isfinite(end))
    decimals, digits = _find_decimal_place(middle, low, high, is_count, apart)
    texts = []
    for end in ends:
        if end == 0 or math.isinf(end) or (is_count and are_counts):
            text = format_number(end, is_count)
        elif digits:
            text = f"{end:.{digits - 1}e}"
        elif low < 0 or round(end, decimals) or end < 0:
            text = f"{end:,.{decimals}f}"
        else:
            text = f"{end:.1e}" if end < 1e-3 else f"{end:.2g}"
        texts.append(text.removeprefix("-") if set(text) <= set("-0.") else text)  # no -0
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def _find_decimal_place(
    middle: float, low: float, high: float, is_count: bool, apart: float
) -> tuple[int, int]:
    """Decimals of an entry, and the digits that it has as a power of ten; 0 where it is written
    without.
    """
    ends = [end for end in (low, high) if math.isfinite(end)]
    half = (high - low) / 2 if len(ends) == 2 else abs(middle - ends[0]) if ends else 0.0
    most = max(map(abs, (middle, *ends)))
    differences = [
        size for size in (apart, *([2 * half] if most >= 1e6 else ())) if size > ROUNDED * most
    ]
    # from which on they are seen
    place = -_find_exponent(min(differences)) if differences else -999
    places = [1 - _find_exponent(half)] if half else []
    if middle:
        places.append(max(3 - _find_exponent(middle), place))
    decimals = min(places, default=0)
    size = _find_exponent(middle or most or 1.0)
    if most >= 1e6 or (decimals > 4 and abs(middle or most) < 1e-3):
        digits = min(max(decimals + size + 1, 2), max(3, place + size + 1))
        if digits <= LONG:
            return 0, digits
    return max(0, min(decimals, 1) if is_count else decimals), 0


def _find_exponent(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def describe_median_interval(counts: Iterable[int]) -> str:
    """What stands around medians over so many seeds each: an interval, or their range and what it
    attains.
    """
    from cbobench.stats.intervals import SURE, range_level  # with NumPy, which no other text needs

    several = sorted({n for n in counts if n > 1}, reverse=True)
    levels = ", ".join(f"{100 * range_level(n):.3g} % for {n}" for n in several if n < SURE)
    if not levels:
        return "95 % interval"
    if several[0] >= SURE:
        return f"95 % interval, or range below {SURE} seeds: {levels}"
    return f"range: {levels} seeds"
