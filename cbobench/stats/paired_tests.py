"""Two algorithms on the same seeds: differences, Wilcoxon's signed-rank test, effect size, Holm's adjustment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbobench.errors import Misuse, show
from cbobench.stats.intervals import Array, interval, numbers

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
        effect: matched-pairs rank-biserial correlation in [-1, 1]: 1 when a is better in every pair, -1 when b is.
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
    return 1 if better == "higher" else -1


def difference(a: ArrayLike, b: ArrayLike, better: Better = "lower") -> Difference:
    """a - b over pairs, such as the same seed of the same problem.

    Args:
        a, b: (n,), paired elementwise. Only complete pairs: what is undefined is left out by the caller, who says so.
        better: which values are better; it decides wins and the sign of the effect, not the sign of a - b.

    Raises:
        Misuse: shapes that differ, NaN or an infinite value.
    """
    left, right, sign = numbers(a, "a"), numbers(b, "b"), signs(better)
    if left.shape != right.shape or left.ndim != 1:
        raise Misuse(f"a has shape {left.shape} and b {right.shape}; pairs need two vectors of one length")
    if np.isnan(left).any() or np.isnan(right).any():
        raise Misuse("a pair holds NaN; give complete pairs only, and say how many were left out")
    apart = left - right
    n = len(apart)
    mean, median = (float(apart.mean()), float(np.median(apart))) if n else (np.nan, np.nan)
    about_mean, about_median = interval(apart, "mean"), interval(apart, "median")
    p, effect = signed_rank(sign * apart) if n else (np.nan, np.nan)
    wins, losses = int((sign * apart > 0).sum()), int((sign * apart < 0).sum())
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


def mean_ranks(values: Array) -> Array:
    """Ranks of n values from 1, equal ones sharing their mean rank."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() - (counts - 1) / 2)[which])


def signed_rank(*strata: ArrayLike) -> tuple[float, float]:
    """Wilcoxon's signed-rank test of n differences, (n,), and the matched-pairs rank-biserial correlation.

    Zeros are ranked and then dropped (Pratt 1959); equal sizes share their mean rank. Up to `EXACT` differences that
    are not zero p is exact: the share of all assignments of signs to these very ranks that are as far out, ties and
    all. Beyond, it is the normal approximation, which a few ranks among many zeros do not follow. All zero gives p = 1
    and effect 0. Of several strata, such as problems whose units differ, each is ranked by itself and the ranks are
    summed (van Elteren 1960, for pairs).

    Returns:
        p, two-sided; (sum of ranks of positive differences - sum of those of negative ones) / sum of all ranks.
    """
    from scipy.special import ndtr

    parts = [numbers(apart) for apart in strata]
    values, ranks = np.concatenate(parts), np.concatenate([mean_ranks(np.abs(part)) for part in parts])
    used = ranks[values != 0]
    if len(used) == 0:
        return 1.0, 0.0
    positive, total = ranks[values > 0].sum(), used.sum()
    effect = float((2 * positive - total) / ranks.sum())
    lesser = min(positive, total - positive)
    if len(used) > EXACT:
        z = (lesser - total / 2) / np.sqrt((used**2).sum() / 4)
        return float(min(1.0, 2 * ndtr(z))), effect
    halves = np.sort(np.rint(2 * used).astype(int))  # mean ranks are whole or half numbers
    return float(min(1.0, 2 * _law_of_sum(tuple(halves.tolist()))[: round(2 * lesser) + 1].sum())), effect


@lru_cache(maxsize=1024)
def _law_of_sum(ranks: tuple[int, ...]) -> Array:
    """Return the law of the sum of some of the ranks, each of which is in it with probability one half.

    Tests of a table share a few laws: without ties and zeros there is one for every n.
    """
    law = np.zeros(sum(ranks) + 1)
    law[0] = 1.0
    for rank in ranks:
        law[rank:] += law[:-rank]
        law /= 2
    return law


def decidable(n: int, tests: int) -> bool:
    """Whether n differences that are not zero, all of one sign, come out among so many tests (Holm, 5 %)."""
    return tests * 2.0 ** (1 - n) < SIGNIFICANT


def count_needed(tests: int) -> int:
    """How many differences that are not zero one of so many tests needs to come out (see `decidable`)."""
    return next(n for n in count(1) if decidable(n, tests))


def choose_family(n: ArrayLike) -> NDArray[np.bool_]:
    """Which tests to adjust for one another: the most, of the largest n, of which each can come out (Tarone 1990).

    A test of so few differences that it cannot come out, whatever their signs, would only weaken the others. The
    choice looks at numbers of differences and not at signs, so that Holm's adjustment over it keeps its level.

    Args:
        n: differences of each test that are not zero, (k,).

    Returns:
        A mask, (k,); nothing where none can come out.
    """
    counts = np.asarray(n, dtype=np.int64)
    for least in np.unique(counts):
        if decidable(int(least), int((counts >= least).sum())):
            return np.asarray(counts >= least)
    return np.zeros(counts.shape, dtype=np.bool_)


def holm(p: ArrayLike) -> Array:
    """p-values adjusted for how many they are (Holm 1979), of the same shape; NaN stays and does not count."""
    p_values = numbers(p, "p")
    adjusted = p_values.copy().ravel()
    defined = np.flatnonzero(~np.isnan(adjusted))
    if ((adjusted[defined] < 0) | (adjusted[defined] > 1)).any():
        raise Misuse("a p-value lies outside [0, 1]")
    order = defined[np.argsort(adjusted[defined], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * adjusted[order]))
    return adjusted.reshape(p_values.shape)
