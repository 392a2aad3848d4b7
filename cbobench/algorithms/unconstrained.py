"""Unconstrained kernelized bandits (Chowdhury & Gopalan 2017): what constrained methods become without a constraint."""

from __future__ import annotations

from dataclasses import dataclass

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.optimistic import OptimisticReward
from cbobench.gp.beliefs import Belief
from cbobench.gp.explore import UCB, Explore, Thompson
from cbobench.gp.kernels import Array


@dataclass(kw_only=True)
class Unconstrained(OptimisticReward):
    """Models the reward only and plays the best estimate of it."""

    models_constraints = False
    knows = ("kernel", "λ", "B", "R", "T")

    def score(self, belief: Belief) -> Array:
        return self.explore_f(belief.f)


@ALGORITHMS.register("igp-ucb")
@dataclass(kw_only=True)
class IGPUCB(Unconstrained):
    """IGP-UCB: argmax μ + β σ with β = B + R √(2(γ + 1 + ln(1/α)))."""

    source = "Chowdhury & Gopalan (2017) Alg. 1"
    about = "unconstrained GP-UCB"

    def strategies(self) -> tuple[Explore, ...]:
        return (UCB(+1),)


@ALGORITHMS.register("gp-ts")
@dataclass(kw_only=True)
class GPTS(Unconstrained):
    """GP-TS: argmax of a joint sample of N(μ, β² k_t) with β = B + R √(2(γ + 1 + ln(2/α)))."""

    source = "Chowdhury & Gopalan (2017) Alg. 2"
    about = "unconstrained Thompson sampling"

    def strategies(self) -> tuple[Explore, ...]:
        return (Thompson(),)

    def events(self) -> int:
        return 2  # the concentration of f and of the sample share α
