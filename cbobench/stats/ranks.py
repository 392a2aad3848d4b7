"""Algorithms on the same blocks: ranks, Friedman's test, Nemenyi's critical difference, groups beside the best.

A block is what all algorithms had in common: a seed of a problem, or a problem (`over_problems` takes means over its
seeds first). Only complete blocks: the caller leaves out the others and says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbobench.errors import Misuse
from cbobench.stats.intervals import Array, numbers
from cbobench.stats.paired import Better, holm, mean_ranks, signed_rank, signs


def table(values: ArrayLike) -> Array:
    """Values of complete blocks, (blocks, algorithms)."""
    array = numbers(values)
    if array.ndim != 2:
        raise Misuse(f"values have shape {array.shape}; ranks need (blocks, algorithms)")
    if np.isnan(array).any():
        raise Misuse("a block holds NaN; give complete blocks only, and say how many were left out")
    return array


def ranks(values: ArrayLike, better: Better = "lower") -> Array:
    """Ranks within every block, 1 for the best, equal values sharing their mean rank: (blocks, algorithms)."""
    array = table(values)
    return np.array([mean_ranks(-signs(better) * block) for block in array]).reshape(array.shape)


def average_ranks(values: ArrayLike, better: Better = "lower") -> Array:
    """Mean rank of each algorithm over the blocks, (algorithms,); NaN without blocks."""
    ranked = ranks(values, better)
    return ranked.mean(axis=0) if len(ranked) else np.full(ranked.shape[1], np.nan)


def over_problems(values: ArrayLike, problems: Sequence[Hashable]) -> tuple[list[Hashable], Array]:
    """Blocks (problem, seed) to blocks of a problem: means over its seeds.

    Args:
        values: (blocks, algorithms).
        problems: the problem of each block.

    Returns:
        The problems in the order in which they first appear, and (problems, algorithms).
    """
    array = table(values)
    if len(problems) != len(array):
        raise Misuse(f"{len(problems)} problems are named for {len(array)} blocks; give one per block")
    names = list(dict.fromkeys(problems))
    of = np.array([names.index(problem) for problem in problems], dtype=int)
    means = [array[of == i].mean(axis=0) for i in range(len(names))]
    return names, np.array(means).reshape(len(names), array.shape[1])


def friedman(values: ArrayLike) -> tuple[float, float]:
    """Friedman's test that all algorithms rank alike: the χ² statistic, corrected for ties, and its p-value.

    NaN with fewer than three algorithms (take Wilcoxon's test) or fewer than two blocks; all equal gives 0 and p = 1.
    """
    from scipy.special import chdtrc

    ranked = ranks(values)
    n, k = ranked.shape
    if k < 3 or n < 2:
        return np.nan, np.nan
    spread = ((ranked - (k + 1) / 2) ** 2).sum()
    if spread == 0:
        return 0.0, 1.0
    statistic = (k - 1) * ((ranked.sum(axis=0) - n * (k + 1) / 2) ** 2).sum() / spread
    return float(statistic), float(chdtrc(k - 1, statistic))


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of average ranks of k algorithms over n blocks (Demšar 2006, Section 3.2.2).

    Two algorithms whose average ranks are closer than this are not separated at level alpha. It depends on k: unlike
    every other number here it moves when an algorithm is added.
    """
    from scipy.stats import studentized_range

    if k < 2 or n < 1 or not 0 < alpha < 1:
        raise Misuse(f"k = {k}, n = {n}, alpha = {alpha}; allowed: k >= 2, n >= 1, 0 < alpha < 1")
    return float(studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n)))


@dataclass(frozen=True)
class Separation:
    """The best algorithm, and which are not separable from it.

    Attributes:
        best: its column.
        p: of Wilcoxon's signed-rank test against the best, Holm-adjusted, (algorithms,); NaN at the best.
        worse: (algorithms,), whether the best beats it at level alpha; the others and the best itself form one group.
    """

    best: int
    p: Array
    worse: NDArray[np.bool_]


def separable(
    values: ArrayLike,
    better: Better = "lower",
    by: Literal["mean", "median", "rank"] = "mean",
    alpha: float = 0.05,
) -> Separation:
    """Which algorithms are worse than the best one.

    The best is that of the best mean, median or average rank (ties: the first). Signed ranks can prefer another than
    the mean does, where few blocks carry the mean: then the other is not `worse`, however small p is.

    Args:
        values: (blocks, algorithms), at least one of each.

    Raises:
        Misuse: an incomplete block, no block, an unknown `by`.
    """
    array, sign = table(values), signs(better)
    if not array.size:
        raise Misuse(f"values have shape {array.shape}; a best one needs at least one block and one algorithm")
    scores = {"mean": array.mean(axis=0), "median": np.median(array, axis=0), "rank": ranks(array, better).mean(axis=0)}
    if by not in scores:
        raise Misuse(f"by is {by!r}; allowed: mean, median, rank")
    best = int(np.argmin(scores[by] if by == "rank" else -sign * scores[by]))
    tests = [signed_rank(sign * (array[:, best] - array[:, j])) for j in range(array.shape[1])]
    p, effect = np.array(tests).T
    p[best] = np.nan
    p = holm(p)
    return Separation(best, p, (p < alpha) & (effect > 0))
