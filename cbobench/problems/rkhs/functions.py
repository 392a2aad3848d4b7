"""Random functions of a reproducing-kernel Hilbert space on a finite set (Zhou & Ji 2022, Section
5.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cbobench.errors import CellFailure, Misuse
from cbobench.gp import kernels
from cbobench.gp.actions import Finite, Large
from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Instances, choose_seed_set
from cbobench.problems.channels import FeedbackModel
from cbobench.problems.data import Site
from cbobench.problems.instances import Generators
from cbobench.rng import generator

MAX_REDRAWS = 1000
AHEAD = 2**22  # values of draws of which some may not be needed


@dataclass(kw_only=True)
class RandomRKHS(FeedbackModel):
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

    kernel_is_known = True

    noise: float | None = param(
        None, "noise standard deviation R; null takes noise_share", above=0.0
    )
    noise_share: float = param(0.01, "R^2 as a share of each function's range", above=0.0)
    instance: int | Literal["fresh", "fixed"] = param(
        "fresh", "a fresh instance per seed, or one for all seeds: fixed (number 0), or its number"
    )
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
        if self.instance != "fresh":
            number = 0 if self.instance == "fixed" else int(self.instance)
            generators = [generator(self.name, "fixed", number) for _ in generators]
        f, g, norm, redraws = (
            np.stack(part) for part in zip(*self._draw_all(generators), strict=True)
        )
        if self.noise is None:
            spread = np.ptp(np.concatenate([f[:, None], g], axis=1), axis=2)
            noise = np.sqrt(self.noise_share * spread)
        else:
            noise = np.full_like(norm, self.noise)
        seeds = choose_seed_set(self.settle(g), self.seed_size, generators)
        return Instances(f=f, g=g, norm=norm, noise=noise, seed_set=seeds, redraws=redraws)

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
