"""Cloud configuration: least cost under a limit of the 95th percentile of latency (CBO preprint, Section 1).

A configuration is a number of servers and their speed. Its days are simulated: jobs arrive as a Poisson process, wait
in one queue for the first free server, and bring exponential work. All configurations meet the same jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.readings import Readings, ReadingsProblem, unit_grid
from cbobench.rng import generator

SERVERS = tuple(range(5, 13))
SPEEDS = tuple(float(v) for v in np.linspace(2.5, 4.75, 10))  # units of work per second
JOBS = 1000  # per day
RENT, RENT_POWER, ENERGY = 0.1, 1.4, 0.02  # of a server: RENT v^1.4, and ENERGY v² while it works


def sojourn_times(gaps: Array, work: Array, servers: NDArray[np.intp], speeds: Array) -> Array:
    """Seconds from arrival to departure in first-come first-served queues with c servers (Kiefer & Wolfowitz 1955).

    Every queue starts empty. The recursion runs over jobs and holds, per day and configuration, the sorted times until
    each of the c servers is free (infinite where a configuration has fewer servers than the largest one).

    Args:
        gaps: seconds since the previous arrival, (jobs, days).
        work: of every job, (jobs, days); a server with speed v needs work / v seconds.
        servers, speeds: of the configurations, (K,).

    Returns:
        (jobs, days, K).
    """
    (jobs, days), most = gaps.shape, int(servers.max())
    shape = (days, len(servers))
    busy = [np.broadcast_to(np.where(rank < servers, 0.0, np.inf), shape).copy() for rank in range(most)]
    found = np.empty((jobs, *shape))
    for job in range(jobs):
        busy = [np.maximum(left - gaps[job, :, None], 0.0) for left in busy]
        last = busy[0] + work[job, :, None] / speeds
        found[job] = last
        for rank in range(1, most):  # the served queue's place in the order
            busy[rank - 1], last = np.minimum(busy[rank], last), np.maximum(busy[rank], last)
        busy[-1] = last
    return found


def percentile(times: Array, share: float = 0.95) -> Array:
    """The smallest time that a share of the jobs stays within, (jobs, ...) to (...)."""
    rank = int(np.ceil(share * len(times))) - 1
    return np.asarray(np.partition(np.ascontiguousarray(np.moveaxis(times, 0, -1)), rank, axis=-1)[..., rank])


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
    """80 configurations, 5 to 12 servers of 10 speeds: f is minus the cost, g the p95 latency minus a limit (seconds).

    f and g are means over simulated days of 1000 jobs that start with an empty queue. A round reads one of these days,
    the same for all configurations: a busy day costs more and is slower. The cost of a server is rent 0.1 v^1.4 and
    0.02 v² for the time it works. The preprint names the application; the numbers are ours.
    """

    source = "CBO preprint 1, simulation ours"
    about = "servers × speed: least cost under a 95th percentile of latency, simulated M/M/c queue"

    load: float = param(10.0, "jobs per second, mean over days", above=0.0, at_most=50.0)
    limit: float = param(0.9, "limit of the 95th percentile of latency, seconds", above=0.0)
    days: int = param(64, "simulated days", at_least=2, at_most=256)

    @classmethod
    def facts(cls) -> dict[str, str]:
        return {"actions": "n = 80, d = 2", "constraints": "1", "feasible": "47 of 80", "best": "-3.939796"}

    def prepare(self, data: Any) -> None:
        self.readings = simulate(self.load, self.limit, self.days)
        self.check(self.limit, "s")
