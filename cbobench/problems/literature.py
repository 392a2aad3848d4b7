"""Test functions of the literature on constrained Bayesian optimization, with optima derived again.

All are published as minimisation of a cost; here f = -cost is maximised. Every reference comes from multistart SLSQP
with exact (complex-step) derivatives, not from a paper; a test derives it once more. Its point is feasible to the last
bit. The noise is ours: where a paper has noise at all, it is in other units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.box import BoxProblem, Reference

# Weights, widths and centres of the first four coordinates of the Hartmann function in six dimensions.
ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
WIDTHS = np.array([[10, 3, 17, 3.5], [0.05, 10, 17, 0.1], [3, 3.5, 1.7, 10], [17, 8, 0.05, 10]])
CENTRES = 1e-4 * np.array(
    [[1312, 1696, 5569, 124], [2329, 4135, 8307, 3736], [2348, 1451, 3522, 2883], [4047, 8828, 8732, 5743]]
)


@dataclass(kw_only=True)
class PublishedProblem(BoxProblem):
    """Base of published formulas: f and every g_j in units of their spread over the box, and little noise."""

    noise_f: float = param(0.01, "standard deviation of the noise on f, in the units played", at_least=0.0)
    noise_g: float = param(0.01, "standard deviation of the noise on every g_j, in the units played", at_least=0.0)
    scaled: bool = param(True, "shift f to mean 0, divide f and every g_j by their standard deviations over the box")


@PROBLEMS.register("gardner-1")
@dataclass(kw_only=True)
class Gardner1(PublishedProblem):
    """The first simulation of Gardner et al. (2014): cost cos 2x cos y + sin x on [0, 6]², c(x, y) <= 0.5.

    c = cos x cos y - sin x sin y, which is cos(x + y). The best point of the whole box is feasible (g = -0.5), so the
    constraint rules out local optima but is not active at the optimum.
    """

    source = "Gardner et al. (2014), first simulation"
    about = "two-dimensional, multimodal, feasible on two thirds of the box, constraint inactive at the optimum"

    low = (0.0, 0.0)
    high = (6.0, 6.0)
    reference = Reference(
        x=(4.712388980384690, 0.0),
        f=2.0,
        slater=1.5,
        share=0.66487,
        accuracy=1e-12,
        how="closed form: x = 3π/2, y = 0, where the cost is -1 - 1; least g at x + y = π",
        binds=False,
    )

    def formula(self, x: Array) -> Array:
        a, b = x[..., 0], x[..., 1]
        cost = np.cos(2 * a) * np.cos(b) + np.sin(a)
        return np.stack([-cost, np.cos(a) * np.cos(b) - np.sin(a) * np.sin(b) - 0.5], axis=-1)


@PROBLEMS.register("gramacy")
@dataclass(kw_only=True)
class Gramacy(PublishedProblem):
    """The toy problem of Gramacy et al. (2016): cost x_1 + x_2 on [0, 1]², one wavy and one round constraint.

    c_1 = 1.5 - x_1 - 2 x_2 - 0.5 sin(2π(x_1² - 2 x_2)) and c_2 = x_1² + x_2² - 1.5. Two other local optima have costs
    0.75 and 0.8609. Published: cost 0.5998 at (0.1954, 0.4044), rounded; the optimum is 1.2e-5 lower.
    """

    source = "Gramacy et al. (2016), toy problem"
    about = "two-dimensional, linear reward, two constraints, three local optima on their boundary"

    low = (0.0, 0.0)
    high = (1.0, 1.0)
    m = 2
    reference = Reference(
        x=(0.1951226834720067, 0.4046653685380608),
        f=-0.5997880520100675,
        slater=0.776885044793,
        share=0.45726,
        accuracy=1e-9,
        how="multistart SLSQP with exact derivatives; c_1 active",
        binds=True,
    )

    def formula(self, x: Array) -> Array:
        a, b = x[..., 0], x[..., 1]
        wavy = 1.5 - a - 2 * b - 0.5 * np.sin(2 * np.pi * (a * a - 2 * b))
        return np.stack([-(a + b), wavy, a * a + b * b - 1.5], axis=-1)


@PROBLEMS.register("hartmann-4")
@dataclass(kw_only=True)
class Hartmann4(PublishedProblem):
    """The Hartmann function of Picheny et al. (2013) in four dimensions, with the norm constraint of Letham et al.

    Cost (1.1 - Σ_i α_i exp(-Σ_j A_ij (x_j - P_ij)²)) / 0.839 on [0, 1]⁴, feasible where ‖x‖₂ <= 1. Letham et al. (2019)
    put that constraint on the function in six dimensions; in four it is BoTorch's `ConstrainedHartmann(dim=4)`.
    The optimum of the whole box is feasible (‖x‖ = 0.674), so the constraint is not active there.
    Published without constraint: (0.1873, 0.1906, 0.5566, 0.2647), whose cost is larger by 1.4e-4.
    """

    source = "Picheny et al. (2013); norm constraint of Letham et al. (2019)"
    about = "four-dimensional, two local optima, feasible inside the unit ball, constraint inactive at the optimum"

    low = (0.0,) * 4
    high = (1.0,) * 4
    reference = Reference(
        x=(0.1873952725112586, 0.19415153010700953, 0.5579177798992737, 0.2647796238393009),
        f=3.1344941412224,
        slater=1.0,
        share=0.30842,
        accuracy=1e-9,
        how="multistart SLSQP with exact derivatives; no constraint active; least g at the origin",
        binds=False,
    )

    def formula(self, x: Array) -> Array:
        bumps = ALPHA * np.exp(-(WIDTHS * (x[..., None, :] - CENTRES) ** 2).sum(axis=-1))
        return np.stack([(bumps.sum(axis=-1) - 1.1) / 0.839, np.sqrt((x * x).sum(axis=-1)) - 1], axis=-1)
