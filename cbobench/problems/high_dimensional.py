"""Problems in 10 to 60 dimensions, published or after published ones.

All are stated as minimisation of a cost, without noise; here f = -cost is maximised, and the noise is ours. Where a
reference is a proven optimum, its class says so. The others are best known values, from
`tests/problems/derive_high_dimensional.py`: their accuracy is infinite, so a method may beat them, and its simple
regret is 0 from then on. Preparing a problem checks a reference's point, but does not search a better one: that would
take 8 s for `keane-50` and minutes for `rover-60`, in every worker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.best_known import KEANE_10, KEANE_30, KEANE_50, ROVER_60
from cbobench.problems.box import Reference
from cbobench.problems.data import Site
from cbobench.problems.literature import PublishedProblem
from cbobench.problems.optimum import check_formula


@dataclass(kw_only=True)
class HighDimensional(PublishedProblem):
    """Base of problems in many dimensions: the stated point is checked, and no search held against it."""

    def prepare(self, data: Site) -> None:
        check_formula(self.formula, self.box, self.m, type(self).__name__)
        wrong = self.mistake(self.formula, self.optimum)
        if wrong:
            raise Misuse(f"the stated reference of {type(self).__name__} is {wrong}")


def longer(d: int) -> float:
    """The parameter `lengthscale` in d dimensions.

    Two random points of the unit cube are √(d/6) apart, so that a constant lengthscale makes of the kernel white noise.
    """
    default: float = param(
        round(0.3 * math.sqrt(d), 2), "its lengthscale, in units of the sides", at_least=1e-4, at_most=1e4
    )
    return default


@dataclass(kw_only=True)
class Ackley(HighDimensional):
    """The Ackley function of Eriksson & Poloczek (2021) on [-5, 10]^d, under Σ_i x_i <= 0 and ‖x‖₂ <= 5.

    Cost -20 exp(-‖x‖₂ / (5 √d)) - exp(Σ_i cos(2π x_i) / d) + 20 + e. Its optimum, proven, is the origin, which is also
    that of the whole box; the first constraint is active there, and f has a kink.
    """

    m = 2

    def formula(self, x: Array) -> Array:
        x = np.ascontiguousarray(x)
        d = x.shape[-1]
        norm = np.sqrt((x * x).sum(axis=-1))
        near = -20 * np.expm1(-norm / (5 * math.sqrt(d)))
        waves = math.e * -np.expm1(np.cos(2 * np.pi * x).sum(axis=-1) / d - 1)
        return np.stack([-(near + waves), x.sum(axis=-1), norm - 5], axis=-1)


def ackley_reference(d: int) -> Reference:
    """What is known of Ackley's function in closed form.

    The feasible set is half a ball. max(Σ_i x_i, ‖x‖ - 5) is convex and symmetric, so it is least on the diagonal.
    """
    return Reference(
        x=(0.0,) * d,
        f=0.0,
        slater=5 * math.sqrt(d) / (1 + math.sqrt(d)),
        share=math.exp(d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1) - d * math.log(3)) / 2,
        accuracy=1e-12,
        how="closed form: the origin; feasible is half a ball of radius 5; least max g on the diagonal",
        binds=False,
    )


@PROBLEMS.register("ackley-10")
@dataclass(kw_only=True)
class Ackley10(Ackley):
    __doc__ = Ackley.__doc__

    source = "Eriksson & Poloczek (2021), Ackley in 10 dimensions"
    about = "ten-dimensional, multimodal, two constraints, feasible on 0.002 % of the box, optimum with a kink"

    lengthscale: float = longer(10)

    low, high = (-5.0,) * 10, (10.0,) * 10
    reference = ackley_reference(10)


@PROBLEMS.register("ackley-20")
@dataclass(kw_only=True)
class Ackley20(Ackley):
    __doc__ = Ackley.__doc__

    source = "after Eriksson & Poloczek (2021), in 20 dimensions"
    about = "20-dimensional, multimodal, two constraints, no feasible point in any sample of the box"

    lengthscale: float = longer(20)

    low, high = (-5.0,) * 20, (10.0,) * 20
    reference = ackley_reference(20)


@PROBLEMS.register("ackley-50")
@dataclass(kw_only=True)
class Ackley50(Ackley):
    __doc__ = Ackley.__doc__

    source = "after Eriksson & Poloczek (2021), in 50 dimensions"
    about = "50-dimensional, multimodal, two constraints, no feasible point in any sample of the box"

    lengthscale: float = longer(50)

    low, high = (-5.0,) * 50, (10.0,) * 50
    reference = ackley_reference(50)


@dataclass(kw_only=True)
class Keane(HighDimensional):
    """Keane's bump (Keane 1994) on [0, 10]^d: cost -|Σ_i cos⁴ x_i - 2 Π_i cos² x_i| / √(Σ_i i x_i²).

    Published constraints: Π_i x_i >= 0.75 and Σ_i x_i <= 7.5 d. The product spans tens of orders of magnitude, so the
    first is stated of the geometric mean: g_1 = 0.75^(1/d) - (Π_i x_i)^(1/d). The cost has a pole at the origin, far
    from any feasible point, so the root is taken of at least 1. Both are ours and change neither the feasible set nor
    any feasible cost. The value is best known, not proven; g_1 is active there.
    """

    m = 2

    def formula(self, x: Array) -> Array:
        x = np.ascontiguousarray(x)
        d = x.shape[-1]
        square = np.cos(x) * np.cos(x)
        bumps = np.abs((square * square).sum(axis=-1) - 2 * square.prod(axis=-1))
        f = bumps / np.sqrt(np.maximum((np.arange(1, d + 1) * (x * x)).sum(axis=-1), 1.0))
        with np.errstate(divide="ignore"):  # the logarithm of 0: a mean of 0
            mean = np.exp(np.log(x).sum(axis=-1) / d)
        return np.stack([f, 0.75 ** (1 / d) - mean, x.sum(axis=-1) - 7.5 * d], axis=-1)


def keane_reference(x: tuple[float, ...], f: float, share: float) -> Reference:
    """A best known value; both constraints are slackest on the diagonal, as the geometric mean is concave.

    The share is 1 - P(Π x_i < 0.75) - P(Σ x_i > 7.5 d), a gamma and an Irwin-Hall law: both at once hardly happen.
    """
    d = len(x)
    return Reference(
        x=x,
        f=f,
        slater=d / (1 + d) * (7.5 - 0.75 ** (1 / d)),
        share=share,
        accuracy=math.inf,
        how="best known: CMA-ES, then multistart SLSQP; g_1 active; least max g on the diagonal",
        binds=True,
    )


@PROBLEMS.register("keane-10")
@dataclass(kw_only=True)
class Keane10(Keane):
    __doc__ = Keane.__doc__

    source = "Keane (1994), 10 dimensions"
    about = "ten-dimensional, many local optima, two constraints, nearly all feasible, optimum where one is active"

    lengthscale: float = longer(10)

    low, high = (0.0,) * 10, (10.0,) * 10
    reference = keane_reference(KEANE_10, 0.7473103615121017, 0.99687)


@PROBLEMS.register("keane-30")
@dataclass(kw_only=True)
class Keane30(Keane):
    __doc__ = Keane.__doc__

    source = "Keane (1994), 30 dimensions"
    about = "30-dimensional, many local optima, two constraints, nearly all feasible, optimum where one is active"

    lengthscale: float = longer(30)

    low, high = (0.0,) * 30, (10.0,) * 30
    reference = keane_reference(KEANE_30, 0.8218843966504186, 0.9999995)


@PROBLEMS.register("keane-50")
@dataclass(kw_only=True)
class Keane50(Keane):
    __doc__ = Keane.__doc__

    source = "Keane (1994), 50 dimensions"
    about = "50-dimensional, many local optima, two constraints, nearly all feasible, optimum where one is active"

    lengthscale: float = longer(50)

    low, high = (0.0,) * 50, (10.0,) * 50
    reference = keane_reference(KEANE_50, 0.8352623483570729, 0.9999999999)


START, GOAL = (0.05, 0.05), (0.95, 0.95)
OBSTACLES = np.array(
    [
        (0.20, 0.22),
        (0.42, 0.20),
        (0.66, 0.16),
        (0.88, 0.24),
        (0.12, 0.44),
        (0.32, 0.42),
        (0.54, 0.40),
        (0.78, 0.46),
        (0.22, 0.66),
        (0.46, 0.62),
        (0.66, 0.64),
        (0.90, 0.68),
        (0.36, 0.84),
        (0.60, 0.86),
        (0.80, 0.84),
    ]
)
RADIUS, SOFT, ALONG = 0.07, 0.003, 200


def spline_basis(controls: int, points: int) -> Array:
    """Values (points, controls) of clamped cubic B-splines with uniform knots, by the recursion of Cox & de Boor."""
    knots = np.concatenate([np.zeros(3), np.linspace(0, 1, controls - 2), np.ones(3)])
    t = np.linspace(0, 1, points)[:, None]
    last = np.append(t[:-1], [[np.nextafter(1.0, 0.0)]], axis=0)  # the last interval is closed
    basis = ((knots[:-1] <= last) & (last < knots[1:])).astype(np.float64)
    for k in range(1, 4):
        left, right = knots[k:-1] - knots[: -k - 1], knots[k + 1 :] - knots[1:-k]
        rising = (t - knots[: -k - 1]) / np.where(left > 0, left, 1.0)
        falling = (knots[k + 1 :] - t) / np.where(right > 0, right, 1.0)
        basis = rising * basis[:, :-1] + falling * basis[:, 1:]
    return np.asarray(basis)


@PROBLEMS.register("rover-60")
@dataclass(kw_only=True)
class Rover60(HighDimensional):
    """Shortest path of a rover among 15 obstacles, by 30 points of a B-spline in the unit square.

    After the trajectory problem of Wang et al. (2018) and its variant of Eriksson & Poloczek (2021) with 15 impassable
    obstacles; the rule and the places are ours. x = (a_1, b_1, ..., a_30, b_30): the points (a_i, b_i), with (0.05,
    0.05) before and (0.95, 0.95) behind them, are the control points of a clamped cubic B-spline with uniform knots.
    p_1, ..., p_200 are its points at parameters equally far apart. The cost is the length of the polygon through them,
    Σ_k ‖p_(k+1) - p_k‖. With discs of radius r = 0.07 around centres o_j, ours (`OBSTACLES`),

        g_j = r + τ log Σ_k exp(-‖p_k - o_j‖ / τ), τ = 0.003,

    a smooth upper bound, by at most 0.016, of the signed distance of Eriksson & Poloczek: minus the distance to the
    disc, or the depth of penetration. The value is best known, not proven; no path round the discs is
    shorter than 1.294, and the path touches four.
    """

    source = "after Wang et al. (2018) and Eriksson & Poloczek (2021), obstacles ours"
    about = "60-dimensional, shortest path among 15 obstacles, many local optima, no feasible point in any sample"

    lengthscale: float = longer(60)

    low, high = (0.0,) * 60, (1.0,) * 60
    m = 15
    basis = spline_basis(32, ALONG)
    reference = Reference(
        x=ROVER_60,
        f=-1.2999775164738496,
        slater=0.024654,
        share=0.0,
        accuracy=math.inf,
        how="best known: SLSQP from shortest routes of visibility graphs; g_1, g_7, g_11, g_15 active",
        binds=True,
    )

    def formula(self, x: Array) -> Array:
        x = np.ascontiguousarray(x)
        inner = x.reshape(*x.shape[:-1], 30, 2)
        ends = [np.broadcast_to(np.array([end]), (*x.shape[:-1], 1, 2)) for end in (START, GOAL)]
        path = np.matmul(self.basis, np.concatenate([ends[0], inner, ends[1]], axis=-2))
        a, b = np.ascontiguousarray(path[..., 0]), np.ascontiguousarray(path[..., 1])
        values = [-np.hypot(np.diff(a), np.diff(b)).sum(axis=-1)]
        for centre in OBSTACLES:  # one by one: all at once take a gigabyte for a sample of the box
            far = np.hypot(a - centre[0], b - centre[1])
            least = far.min(axis=-1)
            near = np.exp((least[..., None] - far) / SOFT).sum(axis=-1)
            values.append(RADIUS - least + SOFT * np.log(near))
        return np.stack(values, axis=-1)
