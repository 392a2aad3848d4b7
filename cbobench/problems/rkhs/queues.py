"""Queues of the CBO preprint: cloud configuration, and stability of two nodes that share GPUs.

Cloud configuration (Section 1): least cost under a limit of the 95th percentile of latency. A
configuration is a number of servers and their speed. Its days are simulated: jobs arrive as a
Poisson process, wait in one queue for the first free server, and bring exponential work. All
configurations meet the same jobs.

Queue stability (Appendix A): full information of a stochastic constraint. The allocation x = (x_1,
x_2) in [0, 8]² says how many GPUs (fractions allowed) either node gets. In a round ω(t) jobs
arrive, Poisson with mean λ, and node i can serve h_i(x_i) jobs; g_t(x) = ω(t) - h_1(x_1) - h_2(x_2)
is known for every x before acting, because h_i is known. f(x) is minus the energy cost, observed
with noise at the played x alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.kernels import Array, Indices
from cbobench.params import param, state
from cbobench.problems import PROBLEMS
from cbobench.problems.channels import Law, TwoLaws, noise_law
from cbobench.problems.formulas.box import BoxProblem, Reference
from cbobench.problems.reference import search
from cbobench.problems.tables.readings import Readings, ReadingsProblem, unit_grid
from cbobench.rng import Draws, Streams, generator

SERVERS = tuple(range(5, 13))
SPEEDS = tuple(float(v) for v in np.linspace(2.5, 4.75, 10))  # units of work per second
JOBS = 1000  # per day
# of a server: RENT v^1.4, and ENERGY v² while it works
RENT = 0.1
RENT_POWER = 1.4
ENERGY = 0.02


def sojourn_times(gaps: Array, work: Array, servers: Indices, speeds: Array) -> Array:
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
    jobs, days = gaps.shape
    most = int(servers.max())
    shape = (days, len(servers))
    busy = [
        np.broadcast_to(np.where(rank < servers, 0.0, np.inf), shape).copy() for rank in range(most)
    ]
    times = np.empty((jobs, *shape))
    for job in range(jobs):
        # Until a job arrives, every server has worked on; the one that is free first serves it.
        busy = [np.maximum(left - gaps[job, :, None], 0.0) for left in busy]
        last = busy[0] + work[job, :, None] / speeds
        times[job] = last
        for rank in range(1, most):  # the served queue's place in the order
            busy[rank - 1], last = np.minimum(busy[rank], last), np.maximum(busy[rank], last)
        busy[-1] = last
    return times


def percentile(times: Array, share: float = 0.95) -> Array:
    """The smallest time that a share of the jobs stays within, (jobs, ...) to (...)."""
    # No interpolation: it would be a time that no job took.
    rank = int(np.ceil(share * len(times))) - 1
    return np.partition(np.ascontiguousarray(np.moveaxis(times, 0, -1)), rank, axis=-1)[..., rank]


def simulate(load: float, limit: float, days: int) -> Readings:
    """Readings (-cost, p95 latency - limit) of simulated days.

    The traffic of a day is `load` times a Gamma variable with mean 1 and standard deviation 0.05.
    """
    gen = generator("cloud-latency", "days")
    gaps = []
    work = []
    for _ in range(days):  # day by day, so that more days are the same days and some more
        traffic = load * gen.gamma(400.0) / 400
        gaps.append(gen.standard_exponential(JOBS) / traffic)
        work.append(gen.standard_exponential(JOBS))
    arrivals = np.stack(gaps, axis=1)
    jobs = np.stack(work, axis=1)
    servers = np.repeat(SERVERS, len(SPEEDS))
    speeds = np.tile(SPEEDS, len(SERVERS))
    latency = percentile(sojourn_times(arrivals, jobs, servers, speeds))
    # A server works for work / v, so that 0.02 v² of that time is 0.02 v times the work.
    work_rate = (jobs.sum(axis=0) / arrivals.sum(axis=0))[:, None]
    cost = RENT * servers * speeds**RENT_POWER + ENERGY * work_rate * speeds
    names = tuple(f"{c} servers of speed {v:g}" for c, v in zip(servers, speeds, strict=True))
    return Readings(np.stack([-cost, latency - limit], axis=1), unit_grid(SERVERS, SPEEDS), names)


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


GPUS = 8.0
ARRIVALS = 14.0
# scales of h_1 and h_2, jobs per round; HALF: x_2 that serves half of its scale
SERVICE = (9.0, 30.0)
HALF = 6.0
# energy per GPU, per GPU², and of a node that is on
LINEAR = (0.30, 0.25)
COOLING = (0.05, 0.03)
SWITCHED_ON = 1.0


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
    return cost


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

    arrivals: float = param(ARRIVALS, "λ, mean number of jobs that arrive in a round", above=0.0)
    full_information: bool = param(True, "show g_t(.) = ω(t) - h_1 - h_2 before acting")
    law: Law = param("gaussian", "law of the noise on f, scaled to its standard deviation R")
    noise_g: float = state()
    scaled: bool = state()

    low = (0.0, 0.0)
    high = (GPUS, GPUS)
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
        """`reference` for these arrivals: searched unless they are the default. h rises in both
        x_i, so that all GPUs leave the largest margin.
        """
        # The default's optimum is known, and a search takes its time.
        if self.arrivals == ARRIVALS:
            return self.reference
        most = np.array(self.high)
        found = search(self.formula, self.box, starts=8, power=12, also=[most])
        return replace(
            self.reference,
            x=tuple(found.x.tolist()),
            f=float(found.values[0]),
            slater=-float(self.formula(most)[1]),
            share=found.share,
        )

    def noise_draws(self, streams: Streams) -> Draws:
        def poisson(gen: np.random.Generator, shape: tuple[int, ...]) -> Array:
            return (gen.poisson(self.arrivals, shape) - self.arrivals) / np.sqrt(self.arrivals)

        return TwoLaws(streams, noise_law(self.law, self.tail), poisson, self.constraints)
