"""Beliefs about functions at k candidates; exploration strategies, which estimate a function from a
belief; and scores of these estimates.

Draws are fixed for the round (`begin`), so that the candidates' scores and the played action see
the same Z_t or the same sample path. Zhou & Ji (2022): Definition 1 (UCB, Thompson), Definition 2
and Appendix C (RandGP-UCB).

The maximum of a constrained bandit's score on a box is usually on a kink. So a score is written in
parts: `total` is its value, and `kinks` its form smooth - Σ_j price_j [kinked_j]⁺, which a
maximiser climbs (see `cbobench.gp.maximise`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.actions import rows_of
from cbobench.gp.kernels import Array, Indices
from cbobench.gp.posteriors.interface import Posterior
from cbobench.rng import Draws, Streams, standard_normal, uniform

ONE = np.ones((1, 1))


@dataclass(slots=True)
class FunctionBelief:
    """The posterior of one function (arrays (S, k)) or of m functions (arrays (S, m, k)) at k
    candidates.

    Attributes:
        mean: posterior means.
        deviation: latent posterior standard deviations; broadcasts against `mean` (functions share
            it).
        width: the confidence width beta_t, (S, 1) or (S, m, 1); one deviation for methods that set
            none.
        path: a zero-mean joint sample with the posterior covariance, drawn for this round; None
            unless requested.
    """

    mean: Array
    deviation: Array
    width: Array = field(default_factory=lambda: ONE)
    path: Array | None = None

    def at(self, actions: Indices) -> FunctionBelief:
        """Return the belief at one action per replicate, (S,)."""
        index = rows_of(actions.size), ..., actions
        path = None if self.path is None else self.path[index][..., None]
        mean = self.mean[index][..., None]
        deviation = self.deviation[index][..., None]
        return FunctionBelief(mean, deviation, self.width, path)


@dataclass(slots=True)
class Belief:
    """Beliefs of the reward f and the constraints g at the same candidates.

    Attributes:
        f: arrays (S, k).
        g: arrays (S, m, k); None for a learner that models no constraint.
        shown: the round's constraint function g_t at the candidates, (S, m, k), under full
            information.
        constraint: `g`, for algorithms that always model it.
    """

    constraint: ClassVar[FunctionBelief]  # of an instance: another name of its `g`, as below

    f: FunctionBelief
    g: FunctionBelief | None
    shown: Array | None = None


Belief.constraint = Belief.__dict__["g"]  # the slot: reading it costs no call


class BeliefAtPlayed(Belief):
    """A belief at one action per replicate, (S,): f arrays (S, 1), g arrays (S, m, 1).

    Each part is taken when it is read, because most methods read one.
    """

    __slots__ = ("actions", "belief")

    def __init__(self, belief: Belief, actions: Indices) -> None:
        self.belief = belief
        self.actions = actions

    @property
    def f(self) -> FunctionBelief:  # type: ignore[override]  # nobody assigns it
        return self.belief.f.at(self.actions)

    @property
    def g(self) -> FunctionBelief | None:  # type: ignore[override]
        if self.belief.g is None:
            return None
        return self.belief.g.at(self.actions)

    constraint = g  # type: ignore[assignment]

    @property
    def shown(self) -> Array | None:  # type: ignore[override]
        values = self.belief.shown
        if values is None:
            return None
        return values[rows_of(self.actions.size), :, self.actions, None]


RandName = Literal["normal", "uniform", "discrete-gaussian"]
"""A lower bound on P(Z >= 1) of a normal draw Z, as the proofs use it (the true value is 0.16)."""


class Explore:
    """Base: a strategy for q functions (`shape` is () for f and (m,) for g) of S replicates.

    Class attributes:
        joint: whether it uses sample paths, which exist on finite sets only.
    """

    joint = False

    def start(self, streams: Streams, role: str, shape: tuple[int, ...], rank: int) -> None:
        """Set the streams of this strategy; `rank` is the length of the posterior's z."""

    def begin(self, t: int) -> None:
        """Draw the random numbers of round t."""

    def path(self, posterior: Posterior, first: int) -> Array | None:
        """Return a zero-mean joint sample over all actions for this round, for strategies that use
        one.

        Args:
            first: index in the posterior of the first explored function: 0 for f, 1 for g_1.
        """
        return None

    def __call__(self, belief: FunctionBelief) -> Array:
        """Return the estimate as a fresh array, the shape of `belief.mean`."""
        raise NotImplementedError


class UCB(Explore):
    """mean + sign * beta_t * deviation; sign -1 is the lower bound, optimistic for a cost."""

    def __init__(self, sign: int = 1) -> None:
        self.sign = sign

    def __call__(self, belief: FunctionBelief) -> Array:
        bonus = belief.width * belief.deviation
        combine = np.add if self.sign > 0 else np.subtract
        return combine(belief.mean, bonus, out=bonus)


class Thompson(Explore):
    """A joint sample of N(mean, beta_t^2 k_t): one path over all candidates, never one draw per
    candidate.
    """

    joint = True

    def start(self, streams: Streams, role: str, shape: tuple[int, ...], rank: int) -> None:
        self.draws = Draws(streams.role(role), standard_normal, (*shape, rank))

    def begin(self, t: int) -> None:
        self.z = self.draws.at(t)

    def path(self, posterior: Posterior, first: int) -> Array:
        if self.z.ndim == 3:  # of every constraint
            return posterior.paths(self.z, first)
        return posterior.paths(self.z[:, None], first)[:, 0]

    def __call__(self, belief: FunctionBelief) -> Array:
        assert belief.path is not None
        estimate = belief.width * belief.path
        estimate += belief.mean
        return estimate


