"""Which representation of a posterior is cheaper, and posteriors of functions that are observed at different times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.kernels import Array
from cbobench.gp.observations import Jet, ObservationPosterior
from cbobench.gp.posterior import FeaturePosterior

Single = FeaturePosterior | ObservationPosterior
LARGEST_MEMORY = 2**27  # numbers of one replicate in observation space, 1 GiB


def in_features(actions: Finite | Box, horizon: int) -> bool:
    """Whether feature space is the cheaper representation for a horizon, by counting products per round.

    Features cost about 2 n r + 3 r² a round whatever t is; observations 2 t n + 2 t² in round t, so T n + 2 T²/3 on the
    average over T rounds, and T (T + n) numbers of memory.
    """
    if isinstance(actions, Box):
        return False
    n, T = actions.n, horizon
    return T * (T + n) > LARGEST_MEMORY or actions.rank_is_at_most(largest_rank(n, T))


def largest_rank(n: int, horizon: int) -> int:
    """The largest r with 2 n r + 3 r² <= T n + 2 T²/3."""
    budget = horizon * n + 2 * horizon**2 / 3
    return int((math.sqrt(n**2 + 3 * budget) - n) / 3)


def representation(actions: Finite | Box, horizon: int) -> str:
    """The choice in words, for `cbobench show`."""
    if isinstance(actions, Box):
        return f"observations (box with {actions.size} candidates)"
    if in_features(actions, horizon):
        return f"features (rank {actions.features.shape[1]} of {actions.n} actions, T = {horizon})"
    return f"observations (rank above {largest_rank(actions.n, horizon)} of {actions.n} actions, T = {horizon})"


def posterior(actions: Finite | Box, replicates: int, functions: int, horizon: int, *, paths: bool = False) -> Single:
    """The cheaper posterior; lambda is set by `reset`. Sample paths need features.

    Args:
        paths: whether sample paths will be asked for (finite sets only).
    """
    if isinstance(actions, Finite) and (paths or in_features(actions, horizon)):
        return FeaturePosterior(actions.features, 1.0, replicates, functions, actions.covariance.diagonal())
    return ObservationPosterior(actions, 1.0, replicates, functions, horizon)


def memory(actions: Finite | Box, horizon: int, functions: int) -> int:
    """Bytes that a replicate's posteriors hold at most, with what `refresh` needs on top."""
    if in_features(actions, horizon):
        assert isinstance(actions, Finite)
        n, r = actions.n, actions.features.shape[1]
        return 8 * functions * (4 * n + 3 * r * r)
    candidates = actions.size if isinstance(actions, Box) else actions.n
    return 8 * functions * horizon * (4 * horizon + 2 * candidates)


class DelayedPosterior:
    """Posteriors of p functions whose observations arrive at different times: one posterior per function.

    What has not arrived is not there: neither in a mean nor in a variance. (`reveal` of a single posterior is the other
    way: variances know at once what was played.)

    Attributes:
        mean (S, p, M), variance (S, p, M), gain (S, p).
    """

    def __init__(self, singles: Sequence[Single]) -> None:
        self.singles = list(singles)
        self.functions = len(self.singles)

    @property
    def mean(self) -> Array:
        return np.concatenate([one.mean for one in self.singles], axis=1)

    @property
    def variance(self) -> Array:
        return np.stack([one.variance for one in self.singles], axis=1)

    @property
    def gain(self) -> Array:
        return np.stack([one.gain for one in self.singles], axis=1)

    def reset(self, lam: float | None = None) -> None:
        """Back to the prior, with another lambda if one is given."""
        for one in self.singles:
            one.reset(lam)

    def receive(self, t: int, played: Sequence[NDArray[Any]], arrivals: Any, since: int = 1) -> None:
        """Condition on what arrived in round t.

        Args:
            played: actions of rounds 1, ..., t, each (S,) or (S, d).
            arrivals: replicate, round, function and value of each, sorted (`cbobench.problems.base.Arrivals`).
            since: observations of earlier rounds are thrown away.
        """
        replicates = len(played[0])
        for function, one in enumerate(self.singles):
            if isinstance(one, ObservationPosterior):
                one.reach(t)
            of = (arrivals.function == function) & (arrivals.round >= since)
            replicate, rounds, value = arrivals.replicate[of], arrivals.round[of], arrivals.value[of]
            rank = np.arange(len(replicate)) - np.searchsorted(replicate, replicate)  # the how-manieth of its replicate
            for k in range(int(rank.max(initial=-1)) + 1):
                now = rank == k
                mask = np.zeros(replicates, dtype=bool)
                mask[replicate[now]] = True
                when, values = np.ones(replicates, dtype=np.intp), np.zeros((replicates, 1))
                when[replicate[now]], values[replicate[now], 0] = rounds[now], value[now]
                actions = np.array([played[r - 1][s] for s, r in enumerate(when.tolist())])
                one.update_some(t, actions, values, mask)
            if t & (t - 1) == 0:
                one.refresh()

    def paths(self, z: Array, first: int) -> Array:
        """Joint samples (S, q, n) of the functions from `first` on, from draws (S, q, r); see `FeaturePosterior`."""
        singles = self.singles[first : first + z.shape[1]]
        drawn = [one.paths(z[:, [i]]) for i, one in enumerate(singles) if isinstance(one, FeaturePosterior)]
        return np.concatenate(drawn, axis=1)

    def at(self, points: Array) -> tuple[Array, Array]:
        """Means and variances (S, p, q) at points (S, q, d) of a box."""
        each = [one.at(points) for one in self.singles if isinstance(one, ObservationPosterior)]
        return np.concatenate([m for m, _ in each], axis=1), np.stack([v for _, v in each], axis=1)

    def jet(self, points: Array) -> Jet:
        """Second-order beliefs, with a variance per function: arrays (S, p, q, ...)."""
        each = [one.jet(points) for one in self.singles if isinstance(one, ObservationPosterior)]
        means = [np.concatenate([getattr(j, n) for j in each], axis=1) for n in ("mean", "mean_slope", "mean_bend")]
        spread = [
            np.stack([getattr(j, n) for j in each], axis=1) for n in ("variance", "variance_slope", "variance_bend")
        ]
        return Jet(*means, *spread)
