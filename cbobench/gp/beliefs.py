"""Beliefs about functions at k candidates, and exploration strategies, which estimate a function
from a belief.

Draws are fixed for the round (`begin`), so that the candidates' scores and the played action see
the same Z_t or the same sample path. Zhou & Ji (2022): Definition 1 (UCB, Thompson), Definition 2
and Appendix C (RandGP-UCB).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
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

    f: FunctionBelief
    g: FunctionBelief | None
    shown: Array | None = None
    constraint: FunctionBelief = field(init=False, repr=False, compare=False)

    def __init__(
        self, f: FunctionBelief, g: FunctionBelief | None, shown: Array | None = None
    ) -> None:
        self.f, self.g, self.shown = f, g, shown
        if g is not None:  # without it, reading `constraint` is an error
            self.constraint = g


class RowStarts:
    """Where the rows of replicates are: their starts in flat arrays over n actions, (S, 1), and
    their indices beside those of m constraints.
    """

    def __init__(self, replicates: int, constraints: int, n: int) -> None:
        self.of_f = n * np.arange(replicates)[:, None]
        self.of_g = np.arange(replicates)[:, None, None], np.arange(constraints)[:, None]


class BeliefAtPlayed(Belief):
    """A belief at one action per replicate: f arrays (S, 1), g arrays (S, m, 1).

    Each part is taken when it is read, because most methods read one.

    Args:
        belief: over all actions.
        starts: of the rows of its arrays.
        actions: (S,).
    """

    __slots__ = ("actions", "belief", "starts")

    def __init__(self, belief: Belief, starts: RowStarts, actions: NDArray[np.intp]) -> None:
        self.belief, self.starts, self.actions = belief, starts, actions[:, None]

    @property
    def f(self) -> FunctionBelief:  # type: ignore[override]  # nobody assigns it
        f, index = self.belief.f, self.starts.of_f + self.actions
        path = None if f.path is None else f.path.reshape(-1)[index]
        return FunctionBelief(
            f.mean.reshape(-1)[index], f.deviation.reshape(-1)[index], f.width, path
        )

    @property
    def g(self) -> FunctionBelief | None:  # type: ignore[override]
        return None if self.belief.g is None else self.constraint

    @property
    def constraint(self) -> FunctionBelief:  # type: ignore[override]
        # Means are a part of an array, of which a flat form would be a copy.
        g, index = self.belief.constraint, (*self.starts.of_g, self.actions[:, None])
        shared = g.deviation.shape[1] == 1  # one covariance for all constraints
        deviation = (
            g.deviation.reshape(-1)[(self.starts.of_f + self.actions)[:, None]]
            if shared
            else g.deviation[index]
        )
        path = None if g.path is None else g.path[index]
        return FunctionBelief(g.mean[index], deviation, g.width, path)

    @property
    def shown(self) -> Array | None:  # type: ignore[override]
        values = self.belief.shown
        return None if values is None else values[(*self.starts.of_g, self.actions[:, None])]


RandName = Literal["normal", "uniform", "discrete-gaussian"]
"""A lower bound on P(Z >= 1) of a normal draw Z, as the proofs use it (the true value is 0.16)."""


class Explore:
    """Base: a strategy for q functions (`shape` is () for f and (m,) for g) of S replicates.

    Class attributes:
        joint: whether it uses sample paths, which exist on finite sets only.
    """

    joint: ClassVar[bool] = False

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
        return (
            np.add(belief.mean, bonus, out=bonus)
            if self.sign > 0
            else np.subtract(belief.mean, bonus, out=bonus)
        )


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
        bonus = belief.width * belief.path
        return np.add(belief.mean, bonus, out=bonus)


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
        self.law, self.sign = law, sign
        low, high = (0.0, 2.0) if law == "uniform" else (low, high)
        self.grid = sign * np.linspace(low, high, points)
        weights = np.ones(points) if law == "uniform" else np.exp(-(self.grid**2) / 2)
        self.weights, self.cumulative = weights / weights.sum(), weights.cumsum() / weights.sum()

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
        bonus = (self.z * belief.width) * belief.deviation
        return np.add(belief.mean, bonus, out=bonus)
