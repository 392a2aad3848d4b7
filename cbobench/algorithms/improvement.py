"""Constrained expected improvement (Gardner et al. 2014; Gelbart et al. 2014), in logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.fitting import (
    Bilog,
    check_noise,
    find_obstacle,
    is_fitted,
    undecided_functions,
)
from cbobench.algorithms.score import PENDING, Pending, ScoreAlgorithm
from cbobench.errors import Misuse
from cbobench.gp.anchored import best_feasible, step_from_best
from cbobench.gp.beliefs import Belief, FunctionBelief
from cbobench.gp.box_actions import Box
from cbobench.gp.classes import are_silent
from cbobench.gp.fit import bilog
from cbobench.gp.kernels import Array, Mask
from cbobench.gp.posteriors.choice import Kind
from cbobench.gp.posteriors.fitted import FittedPosterior
from cbobench.gp.posteriors.interface import Posterior
from cbobench.gp.posteriors.separate import OwnNoise
from cbobench.gp.recommend import Goal
from cbobench.gp.single import NOISELESS, Noise, RunningScale, noise_variance, own_noise, true_noise
from cbobench.params import param, state
from cbobench.problems.base import Actions, Feedback, Problem

# below it 1 - |z| M(|z|), M the Mills ratio, is 1/z² to six digits, and rounding would spoil it
FAR = -1e3
# (1 + m) times a climb's second derivatives squared: 200 rounds in ten minutes of a core
MOST_WORK = 25_000_000
# Of steps to the boundary: the least and most deviations that they keep from it.
NARROWEST = 0.5
WIDEST = 4.0
KEPT = 0.5  # the share of its promise that a round must gain for another one of its kind
# By yes or no: the share of infeasible plays up to which one may be anywhere, and the least
# P(feasible) of plays beyond it.
RISK = 1 / 3
CAUTIOUS = 0.9
NEVER = -1e4  # the logarithm of next to no probability, of what is known to be infeasible
STEEP = 1e3  # how much a lack of it weighs, in logarithms


@ALGORITHMS.register("cei")
@dataclass(kw_only=True)
class ConstrainedEI(ScoreAlgorithm):
    """Maximises log EI(x) + Σ_j log Φ(-μ_j/σ_j), EI over the incumbent's value.

    The incumbent is, under noise, the largest posterior mean of f among the played actions with P(g
    <= 0) >= 1 - δ (Gelbart et al. 2014). Without one, Σ_j log Φ(-μ_j/σ_j) alone is maximised. It
    uses no confidence width and no norm.

    Differs from the papers:

    1. Fitted models are of each g_j, or of its bilog transform, as in SCBO, where that is likelier
       (see `fitting.Bilog`).
    2. With the problem's kernel, centres and amplitudes follow the running range of the
       observations.
    3. On a finite set without noise, nothing is played twice.
    4. On a box without noise, a round is a step from the best feasible point by models that are
       anchored there (see `gp.anchored`), or a search by the score. Both promise a gain over the
       best feasible f: the model's, or EI times the probability. A round that gains more than half
       of it is followed by another one of its kind, else by one of the other; an infeasible one
       has gained nothing. After an infeasible step, steps keep twice the distance from the
       boundary, after a feasible one half of it. Where no step gains by the models, the search
       goes on until a better point is found or the models are fitted anew.
    5. Fitted models take a constraint of two values, one of them above 0, for a class (see
       `gp.classes`), and make no steps. While more than a third of all plays were infeasible,
       points that it allows with a probability below 0.9 come behind all others. A constraint
       that was infeasible, with one value, at every play says nothing, and is left out.
    6. Where inputs are whole numbers or choices and there is no noise, an action that was played
       and found feasible is so with probability 1 for the incumbent: bounds are often met exactly.
    """

    source = "Gardner et al. (2014); Gelbart et al. (2014)"
    about = "expected improvement times the probability of feasibility"
    knows = ("kernel", "λ", "T (if λ is theory)", "R (if λ is true or auto)")
    needs = frozenset({"feedback at once"})
    late = True
    narrow = True
    models_levels = True

    pending: Pending = param("ignore", PENDING, quiet=True)

    lam: Noise | Literal["auto"] = param(
        "auto",
        "noise variance; scaled (ours): 0.01 of each model's squared amplitude, or fitted; "
        "theory: 1 + 2/T; true: R²; "
        "auto: scaled. With auto or true, nothing is played twice on a finite set without noise",
        above=0.0,
    )
    delta: float = param(
        0.05, "δ: an action counts as feasible where P(g <= 0) >= 1 - δ", above=0.0, below=1.0
    )
    scaled: bool = param(
        True, "centre and amplitude of the models from the running range; else 0 and 1"
    )

    bilog: Bilog = param(
        "by evidence",
        "model sign(g) ln(1 + |g|) in place of g (Eriksson & Poloczek 2021); by evidence: where "
        "fits find it likelier",
    )

    anchored: bool = param(
        True,
        "without noise, on a box with fitted models: step from the best feasible point by models "
        "anchored there (ours, see gp/anchored.py)",
    )

    incumbent: Array = state()
    exhausted: Mask | None = state()
    classes: Mask = state()
    silent: Mask = state()

    def check(self, problem: Problem) -> None:
        super().check(problem)
        check_noise(self.lam, problem)
        actions = problem.actions
        obstacle = find_obstacle(problem)
        if not isinstance(actions, Box) or not is_fitted(self.kernel, problem, obstacle):
            return
        m = problem.constraints
        work = (1 + m) * (actions.d * (actions.d + 1) // 2) ** 2
        if work > MOST_WORK:
            raise Misuse(
                f"cei on a box of {actions.d} inputs with {m} constraints takes over 3 s a round; "
                f"allowed: (1 + m) (d (d + 1)/2)² up to {MOST_WORK:,}, here {work:,}; take scbo or "
                "furbo"
            )

    @property
    def noise_rule(self) -> Noise:
        """`lam`, in which auto stands for scaled."""
        if self.lam == "auto":
            return "scaled"
        return self.lam

    def lam_for(self, horizon: float) -> float:
        return noise_variance(self.noise_rule, horizon)

    def posterior_kind(self, problem: Problem) -> Kind:
        if self._own_noise():
            return "observations"
        return super().posterior_kind(problem)

    def _own_noise(self) -> bool:
        lam = self.noise_rule
        return lam == "true" or (lam != "scaled" and self.scaled)

    def known_noise(self) -> Array:
        """Noise variances by function, (S, 1 + m), in units of the observations; fitted ones where
        they are a share of squared amplitudes.
        """
        noise = self.setting.noise
        if self.noise_rule == "true":
            return true_noise(noise)
        if self.noise_rule == "scaled":
            return super().known_noise()
        return np.full(noise.shape, self.lam_for(self.setting.horizon))

    def undecided(self) -> Mask | None:
        return undecided_functions(self.bilog, self.setting.constraints)

    def signed(self) -> Mask:
        return np.arange(1 + self.setting.constraints) > 0

    def make_posterior(self, functions: int) -> Posterior:
        """Model a constant 1 beside f and g, see `cbobench.gp.single`."""
        if not self._own_noise():
            return super().make_posterior(functions + 1)
        setting = self.setting
        return own_noise(setting.actions, 1.0, setting.replicates, functions, setting.observations)

    def prepare(self) -> None:
        replicates = self.setting.replicates
        self.running = RunningScale(replicates, 1 + self.setting.constraints, self.scaled)
        if self.box is None:
            self.played_mask = np.zeros((replicates, self.setting.finite.n), dtype=bool)
        self.failures = np.zeros(replicates)  # infeasible plays
        is_exact = true_noise(self.setting.noise).max(axis=1) <= NOISELESS
        self.noise_free = is_exact & (self.lam in ("auto", "true"))

        # A step needs exact values, fitted models to anchor, and its outcome before the next one.
        self.steps = (
            self.anchored
            and self.fits
            and self.box is not None
            and self.setting.parallel == 1
            and bool(self.noise_free.any())
        )
        # By replicate: the best feasible f, whether the round is a step, what it promises to gain
        # over that f, whether the next one may be a step, and the deviations that steps keep. A
        # round that others chose is no step, and promises more than can be kept: a step may follow.
        self.best = np.full(replicates, -np.inf)
        self.stepping = np.zeros(replicates, dtype=bool)
        self.promised = np.full(replicates, np.inf)
        self.step_next = np.zeros(replicates, dtype=bool)
        self.width = np.full(replicates, NARROWEST)
        # By replicate: from which observation, and models fitted when, no step gained.
        self.fruitless: dict[int, tuple[int | None, int]] = {}

    def targets(self, feedback: Feedback) -> Array:
        g = bilog(feedback.g) if self.bilog is True else feedback.g
        values = np.concatenate([feedback.f[:, None], g], axis=1)
        if self.fits:
            return values
        # Where f is not told, the constant is not either: then the centre stands for f.
        is_told = np.where(np.isnan(feedback.f), 0.0, 1.0)
        return np.concatenate([values, is_told[:, None]], axis=1)

    def absorb(self, played: Actions, feedback: Feedback) -> None:
        super().absorb(played, feedback)
        self.running.add(self.targets(feedback)[:, : 1 + self.setting.constraints])

        # A noise in units of the observations is another share of the amplitude once that moved.
        posterior = self.posterior if self.ahead is None else self.ahead.arrived
        if isinstance(posterior, OwnNoise):
            posterior.set_noise(self.running.unit_noise(self.known_noise()))
        passed = np.asarray((feedback.g <= 0).all(axis=1))
        self.failures += ~passed
        if self.box is None:
            self.played_mask[np.arange(len(played)), played] = True
        if self.steps:
            self._share_rounds(feedback.f, passed)

    def _share_rounds(self, f: Array, passed: Mask) -> None:
        """Set what the next round is for by what this one gained: f, (S,), and whether it was
        feasible.
        """
        kept = passed & (f - self.best > KEPT * self.promised)
        self.step_next = self.stepping == kept
        self.best = np.where(passed, np.maximum(self.best, f), self.best)
        width = np.where(passed, self.width / 2, self.width * 2).clip(NARROWEST, WIDEST)
        self.width = np.where(self.stepping, width, self.width)

    def view(self, mean: Array, variance: Array, points: Array | None) -> Belief:
        if self.fits:
            return super().view(mean, variance, points)
        moments, deviation = self.running.moments(mean, variance)
        return Belief(
            FunctionBelief(moments[:, 0], deviation[:, 0]),
            FunctionBelief(moments[:, 1:], deviation[:, 1:]),
        )

    def goal(self, mean: Array, variance: Array) -> Goal:
        if self.fits:
            return super().goal(mean, variance)
        f, g, of_g = super().goal(self.running.means(mean), variance)
        return f, g, of_g * self.running.amplitude[:, 1:, None] ** 2

    def begin(self, t: int, belief: Belief) -> None:
        """Set the incumbent's value, (S,): minus infinity if no played action is feasible
        enough.
        """
        self.exhausted = self._exhausted_actions()  # to be passed over
        shape = (self.setting.replicates, self.setting.constraints)
        self.classes = self.silent = np.zeros(shape, dtype=bool)
        self.incumbent = np.full(self.setting.replicates, -np.inf)
        if self.told == 0:
            return

        # On a finite set the belief is of all actions; on a box, of those that were played.
        if self.box is None:
            played_mask = self.played_mask
        else:
            mean, variance, played_mask = self.posterior.at_observations()
            belief = self.view(mean, variance, None)
        likely = self._likelihoods(belief).sum(axis=1)
        if self.fits:
            model = self._fitted()
            self.classes = model.classes[:, 1:]
            self.silent = are_silent(model.observed[:, 1:])
            # Without noise, what was seen to be feasible is: a class says no more than that, and
            # whole numbers often meet a bound exactly, where a model gives a probability of 1/2.
            if self.box is not None:
                passed = (model.observed[:, 1:] <= 0).all(axis=1)
                is_sure = (self.classes.any(axis=1) | self.box.held.any()) & self.noise_free
                likely = np.where(is_sure[:, None] & passed, 0.0, likely)

        # In logarithms, as a product of many probabilities may underflow.
        is_feasible = likely >= np.log1p(-self.delta)
        value = np.where(is_feasible & played_mask, belief.f.mean, -np.inf)
        self.incumbent = value.max(axis=1)

    def _likelihoods(self, belief: Belief) -> Array:
        """Return log P(g_j <= 0), (S, m, k); of what was measured without noise 0 or `NEVER`."""
        likely = log_probabilities(belief.constraint)
        if self.measured is None:
            return likely
        certain = np.where(self.measured <= 0, 0.0, NEVER)
        return np.where(np.isnan(self.measured), likely, certain)

    def _fitted(self) -> FittedPosterior:
        """Return the models of what has arrived, if they are fitted."""
        model = self.posterior if self.ahead is None else self.ahead.arrived
        return cast("FittedPosterior", model)

    def _exhausted_actions(self) -> Mask | None:
        """Return the actions (S, n) that have nothing more to tell: played ones, where there is no
        noise.

        They come behind all others, until there is no other. Otherwise the incumbent's small
        variance, which stands for noise that is not there, can be the best that is left to a model
        that is too sure of all the rest. A variance of 0 in place of it makes the model surer
        still: on a table of networks it stayed in the feasible corner.
        """
        if self.box is not None or not self.noise_free.any():
            return None
        return self.played_mask & (self.noise_free & ~self.played_mask.all(axis=1))[:, None]

    def maximise(self, t: int, box: Box, also: Array | None) -> tuple[Array, Array]:
        """Return the points to play and their scores; those of steps have the score 0."""
        if not self.steps:
            return super().maximise(t, box, also)
        steps, gains = self._take_steps()
        self.stepping = stepping = np.isfinite(gains)
        self.promised = gains
        if stepping.all():
            self.starts.round += 1  # as if the maximiser had been asked
            return steps, np.zeros(len(steps))
        ended = self.starts.ended
        points, achieved = super().maximise(t, box, also)
        # What the maximiser remembers of a replicate depends on no other.
        if self.starts.ended is not None:
            self.starts.ended[stepping] = np.nan if ended is None else ended[stepping]
        # Without an incumbent the score is no gain, and the search promises more than can be kept.
        offered = np.where(np.isfinite(self.incumbent), np.exp(achieved), np.inf)
        self.promised = np.where(stepping, gains, offered)
        return np.where(stepping[:, None], steps, points), np.where(stepping, 0.0, achieved)

    def _take_steps(self) -> tuple[Array, Array]:
        """Return points by models anchored at the best feasible ones, (S, d), and their predicted
        gains, (S,); NaN where no step is due, or none gains.
        """
        gains = np.full(self.setting.replicates, np.nan)
        points = np.full((len(gains), self.setting.actions.d), np.nan)
        model = self._fitted()
        box = cast("Box", self.box)
        # No smooth model leads along a class.
        due = self.noise_free & self.step_next & ~model.classes.any(axis=1)
        for s in np.flatnonzero(due).tolist():
            # Where no step gained, none will before a better point is found, or models are fitted.
            basis = best_feasible(model.observed[s]), model.fitted_at
            if basis == self.fruitless.get(s):
                continue
            width = float(self.width[s])
            step = step_from_best(
                model.points[s],
                model.observed[s],
                model.values[s],
                model.fits[s],
                width,
                box.floats,
            )
            if step is None:
                self.fruitless[s] = basis
                continue
            best = model.units[s, [cast("int", basis[0])]]
            points[s] = best[0]
            points[s, ~box.held], gains[s] = step
            if box.known is not None:
                points[s] = box.pull_inside(points[[s]], best)[0]
        return points, gains

    def score(self, belief: Belief) -> Array:
        # Without an incumbent the score is feasibility alone: any finite value stands for it.
        has_incumbent = np.isfinite(self.incumbent)
        best = np.where(has_incumbent, self.incumbent, 0.0)[:, None]
        improvement = log_expected_improvement(belief.f.mean, belief.f.deviation, best)
        likely = np.where(self.silent[..., None], 0.0, self._likelihoods(belief))
        score = np.where(has_incumbent[:, None], improvement, 0.0) + likely.sum(axis=1)

        # After many failures a play that a class makes improbable comes behind all others.
        if self.classes.any():
            of_classes = np.where(self.classes[..., None], likely, 0.0).sum(axis=1)
            lack = np.minimum(of_classes - np.log(CAUTIOUS), 0.0)
            careful = has_incumbent & (self.failures > RISK * self.told)
            score += np.where(careful[:, None], STEEP * lack, 0.0)
        if self.exhausted is None:
            return score

        # Behind all others, and finite like them.
        return np.where(self.exhausted, score.min(axis=1, keepdims=True) - 1.0, score)


def log_probabilities(g: FunctionBelief) -> Array:
    """log P(g_j <= 0) of constraints (S, m, k)."""
    from scipy.special import log_ndtr  # imported late: SciPy takes long to load

    return log_ndtr(-g.mean / g.deviation)


def log_feasibility(g: FunctionBelief) -> Array:
    """log P(every g_j <= 0), (S, k), of independent constraints (S, m, k)."""
    return log_probabilities(g).sum(axis=1)


def log_expected_improvement(mean: Array, deviation: Array, best: Array | float) -> Array:
    """log E[X - best]^+ for X ~ N(mean, deviation²): log deviation + log(φ(z) + z Φ(z)), z = (mean
    - best)/deviation.

    It is finite where the expectation itself underflows.
    """
    from scipy.special import erfcx, ndtr

    z = (mean - best) / deviation
    log_density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    # Arguments stay where a formula holds, because `np.where` evaluates all three everywhere.
    near = np.maximum(z, -1.0)
    tail = np.clip(z, FAR, -1.0)
    plain = np.log(np.exp(-0.5 * near**2) / np.sqrt(2 * np.pi) + near * ndtr(near))
    in_tail = log_density + np.log1p(tail * np.sqrt(np.pi / 2) * erfcx(-tail / np.sqrt(2)))
    far = log_density - 2 * np.log(np.maximum(-z, 1.0))
    return np.log(deviation) + np.where(z > -1.0, plain, np.where(z > FAR, in_tail, far))
