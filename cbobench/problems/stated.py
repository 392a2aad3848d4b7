"""What a formula on a box says of itself: shapes, finite values, and an optimum that a search does not beat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from cbobench.errors import CbobenchError, Misuse, one_line
from cbobench.gp.box import Box, sobol
from cbobench.gp.kernels import Array
from cbobench.problems.instances import Formula
from cbobench.problems.search import search

SAMPLE = 2**13  # points at which a formula has to be finite
ROUNDING = 1e-14  # of a constraint at a stated optimum, relative to its largest value
STARTS, POWER = 4, 12  # of the search that a stated optimum is held against: a fraction of a second


@dataclass(frozen=True)
class Reference:
    """What is known of a formula's constrained maximum.

    Attributes:
        x: the best feasible point.
        f: its reward.
        slater: delta = -min_x max_j g_j(x), how strictly the constraints can be satisfied.
        share: fraction of the box that is feasible, by a Sobol sample.
        accuracy: by how much a feasible point may still be better, relative to 1 + |f|.
        how: how it was found.
        binds: whether the best point of the whole box is better, so that the constraints matter; None: not known.
    """

    x: tuple[float, ...]
    f: float
    slater: float
    share: float
    accuracy: float
    how: str
    binds: bool | None = None


def pointwise(formula: Callable[[Any, Array], Any]) -> Callable[[Any, Array], Array]:
    """Decorator of a `formula(self, x)` of one point (d,): it is asked for each point, which takes longer."""

    @wraps(formula)
    def each(self: Any, x: Array) -> Array:
        points = np.asarray(x, dtype=np.float64)
        values = [np.asarray(formula(self, point), dtype=np.float64) for point in points.reshape(-1, points.shape[-1])]
        return np.stack(values).reshape(*points.shape[:-1], -1)

    return each


@np.errstate(all="ignore")
def check_formula(formula: Formula, box: Box, m: int, name: str) -> None:
    """Holds a formula against its contract: points (..., d) to finite values (..., 1 + m), each of its own point.

    Raises:
        Misuse: it raises, gives another shape, no numbers, or values that depend on the other points.
    """
    many = box.scale(sobol(box.d, 6))
    whole = np.stack([many, many[::-1]])
    vectorised = "use x[..., 0] and NumPy functions, or put @pointwise (of cbobench.problems.box) above it"
    for points in (many[0], many, whole):
        where = f"{name}: formula at points of shape {points.shape}"
        wanted = (*points.shape[:-1], 1 + m)
        fix = vectorised if points.ndim > 1 else f"return np.stack([f, g_1, ...], axis=-1), f and m = {m} constraints"
        try:
            values = np.asarray(formula(points.copy()))
        except CbobenchError:
            raise
        except Exception as error:  # a user's formula may raise anything
            raise Misuse(f"{where} fails: {one_line(error)}; {fix}") from error
        if values.shape != wanted:
            raise Misuse(f"{where} gives shape {values.shape}; it must be {wanted}: {fix}")
        if values.dtype.kind not in "fiub":
            raise Misuse(f"{where} gives {values.dtype} and no real numbers; {fix}")
    each = np.stack([np.asarray(formula(point.copy())) for point in many])
    if not np.allclose(each, np.asarray(formula(many.copy())), rtol=1e-6, atol=1e-9, equal_nan=True):
        raise Misuse(
            f"{name}: formula gives a point other values beside other points; each must count alone: {vectorised}"
        )
    points = box.scale(sobol(box.d, SAMPLE))
    values = np.asarray(formula(points), dtype=np.float64)
    wrong = ~np.isfinite(values).all(axis=-1)
    if wrong.any():
        i = int(wrong.argmax())
        j = int((~np.isfinite(values[i])).argmax())
        what = f"{'f' if j == 0 else f'g_{j}'} = {values[i, j]:g} at x = {points[i].tolist()}"
        count = f"{int(wrong.sum())} of {SAMPLE} points" if wrong.sum() > 1 else "one point"
        raise Misuse(
            f"{name}: formula gives {what} ({count}); it must be finite in the whole box: clip it, or move a side"
        )


def contradiction(
    formula: Formula, found: Reference, box: Box, m: int, settle: Callable[[Array], Array], divisor: Array
) -> str:
    """What contradicts a stated optimum; empty if nothing does. A closed form may round, in the last digits."""
    x = np.array(found.x, dtype=np.float64)
    at = f"x = ({', '.join(f'{v:.10g}' for v in x.ravel())})"
    if x.shape != box.low.shape:
        return f"{at}, but the box has {box.d} dimensions"
    if not ((x >= box.low) & (x <= box.high)).all():
        return f"{at}, which is not in the box"
    values = np.asarray(formula(x))
    if values.shape != (1 + m,) or not np.isfinite(values).all():
        wanted = f"{1 + m} finite values (f and m = {m})"
        return f"{at}, where the formula gives {values.tolist()}, not {wanted}"
    g = settle(values[1:] / divisor)
    size = np.abs(formula(box.scale(box.candidates))).max(axis=0)[1:] / divisor
    if (g > ROUNDING * (1 + size)).any():
        j = int(g.argmax())
        return f"{at}, which is not feasible: g_{j + 1} = {values[1 + j]:.6g} there"
    if not abs(values[0] - found.f) <= found.accuracy * (1 + abs(found.f)) + 1e-12:
        return f"f = {found.f:.10g} at {at}, where the formula gives f = {values[0]:.10g}"
    return ""


_held: dict[Any, str] = {}
"""What searches have found of stated optima, by what fixes the formula: a suite may hold a problem many times."""


def beaten(key: tuple[Any, ...], formula: Formula, found: Reference, box: Box) -> str:
    """How a short search beats a stated optimum; empty if it does not.

    What it finds is a proof: a point where every g_j <= 0, whatever the problem's `feasibility_tolerance`.
    """
    whole = (*key, found)
    if whole not in _held:
        _held[whole] = _beaten(formula, found, box)
    return _held[whole]


def _beaten(formula: Formula, found: Reference, box: Box) -> str:
    try:
        better = search(formula, box, STARTS, POWER, [np.array(found.x, dtype=np.float64)])
    except (CbobenchError, ArithmeticError, LookupError, TypeError, ValueError):
        return ""  # of formulas that are not smooth
    f = float(better.values[0])
    if f - found.f <= found.accuracy * (1 + abs(found.f)) + 1e-12:
        return ""
    at = ", ".join(f"{v:.10g}" for v in better.x)
    return f"f = {found.f:.10g}, but f = {f:.10g} at x = ({at}), which is feasible and better by {f - found.f:.3g}"
