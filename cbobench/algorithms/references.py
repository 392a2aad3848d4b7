"""Reference methods: the best feasible action, random and Sobol search, and bandits on f alone.

The bandits are those of Chowdhury & Gopalan (2017), which constrained kernelized bandits become
without a constraint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import AskTell, Given
from cbobench.algorithms.base import Algorithm, Setting
from cbobench.algorithms.optimistic import OptimisticReward
from cbobench.gp.beliefs import Belief, Explore, Thompson
from cbobench.gp.box_actions import Box, scrambled_sobol
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.choice import Kind
from cbobench.params import state
from cbobench.problems.base import Actions, Drawn, Problem
from cbobench.rng import Draws, uniform

TRIES = 64  # points drawn in a round, where known constraints forbid some


@ALGORITHMS.register("oracle")
@dataclass(kw_only=True)
class Oracle(Algorithm):
    """Plays the best feasible action: regret and violations are zero in every round."""

    source = "reference"
    about = "plays the best feasible action"
    knows = ("f and g",)
    needs = frozenset({"a known optimum"})
    reference = blind = True

    def posterior_kind(self, problem: Problem) -> Kind:
        return "none"

    instances: Drawn = state()

    def look(self, instances: Drawn) -> None:
        self.instances = instances

    def start(self, setting: Setting) -> None:
        """Do nothing."""

    def ask(self, t: int) -> Actions:
        return self.instances.best(t)

    def recommend(self, t: int) -> Actions:
        return self.instances.best(t)


@ALGORITHMS.register("random")
@dataclass(kw_only=True)
class Random(Algorithm):
    """Plays a uniformly random action."""

    source = "reference"
    about = "plays uniformly at random"
    blind = True

    setting: Setting = state()

    def posterior_kind(self, problem: Problem) -> Kind:
        return "none"

    def start(self, setting: Setting) -> None:
        self.setting = setting
        actions = setting.actions
        shape: tuple[int, ...] = (actions.d,) if isinstance(actions, Box) else ()
        if isinstance(actions, Box) and actions.known is not None:
            shape = (TRIES, *shape)
        self.draws = Draws(setting.streams.role("actions"), uniform, shape)

    def ask(self, t: int) -> Actions:
        actions = self.setting.actions
        if isinstance(actions, Box) and actions.known is not None:
            return actions.scale(self._draw_allowed(actions, t))
        if isinstance(actions, Box):
            return actions.scale(self.draws.at(t))
        return np.asarray(self.draws.at(t) * actions.n, dtype=np.intp)

    def _draw_allowed(self, box: Box, t: int) -> Array:
        """Return the first of some points that known constraints allow, (S, d); of the candidates
        one at random where they allow none.
        """
        units = self.draws.at(t)
        is_allowed = ~box.beyond(units)
        first = units[np.arange(len(units)), is_allowed.argmax(axis=1)]
        anywhere = box.scattered[(units[:, 0, 0] * len(box.scattered)).astype(np.intp)]
        return np.where(is_allowed.any(axis=1, keepdims=True), first, anywhere)


class SobolSequence:
    """SciPy's scrambled Sobol sequence in the unit cube, point by point."""

    def __init__(self, d: int, generator: np.random.Generator) -> None:
        self.sequence = scrambled_sobol(d, generator)
        self.waiting: list[Array] = []

    def next(self) -> Array:
        """Return the next point, (d,)."""
        if not self.waiting:
            # By the block, because a call costs much more than a point.
            self.waiting = [*self.sequence.random(64)]
        return self.waiting.pop(0)


class SobolSearch:
    """The sequence as an optimiser; it learns nothing."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.sequence = SobolSequence(given.d, given.generator)

    def ask(self) -> Array:
        unit = self.sequence.next()
        actions = self.given.setting.actions
        if isinstance(actions, Box):
            return actions.scale(unit)
        return self.given.low + unit * (self.given.high - self.given.low)

    def tell(self, x: Array, f: float, g: Array) -> None:
        """Do nothing."""


@ALGORITHMS.register("sobol")
@dataclass(kw_only=True)
class Sobol(AskTell):
    """The points of a scrambled Sobol sequence (SciPy's), scrambled anew for each seed.

    On a finite set the nearest actions are played, some of them more than once.
    """

    late = blind = True

    source = "Sobol (1967), Owen (1998); SciPy"
    about = "plays a scrambled Sobol sequence"

    def optimiser(self, given: Given) -> SobolSearch:
        return SobolSearch(given)


@dataclass(kw_only=True)
class Unconstrained(OptimisticReward):
    """Models the reward only and plays its best estimate."""

    models_constraints = False
    knows = ("kernel", "λ", "B", "R", "T")

    def score(self, belief: Belief) -> Array:
        return self.explore_f(belief.f)


@ALGORITHMS.register("igp-ucb")
@dataclass(kw_only=True)
class IGPUCB(Unconstrained):
    """IGP-UCB: argmax μ + β σ with β = B + R √(2(γ + 1 + ln(1/α)))."""

    source = "Chowdhury & Gopalan (2017) Alg. 1"
    about = "unconstrained GP-UCB"


@ALGORITHMS.register("gp-ts")
@dataclass(kw_only=True)
class GPTS(Unconstrained):
    """GP-TS: argmax of a joint sample of N(μ, β² k_t) with β = B + R √(2(γ + 1 + ln(2/α)))."""

    source = "Chowdhury & Gopalan (2017) Alg. 2"
    about = "unconstrained Thompson sampling"

    def strategies(self) -> tuple[Explore, ...]:
        return (Thompson(),)

    def events(self) -> int:
        return 2  # the concentration of f and of the sample share α
