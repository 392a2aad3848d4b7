"""Random functions of a reproducing-kernel Hilbert space on a finite grid (Zhou & Ji 2022, Section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cbobench.errors import CellFailure, Misuse
from cbobench.gp import kernels
from cbobench.gp.actions import Finite, Scattered
from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Drawn, Instances, choose_seed_set
from cbobench.problems.channels import Everywhere, FeedbackModel
from cbobench.problems.data import DataFolder
from cbobench.rng import generator

MAX_REDRAWS = 1000


@dataclass(kw_only=True)
class RandomRKHS(FeedbackModel):
    """f = sum_i a_i k(., x_i) with a_i uniform on [-1, 1] and the grid's own points as supports.

    The constraint is g = -f + h B (`threshold`, B read as `h_of` says) or m functions drawn like f (`independent`).
    Draws without a feasible action are thrown away and counted. |f|_k = sqrt(a^T K a) is exact; a threshold's |g|_k
    is that of the nearest function in the features' span (`Finite.norm`).

    What Zhou & Ji leave open, each an option: "uniformly sampling a_i and support points x_i in X" may mean that every
    point of the grid is a support, or that p = n supports are drawn from it with replacement (`supports`); B in h = B/2
    may be the RKHS norm, or the largest value as for their sensors (`h_of`); 50 trials may be of one function or of
    fifty (`instance`). `scaled` divides f, and a g that is drawn like f, by its largest absolute value, as the public
    scripts of Chowdhury & Gopalan (2019) do, where B = 1.
    """

    constraint: Literal["threshold", "independent"] = param("threshold", "g = -f + h B, or drawn like f")
    h: float = param(0.5, "threshold as a share of B (threshold only)", above=0.0)
    h_of: Literal["norm", "sup", "max"] = param(
        "norm", "B in the threshold: RKHS norm of f, its largest absolute value, or its largest value"
    )
    supports: Literal["grid", "uniform"] = param(
        "grid", "the x_i: every point of the grid, or n drawn from it uniformly"
    )
    scaled: bool = param(False, "divide f, and an independent g, by its largest absolute value")
    noise: float | None = param(None, "noise standard deviation R; null takes noise_share", above=0.0)
    noise_share: float = param(0.01, "R^2 as a share of each function's range", above=0.0)
    instance: int | Literal["fresh", "fixed"] = param(
        "fresh", "a fresh instance per seed, or one for all seeds: fixed (number 0), or its number"
    )
    seed_size: int = param(5, "how many random feasible actions a safe method may start from", at_least=1)

    def grid(self) -> tuple[Array, kernels.KernelName, float]:
        """Points (n, d), the kernel's name and its lengthscale."""
        raise NotImplementedError

    @cached_property
    def actions(self) -> Finite:
        points, name, lengthscale = self.grid()
        return Finite.at(points, kernels.kernel(name, lengthscale), name)

    def prepare(self, data: DataFolder) -> None:
        if isinstance(self.actions, Scattered):
            assert self.actions.features is not None  # raises where there are too many

    @property
    def constraints(self) -> int:
        return 1

    def draw(self, generators: Sequence[np.random.Generator]) -> Instances:
        if self.instance != "fresh":
            number = 0 if self.instance == "fixed" else int(self.instance)
            generators = [generator(self.name, "fixed", number) for _ in generators]
        drawn = [self._draw_one(gen) for gen in generators]
        f, g, norm, redraws = (np.stack(part) for part in zip(*drawn, strict=True))
        values = np.concatenate([f[:, None], g], axis=1)
        spread = values.max(axis=2) - values.min(axis=2)
        noise = np.sqrt(self.noise_share * spread) if self.noise is None else np.full_like(spread, self.noise)
        return Instances(f, g, norm, noise, choose_seed_set(self.settle(g), self.seed_size, generators), redraws)

    def everywhere(self, instances: Drawn) -> Everywhere:
        assert isinstance(instances, Instances)
        g = instances.g
        return lambda points: g

    def _draw_one(self, gen: np.random.Generator) -> tuple[Array, Array, Array, int]:
        for redraws in range(MAX_REDRAWS):
            weights = self._weights(gen)
            values = self.actions.combine(weights)
            norms = np.sqrt((values * weights).sum(axis=1))  # sqrt(a^T K a)
            if self.scaled:
                unit = np.abs(values).max(axis=1)
                values, norms = values / unit[:, None], norms / unit
            f = values[0]
            if self.constraint == "threshold":
                bound = {"norm": norms[0], "sup": np.abs(f).max(), "max": f.max()}[self.h_of]
                g = self.h * bound - f[None, :]
                norms = np.array([norms[0], self.actions.norm(g[0])])
            else:
                g = values[1:]
            if (self.settle(g) <= 0).all(axis=0).any():
                return f, g, norms, redraws
        raise CellFailure(f"no feasible instance in {MAX_REDRAWS} draws; lower h or draw fewer constraints")

    def _weights(self, gen: np.random.Generator) -> Array:
        """The a_i of every function at the points of the grid, (functions, n); a point drawn twice has two."""
        weights = gen.uniform(-1, 1, (self._functions, self.actions.n))
        if self.supports == "grid":
            return weights
        drawn = gen.integers(self.actions.n, size=weights.shape)
        return np.stack([np.bincount(x, a, self.actions.n) for x, a in zip(drawn, weights, strict=True)])

    @property
    def _functions(self) -> int:
        return 1 if self.constraint == "threshold" else 1 + self.constraints


