"""The contract of an algorithm, batched over S replicates, and the bases that most algorithms derive from.

    start(setting)            once
    ask(t) -> actions         every round, t = 1, 2, ..., T
    tell(t, actions, feedback)

An algorithm sees its own past feedback and what `Setting` says a learner may know; never f or g.
A `ScoreAlgorithm` is a score over beliefs plus an update of its own state (a dual variable, a safe set). The base
class keeps the posterior, the confidence widths and the draws, and plays the best-scored action.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite, break_ties
from cbobench.gp.beliefs import Belief, Chooser, FunctionBelief
from cbobench.gp.explore import UCB, Explore
from cbobench.gp.gain import GainName, gain_rate, greedy_gain
from cbobench.gp.kernels import Array
from cbobench.gp.posterior import FeaturePosterior
from cbobench.gp.width import Width, WidthForm
from cbobench.params import param, state
from cbobench.problems.base import Feedback, Instances
from cbobench.rng import Draws, Streams, uniform

Actions = NDArray[np.intp]


@dataclass(frozen=True)
class Setting:
    """What a learner is given for S replicates in lock step.

    Attributes:
        actions: the action set.
        constraints: m.
        horizon: T.
        norm, sup: bounds on RKHS norms and on absolute values of (f, g_1, ..., g_m), (S, 1 + m).
        noise: sub-Gaussian constants R of the observations, (S, 1 + m).
        slater: delta, (S,).
        seed_set: mask of actions known to be safe, (S, n).
        optimum: the best feasible action, (S,); only a reference such as `oracle` may look at it.
        streams: the algorithm's own randomness.
    """

    actions: Finite
    constraints: int
    horizon: int
    norm: Array
    sup: Array
    noise: Array
    slater: Array
    seed_set: NDArray[np.bool_]
    optimum: Actions
    streams: Streams

    @classmethod
    def of(cls, actions: Finite, instances: Instances, horizon: int, streams: Streams) -> Setting:
        """The setting of drawn instances."""
        i = instances
        return cls(actions, i.constraints, horizon, i.norm, i.sup, i.noise, i.slater, i.seed_set, i.optimum, streams)

    @property
    def replicates(self) -> int:
        return len(self.norm)

    def only(self, replicate: int) -> Setting:
        """The setting of one replicate (S = 1)."""
        one = slice(replicate, replicate + 1)
        names = ("norm", "sup", "noise", "slater", "seed_set", "optimum")
        return replace(self, **{n: getattr(self, n)[one] for n in names}, streams=self.streams.only(replicate))


class Algorithm:
    """Base of every algorithm. Subclasses are keyword-only dataclasses registered with `@ALGORITHMS.register("name")`.

    Class attributes:
        source: the paper, for tables.
        about: one line for tables.
        knows: what it must be told, in the words of the papers (B, G, R, lambda, kernel, safe seed, ...).
    """

    name: ClassVar[str] = ""
    source: ClassVar[str] = ""
    about: ClassVar[str] = ""
    knows: ClassVar[tuple[str, ...]] = ()

    def check(self, actions: Finite, constraints: int) -> None:
        """Refuse a problem this algorithm cannot serve, before anything runs. Raises `Misuse`."""

    def start(self, setting: Setting) -> None:
        raise NotImplementedError

    def ask(self, t: int) -> Actions:
        """The actions of round t, (S,)."""
        raise NotImplementedError

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        """Feedback of round t."""

    @property
    def duals(self) -> Array | None:
        """The dual variables after the last round, (S, m), for algorithms that have them."""
        return None


Bound = float | Literal["norm", "sup"]


@dataclass(kw_only=True)
class ScoreAlgorithm(Algorithm):
    """An algorithm that plays the best score over GP beliefs, ties broken at random.

    The parameters here decide the outcome as much as the algorithm does. They are recorded with every cell, and a
    suite sets them for all its algorithms under `shared:`.
    """

    lam: float | Literal["theory"] = param("theory", "regulariser λ; theory: 1 + 2/T", above=0.0)
    B: Bound = param("norm", "bound B of the reward: its RKHS norm, its largest absolute value, or a number", above=0.0)
    G: Bound = param("norm", "bound G of each constraint, read like B", above=0.0)
    R: float | Literal["true"] = param("true", "noise constant R: the problem's, or a number", at_least=0.0)
    alpha: float = param(0.1, "failure probability α of all confidence bounds together", above=0.0, below=1.0)
    beta: float | WidthForm = param("theory", "width β: theory, self-normalised (any λ), or a constant", at_least=0.0)
    beta_scale: float = param(1.0, "factor on the width β", at_least=0.0)
    gain: GainName = param("played", "information gain γ in β: of the played actions, greedy bound, or the rate")

    setting: Setting = state()
    posterior: FeaturePosterior = state()
    explore_f: Explore = state()
    explore_g: Explore = state()

    models_constraints: ClassVar[bool] = True

    def check(self, actions: Finite, constraints: int) -> None:
        if self.gain == "rate":
            gain_rate(actions, 1)

    # What a subclass says -------------------------------------------------------------------------------------------

    def strategies(self) -> tuple[Explore, Explore]:
        """Exploration of f and of g; optimistic for both unless a subclass says otherwise."""
        return UCB(+1), UCB(-1)

    def prepare(self) -> None:
        """Set up the algorithm's own state; `self.setting`, `bound_f` and `bound_g` are there."""

    def score(self, belief: Belief) -> Array:
        """Scores of k candidates, (S, k); the best is played."""
        raise NotImplementedError

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        """Update the algorithm's own state; `chosen` is the round's belief at the played action (k = 1)."""

    def targets(self, feedback: Feedback) -> Array:
        """What the posterior models, (S, p); f, g_1, ..., g_m unless a subclass says otherwise."""
        return np.concatenate([feedback.f[:, None], feedback.g], axis=1)

    # What the base does ---------------------------------------------------------------------------------------------

    def start(self, setting: Setting) -> None:
        self.setting = setting
        m = setting.constraints if self.models_constraints else 0
        self.bound_f = _bound(self.B, setting.norm[:, :1], setting.sup[:, :1])
        self.bound_g = _bound(self.G, setting.norm[:, 1:], setting.sup[:, 1:])[:, :, None]
        features = setting.actions.features
        self.explore_f, self.explore_g = self.strategies()
        self.explore_f.start(setting.streams, "explore f", (), features.shape[1])
        self.explore_g.start(setting.streams, "explore g", (m,), features.shape[1])
        self.ties = Draws(setting.streams.role("ties"), uniform)
        self.chooser = Chooser(setting.replicates, m, setting.actions.n)
        prior = setting.actions.covariance.diagonal()
        self.posterior = FeaturePosterior(features, 1.0, setting.replicates, 1 + m, prior)
        self.begin_schedule(setting.horizon)
        self.prepare()

    def begin_schedule(self, horizon: int) -> None:
        """Forget all data and set λ, β and γ for a horizon (once, or at every restart)."""
        lam = 1 + 2 / horizon if self.lam == "theory" else float(self.lam)
        self.posterior.reset(lam)
        p = self.posterior.functions
        noise = self.setting.noise[:, :p] if self.R == "true" else np.full_like(self.bound_f, self.R).repeat(p, axis=1)
        bounds = np.concatenate([self.bound_f, self.bound_g[:, : p - 1, 0]], axis=1)
        self.width = Width(
            bounds, noise, alpha=self.alpha, scale=self.beta_scale, form=self.beta, lam=lam, shares=self.events()
        )
        self.gains: Array | None = None
        if self.gain == "greedy":
            self.gains = greedy_gain(self.setting.actions, lam, horizon)
        elif self.gain == "rate":
            self.gains = gain_rate(self.setting.actions, horizon)
        self.played = 0

    def events(self) -> int:
        """How many bounds share α: one per modelled function."""
        return self.posterior.functions

    def believe(self, t: int) -> Belief:
        """The belief over all actions before round t, with the round's draws."""
        gain = self.posterior.gain if self.gains is None else np.full(len(self.bound_f), self.gains[self.played])
        width = self.width.at(gain)
        mean, deviation = self.posterior.mean, np.sqrt(self.posterior.variance)
        f = FunctionBelief(mean[:, 0], deviation, width[:, :1], self._path(self.explore_f, t))
        if not self.models_constraints:
            return Belief(f, None)
        g = FunctionBelief(mean[:, 1:], deviation[:, None], width[:, 1:, None], self._path(self.explore_g, t))
        return Belief(f, g)

    def _path(self, explore: Explore, t: int) -> Array | None:
        explore.begin(t)
        if not explore.needs_path:
            return None
        z: Array = explore.z  # type: ignore[attr-defined]
        return self.posterior.paths(z) if z.ndim == 3 else self.posterior.paths(z[:, None])[:, 0]

    def ask(self, t: int) -> Actions:
        self.belief = self.believe(t)
        return break_ties(self.score(self.belief), self.ties.at(t))

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        if type(self).learn is not ScoreAlgorithm.learn:
            self.learn(t, self.chooser.at(self.belief, actions), feedback)
        self.posterior.update(actions, self.targets(feedback))
        self.played += 1


