"""Test functions and engineering designs of the literature on constrained optimization, with optima
derived again.

All are published as minimisation of a cost; here f = -cost is maximised. Every reference comes from
multistart SLSQP with exact (complex-step) derivatives, not from a paper; a test derives it once
more. Its point is feasible to the last
bit. The noise is ours: where a paper has noise at all, it is in other units.

Formulas of engineering designs circulate in several versions, also within one library; each class
says which one it is.

The constraints span many orders of magnitude, so a standard deviation over the box is that of its
worst corner. In units of it the feasible set of the welded beam is never more than 0.0008 inside,
hence the smaller noise.

Nor does the spread of f over the box say anything of what matters near the optimum: that of the
tension spring is 1000 times |f*|. The default noise on f is therefore a twentieth of the standard
deviation of f over the feasible points within a tenth of a side of the optimum, rounded to two
digits (`BoxProblem.noise_ratio`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems.channels import noise_on
from cbobench.problems.formulas.box import (
    BoxProblem,
    define,
    join,
    read_numbers,
    read_rows,
    split,
)

# Weights, widths and centres of the first four coordinates of the Hartmann function in six
# dimensions.
ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
WIDTHS = read_rows(
    """
    10 3 17 3.5
    0.05 10 17 0.1
    3 3.5 1.7 10
    17 8 0.05 10
    """
)
CENTRES = 0.0001 * read_rows(
    """
    1312 1696 5569 124
    2329 4135 8307 3736
    2348 1451 3522 2883
    4047 8828 8732 5743
    """
)


@dataclass(kw_only=True)
class PublishedProblem(BoxProblem):
    """Base of published formulas: f and every g_j in units of their spread over the box, and little
    noise.
    """

    noise_f: float = noise_on(0.01, "f, in the units played")
    noise_g: float = noise_on(0.01, "every g_j, in the units played")
    scaled: bool = param(
        True, "shift f to mean 0, divide f and every g_j by their standard deviations over the box"
    )


@define(
    "gardner-1",
    PublishedProblem,
    source="Gardner et al. (2014), first simulation",
    about="two-dimensional, multimodal, feasible on two thirds of the box, constraint inactive at "
    "the optimum",
    low=(0.0, 0.0),
    high=(6.0, 6.0),
    x=(4.712388980384690, 0.0),
    f=2.0,
    slater=1.5,
    share=0.66519,
    accuracy=1e-12,
    how="closed form: x = 3π/2, y = 0, where the cost is -1 - 1; least g at x + y = π",
    binds=False,
)
def gardner_1(x: Array) -> Array:
    """The first simulation of Gardner et al. (2014): cost cos 2x cos y + sin x on [0, 6]², c(x, y)
    <= 0.5.

    c = cos x cos y - sin x sin y, which is cos(x + y). The best point of the whole box is feasible
    (g = -0.5), so the constraint rules out local optima but is not active at the optimum.
    """
    a, b = split(x)
    cost = np.cos(2 * a) * np.cos(b) + np.sin(a)
    return join(-cost, np.cos(a) * np.cos(b) - np.sin(a) * np.sin(b) - 0.5)


@define(
    "gramacy",
    PublishedProblem,
    source="Gramacy et al. (2016), toy problem",
    about="two-dimensional, linear reward, two constraints, three local optima on their boundary",
    low=(0.0, 0.0),
    high=(1.0, 1.0),
    m=2,
    x=(0.1951226834720067, 0.4046653685380608),
    f=-0.5997880520100675,
    slater=0.776885044793,
    share=0.45724,
    how="multistart SLSQP with exact derivatives; c_1 active",
)
def gramacy(x: Array) -> Array:
    """The toy problem of Gramacy et al. (2016): cost x_1 + x_2 on [0, 1]², one wavy and one round
    constraint.

    c_1 = 1.5 - x_1 - 2 x_2 - 0.5 sin(2π(x_1² - 2 x_2)) and c_2 = x_1² + x_2² - 1.5. Two other local
    optima have costs
    0.75 and 0.8609. Published: cost 0.5998 at (0.1954, 0.4044), rounded; the optimum is 1.2e-5
    lower.
    """
    a, b = split(x)
    wavy = 1.5 - a - 2 * b - 0.5 * np.sin(2 * np.pi * (a * a - 2 * b))
    return join(-(a + b), wavy, a * a + b * b - 1.5)


@define(
    "hartmann-4",
    PublishedProblem,
    source="Picheny et al. (2013); norm constraint of Letham et al. (2019)",
    about="four-dimensional, two local optima, feasible inside the unit ball, constraint inactive "
    "at the optimum",
    low=(0.0,) * 4,
    high=(1.0,) * 4,
    x=(0.1873952725112586, 0.19415153010700953, 0.5579177798992737, 0.2647796238393009),
    f=3.1344941412224,
    slater=1.0,
    share=0.30844,
    how="multistart SLSQP with exact derivatives; no constraint active; least g at the origin",
    binds=False,
)
def hartmann_4(x: Array) -> Array:
    """The Hartmann function of Picheny et al. (2013) in four dimensions, with the norm constraint
    of Letham et al.

    Cost (1.1 - Σ_i α_i exp(-Σ_j A_ij (x_j - P_ij)²)) / 0.839 on [0, 1]⁴, feasible where ‖x‖₂ <= 1.
    Letham et al. (2019) put that constraint on the function in six dimensions; in four it is
    BoTorch's `ConstrainedHartmann(dim=4)`. The optimum of the whole box is feasible (‖x‖ = 0.674),
    so the constraint is not active there.
    Published without constraint: (0.1873, 0.1906, 0.5566, 0.2647), whose cost is larger by 1.4e-4.
    """
    bumps = ALPHA * np.exp(-(WIDTHS * (x[..., None, :] - CENTRES) ** 2).sum(axis=-1))
    return join((bumps.sum(axis=-1) - 1.1) / 0.839, np.sqrt((x * x).sum(axis=-1)) - 1)


def noise_near(deviation: float) -> Any:
    """The parameter `noise_f`: 5 % of f's spread near the optimum."""
    return noise_on(
        deviation, "f, in the units played; the default is 5 % of f's spread near the optimum"
    )