@PROBLEMS.register("rkhs-1d")
@dataclass(kw_only=True)
class RKHS1D(RandomRKHS):
    """The synthetic problem of the papers: 100 even points of [0, 1], SE kernel with lengthscale 0.2."""

    @classmethod
    def facts(cls) -> dict[str, str]:
        return {"actions": "n = 100, d = 1", "constraints": "1", "feasible": "varies", "best": "varies"}

    source = "Zhou & Ji (2022) 5.1; CBO preprint F.1"
    about = "random RKHS function on 100 points of [0, 1], threshold or independent constraint"

    def grid(self) -> tuple[Array, kernels.KernelName, float]:
        return np.linspace(0, 1, 100)[:, None], "se", 0.2


@PROBLEMS.register("rkhs")
@dataclass(kw_only=True)
class RKHS(RandomRKHS):
    """The same in any dimension, size, kernel and number of constraints, for scaling studies.

    Points are even in one dimension and the first n of a Sobol sequence on [0, 1]^d otherwise.
    """

    @classmethod
    def facts(cls) -> dict[str, str]:
        return {"actions": "any n, d", "constraints": "any", "feasible": "varies", "best": "varies"}

    source = "ours"
    about = "random RKHS functions for scaling studies: any d, n, kernel and number of constraints"

    constraint: Literal["threshold", "independent"] = param("independent", "g drawn like f, or g = -f + h B")
    d: int = param(1, "input dimension", at_least=1, at_most=100)
    n: int = param(100, "number of actions", at_least=2, at_most=200_000)
    m: int = param(1, "number of constraints", at_least=1, at_most=100)
    kernel: kernels.KernelName = param("se", "kernel of f and g")
    lengthscale: float = param(0.2, "lengthscale", at_least=1e-4, at_most=1e4)

    def validate(self) -> None:
        if self.constraint == "threshold" and self.kernel == "linear":
            raise Misuse("a threshold g = -f + h is not in the space of a linear kernel; use constraint: independent")
        if self.constraint == "threshold" and self.m != 1:
            raise Misuse(f"m is {self.m}, but a threshold is one constraint; use constraint: independent for more")

    @property
    def constraints(self) -> int:
        return self.m

    def grid(self) -> tuple[Array, kernels.KernelName, float]:
        if self.d == 1:
            return np.linspace(0, 1, self.n)[:, None], self.kernel, self.lengthscale
        from scipy.stats import qmc

        points = qmc.Sobol(self.d, scramble=False).random_base2(int(np.ceil(np.log2(self.n))))[: self.n]
        return points, self.kernel, self.lengthscale
