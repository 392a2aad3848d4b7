"""Algorithms that are a score over GP beliefs plus an update of their own state: a dual variable, a safe set.

The base class keeps the posterior, the confidence widths and the draws, and plays the best-scored action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from cbobench.algorithms.base import Algorithm, Setting
from cbobench.errors import CellFailure
from cbobench.gp import choose, maximise
from cbobench.gp.actions import break_ties
from cbobench.gp.beliefs import Belief, Chooser, FunctionBelief
from cbobench.gp.box import Box
from cbobench.gp.choose import DelayedPosterior, Single
from cbobench.gp.explore import UCB, Explore
from cbobench.gp.gain import GainName, gain_rate, greedy_gain
from cbobench.gp.kernels import Array
from cbobench.gp.maximise import Parts
from cbobench.gp.width import Width, WidthForm
from cbobench.params import param, state
from cbobench.problems.base import Actions, Feedback, Problem, Shown
from cbobench.rng import Draws, uniform

Bound = float | Literal["norm", "sup"]
STARTS = 4  # candidates of a box that are polished in a round


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
    posterior: Any = state()
    chosen: Actions = state()
    achieved: Array = state()
    explore_f: Explore = state()
    explore_g: Explore = state()

    cost = "O(nr + r²); box O(tM + t²)"
    models_constraints: ClassVar[bool] = True
    looks_back: ClassVar[bool] = True

    def check(self, problem: Problem) -> None:
        if self.gain == "rate":
            gain_rate(problem.actions, 1)

    # What a subclass says -------------------------------------------------------------------------------------------

    def strategies(self) -> tuple[Explore, Explore]:
        """Exploration of f and of g; optimistic for both unless a subclass says otherwise."""
        return UCB(+1), UCB(-1)

    def prepare(self) -> None:
        """Set up the algorithm's own state; `self.setting`, `bound_f` and `bound_g` are there."""

    def begin(self, t: int, belief: Belief) -> None:
        """Update the algorithm's own state (a safe set, say) from the belief over all actions, once per round."""

    def parts(self, belief: Belief) -> Parts:
        """The score of k candidates as smooth and kinked parts, for algorithms whose score has kinks."""
        smooth = self.score(belief)
        return Parts(smooth, np.empty((len(smooth), 0, smooth.shape[1])), np.empty((len(smooth), 0)))

    def score(self, belief: Belief) -> Array:
        """Scores of k candidates, (S, k); the best is played. Changes nothing: it may be called many times a round.

        A subclass defines this, or `parts`.
        """
        return self.parts(belief).total()

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        """Update the algorithm's own state; `chosen` is the round's belief at the played action (k = 1).

        With `looks_back` false it is the belief over all candidates, which is there anyway.
        """

    def targets(self, feedback: Feedback) -> Array:
        """What the posterior models, (S, p); f, g_1, ..., g_m unless a subclass says otherwise."""
        return np.concatenate([feedback.f[:, None], feedback.g], axis=1)

    # What the base does ---------------------------------------------------------------------------------------------

    def start(self, setting: Setting) -> None:
        self.explore_f, self.explore_g = self.strategies()
        self.joint = self.explore_f.joint or (self.models_constraints and self.explore_g.joint)
        self.box = setting.actions if isinstance(setting.actions, Box) else None
        self.grid_points: Array | None = None
        if self.joint and self.box is not None:  # paths are maximised over the candidates, as in the theory of GP-TS
            setting, self.box = replace(setting, actions=self.box.grid), None
            self.grid_points = setting.finite.points
        self.setting = setting
        m = setting.constraints if self.models_constraints else 0
        self.bound_f = _bound("B", self.B, setting.norm[:, :1], setting.sup[:, :1])
        self.bound_g = _bound("G", self.G, setting.norm[:, 1 : 1 + m], setting.sup[:, 1 : 1 + m])[:, :, None]
        rank = setting.finite.features.shape[1] if self.joint else 0
        self.explore_f.start(setting.streams, "explore f", (), rank)
        self.explore_g.start(setting.streams, "explore g", (m,), rank)
        self.ties = Draws(setting.streams.role("ties"), uniform)
        if self.box is None:
            self.chooser = Chooser(setting.replicates, setting.constraints, setting.finite.n)
        self.posterior = self.make_posterior(1 + m)
        self.shown: Shown | None = None
        self.history: list[Actions] = []
        self.begin_schedule(setting.horizon)
        self.prepare()

    def make_posterior(self, functions: int) -> Any:
        """The posterior of this algorithm's functions; λ comes with the schedule. One per function under delays."""
        setting = self.setting

        def one(p: int) -> Single:
            return choose.posterior(setting.actions, setting.replicates, p, setting.horizon, paths=self.joint)

        return DelayedPosterior([one(1) for _ in range(functions)]) if setting.delayed else one(functions)

    def begin_schedule(self, horizon: int) -> None:
        """Forget all data and set λ, β and γ for a horizon (once, or at every restart)."""
        self.regulariser = self.lam_for(horizon)
        self.posterior.reset(self.regulariser)
        self.since = len(self.history) + 1
        self.set_width()
        self.gains: Array | None = None
        if self.gain == "greedy":
            self.gains = greedy_gain(self.setting.actions, self.regulariser, horizon)
        elif self.gain == "rate":
            self.gains = gain_rate(self.setting.actions, horizon)
        self.played = 0

    def lam_for(self, horizon: int) -> float:
        return 1 + 2 / horizon if self.lam == "theory" else float(self.lam)

    def forget(self) -> None:
        """Forget all data, and what is still under way; the schedule goes on, and the gain begins again."""
        self.posterior.reset()
        self.since = len(self.history) + 1
        self.played = 0

    def set_width(self) -> None:
        """Set β for the current λ, noise constants and number of events."""
        options: dict[str, Any] = {"alpha": self.alpha, "scale": self.beta_scale, "form": self.width_form()}
        self.width = Width(self.bounds, self.noise_constants(), lam=self.regulariser, shares=self.events(), **options)

    @property
    def bounds(self) -> Array:
        """B and G of everything modelled, (S, p)."""
        return np.concatenate([self.bound_f, self.bound_g[:, :, 0]], axis=1)

    def width_form(self) -> float | WidthForm:
        """Which β `theory` means."""
        return self.beta

    def noise_constants(self) -> Array:
        """R of what is modelled, (S, p)."""
        p = self.posterior.functions
        return self.setting.noise[:, :p] if self.R == "true" else np.full((self.setting.replicates, p), float(self.R))

    def events(self) -> int:
        """How many bounds share α: one per modelled function."""
        return self.posterior.functions

    def round_width(self, t: int) -> Array:
        """β_t of every modelled function, (S, p)."""
        gain = self.posterior.gain if self.gains is None else np.full(len(self.bound_f), self.gains[self.remembered])
        return self.width.at(gain)

    @property
    def remembered(self) -> int:
        """How many observations the model holds: the t of γ_t."""
        return self.played

    def believe(self, t: int) -> Belief:
        """The belief over all candidates before round t, with the round's draws."""
        self.widths = self.round_width(t)
        self.explore_f.begin(t)
        if self.models_constraints:
            self.explore_g.begin(t)
        belief = self.view(self.posterior.mean, self.posterior.variance, None)
        belief.f.path = self.explore_f.path(self.posterior, 0)
        if belief.g is not None:
            belief.g.path = self.explore_g.path(self.posterior, 1)
        return belief

    def view(self, mean: Array, variance: Array, points: Array | None) -> Belief:
        """The round's belief from moments at k points.

        Args:
            mean: (S, p, k).
            variance: (S, k), or (S, p, k) where functions have their own.
            points: (S, k, d) in the unit cube of a box; None for all candidates.
        """
        deviation, width = np.sqrt(variance), self.widths
        own = deviation.ndim == 3
        f = FunctionBelief(mean[:, 0], deviation[:, 0] if own else deviation, width[:, :1])
        shown = None if self.shown is None else self.shown(points)
        if not self.models_constraints:
            return Belief(f, None, shown)
        g = FunctionBelief(mean[:, 1:], deviation[:, 1:] if own else deviation[:, None], width[:, 1:, None])
        return Belief(f, g, shown)

    def see(self, t: int, shown: Shown) -> None:
        self.shown = shown

    def ask(self, t: int) -> Actions:
        self.belief = self.believe(t)
        self.begin(t, self.belief)
        if self.box is not None:
            self.chosen = self._climb(t, self.box)
            return self.box.scale(self.chosen)
        score = self.score(self.belief)
        self.chosen = break_ties(score, self.ties.at(t))
        self.achieved = score[np.arange(len(score)), self.chosen]
        return self.chosen if self.grid_points is None else self.grid_points[self.chosen]

    def _climb(self, t: int, box: Box) -> Array:
        """The best-scored point of the unit cube, (S, d): the best candidates and the last play, polished."""
        parts, coin = self.parts(self.belief), self.ties.at(t)
        total = parts.total()
        best = break_ties(total, coin)
        self.achieved = total[np.arange(len(total)), best]
        if self.played == 0:
            return np.asarray(box.candidates[best])  # a stationary prior: a tie of all points
        start = maximise.starts(parts, box.candidates, STARTS)
        start = np.concatenate([start, self.chosen[:, None]], axis=1)

        def scorer(mean: Array, variance: Array, points: Array) -> Parts:
            return self.parts(self.view(mean, variance, points))

        points, values = maximise.polish(scorer, self.posterior.jet, start, box.size ** (-1 / box.d))
        top, rows = break_ties(values, coin), np.arange(len(points))
        higher = values[rows, top] > self.achieved  # else a plateau: the candidate, drawn among all that tie, stays
        self.achieved = np.where(higher, values[rows, top], self.achieved)
        return np.where(higher[:, None], points[rows, top], box.candidates[best])

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        if type(self).learn is not ScoreAlgorithm.learn:
            self.learn(t, self._at_chosen() if self.looks_back else self.belief, feedback)
        self.condition(t, feedback)
        self.played += 1

    def _at_chosen(self) -> Belief:
        """The round's belief at the played action, k = 1."""
        if self.box is None:
            return self.chooser.at(self.belief, self.chosen)
        points = self.chosen[:, None]
        mean, variance = self.posterior.at(points)
        return self.view(mean, variance, points)

    def condition(self, t: int, feedback: Feedback) -> None:
        """Update the posterior with what a round told."""
        if feedback.arrivals is None:
            self.posterior.update(self.chosen, self.targets(feedback))
            return
        self.history.append(self.chosen)
        self.posterior.receive(t, self.history, feedback.arrivals, self.since)


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
