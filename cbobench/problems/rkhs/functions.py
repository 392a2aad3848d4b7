"""Random functions of a reproducing-kernel Hilbert space, on a finite grid and on a box (Zhou & Ji
2022, Section 5.1).

On a box they are finite sums of kernel sections, whose norms are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from cbobench.errors import CellFailure, Misuse
from cbobench.gp import kernels
from cbobench.gp.actions import Finite, Large
from cbobench.gp.box_actions import Box, sobol
from cbobench.gp.kernels import Array, Indices, Mask, Matern, SquaredExponential, StationaryName
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Drawn, Instances, choose_seed_set
from cbobench.problems.channels import FeedbackModel, candidates_of
from cbobench.problems.data import Site
from cbobench.problems.instances import Formula, Generators, Settle, settled_formula
from cbobench.problems.reference import Optimum, search
from cbobench.rng import generator
from cbobench.threads import single_thread

MAX_REDRAWS = 1000
AHEAD = 2**22  # values of draws of which some may not be needed


@dataclass(kw_only=True)
class RandomFunctions(FeedbackModel):
    """Base of random functions of the learners' kernel: which a seed draws, and their noise."""

    kernel_is_known = True

    noise: float | None = param(
        None, "noise standard deviation R; null takes noise_share", above=0.0
    )
    noise_share: float = param(0.01, "R^2 as a share of each function's range", above=0.0)
    instance: int | Literal["fresh", "fixed"] = param(
        "fresh", "a fresh instance per seed, or one for all seeds: fixed (number 0), or its number"
    )

    def choose_generators(self, generators: Generators) -> Generators:
        """What each replicate draws from: its own generator, or one of that `instance`."""
        if self.instance == "fresh":
            return generators
        number = 0 if self.instance == "fixed" else int(self.instance)
        return [generator(self.name, "fixed", number) for _ in generators]

    def deviations(self, spread: Array) -> Array:
        """R of functions whose largest and least values differ by `spread`, (S, 1 + m) both."""
        if self.noise is None:
            return np.sqrt(self.noise_share * spread)
        return np.full_like(spread, self.noise)


