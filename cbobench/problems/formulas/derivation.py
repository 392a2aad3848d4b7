"""What `cbobench check` derives of a formula on a box: its optimum by a search, and what a class
states otherwise.
"""

from __future__ import annotations

import math

import numpy as np

from cbobench.gp.kernels import Array
from cbobench.problems.formulas.box import BoxProblem
from cbobench.problems.instances import Formula
from cbobench.problems.reference import Optimum, Reference, search

POWER = 17  # log2 of the points that are sampled
ACCURACY = 1e-9  # of a derived optimum, relative to 1 + |f|
NEAR_MARGIN, NEAR_SHARE = 0.01, 0.03  # how far a stated margin and share may be off, relatively
DEVIATIONS = 4  # of a share that is sampled


def derive(task: BoxProblem, formula: Formula, stated: Reference | None) -> Optimum:
    """The optimum of a formula by local searches, of which one begins at the stated point."""
    start_points: list[Array] = []
    if stated is not None and not task.mistake(formula, stated):
        start_points.append(np.array(stated.x, dtype=np.float64))
    with np.errstate(all="ignore"):
        return search(formula, task.box, power=POWER, also=start_points)


def write_reference(optimum: Optimum) -> str:
    """A derived optimum as code to paste into its class."""
    active = ", ".join(optimum.active) or "nothing"
    fields = {
        "x": tuple(optimum.x.tolist()),
        "f": repr(float(optimum.values[0])),
        "slater": f"{optimum.slater:.12g}",
        "share": f"{optimum.share:.5g}",
        "accuracy": f"{ACCURACY:g}",
        "how": f'"multistart SLSQP; active: {active}"',
        "binds": binds(optimum, ACCURACY),
    }
    return (
        f"reference = Reference({', '.join(f'{name}={value}' for name, value in fields.items())})"
    )


def binds(optimum: Optimum, accuracy: float) -> bool:
    """Whether the best point of the whole box is better than the best feasible one."""
    f = float(optimum.values[0])
    return optimum.highest - f > accuracy * (1 + abs(f))


def find_contradictions(
    task: BoxProblem, formula: Formula, optimum: Optimum, stated: Reference
) -> list[str]:
    """What a class states of its optimum, and a search found otherwise."""
    mistake = task.mistake(formula, stated)
    lines = [f"the optimum is {mistake}"] if mistake else []
    f = float(optimum.values[0])
    if not abs(f - stated.f) <= stated.accuracy * (1 + abs(stated.f)) + 1e-12:
        word = "better" if f > stated.f else "lower"
        lines.append(f"f is {stated.f!r}; found: {f!r}, {word} by {abs(f - stated.f):.3g}")
    # Where no search finds a point inside all constraints, nothing is known of the margin.
    is_margin_known = optimum.slater > 0
    is_near = abs(stated.slater - optimum.slater) <= NEAR_MARGIN * optimum.slater
    if is_margin_known and not is_near:
        lines.append(f"slater is {stated.slater:.6g}; found: {optimum.slater:.6g}")
    # A sample tells a share up to its own deviation; what is stated as unknown (NaN) is no mistake.
    likely = min(max(stated.share, optimum.share), 1.0)
    deviation = math.sqrt(likely * (1 - likely) / 2**POWER)
    allowed = NEAR_SHARE * optimum.share + DEVIATIONS * deviation
    if abs(stated.share - optimum.share) > allowed:
        lines.append(f"share is {stated.share:.4g}; found: {optimum.share:.4g}")
    if stated.binds is not None and stated.binds != binds(optimum, stated.accuracy):
        lines.append(f"binds is {stated.binds}; the best f of the whole box is {optimum.highest!r}")
    return lines