@dataclass(kw_only=True)
class Design(PublishedProblem):
    """Base of the designs: published, and with less noise."""

    noise_g: float = noise_on(0.001, "every g_j, in the units played")


@define(
    "pressure-vessel",
    Design,
    source="Coello & Mezura-Montes (2002), continuous relaxation",
    about="four-dimensional design, four constraints, one of them in 10⁶ cubic inches, feasible on "
    "40 % of the box",
    noise_f=noise_near(0.0011),
    low=(0.0625, 0.0625, 10.0, 10.0),
    high=(6.1875, 6.1875, 200.0, 200.0),
    m=4,
    x=(0.7781686413751072, 0.38464916262790516, 40.319618724098746, 199.99999999999997),
    f=-5885.332773616486,
    slater=5.40932658134,
    share=0.40318,
    how=(
        "multistart SLSQP with exact derivatives; three constraints and the largest length active"
    ),
)
def pressure_vessel(x: Array) -> Array:
    """Price of a pressure vessel: thickness of shell and head, inner radius and length (all in
    inches).

    Coello & Mezura-Montes (2002) let thicknesses be multiples of 1/16 up to 99/16; here they are
    continuous. The last constraint, length <= 240, holds in the whole box, as published. Published
    with multiples of 1/16: 6059.946; the relaxation is 174.613 cheaper (5885.333).
    """
    shell, head, radius, length = split(x)
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius * radius
    cost = cost + 3.1661 * shell * shell * length + 19.84 * shell * shell * radius
    volume = np.pi * radius * radius * length + 4 / 3 * np.pi * radius * radius * radius
    return join(
        -cost,
        0.0193 * radius - shell,
        0.00954 * radius - head,
        1_296_000 - volume,
        length - 240,
    )


@define(
    "welded-beam",
    Design,
    source="Coello & Mezura-Montes (2002), seven constraints",
    about="four-dimensional design, seven constraints over seven orders of magnitude, feasible on "
    "2.6 % of the box",
    noise_f=noise_near(0.0021),
    low=(0.1, 0.1, 0.1, 0.1),
    high=(2.0, 10.0, 10.0, 2.0),
    m=7,
    x=(0.2057296397860782, 3.470488665628062, 9.03662391035764, 0.2057296397860799),
    f=-1.7248523085973753,
    slater=0.246548410259,
    share=0.02658,
    how=(
        "multistart SLSQP with exact derivatives; stresses, weld against beam and buckling active"
    ),
    noise_g=noise_on(0.0001, "every g_j, in the units played"),
)
def welded_beam(x: Array) -> Array:
    """Price of a welded beam: height and length of the weld, height and thickness of the beam
    (inches).

    The version with seven constraints: shear stress, bending stress, weld no thicker than the beam,
    price of the material, least weld, deflection, buckling load (polar moment with l²/12,
    deflection with 4 P L³, buckling load with √(t² b⁶/36)). Published: 1.728226 (Coello &
    Mezura-Montes 2002); the optimum is 0.0033737 lower. A version with five constraints, in which
    polar moment, deflection and buckling differ, has the optimum 1.6702.
    """
    h, l, t, b = split(x)  # noqa: E741 - the source's letter
    load = 6000.0
    reach = 14.0
    young = 30e6
    shear = 12e6

    # Shear in the weld: of the load itself, and of its moment.
    square = (h + t) * (h + t) / 4
    radius = np.sqrt(l * l / 4 + square)
    polar = 2 * np.sqrt(2) * h * l * (l * l / 12 + square)
    direct = load / (np.sqrt(2) * h * l)
    torsion = load * (reach + l / 2) * radius / polar
    stress = np.sqrt(direct * direct + direct * torsion * l / radius + torsion * torsion)

    # The beam: bending, deflection at its end, and buckling.
    bending = 6 * load * reach / (b * t * t)
    deflection = 4 * load * reach**3 / (young * t * t * t * b)
    buckling = (
        4.013
        * young
        * t
        * b
        * b
        * b
        / 6
        / reach**2
        * (1 - t / (2 * reach) * np.sqrt(young / (4 * shear)))
    )
    beam = 0.04811 * t * b * (14 + l)
    return join(
        -(1.10471 * h * h * l + beam),
        stress - 13600,
        bending - 30000,
        h - b,
        0.10471 * h * h + beam - 5,
        0.125 - h,
        deflection - 0.25,
        load - buckling,
    )


