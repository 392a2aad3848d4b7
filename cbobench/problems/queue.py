"""Two computing nodes, energy and queue stability: full information of a stochastic constraint (CBO preprint, App. A).

The allocation x = (x_1, x_2) in [0, 8]² says how many GPUs (fractions allowed) either node gets. In a round ω(t) jobs
arrive, Poisson with mean λ, and node i can serve h_i(x_i) jobs; g_t(x) = ω(t) - h_1(x_1) - h_2(x_2) is known for every
x before acting, because h_i is known. f(x) is minus the energy cost, observed with noise at the played x alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.box import sobol
from cbobench.gp.kernels import Array
from cbobench.params import param, state
from cbobench.problems import PROBLEMS
from cbobench.problems.box import BoxProblem, Reference
from cbobench.problems.channels import Law, TwoLaws, noise_law
from cbobench.rng import Draws, Streams

GPUS = 8.0
SERVICE, HALF = (9.0, 30.0), 6.0  # scales of h_1 and h_2, jobs per round; HALF: x_2 that serves half of its scale
LINEAR, COOLING, SWITCHED_ON = (0.30, 0.25), (0.05, 0.03), 1.0  # energy per GPU, per GPU², and of a node that is on


def service(x_1: Array, x_2: Array) -> tuple[Array, Array]:
    """Jobs that the nodes can serve in a round: h_1 = 9 log(1 + x_1), h_2 = 30 x_2 / (6 + x_2); increasing, concave."""
    return SERVICE[0] * np.log1p(x_1), SERVICE[1] * x_2 / (HALF + x_2)


def energy(x_1: Array, x_2: Array) -> Array:
    """Energy cost of a round: linear and quadratic (cooling) in x_i, and 1 for a node that is on, smoothed near 0."""
    cost = np.zeros_like(x_1)
    for x, linear, cooling in zip((x_1, x_2), LINEAR, COOLING, strict=True):
        cost = cost + linear * x + cooling * x**2 - SWITCHED_ON * np.expm1(-2 * x)
    return np.asarray(cost)


@PROBLEMS.register("queue-stability")
@dataclass(kw_only=True)
class QueueStability(BoxProblem):
    """Least energy for two nodes that share GPUs, while arrivals stay below what is served.

    The deviation of g_t is that of the arrivals, ω(t) - λ: one number for all allocations of a round, with variance λ.
    It is not sub-Gaussian; its standard deviation sqrt(λ) is given as R. The functions h_i and the energy are ours.
    With `full_information: false` only g_t(x_t) is told, after acting.
    """

    source = "CBO preprint App. A, functions ours"
    about = "GPUs of two nodes: least energy under queue stability, Poisson arrivals shown before acting"

    arrivals: float = param(14.0, "λ, mean number of jobs that arrive in a round", above=0.0)
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
        share=0.913330078125,
        accuracy=1e-9,
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
            raise Misuse(f"arrivals is {self.arrivals:g}; all {2 * GPUS:g} GPUs serve {most:.4g} jobs: stay below that")

    def formula(self, x: Array) -> Array:
        x_1, x_2 = (np.array(x[..., i], order="C") for i in range(2))
        served_1, served_2 = service(x_1, x_2)
        return np.stack([-energy(x_1, x_2), self.arrivals - served_1 - served_2], axis=-1)

    @cached_property
    def optimum(self) -> Reference:
        """`reference` for these arrivals: f falls and h rises in both x_i, so a polished scan of g = 0 finds it."""
        from scipy.optimize import minimize_scalar

        def partner(x_1: Array) -> Array:
            """The smallest x_2 that keeps the queue stable, beyond the box where there is none in it."""
            left = np.maximum(self.arrivals - service(x_1, x_1)[0], 0.0)
            most = SERVICE[1] - 1e-9  # approached by h_2 without end
            return np.asarray(HALF * np.minimum(left, most) / (SERVICE[1] - np.minimum(left, most)))

        def cost(x_1: Array) -> Array:
            x_2 = partner(x_1)
            return np.where(x_2 <= GPUS, energy(x_1, x_2), np.inf)

        scan = np.linspace(0, GPUS, 4001)
        start = int(cost(scan).argmin())
        bracket = (scan[max(0, start - 1)], scan[min(len(scan) - 1, start + 1)])
        found = minimize_scalar(cost, bounds=bracket, method="bounded", options={"xatol": 1e-12})
        alone = min(float(np.expm1(self.arrivals / SERVICE[0])), GPUS)  # node 1 serves all: a kink of the boundary
        left = self.arrivals - float(service(np.array(GPUS), np.array(GPUS))[1])
        beside = float(np.clip(np.expm1(left / SERVICE[0]) * (1 + 1e-12), 0, GPUS))  # of a node 2 with all GPUs
        x_1 = min((float(scan[start]), float(found.x), alone, beside), key=lambda x: float(cost(np.array(x))))
        x = np.array([x_1, partner(np.array(x_1))])
        while self.formula(x)[1] > 0:  # the last digit
            x = np.nextafter(x, np.inf)
        share = float((self.formula(GPUS * sobol(2, 2**12))[:, 1] <= 0).mean())
        f, lowest = float(self.formula(x)[0]), float(self.formula(np.array(self.high))[1])
        return replace(self.reference, x=(float(x[0]), float(x[1])), f=f, slater=-lowest, share=share)

    def noise_draws(self, streams: Streams) -> Draws:
        def poisson(gen: np.random.Generator, shape: tuple[int, ...]) -> Array:
            return np.asarray((gen.poisson(self.arrivals, shape) - self.arrivals) / np.sqrt(self.arrivals))

        return TwoLaws(streams, noise_law(self.law, self.tail), poisson, self.constraints)
