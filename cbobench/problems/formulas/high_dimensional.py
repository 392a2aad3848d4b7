"""Problems in 10 to 124 dimensions: published or after published ones, a beam, and a model fitted
to real data.

All are stated as minimisation of a cost, without noise; here f = -cost is maximised, and the noise
is ours. Where a reference is a proven optimum, its class says so. The others are best known values,
from `tests/problems/derive_high_dimensional.py`: their accuracy is infinite, so a method may beat
them, and its simple regret is 0 from then on. `cbobench check` does not search a better one: that
would take 8 s for `ackley-50` and minutes for `rover-60`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.kernels import Array
from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.box import (
    BoxProblem,
    Reference,
    define,
    join,
    longer,
    pointwise,
    read_numbers,
    read_rows,
)
from cbobench.problems.formulas.literature import PublishedProblem
from cbobench.registry import tell_install
from cbobench.threads import single_thread

# Best known points, as `tests/problems/derive_high_dimensional.py` says how they were found.
KEANE_10 = read_numbers(
    """
    3.123890381 3.069154873 3.014282328 2.957588379 1.466041357 0.3680585196 0.3634823294
    0.3591206348 0.3549542844 0.350966636
    """
)
ROVER_60 = read_numbers(
    """
    0.05243814549 0.05129231679 0.04845637227 0.04927531314 0.06907108554 0.06000104044
    0.07817582163 0.06712832994 0.255140834 0.1533421006 0.3573612749 0.2956085569 0.3634442128
    0.301499142 0.3653227192 0.3041752893 0.3654295077 0.3042543121 0.3655845148 0.3044578956
    0.3657563884 0.3046797071 0.3656470946 0.304530093 0.367517186 0.3070510056 0.3683604266
    0.3072470826 0.4850956594 0.4640728064 0.5992455487 0.5190064503 0.6000498364 0.519881525
    0.6008111008 0.5202162972 0.6028473605 0.5212036044 0.602702514 0.52169603 0.7190557592
    0.5767158772 0.8116298828 0.7279318218 0.8144064002 0.7303991259 0.8157641879 0.7329181143
    0.8166393197 0.7338958589 0.8162723084 0.7337765604 0.8369851388 0.7612821858 0.9520080086
    0.9533030536 0.941837797 0.9363809483 0.9505838888 0.9509700483
    """
)
STRUCTURE_124 = read_numbers(
    """
    0.08491815956 0.08010413716 0.07363473924 0.06814318714 0.06046706783 0.05354052905
    0.04274777158 0.03380286002 0.04238025257 0.04730165621 0.05134760342 0.0533614038 0.05484797596
    0.05529180171 0.05499679669 0.05405910945 0.05184948315 0.04916117138 0.04984109513
    0.05246508914 0.05821548482 0.06406841624 0.06405599579 0.05796801688 0.04927772607
    0.04492563237 0.04849598979 0.05285754958 0.05677276929 0.05925334926 0.06119951652
    0.06194757888 0.06167438322 0.0604663381 0.05798845792 0.05506620467 0.05070986468 0.04632842462
    0.04685904226 0.05360325613 0.06179326762 0.06755564357 0.06748228813 0.06120125124
    0.05628100444 0.05652923299 0.06071605533 0.0642865789 0.06791933343 0.07046579618 0.07273266539
    0.07393421525 0.07437955035 0.07390728465 0.07241177654 0.07043152885 0.06809449705
    0.06533167549 0.0620902038 0.05790879225 0.0510743659 0.04226741188 0.6529750186 0.6112336707
    0.5668648485 0.5192744709 0.4666943646 0.4067063609 0.3327723856 0.2534243399 0.3219920961
    0.3650271798 0.392268083 0.4098866699 0.4198870726 0.4238739306 0.4216545163 0.4138055777
    0.3980258619 0.3758169179 0.380370481 0.4033732729 0.4433659233 0.4934600501 0.4942190484
    0.4405387294 0.3768081052 0.3447883628 0.369295197 0.4071567999 0.4336599065 0.4551960374
    0.4684568215 0.4749516788 0.473093657 0.4626051868 0.4457311697 0.4203609769 0.3907135691
    0.3526800699 0.3571299749 0.412608581 0.4701786728 0.5207160475 0.5195247749 0.4663496333
    0.4295186894 0.4346192033 0.4633128243 0.494310671 0.5190180401 0.5411263993 0.5565786866
    0.567010802 0.5700500051 0.5659496721 0.5557452368 0.5385525082 0.523334177 0.4988072244
    0.4783247112 0.4409182599 0.3967626481 0.3180390254
    """
)
RIDGE_20 = read_numbers(
    """
    -2.5 -0.5215942414 -0.6840160472 -0.7832816915 -2.5 -2.5 -0.8412296158 -2.5 -0.7038644912
    -1.72125564 -0.6420925139 -0.4488117722 -1.072672447 0.0 -2.5 -2.5 -1.331638474 -2.5 -2.5 -2.5
    """
)


@dataclass(kw_only=True)
class HighDimensional(PublishedProblem):
    """Base of problems in many dimensions: the stated point is checked, and no search held against
    it.
    """

    searched = False


def ackley(x: Array) -> Array:
    """The Ackley function of Eriksson & Poloczek (2021) on [-5, 10]^d, under Σ_i x_i <= 0 and ‖x‖₂
    <= 5.

    Cost -20 exp(-‖x‖₂ / (5 √d)) - exp(Σ_i cos(2π x_i) / d) + 20 + e. Its optimum, proven, is the
    origin, which is also that of the whole box; the first constraint is active there, and f has a
    kink.
    """
    x = np.ascontiguousarray(x)
    d = x.shape[-1]
    # expm1 keeps the digits near the origin, where both terms cancel.
    norm = np.sqrt((x * x).sum(axis=-1))
    near = -20 * np.expm1(-norm / (5 * math.sqrt(d)))
    waves = math.e * -np.expm1(np.cos(2 * np.pi * x).sum(axis=-1) / d - 1)
    return join(-(near + waves), x.sum(axis=-1), norm - 5)


def define_ackley(d: int, source: str, about: str) -> type[BoxProblem]:
    """Ackley's function in d dimensions, of which all is known in closed form.

    The feasible set is half a ball. max(Σ_i x_i, ‖x‖ - 5) is convex and symmetric, so it is least
    on the diagonal.
    """
    return define(
        f"ackley-{d}",
        HighDimensional,
        source=source,
        about=about,
        low=(-5.0,) * d,
        high=(10.0,) * d,
        m=2,
        x=(0.0,) * d,
        f=0.0,
        slater=5 * math.sqrt(d) / (1 + math.sqrt(d)),
        share=math.exp(d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1) - d * math.log(3)) / 2,
        accuracy=1e-12,
        how="closed form: the origin; feasible is half a ball of radius 5; least max g on the "
        "diagonal",
        binds=False,
    )(ackley)


ackley_10 = define_ackley(
    10,
    "Eriksson & Poloczek (2021), Ackley in 10 dimensions",
    "ten-dimensional, multimodal, two constraints, feasible on 0.002 % of the box, optimum "
    "with a kink",
)
ackley_20 = define_ackley(
    20,
    "after Eriksson & Poloczek (2021), in 20 dimensions",
    "20-dimensional, multimodal, two constraints, no feasible point in any sample of the box",
)
ackley_50 = define_ackley(
    50,
    "after Eriksson & Poloczek (2021), in 50 dimensions",
    "50-dimensional, multimodal, two constraints, no feasible point in any sample of the box",
)


def keane(x: Array) -> Array:
    """Keane's bump (Keane 1994) on [0, 10]^d: cost -|Σ_i cos⁴ x_i - 2 Π_i cos² x_i| / √(Σ_i i
    x_i²).

    Published constraints: Π_i x_i >= 0.75 and Σ_i x_i <= 7.5 d. The product spans tens of orders of
    magnitude, so the
    first is stated of the geometric mean: g_1 = 0.75^(1/d) - (Π_i x_i)^(1/d). The cost has a pole
    at the origin, far from any feasible point, so the root is taken of at least 1. Both are ours
    and change neither the feasible set nor any feasible cost. The value is best known, not proven;
    g_1 is active there.
    """
    x = np.ascontiguousarray(x)
    d = x.shape[-1]
    square = np.cos(x) * np.cos(x)
    bumps = np.abs((square * square).sum(axis=-1) - 2 * square.prod(axis=-1))
    f = bumps / np.sqrt(np.maximum((np.arange(1, d + 1) * (x * x)).sum(axis=-1), 1.0))
    with np.errstate(divide="ignore"):  # the logarithm of 0: a mean of 0
        mean = np.exp(np.log(x).sum(axis=-1) / d)
    return join(f, 0.75 ** (1 / d) - mean, x.sum(axis=-1) - 7.5 * d)


def define_keane(
    name: str, x: tuple[float, ...], f: float, share: float, **stated: Any
) -> type[BoxProblem]:
    """Keane's bump with a best known value; both constraints are slackest on the diagonal, as the
    geometric mean is concave.

    The share is 1 - P(Π x_i < 0.75) - P(Σ x_i > 7.5 d), a gamma and an Irwin-Hall law: both at once
    hardly happen.
    """
    d = len(x)
    return define(
        name,
        HighDimensional,
        low=(0.0,) * d,
        high=(10.0,) * d,
        m=2,
        x=x,
        f=f,
        slater=d / (1 + d) * (7.5 - 0.75 ** (1 / d)),
        share=share,
        accuracy=math.inf,
        how="best known: CMA-ES, then multistart SLSQP; g_1 active; least max g on the diagonal",
        **stated,
    )(keane)


keane_10 = define_keane(
    "keane-10",
    KEANE_10,
    0.7473103615121017,
    0.99687,
    source="Keane (1994), 10 dimensions",
    about="ten-dimensional, many local optima, two constraints, nearly all feasible, optimum where "
    "one is active",
)


START = (0.05, 0.05)
GOAL = (0.95, 0.95)
OBSTACLES = read_rows(
    """
    0.2 0.22
    0.42 0.2
    0.66 0.16
    0.88 0.24
    0.12 0.44
    0.32 0.42
    0.54 0.4
    0.78 0.46
    0.22 0.66
    0.46 0.62
    0.66 0.64
    0.9 0.68
    0.36 0.84
    0.6 0.86
    0.8 0.84
    """
)
RADIUS = 0.07
SOFT = 0.003
ALONG = 200


def spline_basis(controls: int, points: int) -> Array:
    """Values (points, controls) of clamped cubic B-splines with uniform knots, by the recursion of
    Cox & de Boor.
    """
    knots = np.concatenate([np.zeros(3), np.linspace(0, 1, controls - 2), np.ones(3)])
    t = np.linspace(0, 1, points)[:, None]
    last = np.append(t[:-1], [[np.nextafter(1.0, 0.0)]], axis=0)  # the last interval is closed
    # Degree 0: 1 within a knot's interval; each step below raises the degree by one.
    basis = ((knots[:-1] <= last) & (last < knots[1:])).astype(float)
    for k in range(1, 4):
        left = knots[k:-1] - knots[: -k - 1]
        right = knots[k + 1 :] - knots[1:-k]
        # A knot that is repeated has no interval: 0 / 0 counts as 0.
        rising = (t - knots[: -k - 1]) / np.where(left > 0, left, 1.0)
        falling = (knots[k + 1 :] - t) / np.where(right > 0, right, 1.0)
        basis = rising * basis[:, :-1] + falling * basis[:, 1:]
    return basis


BASIS = spline_basis(32, ALONG)


@define(
    "rover-60",
    HighDimensional,
    source="after Wang et al. (2018) and Eriksson & Poloczek (2021), obstacles ours",
    about="60-dimensional, shortest path among 15 obstacles, many local optima, no feasible point "
    "in any sample",
    low=(0.0,) * 60,
    high=(1.0,) * 60,
    m=15,
    x=ROVER_60,
    f=-1.2999775164738496,
    slater=0.024654,
    share=0.0,
    accuracy=math.inf,
    how=(
        "best known: SLSQP from shortest routes of visibility graphs; g_1, g_7, g_11, g_15 active"
    ),
)
def rover_60(x: Array) -> Array:
    """Shortest path of a rover among 15 obstacles, by 30 points of a B-spline in the unit square.

    After the trajectory problem of Wang et al. (2018) and its variant of Eriksson & Poloczek (2021)
    with 15 impassable obstacles; the rule and the places are ours. x = (a_1, b_1, ..., a_30, b_30):
    the points (a_i, b_i), with (0.05, 0.05) before and (0.95, 0.95) behind them, are the control
    points of a clamped cubic B-spline with uniform knots. p_1, ..., p_200 are its points at
    parameters equally far apart. The cost is the length of the polygon through them, Σ_k ‖p_(k+1) -
    p_k‖. With discs of radius r = 0.07 around centres o_j, ours (`OBSTACLES`),

        g_j = r + τ log Σ_k exp(-‖p_k - o_j‖ / τ), τ = 0.003,

    a smooth upper bound, by at most 0.016, of the signed distance of Eriksson & Poloczek: minus the
    distance to the disc, or the depth of penetration. The value is best known, not proven; no path
    round the discs is shorter than 1.294, and the path touches four.
    """
    x = np.ascontiguousarray(x)
    inner = x.reshape(*x.shape[:-1], 30, 2)
    ends = [np.broadcast_to(np.array([end]), (*x.shape[:-1], 1, 2)) for end in (START, GOAL)]
    path = np.matmul(BASIS, np.concatenate([ends[0], inner, ends[1]], axis=-2))
    a = np.ascontiguousarray(path[..., 0])
    b = np.ascontiguousarray(path[..., 1])
    values = [-np.hypot(np.diff(a), np.diff(b)).sum(axis=-1)]
    for centre in OBSTACLES:  # one by one: all at once take a gigabyte for a sample of the box
        far = np.hypot(a - centre[0], b - centre[1])
        # The nearest point is taken out of the sum, which is then at least 1.
        least = far.min(axis=-1)
        near = np.exp((least[..., None] - far) / SOFT).sum(axis=-1)
        values.append(RADIUS - least + SOFT * np.log(near))
    return np.stack(values, axis=-1)


# lengths in m, forces in kN
SEGMENTS = 62
LENGTH = 0.5
YOUNG = 200e6
STRESS = 160e3
SUPPORTS = (22, 42, 62)  # nodes
SPANS = (11.0, 10.0, 10.0)
# spans under live load in the three load cases
LOADED = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 0]])
# kN at every node that is not supported
DEAD = 5.0
LIVE = 20.0
SLENDER = 8.0  # largest height over width
SAG = 300.0  # least span over deflection


def loads() -> Array:
    """Downward forces at nodes 1 to 62: three load cases, then a unit force at each support, (6,
    62).
    """
    nodes = np.arange(1, SEGMENTS + 1)
    span = np.searchsorted(SUPPORTS, nodes)
    cases = np.where(np.isin(nodes, SUPPORTS), 0.0, DEAD + LIVE * LOADED[:, span])
    return np.concatenate([cases, np.equal.outer(SUPPORTS, nodes).astype(float)])


@lru_cache
@single_thread()
def cantilever() -> tuple[Array, Array]:
    """The beam without rollers: moments (6, 63) at nodes 0 to 62 under each of `loads`, and what
    segment i adds to the deflection of node k per 1 / (E I_i), by virtual work, (6, 62, 62)."""
    at = LENGTH * np.arange(SEGMENTS + 1)
    unit = np.maximum(at[1:, None] - at, 0.0)  # moments under a unit force at node k, (62, 63)
    moments = loads() @ unit
    a = moments[:, None, :-1]
    b = moments[:, None, 1:]
    shares = LENGTH / 6 * (unit[:, :-1] * (2 * a + b) + unit[:, 1:] * (a + 2 * b))
    return moments, shares


def soft_max(ratios: Array) -> Array:
    """(Σ r^16)^(1/16) over the last axis: a smooth upper bound of the largest |r|."""
    for _ in range(4):
        ratios = ratios * ratios
    total = np.ascontiguousarray(ratios).sum(axis=-1)
    for _ in range(4):
        total = np.sqrt(total)
    return total


@define(
    "structure-124",
    HighDimensional,
    source="ours",
    about="124-dimensional, least volume of a continuous beam, 65 smooth constraints on stress, "
    "slenderness, deflection",
    low=(0.02,) * SEGMENTS + (0.1,) * SEGMENTS,
    high=(0.2,) * SEGMENTS + (1.0,) * SEGMENTS,
    m=65,
    x=STRUCTURE_124,
    f=-0.8446425082621812,
    slater=0.65463,
    share=0.0,
    accuracy=math.inf,
    how=(
        "best known: multistart SLSQP, all ends agree; 20 stresses, 31 slendernesses, 2 "
        "deflections active"
    ),
)
def structure_124(x: Array) -> Array:
    """Least volume of a continuous beam of 62 rectangular segments under limits of stress,
    slenderness and deflection.

    A smooth problem of the size of MOPTA08, which is a program and not formulas; all numbers are
    ours. x = (b_1, ..., b_62, h_1, ..., h_62): width 0.02 to 0.2 m and height 0.1 to 1 m of
    segments of 0.5 m. The beam of 31 m is clamped at its left end and rests on rollers at 11, 21
    and 31 m. Each node without a support carries 5 kN, and 20 kN more in load case 1 everywhere, in
    case 2 on the spans 1 and 3, in case 3 on span 2. Linear elastic, E = 200 GPa, second moment of
    area I_i = b_i h_i³ / 12. Cost: volume Σ_i 0.5 b_i h_i in m³.

    With ‖·‖ the norm (Σ r^16)^(1/16), a smooth maximum, there are for each pair of neighbouring
    segments g = ‖σ / 160 MPa‖ - 1, over three cases and both ends of both, σ = 6 M / (b h²), and g
    = ‖h / (8 b)‖ - 1; and for each span g = ‖v / (span / 300)‖ - 1, over three cases and its nodes.
    31 + 31 + 3 constraints.

    Force method: moments M and deflections v are those of a cantilever under the loads and the
    reactions of the rollers, which are such that v = 0 there. The centre of the box is feasible,
    but hardly any other sampled point. The value is best known, not proven.
    """
    x = np.ascontiguousarray(x)
    width = x[..., :SEGMENTS]
    height = x[..., SEGMENTS:]
    moments, deflections = solve(width * height * height * height / 12)
    ends = np.stack([moments[..., :-1], moments[..., 1:]], axis=-1)  # (..., 3, 62, 2)
    stress = 6 * ends / (width * height * height)[..., None, :, None] / STRESS
    # One limit for a pair of neighbours, over three cases and both ends of both.
    pairs = np.moveaxis(stress.reshape(*x.shape[:-1], 3, SEGMENTS // 2, 4), -3, -2)
    slender = (height / (SLENDER * width)).reshape(*x.shape[:-1], SEGMENTS // 2, 2)
    g = [soft_max(pairs.reshape(*x.shape[:-1], SEGMENTS // 2, 12)) - 1, soft_max(slender) - 1]
    for first, last, span in zip((0, *SUPPORTS), SUPPORTS, SPANS, strict=False):
        within = deflections[..., first : last - 1] * (SAG / span)  # column k is node k + 1
        g.append(soft_max(within.reshape(*x.shape[:-1], -1))[..., None] - 1)
    volume = LENGTH * np.ascontiguousarray(width * height).sum(axis=-1)
    return np.concatenate([-volume[..., None], *g], axis=-1)


def solve(second: Array) -> tuple[Array, Array]:
    """Moments (..., 3, 63) and deflections (..., 3, 62) in three load cases, of second moments of
    area (..., 62).
    """
    cantilever_moments, shares = cantilever()
    pliant = np.ascontiguousarray(1 / (YOUNG * second))[..., None]
    flexible = np.matmul(shares.reshape(-1, SEGMENTS), pliant).reshape(
        *second.shape[:-1], 6, SEGMENTS
    )
    # Reactions are such that nothing sinks at a support (force method).
    at_supports = flexible[..., np.array(SUPPORTS) - 1]  # (..., 6, 3)
    reactions = np.linalg.solve(
        at_supports[..., 3:, :], at_supports[..., :3, :].swapaxes(-1, -2)
    ).swapaxes(-1, -2)
    moments = cantilever_moments[:3] - np.matmul(reactions, cantilever_moments[3:])
    return moments, flexible[..., :3, :] - np.matmul(reactions, flexible[..., 3:, :])


# age, sex, body mass, blood pressure, six of the blood serum
PRICES = np.array([0, 0, 1, 1, 2, 2, 2, 2, 2, 2.0])
FREEDOM = 10.0  # most degrees of freedom
MONEY = 6.0  # most to pay for measurements
FIRST, SECOND = np.triu_indices(10, 1)  # of the 45 pairs of features


@lru_cache
@single_thread()
def diabetes() -> tuple[Array, Array, Array]:
    """Ten features and their 45 products, Φ (442, 55), the target, (442,), each of mean 0 and
    deviation 1, and ΦᵀΦ.

    Raises:
        Misuse: scikit-learn is not installed.
    """
    if find_spec("sklearn") is None:
        raise Misuse(
            "ridge-20 needs the data of scikit-learn, not installed here; "
            f"{tell_install('sklearn')}"
        )
    from sklearn.datasets import load_diabetes

    raw, target = load_diabetes(return_X_y=True, scaled=False)
    single = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    features = np.concatenate([single, single[:, FIRST] * single[:, SECOND]], axis=1)
    features = np.ascontiguousarray((features - features.mean(axis=0)) / features.std(axis=0))
    return features, (target - target.mean()) / target.std(), features.T @ features


@PROBLEMS.register("ridge-20")
@dataclass(kw_only=True)
class Ridge20(HighDimensional):
    """Weights of a ridge regression with interactions, under budgets of degrees of freedom and of
    measurements.

    The diabetes data of Efron et al. (2004), as scikit-learn ships them: 442 patients, ten
    features, disease progress a year later. Features, their 45 products and the target are brought
    to mean 0 and deviation 1: Φ (442, 55) and y. x = (log₁₀ w_1, ..., log₁₀ w_10, log₁₀ v_1, ...,
    log₁₀ v_10) in [-2.5, 0]²⁰. Column i of Φ is multiplied by w_i, the product of i and j by v_i
    v_j, and a ridge regression with penalty 1 and a free intercept fitted, so that a small weight
    drops its column. f is the share of variance explained by leave-one-out prediction, in closed
    form: with S the diagonal matrix of the weights, M = S (S Φᵀ Φ S + I)⁻¹ S and h_k = 1 / 442 +
    φ_kᵀ M φ_k,

        f = 1 - Σ_k ((y_k - φ_kᵀ M Φᵀ y) / (1 - h_k))² / Σ_k y_k².

    g_1 = Σ_k h_k / 10 - 1: at most ten effective degrees of freedom. g_2 = Σ_i p_i u_i / 6 - 1:
    measuring feature i costs p_i (age and sex 0, body mass and blood pressure 1, the six values of
    the blood serum 2 each) as far as it is used, u_i = 442 (w_i² + v_i²) / (1 + 442 (w_i² + v_i²)),
    what a ridge regression on it alone does not shrink. Weights, prices and budgets are ours. The
    value is best known, not proven; both constraints are active there.
    """

    source = "ours, data of Efron et al. (2004)"
    about = (
        "20-dimensional, ridge regression on scikit-learn's diabetes data, budgets of freedom "
        "and measurements bind"
    )

    lengthscale: float = longer(20)

    low = (-2.5,) * 20
    high = (0.0,) * 20
    m = 2
    reference = Reference(
        x=RIDGE_20,
        f=0.5182005582287716,
        slater=0.8956223,
        share=0.00438,
        accuracy=math.inf,
        how=(
            "best known: multistart SLSQP; both constraints active; least max g where all "
            "weights are least"
        ),
        binds=True,
    )

    def identity(self) -> dict[str, Any]:
        return {"diabetes": sha256(b"".join(part.tobytes() for part in diabetes()[:2])).hexdigest()}

    @pointwise
    def formula(self, x: Array) -> Array:
        features, target, gram = diabetes()
        weights = 10.0 ** np.ascontiguousarray(x)
        w = weights[:10]
        v = weights[10:]
        scale = np.concatenate([w, v[FIRST] * v[SECOND]])
        design = features * scale
        inverse = np.linalg.inv(scale[:, None] * gram * scale + np.eye(len(scale)))
        shrunk = design @ inverse
        # Leave-one-out residuals from one fit: each is divided by 1 - h_k.
        leverages = 1 / len(target) + (shrunk * design).sum(axis=-1)
        left_out = (target - shrunk @ (design.T @ target)) / (1 - leverages)
        # A feature is paid for as far as it is used, alone or in a product.
        strength = len(target) * (w * w + v * v)
        paid = (PRICES * strength / (1 + strength)).sum()
        f = 1 - (left_out * left_out).mean() / (target * target).mean()
        return np.array([f, leverages.sum() / FREEDOM - 1, paid / MONEY - 1])
