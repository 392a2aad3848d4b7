"""Problems of shapes that are hard in ways of their own: thin, disconnected, binary, of 200 planes.

No setting of ours was chosen on them, but on `townsend` steps to the boundary and restarts were,
of which its `about` says so. There is no noise unless a suite says so.
"""

from __future__ import annotations

import numpy as np
from numpy import square

from cbobench.gp.kernels import Array
from cbobench.problems.formulas.box import define, join, read_rows, split
from cbobench.problems.formulas.cec2006 import HeldOut


@define(
    "mishra-bird",
    HeldOut,
    source="Mishra (2006), with the disc that is customary",
    about="two-dimensional, steep, multimodal, feasible on most of the box, constraint inactive at "
    "the optimum",
    low=(-10.0, -6.5),
    high=(0.0, 0.0),
    x=(-3.130246804725526, -1.5821421759654468),
    f=106.76453674926476,
    slater=25.0,
    share=0.8313,
    how="multistart SLSQP; no constraint active; least g in the middle of the disc",
    binds=False,
)
def mishra_bird(x: Array) -> Array:
    """Mishra's bird function in a disc: cost sin(b) e^((1-cos a)²) + cos(a) e^((1-sin b)²) + (a -
    b)².

    On [-10, 0] x [-6.5, 0], feasible where (a + 5)² + (b + 5)² <= 25. Published: -106.7645367 at
    (-3.1302468, -1.5821422).
    """
    a, b = split(x)
    p = 1 - np.cos(a)
    q = 1 - np.sin(b)
    cost = np.sin(b) * np.exp(p * p) + np.cos(a) * np.exp(q * q) + square(a - b)
    return join(-cost, square(a + 5) + square(b + 5) - 25)


@define(
    "simionescu",
    HeldOut,
    source="Simionescu (2014)",
    about="two-dimensional, feasible inside a flower of eight petals, two best points on two tips",
    low=(-1.25, -1.25),
    high=(1.25, 1.25),
    x=(0.8485281374239144, -0.8485281374237996),
    f=0.07200000000000001,
    slater=1.44,
    share=0.5127,
    how="closed form: a = -b = 1.2 / √2, where the radius is largest; least g at the origin",
)
def simionescu(x: Array) -> Array:
    """Simionescu's function: cost 0.1 a b inside a bulging circle, on [-1.25, 1.25]².

    Feasible where a² + b² <= (1 + 0.2 cos(8 arctan(a / b)))². Published: -0.072 at two points.
    """
    a, b = split(x)
    square = a * a + b * b
    # The cosine of the angle doubled thrice: 2 cos² - 1 each time, from cos² = b² / (a² + b²).
    cosine = 2 * np.where(square > 0, b * b / np.where(square > 0, square, 1.0), 1.0) - 1
    for _ in range(2):
        cosine = 2 * cosine * cosine - 1
    reach = 1 + 0.2 * cosine
    return join(-0.1 * a * b, square - reach * reach)


@define(
    "townsend",
    HeldOut,
    source="Townsend (2014), modified",
    about="two-dimensional, multimodal, constraint active at the optimum; "
    "looked at when the step to the boundary was chosen",
    low=(-2.25, -2.5),
    high=(2.25, 1.75),
    x=(2.0052927155539306, 1.194452883879546),
    f=2.0239883623257615,
    slater=5.640625,
    share=0.684,
    how="multistart SLSQP; g_1 active; least g beside the origin",
)
def townsend(x: Array) -> Array:
    """Townsend's function, modified: cost -cos²((a - 0.1) b) - a sin(3a + b) inside a heart-like
    curve.

    On [-2.25, 2.25] x [-2.5, 1.75]. With t the angle of (b, a), feasible where a² + b² <= (2 cos t
    - cos(2t)/2 - cos(3t)/4 - cos(4t)/8)² + (2 sin t)². Looked at when the step of our methods to
    the boundary was chosen, so not held out in the strict sense. Published: -2.0239884 at
    (2.0052938, 1.1944509).
    """
    a, b = split(x)
    wave = np.cos((a - 0.1) * b)
    f = wave * wave + a * np.sin(3 * a + b)
    square = a * a + b * b
    radius = np.sqrt(np.where(square > 0, square, 1.0))
    # Cosine and sine of t; multiples of the angle by their sums, without arctan.
    c = np.where(square > 0, b / radius, 1.0)
    s = a / radius
    double = 2 * c * c - 1
    p = 2 * c - double / 2 - c * (2 * double - 1) / 4 - (2 * double * double - 1) / 8
    return join(f, square - p * p - 4 * s * s)


