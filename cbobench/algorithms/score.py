"""Algorithms that are a score over GP beliefs plus an update of their own state: a dual variable, a safe set.

The base class keeps the posterior, the confidence widths and the draws, and plays the best-scored action.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cbobench.algorithms.base import Actions, Algorithm, Setting
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.actions import Finite, break_ties
from cbobench.gp.beliefs import Belief, Chooser, FunctionBelief
from cbobench.gp.explore import UCB, Explore
from cbobench.gp.gain import GainName, gain_rate, greedy_gain
from cbobench.gp.kernels import Array
from cbobench.gp.posterior import FeaturePosterior
from cbobench.gp.width import Width, WidthForm
from cbobench.params import param, state
from cbobench.problems.base import Feedback
from cbobench.rng import Draws, uniform

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

    def begin(self, t: int, belief: Belief) -> None:
        """Update the algorithm's own state (a safe set, say) from the belief over all actions, once per round."""

    def score(self, belief: Belief) -> Array:
        """Scores of k candidates, (S, k); the best is played. Changes nothing: it may be called many times a round."""
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
        self.bound_f = _bound("B", self.B, setting.norm[:, :1], setting.sup[:, :1])
        self.bound_g = _bound("G", self.G, setting.norm[:, 1 : 1 + m], setting.sup[:, 1 : 1 + m])[:, :, None]
        features = setting.actions.features
        self.explore_f, self.explore_g = self.strategies()
        self.explore_f.start(setting.streams, "explore f", (), features.shape[1])
        self.explore_g.start(setting.streams, "explore g", (m,), features.shape[1])
        self.ties = Draws(setting.streams.role("ties"), uniform)
        self.chooser = Chooser(setting.replicates, m, setting.actions.n)
        self.posterior = self.make_posterior(1 + m)
        self.begin_schedule(setting.horizon)
        self.prepare()

    def make_posterior(self, functions: int) -> FeaturePosterior:
        """The posterior of this algorithm's functions; λ comes with the schedule."""
        actions = self.setting.actions
        return FeaturePosterior(
            actions.features, 1.0, self.setting.replicates, functions, actions.covariance.diagonal()
        )

    def begin_schedule(self, horizon: int) -> None:
        """Forget all data and set λ, β and γ for a horizon (once, or at every restart)."""
        lam = 1 + 2 / horizon if self.lam == "theory" else float(self.lam)
        self.posterior.reset(lam)
        p = self.posterior.functions
        noise = self.setting.noise[:, :p] if self.R == "true" else np.full_like(self.bound_f, self.R).repeat(p, axis=1)
        bounds = np.concatenate([self.bound_f, self.bound_g[:, :, 0]], axis=1)
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
        self.explore_f.begin(t)
        f = FunctionBelief(mean[:, 0], deviation, width[:, :1], self.explore_f.path(self.posterior))
        if not self.models_constraints:
            return Belief(f, None)
        self.explore_g.begin(t)
        path = self.explore_g.path(self.posterior)
        return Belief(f, FunctionBelief(mean[:, 1:], deviation[:, None], width[:, 1:, None], path))

    def ask(self, t: int) -> Actions:
        self.belief = self.believe(t)
        self.begin(t, self.belief)
        return break_ties(self.score(self.belief), self.ties.at(t))

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        if type(self).learn is not ScoreAlgorithm.learn:
            self.learn(t, self.chooser.at(self.belief, actions), feedback)
        self.posterior.update(actions, self.targets(feedback))
        self.played += 1


def _bound(name: str, choice: Bound, norm: Array, sup: Array) -> Array:
    if not isinstance(choice, str):
        return np.full_like(norm, choice)
    bound = norm if choice == "norm" else sup
    if not np.isfinite(bound).all():
        raise CellFailure(f"{name} is 'norm', but a function is not in the kernel's space; use sup or a number")
    return bound


def truncate(values: Array, bound: Array) -> Array:
    """Proj_[-bound, bound] of a fresh array, in place."""
    np.minimum(values, bound, out=values)
    return np.maximum(values, -bound, out=values)


def whole_rounds(value: float | int | str, horizon: int) -> int:
    """A number of rounds: given whole, as a share of T (below 1), or as the word "T^(2/3)".

    Raises:
        Misuse: a number above 1 that is not whole.
    """
    if isinstance(value, str):
        return math.ceil(horizon ** (2 / 3))
    if value < 1:
        return math.ceil(value * horizon)
    if value != int(value):
        raise Misuse(f"{value} rounds; give a whole number, or a share of the horizon below 1")
    return int(value)