class RandUCB(Explore):
    """mean + Z_t * beta_t * deviation with one Z_t per round for all candidates.

    `normal`: Z ~ N(0, 1). `uniform`: N points evenly on [0, 2]. `discrete-gaussian`: N points on
    [low, high] with weights of N(0, 1) there. All in units of beta_t. The last two are one-sided,
    so `sign` points them towards
    optimism: +1 for the reward, -1 for a cost (the paper shows only the unconstrained case, sign
    +1).
    """

    def __init__(
        self,
        law: RandName = "normal",
        sign: int = 1,
        points: int = 20,
        low: float = 0.0,
        high: float = 2.0,
    ) -> None:
        self.law = law
        self.sign = sign
        low, high = (0.0, 2.0) if law == "uniform" else (low, high)
        self.grid = sign * np.linspace(low, high, points)
        weights = np.ones(points) if law == "uniform" else np.exp(-(self.grid**2) / 2)
        self.weights = weights / weights.sum()
        self.cumulative = weights.cumsum() / weights.sum()

    def start(self, streams: Streams, role: str, shape: tuple[int, ...], rank: int) -> None:
        self.draws = Draws(
            streams.role(role), standard_normal if self.law == "normal" else uniform, shape
        )

    def begin(self, t: int) -> None:
        z = self.draws.at(t)
        if self.law != "normal":
            # The last cumulative weight may be rounded below 1, and a draw may lie above it.
            z = self.grid[
                np.minimum(self.cumulative.searchsorted(z, side="right"), len(self.grid) - 1)
            ]
        self.z = z[..., None]

    def __call__(self, belief: FunctionBelief) -> Array:
        estimate = (self.z * belief.width) * belief.deviation
        estimate += belief.mean
        return estimate


# Scores ----------------------------------------------------------------------------------------


class Parts(NamedTuple):
    """smooth - Σ_j price_j [kinked_j]⁺: smooth (S, k), kinked (S, m, k) and its price (S, m); m may
    be 0.
    """

    smooth: Array
    kinked: Array
    price: Array

    @classmethod
    def of(cls, smooth: Array) -> Parts:
        """Return a score without kinks."""
        return cls(smooth, np.empty((len(smooth), 0, smooth.shape[1])), np.empty((len(smooth), 0)))

    def total(self) -> Array:
        """Return the score, (S, k)."""
        excess = np.fmax(self.kinked, 0.0)
        price = self.price[..., None]
        # An infinite price times no excess is 0, and not a NaN; a price that is NaN stays one.
        penalty = np.where((excess > 0) | np.isnan(price), price, 0.0)
        penalty *= excess
        # A sum of one is the same to the last bit, and takes longer than all before it.
        of_all = penalty[:, 0] if penalty.shape[1] == 1 else np.add.reduce(penalty, axis=1)
        return self.smooth - of_all

    def kinks(self) -> Parts:
        """Return the same up to rounding, as smooth and kinked parts."""
        return self

    def walled(self, walls: Array) -> Parts:
        """Return the score with walls (S, w, k), or (1, w, k) for all replicates, above 0 where no
        point may be played.
        """
        walls = np.broadcast_to(walls, (len(self.smooth), *walls.shape[1:]))
        endless = np.full(walls.shape[:2], np.inf)
        return Parts(
            self.smooth,
            np.concatenate([self.kinked, walls], axis=1),
            np.concatenate([self.price, endless], axis=1),
        )


class Truncated(NamedTuple):
    """Proj_[-B, B] f - Σ_j price_j Proj_[-G_j, G_j] g_j, for prices >= 0.

    Its total keeps ties: wherever f is above B it equals B to the last bit, unlike a smooth part
    minus a kink.

    Attributes:
        f, bound: (S, k), and B (S, 1).
        costs: price (S, m), g (S, m, k) and its bounds G (S, m, 1); None without costs.
    """

    f: Array
    bound: Array
    costs: tuple[Array, Array, Array] | None = None

    def minus(self, price: Array, g: Array, bound: Array) -> Truncated:
        """Return the score with costs."""
        return Truncated(self.f, self.bound, (price, g, bound))

    def total(self) -> Array:
        z = truncate(self.f, self.bound)
        if self.costs is not None:
            price, g, bound = self.costs
            g = truncate(g, bound)
            g *= price[:, :, None]
            for j in range(g.shape[1]):
                z -= g[:, j]
        return z

    def kinks(self) -> Parts:
        """Truncating f from above and g from below makes kinks on which a maximum may lie."""
        smooth = np.maximum(self.f, -self.bound)
        above = self.f[:, None] - self.bound[:, :, None]
        unit_price = np.ones_like(self.bound)
        if self.costs is None:
            return Parts(smooth, above, unit_price)
        price, g, bound = self.costs
        smooth = smooth - (price[:, :, None] * np.minimum(g, bound)).sum(axis=1)
        return Parts(
            smooth,
            np.concatenate([above, -g - bound], axis=1),
            np.concatenate([unit_price, price], axis=1),
        )


Score = Parts | Truncated
"""A score at k candidates in any form."""


def truncate(values: Array, bound: Array) -> Array:
    """Return Proj_[-bound, bound] of every value, as a fresh array."""
    inside = np.minimum(values, bound)
    return np.maximum(inside, -bound, out=inside)


def check_shape(score: Array, shape: tuple[int, ...]) -> Array:
    """Refuse a score that lacks a value for some candidate."""
    if np.shape(score) != shape:
        raise CellFailure(f"the score has shape {np.shape(score)}; it must be (S, k) = {shape}")
    return score
