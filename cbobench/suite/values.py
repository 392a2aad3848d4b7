"""Values of a suite and of a call: whole numbers, and amounts with a unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cbobench.errors import wrong_value


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number, which True is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_floor(value: Any) -> bool:
    """Return whether a value can be a floor of differences: a finite number from 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < float("inf")


def parse_whole(name: str, value: Any, least: int, most: int, location: str = "") -> int:
    """Return a whole number; raise `Misuse` for anything else, or one out of its range."""
    if not is_whole(value) or not least <= value <= most:
        raise wrong_value(name, value, f"a whole number from {least} to {most}", location)
    return int(value)


def parse_amount(
    name: str, text: Any, units: Mapping[str, float], example: str, location: str = ""
) -> float:
    """Return a number above 0 that stands before its unit, in terms of that; raise `Misuse` for
    anything else.
    """
    match = re.fullmatch(rf"(\d+(?:\.\d+)?) ?({'|'.join(units)})", str(text))
    if match is None or float(match[1]) == 0:
        allowed = f"a number above 0 with its unit: {', '.join(units)} (as in {example})"
        raise wrong_value(name, text, allowed, location)
    return float(match[1]) * units[match[2]]
