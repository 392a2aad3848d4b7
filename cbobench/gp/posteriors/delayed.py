"""Posteriors of functions whose observations arrive at different times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.contract import Arrivals, Jet, Mask
from cbobench.gp.posteriors.shared import SharedPosterior


class DelayedPosterior:
    """One posterior per function, each conditioned on what has arrived (see `contract.Posterior`).

    Args:
        each: posteriors of one function (p = 1).

    Attributes:
        mean (S, p, M), variance (S, p, M), gain (S, p).
    """

    def __init__(self, each: Sequence[SharedPosterior]) -> None:
        self.each = list(each)
        self.functions = len(self.each)

    @property
    def lam(self) -> float:
        return self.each[0].lam

    @property
    def mean(self) -> Array:
        return np.concatenate([one.mean for one in self.each], axis=1)

    @property
    def variance(self) -> Array:
        return np.stack([one.variance for one in self.each], axis=1)

    @property
    def gain(self) -> Array:
        return np.stack([one.gain for one in self.each], axis=1)

    def reset(self, lam: float | None = None) -> None:
        for one in self.each:
            one.reset(lam)

    def update(self, actions: NDArray[Any], values: Array) -> None:
        for j, one in enumerate(self.each):
            one.update(actions, values[:, [j]])

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        self.each[function].reveal(replicate, t, action, 0, value)

    def receive(self, t: int, played: Sequence[NDArray[Any]], arrivals: Arrivals, since: int = 1) -> None:
        for function, one in enumerate(self.each):
            one.receive(t, played, arrivals, since, function)

    def at(self, actions: NDArray[Any]) -> tuple[Array, Array]:
        return _side_by_side([one.at(actions) for one in self.each])

    def at_observations(self) -> tuple[Array, Array, Mask]:
        raise NotImplementedError("functions with delays of their own are observed at different actions")

    def paths(self, z: Array, first: int = 0) -> Array:
        drawn = [one.paths(z[:, [i]]) for i, one in enumerate(self.each[first : first + z.shape[1]])]
        return np.concatenate(drawn, axis=1)

    def jet(self, points: Array) -> Jet:
        jets = [one.jet(points) for one in self.each]
        columns = [[getattr(one, part.name) for one in jets] for part in fields(Jet)]
        means, variances = columns[:3], columns[3:]
        return Jet(*(np.concatenate(c, axis=1) for c in means), *(np.stack(c, axis=1) for c in variances))

    def covariances(self, replicate: int, function: int, some: NDArray[np.intp]) -> Array:
        return self.each[function].covariances(replicate, 0, some)


def _side_by_side(moments: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Means (S, 1, q) and variances (S, q) of each function to (S, p, q) of both."""
    return np.concatenate([m for m, _ in moments], axis=1), np.stack([v for _, v in moments], axis=1)
