"""The problems of CEC 2006 (Liang et al. 2006) that have inequalities only, in their numbers.

No setting of ours was chosen on them. All are stated as minimisation of a cost; here f = -cost is
maximised. Their optima were derived again by multistart SLSQP, or are closed forms, and agree with
the published values to all digits of these. There is no noise unless a suite says so.

Two were looked at when the step of our methods to the boundary was chosen: `cec-g6` and `cec-g24`.
They are here because the collection has them, and each says so in `about`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import square

from cbobench.gp.kernels import Array
from cbobench.problems.channels import noise_on
from cbobench.problems.formulas.box import define, join, read_numbers, read_rows, split
from cbobench.problems.formulas.high_dimensional import define_keane
from cbobench.problems.formulas.literature import PublishedProblem


@dataclass(kw_only=True)
class HeldOut(PublishedProblem):
    """Base: published, and without noise."""

    noise_f: float = noise_on(0.0, "f, in the units played")
    noise_g: float = noise_on(0.0, "every g_j, in the units played")


@define(
    "cec-g1",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g01",
    about="13-dimensional, nine linear constraints, concave cost, feasible on 0.0002 % of the box",
    low=(0.0,) * 13,
    high=(1.0,) * 9 + (100.0,) * 3 + (1.0,),
    m=9,
    x=read_numbers("1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 3.0 3.0 3.0 1.0"),
    f=15.0,
    slater=3.0,
    share=2.371e-06,
    accuracy=1e-12,
    how="as published; the ends of multistart SLSQP agree; g_1, g_2, g_3, g_7, g_8, g_9 active",
)
def cec_g1(x: Array) -> Array:
    """Problem g01 of CEC 2006: a concave quadratic cost under nine linear constraints, in 13
    dimensions.

    Cost 5 Σ_(i<=4) (x_i - x_i²) - Σ_(i>=5) x_i. Published: -15.
    """
    bent = np.ascontiguousarray(x[..., :4])
    rest = np.ascontiguousarray(x[..., 4:])
    cost = 5 * (bent - bent * bent).sum(axis=-1) - rest.sum(axis=-1)
    x = np.moveaxis(x, -1, 0)
    pairs = [2 * x[i] + 2 * x[j] + x[9 + i] + x[9 + j] - 10 for i, j in ((0, 1), (0, 2), (1, 2))]
    single = [x[9 + i] - 8 * x[i] for i in range(3)]
    double = [x[9 + i] - 2 * x[3 + 2 * i] - x[4 + 2 * i] for i in range(3)]
    return join(-cost, *pairs, *single, *double)


KEANE_20 = read_numbers(
    """
    3.16246061572185 3.12833142812967 3.09479212988791 3.06145059523469 3.02792915885555
    2.99382606701730 2.95866871765285 2.92184227312450 0.49482511456933 0.48835711005490
    0.48231642711865 0.47664475092742 0.47129550835493 0.46623099264167 0.46142004984199
    0.45683664767217 0.45245876903267 0.44826762241853 0.44424700958760 0.44038285956317
    """
)

cec_g2 = define_keane(
    "cec-g2",
    KEANE_20,
    0.8036191041255872,
    0.999965,
    source="Liang et al. (2006), CEC 2006, g02: Keane (1994), 20 dimensions",
    about="20-dimensional, many local optima, two constraints, nearly all feasible, optimum where "
    "one is active",
    noise_f=noise_on(0.0, "f, in the units played"),
    noise_g=noise_on(0.0, "every g_j, in the units played"),
    __doc__="""Problem g02 of CEC 2006: Keane's bump in 20 dimensions, as `keane-10`.

    The family is that of `keane-10`, which has been shown before; these 20
    dimensions have not. Published: -0.803619104.
    """,
)


@define(
    "cec-g4",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g04",
    about="five-dimensional, six bilinear constraints, feasible on 27 % of the box",
    low=(78.0, 33.0, 27.0, 27.0, 27.0),
    high=(102.0, 45.0, 45.0, 45.0, 45.0),
    m=6,
    x=read_numbers("78.0 33.0 29.99525602568159 45.0 36.77581290578821"),
    f=30665.53867178332,
    slater=2.5,
    share=0.2699,
    how="multistart SLSQP; g_1, g_6 and three sides active",
)
def cec_g4(x: Array) -> Array:
    """Problem g04 of CEC 2006: Himmelblau's nonlinear problem, three quantities between two bounds
    each.

    Published: -30665.53867.
    """
    a, b, c, d, e = split(x)
    cost = 5.3578547 * c * c + 0.8356891 * a * e + 37.293239 * a - 40792.141
    first = 85.334407 + 0.0056858 * b * e + 0.0006262 * a * d - 0.0022053 * c * e
    second = 80.51249 + 0.0071317 * b * e + 0.0029955 * a * b + 0.0021813 * c * c
    third = 9.300961 + 0.0047026 * c * e + 0.0012547 * a * c + 0.0019085 * c * d
    return join(
        -cost,
        first - 92,
        -first,
        second - 110,
        90 - second,
        third - 25,
        20 - third,
    )


@define(
    "cec-g6",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g06",
    about="two-dimensional, sickle between two circles, 0.007 % of the box; "
    "looked at when the step to the boundary was chosen",
    low=(13.0, 0.0),
    high=(100.0, 100.0),
    m=2,
    x=(14.094999999999994, 0.8429607892154639),
    f=6961.813875580155,
    slater=0.952512765113,
    share=6.57e-05,
    how="multistart SLSQP; the tip of the sickle, g_1 and g_2 active",
)
def cec_g6(x: Array) -> Array:
    """Problem g06 of CEC 2006: a cubic cost between two circles that nearly touch.

    Looked at when the step of our methods to the boundary was chosen, so not held out in the strict
    sense. Published: -6961.813876.
    """
    a, b = split(x)
    p = a - 10
    q = b - 20
    outside = 100 - square(a - 5) - square(b - 5)
    inside = square(a - 6) + square(b - 5) - 82.81
    return join(-(p * p * p + q * q * q), outside, inside)


@define(
    "cec-g7",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g07",
    about="ten-dimensional, eight constraints, six of them active, feasible on 0.0001 % of the box",
    low=(-10.0,) * 10,
    high=(10.0,) * 10,
    m=8,
    x=read_numbers(
        """
        2.171996371248145 2.363682973612594 8.773925738263149 5.095984486937535
        0.9906547708184767 1.4305739926383403 1.3216442082048658 9.828725807951006
        8.280091668813956 8.375926660654901
        """
    ),
    f=-24.306209068179808,
    slater=16.4484669533,
    share=1.07e-06,
    how="multistart SLSQP; g_1 to g_6 active; convex",
)
def cec_g7(x: Array) -> Array:
    """Problem g07 of CEC 2006: a convex quadratic cost under three linear and five quadratic
    constraints.

    Published: 24.30620907.
    """
    a, b, c, d, e, f, g, h, i, j = split(x)
    cost = a * a + b * b + a * b - 14 * a - 16 * b + square(c - 10) + 45
    cost = cost + 4 * square(d - 5) + square(e - 3) + 2 * square(f - 1) + 5 * g * g
    cost = cost + 7 * (h - 11) * (h - 11) + 2 * square(i - 10) + square(j - 7)
    return join(
        -cost,
        4 * a + 5 * b - 3 * g + 9 * h - 105,
        10 * a - 8 * b - 17 * g + 2 * h,
        -8 * a + 2 * b + 5 * i - 2 * j - 12,
        3 * (a - 2) * (a - 2) + 4 * square(b - 3) + 2 * c * c - 7 * d - 120,
        5 * a * a + 8 * b + square(c - 6) - 2 * d - 40,
        a * a + 2 * square(b - 2) - 2 * a * b + 14 * e - 6 * f,
        0.5 * square(a - 8) + 2 * square(b - 4) + 3 * e * e - f - 30,
        -3 * a + 6 * b + 12 * (i - 8) * (i - 8) - 7 * j,
    )


@define(
    "cec-g8",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g08",
    about="two-dimensional, many local optima, feasible on 0.86 % of the box, constraints inactive "
    "at the optimum",
    low=(0.0, 0.0),
    high=(10.0, 10.0),
    m=2,
    x=(1.2279713536534498, 4.245373366522264),
    f=0.09582504141803586,
    slater=0.580500371785,
    share=0.00856,
    how="multistart SLSQP; no constraint active",
)
def cec_g8(x: Array) -> Array:
    """Problem g08 of CEC 2006: cost -sin³(2πx_1) sin(2πx_2) / (x_1³ (x_1 + x_2)) on [0, 10]².

    It is bounded, but a hundred times steeper near the origin than anywhere it is feasible; at the
    origin, where it has no limit, 0 is taken (ours). Published: -0.09582504.
    """
    a, b = split(x)
    wave = 2 * np.pi * np.sinc(2 * a)  # sin(2πa) / a, also at 0
    f = wave * wave * wave * np.sin(2 * np.pi * b) / np.maximum(a + b, 1e-300)
    return join(f, a * a - b + 1, 1 - a + square(b - 4))


@define(
    "cec-g9",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g09",
    about="seven-dimensional, polynomials, four constraints, feasible on 0.52 % of the box",
    low=(-10.0,) * 7,
    high=(10.0,) * 7,
    m=4,
    x=read_numbers(
        """
        2.330499372476954 1.9513723733719779 -0.47754140641607457 4.365726232921192
        -0.6244869703117182 1.0381310180067658 1.5942267131729118
        """
    ),
    f=-680.6300573744019,
    slater=134.747908153,
    share=0.00526,
    how="multistart SLSQP; g_1 and g_4 active",
)
def cec_g9(x: Array) -> Array:
    """Problem g09 of CEC 2006: a polynomial cost of degree six, four constraints.

    Published: 680.6300574.
    """
    a, b, c, d, e, f, g = split(x)
    aa = a * a
    bb = b * b
    cc = c * c
    ee = e * e
    gg = g * g
    cost = square(a - 10) + 5 * (b - 12) * (b - 12) + cc * cc + 3 * (d - 11) * (d - 11)
    cost = cost + 10 * ee * ee * ee + 7 * f * f + gg * gg - 4 * f * g - 10 * f - 8 * g
    return join(
        -cost,
        2 * aa + 3 * bb * bb + c + 4 * d * d + 5 * e - 127,
        7 * a + 3 * b + 10 * cc + d - e - 282,
        23 * a + bb + 6 * f * f - 8 * g - 196,
        4 * aa + bb - 3 * a * b + 2 * cc + 5 * f - 11 * g,
    )


@define(
    "cec-g10",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g10",
    about="eight-dimensional, six constraints over six orders of magnitude, all active, feasible "
    "on 0.0006 % of the box",
    low=(100.0, 1000.0, 1000.0) + (10.0,) * 5,
    high=(10000.0,) * 3 + (1000.0,) * 5,
    m=6,
    x=read_numbers(
        """
        579.3066844253553 1359.9706680516551 5109.970668051655 182.01769958111993
        295.6011732779338 217.98230041888007 286.4165263031861 395.6011732779338
        """
    ),
    f=-7049.248020528665,
    slater=0.360514797,
    share=6e-06,
    how="Newton's method in x_4 and x_5, the others from the six constraints, all active",
)
def cec_g10(x: Array) -> Array:
    """Problem g10 of CEC 2006: heat exchangers, a linear cost under three linear and three bilinear
    constraints.

    Published: 7049.24802.
    """
    a, b, c, d, e, f, g, h = split(x)
    return join(
        -(a + b + c),
        0.0025 * (d + f) - 1,
        0.0025 * (e + g - d) - 1,
        0.01 * (h - e) - 1,
        833.33252 * d + 100 * a - a * f - 83333.333,
        1250 * e + b * d - b * g - 1250 * d,
        1250000 + c * e - c * h - 2500 * e,
    )


@define(
    "cec-g12",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g12",
    about="three-dimensional, feasible in 729 small balls, constraint inactive at the optimum",
    low=(0.0,) * 3,
    high=(10.0,) * 3,
    x=(5.0, 5.0, 5.0),
    f=1.0,
    slater=0.0625,
    share=0.04771,
    accuracy=1e-12,
    how="closed form: the middle of the middle ball",
    binds=False,
)
def cec_g12(x: Array) -> Array:
    """Problem g12 of CEC 2006: a paraboloid; feasible are the balls of radius 1/4 around the 9³
    integer points.

    The one constraint is the least over the balls, so it has kinks. Published: -1 at (5, 5, 5),
    which is also the best point of the whole box.
    """
    # A squared distance is a sum over axes, so the nearest centre is nearest on each of them.
    a, b, c = split(x - np.clip(np.rint(x), 1, 9))
    p, q, r = split(x - 5)
    f = (100 - p * p - q * q - r * r) / 100
    return join(f, a * a + b * b + c * c - 0.0625)


# of y_1 to y_17
LIMITS = read_rows(
    """
    213.1 405.23
    17.505 1053.6667
    11.275 35.03
    214.228 665.585
    7.458 584.463
    0.961 265.916
    1.612 7.046
    0.146 0.222
    107.99 273.366
    922.693 1286.105
    926.832 1444.046
    18.766 537.141
    1072.163 3247.039
    8961.448 26844.086
    0.063 0.386
    71084.33 140000.0
    2802713.0 12146108.0
    """
)


@define(
    "cec-g16",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g16",
    about="five-dimensional, 38 constraints over seven orders of magnitude, feasible on 0.02 % of "
    "the box",
    low=(704.4148, 68.6, 0.0, 193.0, 25.0),
    high=(906.3855, 288.88, 134.75, 287.0966, 84.1988),
    m=38,
    x=read_numbers(
        """
        705.1745370700905 68.60000000000002 102.89999999999999 282.3249315936603
        37.584116425805476
        """
    ),
    f=1.9051552585347862,
    slater=0.038,
    share=0.0002,
    how="multistart SLSQP; four constraints and one side active; least max g by y_8",
)
def cec_g16(x: Array) -> Array:
    """Problem g16 of CEC 2006: profit of a pulp mill, 17 intermediate quantities between two bounds
    each, and four other constraints.

    Published: -1.905155259.
    """
    a, b, c, d, e = split(x)
    # Quantities y and c of the definition, in its order.
    y1 = b + c + 41.6
    y2 = 12.5 / (0.024 * d - 4.62) + 12
    c2 = 0.0003535 * a * a + 0.5311 * a + 0.08705 * y2 * a
    y3 = c2 / (0.052 * a + 78 + 0.002377 * y2 * a)
    y4 = 19 * y3
    rest = a - y3
    c4 = 0.04782 * rest + 0.1956 * rest * rest / b + 0.6376 * y4 + 1.594 * y3
    y5 = (rest - y4) * (0.95 - c4 / (100 * b))
    y6 = a - y5 - y4 - y3
    c8 = 0.995 * (y4 + y5)
    y7 = c8 / y1
    y8 = c8 / 3798
    y9 = 96.82 / (y7 - 0.0663 * y7 / y8 - 0.3153) + 0.321 * y1
    y10 = 1.29 * y5 + 1.258 * y4 + 2.29 * y3 + 1.71 * y6
    y11 = 1.71 * a - 0.452 * y4 + 0.58 * y3
    c12 = 0.995 * y10 + 1998
    y12 = 12.3 / 752.3 * a + 1.75 * y2 * 0.995 * a / c12
    y13 = c12 - 1.75 * y2
    c17 = y9 + e
    y14 = 3623 + 64.4 * b + 58.4 * c + 146312 / c17
    y15 = y13 / (0.995 * y10 + 60.8 * b + 48 * d - 0.1121 * y14 - 5095)
    y16 = 148000 - 331000 * y15 + 40 * y13 - 61 * y15 * y13
    y17 = 14130000 - 1328 * y10 - 531 * y11 + (2324 * y10 - 28740000 * y2) / c12
    # The cost, and what is constrained besides the limits.
    cost = 0.000117 * y14 + 0.1365 + 0.00002358 * y13 + 0.000001502 * y16 + 0.0321 * y12
    cost = cost + 0.004324 * y5 + 0.0001 * (y13 / y15 - y13 / 0.52) / (1.104 - 0.72 * y15)
    cost = cost + 37.48 * y2 / c12 - 0.0000005843 * y17
    y = join(y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17)
    single = [
        0.28 / 0.72 * y5 - y4,
        c - 1.5 * b,
        3496 * y2 / c12 - 21,
        110.6 + y1 - 62212 / c17,
    ]
    values = join(-cost, *single)
    return np.concatenate([values, LIMITS[:, 0] - y, y - LIMITS[:, 1]], axis=-1)


@define(
    "cec-g18",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g18",
    about="nine-dimensional, 13 bilinear constraints, no feasible point in any sample of the box",
    low=(-10.0,) * 8 + (0.0,),
    high=(10.0,) * 8 + (20.0,),
    m=13,
    x=read_numbers(
        """
        -0.8394430211275843 -0.5434423846306977 0.050918012544547864 -0.99870283668292
        -0.8394430211267156 -0.5434477107152524 0.05091801254295092 -0.99869751059979
        5.326083210732948e-06
        """
    ),
    f=0.8660254037844358,
    slater=0.302169479252,
    share=6.5e-13,
    how="multistart SLSQP; √3/2, at many points; eight constraints active here",
)
def cec_g18(x: Array) -> Array:
    """Problem g18 of CEC 2006: the largest area of a hexagon whose diameter is at most 1.

    Published: -0.8660254038, which is -√3/2.
    """
    a, b, c, d, e, f, g, h, i = split(x)
    area = 0.5 * (a * d - b * c + c * i - e * i + e * h - f * g)
    legs = [(c, d), (i, 0 * i), (e, f), (a, b - i), (a - e, b - f), (a - g, b - h)]
    legs += [(c - e, d - f), (c - g, d - h), (g, h - i)]
    lengths = [p * p + q * q - 1 for p, q in legs]
    turns = [b * c - a * d, -c * i, e * i, f * g - e * h]
    return join(area, *lengths, *turns)


PRICE = np.array([-40, -2, -0.25, -4, -4, -1, -40, -60, 5, 1])
RULES = read_rows(
    """
    -16 2 0 1 0
    0 -2 0 0.4 2
    -3.5 0 2 0 0
    0 -2 0 -4 -1
    0 -9 -2 1 -2.8
    2 0 -4 0 0
    -1 -1 -1 -1 -1
    -1 -2 -3 -2 -1
    1 2 3 4 5
    1 1 1 1 1
    """
)
CURVED = read_rows(
    """
    30 -20 -10 32 -10
    -20 39 -6 -31 32
    -10 -6 10 -6 -10
    32 -31 -6 39 -20
    -10 32 -10 -20 30
    """
)
CUBIC = np.array([4, 8, 10, 6, 2])
LEAST = np.array([-15, -27, -36, -18, -12])


@define(
    "cec-g19",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g19",
    about="15-dimensional, five constraints, all active, feasible on a third of the box",
    low=(0.0,) * 15,
    high=(10.0,) * 15,
    m=5,
    x=read_numbers(
        """
        0.0 0.0 3.945990437502629 0.0 3.2831773420794 10.0 0.0 0.0 0.0 0.0 0.37076484981191676
        0.27845602653998575 0.5238384877135666 0.3886201512451543 0.29815676350329773
        """
    ),
    f=-32.65559295024633,
    slater=1251.00577403,
    share=0.334,
    how="multistart SLSQP; all constraints and eight sides active",
)
def cec_g19(x: Array) -> Array:
    """Problem g19 of CEC 2006: the dual of Colville's first problem, a cubic cost under five
    constraints.

    With y = (x_1, ..., x_10) and z = (x_11, ..., x_15): cost zᵀCz + 2 Σ_j d_j z_j³ - bᵀy, and g_j =
    (Aᵀy - 2Cz)_j - 3 d_j z_j² - e_j. Published: 32.65559295.
    """
    y = np.ascontiguousarray(x[..., :10])
    z = np.ascontiguousarray(x[..., 10:])
    # Sums over axes, not products of matrices: a point's value must not depend on the others.
    curved = (z[..., None, :] * CURVED).sum(axis=-1)
    cost = (z * curved + 2 * CUBIC * z * z * z).sum(axis=-1) - (y * PRICE).sum(axis=-1)
    g = (y[..., None] * RULES).sum(axis=-2) - 2 * curved - 3 * CUBIC * z * z - LEAST
    return np.concatenate([-cost[..., None], g], axis=-1)


@define(
    "cec-g24",
    HeldOut,
    source="Liang et al. (2006), CEC 2006, g24",
    about="two-dimensional, linear cost, disconnected, 44 % of the box; "
    "looked at when the step to the boundary was chosen",
    low=(0.0, 0.0),
    high=(3.0, 4.0),
    m=2,
    x=(2.329520197477611, 3.1784930741176756),
    f=5.508013271595287,
    slater=3.44210457988,
    share=0.4421,
    how="multistart SLSQP; g_1 and g_2 active",
)
def cec_g24(x: Array) -> Array:
    """Problem g24 of CEC 2006: cost -x_1 - x_2 under two curves of degree four, two feasible parts.

    Looked at when the step of our methods to the boundary was chosen, so not held out in the strict
    sense. Published: -5.508013272.
    """
    a, b = split(x)
    first = a * (a * (a * (-2 * a + 8) - 8)) + b - 2
    second = a * (a * (a * (-4 * a + 32) - 88) + 96) + b - 36
    return join(a + b, first, second)
