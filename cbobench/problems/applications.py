"""Applications of the CBO preprint: cloud configuration, an expert's guidance, and queue stability.

Cloud configuration (Section 1): least cost under a limit of the 95th percentile of latency. A
configuration is a number of servers and their speed. Its days are simulated: jobs arrive as a
Poisson process, wait in one queue for the first free server, and bring exponential work. All
configurations meet the same jobs.

Expert guidance (Appendix A): full information of a distance between distributions. An action is a
policy with an outcome distribution; it should stay near the expert's. The distance is the squared
maximum mean discrepancy MMD² under a Gaussian kernel, estimated without bias from the round's
samples (Gretton et al. 2012, Lemma 6).

Queue stability (Appendix A): full information of a stochastic constraint. The allocation x = (x_1,
x_2) in [0, 8]² says how many GPUs (fractions allowed) either node gets. In a round ω(t) jobs
arrive, Poisson with mean λ, and node i can serve h_i(x_i) jobs; g_t(x) = ω(t) - h_1(x_1) - h_2(x_2)
is known for every x before acting, because h_i is known. f(x) is minus the energy cost, observed
with noise at the played x alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array, StationaryName, smooth_norm, stationary
from cbobench.params import param, state
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
from cbobench.problems.box import BoxProblem, Reference
from cbobench.problems.channels import FeedbackModel, Law, TwoLaws, noise_law
from cbobench.problems.readings import Readings, ReadingsProblem, unit_grid
from cbobench.rng import Draws, Streams, generator, standard_normal

SERVERS = tuple(range(5, 13))
SPEEDS = tuple(float(v) for v in np.linspace(2.5, 4.75, 10))  # units of work per second
JOBS = 1000  # per day
RENT, RENT_POWER, ENERGY = 0.1, 1.4, 0.02  # of a server: RENT v^1.4, and ENERGY v² while it works


def sojourn_times(gaps: Array, work: Array, servers: NDArray[np.intp], speeds: Array) -> Array:
    """Seconds from arrival to departure in first-come first-served queues with c servers (Kiefer &
    Wolfowitz 1955).

    Every queue starts empty. The recursion runs over jobs and holds, per day and configuration, the
    sorted times until each of the c servers is free (infinite where a configuration has fewer
    servers than the largest one).

    Args:
        gaps: seconds since the previous arrival, (jobs, days).
        work: of every job, (jobs, days); a server with speed v needs work / v seconds.
        servers, speeds: of the configurations, (K,).

    Returns:
        (jobs, days, K).
    """
    (jobs, days), most = gaps.shape, int(servers.max())
    shape = (days, len(servers))
    busy = [
        np.broadcast_to(np.where(rank < servers, 0.0, np.inf), shape).copy() for rank in range(most)
    ]
    times = np.empty((jobs, *shape))
    for job in range(jobs):
        busy = [np.maximum(left - gaps[job, :, None], 0.0) for left in busy]
        last = busy[0] + work[job, :, None] / speeds
        times[job] = last
        for rank in range(1, most):  # the served queue's place in the order
            busy[rank - 1], last = np.minimum(busy[rank], last), np.maximum(busy[rank], last)
        busy[-1] = last
    return times


def percentile(times: Array, share: float = 0.95) -> Array:
    """The smallest time that a share of the jobs stays within, (jobs, ...) to (...)."""
    rank = int(np.ceil(share * len(times))) - 1
    return np.asarray(
        np.partition(np.ascontiguousarray(np.moveaxis(times, 0, -1)), rank, axis=-1)[..., rank]
    )


def simulate(load: float, limit: float, days: int) -> Readings:
    """Readings (-cost, p95 latency - limit) of simulated days.

    The traffic of a day is `load` times a Gamma variable with mean 1 and standard deviation 0.05.
    """
    gen = generator("cloud-latency", "days")
    traffic, gaps, work = [], [], []
    for _ in range(days):  # day by day, so that more days are the same days and some more
        traffic.append(load * gen.gamma(400.0) / 400)
        gaps.append(gen.standard_exponential(JOBS) / traffic[-1])
        work.append(gen.standard_exponential(JOBS))
    arrivals, jobs = np.stack(gaps, axis=1), np.stack(work, axis=1)
    points = unit_grid(SERVERS, SPEEDS)
    servers, speeds = np.repeat(SERVERS, len(SPEEDS)), np.tile(SPEEDS, len(SERVERS))
    latency = percentile(sojourn_times(arrivals, jobs, servers, speeds))
    work_rate = (jobs.sum(axis=0) / arrivals.sum(axis=0))[:, None]
    cost = RENT * servers * speeds**RENT_POWER + ENERGY * work_rate * speeds
    names = tuple(f"{c} servers of speed {v:g}" for c, v in zip(servers, speeds, strict=True))
    return Readings(np.stack([-cost, latency - limit], axis=1), points, names)


@PROBLEMS.register("cloud-latency")
@dataclass(kw_only=True)
class CloudLatency(ReadingsProblem):
    """80 configurations, 5 to 12 servers of 10 speeds: f is minus the cost, g the p95 latency minus
    a limit (seconds).

    f and g are means over simulated days of 1000 jobs that start with an empty queue. A round reads
    one of these days,
    the same for all configurations: a busy day costs more and is slower. The cost of a server is
    rent 0.1 v^1.4 and 0.02 v² for the time it works. The preprint names the application; the
    numbers are ours.
    """

    source = "CBO preprint 1, simulation ours"
    about = "servers × speed: least cost under a 95th percentile of latency, simulated M/M/c queue"
    stated_facts = ("n = 80, d = 2", "1", "47 of 80", "-3.939796")

    load: float = param(10.0, "jobs per second, mean over days", above=0.0, at_most=50.0)
    limit: float = param(0.9, "limit of the 95th percentile of latency, seconds", above=0.0)
    days: int = param(64, "simulated days", at_least=2, at_most=256)

    def prepare(self, data: Any) -> None:
        self.readings = simulate(self.load, self.limit, self.days)
        self.check(self.limit, "s")


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
        return np.asarray(
            self.bandwidth / np.sqrt(total_variance) * np.exp(-0.5 * shift**2 / total_variance)
        )

    def distance(self) -> Array:
        """MMD² in closed form, (n,)."""
        none, (mean, spread) = np.zeros(1), EXPERT
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
        count, (mean, spread) = scenarios.shape[1], EXPERT
        expert = mean + spread * scenarios[1]
        i, j = np.triu_indices(count, 1)
        spreads, spread_index = np.unique(self.spread, return_inverse=True)
        self_overlap = self._kernel(spreads[:, None] * (scenarios[0, i] - scenarios[0, j])).mean(
            axis=1
        )[spread_index]
        outcomes = self.mean[:, None] + self.spread[:, None] * scenarios[0]
        cross = self._kernel((outcomes[:, :, None] - expert).reshape(len(outcomes), -1)).mean(
            axis=1
        )
        return np.asarray(self_overlap + self._kernel(expert[i] - expert[j]).mean() - 2 * cross)

    def _kernel(self, difference: Array) -> Array:
        return np.asarray(np.exp(-0.5 * (difference / self.bandwidth) ** 2))


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
    noise_f: float = param(0.1, "standard deviation of the noise on f", at_least=0.0)
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
        scenarios = generator(self.name, "deviation").standard_normal((ROUNDS, 2, self.samples))
        return float(
            np.stack([self.policies.estimate(round_scenarios) for round_scenarios in scenarios])
            .std(axis=0)
            .max()
        )

    def draw(self, generators: Sequence[np.random.Generator]) -> Instances:
        replicates = len(generators)
        weights = np.stack([gen.uniform(-1, 1, self.actions.n) for gen in generators])
        f = self.actions.combine(weights)
        g = np.tile(self.policies.distance() - self.tolerance, (replicates, 1, 1))
        # Once: a solve for several replicates has bits that depend on them.
        of_g = smooth_norm(self.actions.covariance, g[0, 0])
        norm = np.stack([np.sqrt((f * weights).sum(axis=1)), np.full(replicates, of_g)], axis=1)
        noise = np.tile([self.noise_f, self.deviation_g], (replicates, 1))
        seeds = choose_seed_set(self.settle(g), self.seed_size, generators)
        return Instances(f, g, norm, noise, seeds, np.zeros(replicates, dtype=np.intp))

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        return self.delayed(Guided(self, instances, streams), streams)


GPUS = 8.0
# scales of h_1 and h_2, jobs per round; HALF: x_2 that serves half of its scale
SERVICE, HALF = (9.0, 30.0), 6.0
# energy per GPU, per GPU², and of a node that is on
LINEAR, COOLING, SWITCHED_ON = (0.30, 0.25), (0.05, 0.03), 1.0


def service(x_1: Array, x_2: Array) -> tuple[Array, Array]:
    """Jobs that the nodes can serve in a round: h_1 = 9 log(1 + x_1), h_2 = 30 x_2 / (6 + x_2);
    increasing, concave.
    """
    return SERVICE[0] * np.log1p(x_1), SERVICE[1] * x_2 / (HALF + x_2)


def energy(x_1: Array, x_2: Array) -> Array:
    """Energy cost of a round: linear and quadratic (cooling) in x_i, and 1 for a node that is on,
    smoothed near 0.
    """
    cost = np.zeros_like(x_1)
    for x, linear, cooling in zip((x_1, x_2), LINEAR, COOLING, strict=True):
        cost = cost + linear * x + cooling * x**2 - SWITCHED_ON * np.expm1(-2 * x)
    return np.asarray(cost)


@PROBLEMS.register("queue-stability")
@dataclass(kw_only=True)
class QueueStability(BoxProblem):
    """Least energy for two nodes that share GPUs, while arrivals stay below what is served.

    The deviation of g_t is that of the arrivals, ω(t) - λ: one number for all allocations of a
    round, with variance λ. It is not sub-Gaussian; its standard deviation sqrt(λ) is given as R.
    The functions h_i and the energy are ours.
    With `full_information: false` only g_t(x_t) is told, after acting.
    """

    source = "CBO preprint App. A, functions ours"
    about = (
        "GPUs of two nodes: least energy under queue stability, Poisson arrivals shown before "
        "acting"
    )

    arrivals: float = param(14.0, "λ, mean number of jobs that arrive in a round", above=0.0)
    full_information: bool = param(True, "show g_t(.) = ω(t) - h_1 - h_2 before acting")
    law: Law = param("gaussian", "law of the noise on f, scaled to its standard deviation R")
    noise_g: float = state()
    scaled: bool = state()

    low, high = (0.0, 0.0), (GPUS, GPUS)
    reference = Reference(
        x=(3.7377178596430793, 0.0),
        f=-2.8192752590764103,
        slater=22.917878338883117,
        share=0.9140096436,
        how="scan of the boundary g = 0 and bounded scalar minimisation",
        binds=True,
    )

    def __post_init__(self) -> None:
        self.noise_g = float(np.sqrt(self.arrivals))
        self.scaled = False  # g counts jobs

    def validate(self) -> None:
        super().validate()
        most = float(sum(service(np.array(GPUS), np.array(GPUS))))
        if self.arrivals >= most:
            raise Misuse(
                f"arrivals is {self.arrivals:g}; all {2 * GPUS:g} GPUs serve {most:.4g} jobs: "
                "stay below that"
            )

    def formula(self, x: Array) -> Array:
        x_1, x_2 = (np.array(x[..., i], order="C") for i in range(2))
        served_1, served_2 = service(x_1, x_2)
        return np.stack([-energy(x_1, x_2), self.arrivals - served_1 - served_2], axis=-1)

    @cached_property
    def optimum(self) -> Reference:
        """`reference` for these arrivals: f falls and h rises in both x_i, so a polished scan of g
        = 0 finds it.
        """
        from scipy.optimize import minimize_scalar

        def partner(x_1: Array) -> Array:
            """The smallest x_2 that keeps the queue stable, beyond the box where there is none in
            it.
            """
            left = np.maximum(self.arrivals - service(x_1, x_1)[0], 0.0)
            most = SERVICE[1] - 1e-9  # approached by h_2 without end
            return np.asarray(HALF * np.minimum(left, most) / (SERVICE[1] - np.minimum(left, most)))

        def cost(x_1: Array) -> Array:
            x_2 = partner(x_1)
            return np.where(x_2 <= GPUS, energy(x_1, x_2), np.inf)

        # The cost on the boundary has several valleys: a scan finds the right one,
        # and a search its bottom.
        scan = np.linspace(0, GPUS, 4001)
        start = int(cost(scan).argmin())
        bracket = (scan[max(0, start - 1)], scan[min(len(scan) - 1, start + 1)])
        polished = minimize_scalar(cost, bounds=bracket, method="bounded", options={"xatol": 1e-12})
        # Kinks of the boundary are no bottom that a smooth search finds.
        # node 1 serves all: a kink of the boundary
        alone = min(float(np.expm1(self.arrivals / SERVICE[0])), GPUS)
        left = self.arrivals - float(service(np.array(GPUS), np.array(GPUS))[1])
        # of a node 2 with all GPUs
        beside = float(np.clip(np.expm1(left / SERVICE[0]) * (1 + 1e-12), 0, GPUS))
        x_1 = min(
            (float(scan[start]), float(polished.x), alone, beside),
            key=lambda x: float(cost(np.array(x))),
        )
        x = np.array([x_1, partner(np.array(x_1))])
        while self.formula(x)[1] > 0:  # the last digit
            x = np.nextafter(x, np.inf)
        # All that is stated beside the point must hold for these arrivals, too.
        # of slices: the share is the area above the boundary
        middles = GPUS * (np.arange(2**14) + 0.5) / 2**14
        share = 1 - float(np.minimum(partner(middles) / GPUS, 1.0).mean())
        f, lowest = float(self.formula(x)[0]), float(self.formula(np.array(self.high))[1])
        return replace(
            self.reference, x=(float(x[0]), float(x[1])), f=f, slater=-lowest, share=share
        )

    def noise_draws(self, streams: Streams) -> Draws:
        def poisson(gen: np.random.Generator, shape: tuple[int, ...]) -> Array:
            return np.asarray(
                (gen.poisson(self.arrivals, shape) - self.arrivals) / np.sqrt(self.arrivals)
            )

        return TwoLaws(streams, noise_law(self.law, self.tail), poisson, self.constraints)
