"""Noisy expected improvement (Letham et al. 2019), in logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.fitting import KernelChoice, undecided_functions
from cbobench.algorithms.improvement import log_expected_improvement
from cbobench.algorithms.score import Pending, ScoreAlgorithm
from cbobench.gp.actions import smallest
from cbobench.gp.beliefs import Belief, FunctionBelief
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array, Mask
from cbobench.gp.posteriors.fitted import FittedPosterior, SampledPosterior, stratify_normals
from cbobench.gp.posteriors.interface import Moments
from cbobench.gp.recommend import recommend_action, rivals_around, worth_of_plays
from cbobench.params import param, state

FANTASIES = 64  # draws of what a play may show
SCOUTS = 4  # samples by which starts of climbs are chosen
LEAST = 1e-280  # of a product of probabilities
MOST = 128  # rivals of a finite set


@ALGORITHMS.register("nei")
@dataclass(kw_only=True)
class NoisyEI(ScoreAlgorithm):
    """Maximises the log of the mean of EI_k(x) Π_j P_k(g_j(x) <= 0) over K joint samples.

    A sample k is of what noise hides: the values of f and of every g_j at all played actions. Given
    it there is no noise, and EI_k is over the best sampled f among actions whose sampled g_j are
    all at most 0 (Letham et al. 2019). Samples stay the same from round to round but for
    what is learned (common normals). Without noise every sample is what was observed, and this is
    the rule of `cei`, which then costs less and steps to the boundary.

    The last rounds confirm what will be recommended: each plays the rival of the recommendation
    whose observation is worth the most to it (knowledge gradient, see `gp.recommend`).

    Differs from the paper:

    1. Where no played action of a sample is feasible, EI_k is over a low value: the centre of the
       model of f, or the least sampled value, less an amplitude (the paper: a penalty M).
    2. Models are those of `cei`: Matérn-5/2, fitted, of each g_j or its bilog.
    3. Normals are of a Latin hypercube, not of a Sobol sequence, which has too few dimensions.
    4. The last rounds, which `confirm: 0` leaves out.
    """

    source = "Letham et al. (2019)"
    about = "expected improvement on values that noise hides, over joint samples of f and g"
    knows = ("T",)
    needs = frozenset({"coordinates", "feedback at once"})
    cost = "O(K c² + c³), fitted"
    narrow = True
    models_levels = True

    kernel: ClassVar[KernelChoice] = "fit"  # type: ignore[misc]
    pending: ClassVar[Pending] = "ignore"  # type: ignore[misc]

    samples: int = param(32, "K, how many joint samples", at_least=1)
    confirm: float = param(
        0.1,
        "share of the rounds, the last ones, that confirm the recommendation",
        at_least=0.0,
        at_most=1.0,
    )

    incumbent: Array = state()

    def lam_for(self, horizon: float) -> float:
        return 1.0  # not of fitted models

    def undecided(self) -> Mask | None:
        return undecided_functions("by evidence", self.setting.constraints)

    def prepare(self) -> None:
        setting = self.setting
        p = 1 + self.setting.constraints
        # The normals of a whole run: samples of two rounds differ by what was learned alone.
        draws = [
            stratify_normals(generator, self.samples, (p, setting.observations))
            for generator in setting.streams.role("samples")
        ]
        self.normals = np.stack(draws).swapaxes(1, 2)
        roles = setting.streams.role("rivals")
        self.fantasies = np.stack([stratify_normals(role, FANTASIES, (p,)) for role in roles])

    def believe(self, t: int) -> Belief:
        """Sample what noise hides, and set the incumbents' values, (S, K)."""
        model = self.fitted
        setting = self.setting
        self.confirms = model.count > 1 and setting.horizon - t < self.confirm * setting.horizon
        self.sampled = SampledPosterior(model, self.normals[..., : model.count])
        f = self.sampled.samples[:, 0]
        g = self.sampled.samples[:, 1:]

        # Difference 1: a value below all sampled ones; in the first round there are none yet.
        low = np.minimum(f.min(axis=2, initial=np.inf), model.centre[:, :1])
        feasible = np.where((g <= 0).all(axis=1), f, -np.inf).max(axis=2, initial=-np.inf)
        self.incumbent = np.maximum(feasible, low - model.amplitude[:, :1])
        return self.view(self.sampled.mean, self.sampled.variance, None)

    @property
    def fitted(self) -> FittedPosterior:
        return cast("FittedPosterior", self.posterior)

    @property
    def scored(self) -> FittedPosterior:
        return self.sampled

    def scout(self, points: Array) -> Moments:
        return self.sampled.given_first(SCOUTS).at(points)

    def view(self, mean: Array, variance: Array, points: Array | None) -> Belief:
        """Return beliefs with a mean per sample, (S, K, k) of f and (S, m, K, k) of g, which share
        deviations.
        """
        replicates, p, k = variance.shape
        means = mean.reshape(replicates, p, -1, k)
        deviation = np.sqrt(variance)[:, :, None]
        of_f = FunctionBelief(means[:, 0], deviation[:, 0])
        return Belief(of_f, FunctionBelief(means[:, 1:], deviation[:, 1:]))

    def score(self, belief: Belief) -> Array:
        f = belief.f
        g = belief.constraint
        # Scouts look at the first samples only.
        incumbent = self.incumbent[:, : f.mean.shape[1], None]
        gains = log_expected_improvement(f.mean, f.deviation, incumbent)
        gains += log_product(-g.mean / g.deviation)

        # A mean of gains divided by the largest, as gains themselves may underflow.
        most = gains.max(axis=1)
        score = most + np.log(np.exp(gains - most[:, None]).mean(axis=1))

        # On a box `maximise` confirms, which draws rivals of its own.
        if self.confirms and self.box is None:
            return self._worth(score)
        return score

    def _worth(self, score: Array) -> Array:
        """Return what plays of a finite set are worth to the recommendation, (S, n): those with the
        best scores, or recommended; others are worth the least of these.
        """
        best = smallest(-score, min(MOST, score.shape[1]))
        recommended = recommend_action(self.goal, self.fitted, None, None, self.measured, True)
        rivals = np.concatenate([recommended[:, None], best], axis=1)
        worth = worth_of_plays(self.fitted, rivals, self.fantasies)
        result = np.repeat(worth.min(axis=1, keepdims=True), score.shape[1], axis=1)
        np.put_along_axis(result, rivals, worth, axis=1)
        return result

    def maximise(self, t: int, box: Box, also: Array | None) -> tuple[Array, Array]:
        if not self.confirms:
            return super().maximise(t, box, also)
        recommended = recommend_action(self.goal, self.fitted, box, None, None, True)
        rivals = rivals_around(box.unit(recommended), self.fitted, box)
        worth = worth_of_plays(self.fitted, rivals, self.fantasies)
        rows = np.arange(len(worth))
        best = worth.argmax(axis=1)
        return rivals[rows, best], worth[rows, best]


def log_product(z: Array) -> Array:
    """log Π_j Φ(z_j) of z (S, m, ...): of the product, which takes a third of the time, unless it
    underflows.
    """
    from scipy.special import log_ndtr, ndtr  # imported late: SciPy takes long to load

    product = ndtr(z).prod(axis=1)
    result = np.log(np.maximum(product, LEAST))
    far = product < LEAST
    result[far] = log_ndtr(np.moveaxis(z, 1, -1)[far]).sum(axis=1)
    return result