@define(
    "tension-spring",
    Design,
    source="Coello & Mezura-Montes (2002)",
    about="three-dimensional design, four constraints, one with a pole, feasible on 0.75 % of the "
    "box",
    noise_f=noise_near(1.1e-5),
    low=(0.05, 0.25, 2.0),
    high=(2.0, 1.3, 15.0),
    m=4,
    x=(0.05168906111146782, 0.3567177404899924, 11.288965711128466),
    f=-0.012665232788319429,
    slater=0.507106720010,
    share=0.007495,
    how="multistart SLSQP with exact derivatives; deflection and shear stress active",
)
def tension_spring(x: Array) -> Array:
    """Weight of a tension spring: diameters of wire and coil (inches), number of active coils.

    Constraints on deflection, shear stress, surge frequency and outer diameter. The stress has a
    pole where wire and coil are equally thick, inside the box, so g_2 is clipped to [-100, 100]
    (ours; it moves no sign). Published: 0.012681 (Coello & Mezura-Montes 2002); the optimum is
    1.58e-5 lower.
    """
    wire, coil, turns = split(x)
    square = wire * wire
    with np.errstate(divide="ignore"):  # equally thick: the stress is infinite, and clipped
        stress = (
            (4 * coil * coil - wire * coil) / (12566 * wire * square * (coil - wire))
            + 1 / (5108 * square)
            - 1
        )
    return join(
        -(turns + 2) * coil * square,
        1 - coil * coil * coil * turns / (71785 * square * square),
        np.clip(stress, -100.0, 100.0),
        1 - 140.45 * wire / (coil * coil * turns),
        (wire + coil) / 1.5 - 1,
    )


def reduce_speed(x: Array) -> Array:
    """Weight of a speed reducer: face width, tooth module, number of teeth, two shaft lengths and
    two diameters (cm).

    The version with a second shaft of at least 7.8 cm and constraints relative to their limits. The
    number of teeth is continuous here; its best value, 17, is an integer all the same. Published:
    2996.3482 (Lemonge et al. 2010), which agrees to its last digit. Versions in which the second
    shaft may have 7.3 cm have the optimum 2994.4711.
    """
    width, module, teeth, first, second, thin, thick = split(x)
    thin2 = thin * thin
    thick2 = thick * thick
    pitch = module * teeth
    gear = width * module * pitch
    cost = 0.7854 * width * module * module * (3.3333 * teeth * teeth + 14.9334 * teeth - 43.0934)
    cost = cost - 1.508 * width * (thin2 + thick2) + 7.4777 * (thin2 * thin + thick2 * thick)
    cost = cost + 0.7854 * (first * thin2 + second * thick2)
    turn_first = 745 * first / pitch
    turn_second = 745 * second / pitch
    return join(
        -cost,
        27 / gear - 1,
        397.5 / (gear * teeth) - 1,
        1.93 * first * first * first / (pitch * thin2 * thin2) - 1,
        1.93 * second * second * second / (pitch * thick2 * thick2) - 1,
        np.sqrt(turn_first * turn_first + 16.9e6) / (110 * thin2 * thin) - 1,
        np.sqrt(turn_second * turn_second + 157.5e6) / (85 * thick2 * thick) - 1,
        pitch / 40 - 1,
        5 * module / width - 1,
        width / (12 * module) - 1,
        (1.5 * thin + 1.9) / first - 1,
        (1.1 * thick + 1.9) / second - 1,
    )


speed_reducer = define(
    "speed-reducer",
    Design,
    source="Lemonge et al. (2010), continuous relaxation",
    about="seven-dimensional design, eleven constraints, feasible on 0.19 % of the box",
    noise_f=noise_near(0.0039),
    low=(2.6, 0.7, 17.0, 7.3, 7.8, 2.9, 5.0),
    high=(3.6, 0.8, 28.0, 8.3, 8.3, 3.9, 5.5),
    m=11,
    x=read_numbers("3.5 0.7 17.0 7.3 7.8 3.3502146660964476 5.286683229757917"),
    f=-2996.34816496853,
    slater=0.0277777777777,
    share=0.001871,
    how=(
        "multistart SLSQP with exact derivatives; both shaft stresses, width and four lower "
        "bounds active"
    ),
)(reduce_speed)
