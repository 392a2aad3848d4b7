"""Expert guidance of the CBO preprint (Appendix A): full information of a distance between
distributions.

An action is a policy with an outcome distribution; it should stay near the expert's. The distance
is the squared maximum mean discrepancy MMD² under a Gaussian kernel, estimated without bias from
the round's samples (Gretton et al. 2012, Lemma 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array, StationaryName, smooth_norm, stationary
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.base import (
    Actions,
    Channel,
    Drawn,
    Feedback,
    Instances,
    Shown,
    choose_seed_set,
)
from cbobench.problems.channels import FeedbackModel, noise_law, noise_on
from cbobench.problems.instances import Generators
from cbobench.problems.tables.readings import unit_grid
from cbobench.rng import Draws, Streams, generator, standard_normal

PER_AXIS = 9
EXPERT = (0.4, 0.7)  # mean and standard deviation of the expert's outcomes
ROUNDS = 1000  # simulated for the standard deviation of g_t


@dataclass(frozen=True)
class Policies:
    """Gaussian outcome distributions of n policies, N(mean, spread²), and MMD² to the expert's.

    Attributes:
        mean, spread: (n,).
        bandwidth: τ of the Gaussian kernel exp(-(y - z)² / (2 τ²)) on outcomes.
    """

    mean: Array
    spread: Array
    bandwidth: float

    def _overlap(self, shift: Array, variance: Array) -> Array:
        """E exp(-Z² / (2 τ²)) for Z ~ N(shift, variance)."""
        total_variance = self.bandwidth**2 + variance
        return self.bandwidth / np.sqrt(total_variance) * np.exp(-0.5 * shift**2 / total_variance)

    def distance(self) -> Array:
        """MMD² in closed form, (n,)."""
        # MMD² = E k(y, y') + E k(z, z') - 2 E k(y, z), each of a Gaussian difference.
        none = np.zeros(1)
        mean, spread = EXPERT
        self_overlap = self._overlap(none, 2 * self.spread**2)
        expert = self._overlap(none, np.array([2 * spread**2]))
        return (
            self_overlap + expert - 2 * self._overlap(self.mean - mean, self.spread**2 + spread**2)
        )

    def estimate(self, scenarios: Array) -> Array:
        """The unbiased estimate of MMD² (a U-statistic) for every policy, (n,).

        Args:
            scenarios: standard normal (2, N): N outcomes of every policy (the same scenarios,
                replayed under each of them), and N of the expert.
        """
        count = scenarios.shape[1]
        mean, spread = EXPERT
        expert = mean + spread * scenarios[1]

        # Pairs of different outcomes only: the estimate is unbiased (Lemma 6).
        i, j = np.triu_indices(count, 1)
        # Differences of a policy's own outcomes depend on its spread alone.
        spreads, spread_index = np.unique(self.spread, return_inverse=True)
        self_overlap = self._kernel(spreads[:, None] * (scenarios[0, i] - scenarios[0, j])).mean(
            axis=1
        )[spread_index]
        # All pairs of an outcome and one of the expert, who does not share its scenarios.
        outcomes = self.mean[:, None] + self.spread[:, None] * scenarios[0]
        cross = self._kernel((outcomes[:, :, None] - expert).reshape(len(outcomes), -1)).mean(
            axis=1
        )
        return self_overlap + self._kernel(expert[i] - expert[j]).mean() - 2 * cross

    def _kernel(self, difference: Array) -> Array:
        return np.exp(-0.5 * (difference / self.bandwidth) ** 2)


class Guided:
    """Additive noise on f; g_t(.) is the round's estimate of MMD² minus the tolerance, for all
    policies at once.
    """

    def __init__(self, problem: ExpertGuidance, instances: Drawn, streams: Streams) -> None:
        self.problem = problem
        self.instances = instances
        self.noise = Draws(streams.role("noise"), noise_law(problem.law, problem.tail))
        self.scenarios = Draws(streams.role("scenarios"), standard_normal, (2, problem.samples))
        self.round = 0

    def _estimates(self, t: int) -> Array:
        """g_t of all policies, (S, n); one replicate after the other, so that none depends on its
        company.
        """
        # `before` and `at` ask for the same round.
        if self.round != t:
            policies = self.problem.policies
            self.estimates = (
                np.stack([policies.estimate(scenarios) for scenarios in self.scenarios.at(t)])
                - self.problem.tolerance
            )
            self.round = t
        return self.estimates

    def before(self, t: int) -> Shown | None:
        if not self.problem.full_information:
            return None
        estimates = self._estimates(t)[:, None]
        # A copy, as what is shown is also what `at` tells.
        return lambda points: estimates.copy()

    def at(self, t: int, actions: Actions) -> Feedback:
        f = (
            self.instances.values(t, actions[None])[0, :, 0]
            + self.noise.at(t) * self.instances.noise[:, 0]
        )
        return Feedback(f, np.take_along_axis(self._estimates(t), actions[:, None], axis=1))


@PROBLEMS.register("expert-guidance")
@dataclass(kw_only=True)
class ExpertGuidance(FeedbackModel):
    """81 policies x in [0, 1]² with outcomes N(4 x_1 - 2, (0.3 + 1.2 x_2)²); the expert's are
    N(0.4, 0.7²).

    f is a random RKHS function, f = sum_i a_i k(., x_i) with a_i uniform on [-1, 1], fresh for
    every seed. g is the closed form of MMD² minus the tolerance; g_t, its unbiased estimate from
    the round's samples, is shown for all policies before acting and told at the played one. R of g
    is the largest standard deviation of g_t over policies, from 1000 simulated rounds; |g|_k is
    that of a regularised interpolant. All numbers are ours: the preprint names the application and
    gives none.
    """

    source = "CBO preprint App. A, numbers ours"
    about = (
        "81 policies near an expert: MMD² of outcomes within a tolerance, unbiased estimates "
        "shown before acting"
    )
    stated_facts = ("n = 81, d = 2", "1", "14 of 81", "varies")
    kernel_is_known = True
    constraints = 1

    tolerance: float = param(
        0.1, "largest MMD² to the expert's outcomes that is allowed", above=0.0
    )
    samples: int = param(
        10, "outcomes of either side that a round's estimate rests on", at_least=2, at_most=200
    )
    bandwidth: float = param(1.0, "of the Gaussian kernel on outcomes", above=0.0)
    noise_f: float = noise_on(0.1, "f")
    kernel: StationaryName = param("se", "kernel of f, and of the learners' models")
    lengthscale: float = param(0.2, "its lengthscale", at_least=1e-4, at_most=1e4)
    full_information: bool = param(True, "show g_t(.) before acting")
    seed_size: int = param(
        5, "how many random feasible policies a safe method may start from", at_least=1
    )

    @cached_property
    def actions(self) -> Finite:
        axis = np.linspace(0, 1, PER_AXIS).tolist()
        points = unit_grid(axis, axis)
        return Finite.at(points, stationary(self.kernel, self.lengthscale), self.kernel)

    @cached_property
    def policies(self) -> Policies:
        points = self.actions.points
        assert points is not None
        return Policies(4 * points[:, 0] - 2, 0.3 + 1.2 * points[:, 1], self.bandwidth)

    def validate(self) -> None:
        nearest = float(self.policies.distance().min())
        if nearest >= self.tolerance:
            raise Misuse(
                f"tolerance is {self.tolerance:g}; the nearest policy has an MMD² of "
                f"{nearest:.3g}: allow more"
            )

    @cached_property
    def deviation_g(self) -> float:
        """Largest standard deviation of g_t over policies, from simulated rounds."""
        # Of a generator of its own: R is the same for every seed.
        scenarios = generator(self.name, "deviation").standard_normal((ROUNDS, 2, self.samples))
        return float(
            np.stack([self.policies.estimate(round_scenarios) for round_scenarios in scenarios])
            .std(axis=0)
            .max()
        )

    def draw(self, generators: Generators) -> Instances:
        replicates = len(generators)
        weights = np.stack([gen.uniform(-1, 1, self.actions.n) for gen in generators])
        f = self.actions.combine(weights)
        g = np.tile(self.policies.distance() - self.tolerance, (replicates, 1, 1))
        # Once: a solve for several replicates has bits that depend on them.
        of_g = smooth_norm(self.actions.covariance, g[0, 0])
        norm = np.stack([np.sqrt((f * weights).sum(axis=1)), np.full(replicates, of_g)], axis=1)
        noise = np.tile([self.noise_f, self.deviation_g], (replicates, 1))
        seeds = choose_seed_set(self.settle(g), self.seed_size, generators)
        return Instances(f=f, g=g, norm=norm, noise=noise, seed_set=seeds)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        return self.delayed(Guided(self, instances, streams), streams)