@define(
    "thin-band",
    HeldOut,
    source="ours",
    about="three-dimensional, feasible in a wavy band on 1 % of the box",
    low=(0.0,) * 3,
    high=(1.0,) * 3,
    m=2,
    x=(0.777627592079903, 0.141924266292947, 0.30941319239407694),
    f=-0.037459708893029645,
    slater=0.005,
    share=0.01,
    how="multistart SLSQP; g_2 active; least max g in the middle of the band",
)
def thin_band(x: Array) -> Array:
    """Nearest point to (0.8, 0.3, 0.2) on a wavy surface 0.01 thick, in [0, 1]³.

    Feasible where |x_3 - 1/2 - 0.3 sin(2πx_1) cos(2πx_2)| <= 0.005: two constraints that exclude
    each other nearly everywhere.
    """
    a, b, c = split(x)
    above = c - 0.5 - 0.3 * np.sin(2 * np.pi * a) * np.cos(2 * np.pi * b)
    p = a - 0.8
    q = b - 0.3
    r = c - 0.2
    return join(-(p * p + q * q + r * r), above - 0.005, -above - 0.005)


# centres and radii
ISLANDS = read_rows(
    """
    0.25 0.25 0.2
    0.7 0.3 0.15
    0.3 0.75 0.1
    0.85 0.85 0.05
    """
)


@define(
    "four-islands",
    HeldOut,
    source="ours",
    about="two-dimensional, linear reward, four islands, the best is the smallest",
    low=(0.0, 0.0),
    high=(1.0, 1.0),
    x=(0.8853553390593273, 0.8853553390593273),
    f=1.7707106781186546,
    slater=0.04,
    share=0.23562,
    accuracy=1e-12,
    how="closed form: the point of the last disc that is farthest along (1, 1)",
)
def four_islands(x: Array) -> Array:
    """Largest x_1 + x_2 in [0, 1]² on four discs that do not touch; the better a disc, the smaller.

    The constraint is the least over the discs of the squared distance minus the squared radius. The
    best disc is 0.8 % of the box.
    """
    a = x[..., :1] - ISLANDS[:, 0]
    b = x[..., 1:] - ISLANDS[:, 1]
    # A point is feasible on any disc, hence the least over the discs.
    g = (a * a + b * b - ISLANDS[:, 2] * ISLANDS[:, 2]).min(axis=-1)
    return join(x[..., 0] + x[..., 1], g)


@define(
    "yes-or-no",
    HeldOut,
    source="ours",
    about="two-dimensional, both constraints are -1 or +1 and active at the optimum",
    low=(0.0, 0.0),
    high=(1.0, 1.0),
    m=2,
    x=(0.6244997998398398, 0.5),
    f=-0.16590036028828836,
    slater=1.0,
    share=0.37217,
    accuracy=1e-12,
    how="closed form: the corner of the two boundaries, (√0.39, 1/2)",
)
def yes_or_no(x: Array) -> Array:
    """Nearest point to (0.9, 0.8) in [0, 1]² under two constraints that only say yes or no.

    g_1 is -1 where x_1² + x_2² <= 0.64 and +1 elsewhere, g_2 is -1 where x_2 <= 0.5 and +1
    elsewhere, both then in units of their spread. No slope tells how far the boundary is: that is
    what a test which passes or fails gives.
    """
    a, b = split(x)
    p = a - 0.9
    q = b - 0.8
    # Only the sign is told: that is what makes it hard.
    fails = [a * a + b * b > 0.64, b > 0.5]
    return join(-(p * p + q * q), *(np.where(f, 1.0, -1.0) for f in fails))


def directions(count: int, d: int) -> Array:
    """Unit vectors (count, d) that point everywhere: fractions of j √p, p the first primes."""
    raw = np.arange(1, count + 1)[:, None] * np.sqrt(np.array([2.0, 3, 5, 7, 11, 13])[:d])
    raw = raw - np.floor(raw) - 0.5
    return raw / np.sqrt((raw * raw).sum(axis=-1, keepdims=True))


PLANES = directions(200, 4)
WEIGHTS = np.arange(1.0, 5.0)


@define(
    "two-hundred",
    HeldOut,
    source="ours",
    about="four-dimensional, convex, 200 linear constraints",
    low=(-1.0,) * 4,
    high=(1.0,) * 4,
    m=200,
    x=(0.09932719906937537, 0.1293668608739138, 0.28545347152882616, 0.43589393362545414),
    f=-5.131808460758174,
    slater=0.5,
    share=0.0227,
    how="multistart SLSQP; three constraints active; least max g at the origin",
)
def two_hundred(x: Array) -> Array:
    """Nearest point to (1, 1, 1, 1), in weights 1, 2, 3, 4, under 200 tangent planes of a ball, in
    [-1, 1]⁴.

    g_j = a_j · x - 1/2 with unit vectors a_j. The problem is convex, so its optimum is proven by
    the conditions of Karush, Kuhn and Tucker.
    """
    # Sums over strided arrays may have other last bits.
    x = np.ascontiguousarray(x)
    far = x - 1
    f = -(WEIGHTS * far * far).sum(axis=-1)
    g = (x[..., None, :] * PLANES).sum(axis=-1) - 0.5
    return np.concatenate([f[..., None], g], axis=-1)
