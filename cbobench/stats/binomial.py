"""Exact intervals of shares."""

from __future__ import annotations

from cbobench.errors import Misuse
from cbobench.stats.intervals import CONFIDENCE, level


def clopper_pearson(count: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval of a probability from `count` successes in `of` independent trials (Clopper & Pearson 1934).

    Returns:
        (0, 1) for no trials.

    Raises:
        Misuse: a negative count, or more successes than trials.
    """
    from scipy.special import betaincinv

    tail = (1 - level(confidence)) / 2
    if not 0 <= count <= of:
        raise Misuse(f"{count} of {of} trials; allowed: a count from 0 to the number of trials")
    low = float(betaincinv(count, of - count + 1, tail)) if count > 0 else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return low, high
