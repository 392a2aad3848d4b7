"""Intervals of means, medians and proportions over seeds, and whether a few seeds carry the
mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Not where it is used: its BLAS would try for ever where memory is limited and little is left.
from scipy.special import bdtr, betaincinv, ndtr, stdtrit

from cbobench.errors import Misuse, show
from cbobench.rng import generator

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
Bounds = tuple[float | None, float | None]

CONFIDENCE = 0.95
DRAWS = 2000
SURE = 6  # values from which order statistics hold a median with 95 %
JUDGED = 6  # values from which it can be said that a few carry the mean
TURNED = 0.8  # how near Hall's correction comes to 1, where its slope is infinite
MEMORY = 2**21  # numbers held at a time, about 16 MB


def numbers(values: ArrayLike, noun: str = "values") -> Array:
    """An array of float64. Infinite values are a `Misuse`; NaN is left to the caller."""
    array = np.asarray(values, dtype=np.float64)
    if np.isinf(array).any():
        raise Misuse(
            f"{noun} holds an infinite number; give finite ones, and NaN for what is undefined"
        )
    return array


def interval(
    values: ArrayLike,
    statistic: Literal["mean", "median"] = "mean",
    axis: int = 0,
    bounds: Bounds = (None, None),
) -> tuple[Array, Array]:
    """The interval of a mean (`of_mean`) or a median (`of_median`) over seeds. Nothing in it is
    random.

    Args:
        values: any shape; seeds along `axis`. Every position of the other axes is a column with an
            interval of its own, which no other column changes, to the last bit.
        statistic: of what.
        bounds: what the quantity cannot be below or above; None where nothing is known. Ends are
            moved to them.

    Returns:
        Lower and upper ends, of the shape of `values` without `axis`. NaN with fewer than two
        seeds, and in columns that hold NaN.

    Raises:
        Misuse: an infinite value, an unknown statistic.
    """
    if statistic not in METHODS:
        raise Misuse(f"statistic is {show(statistic)}; allowed: {', '.join(METHODS)}")
    array = np.moveaxis(numbers(values), axis, 0)
    n = array.shape[0]
    shape = array.shape[1:]
    columns = array.reshape(n, math.prod(shape)).T
    ends = np.full((2, len(columns)), np.nan)

    # One seed has no spread, so that its columns stay NaN; many columns are taken in parts.
    stop = len(columns) if n >= 2 else 0
    rows = max(1, MEMORY // max(n, 1))
    for i in range(0, stop, rows):
        # Contiguous rows are summed in one order, whatever other columns are in the call.
        part = np.ascontiguousarray(columns[i : i + rows])
        ends[:, i : i + rows] = METHODS[statistic](part)
        ends[:, i : i + rows][:, np.isnan(part).any(axis=1)] = np.nan
    if bounds != (None, None):
        ends = np.clip(ends, *bounds)
    low, high = ends.reshape(2, *shape)
    return low, high


def of_mean(columns: Array) -> Array:
    """Interval of the mean of each row, (rows, n) to (2, rows): on each side the wider of two.

    One is Student's t, which is right for symmetric laws, heavy tails included, and too short above
    for skewed ones. The other turns t by the sample's skewness (Hall 1992, "On the removal of
    skewness by transformation", the cubic one), which is right for skewed laws; three values or two
    have none. The correction is bounded: where skewness · t = √n its slope is infinite, and of two
    neighbouring rounds one would have an interval twice as wide as the other. So none is wider than
    1.4 times Student's. Percentile, BCa and bootstrap-t intervals cover less of skewed laws, or are
    unbounded where most values are equal. Coverage in % at nominal 95 %, from 10,000 samples of
    each law of `benchmarks/quality/coverage.py`:

        n                   2      3      4      5      6      8     10     20     50
        normal           95.3   94.8   96.4   96.7   96.4   96.2   96.4   95.5   95.2
        t3               95.7   96.4   97.5   97.2   96.9   97.0   96.2   95.7   95.7
        exponential      90.8   88.9   91.1   92.1   92.6   93.7   94.0   96.2   95.8
        lognormal        89.6   83.7   87.4   87.7   87.7   89.0   90.7   92.4   94.4
        lognormal-1.5    80.8   70.9   75.7   77.1   77.1   79.0   81.2   86.1   90.3
        pareto           85.9   80.7   83.4   84.7   84.8   86.2   87.0   91.1   92.3
        difference       96.6   97.2   98.3   98.2   97.8   97.3   96.9   96.2   95.7
        zeros            60.1   75.1   84.7   90.1   92.0   95.0   96.4   97.5   97.0
        counts           84.1   72.6   74.1   71.9   69.9   65.4   65.1   72.0   92.1

    In `counts` three of fifty values hold half of the sum: a sample of ten or twenty mostly lacks
    them, and no method can know of what is not there. `is_carried_by_few` says when what is there
    is of that kind.
    """
    n = columns.shape[1]
    t = stdtrit(n - 1, (1 + CONFIDENCE) / 2)
    mean = columns.mean(axis=1)
    apart = columns - mean[:, None]
    largest = np.abs(apart).max(axis=1)
    # Equal values have no spread to divide by: their interval is the value itself.
    flat = columns.max(axis=1) == columns.min(axis=1)
    # In units of the largest distance no power overflows or vanishes.
    unit = apart / np.where(flat | (largest == 0), 1.0, largest)[:, None]
    square = np.where(flat, 1.0, (unit**2).mean(axis=1))
    error = largest * np.sqrt(square / (n - 1))
    # the adjusted sample skewness over √n, which lies in [-1, 1]
    skewness = np.zeros_like(square)
    if n > 3:
        skewness = (unit**3).mean(axis=1) / square**1.5 * np.sqrt(n - 1) / (n - 2)
    skewness = np.clip(skewness, -TURNED / t, TURNED / t)
    # Turning t by the skewness may only widen a side, never narrow it.
    above = np.maximum(t, -invert_hall(-t, skewness))
    below = np.minimum(-t, -invert_hall(t, skewness))
    return np.where(flat, columns[:, 0], mean + np.stack([below, above]) * error)


def invert_hall(u: float, skewness: Array) -> Array:
    """Hall's transformation turned around: the t at which t + γt²/3 + γ²t³/27 + γ/6 = u, for γ =
    skewness / √n.
    """
    # Near γ = 0 the cube root less 1 has few digits left, and at 0 there is nothing to divide by.
    small = np.abs(skewness) < 1e-6
    gamma = np.where(small, 1.0, skewness)
    return np.where(small, u, 3 * (np.cbrt(1 + gamma * (u - gamma / 6)) - 1) / gamma)


def of_median(columns: Array) -> Array:
    """Interval of the median of each row, (rows, n) to (2, rows), whatever the law.

    The number of values below the median is binomial, which gives exact intervals between order
    statistics; one that is too wide and one that is too narrow are interpolated (Hettmansperger &
    Sheather 1986). Measured coverage at nominal 95 % is within 94-96 % for n >= 6 and every
    continuous law, more where values repeat. With fewer values it is their range, of which
    `range_level` is what it holds.
    """
    n = columns.shape[1]
    ordered = np.sort(columns, axis=1)
    # How often the median lies between the k-th values from below and from above, k = 1, 2, ...
    holds = 1 - 2 * bdtr(np.arange((n + 1) // 2), n, 0.5)
    k = int((holds >= CONFIDENCE).sum())
    if k == 0:
        return np.stack([ordered[:, 0], ordered[:, -1]])
    # Between the last pair that holds enough and the next one, by how much each holds.
    narrower = 1 - 2 * float(bdtr(k, n, 0.5))
    part = (holds[k - 1] - CONFIDENCE) / (holds[k - 1] - narrower)
    weight = (n - k) * part / (k + (n - 2 * k) * part)
    low = (1 - weight) * ordered[:, k - 1] + weight * ordered[:, k]
    high = (1 - weight) * ordered[:, n - k] + weight * ordered[:, n - k - 1]
    return np.stack([low, high])


def range_level(n: int) -> float:
    """How often the range of n >= 1 values holds the median of their law: 50, 75, 87.5, 93.75 % for
    n = 2, 3, 4, 5.
    """
    return 1 - 2.0 ** (1 - n)


METHODS: dict[str, Callable[[Array], Array]] = {"mean": of_mean, "median": of_median}


def draw_resamples(n: int, draws: int = DRAWS, seed: int = 0, size: int | None = None) -> Array:
    """How often each of n seeds is in each resample, (draws, n), for statistics other than a mean
    or a median.

    A resample has n values, or `size`.

    `draw_resamples(n) @ values / n` are the means of resamples, the same resamples for everything
    that has n seeds.
    """
    picked = generator("stats", "bootstrap", n, seed).integers(n, size=(draws, size or n))
    # Draws are shifted apart, so that one call counts them all.
    counts = np.bincount((picked + n * np.arange(draws)[:, None]).ravel(), minlength=draws * n)
    return counts.reshape(draws, n).astype(np.float64)


def percentiles(drawn: Array, n: int) -> tuple[float, float]:
    """Interval of a statistic of n >= 2 seeds, given its values in resamples, (draws,), infinite
    ones allowed.

    Its ends lie further out than the plain percentiles, the more so the fewer seeds, by as much as
    makes up for the spread that resamples lack (Hesterberg 2015, "What teachers should know about
    the bootstrap": expanded percentiles).
    """
    tail = ndtr(stdtrit(n - 1, (1 - CONFIDENCE) / 2) * np.sqrt(n / (n - 1)))
    ordered = np.sort(drawn)
    last = len(drawn) - 1
    return float(ordered[math.floor(tail * last)]), float(ordered[math.ceil((1 - tail) * last)])


def proportion(successes: int, n: int) -> tuple[float, float]:
    """Exact interval of a probability (Clopper & Pearson 1934): `successes` of n independent trials
    succeeded.

    Returns:
        Lower and upper end in [0, 1]; NaN when n is 0.

    Raises:
        Misuse: successes outside 0..n.
    """
    tail = (1 - CONFIDENCE) / 2
    if not 0 <= successes <= n or successes != int(successes) or n != int(n):
        raise Misuse(
            f"{show(successes)} successes of {n!r} trials; allowed: whole numbers, 0 <= "
            "successes <= n"
        )
    if n == 0:
        return np.nan, np.nan
    # At 0 and n nothing lies beyond, where the quantile is not defined.
    low = betaincinv(successes, n - successes + 1, tail) if successes > 0 else 0.0
    high = betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return float(low), float(high)


def is_carried_by_few(values: ArrayLike) -> bool:
    """Whether a few seeds carry the mean: without them it would be another number.

    The few are the 5 % of the values that are farthest from the median, at least one and at most
    three. They carry the mean when they hold more than 40 % of the sum of distances from the
    median, and each on average more than five times its share. NaN does not count; fewer than
    `JUDGED` values never are. Of normal samples less than 1 % are marked.
    """
    array = numbers(values).ravel()
    known = array[~np.isnan(array)]
    if len(known) < JUDGED:
        return False
    # Distances from the median, which the few do not move as they move the mean.
    far = np.sort(np.abs(known - np.median(known)))
    count = min(3, math.ceil(len(known) / 20))
    share = max(0.4, 5 * count / len(known))
    return bool(far[-count:].sum() > share * far.sum())
