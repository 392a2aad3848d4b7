"""The interface of every posterior, and the base of those whose functions are observed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbobench.gp.jets import Jet
from cbobench.gp.kernels import Actions, Array, Indices, Mask

Moments = tuple[Array, Array]
"""Means of functions at some points, and variances or deviations."""

MomentsOfSlots = tuple[Array, Array, Mask]
"""The same of slots of a memory, and which are full."""

VARIANCE_FLOOR = 1e-14  # rounding may push a variance below zero; so deviations are at least 1e-7


@dataclass(frozen=True)
class Arrivals:
    """Delayed observations that reach learners in one round, k of them, sorted by replicate, round
    and function.

    Attributes:
        replicate, round: whose, and of which round's action, (k,).
        function: 0 for f, j for g_j, (k,).
        value: (k,).
    """

    replicate: Indices
    round: Indices
    function: Indices
    value: Array


class Posterior:
    """Base: posteriors of p functions, for S replicates in lock step, over the M candidates of an
    action set.

    The candidates are all actions of a finite set, or the fixed ones of a box (its mesh, where it
    has one). Actions are indices of a finite set, or points (..., d) of the unit cube of a box.
    Variances are latent: no noise is added.

    Attributes:
        lam: the regulariser λ (the model's noise variance).
        functions: p.
        mean: at the candidates, (S, p, M).
        variance: (S, M), or (S, p, M) where functions have their own.
        gain: the information gain 1/2 log det(I + K/λ) of what is known, (S,) or (S, p).
    """

    lam: float
    functions: int
    mean: Array
    variance: Array
    gain: Array

    def reset(self, lam: float | None = None) -> None:
        """Return to the prior, with another λ if one is given."""
        raise NotImplementedError

    def update(self, actions: Actions, values: Array) -> None:
        """Condition on one observation (S, p) of every function at one action per replicate, (S,)
        or (S, d).
        """
        raise NotImplementedError

    def imagine(self, actions: Actions) -> None:
        """Condition variances and gain on a play with unknown values, keeping hyperparameters;
        means become meaningless.
        """
        raise NotImplementedError

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        """Add a value for the action of round t, which entered as 0: it moves a mean, and no
        variance.
        """
        raise NotImplementedError

    def receive(
        self, t: int, played: Sequence[Actions], arrivals: Arrivals, since: int = 1
    ) -> None:
        """Condition on the arrivals of round t. Values that have not arrived affect neither mean
        nor variance.

        Args:
            played: actions of rounds 1, ..., t, each (S,) or (S, d).
            since: observations of earlier rounds are discarded.
        """
        raise NotImplementedError

    def at(self, actions: Actions) -> Moments:
        """Return means (S, p, q) and variances (S, q) or (S, p, q) at q actions per replicate, (S,
        q) or (S, q, d).
        """
        raise NotImplementedError

    def at_observations(self) -> MomentsOfSlots:
        """Return means (S, p, c), variances (S, c) and a mask (S, c) of c slots: the observed
        actions, if they are kept.
        """
        raise NotImplementedError

    def observations(self) -> Array:
        """Return the observed points of these slots on a box, in the unit cube (S, c, d)."""
        raise NotImplementedError

    def jet(self, points: Array, mask: Mask | None = None) -> Jet:
        """Return beliefs and their first two derivatives at points (S, q, d) of a box; arbitrary
        where not `mask` (S, q).
        """
        raise NotImplementedError

    def paths(self, z: Array, first: int = 0) -> Array:
        """Return zero-mean joint samples (S, q, n) of the q functions from `first` on, from normal
        draws (S, q, r).
        """
        raise NotImplementedError

    def noise_variance(self, replicate: int, function: int) -> float:
        """Return a function's noise variance, in its units."""
        raise NotImplementedError

    def covariances(self, replicate: int, function: int, indices: Indices) -> Array:
        """Return posterior covariances of q actions of a finite set with all n, (q, n)."""
        raise NotImplementedError


class SharedPosterior(Posterior):
    """Base of the representations: functions that are observed together, with one covariance."""

    replicates: int

    def imagine(self, actions: Actions) -> None:
        self.update(actions, np.zeros((self.replicates, self.functions)))

    def update_some(self, t: int, actions: Actions, values: Array, mask: Mask) -> None:
        """Condition the replicates of a mask (S,), in any round up to t; no replicate has more than
        t observations.
        """
        raise NotImplementedError

    def noise_variance(self, replicate: int, function: int) -> float:
        return self.lam

    def at(self, actions: Actions) -> Moments:
        """On a finite set the actions are the candidates."""
        return pick(self.mean, actions), pick(self.variance[:, None], actions)[:, 0]

    def reach(self, used: int) -> None:
        """Make room for some number of observations, the same in every block, so that no bit
        depends on it.
        """

    def refresh(self) -> None:
        """Remove accumulated rounding errors, if there are any."""

    def receive(
        self,
        t: int,
        played: Sequence[Actions],
        arrivals: Arrivals,
        since: int = 1,
        function: int = 0,
    ) -> None:
        """As in `Posterior`, for p = 1: the one function is `function` in the arrivals'
        numbering.
        """
        self.reach(t)
        mask = (arrivals.function == function) & (arrivals.round >= since)
        replicate = arrivals.replicate[mask]
        rounds = arrivals.round[mask].tolist()
        value = arrivals.value[mask]
        # its rank within its replicate
        rank = np.arange(len(replicate)) - np.searchsorted(replicate, replicate)
        for k in range(int(rank.max(initial=-1)) + 1):
            mask = np.zeros(self.replicates, dtype=bool)
            values = np.zeros((self.replicates, 1))
            actions = played[0].copy()
            for i in np.flatnonzero(rank == k).tolist():
                s = replicate[i]
                mask[s] = True
                values[s, 0] = value[i]
                actions[s] = played[rounds[i] - 1][s]
            self.update_some(t, actions, values, mask)
        # At powers of two: rounding does not pile up, and all refreshes together cost little more
        # than the last.
        if t & (t - 1) == 0:
            self.refresh()


def pick(values: Array, index: Indices) -> Array:
    """Return values (S, p, n) at q indices per replicate, (S, q): (S, p, q). Much faster than
    `np.take_along_axis`.
    """
    replicates, p, n = values.shape
    offsets = n * np.arange(replicates * p).reshape(replicates, p, 1)
    return values.reshape(-1).take(offsets + index[:, None])
