"""One step of sequential quadratic programming for climbs of S replicates side by side.

`Climbs` holds the state of every climb; `best_step` solves the quadratic subproblem for the next step and the
multipliers of the kinks (see `cbobench.gp.maximise`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.interface import Mask
from cbobench.gp.taylor import Taylor

BESIDE = 0.75  # in units of the spacing: distance from the best point at which others start
Number = TypeVar("Number", bound=np.generic)


@dataclass(slots=True)
class Climbs:
    """q climbs of S replicates.

    Attributes:
        points, best: present points and best points so far, (S, q, d).
        value, earlier: the highest score so far, (S, q), and after each of the last steps, (S, q, MEMORY).
        models: of the smooth part and the m kinked ones at `points` and at `best`, (S, q, 1 + m, n).
        multipliers: of the kinks, (S, q, m).
        reach, length: the longest next step, and the last one that was not a correction, (S, q).
        patience: steps since the last gain, (S, q).
        done: whether a climb has ended, (S, q).
        least: gains up to here are none, (S, q).
    """

    points: Array
    best: Array
    value: Array
    earlier: Array
    models: Array
    at_best: Array
    multipliers: Array
    reach: Array
    length: Array
    patience: NDArray[np.intp]
    done: Mask
    least: Array

    def thinned(self, order: NDArray[np.intp]) -> Climbs:
        """Return some of them, (S, k)."""
        return Climbs(*(pick(getattr(self, field.name), order) for field in fields(self)))

    def joined(self, climbs: Climbs) -> Climbs:
        """Return these and others."""
        pairs = ((getattr(self, field.name), getattr(climbs, field.name)) for field in fields(self))
        return Climbs(*(np.concatenate(pair, axis=1) for pair in pairs))


def pick(values: NDArray[Number], order: NDArray[np.intp]) -> NDArray[Number]:
    """Return climbs (S, k) of arrays (S, q, ...)."""
    return values[np.arange(len(values))[:, None], order]


def neighbours(points: Array, distance: float) -> Array:
    """Return points at a distance along every axis on both sides of points (S, d), in the unit cube: (S, 2 d, d)."""
    d = points.shape[1]
    moves = distance * np.concatenate([np.eye(d), -np.eye(d)])
    return np.clip(points[:, None] + moves, 0.0, 1.0)


def rank_values(values: Array) -> NDArray[np.intp]:
    """Return indices (S, k) from the highest of every row to the lowest; of equal ones the first comes first."""
    return np.argsort(-values, axis=1, kind="stable")


def may_kinks_meet(m: int, d: int) -> bool:
    """Return whether so many of m kinks may meet that only many starts find the best point."""
    return m > 2 and d > 2


SWEEPS = 12  # largest number of sweeps of coordinate ascent on the multipliers
SETTLED = 1e-12  # a smaller change of the multipliers ends the sweeps
AUGMENT = 100.0  # curvature added across a kink, in units of the largest there


def best_step(climbs: Climbs, price: Array, layout: Taylor, back: Mask) -> tuple[Array, Array]:
    """Return the step (S, q, d) of the quadratic subproblem and its multipliers (S, q, m), kinks held as in the last
    step.

    Args:
        back: mask (S, q) of climbs that only go back to the kinks.
    """
    most = price[:, None]
    held = (climbs.multipliers > 0) & (climbs.multipliers < most)
    step, multipliers = _subproblem(climbs, most, layout, back, held)
    if not held.any():
        return step, multipliers
    # A held kink whose multiplier ends at a bound was no kink to hold: there the step is that without held kinks.
    wrong = (held & ((multipliers <= 0) | (multipliers >= most))).any(axis=2) & ~climbs.done
    if wrong.any():
        plain, plain_multipliers = _subproblem(climbs, most, layout, back, np.zeros_like(held))
        step = np.where(wrong[..., None], plain, step)
        multipliers = np.where(wrong[..., None], plain_multipliers, multipliers)
    return step, multipliers


def _subproblem(climbs: Climbs, price: Array, layout: Taylor, back: Mask, held: Mask) -> tuple[Array, Array]:
    """The step (S, q, d) of the quadratic subproblem and its multipliers (S, q, m).

    max_p slope.p + p.B.p / 2 - sum_j price_j [kinked_j + a_j.p]+ has the dual: over multipliers in [0, price],
    minimise the maximum over p of the same with multiplier_j (kinked_j + a_j.p) in place of the penalty. It is a
    quadratic programme over a box, solved by coordinate descent.
    """
    points, models, reach, d = climbs.points, climbs.models, climbs.reach, layout.d
    multipliers = climbs.multipliers
    m = multipliers.shape[2]
    slope = np.where(back[..., None], 0.0, layout.slopes(models[:, :, 0]))
    bend, lagrangian = layout.bends(models[:, :, 0]), slope
    if m:
        kinked, a = models[:, :, 1:, 0], layout.slopes(models[:, :, 1:])  # (S, q, m), (S, q, m, d)
        bend = bend - np.matmul(multipliers[:, :, None], models[:, :, 1:])[:, :, 0][..., layout.square]
        if held.any():
            # Where a kink holds, - (kinked + a.p)² changes no solution and bends the model down across it.
            largest = AUGMENT * np.abs(bend).max(axis=(2, 3))[..., None]
            weight = np.where(held, largest, 0.0) / np.maximum((a**2).sum(axis=3), 1e-100)
            bend = bend - np.matmul((weight[..., None] * a).swapaxes(2, 3), a)
            slope = slope - np.matmul((weight * kinked)[:, :, None], a)[:, :, 0]
        lagrangian = slope - np.matmul(multipliers[:, :, None], a)[:, :, 0]
    fixed = (points <= 0) & (lagrangian < 0) | (points >= 1) & (lagrangian > 0)  # at a side of the box
    if fixed.any():
        either = fixed[..., None] | fixed[..., None, :]
        bend = np.where(either, -np.eye(d), bend)
        lagrangian = np.where(fixed, 0.0, lagrangian)
    size, axes = np.linalg.eigh(bend)
    curvature = np.abs(size)
    floor = np.maximum(1e-8 * curvature.max(axis=2), 1e-9)
    curvature = np.maximum(curvature, floor[..., None])
    bowl = size[..., -1] >= 0
    if bowl.any():
        # Where the model is not concave: the curvature at which a step is as long as allowed.
        strength = np.sqrt((lagrangian**2).sum(axis=2)) / reach
        curvature = np.where(bowl[..., None], np.maximum(curvature, strength[..., None]), curvature)
    inverse = np.matmul(axes / curvature[..., None, :], axes.swapaxes(2, 3))  # (-B)^-1
    if fixed.any():
        inverse = np.where(either, 0.0, inverse)
    toward = np.matmul(inverse, slope[..., None])[..., 0]
    if m:
        through = np.matmul(a, inverse)
        gram = np.matmul(through, a.swapaxes(2, 3))
        kink_values = kinked + np.matmul(a, toward[..., None])[..., 0]  # kinked value after the free step
        multipliers = _ascend(multipliers, kink_values, gram, price)
        toward = toward - np.matmul(multipliers[:, :, None], through)[:, :, 0]
    length = np.maximum(np.abs(toward).max(axis=2), 1e-300)
    return toward * np.minimum(1.0, reach / length)[..., None], multipliers


def _ascend(multipliers: Array, kink_values: Array, gram: Array, price: Array) -> Array:
    """Return multipliers (S, q, m) after some sweeps over the coordinates of the dual; converged climbs are skipped."""
    m = multipliers.shape[2]
    # A kinked part that is flat has a pivot of 0.
    pivot = np.maximum(gram[..., np.arange(m), np.arange(m)], 1e-300)
    if m == 1:
        return np.minimum(np.maximum(kink_values / pivot, 0.0), price)
    multipliers = multipliers.copy()
    residual = kink_values - np.matmul(gram, multipliers[..., None])[..., 0]
    moving = np.ones(multipliers.shape[:2], dtype=bool)
    for _ in range(SWEEPS):
        before = multipliers.copy()
        for j in range(m):
            best = multipliers[..., j] + residual[..., j] / pivot[..., j]
            best = np.where(moving, np.minimum(np.maximum(best, 0.0), price[..., j]), multipliers[..., j])
            residual -= gram[..., j] * (best - multipliers[..., j])[..., None]
            multipliers[..., j] = best
        moving &= (np.abs(multipliers - before) > SETTLED * np.abs(multipliers)).any(axis=2)
        if not moving.any():
            break
    return multipliers
