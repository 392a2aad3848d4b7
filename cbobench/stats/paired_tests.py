"""Algorithms on the same seeds: differences, Wilcoxon's signed-rank test, effect size, Holm's
adjustment.

Two are compared two-sided. Which of several may be the best is asked of each by itself: is another
one better? On the same blocks: ranks, and Friedman's test. A block is a problem (Demšar 2006): more
seeds of the same problems are no more blocks. Only complete blocks: the caller leaves out the
others and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from cbobench.errors import Misuse, show
from cbobench.stats.intervals import Array, Mask, interval, numbers

Better = Literal["lower", "higher"]
SIGNIFICANT = 0.05  # a p-value below it
EXACT = 100  # differences that are not zero up to which the signed-rank test is exact


@dataclass(frozen=True)
class Difference:
    """What n pairs say about a - b.

    Attributes:
        n: number of pairs.
        mean, mean_low, mean_high: of a - b with its 95 % interval (NaN for n < 2).
        median, median_low, median_high: likewise; of fewer than six pairs their range.
        p: of Wilcoxon's signed-rank test, two-sided; NaN without pairs.
        effect: matched-pairs rank-biserial correlation in [-1, 1]: 1 when a is better in every
            pair, -1 when b is.
        wins, ties, losses: pairs in which a is better, equal, worse.
    """

    n: int
    mean: float
    mean_low: float
    mean_high: float
    median: float
    median_low: float
    median_high: float
    p: float
    effect: float
    wins: int
    ties: int
    losses: int


def signs(better: Better) -> int:
    """-1 where lower values are better, 1 where higher ones are."""
    if better not in ("lower", "higher"):
        raise Misuse(f"better is {show(better)}; allowed: lower, higher")
    if better == "higher":
        return 1
    return -1


def difference(a: ArrayLike, b: ArrayLike, better: Better = "lower") -> Difference:
    """a - b over pairs, such as the same seed of the same problem.

    Args:
        a, b: (n,), paired elementwise. Only complete pairs: what is undefined is left out by the
            caller, who says so.
        better: which values are better; it decides wins and the sign of the effect, not the sign of
            a - b.

    Raises:
        Misuse: shapes that differ, NaN or an infinite value.
    """
    left = numbers(a, "a")
    right = numbers(b, "b")
    sign = signs(better)
    if left.shape != right.shape or left.ndim != 1:
        raise Misuse(
            f"a has shape {left.shape} and b {right.shape}; pairs need two vectors of one length"
        )
    if np.isnan(left).any() or np.isnan(right).any():
        raise Misuse("a pair holds NaN; give complete pairs only, and say how many were left out")

    apart = left - right
    n = len(apart)
    about_mean = interval(apart, "mean")
    about_median = interval(apart, "median")

    # Without pairs there is nothing to sum up, and NaN says so.
    mean = median = p = effect = np.nan
    if n:
        mean = float(apart.mean())
        median = float(np.median(apart))
        p, effect = signed_rank(sign * apart)

    # The sign turns what counts as a win; mean and median stay those of a - b.
    wins = int((sign * apart > 0).sum())
    losses = int((sign * apart < 0).sum())
    return Difference(
        n=n,
        mean=mean,
        mean_low=float(about_mean[0]),
        mean_high=float(about_mean[1]),
        median=median,
        median_low=float(about_median[0]),
        median_high=float(about_median[1]),
        p=p,
        effect=effect,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
    )


def rank_rows(values: Array) -> Array:
    """Ranks in each row of (k, n) from 1, equal values sharing their mean rank."""
    import pandas as pd  # here, as whoever only plays ranks nothing

    return pd.DataFrame(values).rank(axis=1).to_numpy()


def signed_rank(*strata: ArrayLike) -> tuple[float, float]:
    """Wilcoxon's signed-rank test of n differences, (n,), and the matched-pairs rank-biserial
    correlation.

    Zeros are ranked and then dropped (Pratt 1959); equal sizes share their mean rank. Up to `EXACT`
    differences that are not zero p is exact: the share of all assignments of signs to these very
    ranks that are as far out, ties and all. Beyond, it is the normal approximation, which a few
    ranks among many zeros do not follow. All zero gives p = 1 and effect 0. Of several strata, such
    as problems whose units differ, each is ranked by itself and the ranks are summed (van Elteren
    1960, for pairs).

    Returns:
        p, two-sided; (sum of ranks of positive differences - sum of those of negative ones) / sum
        of all ranks.
    """
    # Zeros take their ranks before they are dropped (Pratt 1959), in each stratum by itself.
    parts = [numbers(apart) for apart in strata]
    values = np.concatenate(parts)
    ranks = np.concatenate([rank_rows(np.abs(part[None]))[0] for part in parts])
    used = ranks[values != 0]
    if len(used) == 0:
        return 1.0, 0.0

    # Signs are coin flips, so both tails are alike: two-sided is twice the smaller one.
    positive = ranks[values > 0].sum()
    total = used.sum()
    effect = float((2 * positive - total) / ranks.sum())
    (tail,) = _find_tails(used, [min(positive, total - positive)])
    return float(min(1.0, 2 * tail)), effect


def _find_tails(used: Array, sums: ArrayLike) -> Array:
    """Return how often the ranks of one sign sum to at most each of some numbers, (q,), where signs
    are coin flips.

    Args:
        used: ranks of the differences that are not zero, (n,).
    """
    if len(used) > EXACT:
        # The sum has this mean and variance when each rank is in it by the flip of a coin.
        deviation = np.sqrt((used**2).sum() / 4)
        return ndtr((sums - used.sum() / 2) / deviation)
    halves = np.sort(np.rint(2 * used)).astype(int)  # mean ranks are whole or half numbers
    at_most = _law_of_sum(tuple(halves.tolist()))
    return at_most[np.rint(2 * np.asarray(sums)).astype(int)]


@lru_cache(maxsize=1024)
def _law_of_sum(ranks: tuple[int, ...]) -> Array:
    """Return how often the sum of some of the ranks is at most 0, 1, ..., where each of them is in
    it with probability one half.

    Tests of a table share a few laws: without ties and zeros there is one for every n.
    """
    law = np.zeros(sum(ranks) + 1)
    law[0] = 1.0
    for rank in ranks:
        # By convolution; NumPy copies the right side, which overlaps the left one.
        law[rank:] += law[:-rank]
        law /= 2
    return law.cumsum()


def decidable(n: int, tests: int, sides: int = 2) -> bool:
    """Whether n differences that are not zero, all of one sign, come out among so many tests (Holm,
    5 %).

    Args:
        sides: 1 for tests of one side (`compare_sides`), 2 for those of both (`signed_rank`).
    """
    # All of one sign has the least p, 2⁻ⁿ a side; Holm multiplies the first by all tests.
    return sides * tests * 2.0**-n < SIGNIFICANT


def count_needed(tests: int, sides: int = 2) -> int:
    """How many differences that are not zero one of so many tests needs to come out (see
    `decidable`).
    """
    return next(n for n in count(1) if decidable(n, tests, sides))


def choose_family(n: ArrayLike, sides: int = 2) -> Mask:
    """Which tests to adjust for one another: the most, of the largest n, of which each can come out
    (Tarone 1990).

    A test of so few differences that it cannot come out, whatever their signs, would only weaken
    the others. The choice looks at numbers of differences and not at signs, so that Holm's
    adjustment over it keeps its level.

    Args:
        n: differences of each test that are not zero, (k,).
        sides: of the tests (see `decidable`).

    Returns:
        A mask, (k,); nothing where none can come out.
    """
    counts = np.asarray(n, dtype=np.int64)
    # From the smallest number on, so that the first family found is the largest.
    for least in np.unique(counts):
        if decidable(int(least), int((counts >= least).sum()), sides):
            return counts >= least
    return np.zeros(counts.shape, dtype=np.bool_)


def holm(p: ArrayLike) -> Array:
    """p-values adjusted for how many they are (Holm 1979), of the same shape; NaN stays and does
    not count.
    """
    p_values = numbers(p, "p")
    adjusted = p_values.copy().ravel()
    defined = np.flatnonzero(~np.isnan(adjusted))
    if ((adjusted[defined] < 0) | (adjusted[defined] > 1)).any():
        raise Misuse("a p-value lies outside [0, 1]")

    # The smallest is multiplied by all tests, and no larger one may end up below it.
    order = defined[np.argsort(adjusted[defined], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * adjusted[order]))
    return adjusted.reshape(p_values.shape)


def _judge_pairs(p: ArrayLike, counts: ArrayLike) -> tuple[Mask, Mask]:
    """Whether each method (row) is significantly worse than another (column), and whether their
    pairs are enough for that to come out, (k, k) each.

    For each other method Holm's adjustment is over all that are compared with it, at 5 %, but those
    whose pairs are too few for any outcome.

    Args:
        p, counts: as `compare_sides` gives them.
    """
    p_values = numbers(p)
    pairs = np.asarray(counts)
    is_worse = np.zeros(p_values.shape, dtype=np.bool_)
    is_tested = np.zeros(p_values.shape, dtype=np.bool_)
    for j, column in enumerate(p_values.T):
        family = choose_family(pairs[:, j], sides=1) & ~np.isnan(column)
        is_worse[:, j] = holm(np.where(family, column, np.nan)) < SIGNIFICANT
        is_tested[:, j] = family
    return is_worse, is_tested


def find_beaten(p: ArrayLike, counts: ArrayLike) -> tuple[Mask, Mask]:
    """Which of k methods another one is significantly better than, and of which that can be told.

    So a method that is worse than another by the two-sided tests of `cbobench compare --against` is
    beaten here, too. One is beaten in at most 5 % of all tables, however many methods there are, if
    its differences by seed from every other are symmetric, about 0 or a value in its favour. One of
    the best median may be beaten more often where they are skewed
    (`benchmarks/quality/gate_level.py` measures both).

    Args:
        p: one-sided p-values that a method (row) is worse than another (column), (k, k); see
            `compare_sides`.
        counts: of how many pairs each is, (k, k); 0 where there is no test.

    Returns:
        Whether it is beaten, (k,); whether its pairs are enough for one of its tests to come out,
        (k,).
    """
    is_worse, is_tested = _judge_pairs(p, counts)
    return np.asarray(is_worse.any(axis=1)), np.asarray(is_tested.any(axis=1))


def find_winner(p: ArrayLike, counts: ArrayLike) -> tuple[int | None, bool]:
    """Which of k >= 2 methods every other one is significantly worse than, by its position, and
    whether the pairs are enough for there to be one.

    These are the tests of `find_beaten`: whoever is found is beaten by none, and all others are. So
    where no other is truly better than one method, in the sense of `find_beaten`, another one is
    found in at most 5 % of all tables.
    """
    is_worse, is_tested = _judge_pairs(p, counts)
    itself = np.eye(len(is_worse), dtype=np.bool_)
    # At most one: of two methods each would have to be worse than the other.
    winners = np.flatnonzero((is_worse | itself).all(axis=0))
    can_be_told = bool((is_tested | itself).all(axis=0).any())
    return (int(winners[0]) if len(winners) else None), can_be_told


def compare_sides(values: ArrayLike) -> tuple[Array, NDArray[np.int64]]:
    """Wilcoxon's signed-rank test of each of k methods against each other one, by the columns that
    both have.

    Args:
        values: (k, n), higher is worse; NaN where a method has none.

    Returns:
        One-sided p-values that a method (row) is worse than another (column), (k, k), and of how
        many pairs, (k, k); NaN on the diagonal and where two methods share no column.
    """
    array = numbers(values)
    k = len(array)
    is_known = ~np.isnan(array)
    rows, columns = np.triu_indices(k, 1)
    p = np.full((k, k), np.nan)
    counts = np.zeros((k, k), dtype=np.int64)
    shared = is_known[rows] & is_known[columns]
    counts[rows, columns] = counts[columns, rows] = shared.sum(axis=1)

    # Pairs that share the same columns are ranked at once: a table of 40 methods has 780 pairs.
    for pairs in _group_alike(shared):
        pattern = shared[pairs[0]]
        if pattern.any():
            apart = array[rows[pairs]][:, pattern] - array[columns[pairs]][:, pattern]
            # Few ranks of negative differences say that the row is worse: higher is worse.
            below_and_above = _find_row_tails(apart)
            p[rows[pairs], columns[pairs]], p[columns[pairs], rows[pairs]] = below_and_above
    return p, counts


def _find_row_tails(apart: Array) -> Array:
    """Return `_find_tails` of the ranks below 0 and above 0 of rows of differences, (2, k) of
    (k, n); rows of one law are looked up together.
    """
    ranks = rank_rows(np.abs(apart))
    used = np.where(apart != 0, ranks, 0.0)
    signs = np.array([-1, 1])[:, None, None]
    sums = np.where(np.sign(apart) == signs, ranks, 0.0).sum(axis=2)
    tails = np.empty(sums.shape)
    for rows in _group_alike(np.sort(used, axis=1)):
        law = used[rows[0]]
        found = _find_tails(law[law > 0], sums[:, rows].ravel())
        tails[:, rows] = np.minimum(1.0, found).reshape(2, -1)
    return tails


def _group_alike(rows: Array | Mask) -> list[list[int]]:
    """Return the positions of equal rows, for each of the rows that differ."""
    positions: dict[bytes, list[int]] = {}
    for i, row in enumerate(rows):
        positions.setdefault(row.tobytes(), []).append(i)
    return [*positions.values()]


# Ranks within blocks ------------------------------------------------------------------------------


def ranks(values: ArrayLike, better: Better = "lower") -> Array:
    """Ranks within every block, 1 for the best, equal values sharing their mean rank: (blocks,
    algorithms).
    """
    array = numbers(values)
    if array.ndim != 2:
        raise Misuse(f"values have shape {array.shape}; ranks need (blocks, algorithms)")
    if np.isnan(array).any():
        raise Misuse("a block holds NaN; give complete blocks only, and say how many were left out")
    return rank_rows(-signs(better) * array)


def average_ranks(values: ArrayLike, better: Better = "lower") -> Array:
    """Mean rank of each algorithm over the blocks, (algorithms,); NaN without blocks."""
    ranked = ranks(values, better)
    if len(ranked):
        return ranked.mean(axis=0)
    return np.full(ranked.shape[1], np.nan)
