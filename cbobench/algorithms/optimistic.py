"""Scores over confidence bounds: the widths and explorations that UCB, Thompson sampling and random
widths share.

`OptimisticReward` bounds f, `Optimistic` bounds f and every g_j. CONFIG, EPBO and PDBO add little:
they maximise the upper confidence bound of f subject to the lower confidence bounds of g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import NONE, Setting
from cbobench.algorithms.fitting import Task, check_noise, find_obstacle
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.beliefs import UCB, Belief, Explore, Parts
from cbobench.gp.box_actions import Box
from cbobench.gp.confidence import GainName, Width, WidthForm, gain_rate, greedy_gain
from cbobench.gp.kernels import Array, Mask, extend_features
from cbobench.gp.maximise import WALL
from cbobench.gp.posteriors import choice
from cbobench.gp.posteriors.features import ExtendedPosterior
from cbobench.gp.posteriors.interface import SharedPosterior
from cbobench.gp.single import noise_variance, true_noise
from cbobench.params import param, state
from cbobench.problems.base import Actions, Fact, Feedback, Problem

EMPTY = -1e-9  # tolerance on -Σ [LCB_g]⁺ within which a polished point counts as allowed

Bound = float | Literal["norm", "sup"]


@dataclass(kw_only=True)
class OptimisticReward(ScoreAlgorithm):
    """A score over a bound or a sample of f, with a width from a concentration inequality.

    These parameters decide the outcome as much as the algorithm does. They are recorded with every
    cell, and a suite sets them for all its algorithms under `shared:`. Theorems concern a known
    kernel; with a fitted one all widths are heuristics (see `cbobench.algorithms.fitting`).
    """

    lam: float | Literal["theory", "true"] = param(
        "theory",
        "regulariser λ, the models' noise variance; theory: 1 + 2/T; true: R² of each function "
        "(fitted models only)",
        above=0.0,
    )
    B: Bound = param(
        "norm",
        "bound B of the reward: its RKHS norm (regularised on a box), its largest value, or a "
        "number",
        above=0.0,
        varies=True,
    )
    R: float | Literal["true"] = param(
        "true", "noise constant R: the problem's, or a number", at_least=0.0, varies=True
    )
    alpha: float = param(
        0.1,
        "failure probability α of all confidence bounds together",
        above=0.0,
        below=1.0,
        varies=True,
    )
    beta: float | WidthForm = param(
        "theory",
        "width β: theory, self-normalised (any λ), or a constant",
        at_least=0.0,
        varies=True,
    )
    beta_scale: float = param(1.0, "factor on the width β", at_least=0.0, varies=True)
    gain: GainName = param(
        "played", "information gain γ in β: of the played actions, greedy bound, or the rate"
    )

    explore_f: Explore = state()

    def check(self, problem: Problem) -> None:
        super().check(problem)
        lacking = [
            name
            for name in self.reads()
            if name in problem.unknown and isinstance(getattr(self, name), str)
        ]
        if lacking:
            numbers = ", ".join(f"{name}: NUMBER" for name in lacking)
            raise Misuse(
                f"it reads {', '.join(lacking)} of the problem, which nobody knows; give {numbers}"
            )
        check_noise(self.lam, problem)
        # Asked for its refusal alone: some kernels have no rate.
        if self.gain == "rate":
            gain_rate(problem.actions, 1)
        if self.lam == "true" and not self.is_fitted(problem):
            raise Misuse(
                "lam is true, a noise variance for each function, but models with the problem's "
                "kernel share one; allowed: theory, or a number"
            )

    def obstacle(self, task: Task) -> str:
        return find_obstacle(task, any(strategy.joint for strategy in self.strategies()))

    # What a subclass may say ----------------------------------------------------------------------

    def strategies(self) -> tuple[Explore, ...]:
        """Return the exploration of f; optimistic unless a subclass says otherwise."""
        return (UCB(+1),)

    def width_form(self) -> float | WidthForm:
        """Return which β `theory` means."""
        return self.beta

    def reads(self) -> tuple[Fact, ...]:
        """Return which facts this method must know: of a stated width none."""
        if isinstance(self.beta, str):
            return ("B", "R")
        return ()

    def bound(self, name: Fact, norm: Array, sup: Array) -> Array:
        """Return bounds (S, q) from B or G (see `read_bound`); 0 where the method reads none."""
        if name not in self.reads():
            return np.zeros_like(norm)
        return read_bound(name, getattr(self, name), norm, sup)

    @property
    def bounds(self) -> Array:
        """Return B of the explored functions, (S, q)."""
        return self.bound_f

    def noise_constants(self) -> Array:
        """Return R of the explored functions, (S, q)."""
        q = self.bounds.shape[1]
        if isinstance(self.R, str):
            return self.setting.noise[:, :q]
        return np.full((self.setting.replicates, q), self.R)

    def events(self) -> int:
        """Return how many bounds share α: one per explored function."""
        return self.bounds.shape[1]

    @property
    def remembered(self) -> int:
        """Return how many observations the model holds: the t of γ_t."""
        return self.played

    # What the base does ---------------------------------------------------------------------------

    def start(self, setting: Setting) -> None:
        self.fits = self.is_fitted(setting)
        self.explorations = self.strategies()

        # the second is of g, if any
        self.explore_f = self.explorations[0]
        self.explore_g = self.explorations[-1]
        # Strategies that draw nothing are not asked every round.
        self.drawing = [
            strategy for strategy in self.explorations if type(strategy).begin is not Explore.begin
        ]

        self.joint = any(strategy.joint for strategy in self.explorations)
        self.grid_points: Array | None = None  # type: ignore[misc]
        # (S, c, d): actions of each replicate's own, numbered from n on
        self.design: Array | None = None
        # paths are maximised over the candidates, as in the theory
        if self.joint and isinstance(setting.actions, Box):
            self.design = setting.design
            box = setting.actions
            setting = replace(setting, actions=box.grid)
            self.grid_points = setting.finite.points  # type: ignore[misc]
            if self.design is not None and not self.fits:
                self.further = design_features(self.design, box)

        # The length of the draw behind a path: fitted models have no features to draw in.
        rank = 0
        if self.joint:
            rank = setting.finite.n if self.fits else setting.finite.features.shape[1]
            if self.design is not None:
                rank += self.design.shape[1]
        roles = (("explore f", ()), ("explore g", (setting.constraints,)))
        for strategy, (role, shape) in zip(self.explorations, roles, strict=False):
            strategy.start(setting.streams, role, shape, rank)

        # The base begins a schedule, whose width reads the bounds.
        self.set_bounds(setting)
        super().start(setting)

    def posterior_kind(self, problem: Problem) -> choice.Kind:
        kind = super().posterior_kind(problem)
        joint = any(strategy.joint for strategy in self.strategies())
        # Paths are drawn in features, however cheap another posterior is.
        if joint and kind == "cheapest":
            return "features"
        return kind

    def set_bounds(self, setting: Setting) -> None:
        self.bound_f = self.bound("B", setting.norm[:, :1], setting.sup[:, :1])

    def cheapest(self, functions: int) -> SharedPosterior:
        s = self.setting
        if self.design is not None:
            features = s.finite.features
            prior = s.finite.prior
            return ExtendedPosterior(features, self.further, 1.0, s.replicates, functions, prior)
        return choice.make_cheapest(
            s.actions,
            s.replicates,
            functions,
            s.observations,
            self.lam_for(s.horizon),
            paths=self.joint,
        )

    def further_units(self) -> Array | None:
        if self.design is None:
            return None
        assert self.grid_points is not None
        # as in `Finite.units`
        low = self.grid_points.min(axis=0)
        high = self.grid_points.max(axis=0)
        return (self.design - low) / (high - low)

    def lam_for(self, horizon: float) -> float:
        return noise_variance(self.lam, horizon)

    def known_noise(self) -> Array:
        """λ of each function, (S, 1 + m); fitted for `theory`, which is no noise variance."""
        noise = self.setting.noise
        if self.lam == "true":
            return true_noise(noise)
        if self.lam == "theory":
            return super().known_noise()
        return np.full(noise.shape, self.lam)

    def begin_schedule(self, horizon: int) -> None:
        """Forget all data and set λ, β and γ for a horizon, at the start and at every restart."""
        super().begin_schedule(horizon)
        self.set_width()
        most = horizon + self.setting.past
        self.gains: Array | None = None
        if self.gain == "greedy":
            self.gains = greedy_gain(self.setting.actions, self.regulariser, most)
        elif self.gain == "rate":
            self.gains = gain_rate(self.setting.actions, most)

    def set_width(self) -> None:
        """Set β for the current λ, bounds, noise constants and number of events."""
        lam: Array | float = self.regulariser
        if self.lam == "true":
            lam = true_noise(self.setting.noise[:, : self.bounds.shape[1]])

        # Where the width is stated nobody may know R, which is infinite then.
        noise = self.noise_constants() if "R" in self.reads() else np.zeros_like(self.bounds)
        self.width = Width(
            self.bounds,
            noise,
            alpha=self.alpha,
            scale=self.beta_scale,
            form=self.width_form(),
            lam=lam,
            shares=self.events(),
        )

    def round_width(self, t: int) -> Array:
        """Return β_t of the explored functions, (S, q)."""
        if self.gains is None:
            gain = self.posterior.gain
        else:
            gain = np.full(len(self.bound_f), self.gains[self.remembered])
        return self.width.at(gain)

    def believe(self, t: int) -> Belief:
        """Return the belief over all candidates before round t, with the round's widths and
        draws.
        """
        self.widths = self.round_width(t)
        for strategy in self.drawing:
            strategy.begin(t)
        belief = self.view(self.posterior.mean, self.posterior.variance, None)
        if self.joint:
            belief.f.path = self.explore_f.path(self.posterior, 0)
            if len(self.explorations) > 1:
                belief.constraint.path = self.explorations[1].path(self.posterior, 1)
        return belief

    def observe(self, t: int, actions: Actions, feedback: Feedback) -> None:
        """On a box, a method that samples paths there knows the round's points from
        `Setting.design`.
        """
        if self.grid_points is not None:
            # Paths were extended at the start to the points of the design, and to no others.
            place = self.setting.past + t - 1
            if self.design is None or not np.array_equal(actions, self.design[:, place]):
                raise CellFailure(
                    f"the points of round {t} are not those of the setting's design; name them "
                    "there"
                )
            actions = np.full(len(actions), len(self.grid_points) + place)
        super().observe(t, actions, feedback)

    def recommend(self, t: int) -> Actions | None:
        action = super().recommend(t)
        if self.grid_points is None or action is None:
            return action
        return np.where((action == NONE)[:, None], np.nan, self._points(action))

    def _points(self, actions: Actions) -> Array:
        """Return the points of the box (S, d) that candidates and the design's actions are,
        (S,).
        """
        assert self.grid_points is not None
        n = len(self.grid_points)
        # Indices are cut to their ranges because both alternatives are read everywhere.
        points = self.grid_points[np.minimum(actions, n - 1)]
        if self.design is None:
            return points
        further = self.design[np.arange(len(actions)), np.maximum(actions - n, 0)]
        return np.where((actions >= n)[:, None], further, points)


@dataclass(kw_only=True)
class Optimistic(OptimisticReward):
    """A score over bounds or samples of f and of every g_j."""

    G: Bound = param("norm", "bound G of each constraint, read like B", above=0.0, varies=True)

    def strategies(self) -> tuple[Explore, Explore]:
        """Return the explorations of f and of g; optimistic for both unless a subclass says
        otherwise.
        """
        return UCB(+1), UCB(-1)

    def reads(self) -> tuple[Fact, ...]:
        if isinstance(self.beta, str):
            return (*super().reads(), "G")
        return ()

    @property
    def bounds(self) -> Array:
        """Return B and every G_j, (S, 1 + m)."""
        return np.concatenate([self.bound_f, self.bound_g[..., 0]], axis=1)

    def set_bounds(self, setting: Setting) -> None:
        super().set_bounds(setting)
        self.bound_g = self.bound("G", setting.norm[:, 1:], setting.sup[:, 1:])[..., None]


def design_features(design: Array, box: Box) -> Array:
    """Return features (S, c, r + c) of points (S, c, d) of a box beside those of its grid (see
    `extend_features`).
    """
    grid = box.grid
    kernel = box.kernel
    assert grid.points is not None
    candidates = box.unit(grid.points)
    features = []
    for units in box.unit(design):
        covariance = kernel(units, units)
        features.append(
            extend_features(grid.features, grid.prior, kernel(units, candidates), covariance)
        )
    return np.stack(features)


def read_bound(name: str, choice: Bound, norm: Array, sup: Array) -> Array:
    """Return bounds (S, q) from a parameter: a number, or the known value of the functions."""
    if not isinstance(choice, str):
        return np.full_like(norm, choice)
    bound = norm if choice == "norm" else sup
    if not np.isfinite(bound).all():
        why = "a function is not in the kernel's space, or too rough to say"
        raise CellFailure(f"{name} reads a norm, but {why}; use sup or a number")
    return bound


def theory_window(setting: Setting, lam: float) -> int:
    """Return W = γ_T^(1/4) √(T / P_T), at least 1 and at most T; T if nothing moves.

    P_T is the largest over f and g_j of Σ_t |f_{t+1} - f_t|_k (Guo et al. 2022, Sec. 6; Deng et al.
    2022), and γ_T the greedy bound of the information gain.

    Raises:
        CellFailure: P_T is infinite, or replicates differ in it; they share a window, which must
            not depend on the block.
    """
    horizon = setting.horizon
    moves = [norms for last_round, norms in setting.changes if last_round < horizon]
    variations = np.sum(moves, axis=0).max(axis=1) if moves else np.zeros(1)
    if not np.isfinite(variations).all():
        raise CellFailure(
            "the window reads norms of the functions' moves, but one is infinite; give it as a "
            "number"
        )

    # A window for all seeds: which of them share a block must not decide it.
    if np.ptp(variations) > 1e-9 * variations.max():
        raise CellFailure(
            "the seeds' functions move by different amounts; give the window or restart period "
            "as a number"
        )

    # If nothing moves, old data stay true.
    variation = float(variations[0])
    if variation == 0:
        return horizon
    gain = float(greedy_gain(setting.actions, lam, horizon)[-1])
    return min(horizon, max(1, math.ceil(gain**0.25 * math.sqrt(horizon / variation))))


@ALGORITHMS.register("config")
@dataclass(kw_only=True)
class CONFIG(Optimistic):
    """CONFIG: argmax UCB_f over {x : LCB_{g_j}(x) <= 0 for all j}.

    An empty set means that the problem is declared infeasible (with probability 1 - α, rightly). On
    a box the set counts as empty if it contains neither a candidate nor a polished point.

    Differs from the paper:

    1. The paper stops at the declaration. Here it is recorded, and the round plays argmin Σ_j
       [LCB_{g_j}]⁺. With `stop_when_infeasible` it stops as far as a bandit can: it repeats the
       action of the round before (in round 1 the argmin) to the end.
    """

    source = "Xu et al. (2023)"
    about = "constrained optimism; declares infeasibility"
    knows = ("kernel", "λ", "B", "G", "R", "T (through λ)")

    stop_when_infeasible: bool = param(
        False, "keep the last action from the declaration on; false: argmin Σ [LCB_g]⁺"
    )

    declared: Mask = state()

    def prepare(self) -> None:
        self.declared = np.zeros(self.setting.replicates, dtype=bool)

    def begin(self, t: int, belief: Belief) -> None:
        highest = self.explore_g(belief.constraint).max(axis=1, initial=-np.inf)
        self.empty = np.minimum.reduce(highest, axis=1) > 0  # judged by the candidates
        self.hidden = np.zeros_like(self.empty)  # whether the set holds only a polished point

    def parts(self, belief: Belief) -> Parts:
        f = self.explore_f(belief.f)
        g = self.explore_g(belief.constraint)
        # An infinite price would leave nothing to climb where no candidate is allowed.
        smooth = np.where(self.empty[:, None], 0.0, f)
        wall = np.where(self.hidden, WALL, np.inf)
        price = np.where(self.empty, 1.0, wall)[:, None].repeat(self.setting.constraints, axis=1)
        return Parts(smooth, g, price)

    def maximise(self, t: int, box: Box, also: Array | None) -> tuple[Array, Array]:
        """If only a polished point lies in the set, the set is not empty: climb again for f, from
        that point.
        """
        first, violation = super().maximise(t, box, also)
        self.hidden = self.empty & (violation >= EMPTY)
        if not self.hidden.any():
            return first, violation
        self.empty &= ~self.hidden
        second, reached = super().maximise(t, box, first if self.played else None)
        points = np.where(self.hidden[:, None], second, first)
        return points, np.where(self.hidden, reached, violation)

    def keeps(self) -> Mask | None:
        # Only now is it known whether a polished point is allowed.
        self.declared |= self.empty & (self.achieved < EMPTY)
        waiting = super().keeps()
        if not self.stop_when_infeasible:
            return waiting
        if waiting is None:
            return self.declared
        return self.declared | waiting

    @property
    def declared_infeasible(self) -> Mask:
        return self.declared


@ALGORITHMS.register("epbo")
@dataclass(kw_only=True)
class EPBO(Optimistic):
    """EPBO: argmax UCB_f - ρ Σ_j [LCB_{g_j}]⁺, exact for a large enough ρ, which is unknown."""

    source = "Lu & Paulson (2022)"
    about = "exact penalty over optimistic bounds"
    knows = ("kernel", "λ", "B", "G", "R", "ρ", "T (through λ)")

    rho: float = param(1.0, "penalty ρ", at_least=0.0, varies=True)

    def parts(self, belief: Belief) -> Parts:
        price = np.full((self.setting.replicates, self.setting.constraints), self.rho)
        return Parts(self.explore_f(belief.f), self.explore_g(belief.constraint), price)


@ALGORITHMS.register("primal-dual-bo")
@dataclass(kw_only=True)
class PrimalDualBO(Optimistic):
    """PDBO: argmax UCB_f - Σ_j λ_j LCB_{g_j}; λ ← [λ + η (g + ε)]⁺ without an upper bound, unlike
    CKB.

    g in the dual step is LCB_g(x_t).

    Differs from the paper:

    1. With `form: observed` g in the dual step is the observed cost, as in the released code.
    """

    source = "Xu et al. (2023b)"
    about = "primal-dual over optimistic bounds, dual variable not truncated"
    knows = ("kernel", "λ", "B", "G", "R", "T")

    form: Literal["lcb", "observed"] = param("lcb", "what the dual step uses")
    eta: float | Literal["theory"] = param(
        "theory", "dual step η; theory: 1/√T", above=0.0, varies=True
    )
    eps: float = param(
        0.0, "tightening ε of the constraint in the dual step", at_least=0.0, varies=True
    )
    start_dual: float = param(0.0, "first value of every dual variable", at_least=0.0, varies=True)

    dual: Array = state()

    def prepare(self) -> None:
        self.dual = np.full((self.setting.replicates, self.setting.constraints), self.start_dual)
        self.step = 1 / np.sqrt(self.setting.horizon) if isinstance(self.eta, str) else self.eta

    def score(self, belief: Belief) -> Array:
        g = self.explore_g(belief.constraint)
        return self.explore_f(belief.f) - (self.dual[:, :, None] * g).sum(axis=1)

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        if self.form == "observed":
            g = feedback.costs()
        else:
            g = self.explore_g(chosen.constraint)[:, :, 0]
        self.dual = np.maximum(self.dual + self.step * (g + self.eps), 0.0)

    @property
    def duals(self) -> Array:
        return self.dual