def _bound(choice: Bound, norm: Array, sup: Array) -> Array:
    if isinstance(choice, str):
        return norm if choice == "norm" else sup
    return np.full_like(norm, choice)


def truncate(values: Array, bound: Array) -> Array:
    """Proj_[-bound, bound] of a fresh array, in place."""
    np.minimum(values, bound, out=values)
    return np.maximum(values, -bound, out=values)


@dataclass(kw_only=True)
class OneRun(Algorithm):
    """Base of an algorithm that thinks one run at a time: it is copied per replicate and looped.

    Subclasses write `start_one`, `ask_one` and `tell_one`; arrays there have no replicate axis. Slower, and easier.
    """

    setting: Setting = state()

    def start_one(self, setting: Setting) -> None:
        """Begin a run; every array of `setting` has a leading axis of length 1."""
        raise NotImplementedError

    def ask_one(self, t: int) -> int:
        raise NotImplementedError

    def tell_one(self, t: int, action: int, f: float, g: Array) -> None:
        """Feedback of the run: reward and constraint values (m,)."""

    def dual_one(self) -> Array | None:
        """Dual variables (m,), for algorithms that have them."""
        return None

    def start(self, setting: Setting) -> None:
        import copy

        self.runs = [copy.deepcopy(self) for _ in range(setting.replicates)]
        for s, run in enumerate(self.runs):
            run.setting = setting.only(s)
            run.start_one(run.setting)

    def ask(self, t: int) -> Actions:
        return np.array([run.ask_one(t) for run in self.runs], dtype=np.intp)

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        for s, run in enumerate(self.runs):
            run.tell_one(t, int(actions[s]), float(feedback.f[s]), feedback.g[s])

    @property
    def duals(self) -> Array | None:
        each: list[Any] = [run.dual_one() for run in self.runs]
        return None if any(d is None for d in each) else np.stack(each)


def whole_rounds(value: float | int | str, horizon: int, theory: float) -> int:
    """A number of rounds: given whole, as a share of T (a fraction below 1), or `theory`."""
    if isinstance(value, str):
        return math.ceil(theory)
    if value < 0:
        raise Misuse(f"{value} rounds; give a whole number, or a share of the horizon below 1")
    return math.ceil(value * horizon) if value < 1 else int(value)
