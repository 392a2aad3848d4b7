"""Score algorithms over confidence bounds: the widths and explorations that UCB, Thompson and random widths share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cbobench.algorithms.base import NONE, Setting
from cbobench.algorithms.fitting import check_fit, is_fitted
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.beliefs import Belief
from cbobench.gp.box import Box
from cbobench.gp.explore import UCB, Explore
from cbobench.gp.gain import GainName, gain_rate, greedy_gain
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors import choice
from cbobench.gp.posteriors.contract import Posterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.gp.posteriors.separate import KnownNoise
from cbobench.gp.posteriors.shared import SharedPosterior
from cbobench.gp.single import true_noise
from cbobench.gp.width import Width, WidthForm
from cbobench.params import param, state
from cbobench.problems.base import Actions, Feedback, Problem

Bound = float | Literal["norm", "sup"]


@dataclass(kw_only=True)
class OptimisticReward(ScoreAlgorithm):
    """A score over a bound or a sample of f, as wide as a concentration inequality asks.

    The parameters here decide the outcome as much as the algorithm does. They are recorded with every cell, and a
    suite sets them for all its algorithms under `shared:`. Theorems are of the kernel that is given, the default; with
    `kernel: fit` all widths are heuristics (see `cbobench.algorithms.fitting`).
    """

    lam: float | Literal["theory", "true"] = param(
        "theory", "regulariser λ, the models' noise variance; theory: 1 + 2/T; true: R² of each function", above=0.0
    )
    B: Bound = param(
        "norm", "bound B of the reward: its RKHS norm (regularised on a box), its largest value, or a number", above=0.0
    )
    R: float | Literal["true"] = param("true", "noise constant R: the problem's, or a number", at_least=0.0)
    alpha: float = param(0.1, "failure probability α of all confidence bounds together", above=0.0, below=1.0)
    beta: float | WidthForm = param("theory", "width β: theory, self-normalised (any λ), or a constant", at_least=0.0)
    beta_scale: float = param(1.0, "factor on the width β", at_least=0.0)
    gain: GainName = param("played", "information gain γ in β: of the played actions, greedy bound, or the rate")

    explore_f: Explore = state()

    def check(self, problem: Problem) -> None:
        super().check(problem)
        check_fit(self.kernel, problem, any(strategy.joint for strategy in self.strategies()))
        if self.gain == "rate":
            gain_rate(problem.actions, 1)
        if self.lam == "true" and not is_fitted(self.kernel, problem.actions):
            self.check_own_noise(problem)

    def check_own_noise(self, problem: Problem) -> None:
        """Raises `Misuse` where models cannot have a noise variance each."""
        why = (
            "feedback is delayed"
            if "feedback at once" not in problem.offers()
            else "the method samples paths"
            if any(strategy.joint for strategy in self.strategies())
            else "gain is greedy, of one λ for all functions"
            if self.gain == "greedy"
            else ""
        )
        if why:
            raise Misuse(f"lam is true, a noise variance for each function, but {why}; allowed: theory, or a number")

    # What a subclass may say ----------------------------------------------------------------------------------------

    def strategies(self) -> tuple[Explore, ...]:
        """Exploration of f; optimistic unless a subclass says otherwise."""
        return (UCB(+1),)

    def width_form(self) -> float | WidthForm:
        """Which β `theory` means."""
        return self.beta

    @property
    def bounds(self) -> Array:
        """B of what is explored, (S, q)."""
        return self.bound_f

    def noise_constants(self) -> Array:
        """R of what is explored, (S, q)."""
        q = self.bounds.shape[1]
        return self.setting.noise[:, :q] if self.R == "true" else np.full((self.setting.replicates, q), float(self.R))

    def events(self) -> int:
        """How many bounds share α: one per function that is explored."""
        return self.bounds.shape[1]

    @property
    def remembered(self) -> int:
        """How many observations the model holds: the t of γ_t."""
        return self.played

    # What the base does ---------------------------------------------------------------------------------------------

    def start(self, setting: Setting) -> None:
        self.explorations = self.strategies()
        self.explore_f = self.explorations[0]
        self.joint = any(strategy.joint for strategy in self.explorations)
        self.grid_points: Array | None = None
        if self.joint and isinstance(setting.actions, Box):  # paths are maximised over the candidates, as in the theory
            setting = replace(setting, actions=setting.actions.grid)
            self.grid_points = setting.finite.points
        rank = 0
        if self.joint:
            fitted = is_fitted(self.kernel, setting.actions)
            rank = setting.finite.n if fitted else setting.finite.features.shape[1]
        each = (("explore f", ()), ("explore g", (setting.constraints,)))
        for strategy, (role, shape) in zip(self.explorations, each, strict=False):
            strategy.start(setting.streams, role, shape, rank)
        self.set_bounds(setting)
        super().start(setting)

    def posterior_kind(self) -> choice.Kind:
        joint = any(strategy.joint for strategy in self.strategies())
        return "features" if joint and self.kernel == "given" else super().posterior_kind()

    def set_bounds(self, setting: Setting) -> None:
        self.bound_f = read_bound("B", self.B, setting.norm[:, :1], setting.sup[:, :1])

    def cheapest(self, functions: int) -> SharedPosterior:
        s = self.setting
        return choice.cheapest(s.actions, s.replicates, functions, s.horizon, self.lam_for(s.horizon), paths=self.joint)

    def lam_for(self, horizon: int) -> float:
        return 1 + 2 / horizon if self.lam == "theory" else 1.0 if self.lam == "true" else float(self.lam)

    def known_noise(self) -> Array | None:
        """λ of each function, (S, 1 + m); None for `theory`, which is no noise variance."""
        noise = self.setting.noise
        if self.lam == "true":
            return true_noise(noise)
        return None if self.lam == "theory" else np.full(noise.shape, self.lam)

    def make_posterior(self, functions: int) -> Posterior:
        if self.lam != "true":
            return super().make_posterior(functions)
        s = self.setting
        each = [ObservationPosterior(s.actions, 1.0, s.replicates, 1, s.horizon) for _ in range(functions)]
        return KnownNoise(each, true_noise(s.noise[:, :functions]))

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
        """Set β for the current λ, bounds, noise constants and number of events."""
        options: dict[str, Any] = {"alpha": self.alpha, "scale": self.beta_scale, "form": self.width_form()}
        lam = true_noise(self.setting.noise[:, : self.bounds.shape[1]]) if self.lam == "true" else self.regulariser
        self.width = Width(self.bounds, self.noise_constants(), lam=lam, shares=self.events(), **options)

    def round_width(self, t: int) -> Array:
        """β_t of what is explored, (S, q)."""
        gain = self.posterior.gain if self.gains is None else np.full(len(self.bound_f), self.gains[self.remembered])
        return self.width.at(gain)

    def believe(self, t: int) -> Belief:
        """The belief over all candidates before round t, with the round's widths and draws."""
        self.widths = self.round_width(t)
        for strategy in self.explorations:
            strategy.begin(t)
        belief = super().believe(t)
        belief.f.path = self.explore_f.path(self.posterior, 0)
        return belief

    def view(self, mean: Array, variance: Array, points: Array | None) -> Belief:
        belief = super().view(mean, variance, points)
        belief.f.width = self.widths[:, :1]
        return belief

    def ask(self, t: int) -> Actions:
        action = super().ask(t)
        return action if self.grid_points is None else self.grid_points[action]

    def observe(self, t: int, actions: Actions, feedback: Feedback) -> None:
        if self.grid_points is not None:  # a design lies on these points
            actions = np.array([((self.grid_points - x) ** 2).sum(axis=1).argmin() for x in actions])
        super().observe(t, actions, feedback)

    def recommend(self, t: int) -> Actions | None:
        action = super().recommend(t)
        if self.grid_points is None or action is None:
            return action
        return np.where((action == NONE)[:, None], np.nan, self.grid_points[action])


