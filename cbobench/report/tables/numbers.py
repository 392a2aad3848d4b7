"""Numbers as tables write them: so many digits that what differs is seen, and intervals to the
place of their width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

LONG = 6  # digits beside a power of ten; numbers with more are written out
ROUNDED = 1e-9  # of numbers: those that differ by less are one


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
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    if is_count and 2 * value == int(2 * value):
        return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
    exponent, digits = _find_exponent(value), 0
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
    if is_count and all(2 * end == int(2 * end) for end in ends if math.isfinite(end)):
        texts = [format_number(end, is_count=True) for end in ends]
    else:
        decimals, digits = _find_decimal_place(middle, low, high, is_count, apart)
        texts = [
            format_number(end)
            if end == 0 or math.isinf(end)
            else f"{end:.{digits - 1}e}"
            if digits
            else f"{end:,.{decimals}f}"
            if low < 0 or round(end, decimals) or end < 0
            else f"{end:.1e}"
            if end < 1e-3
            else f"{end:.2g}"
            for end in ends
        ]
    texts = [text.removeprefix("-") if set(text) <= set("-0.") else text for text in texts]  # no -0
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def format_beside(
    value: float, middle: float, low: float, high: float, is_count: bool = False, apart: float = 0.0
) -> str:
    """A number beside a `format_interval`, such as a mean: to the same place, with two to four
    digits of its own.
    """
    if not value or not math.isfinite(value) or math.isnan(low + high) or math.isinf(middle):
        return format_number(value, is_count, apart)
    decimals, digits = _find_decimal_place(middle, low, high, is_count, apart)
    if abs(value) >= 1e6:
        return format_number(
            value, is_count, find_gap([middle, low, high]) if abs(middle) >= 1e6 else 0.0
        )
    size, extra_digits = (
        _find_exponent(value),
        max(0, decimals + _find_exponent(middle) - 3) if middle else 0,
    )
    decimals = max(min(decimals, 3 + extra_digits - size), 1 - size, 0)
    return (
        f"{value:.{max(digits, 2) - 1}e}"
        if digits or decimals > 4 + extra_digits
        else f"{value:,.{decimals}f}"
    )


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
    decimals, size = min(places, default=0), _find_exponent(middle or most or 1.0)
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

    several = {n for n in counts if n > 1}
    levels = ", ".join(
        f"{100 * range_level(n):.3g} % for {n}" for n in sorted(several, reverse=True) if n < SURE
    )
    if not levels:
        return "95 % interval"
    return (
        f"95 % interval, or range below {SURE} seeds: {levels}"
        if max(several) >= SURE
        else f"range: {levels} seeds"
    )
