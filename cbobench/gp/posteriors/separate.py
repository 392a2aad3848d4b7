"""Posteriors with a covariance per function: their observations arrive separately (delays), or their noise differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.base import Arrivals, Jet, Mask, SharedPosterior
from cbobench.gp.posteriors.observations import ObservationPosterior


class SeparatePosterior:
    """p posteriors of q functions each, side by side (see `base.Posterior`).

    Attributes:
        mean: (S, q p, M): the first functions of all p, then the second ones.
        variance: (S, p, M).
        gain: (S, p).
    """

    def __init__(self, each: Sequence[SharedPosterior]) -> None:
        self.each = list(each)
        self.functions = sum(one.functions for one in self.each)

    def _means(self, means: list[Array]) -> Array:
        return np.concatenate([m[:, i : i + 1] for i in range(means[0].shape[1]) for m in means], axis=1)

    @property
    def lam(self) -> float:
        return self.each[0].lam

    def noise_variance(self, replicate: int, function: int) -> float:
        which, one = divmod(function, len(self.each))
        return self.each[one].noise_variance(replicate, which)

    @property
    def mean(self) -> Array:
        return self._means([one.mean for one in self.each])

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
            one.update(actions, values[:, j :: len(self.each)])

    def imagine(self, actions: NDArray[Any]) -> None:
        for one in self.each:
            one.imagine(actions)

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        which, one = divmod(function, len(self.each))
        self.each[one].reveal(replicate, t, action, which, value)

    def receive(self, t: int, played: Sequence[NDArray[Any]], arrivals: Arrivals, since: int = 1) -> None:
        for function, one in enumerate(self.each):
            one.receive(t, played, arrivals, since, function)

    def at(self, actions: NDArray[Any]) -> tuple[Array, Array]:
        means, variances = zip(*(one.at(actions) for one in self.each), strict=True)
        return self._means(list(means)), np.stack(variances, axis=1)

    def at_observations(self) -> tuple[Array, Array, Mask]:
        means, variances, held = zip(*(one.at_observations() for one in self.each), strict=True)
        return self._means(list(means)), np.stack(variances, axis=1), held[0]

    def observations(self) -> Array:
        return self.each[0].observations()

    def paths(self, z: Array, first: int = 0) -> Array:
        drawn = [one.paths(z[:, [i]]) for i, one in enumerate(self.each[first : first + z.shape[1]])]
        return np.concatenate(drawn, axis=1)

    def jet(self, points: Array, wanted: Mask | None = None) -> Jet:
        jets = [one.jet(points, wanted) for one in self.each]
        return Jet(self._means([one.mean for one in jets]), np.stack([one.variance for one in jets], axis=1))

    def covariances(self, replicate: int, function: int, some: NDArray[np.intp]) -> Array:
        return self.each[function % len(self.each)].covariances(replicate, 0, some)


class KnownNoise(SeparatePosterior):
    """Functions with fixed noise variances of their own.

    Args:
        each: posteriors of one function.
        noise: (S, p).
    """

    each: list[ObservationPosterior]  # type: ignore[assignment]

    def __init__(self, each: Sequence[ObservationPosterior], noise: Array) -> None:
        super().__init__(each)
        self.noise = noise
        self.reset()

    def reset(self, lam: float | None = None) -> None:
        """A number for λ changes nothing."""
        for j, one in enumerate(self.each):
            one.reset()
            one.set_noise(self.noise[:, j])

    def noise_variance(self, replicate: int, function: int) -> float:
        return float(self.noise[replicate, function])


class OwnNoise(SeparatePosterior):
    """Functions with changing noise variances of their own: a posterior of each one and of a constant 1.

    Args:
        each: posteriors of two functions, observed together.
    """

    each: list[ObservationPosterior]  # type: ignore[assignment]  # the one representation that can be computed again

    def update(self, actions: NDArray[Any], values: Array) -> None:
        """Condition on values (S, p + 1), of which the last is the constant, shared by all."""
        for j, one in enumerate(self.each):
            one.update(actions, values[:, [j, -1]])

    def set_noise(self, lam: Array) -> None:
        """Recompute the posteriors whose λ (S, p) has changed."""
        for j, one in enumerate(self.each):
            one.set_noise(lam[:, j])
