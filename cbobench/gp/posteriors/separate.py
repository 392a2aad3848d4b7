"""Posteriors made of others: a covariance per function, and variances that include plays under way.

Functions have a covariance each where their observations arrive separately (delays), or their noise
differs. Under delays variances may include all plays, means only the observations that have
arrived.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cbobench.gp.jets import Jet
from cbobench.gp.kernels import Actions, Array, Indices, Mask
from cbobench.gp.posteriors.interface import (
    Arrivals,
    Moments,
    MomentsOfSlots,
    Posterior,
    SharedPosterior,
)
from cbobench.gp.posteriors.observations import ObservationPosterior


class SeparatePosterior(Posterior):
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
        return np.concatenate(
            [m[:, i : i + 1] for i in range(means[0].shape[1]) for m in means], axis=1
        )

    @property
    def lam(self) -> float:  # type: ignore[override]
        return self.posteriors[0].lam

    def noise_variance(self, replicate: int, function: int) -> float:
        within, index = divmod(function, len(self.posteriors))
        return self.posteriors[index].noise_variance(replicate, within)

    @property
    def mean(self) -> Array:  # type: ignore[override]
        return self._means([posterior.mean for posterior in self.posteriors])

    @property
    def variance(self) -> Array:  # type: ignore[override]
        return np.stack([posterior.variance for posterior in self.posteriors], axis=1)

    @property
    def gain(self) -> Array:  # type: ignore[override]
        return np.stack([posterior.gain for posterior in self.posteriors], axis=1)

    def reset(self, lam: float | None = None) -> None:
        for posterior in self.posteriors:
            posterior.reset(lam)

    def update(self, actions: Actions, values: Array) -> None:
        for j, posterior in enumerate(self.posteriors):
            posterior.update(actions, values[:, j :: len(self.posteriors)])

    def imagine(self, actions: Actions) -> None:
        for posterior in self.posteriors:
            posterior.imagine(actions)

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        within, index = divmod(function, len(self.posteriors))
        self.posteriors[index].reveal(replicate, t, action, within, value)

    def receive(
        self, t: int, played: Sequence[Actions], arrivals: Arrivals, since: int = 1
    ) -> None:
        for function, posterior in enumerate(self.posteriors):
            posterior.receive(t, played, arrivals, since, function)

    def at(self, actions: Actions) -> Moments:
        means, variances = zip(
            *(posterior.at(actions) for posterior in self.posteriors), strict=True
        )
        return self._means(list(means)), np.stack(variances, axis=1)

    def at_observations(self) -> MomentsOfSlots:
        means, variances, held = zip(
            *(posterior.at_observations() for posterior in self.posteriors), strict=True
        )
        return self._means(list(means)), np.stack(variances, axis=1), held[0]

    def observations(self) -> Array:
        return self.posteriors[0].observations()

    def paths(self, z: Array, first: int = 0) -> Array:
        drawn = [
            posterior.paths(z[:, [i]])
            for i, posterior in enumerate(self.posteriors[first : first + z.shape[1]])
        ]
        return np.concatenate(drawn, axis=1)

    def jet(self, points: Array, mask: Mask | None = None) -> Jet:
        jets = [posterior.jet(points, mask) for posterior in self.posteriors]
        return Jet(
            self._means([jet.mean for jet in jets]),
            np.stack([jet.variance for jet in jets], axis=1),
        )

    def covariances(self, replicate: int, function: int, indices: Indices) -> Array:
        return self.posteriors[function % len(self.posteriors)].covariances(replicate, 0, indices)


class OwnNoise(SeparatePosterior):
    """Functions with changing noise variances of their own: a posterior of each one and of a
    constant 1.

    Args:
        posteriors: posteriors of two functions, observed together.
    """

    posteriors: list[ObservationPosterior]  # type: ignore[assignment]  # the one representation that can be computed again

    def update(self, actions: Actions, values: Array) -> None:
        """Condition on values (S, p + 1), of which the last is the constant, shared by all."""
        for j, posterior in enumerate(self.posteriors):
            posterior.update(actions, values[:, [j, -1]])

    def set_noise(self, lam: Array) -> None:
        """Recompute the posteriors whose λ (S, p) has changed."""
        for j, posterior in enumerate(self.posteriors):
            posterior.set_noise(lam[:, j])


class PendingPosterior(Posterior):
    """Means of one posterior and variances of another (see `interface.Posterior`).

    A variance does not depend on values, so a play shrinks it at once. Replacing a missing value by
    the mean that the others give there leaves all means unchanged, so means need only what has
    arrived: the hallucinated feedback of batched GP-UCB (Desautels et al. 2014).

    Args:
        arrived: gives the means, with a covariance per function.
        played: one function, whose covariance is every function's.

    Attributes:
        variance: (S, M), of all plays since the last reset, observed or not.
        gain: (S,), likewise.
    """

    def __init__(self, arrived: Posterior, played: SharedPosterior) -> None:
        self.arrived = arrived
        self.played = played
        self.functions = arrived.functions

    @property
    def lam(self) -> float:  # type: ignore[override]
        return self.played.lam

    def noise_variance(self, replicate: int, function: int) -> float:
        return self.arrived.noise_variance(replicate, function)

    @property
    def mean(self) -> Array:  # type: ignore[override]
        return self.arrived.mean

    @property
    def variance(self) -> Array:  # type: ignore[override]
        return self.played.variance

    @property
    def gain(self) -> Array:  # type: ignore[override]
        return self.played.gain

    def reset(self, lam: float | None = None) -> None:
        self.arrived.reset(lam)
        self.played.reset(lam)

    def play(self, actions: Actions) -> None:
        """Add a play whose values come later, by `update`."""
        self.played.imagine(actions)

    def update(self, actions: Actions, values: Array) -> None:
        """Add the values of actions that were played before."""
        self.arrived.update(actions, values)

    def imagine(self, actions: Actions) -> None:
        self.played.imagine(actions)

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        self.arrived.reveal(replicate, t, action, function, value)

    def receive(
        self, t: int, played: Sequence[Actions], arrivals: Arrivals, since: int = 1
    ) -> None:
        self.play(played[t - 1])
        self.arrived.receive(t, played, arrivals, since)

    def at(self, actions: Actions) -> Moments:
        return self.arrived.at(actions)[0], self.played.at(actions)[1]

    def at_observations(self) -> MomentsOfSlots:
        return self.arrived.at_observations()

    def observations(self) -> Array:
        return self.arrived.observations()

    def jet(self, points: Array, mask: Mask | None = None) -> Jet:
        return Jet(self.arrived.jet(points, mask).mean, self.played.jet(points, mask).variance)

    def paths(self, z: Array, first: int = 0) -> Array:
        return self.played.paths(z)

    def covariances(self, replicate: int, function: int, indices: Indices) -> Array:
        return self.played.covariances(replicate, 0, indices)


class Hallucinated(PendingPosterior):
    """The same for functions with covariances of their own: variances are those of a copy that
    holds the pending plays.

    Rounds are told in the order in which they were played. The copy is remade on request,
    hyperparameters and noise included.
    """

    def __init__(self, arrived: Posterior) -> None:
        self.arrived = arrived
        self.functions = arrived.functions
        self.pending: list[Actions] = []
        self.copy: Posterior | None = None

    @property
    def played(self) -> Posterior:  # type: ignore[override]
        if self.copy is None:
            posteriors = getattr(self.arrived, "posteriors", [self.arrived])
            # which are not copied
            shared = {id(posterior.actions): posterior.actions for posterior in posteriors}
            self.copy = copy.deepcopy(self.arrived, shared)
            for actions in self.pending:
                self.copy.imagine(actions)
        return self.copy

    def reset(self, lam: float | None = None) -> None:
        self.arrived.reset(lam)
        self.pending = []
        self.copy = None

    def play(self, actions: Actions) -> None:
        self.pending.append(actions)
        self.copy = None

    def update(self, actions: Actions, values: Array) -> None:
        self.arrived.update(actions, values)
        self.pending = self.pending[1:]
        self.copy = None


def make_separate(
    functions: int, make_posterior: Callable[[], SharedPosterior], pending: bool
) -> Posterior:
    """Return a posterior of functions whose values arrive separately; its variances may include
    pending plays.
    """
    arrived = SeparatePosterior([make_posterior() for _ in range(functions)])
    if pending:
        return PendingPosterior(arrived, make_posterior())
    return arrived


def add_pending(
    arrived: Posterior, make_posterior: Callable[[], SharedPosterior]
) -> PendingPosterior:
    """Return a posterior whose variances include pending plays, for rounds that are told whole and
    in order.

    Args:
        make_posterior: makes a posterior of one function with the others' covariance, if they share
        one.
    """
    if arrived.variance.ndim == 2:
        return PendingPosterior(arrived, make_posterior())
    return Hallucinated(arrived)
