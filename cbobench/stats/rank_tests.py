"""Algorithms on the same blocks: ranks, and Friedman's test.

A block is a problem (Demšar 2006): more seeds of the same problems are no more blocks. Only
complete blocks: the caller leaves out the others and says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from cbobench.errors import Misuse
from cbobench.stats.intervals import Array, numbers
from cbobench.stats.paired_tests import Better, mean_ranks, signs


def ranks(values: ArrayLike, better: Better = "lower") -> Array:
    """Ranks within every block, 1 for the best, equal values sharing their mean rank: (blocks,
    algorithms).
    """
    array = numbers(values)
    if array.ndim != 2:
        raise Misuse(f"values have shape {array.shape}; ranks need (blocks, algorithms)")
    if np.isnan(array).any():
        raise Misuse("a block holds NaN; give complete blocks only, and say how many were left out")
    return np.array([mean_ranks(-signs(better) * block) for block in array]).reshape(array.shape)


def average_ranks(values: ArrayLike, better: Better = "lower") -> Array:
    """Mean rank of each algorithm over the blocks, (algorithms,); NaN without blocks."""
    ranked = ranks(values, better)
    return ranked.mean(axis=0) if len(ranked) else np.full(ranked.shape[1], np.nan)


def friedman(values: ArrayLike) -> tuple[float, float]:
    """Friedman's test that all algorithms rank alike: the χ² statistic, corrected for ties, and its
    p-value.

    NaN with fewer than three algorithms (take Wilcoxon's test) or fewer than two blocks; all equal
    gives 0 and p = 1.
    """
    ranked = ranks(values)
    n, k = ranked.shape
    if k < 3 or n < 2:
        return np.nan, np.nan
    spread = ((ranked - (k + 1) / 2) ** 2).sum()
    if spread == 0:
        return 0.0, 1.0
    statistic = (k - 1) * ((ranked.sum(axis=0) - n * (k + 1) / 2) ** 2).sum() / spread
    return float(statistic), float(chdtrc(k - 1, statistic))
