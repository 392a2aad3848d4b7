"""Posteriors with a covariance per function: their observations arrive separately (delays), or their noise differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.interface import Arrivals, Jet, Mask, SharedPosterior
from cbobench.gp.posteriors.observations import ObservationPosterior


class SeparatePosterior:
    """p posteriors of q functions each, side by side (see `interface.Posterior`).

    Attributes:
        mean: (S, q p, M): the first functions of all p, then the second ones.
        variance: (S, p, M).
        gain: (S, p).
    """

    def __init__(self, posteriors: Sequence[SharedPosterior]) -> None:
        self.posteriors = list(posteriors)
        self.functions = sum(posterior.functions for posterior in self.posteriors)

    def _means(self, means: list[Array]) -> Array:
        return np.concatenate([m[:, i : i + 1] for i in range(means[0].shape[1]) for m in means], axis=1)

    @property
    def lam(self) -> float:
        return self.posteriors[0].lam

    def noise_variance(self, replicate: int, function: int) -> float:
        within, index = divmod(function, len(self.posteriors))
        return self.posteriors[index].noise_variance(replicate, within)

    @property
    def mean(self) -> Array:
        return self._means([posterior.mean for posterior in self.posteriors])

    @property
    def variance(self) -> Array:
        return np.stack([posterior.variance for posterior in self.posteriors], axis=1)

    @property
    def gain(self) -> Array:
        return np.stack([posterior.gain for posterior in self.posteriors], axis=1)

    def reset(self, lam: float | None = None) -> None:
        for posterior in self.posteriors:
            posterior.reset(lam)

    def update(self, actions: NDArray[Any], values: Array) -> None:
        for j, posterior in enumerate(self.posteriors):
            posterior.update(actions, values[:, j :: len(self.posteriors)])

    def imagine(self, actions: NDArray[Any]) -> None:
        for posterior in self.posteriors:
            posterior.imagine(actions)

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        within, index = divmod(function, len(self.posteriors))
        self.posteriors[index].reveal(replicate, t, action, within, value)

    def receive(self, t: int, played: Sequence[NDArray[Any]], arrivals: Arrivals, since: int = 1) -> None:
        for function, posterior in enumerate(self.posteriors):
            posterior.receive(t, played, arrivals, since, function)

    def at(self, actions: NDArray[Any]) -> tuple[Array, Array]:
        means, variances = zip(*(posterior.at(actions) for posterior in self.posteriors), strict=True)
        return self._means(list(means)), np.stack(variances, axis=1)

    def at_observations(self) -> tuple[Array, Array, Mask]:
        means, variances, held = zip(*(posterior.at_observations() for posterior in self.posteriors), strict=True)
        return self._means(list(means)), np.stack(variances, axis=1), held[0]

    def observations(self) -> Array:
        return self.posteriors[0].observations()

    def paths(self, z: Array, first: int = 0) -> Array:
        drawn = [posterior.paths(z[:, [i]]) for i, posterior in enumerate(self.posteriors[first : first + z.shape[1]])]
        return np.concatenate(drawn, axis=1)

    def jet(self, points: Array, mask: Mask | None = None) -> Jet:
        jets = [posterior.jet(points, mask) for posterior in self.posteriors]
        return Jet(self._means([jet.mean for jet in jets]), np.stack([jet.variance for jet in jets], axis=1))

    def covariances(self, replicate: int, function: int, indices: NDArray[np.intp]) -> Array:
        return self.posteriors[function % len(self.posteriors)].covariances(replicate, 0, indices)


class KnownNoise(SeparatePosterior):
    """Functions with fixed noise variances of their own.

    Args:
        posteriors: posteriors of one function.
        noise: (S, p).
    """

    posteriors: list[ObservationPosterior]  # type: ignore[assignment]

    def __init__(self, posteriors: Sequence[ObservationPosterior], noise: Array) -> None:
        super().__init__(posteriors)
        self.noise = noise
        self.reset()

    def reset(self, lam: float | None = None) -> None:
        """A number for λ changes nothing."""
        for j, posterior in enumerate(self.posteriors):
            posterior.reset()
            posterior.set_noise(self.noise[:, j])

    def noise_variance(self, replicate: int, function: int) -> float:
        return float(self.noise[replicate, function])


class OwnNoise(SeparatePosterior):
    """Functions with changing noise variances of their own: a posterior of each one and of a constant 1.

    Args:
        posteriors: posteriors of two functions, observed together.
    """

    posteriors: list[ObservationPosterior]  # type: ignore[assignment]  # the one representation that can be computed again

    def update(self, actions: NDArray[Any], values: Array) -> None:
        """Condition on values (S, p + 1), of which the last is the constant, shared by all."""
        for j, posterior in enumerate(self.posteriors):
            posterior.update(actions, values[:, [j, -1]])

    def set_noise(self, lam: Array) -> None:
        """Recompute the posteriors whose λ (S, p) has changed."""
        for j, posterior in enumerate(self.posteriors):
            posterior.set_noise(lam[:, j])
