"""Score algorithms over confidence bounds: the widths and explorations that UCB, Thompson and random widths share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cbobench.algorithms.base import Setting
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.errors import CellFailure
from cbobench.gp.beliefs import Belief
from cbobench.gp.box import Box
from cbobench.gp.explore import UCB, Explore
from cbobench.gp.gain import GainName, gain_rate, greedy_gain
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors import choice
from cbobench.gp.posteriors.shared import SharedPosterior
from cbobench.gp.width import Width, WidthForm
from cbobench.params import param, state
from cbobench.problems.base import Actions, Problem

Bound = float | Literal["norm", "sup"]


@dataclass(kw_only=True)
class Optimistic(ScoreAlgorithm):
    """A score over bounds or samples of f and g, as wide as a concentration inequality asks.

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

    explore_f: Explore = state()
    explore_g: Explore = state()

    def check(self, problem: Problem) -> None:
        if self.gain == "rate":
            gain_rate(problem.actions, 1)

    # What a subclass may say ----------------------------------------------------------------------------------------

    def strategies(self) -> tuple[Explore, Explore]:
        """Exploration of f and of g; optimistic for both unless a subclass says otherwise."""
        return UCB(+1), UCB(-1)

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

    @property
    def remembered(self) -> int:
        """How many observations the model holds: the t of γ_t."""
        return self.played

    # What the base does ---------------------------------------------------------------------------------------------

    def start(self, setting: Setting) -> None:
        self.explore_f, self.explore_g = self.strategies()
        self.joint = self.explore_f.joint or (self.models_constraints and self.explore_g.joint)
        self.grid_points: Array | None = None
        if self.joint and isinstance(setting.actions, Box):  # paths are maximised over the candidates, as in the theory
            setting = replace(setting, actions=setting.actions.grid)
            self.grid_points = setting.finite.points
        m = setting.constraints if self.models_constraints else 0
        self.bound_f = _bound("B", self.B, setting.norm[:, :1], setting.sup[:, :1])
        self.bound_g = _bound("G", self.G, setting.norm[:, 1 : 1 + m], setting.sup[:, 1 : 1 + m])[:, :, None]
        rank = setting.finite.features.shape[1] if self.joint else 0
        self.explore_f.start(setting.streams, "explore f", (), rank)
        self.explore_g.start(setting.streams, "explore g", (m,), rank)
        super().start(setting)

    def cheapest(self, functions: int) -> SharedPosterior:
        s = self.setting
        return choice.cheapest(s.actions, s.replicates, functions, s.horizon, paths=self.joint)

    def lam_for(self, horizon: int) -> float:
        return 1 + 2 / horizon if self.lam == "theory" else float(self.lam)

    def begin_schedule(self, horizon: int) -> None:
        """Forget all data and set λ, β and γ for a horizon (once, or at every restart)."""
        super().begin_schedule(horizon)
        self.set_width()
        self.gains: Array | None = None
        if self.gain == "greedy":
            self.gains = greedy_gain(self.setting.actions, self.regulariser, horizon)
        elif self.gain == "rate":
            self.gains = gain_rate(self.setting.actions, horizon)

    def set_width(self) -> None:
        """Set β for the current λ, noise constants and number of events."""
        options: dict[str, Any] = {"alpha": self.alpha, "scale": self.beta_scale, "form": self.width_form()}
        self.width = Width(self.bounds, self.noise_constants(), lam=self.regulariser, shares=self.events(), **options)

    @property
    def bounds(self) -> Array:
        """B and G of everything modelled, (S, p)."""
        return np.concatenate([self.bound_f, self.bound_g[:, :, 0]], axis=1)

    def round_width(self, t: int) -> Array:
        """β_t of every modelled function, (S, p)."""
        gain = self.posterior.gain if self.gains is None else np.full(len(self.bound_f), self.gains[self.remembered])
        return self.width.at(gain)

    def believe(self, t: int) -> Belief:
        """The belief over all candidates before round t, with the round's widths and draws."""
        self.widths = self.round_width(t)
        self.explore_f.begin(t)
        if self.models_constraints:
            self.explore_g.begin(t)
        belief = super().believe(t)
        belief.f.path = self.explore_f.path(self.posterior, 0)
        if belief.g is not None:
            belief.g.path = self.explore_g.path(self.posterior, 1)
        return belief

    def view(self, mean: Array, variance: Array, points: Array | None) -> Belief:
        belief = super().view(mean, variance, points)
        belief.f.width = self.widths[:, :1]
        if belief.g is not None:
            belief.g.width = self.widths[:, 1:, None]
        return belief

    def ask(self, t: int) -> Actions:
        action = super().ask(t)
        return action if self.grid_points is None else self.grid_points[action]


def _bound(name: str, choice: Bound, norm: Array, sup: Array) -> Array:
    if not isinstance(choice, str):
        return np.full_like(norm, choice)
    bound = norm if choice == "norm" else sup
    if not np.isfinite(bound).all():
        raise CellFailure(f"{name} is 'norm', but a function is not in the kernel's space; use sup or a number")
    return bound