@dataclass(kw_only=True)
class RandomRKHS(RandomFunctions):
    """f = sum_i a_i k(., x_i) with a_i uniform on [-1, 1] and the grid's own points as supports.

    The constraint is g = -f + h B (`threshold`, B read as `h_of` says) or m functions drawn like f
    (`independent`). Draws without a feasible action are thrown away and counted. |f|_k = sqrt(a^T K
    a) is exact; a threshold's |g|_k is that of the nearest function in the features' span
    (`Finite.norm`).

    What Zhou & Ji leave open, each an option: "uniformly sampling a_i and support points x_i in X"
    may mean that every point of the grid is a support, or that p = n supports are drawn from it
    with replacement (`supports`); B in h = B/2 may be the RKHS norm, or the largest value as for
    their sensors (`h_of`); 50 trials may be of one function or of fifty (`instance`). `scaled`
    divides f, and a g that is drawn like f, by its largest absolute value, as the public scripts of
    Chowdhury & Gopalan (2019) do, where B = 1.
    """

    constraint: Literal["threshold", "independent"] = param(
        "threshold", "g = -f + h B, or drawn like f"
    )
    h: float = param(0.5, "threshold as a share of B (threshold only)", above=0.0)
    h_of: Literal["norm", "sup", "max"] = param(
        "norm",
        "B in the threshold: RKHS norm of f, its largest absolute value, or its largest value",
    )
    supports: Literal["grid", "uniform"] = param(
        "grid", "the x_i: every point of the grid, or n drawn from it uniformly"
    )
    scaled: bool | Literal["min-max"] = param(
        False, "divide f, and an independent g, by its largest absolute value; min-max: from 0 to 1"
    )
    seed_size: int = param(
        5, "how many random feasible actions a safe method may start from", at_least=1
    )

    def grid(self) -> tuple[Array, kernels.KernelName, float]:
        """Points (n, d), the kernel's name and its lengthscale."""
        raise NotImplementedError

    @cached_property
    def actions(self) -> Finite:
        points, name, lengthscale = self.grid()
        return Finite.at(points, kernels.kernel(name, lengthscale), name)

    def prepare(self, data: Site) -> None:
        if isinstance(self.actions, Large):
            assert self.actions.features is not None  # raises where there are too many

    def draw(self, generators: Generators) -> Instances:
        generators = self.choose_generators(generators)
        f, g, norm, redraws = (
            np.stack(part) for part in zip(*self._draw_all(generators), strict=True)
        )
        values = np.concatenate([f[:, None], g], axis=1)
        spread = np.ptp(values, axis=2)
        seeds = choose_seed_set(self.settle(g), self.seed_size, generators)
        return Instances(
            f=f, g=g, norm=norm, noise=self.deviations(spread), seed_set=seeds, redraws=redraws
        )

    def _draw_all(self, generators: Generators) -> list[tuple[Array, Array, Array, int]]:
        """f (n,), g (m, n), norms (1 + m,) and redraws for each generator.

        One draw each, then one more, two, four, ... for those without a feasible action: all values
        of a large set are computed together.
        """
        draws: dict[int, tuple[Array, Array, Array, int]] = {}
        # A seed's draws come in order, so how many are tried at once changes no instance.
        tried = 0
        while tried < MAX_REDRAWS and len(draws) < len(generators):
            left = [s for s in range(len(generators)) if s not in draws]
            # As many again as were tried, as far as their values fit into memory.
            fitting = AHEAD // (len(left) * (1 + self.constraints) * self.actions.n)
            count = min(max(1, min(tried, fitting)), MAX_REDRAWS - tried)

            weights = np.stack([self._weights(generators[s]) for s in left for _ in range(count)])
            values = self.actions.combine(weights.reshape(-1, self.actions.n)).reshape(
                weights.shape
            )
            for i, (a, h) in enumerate(zip(weights, values, strict=True)):
                s = left[i // count]
                redraws = tried + i % count
                # The first feasible draw counts; those that were drawn ahead are left.
                drawn = None if s in draws else self._feasible(a, h)
                if drawn is not None:
                    draws[s] = *drawn, redraws
            tried += count
        if len(draws) < len(generators):
            raise CellFailure(
                f"no feasible instance in {MAX_REDRAWS} draws; lower h or draw fewer constraints"
            )
        return [draws[s] for s in range(len(generators))]

    def _feasible(self, weights: Array, values: Array) -> tuple[Array, Array, Array] | None:
        """f, g and norms of a draw from its weights and values, both (functions, n); None if no
        action is feasible.
        """
        norms = np.sqrt((values * weights).sum(axis=1))  # sqrt(a^T K a)

        # A shift leaves the span of the kernel sections, so that its norm is fitted anew.
        if self.scaled == "min-max":
            low = values.min(axis=1, keepdims=True)
            high = values.max(axis=1, keepdims=True)
            values = (values - low) / (high - low)
            norms = np.array([self.actions.norm(row) for row in values])
        elif self.scaled:
            unit = np.abs(values).max(axis=1)
            values = values / unit[:, None]
            norms = norms / unit

        # B is that of f as it is played, after scaling.
        f = values[0]
        if self.constraint == "threshold":
            bound = {"norm": norms[0], "sup": np.abs(f).max(), "max": f.max()}[self.h_of]
            g = self.h * bound - f[None, :]
        else:
            g = values[1:]

        if not (self.settle(g) <= 0).all(axis=0).any():
            return None
        # A least squares, dearer than the rest of the draw: of what is kept only.
        if self.constraint == "threshold":
            norms = np.array([norms[0], self.actions.norm(g[0])])
        return f, g, norms

    def _weights(self, gen: np.random.Generator) -> Array:
        """The a_i of every function at the points of the grid, (functions, n); a point drawn twice
        has two.
        """
        functions = 1 if self.constraint == "threshold" else 1 + self.constraints
        weights = gen.uniform(-1, 1, (functions, self.actions.n))
        if self.supports == "grid":
            return weights
        # With replacement: bincount adds up the weights of a point that is drawn twice.
        drawn = gen.integers(self.actions.n, size=weights.shape)
        return np.stack(
            [np.bincount(x, a, self.actions.n) for x, a in zip(drawn, weights, strict=True)]
        )


@PROBLEMS.register("rkhs-1d")
@dataclass(kw_only=True)
class RKHS1D(RandomRKHS):
    """The synthetic problem of the papers: 100 even points of [0, 1], SE kernel with lengthscale
    0.2.
    """

    source = "Zhou & Ji (2022) 5.1; CBO preprint F.1"
    about = "random RKHS function on 100 points of [0, 1], threshold or independent constraint"
    stated_facts = ("n = 100, d = 1", "1", "varies", "varies")
    constraints = 1

    def grid(self) -> tuple[Array, kernels.KernelName, float]:
        return np.linspace(0, 1, 100)[:, None], "se", 0.2


@PROBLEMS.register("rkhs")
@dataclass(kw_only=True)
class RKHS(RandomRKHS):
    """The functions of `rkhs-1d` in any dimension, size, kernel and number of constraints, for
    scaling studies.

    Points are even in one dimension and the first n of a Sobol sequence on [0, 1]^d otherwise.
    """

    source = "ours"
    about = "random RKHS functions for scaling studies: any d, n, kernel and number of constraints"
    stated_facts = ("any n, d", "any", "varies", "varies")

    constraint: Literal["threshold", "independent"] = param(
        "independent", "g drawn like f, or g = -f + h B"
    )
    d: int = param(1, "input dimension", at_least=1, at_most=100)
    n: int = param(100, "number of actions", at_least=2, at_most=200_000)
    m: int = param(1, "number of constraints", at_least=1, at_most=100)
    kernel: kernels.KernelName = param("se", "kernel of f and g")
    lengthscale: float = param(0.2, "lengthscale", at_least=1e-4, at_most=1e4)

    def validate(self) -> None:
        if self.constraint == "threshold" and self.kernel == "linear":
            raise Misuse(
                "a threshold g = -f + h is not in the space of a linear kernel; use constraint: "
                "independent"
            )
        if self.constraint == "threshold" and self.m != 1:
            raise Misuse(
                f"m is {self.m}, but a threshold is one constraint; use constraint: independent "
                "for more"
            )

    def grid(self) -> tuple[Array, kernels.KernelName, float]:
        if self.d == 1:
            return np.linspace(0, 1, self.n)[:, None], self.kernel, self.lengthscale
        # A mesh in many dimensions would have few sizes n.
        from scipy.stats import qmc

        points = qmc.Sobol(self.d, scramble=False).random_base2((self.n - 1).bit_length())
        return points[: self.n], self.kernel, self.lengthscale


SAMPLE = 2**10  # points where a draw's range is read off, and a feasible one looked for
# of the search for the optimum of a draw; every support is a start besides
STARTS = 8
POWER = 12
ACCURACY = 1e-6


@dataclass(frozen=True)
class Sections:
    """Functions Σ_i a_i k(., x_i) on the unit cube, of one replicate.

    Attributes:
        kernel: k.
        supports: x_i, (p, d).
        weights: a_i of (f, g_1, ..., g_m), (p, 1 + m).
    """

    kernel: SquaredExponential | Matern
    supports: Array
    weights: Array

    def __call__(self, x: Array) -> Array:
        """Values (..., 1 + m) at points (..., d); those of a point do not depend on the others, to
        the last bit.
        """
        rows = self.kernel(x.reshape(-1, x.shape[-1]), self.supports)
        # One product per point: BLAS may add up in another order for several at once.
        return np.matmul(rows[:, None, :], self.weights)[:, 0].reshape(*x.shape[:-1], -1)

    @property
    def norm(self) -> Array:
        """RKHS norms √(aᵀKa), (1 + m,)."""
        K = self.kernel(self.supports, self.supports)
        return np.sqrt((self.weights * (K @ self.weights)).sum(axis=0))


@lru_cache(maxsize=1024)
@single_thread()
def optimum(
    kernel: SquaredExponential | Matern, d: int, supports: bytes, weights: bytes
) -> Optimum:
    """What the search finds; every method of a suite meets the same draws."""
    # Arrays have no hash, so the cache knows them by their bytes.
    points = np.frombuffer(supports).reshape(-1, d)
    sections = Sections(kernel, points, np.frombuffer(weights).reshape(len(points), -1))
    return search(sections, Box(np.zeros(d), np.ones(d)), STARTS, POWER, list(points))


@dataclass(frozen=True)
class SectionInstances(Drawn):
    """One draw of functions per replicate (see `Drawn`).

    Attributes:
        functions: of each replicate, points (..., d) to (f, g_1, ..., g_m), (..., 1 + m).
        points, f_star: best feasible points (S, d) and their rewards (S,).
    """

    functions: Sequence[Formula]
    points: Array
    f_star: Array
    norm: Array
    noise: Array
    sup: Array
    slater: Array
    redraws: Indices
    binds: Mask
    accuracy: float = ACCURACY
    seed_set: None = None

    def values(self, first: int, actions: Array) -> Array:
        # Every replicate has functions of its own.
        return np.stack(
            [function(actions[:, s]) for s, function in enumerate(self.functions)], axis=1
        )

    def best(self, t: int) -> Array:
        return self.points

    def settled(self, settle: Settle) -> SectionInstances:
        return replace(
            self, functions=[settled_formula(function, settle) for function in self.functions]
        )


@PROBLEMS.register("rkhs-box")
@dataclass(kw_only=True)
class RKHSBox(RandomFunctions):
    """f and every g_j are Σ_i a_i k(., x_i) on [0, 1]^d, a_i uniform on [-1, 1], x_i uniform in the
    box.

    The functions lie in the space of the learners' kernel, and their norms √(aᵀKa) are exact, as
    the theory asks; no formula on a box of the literature does. Draws without a feasible point
    among 1,024 are thrown away and counted. The optimum of each draw comes from
    `reference.search`, begun at every support, too; a play that finds a better point is a failed
    cell.
    """

    source = "ours"
    about = (
        "random RKHS functions on [0, 1]^d: f and m constraints in the kernel's space, norms exact"
    )
    stated_facts = ("box, any d", "any", "varies", "varies")

    d: int = param(2, "input dimension", at_least=1, at_most=6)
    m: int = param(1, "number of constraints", at_least=1, at_most=20)
    supports: int = param(
        20, "how many kernel sections each function is made of", at_least=1, at_most=200
    )
    kernel: StationaryName = param("se", "kernel of f and g, and of the learners' models")
    lengthscale: float = param(0.2, "its lengthscale", at_least=0.05, at_most=1e4)
    candidates: int = candidates_of(1024)

    def validate(self) -> None:
        # The search for the optimum needs functions that are smooth.
        if self.kernel == "matern12":
            raise Misuse(
                "kernel is 'matern12', whose sums have a kink at each support; allowed: se, "
                "matern32, matern52"
            )

    @cached_property
    def actions(self) -> Box:
        return Box(
            np.zeros(self.d), np.ones(self.d), self.kernel, self.lengthscale, self.candidates
        )

    def draw(self, generators: Generators) -> SectionInstances:
        drawn = [self._draw_one(gen) for gen in self.choose_generators(generators)]
        functions, points, f, norm, sup, spread, slater, redraws, binds = zip(*drawn, strict=True)
        return SectionInstances(
            functions=functions,
            points=np.stack(points),
            f_star=np.array(f),
            norm=np.stack(norm),
            noise=self.deviations(np.stack(spread)),
            sup=np.stack(sup),
            slater=np.array(slater),
            redraws=np.array(redraws, dtype=np.intp),
            binds=np.array(binds),
        )

    def _draw_one(
        self, gen: np.random.Generator
    ) -> tuple[Sections, Array, float, Array, Array, Array, float, int, bool]:
        # One feasible sampled point is enough; a draw without one is taken for infeasible.
        sample = sobol(self.d, SAMPLE)
        for redraws in range(MAX_REDRAWS):  # noqa: B007
            supports = gen.uniform(0, 1, (self.supports, self.d))
            sections = Sections(
                self.actions.kernel, supports, gen.uniform(-1, 1, (self.supports, 1 + self.m))
            )
            values = sections(sample)
            if self._are_feasible(values).any():
                break
        else:
            raise CellFailure(
                f"no feasible instance in {MAX_REDRAWS} draws; draw fewer constraints"
            )
        solution = optimum(sections.kernel, self.d, supports.tobytes(), sections.weights.tobytes())
        f = float(solution.values[0])

        # The sample may miss the values at the optimum, which are known.
        sup = np.maximum(np.abs(values).max(axis=0), np.abs(solution.values))
        spread = np.ptp(values, axis=0)
        return (
            sections,
            solution.x,
            f,
            sections.norm,
            sup,
            spread,
            min(1.0, solution.slater),
            redraws,
            solution.binds(ACCURACY),
        )
