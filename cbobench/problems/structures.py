"""A structural design problem in 124 dimensions with 65 constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.problems import PROBLEMS
from cbobench.problems.best_known import STRUCTURE_124
from cbobench.problems.box import Reference
from cbobench.problems.high_dimensional import HighDimensional, longer

SEGMENTS, LENGTH, YOUNG, STRESS = 62, 0.5, 200e6, 160e3  # lengths in m, forces in kN
SUPPORTS, SPANS = (22, 42, 62), (11.0, 10.0, 10.0)  # nodes, m
LOADED = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 0]])  # spans under live load in the three load cases
DEAD, LIVE = 5.0, 20.0  # kN at every node that is not supported
SLENDER, SAG = 8.0, 300.0  # largest height over width, span over deflection


def loads() -> Array:
    """Downward forces at nodes 1 to 62: three load cases, then a unit force at each support, (6, 62)."""
    nodes = np.arange(1, SEGMENTS + 1)
    span = np.searchsorted(SUPPORTS, nodes)
    cases = np.where(np.isin(nodes, SUPPORTS), 0.0, DEAD + LIVE * LOADED[:, span])
    return np.concatenate([cases, np.equal.outer(SUPPORTS, nodes).astype(np.float64)])


def cantilever() -> tuple[Array, Array]:
    """The beam without rollers: moments (6, 63) at nodes 0 to 62 under each of `loads`, and what segment i adds to the
    deflection of node k per 1 / (E I_i), by virtual work, (6, 62, 62)."""
    at = LENGTH * np.arange(SEGMENTS + 1)
    unit = np.maximum(at[1:, None] - at, 0.0)  # moments under a unit force at node k, (62, 63)
    moments = loads() @ unit
    a, b = moments[:, None, :-1], moments[:, None, 1:]
    shares = LENGTH / 6 * (unit[:, :-1] * (2 * a + b) + unit[:, 1:] * (a + 2 * b))
    return moments, shares


def soft_max(ratios: Array) -> Array:
    """(Σ r^16)^(1/16) over the last axis: a smooth upper bound of the largest |r|."""
    for _ in range(4):
        ratios = ratios * ratios
    total = np.ascontiguousarray(ratios).sum(axis=-1)
    for _ in range(4):
        total = np.sqrt(total)
    return np.asarray(total)


@PROBLEMS.register("structure-124")
@dataclass(kw_only=True)
class Structure124(HighDimensional):
    """Least volume of a continuous beam of 62 rectangular segments under limits of stress, slenderness and deflection.

    A smooth problem of the size of MOPTA08, which is a program and not formulas; all numbers are ours. x = (b_1, ...,
    b_62, h_1, ..., h_62): width 0.02 to 0.2 m and height 0.1 to 1 m of segments of 0.5 m. The beam of 31 m is clamped
    at its left end and rests on rollers at 11, 21 and 31 m. Each node without a support carries 5 kN, and 20 kN more in
    load case 1 everywhere, in case 2 on the spans 1 and 3, in case 3 on span 2. Linear elastic, E = 200 GPa, second
    moment of area I_i = b_i h_i³ / 12. Cost: volume Σ_i 0.5 b_i h_i in m³.

    With ‖·‖ the norm (Σ r^16)^(1/16), a smooth maximum, there are for each pair of neighbouring segments
    g = ‖σ / 160 MPa‖ - 1, over three cases and both ends of both, σ = 6 M / (b h²), and g = ‖h / (8 b)‖ - 1; and for
    each span g = ‖v / (span / 300)‖ - 1, over three cases and its nodes. 31 + 31 + 3 constraints.

    Force method: moments M and deflections v are those of a cantilever under the loads and the reactions of the
    rollers, which are such that v = 0 there. The centre of the box is feasible, but hardly any other sampled point. The
    value is best known, not proven.
    """

    source = "ours"
    about = (
        "124-dimensional, least volume of a continuous beam, 65 smooth constraints on stress, slenderness, deflection"
    )

    lengthscale: float = longer(124)

    low, high = (0.02,) * SEGMENTS + (0.1,) * SEGMENTS, (0.2,) * SEGMENTS + (1.0,) * SEGMENTS
    m = 65
    reference = Reference(
        x=STRUCTURE_124,
        f=-0.8446425082621812,
        slater=0.65463,
        share=0.0,
        accuracy=math.inf,
        how="best known: multistart SLSQP, all ends agree; 20 stresses, 31 slendernesses, 2 deflections active",
        binds=True,
    )

    def formula(self, x: Array) -> Array:
        x = np.ascontiguousarray(x)
        width, height = x[..., :SEGMENTS], x[..., SEGMENTS:]
        moments, deflections = solve(width * height * height * height / 12)
        ends = np.stack([moments[..., :-1], moments[..., 1:]], axis=-1)  # (..., 3, 62, 2)
        stress = 6 * ends / (width * height * height)[..., None, :, None] / STRESS
        pairs = np.moveaxis(stress.reshape(*x.shape[:-1], 3, SEGMENTS // 2, 4), -3, -2)
        slender = (height / (SLENDER * width)).reshape(*x.shape[:-1], SEGMENTS // 2, 2)
        g = [soft_max(pairs.reshape(*x.shape[:-1], SEGMENTS // 2, 12)) - 1, soft_max(slender) - 1]
        for first, last, span in zip((0, *SUPPORTS), SUPPORTS, SPANS, strict=False):
            within = deflections[..., first : last - 1] * (SAG / span)  # column k is node k + 1
            g.append(soft_max(within.reshape(*x.shape[:-1], -1))[..., None] - 1)
        volume = LENGTH * np.ascontiguousarray(width * height).sum(axis=-1)
        return np.concatenate([-volume[..., None], *g], axis=-1)


MOMENTS, SHARES = cantilever()


def solve(second: Array) -> tuple[Array, Array]:
    """Moments (..., 3, 63) and deflections (..., 3, 62) in three load cases, of second moments of area (..., 62)."""
    pliant = np.ascontiguousarray(1 / (YOUNG * second))[..., None]
    flexible = np.matmul(SHARES.reshape(-1, SEGMENTS), pliant).reshape(*second.shape[:-1], 6, SEGMENTS)
    at_supports = flexible[..., np.array(SUPPORTS) - 1]  # (..., 6, 3)
    reactions = np.linalg.solve(at_supports[..., 3:, :], at_supports[..., :3, :].swapaxes(-1, -2)).swapaxes(-1, -2)
    return MOMENTS[:3] - np.matmul(reactions, MOMENTS[3:]), flexible[..., :3, :] - np.matmul(
        reactions, flexible[..., 3:, :]
    )
