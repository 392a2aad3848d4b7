"""Searches the optimum of a formula on a box, and checks a stated optimum against it.

Multi-start SLSQP on the unit cube. Derivatives are differences of fourth order with all points
inside the box, so a formula need not be defined outside it; it must be smooth near the optimum for
its last digits to be right.

What is checked before a play: shapes, finite values, and that the stated optimum is a feasible
point with that reward. `cbobench check` derives all that a class states of it, and compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import numpy as np

from cbobench.errors import CbobenchError, CellFailure, Misuse, one_line, reraise_stop
from cbobench.gp.box_actions import Box, sobol
from cbobench.gp.kernels import Array
from cbobench.problems.instances import Formula, Settle
from cbobench.problems.user_classes import BOOLEAN, name_functions, read_run

STEP = 2e-4  # of a side, between the points of a difference
CENTRAL = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12
FORWARD = np.array([-25.0, 48.0, -36.0, 16.0, -3.0]) / 12
SAMPLED = 17  # log2 of the points that are sampled


@dataclass(frozen=True)
class Optimum:
    """The result of a search.

    Attributes:
        x: the best feasible point, (d,); every g_j <= 0 there, to the last bit.
        values: (f, g_1, ..., g_m) there, (1 + m,).
        highest: the largest f of the whole box, feasible or not.
        slater: the largest -max_j g_j of the box, (what `Reference.slater` states).
        share: feasible share of the sampled points.
        reached, starts: how many of the starts ended at this reward, to 1e-9.
    """

    x: Array
    values: Array
    highest: float
    slater: float
    share: float
    reached: int
    starts: int

    def binds(self, accuracy: float) -> bool:
        """Whether the best point of the whole box is better than the best feasible one."""
        f = float(self.values[0])
        return self.highest - f > accuracy * (1 + abs(f))


def slopes(function: Formula, u: Array) -> Array:
    """Derivatives (p, d) of a function (..., d) to (..., p) at a point of the unit cube."""
    side = np.where(u < 2 * STEP, 1, np.where(u > 1 - 2 * STEP, -1, 0))  # one-sided at the sides
    derivatives = []
    for i, s in enumerate(side.tolist()):
        if s:
            offsets = np.arange(5) * s
            weights = FORWARD * s
        else:
            offsets = np.arange(-2, 3)
            weights = CENTRAL
        points = np.tile(u, (5, 1))
        points[:, i] += STEP * offsets
        derivatives.append(weights @ function(points) / STEP)
    return np.stack(derivatives, axis=1)


def search(
    formula: Formula, box: Box, starts: int = 32, power: int = SAMPLED, also: Sequence[Array] = ()
) -> Optimum:
    """The constrained maximum of a formula, as `BoxProblem.formula`.

    Args:
        starts: how many local searches begin at the best sampled points, and as many again
            anywhere.
        power: log2 of how many points of a Sobol sequence are sampled.
        also: points (d,) of the box where local searches begin besides.

    Raises:
        Misuse: no feasible point was found.
    """

    def played(u: Array) -> Array:
        points = box.scale(u)
        values = formula(points)
        if box.known is None:
            return values
        return np.concatenate([values, box.known(points)], axis=-1)

    # A sample says how large each function is, and where to begin.
    units = sobol(box.d, 2**power)
    with np.errstate(all="ignore"):
        values = np.concatenate(
            [played(part) for part in np.array_split(units, max(1, len(units) // 2**14))]
        )

        # Constraints differ by orders of magnitude; the tiny number keeps one that is 0 everywhere
        # from dividing by 0.
        size = 1e-300 + np.nanmax(np.abs(np.where(np.isfinite(values), values, np.nan)), axis=0)

        # Starts are the best feasible points,
        # the least infeasible ones where feasible ones are rare, and any others.
        worst = (values[:, 1:] / size[1:]).max(axis=1)
        reward = np.where(worst <= 0, values[:, 0], -np.inf)
        by_reward, by_violation = (
            np.argsort(key, kind="stable")[: starts // 2] for key in (-reward, worst)
        )
        start_points = [*units[[*by_reward, *by_violation, *range(starts)]], *map(box.unit, also)]
        ends = [u for u in (_local(played, start, size) for start in start_points) if u is not None]
        ends += [u for u in units[by_reward[:1]] if worst[by_reward[0]] <= 0]
        if not ends:
            raise Misuse(
                f"no feasible point among {len(units):,} samples and {len(start_points)} local "
                f"searches; the least max g_j / max |g_j| is {worst.min():.3g}; loosen a "
                "constraint, or move a side of the box"
            )

        # How many searches agree says how sure the optimum is;
        # the others are what a reference states besides.
        ends.sort(key=lambda u: -float(played(u)[0]))
        best = ends[0]
        best_values = played(best)
        reached = sum(
            abs(float(played(u)[0] - best_values[0])) <= 1e-9 * (1 + abs(float(best_values[0])))
            for u in ends
        )
        highest = _highest(
            played, [best, *units[np.argsort(-values[:, 0], kind="stable")[: starts // 2]]]
        )
        margins = [-float((played(u)[1:]).max()) for u in _centres(played, units, values)]
    return Optimum(
        x=box.scale(best),
        values=best_values,
        highest=highest,
        slater=max(margins),
        share=float((worst <= 0).mean()),
        reached=reached,
        starts=len(start_points),
    )


def _slsqp(objective: Formula, rules: Formula, u: Array) -> Array:
    """Maximises objective()[..., 0] subject to rules() <= 0 by SLSQP, restarted twice from its
    end.
    """
    from scipy.optimize import minimize

    for _ in range(3):
        solution = minimize(
            lambda v: -float(objective(v)[0]),
            u,
            jac=lambda v: -slopes(objective, v)[0],
            bounds=[(0.0, 1.0)] * len(u),
            constraints={
                "type": "ineq",
                "fun": lambda v: -rules(v),
                "jac": lambda v: -slopes(rules, v),
            },
            method="SLSQP",
            options={"maxiter": 200, "ftol": 1e-16},
        )
        if not np.isfinite(solution.x).all():
            break
        u = np.clip(solution.x, 0.0, 1.0)
    return u


def _units(function: Formula, u: Array, size: Array) -> Array:
    """Scale of every function: its slope at u, or its size if the slope is 0."""
    steep = np.linalg.norm(slopes(function, u), axis=1)
    return np.where((steep > 0) & np.isfinite(steep), steep, size)


def _local(played: Formula, u: Array, size: Array) -> Array | None:
    """The feasible point (d,) where a local search from u ends, or None."""
    unit = _units(played, u, size)
    u = _slsqp(lambda v: played(v)[..., :1] / unit[0], lambda v: played(v)[..., 1:] / unit[1:], u)
    # the last digits: a step of least length into the feasible set
    for margin in (0.0, *10.0 ** np.arange(-17, -12)):
        for _ in range(4):
            over = played(u)[1:] + margin * size[1:]
            broken = over > (margin * size[1:])
            if not broken.any():
                return u
            step = np.linalg.lstsq(slopes(played, u)[1:][broken], over[broken], rcond=None)[0]
            u = np.clip(u - step, 0.0, 1.0)
    return None


def _highest(played: Formula, start_points: list[Array]) -> float:
    """The largest f of local searches without constraints."""

    def free(u: Array) -> Array:
        f = played(u)[..., :1]
        return np.concatenate([f, -np.ones_like(f)], axis=-1)

    ends = [_local(free, u, np.ones(2)) for u in start_points]
    return max(float(played(u)[0]) for u in [*start_points, *(u for u in ends if u is not None)])


def _centres(played: Formula, units: Array, values: Array) -> list[Array]:
    """Points (d,) where max_j g_j is least: the best three sampled ones, and where SLSQP ends from
    there.
    """
    worst = values[:, 1:].max(axis=1)
    centres = [units[i] for i in np.argsort(worst, kind="stable")[:3]]
    for u in list(centres):
        low = float(played(u)[1:].max())
        high = float(np.abs(played(u)[1:]).max()) + 1e-300
        # the level max_j g_j <= low + high (level - 1/2) is one coordinate more
        start_point = np.array([*u, 0.5])

        def level(v: Array) -> Array:
            return -v[..., -1:]

        def rules(v: Array, low: float = low, high: float = high) -> Array:
            return (played(v[..., :-1])[..., 1:] - low) / high - (v[..., -1:] - 0.5)

        centres.append(_slsqp(level, rules, start_point)[:-1])
    return centres


SAMPLE = 2**13  # points at which a formula has to be finite
ROUNDING = 1e-14  # of a constraint at a stated optimum, relative to its largest value
VECTORISED = "use x[..., 0] and NumPy functions, or put @cbobench.pointwise above it"


@dataclass(frozen=True)
class Reference:
    """What is known of a formula's constrained maximum.

    Attributes:
        x: the best feasible point.
        f: its reward.
        slater: delta = -min_x max_j g_j(x), how strictly the constraints can be satisfied.
        share: fraction of the box that is feasible, to the digits that are stated.
        accuracy: by how much a feasible point may still be better, relative to 1 + |f|.
        how: how it was found.
        binds: whether the best point of the whole box is better, so that the constraints matter;
            None: not known.
    """

    x: tuple[float, ...]
    f: float
    slater: float
    share: float
    accuracy: float = 1e-9
    how: str = ""
    binds: bool | None = None

    @property
    def tolerance(self) -> float:
        """By how much the best feasible f may differ from the stated one, with its rounding."""
        return self.accuracy * (1 + abs(self.f)) + 1e-12


def pointwise(formula: Callable[[Any, Array], Any]) -> Callable[[Any, Array], Array]:
    """Decorator of a `formula(self, x)` of one point (d,): it is asked for each point, which takes
    longer.
    """

    @wraps(formula)
    def evaluate_each(self: Any, x: Array) -> Array:
        points = np.asarray(x, dtype=float)
        call = f"{type(self).__name__}: formula"
        names = name_functions(self.m)
        values = [
            read_run(formula(self, point), names, call)
            for point in points.reshape(-1, points.shape[-1])
        ]
        return np.stack(values).reshape(*points.shape[:-1], -1)

    return evaluate_each


@np.errstate(all="ignore")
def check_formula(formula: Formula, box: Box, m: int, name: str) -> None:
    """Checks a formula: points (..., d) to finite values (..., 1 + m), each a function of its own
    point.

    Raises:
        Misuse: it raises, gives another shape, no numbers, or values that depend on the other
            points.
    """
    evaluate = partial(_evaluate, formula, m, name)
    # Learners ask for one point and for many, of any number of axes.
    batch = box.scale(sobol(box.d, 6))
    single_values = np.stack([evaluate(point) for point in batch])
    together = evaluate(batch)
    evaluate(np.stack([batch, batch[::-1]]))
    if not np.allclose(single_values, together, rtol=1e-6, atol=1e-9, equal_nan=True):
        raise Misuse(
            f"{name}: formula gives a point other values beside other points; each must count "
            f"alone: {VECTORISED}"
        )

    # A value that is not finite would end a play late, at whatever point is the first to have one.
    points = box.scale(sobol(box.d, SAMPLE))
    values = evaluate(points)
    wrong = ~np.isfinite(values).all(axis=-1)
    if wrong.any():
        i = int(wrong.argmax())
        j = int((~np.isfinite(values[i])).argmax())
        count = "one point"
        if wrong.sum() > 1:
            count = f"{int(wrong.sum())} of {SAMPLE} points"
        function = name_functions(m)[j]
        raise Misuse(
            f"{name}: formula gives {function} = {values[i, j]:g} at x = "
            f"{points[i].tolist()} ({count}); it must be finite in the whole box: clip it, or "
            "move a side"
        )


def _evaluate(formula: Formula, m: int, name: str, points: Array) -> Array:
    """Values (..., 1 + m) at points (..., d); raises `Misuse` for another shape, and for what is no
    numbers.
    """
    call = f"{name}: formula at points of shape {points.shape}"
    shape = (*points.shape[:-1], 1 + m)
    if points.ndim > 1:
        fix = VECTORISED
    else:
        fix = f"return np.stack([f, g_1, ...], axis=-1), f and m = {m} constraints"
    try:
        values = formula(points.copy())
        if np.ma.is_masked(values):
            values = np.ma.filled(values, np.nan)
        values = np.asarray(values)
    except CellFailure as error:
        raise Misuse(str(error)) from error
    except CbobenchError:
        raise
    except BaseException as error:  # a user's formula may raise anything
        reraise_stop(error)
        raise Misuse(f"{call} fails: {one_line(error)}; {fix}") from error
    if values.shape != shape:
        raise Misuse(f"{call} gives shape {values.shape}; it must be {shape}: {fix}")
    if values.dtype.kind not in "iuf":
        kind = {
            "b": f"Booleans: {BOOLEAN}",
            "c": "complex numbers: give .real where the imaginary part is 0",
        }
        raise Misuse(f"{call} gives {kind.get(values.dtype.kind, f'{values.dtype}: give numbers')}")
    return values.astype(float)


def contradiction(
    formula: Formula,
    reference: Reference,
    box: Box,
    m: int,
    settle: Settle,
    divisor: Array,
) -> str:
    """Describes what contradicts a stated optimum, or returns ''. Allows for rounding of closed
    forms.
    """
    x = np.array(reference.x, dtype=float)
    at = f"x = ({', '.join(f'{v:.10g}' for v in x.ravel())})"
    if x.shape != box.low.shape:
        return f"{at}, but the box has {box.d} dimensions"
    if not ((x >= box.low) & (x <= box.high)).all():
        return f"{at}, which is not in the box"
    values = np.asarray(formula(x))
    if values.shape != (1 + m,) or not np.isfinite(values).all():
        return (
            f"{at}, where the formula gives {values.tolist()}, not {1 + m} finite values (f and "
            f"m = {m})"
        )

    # Rounding of a closed form is allowed, relative to what the constraint is elsewhere.
    g = settle(values[1:] / divisor)
    size = np.abs(formula(box.scale(box.candidates))).max(axis=0)[1:] / divisor
    if (g > ROUNDING * (1 + size)).any():
        j = int(g.argmax())
        return f"{at}, which is not feasible: g_{j + 1} = {values[1 + j]:.6g} there"
    if not abs(values[0] - reference.f) <= reference.tolerance:
        return f"f = {reference.f:.10g} at {at}, where the formula gives f = {values[0]:.10g}"
    return ""


ACCURACY = 1e-9  # of a derived optimum, relative to 1 + |f|
# how far a stated margin and share may be off, relatively
NEAR_MARGIN = 0.01
NEAR_SHARE = 0.03
DEVIATIONS = 4  # of a share that is sampled


def derive(formula: Formula, box: Box, stated: Reference | None) -> Optimum:
    """The optimum of a formula by local searches, of which one begins at the stated point."""
    start_points = [] if stated is None else [np.array(stated.x, dtype=float)]
    return search(formula, box, also=start_points)


def write_reference(optimum: Optimum) -> str:
    """A derived optimum as code to paste into its class."""
    return (
        f"reference = Reference(x={tuple(optimum.x.tolist())}, f={float(optimum.values[0])!r}, "
        f"slater={optimum.slater:.12g}, share={optimum.share:.5g}, accuracy={ACCURACY:g}, "
        f'how="multistart SLSQP", binds={optimum.binds(ACCURACY)})'
    )


def find_contradictions(optimum: Optimum, stated: Reference, mistake: str) -> list[str]:
    """What a class states of its optimum, and a search found otherwise.

    Args:
        mistake: what `contradiction` says of it.
    """
    lines = [f"the optimum is {mistake}"] if mistake else []
    f = float(optimum.values[0])
    if not abs(f - stated.f) <= stated.tolerance:
        word = "better" if f > stated.f else "lower"
        lines.append(f"f is {stated.f!r}; found: {f!r}, {word} by {abs(f - stated.f):.3g}")

    # Where no search finds a point inside all constraints, nothing is known of the margin.
    is_margin_known = optimum.slater > 0
    is_near = abs(stated.slater - optimum.slater) <= NEAR_MARGIN * optimum.slater
    if is_margin_known and not is_near:
        lines.append(f"slater is {stated.slater:.6g}; found: {optimum.slater:.6g}")

    # A sample tells a share up to its own deviation; what is stated as unknown (NaN) is no mistake.
    likely = min(max(stated.share, optimum.share), 1.0)
    deviation = math.sqrt(likely * (1 - likely) / 2**SAMPLED)
    allowed = NEAR_SHARE * optimum.share + DEVIATIONS * deviation
    if abs(stated.share - optimum.share) > allowed:
        lines.append(f"share is {stated.share:.4g}; found: {optimum.share:.4g}")
    if stated.binds is not None and stated.binds != optimum.binds(stated.accuracy):
        lines.append(f"binds is {stated.binds}; the best f of the whole box is {optimum.highest!r}")
    return lines
