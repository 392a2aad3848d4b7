"""How fast a cumulative curve grows: the exponent e of t^e over its last part, with an interval
over seeds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbobench.errors import Misuse
from cbobench.stats.intervals import DRAWS, Array, draw_resamples, numbers, percentiles

POINTS = 64  # rounds that the slope is fitted to, evenly spaced in log t


class Growth(NamedTuple):
    """Exponent of the mean curve over seeds, and its interval (NaN for fewer than two seeds)."""

    exponent: float
    low: float
    high: float


def slopes(t: Array, curves: Array) -> Array:
    """Least-squares slope of log curve on log t, for curves (T, n) at rounds t (T,): (n,).

    A curve that does not change has slope 0, the zero curve too. One that is zero and then positive
    grows faster than
    any power: infinite. One that is negative somewhere, or falls to zero, has none: NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x, y = np.log(t), np.log(curves / curves[0])
        fitted = np.asarray((x - x.mean()) @ y / ((x - x.mean()) ** 2).sum())
    fitted[np.isinf(y).any(axis=0)] = np.nan
    fitted[(curves[0] == 0) & (np.diff(curves, axis=0) >= 0).all(axis=0)] = np.inf
    fitted[(curves == curves[0]).all(axis=0)] = 0.0
    fitted[(curves < 0).any(axis=0) | np.isnan(curves).any(axis=0)] = np.nan
    return fitted


def exponent(
    t: ArrayLike,
    values: ArrayLike,
    part: float = 0.5,
    draws: int = DRAWS,
) -> Growth:
    """Growth exponent of the mean over seeds of a cumulative curve: 0.5 for √t, 1 for t, 0 for what
    stopped growing.

    The slope is fitted to the rounds from (1 - part) T to T, of which at most `POINTS` are used,
    evenly in log t. Its interval resamples seeds, which are independent, and not rounds, which are
    not.

    Args:
        t: recorded rounds, (T,), positive and increasing.
        values: (T, S), one curve per seed, such as R or V⁺; or (T,), one curve.
        part: share of the rounds that is looked at, in (0, 1].
        draws: resamples behind the interval.

    Returns:
        NaN where the mean curve is negative in that part, no interval where that of a resample is;
        an interval with an infinite end where some resamples are zero at its beginning and positive
        at its end.

    Raises:
        Misuse: shapes that do not fit, rounds that do not increase, fewer than two of them in that
            part.
    """
    rounds, curves = numbers(t, "t"), numbers(values)
    curves = curves[:, None] if curves.ndim == 1 else curves
    if curves.ndim != 2 or rounds.shape != curves.shape[:1]:
        raise Misuse(
            f"t has shape {rounds.shape} and values {curves.shape}; allowed: (T,) and (T, seeds)"
        )
    if not 0 < part <= 1 or (np.diff(rounds) <= 0).any() or (rounds <= 0).any():
        raise Misuse(
            f"part = {part}; allowed: in (0, 1], and rounds that are positive and increase"
        )
    used = last(rounds, part)
    if len(used) < 2:
        raise Misuse(
            f"{len(used)} recorded rounds lie in the last {part:g} of the curve; a slope needs two"
        )
    rounds, curves = rounds[used], curves[used]
    n = curves.shape[1]
    estimate = float(slopes(rounds, curves.mean(axis=1, keepdims=True))[0]) if n else np.nan
    if n < 2:
        return Growth(estimate, np.nan, np.nan)
    drawn = slopes(rounds, curves @ (draw_resamples(n, draws).T / n))
    if np.isnan(drawn).any():
        return Growth(estimate, np.nan, np.nan)
    return Growth(estimate, *percentiles(drawn, n))


def last(rounds: Array, part: float) -> NDArray[np.intp]:
    """Indices of at most `POINTS` recorded rounds from (1 - part) T to T, evenly in log t."""
    from_here = (
        np.flatnonzero(rounds >= (1 - part) * rounds[-1]) if len(rounds) else np.empty(0, dtype=int)
    )
    if len(from_here) <= POINTS:
        return from_here
    candidates = rounds[from_here]
    targets = np.geomspace(candidates[0], candidates[-1], POINTS)
    # The slack lets no rounding error carry a target past the recorded round that it equals.
    return from_here[
        np.unique(
            np.clip(np.searchsorted(candidates, targets * (1 - 1e-12)), 0, len(candidates) - 1)
        )
    ]
