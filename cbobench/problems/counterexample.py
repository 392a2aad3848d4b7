"""Proposition 1 of Shi & Eryilmaz (2022): for every fixed penalty there is a problem on which it fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.box import BoxProblem, Reference

Penalty = Literal["linear", "exponential"]


def penalty_of(kind: Penalty, g: Array) -> Array:
    """Λ(g): g itself, or ψ(g) - 1 with ψ(g) = exp(g) for g > 0 and 1 elsewhere (Algorithm 2)."""
    return g if kind == "linear" else np.expm1(np.maximum(g, 0.0))


@PROBLEMS.register("no-fixed-penalty")
@dataclass(kw_only=True)
class NoFixedPenalty(BoxProblem):
    """f = κ Λ(g) - (x - c)² and g = x on [-1, 1], built against one multiplier κ and one penalty function Λ.

    A learner that maximises f - κ Λ(g) with just these κ and Λ maximises -(x - c)²: it converges to x = c > 0 and
    violates the constraint by c in every round. The constrained optimum is x = 0 for every κ >= 0 and both Λ.
    """

    source = "Shi & Eryilmaz (2022) Prop. 1"
    about = "f = κ Λ(g) - (x - c)², g = x: built so that the fixed penalty κ Λ(g) ends at the infeasible x = c"

    kappa: float = param(1.0, "multiplier κ that the problem is built against", at_least=0.0, at_most=1e6)
    penalty: Penalty = param("linear", "Λ that it is built against: g, or exp(g) - 1 for g > 0 and else 0")
    c: float = param(0.5, "where f - κ Λ(g) is largest, and how much that violates", above=0.0, below=1.0)

    low = (-1.0,)
    high = (1.0,)

    reference = Reference(
        x=(0.0,),
        f=-0.25,
        slater=1.0,
        share=0.5,
        accuracy=1e-12,
        how="closed form: f increases up to the boundary x = 0",
        binds=True,
    )

    @property
    def optimum(self) -> Reference:
        """`reference` for these parameters: on [-1, 0] Λ has slope 1 or 0 and -(x - c)² has slope 2 (c - x) > 0."""
        return replace(self.reference, f=-(self.c**2))

    def formula(self, x: Array) -> Array:
        g = np.array(x[..., 0], order="C")
        return np.stack([self.kappa * penalty_of(self.penalty, g) - (g - self.c) ** 2, g], axis=-1)