@dataclass(kw_only=True)
class Optimistic(OptimisticReward):
    """A score over bounds or samples of f and of every g_j."""

    G: Bound = param("norm", "bound G of each constraint, read like B", above=0.0)

    def strategies(self) -> tuple[Explore, Explore]:
        """Exploration of f and of g; optimistic for both unless a subclass says otherwise."""
        return UCB(+1), UCB(-1)

    @property
    def bounds(self) -> Array:
        """B and every G_j, (S, 1 + m)."""
        return np.concatenate([self.bound_f, self.bound_g[:, :, 0]], axis=1)

    def set_bounds(self, setting: Setting) -> None:
        super().set_bounds(setting)
        self.bound_g = read_bound("G", self.G, setting.norm[:, 1:], setting.sup[:, 1:])[:, :, None]

    @property
    def explore_g(self) -> Explore:
        return self.explorations[1]

    def believe(self, t: int) -> Belief:
        belief = super().believe(t)
        belief.constraint.path = self.explore_g.path(self.posterior, 1)
        return belief

    def view(self, mean: Array, variance: Array, points: Array | None) -> Belief:
        belief = super().view(mean, variance, points)
        belief.constraint.width = self.widths[:, 1:, None]
        return belief


def read_bound(name: str, choice: Bound, norm: Array, sup: Array) -> Array:
    """Bounds (S, q) as a parameter says: a number, or what is known of the functions."""
    if not isinstance(choice, str):
        return np.full_like(norm, choice)
    bound = norm if choice == "norm" else sup
    if not np.isfinite(bound).all():
        why = "a function is not in the kernel's space, or too rough to say"
        raise CellFailure(f"{name} reads a norm, but {why}; use sup or a number")
    return bound
