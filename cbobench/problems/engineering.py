"""Four engineering designs that the literature on constrained optimization keeps using, with optima derived again.

Cost (weight or price) is minimised in the sources; here f = -cost is maximised. Their formulas circulate in several
versions, also within one library; each class says which one it is. See `literature.py` for how references were found.

The constraints span many orders of magnitude, so a standard deviation over the box is that of its worst corner. In
units of it the feasible set of the welded beam is never more than 0.0008 inside, hence the smaller noise.

Nor does the spread of f over the box say anything of what matters near the optimum: that of the tension spring is 1000
times |f*|. The default noise on f is therefore a twentieth of the standard deviation of f over the feasible points
within a tenth of a side of the optimum, rounded to two digits (`BoxProblem.noise_ratio`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.params import param
from cbobench.problems import PROBLEMS
from cbobench.problems.box import Reference
from cbobench.problems.literature import PublishedProblem


def noise_near(deviation: float) -> float:
    """The parameter `noise_f`: 5 % of f's spread near the optimum."""
    about = (
        "standard deviation of the noise on f, in the units played; the default is 5 % of f's spread near the optimum"
    )
    default: float = param(deviation, about, at_least=0.0)
    return default


@dataclass(kw_only=True)
class Design(PublishedProblem):
    """Base of the designs: published, and with less noise."""

    noise_g: float = param(0.001, "standard deviation of the noise on every g_j, in the units played", at_least=0.0)


@PROBLEMS.register("pressure-vessel")
@dataclass(kw_only=True)
class PressureVessel(Design):
    """Price of a pressure vessel: thickness of shell and head, inner radius and length (all in inches).

    Coello & Mezura-Montes (2002) let thicknesses be multiples of 1/16 up to 99/16; here they are continuous. The last
    constraint, length <= 240, holds in the whole box, as published. Published with multiples of 1/16: 6059.946; the
    relaxation is 174.613 cheaper (5885.333).
    """

    source = "Coello & Mezura-Montes (2002), continuous relaxation"
    about = "four-dimensional design, four constraints, one of them in 10⁶ cubic inches, feasible on 40 % of the box"

    noise_f: float = noise_near(0.0011)

    low = (0.0625, 0.0625, 10.0, 10.0)
    high = (6.1875, 6.1875, 200.0, 200.0)
    m = 4
    reference = Reference(
        x=(0.7781686413751072, 0.38464916262790516, 40.319618724098746, 199.99999999999997),
        f=-5885.332773616486,
        slater=5.40932658134,
        share=0.40315,
        accuracy=1e-9,
        how="multistart SLSQP with exact derivatives; three constraints and the largest length active",
        binds=True,
    )

    def formula(self, x: Array) -> Array:
        shell, head, radius, length = np.moveaxis(x, -1, 0)
        cost = 0.6224 * shell * radius * length + 1.7781 * head * radius * radius
        cost = cost + 3.1661 * shell * shell * length + 19.84 * shell * shell * radius
        volume = np.pi * radius * radius * length + 4 / 3 * np.pi * radius * radius * radius
        g = [0.0193 * radius - shell, 0.00954 * radius - head, 1_296_000 - volume, length - 240]
        return np.stack([-cost, *g], axis=-1)


@PROBLEMS.register("welded-beam")
@dataclass(kw_only=True)
class WeldedBeam(Design):
    """Price of a welded beam: height and length of the weld, height and thickness of the beam (inches).

    The version with seven constraints: shear stress, bending stress, weld no thicker than the beam, price of the
    material, least weld, deflection, buckling load (polar moment with l²/12, deflection with 4 P L³, buckling load with
    √(t² b⁶/36)). Published: 1.728226 (Coello & Mezura-Montes 2002); the optimum is 0.0033737 lower. A version
    with five constraints, in which polar moment, deflection and buckling differ, has the optimum 1.6702.
    """

    source = "Coello & Mezura-Montes (2002), seven constraints"
    about = "four-dimensional design, seven constraints over seven orders of magnitude, feasible on 2.6 % of the box"

    noise_f: float = noise_near(0.0021)

    low = (0.1, 0.1, 0.1, 0.1)
    high = (2.0, 10.0, 10.0, 2.0)
    m = 7
    reference = Reference(
        x=(0.2057296397860782, 3.470488665628062, 9.03662391035764, 0.2057296397860799),
        f=-1.7248523085973753,
        slater=0.246548410259,
        share=0.02662,
        accuracy=1e-9,
        how="multistart SLSQP with exact derivatives; stresses, weld against beam and buckling active",
        binds=True,
    )

    noise_g: float = param(0.0001, "standard deviation of the noise on every g_j, in the units played", at_least=0.0)

    def formula(self, x: Array) -> Array:
        h, l, t, b = np.moveaxis(x, -1, 0)  # noqa: E741 - the source's letter
        load, reach, young, shear = 6000.0, 14.0, 30e6, 12e6
        square = (h + t) * (h + t) / 4
        radius = np.sqrt(l * l / 4 + square)
        polar = 2 * np.sqrt(2) * h * l * (l * l / 12 + square)
        direct = load / (np.sqrt(2) * h * l)
        torsion = load * (reach + l / 2) * radius / polar
        stress = np.sqrt(direct * direct + direct * torsion * l / radius + torsion * torsion)
        bending = 6 * load * reach / (b * t * t)
        deflection = 4 * load * reach**3 / (young * t * t * t * b)
        buckling = 4.013 * young * t * b * b * b / 6 / reach**2 * (1 - t / (2 * reach) * np.sqrt(young / (4 * shear)))
        beam = 0.04811 * t * b * (14 + l)
        g = [
            stress - 13600,
            bending - 30000,
            h - b,
            0.10471 * h * h + beam - 5,
            0.125 - h,
            deflection - 0.25,
            load - buckling,
        ]
        return np.stack([-(1.10471 * h * h * l + beam), *g], axis=-1)


