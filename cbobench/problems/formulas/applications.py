"""Problems of Shi & Eryilmaz (2022): data rates, and a counterexample to fixed penalties.

Data rates for four servers under an electricity budget (Section 3 and E.2). The sum of four
utilities of the rates x in [0, 2]⁴ is to be large, at a price g(x) = 0.2 x_1 + 0.4 x_2 + 0.8 x_3 +
1.2 x_4 - 2. Servers 1 and 3 have sigmoid utilities c (1 / (1 + exp(-a (x - b))) + d), which are not
concave; servers 2 and 4 have logarithmic ones c (log(a x + b) + d).

The counterexample (Proposition 1): for every fixed penalty there is a problem on which it fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.channels import Law, TwoLaws, noise_law, noise_on
from cbobench.problems.formulas.box import BoxProblem, Reference
from cbobench.rng import Draws, Streams

LARGEST_RATE = 2.0
PRICES = (0.2, 0.4, 0.8, 1.2)
BUDGET = 2.0
SHAPES = ((6.0, 0.8), (4.0, 1.0), (9.0, 1.1), (9.0, 1.0))
"""(a, b) of the four utilities. OURS: the paper takes them from Lee, Mazumdar & Shroff (2005),
whose numbers we could not get. c and d follow from U(0) = 0 and U(2) = 1."""


def sigmoid_utility(x: Array, a: float, b: float) -> Array:
    """c (1 / (1 + exp(-a (x - b))) + d) with c and d such that U(0) = 0 and U(2) = 1; convex below
    b, concave above.
    """
    # c and d are fixed by the utility of no rate and of the largest.
    none = 1 / (1 + np.exp(a * b))
    full = 1 / (1 + np.exp(-a * (LARGEST_RATE - b)))
    return (1 / (1 + np.exp(-a * (x - b))) - none) / (full - none)


def log_utility(x: Array, a: float, b: float) -> Array:
    """c (log(a x + b) + d) with c and d such that U(0) = 0 and U(2) = 1."""
    none = np.log(b)
    full = np.log(a * LARGEST_RATE + b)
    return (np.log(a * x + b) - none) / (full - none)


@PROBLEMS.register("rate-allocation")
@dataclass(kw_only=True)
class RateAllocation(BoxProblem):
    """Four servers share an electricity budget; two of the utilities are not concave, so that there
    are local optima.

    Every utility is observed with an error N(0, 0.01), so the noise on f, their sum, has the
    variance 0.04 (the paper's f^t = Σ (U_i(x_i) + ε_i) in Section 3); `noise_f: 0.1` is one such
    error. `noise_g: 0` gives the noiseless
    constraint of E.2.1, and `noise_g: 0.11547` (0.2 / √3) with its uniform law the noise U[-0.2,
    0.2] of E.2.2.

    The shape constants a, b of the utilities are ours (`SHAPES`).
    """

    source = "Shi & Eryilmaz (2022) E.2, constants ours"
    about = (
        "rates of four servers on [0, 2]⁴, sigmoid and logarithmic utilities, linear electricity "
        "budget"
    )

    noise_f: float = noise_on(0.2, "f, the sum of four errors")
    noise_g: float = noise_on(0.0, "g")
    law: Law = param("gaussian", "law of the noise on f, scaled to its standard deviation R")
    law_g: Law = param("uniform", "law of the noise on g, scaled to its standard deviation")

    feasibility_tolerance = 1e-12  # the price of a point on the budget line rounds to 2 + 4e-16
    low = (0.0,) * 4
    high = (LARGEST_RATE,) * 4
    reference = Reference(
        x=(1.37326193156295, 0.9981603254572669, 1.3585645548995278, 0.19935986632073338),
        f=2.9615588995222315,
        slater=BUDGET,
        share=0.263,
        how="multistart SLSQP (four local optima), then U_i'(x_i) = μ p_i by root finding",
        binds=True,
    )

    def formula(self, x: Array) -> Array:
        # Contiguous, so that a point's last bits do not depend on its batch.
        parts = [np.array(x[..., i], order="C") for i in range(4)]
        utilities = (sigmoid_utility, log_utility, sigmoid_utility, log_utility)
        f = np.zeros(x.shape[:-1])
        g = np.full(x.shape[:-1], -BUDGET)
        for rate, utility, (a, b), price in zip(parts, utilities, SHAPES, PRICES, strict=True):
            f += utility(rate, a, b)
            g += price * rate
        return np.stack([f, g], axis=-1)

    def noise_draws(self, streams: Streams) -> Draws:
        return TwoLaws(
            streams,
            noise_law(self.law, self.tail),
            noise_law(self.law_g, self.tail),
            self.constraints,
        )


Penalty = Literal["linear", "exponential"]


def penalty_of(kind: Penalty, g: Array) -> Array:
    """Λ(g): g itself, or ψ(g) - 1 with ψ(g) = exp(g) for g > 0 and 1 elsewhere (Algorithm 2)."""
    if kind == "linear":
        return g
    # expm1 keeps the digits of small violations.
    return np.expm1(np.maximum(g, 0.0))


@PROBLEMS.register("no-fixed-penalty")
@dataclass(kw_only=True)
class NoFixedPenalty(BoxProblem):
    """f = κ Λ(g) - (x - c)² and g = x on [-1, 1], built against one multiplier κ and one penalty
    function Λ.

    A learner that maximises f - κ Λ(g) with just these κ and Λ maximises -(x - c)²: it converges to
    x = c > 0 and violates the constraint by c in every round. The constrained optimum is x = 0 for
    every κ >= 0 and both Λ.
    """

    source = "Shi & Eryilmaz (2022) Prop. 1"
    about = (
        "f = κ Λ(g) - (x - c)², g = x: built so that the fixed penalty κ Λ(g) ends at the "
        "infeasible x = c"
    )

    kappa: float = param(
        1.0, "multiplier κ that the problem is built against", at_least=0.0, at_most=1e6
    )
    penalty: Penalty = param(
        "linear", "Λ that it is built against: g, or exp(g) - 1 for g > 0 and else 0"
    )
    c: float = param(
        0.5, "where f - κ Λ(g) is largest, and how much that violates", above=0.0, below=1.0
    )

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
        """`reference` for these parameters: on [-1, 0] Λ has slope 1 or 0 and -(x - c)² has slope 2
        (c - x) > 0.
        """
        return replace(self.reference, f=-(self.c**2))

    def formula(self, x: Array) -> Array:
        g = np.array(x[..., 0], order="C")
        return np.stack([self.kappa * penalty_of(self.penalty, g) - (g - self.c) ** 2, g], axis=-1)
