"""Which representation of a posterior is cheaper for an action set and a horizon, and what it needs of memory."""

from __future__ import annotations

import math

from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.posteriors.features import FeaturePosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.gp.posteriors.shared import SharedPosterior

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


def cheapest(
    actions: Finite | Box, replicates: int, functions: int, horizon: int, *, paths: bool = False
) -> SharedPosterior:
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