@PROBLEMS.register("tension-spring")
@dataclass(kw_only=True)
class TensionSpring(Design):
    """Weight of a tension spring: diameters of wire and coil (inches), number of active coils.

    Constraints on deflection, shear stress, surge frequency and outer diameter. The stress has a pole where wire and
    coil are equally thick, inside the box, so g_2 is clipped to [-100, 100] (ours; it moves no sign). Published:
    0.012681 (Coello & Mezura-Montes 2002); the optimum is 1.58e-5 lower.
    """

    source = "Coello & Mezura-Montes (2002)"
    about = "three-dimensional design, four constraints, one with a pole, feasible on 0.75 % of the box"

    noise_f: float = noise_near(1.1e-5)

    low = (0.05, 0.25, 2.0)
    high = (2.0, 1.3, 15.0)
    m = 4
    reference = Reference(
        x=(0.05168906111146782, 0.3567177404899924, 11.288965711128466),
        f=-0.012665232788319429,
        slater=0.507106720010,
        share=0.00754,
        accuracy=1e-9,
        how="multistart SLSQP with exact derivatives; deflection and shear stress active",
        binds=True,
    )

    def formula(self, x: Array) -> Array:
        wire, coil, turns = np.moveaxis(x, -1, 0)
        square = wire * wire
        with np.errstate(divide="ignore"):  # equally thick: the stress is infinite, and clipped
            stress = (4 * coil * coil - wire * coil) / (12566 * wire * square * (coil - wire)) + 1 / (5108 * square) - 1
        g = [
            1 - coil * coil * coil * turns / (71785 * square * square),
            np.clip(stress, -100.0, 100.0),
            1 - 140.45 * wire / (coil * coil * turns),
            (wire + coil) / 1.5 - 1,
        ]
        return np.stack([-(turns + 2) * coil * square, *g], axis=-1)


@PROBLEMS.register("speed-reducer")
@dataclass(kw_only=True)
class SpeedReducer(Design):
    """Weight of a speed reducer: face width, tooth module, number of teeth, two shaft lengths and two diameters (cm).

    The version with a second shaft of at least 7.8 cm and constraints relative to their limits. The number of teeth is
    continuous here; its best value, 17, is an integer all the same. Published: 2996.3482 (Lemonge et al. 2010), which
    agrees to its last digit. Versions in which the second shaft may have 7.3 cm have the optimum 2994.4711.
    """

    source = "Lemonge et al. (2010), continuous relaxation"
    about = "seven-dimensional design, eleven constraints, feasible on 0.19 % of the box"

    noise_f: float = noise_near(0.0039)

    low = (2.6, 0.7, 17.0, 7.3, 7.8, 2.9, 5.0)
    high = (3.6, 0.8, 28.0, 8.3, 8.3, 3.9, 5.5)
    m = 11
    reference = Reference(
        x=(3.5, 0.7, 17.0, 7.3, 7.8, 3.3502146660964476, 5.286683229757917),
        f=-2996.34816496853,
        slater=0.0277777777777,
        share=0.001874,
        accuracy=1e-9,
        how="multistart SLSQP with exact derivatives; both shaft stresses, width and four lower bounds active",
        binds=True,
    )

    def formula(self, x: Array) -> Array:
        width, module, teeth, first, second, thin, thick = np.moveaxis(x, -1, 0)
        thin2, thick2, pitch = thin * thin, thick * thick, module * teeth
        gear = width * module * pitch
        cost = 0.7854 * width * module * module * (3.3333 * teeth * teeth + 14.9334 * teeth - 43.0934)
        cost = cost - 1.508 * width * (thin2 + thick2) + 7.4777 * (thin2 * thin + thick2 * thick)
        cost = cost + 0.7854 * (first * thin2 + second * thick2)
        turn_first, turn_second = 745 * first / pitch, 745 * second / pitch
        g = [
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
        ]
        return np.stack([-cost, *g], axis=-1)
