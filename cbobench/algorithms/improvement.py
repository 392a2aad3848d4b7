"""Constrained expected improvement (Gardner et al. 2014; Gelbart et al. 2014), in logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.pending import Pending
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.gp.beliefs import Belief, FunctionBelief
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.choice import Kind
from cbobench.gp.posteriors.contract import Posterior
from cbobench.gp.recommend import Goal
from cbobench.gp.single import Noise, RunningScale, noise_variance, own_noise
from cbobench.params import param, state
from cbobench.problems.base import Feedback

FAR = -1e3  # below it 1 - |z| M(|z|), M the Mills ratio, is 1/z² to six digits, and rounding would spoil it


@ALGORITHMS.register("cei")
@dataclass(kw_only=True)
class ConstrainedEI(ScoreAlgorithm):
    """Maximises log EI(x) + Σ_j log Φ(-μ_j/σ_j), EI over the incumbent's value.

    The incumbent is, under noise, the largest posterior mean of f among the played actions with P(g <= 0) >= 1 - δ
    (Gelbart et al. 2014). Without one, Σ_j log Φ(-μ_j/σ_j) alone is maximised. Centres and amplitudes of the models
    follow the running range of the observations; the lengthscale is not fitted, the kernel being the one that all
    methods here are given. No confidence width is used, and no norm.
    """

    source = "Gardner et al. (2014); Gelbart et al. (2014)"
    about = "expected improvement times the probability of feasibility"
    knows = ("kernel", "λ", "T (if λ is theory)")
    needs = frozenset({"feedback at once"})
    pending: ClassVar[Pending] = "ignore"  # type: ignore[misc]

    lam: Noise = param(
        "scaled", "noise variance; scaled (ours): 0.01 of each model's squared amplitude; theory: 1 + 2/T", above=0.0
    )
    delta: float = param(0.05, "δ: an action counts as feasible where P(g <= 0) >= 1 - δ", above=0.0, below=1.0)
    scaled: bool = param(True, "centre and amplitude of the models from the running range; else 0 and 1")

    incumbent: Array = state()

    def lam_for(self, horizon: int) -> float:
        return noise_variance(self.lam, horizon)

    def posterior_kind(self) -> Kind:
        return "cheapest" if self.lam == "scaled" or not self.scaled else "observations"

    def make_posterior(self, functions: int) -> Posterior:
        """With a constant 1 beside f and g, see `cbobench.gp.single`."""
        self.own = None
        if self.lam == "scaled" or not self.scaled:
            return super().make_posterior(functions + 1)
        setting = self.setting
        self.own = own_noise(setting.actions, 1.0, setting.replicates, functions, setting.horizon)
        return self.own

    def prepare(self) -> None:
        replicates = self.setting.replicates
        self.running = RunningScale(replicates, 1 + self.setting.constraints, self.scaled)
        if self.box is None:
            self.seen = np.zeros((replicates, self.setting.finite.n), dtype=bool)

    def targets(self, feedback: Feedback) -> Array:
        return np.concatenate([super().targets(feedback), np.ones_like(feedback.f)[:, None]], axis=1)

    def condition(self, t: int, feedback: Feedback) -> None:
        super().condition(t, feedback)
        self.running.add(super().targets(feedback))
        if self.own is not None:
            self.own.set_noise(self.running.unit_noise(self.regulariser))
        if self.box is None:
            self.seen[np.arange(len(self.chosen)), self.chosen] = True

    def view(self, mean: Array, variance: Array, points: Array | None) -> Belief:
        moments, deviation = self.running.moments(mean, variance)
        return Belief(FunctionBelief(moments[:, 0], deviation[:, 0]), FunctionBelief(moments[:, 1:], deviation[:, 1:]))

    def goal(self, mean: Array, variance: Array) -> Goal:
        means, of_g = self.running.means(mean), variance[:, 1:] if variance.ndim == 3 else variance[:, None]
        return means[:, 0], means[:, 1:], of_g * self.running.amplitude[:, 1:, None] ** 2

    def begin(self, t: int, belief: Belief) -> None:
        """The incumbent's value, (S,): minus infinity where no played action is feasible enough."""
        self.incumbent = np.full(self.setting.replicates, -np.inf)
        if self.played == 0:
            return
        if self.box is None:
            seen = self.seen
        else:
            mean, variance, seen = self.posterior.at_observations()
            belief = self.view(mean, variance, None)
        feasible = log_feasibility(belief.constraint) >= np.log1p(-self.delta)
        self.incumbent = np.where(feasible & seen, belief.f.mean, -np.inf).max(axis=1)

    def score(self, belief: Belief) -> Array:
        found = np.isfinite(self.incumbent)
        best = np.where(found, self.incumbent, 0.0)[:, None]
        improvement = log_expected_improvement(belief.f.mean, belief.f.deviation, best)
        return np.where(found[:, None], improvement, 0.0) + log_feasibility(belief.constraint)


def log_feasibility(g: FunctionBelief) -> Array:
    """log P(every g_j <= 0), (S, k), of independent constraints (S, m, k)."""
    from scipy.special import log_ndtr  # imported late: SciPy takes long to load

    return np.asarray(log_ndtr(-g.mean / g.deviation).sum(axis=1))


def log_expected_improvement(mean: Array, deviation: Array, best: Array | float) -> Array:
    """log E[X - best]^+ for X ~ N(mean, deviation²): log deviation + log(φ(z) + z Φ(z)), z = (mean - best)/deviation.

    It is finite where the expectation itself underflows.
    """
    from scipy.special import erfcx, ndtr

    z = (mean - best) / deviation
    log_density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
    near, tail = np.maximum(z, -1.0), np.clip(z, FAR, -1.0)
    plain = np.log(np.exp(-0.5 * near**2) / np.sqrt(2 * np.pi) + near * ndtr(near))
    in_tail = log_density + np.log1p(tail * np.sqrt(np.pi / 2) * erfcx(-tail / np.sqrt(2)))
    far = log_density - 2 * np.log(np.maximum(-z, 1.0))
    return np.asarray(np.log(deviation) + np.where(z > -1.0, plain, np.where(z > FAR, in_tail, far)))
