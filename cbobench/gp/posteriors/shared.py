"""What posteriors of functions that are observed together have in common: one covariance for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.contract import Arrivals, Jet, Mask


class SharedPosterior:
    """Base of the representations (see `contract.Posterior`); what only one of them can do is refused here."""

    lam: float
    replicates: int
    functions: int
    mean: Array
    variance: Array
    gain: Array

    def reset(self, lam: float | None = None) -> None:
        raise NotImplementedError

    def update(self, actions: NDArray[Any], values: Array) -> None:
        raise NotImplementedError

    def imagine(self, actions: NDArray[Any]) -> None:
        self.update(actions, np.zeros((self.replicates, self.functions)))

    def update_some(self, t: int, actions: NDArray[Any], values: Array, mask: Mask) -> None:
        """Condition the replicates of a mask (S,), in any round up to t; no replicate has more than t observations."""
        raise NotImplementedError

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        raise NotImplementedError

    def noise_variance(self, replicate: int, function: int) -> float:
        return self.lam

    def at(self, actions: NDArray[Any]) -> tuple[Array, Array]:
        """As in the contract, for a finite set: its actions are the candidates."""
        return pick(self.mean, actions), pick(self.variance[:, None], actions)[:, 0]

    def at_observations(self) -> tuple[Array, Array, Mask]:
        raise NotImplementedError(f"{type(self).__name__} keeps no observations")

    def observations(self) -> Array:
        raise NotImplementedError(f"{type(self).__name__} keeps no points")

    def jet(self, points: Array, wanted: Mask | None = None) -> Jet:
        raise NotImplementedError(f"{type(self).__name__} has no points between its candidates")

    def paths(self, z: Array, first: int = 0) -> Array:
        raise NotImplementedError(f"{type(self).__name__} has no features to sample paths with")

    def covariances(self, replicate: int, function: int, some: NDArray[np.intp]) -> Array:
        raise NotImplementedError

    def reach(self, used: int) -> None:
        """Make room for so many observations: a number that is the same in every block, so no bit depends on it."""

    def refresh(self) -> None:
        """Take away the rounding that has piled up, where any does."""

    def receive(
        self, t: int, played: Sequence[NDArray[Any]], arrivals: Arrivals, since: int = 1, function: int = 0
    ) -> None:
        """As in the contract, for p = 1: the one function is `function` in the arrivals' count."""
        self.reach(t)
        of = (arrivals.function == function) & (arrivals.round >= since)
        replicate, rounds, value = arrivals.replicate[of], arrivals.round[of], arrivals.value[of]
        rank = np.arange(len(replicate)) - np.searchsorted(replicate, replicate)  # the how-manieth of its replicate
        for k in range(int(rank.max(initial=-1)) + 1):
            now = rank == k
            mask = np.zeros(self.replicates, dtype=bool)
            mask[replicate[now]] = True
            when, values = np.ones(self.replicates, dtype=np.intp), np.zeros((self.replicates, 1))
            when[replicate[now]], values[replicate[now], 0] = rounds[now], value[now]
            actions = np.array([played[r - 1][s] for s, r in enumerate(when.tolist())])
            self.update_some(t, actions, values, mask)
        if t & (t - 1) == 0:
            self.refresh()


def pick(values: Array, index: NDArray[np.intp]) -> Array:
    """Values (S, p, n) at q indices per replicate, (S, q): (S, p, q). Much faster than `np.take_along_axis`."""
    replicates, p, n = values.shape
    offsets = n * np.arange(replicates * p).reshape(replicates, p, 1)
    return values.reshape(-1).take(offsets + index[:, None])
