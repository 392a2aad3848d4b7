"""Intervals of means, medians and proportions over seeds, and whether a few seeds carry the mean."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbobench.errors import Misuse
from cbobench.rng import generator

Array = NDArray[np.float64]
Bounds = tuple[float | None, float | None]

CONFIDENCE = 0.95
DRAWS = 2000
MEMORY = 2**21  # numbers held at a time, about 16 MB


def numbers(values: ArrayLike, what: str = "values") -> Array:
    """An array of float64. Infinite values are a `Misuse`; NaN is left to the caller."""
    array = np.asarray(values, dtype=np.float64)
    if np.isinf(array).any():
        raise Misuse(f"{what} holds an infinite number; give finite ones, and NaN for what is undefined")
    return array


def level(confidence: float) -> float:
    """A confidence strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise Misuse(f"confidence is {confidence!r}; allowed: strictly between 0 and 1, such as 0.95")
    return float(confidence)


def resampled(n: int, draws: int = DRAWS, seed: int = 0) -> Array:
    """How often each of n seeds is in each resample, (draws, n); the same for everything that has n seeds."""
    picked = generator("stats", "bootstrap", n, seed).integers(n, size=(draws, n))
    counts = np.bincount((picked + n * np.arange(draws)[:, None]).ravel(), minlength=draws * n)
    return counts.reshape(draws, n).astype(np.float64)


def bootstrap(
    values: ArrayLike,
    statistic: Literal["mean", "median"] = "mean",
    axis: int = 0,
    confidence: float = CONFIDENCE,
    draws: int = DRAWS,
    seed: int = 0,
    bounds: Bounds = (None, None),
) -> tuple[Array, Array]:
    """The interval of a mean or median over seeds.

    Args:
        values: any shape; seeds along `axis`. Every position of the other axes is a column with an interval of its own,
            which no other column changes.
        statistic: of what.
        draws: number of resamples.
        seed: of the resamples.
        bounds: what the quantity cannot be below or above; None where nothing is known.

    Returns:
        Lower and upper ends, of the shape of `values` without `axis`. NaN with fewer than two seeds, and in columns
        that hold NaN.

    Raises:
        Misuse: an infinite value, an unknown statistic, a confidence outside (0, 1).
    """
    confidence, array = level(confidence), np.moveaxis(numbers(values), axis, 0)
    n, shape = array.shape[0], array.shape[1:]
    columns = np.ascontiguousarray(array.reshape(n, math.prod(shape)).T)
    ends = np.full((2, len(columns)), np.nan)
    if n >= 2:
        if statistic == "median":
            ends = of_median(columns, confidence)
        elif statistic == "mean":
            ends = of_mean(columns, confidence, draws, seed)
        else:
            raise Misuse(f"statistic is {statistic!r}; allowed: mean, median")
    low, high = np.where(np.isnan(columns).any(axis=1), np.nan, ends)
    low, high = (np.clip(end, *bounds) if bounds != (None, None) else end for end in (low, high))
    return low.reshape(shape), high.reshape(shape)


def of_mean(columns: Array, confidence: float, draws: int = DRAWS, seed: int = 0) -> Array:
    """Percentile interval of the mean of each row, (2, rows)."""
    counts = resampled(columns.shape[1], draws, seed).T / columns.shape[1]
    chunk = max(1, MEMORY // draws)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    parts = [columns[i : i + chunk, None, :] @ counts for i in range(0, len(columns), chunk)]
    return np.concatenate([np.quantile(part[:, 0], tails, axis=1) for part in parts], axis=1)


def of_median(columns: Array, confidence: float) -> Array:
    """Interval of the median of each row between its order statistics, (2, rows)."""
    from scipy.stats import binom

    n = columns.shape[1]
    k = max(1, int(binom.ppf((1 - confidence) / 2, n, 0.5)))
    ordered = np.sort(columns, axis=1)
    return np.stack([ordered[:, k - 1], ordered[:, n - k]])


def proportion(successes: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact interval of a probability (Clopper & Pearson 1934): `successes` of n independent trials succeeded.

    Returns:
        Lower and upper end in [0, 1]; NaN when n is 0.

    Raises:
        Misuse: successes outside 0..n.
    """
    from scipy.special import betaincinv

    tail = (1 - level(confidence)) / 2
    if not 0 <= successes <= n or successes != int(successes) or n != int(n):
        raise Misuse(f"{successes!r} successes of {n!r} trials; allowed: whole numbers, 0 <= successes <= n")
    if n == 0:
        return np.nan, np.nan
    low = betaincinv(successes, n - successes + 1, tail) if successes > 0 else 0.0
    high = betaincinv(successes + 1, n - successes, 1 - tail) if successes < n else 1.0
    return float(low), float(high)


def carried(values: ArrayLike) -> bool:
    """Whether a few seeds carry the mean."""
    array = numbers(values).ravel()
    array = array[~np.isnan(array)]
    n = len(array)
    if n < 6:
        return False
    far = np.sort(np.abs(array - np.median(array)))[::-1]
    few = min(3, max(1, int(np.ceil(0.05 * n))))
    return bool(far[:few].sum() > 0.4 * far.sum())
