"""Chooses the cheaper representation of a posterior for an action set and a horizon, and estimates
its memory.
"""

from __future__ import annotations

import math
from typing import Literal

from cbobench.gp.actions import LARGEST_RANK, Finite, Large
from cbobench.gp.box_actions import ActionSet, Box
from cbobench.gp.posteriors.factor import SMALL
from cbobench.gp.posteriors.features import FeaturePosterior, InterpolatedPosterior
from cbobench.gp.posteriors.interface import SharedPosterior
from cbobench.gp.posteriors.observations import ObservationPosterior

Kind = Literal["none", "cheapest", "features", "observations"]
ARRAYS = 8  # arrays of a function's values at all actions: drawn, observed, believed, scored
LARGEST_MEMORY = 2**27  # largest number of values of one replicate in observation space, 1 GiB


def in_features(actions: ActionSet, horizon: int) -> bool:
    """Return whether feature space is the cheaper representation for a horizon, by counting
    products per round.

    Features cost about 2 n r + 3 r² per round. Observations cost 2 t n + 2 t² in round t, so T n +
    2 T²/3 on average over T rounds, and T (T + n) numbers of memory.
    """
    if isinstance(actions, Box):
        return False
    if isinstance(actions, Large):  # one Phi for all replicates, whatever T is
        return True
    n = actions.n
    T = horizon
    return T * (T + n) > LARGEST_MEMORY or actions.rank_is_at_most(largest_rank(n, T))


def largest_rank(n: int, horizon: int) -> int:
    """Return the largest r with 2 n r + 3 r² <= T n + 2 T²/3."""
    budget = horizon * n + 2 * horizon**2 / 3
    return int((math.sqrt(n**2 + 3 * budget) - n) / 3)


def make_cheapest(
    actions: ActionSet,
    replicates: int,
    functions: int,
    horizon: int,
    lam: float,
    *,
    paths: bool = False,
) -> SharedPosterior:
    """Return the cheaper posterior; lambda is set by `reset`. Sample paths need features.

    Args:
        paths: whether sample paths will be requested (finite sets only).
    """
    if isinstance(actions, Box) and actions.mesh is not None and lam >= SMALL:
        return InterpolatedPosterior(actions, 1.0, replicates, functions)
    if isinstance(actions, Finite) and (paths or in_features(actions, horizon)):
        return FeaturePosterior(actions.features, 1.0, replicates, functions, actions.prior)
    return ObservationPosterior(actions, 1.0, replicates, functions, horizon)


def replicate_memory(
    actions: ActionSet,
    horizon: int,
    covariances: int,
    observed_functions: int,
    kind: Kind = "cheapest",
    lam: float = 1.0,
) -> int:
    """Return the largest number of bytes of a replicate, including those that `refresh` needs.

    Args:
        covariances: number of posteriors with a covariance of their own.
        observed_functions: number of observed functions.
        kind: the representation.
        lam: λ.
    """
    if kind == "features" and isinstance(actions, Box):
        actions = actions.grid
    # What a problem and its method hold of functions on a finite set comes on top.
    drawn = 8 * observed_functions * actions.n * ARRAYS if isinstance(actions, Finite) else 0
    if kind == "none":
        return drawn
    if isinstance(actions, Finite) and (
        kind == "features" or (kind == "cheapest" and in_features(actions, horizon))
    ):
        n = actions.n
        # To count all features of a rough kernel takes minutes: beyond a limit n stands for r.
        few_features = actions.rank_is_at_most(min(actions.n, LARGEST_RANK))
        r = actions.features.shape[1] if few_features else n
        return drawn + 8 * covariances * (4 * n + 3 * r * r)

    # On a mesh the posterior is kept in its pairs, whatever the number of rounds.
    candidates = actions.n if isinstance(actions, Finite) else actions.size
    if isinstance(actions, Box) and actions.mesh is not None:
        candidates = actions.mesh.size**actions.d
        r = len(actions.mesh.pairs)
        if kind == "cheapest" and lam >= SMALL:
            return 8 * covariances * ((3 + observed_functions) * candidates + 3 * r * r)
    return drawn + 8 * covariances * horizon * (4 * horizon + 2 * candidates)


def shared_memory(actions: ActionSet) -> int:
    """Return the bytes that all replicates share: a matrix (n, n), or the features of a set that
    has none.
    """
    if isinstance(actions, Large):
        return 2 * actions.features.nbytes
    if isinstance(actions, Finite):
        return 8 * actions.n**2
    return 0
