"""Which of some methods is best, as far as these seeds and problems can tell, and how many more
seeds would tell two of them apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cbobench.rng import generator
from cbobench.stats.intervals import CONFIDENCE, Array, draw_resamples, numbers
from cbobench.stats.paired_tests import count_needed, rank_rows

DRAWS = 1000
FEW = 6  # problems below which they stand for themselves, and are not resampled
MOST = 20  # times the seeds that there are, beyond which more of them are no advice


class Lead(NamedTuple):
    """Two of k methods, by position: the one that is best in most resamples, and the next.

    Attributes:
        best, rival: these.
        shares: how often each of the k methods is best, (k,).
        more: how many more seeds of each problem may tell the two apart; 0 where these do, None
            where `MOST` times as many would not.
    """

    best: int
    rival: int
    shares: Array
    more: int | None


def find_lead(samples: Sequence[ArrayLike]) -> Lead:
    """The method that is best by its mean rank over problems, where on each the lowest median
    ranks first.

    In a resample the seeds of each problem are drawn again, the same for all methods, which meet
    the same functions; from `FEW` problems on these are drawn again, too. Ties share. Nothing here
    is random: resamples are the same at every call. A share is at most 1 - 2^-n, with n seeds in
    all: so often all of them would not agree by chance, which few seeds do not show.

    Args:
        samples: for each problem, values (k, n) of k >= 2 methods by seed, n >= 2; higher is worse.
    """
    arrays = [numbers(values) for values in samples]
    ranks = np.stack([_rank_resamples(values, i) for i, values in enumerate(arrays)], axis=1)
    problems = len(arrays)
    times = draw_resamples(problems, DRAWS) if problems >= FEW else np.ones((DRAWS, problems))
    count = sum(values.shape[1] for values in arrays)
    certain = 1 - 0.5**count
    scores = (times[:, None] @ ranks)[:, 0]
    wins = scores == scores.min(axis=1, keepdims=True)
    shares = np.minimum((wins / wins.sum(axis=1, keepdims=True)).mean(axis=0), certain)
    # Of equal shares, such as none, the better mean rank is the next.
    best, rival = np.lexsort((scores.mean(axis=0), -shares))[:2].tolist()
    # More seeds say more of these problems, which are therefore held here.
    first, second = ranks.sum(axis=1)[:, [best, rival]].T
    ahead = (first < second).mean() + (first == second).mean() / 2
    if ahead >= certain:  # all agree: if the next ones do, too, five are enough
        return Lead(best, rival, shares, max(0, count_needed(1, sides=1) - count))
    seeds = min(values.shape[1] for values in arrays)
    return Lead(best, rival, shares, _count_more(float(ahead), seeds))


def _rank_resamples(values: Array, problem: int) -> Array:
    """Ranks of the medians of k methods in each resample of n seeds, 1 for the lowest, equal ones
    sharing theirs, (draws, k).
    """
    n = values.shape[1]
    picked = generator("stats", "winners", problem, n).integers(n, size=(DRAWS, n))
    return rank_rows(np.stack([np.median(row[picked], axis=1) for row in values], axis=1))


def _count_more(ahead: float, seeds: int) -> int | None:
    """How many more seeds until one method is ahead of another in 95 % of resamples, if it is in so
    many of them now: their means come as much closer as the root of how many there are.
    """
    from scipy.special import ndtri

    needed, apart = ndtri(CONFIDENCE), ndtri(ahead)
    if apart * math.sqrt(MOST) < needed:
        return None
    return max(0, math.ceil(seeds * (needed / apart) ** 2) - seeds)
