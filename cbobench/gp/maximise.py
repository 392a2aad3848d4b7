"""The maximum of a score over a box: fixed candidates first, then the best few polished, for S replicates in lock step.

Scores of constrained bandits have kinks, and their maximum is usually on one: f - Q [g]+ is best where g = 0. A
quasi-Newton method such as L-BFGS-B stops short there. A score is therefore given in parts (`cbobench.gp.parts`),

    score = smooth - sum_j price_j [kinked_j]+,

with an infinite price for a set that must not be left, and is climbed by sequential quadratic programming on this
exact penalty (Fletcher 1985; Nocedal & Wright 2006, ch. 18): each step maximises a concave quadratic model of the
augmented Lagrangian with linearised kinks. Derivatives with respect to x come from the posterior's own first and second
derivatives; those of the score in terms of beliefs by differences, which costs nothing in t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.gp.parts import Parts
from cbobench.gp.posteriors.contract import VARIANCE_FLOOR, Jet

STEPS = 24  # at most
PATIENCE = 3  # steps without a gain before going back (a watchdog: a good step along a kink may look worse at first)
SWEEPS = 12  # of coordinate ascent on the multipliers, within a step
TOLERANCE = 1e-6  # a step this short ends a climb, in units of the cube: its error in the score is of second order
HOPE = 10, 6  # a climb ends when ten times its gain over the last six steps would not bring it to the best one
NEAR = 0.03  # so near to a better climb, in units of the first steps, another one is left
AUGMENT = 100.0  # curvature added across a kink, in units of the largest there
DIFFERENCE = 1e-4  # step of the differences, in units of the cube
WALL = 1e5  # what an infinite price counts as while climbing


Scorer = Callable[[Array, Array, Array], Parts]
"""Parts from means (S, p, k) and variances (S, k) or (S, p, k) at points (S, k, d) of the unit cube."""


def starts(parts: Parts, candidates: Array, count: int) -> Array:
    """Where to climb from: the best candidates of every replicate, no two of them neighbours, (S, count, d).

    Half of them, by a score whose kinks are moved out by what a kinked part changes between neighbouring candidates (a
    heuristic: its range over M^(1/d)): a maximum on a kink lies between candidates that pay its price.

    Args:
        parts: the score at the candidates.
        candidates: (M, d).
    """
    size, d = candidates.shape
    spacing = size ** (-1 / d)
    scores = [parts.total()]
    if parts.kinked.shape[1]:
        slack = 2 * spacing * (parts.kinked.max(axis=2) - parts.kinked.min(axis=2))
        scores.append(parts._replace(kinked=parts.kinked - slack[:, :, None]).total())
    rows = np.arange(len(parts.smooth))
    chosen = np.empty((len(rows), count, d))
    for i in range(count):
        score = scores[i % len(scores)]
        best = score.argmax(axis=1)
        chosen[:, i] = candidates[best]
        near = np.abs(candidates[None] - candidates[best][:, None]).max(axis=2) < 2 * spacing
        for each in scores:
            each[near] = -np.inf
            each[rows, best] = -np.inf
    return chosen


def polish(score: Scorer, jet: Callable[[Array], Jet], points: Array, radius: float) -> tuple[Array, Array]:
    """Climb from every point to a local maximum.

    Args:
        score: the round's score in parts, as a function of beliefs.
        jet: beliefs with two derivatives at points (S, q, d) of the unit cube.
        points: where to start, (S, q, d).
        radius: the longest first step, in units of the cube.

    Returns:
        Points (S, q, d) and their scores (S, q), never worse than those of the start.
    """
    replicates, q, d = points.shape
    offsets = _stencil(d)
    best = points
    value, local = _local_model(score, jet(points), points, offsets)
    at_best = local
    multipliers = np.zeros_like(local.kinked)
    reach = np.full((replicates, q), radius)
    patience = np.zeros((replicates, q), dtype=np.intp)
    done = np.zeros((replicates, q), dtype=bool)
    length = np.full((replicates, q), np.inf)  # of the last step that was not a correction
    before = [value]
    for _ in range(STEPS):
        back = (patience > 0)[..., None]  # a second-order correction: only back to the kinks
        aim = local._replace(slope=np.where(back, 0.0, local.slope))
        step, found = _best_step(aim, points, multipliers, reach, done)
        multipliers = np.where(back, multipliers, found)
        points = np.clip(points + step, 0.0, 1.0)
        reached, local = _local_model(score, jet(points), points, offsets)
        better = (reached > value) & ~done
        length = np.where(back[..., 0], length, np.abs(step).max(axis=2))
        converged = length < TOLERANCE
        reach = np.where(better & (patience == 0), np.minimum(2 * reach, radius), reach)
        patience = np.where(better, 0, patience + 1)
        best = np.where(better[:, :, None], points, best)
        value = np.where(better, reached, value)
        at_best = _choose(better, local, at_best)
        bent = (multipliers > 0).any(axis=2)  # else there is no kink to go back to
        lost = (patience >= PATIENCE) | (patience > 0) & ~bent
        reach = np.where(lost, np.maximum(np.minimum(reach, length) / 6, 1e-12), reach)
        points = np.where(lost[:, :, None], best, points)
        local = _choose(lost, at_best, local)
        patience = np.where(lost, 0, patience)
        before.append(value)
        if len(before) > HOPE[1]:
            converged |= value + HOPE[0] * (value - before[-1 - HOPE[1]]) < value.max(axis=1, keepdims=True)
        # Whatever else is still climbing, a climb that is done stays, so that blocks change no bit.
        done |= converged | _follows(best, value, NEAR * radius)
        if done.all():
            break
    return best, value


def _follows(points: Array, value: Array, near: float) -> NDArray[np.bool_]:
    """Which climbs (S, q) have a better one so near that they end where it ends."""
    order = np.arange(value.shape[1])
    better = value[:, None, :] > value[:, :, None]
    better |= (value[:, None, :] == value[:, :, None]) & (order < order[:, None])
    close = np.abs(points[:, None, :] - points[:, :, None]).max(axis=3) < near
    return np.asarray((better & close).any(axis=2))


class _Local(NamedTuple):
    """Values, slopes and bends at q points: smooth (S, q, ...), kinked (S, q, m, ...), price (S, q, m)."""

    slope: Array
    bend: Array
    kinked: Array
    kinked_slope: Array
    kinked_bend: Array
    price: Array


def _choose(mask: NDArray[np.bool_], new: _Local, old: _Local) -> _Local:
    """`new` where the mask (S, q) holds, `old` elsewhere."""
    return _Local(
        *(np.where(mask.reshape(mask.shape + (1,) * (a.ndim - 2)), a, b) for a, b in zip(new, old, strict=True))
    )


def _local_model(score: Scorer, here: Jet, points: Array, offsets: Array) -> tuple[Array, _Local]:
    """The score at the points, (S, q), and its parts' derivatives, by differences of the beliefs' Taylor models."""
    replicates, q, d = points.shape
    n = len(offsets)
    steps = DIFFERENCE * offsets
    mean = here.mean[..., None] + _quadratic(here.mean_slope, here.mean_bend, steps)
    variance = here.variance[..., None] + _quadratic(here.variance_slope, here.variance_bend, steps)
    around = (points[:, :, None] + steps).reshape(replicates, q * n, d)
    parts = score(
        mean.reshape(replicates, -1, q * n),
        np.maximum(variance, VARIANCE_FLOOR).reshape(*variance.shape[:-2], q * n),
        around,
    )
    m = parts.kinked.shape[1]
    smooth = parts.smooth.reshape(replicates, q, 1, n)
    kinked = parts.kinked.reshape(replicates, m, q, n).transpose(0, 2, 1, 3)
    slopes, bends = _differences(np.concatenate([smooth, kinked], axis=2), d)
    price = np.where(np.isinf(parts.price), WALL, parts.price)[:, None].repeat(q, axis=1)
    excess = np.maximum(kinked[..., 0], 0.0)
    value = smooth[:, :, 0, 0] - (price * excess).sum(axis=2)
    return value, _Local(slopes[:, :, 0], bends[:, :, 0], kinked[..., 0], slopes[:, :, 1:], bends[:, :, 1:], price)


def _best_step(
    local: _Local, points: Array, multipliers: Array, reach: Array, done: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """The step (S, q, d) of the quadratic subproblem and its multipliers (S, q, m), kinks held as the last step did."""
    held = (multipliers > 0) & (multipliers < local.price)
    step, found = _subproblem(local, points, multipliers, reach, held)
    wrong = (held & ((found <= 0) | (found >= local.price))).any(axis=2) & ~done
    if wrong.any():
        plain, other = _subproblem(local, points, multipliers, reach, np.zeros_like(held))
        step, found = np.where(wrong[..., None], plain, step), np.where(wrong[..., None], other, found)
    return step, found


def _subproblem(
    local: _Local, points: Array, multipliers: Array, reach: Array, held: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """The step (S, q, d) of the quadratic subproblem and its multipliers (S, q, m).

    max_p slope.p + p.B.p / 2 - sum_j price_j [kinked_j + a_j.p]+ has the dual: over multipliers in [0, price],
    minimise the maximum over p of the same with multiplier_j (kinked_j + a_j.p) in place of the penalty. It is a
    quadratic programme over a box, solved by coordinate descent.
    """
    d = points.shape[2]
    a = local.kinked_slope  # (S, q, m, d)
    bend = local.bend - (multipliers[..., None, None] * local.kinked_bend).sum(axis=2)
    # Where a kink holds, - (kinked + a.p)² changes no solution and makes the model concave if it is so along the kink.
    largest = AUGMENT * np.abs(bend).max(axis=(2, 3))[..., None]
    weight = np.where(held, largest, 0.0) / np.maximum((a**2).sum(axis=3), 1e-100)
    bend = bend - np.matmul((weight[..., None] * a).swapaxes(2, 3), a)
    slope = local.slope - (weight[..., None] * local.kinked[..., None] * a).sum(axis=2)
    lagrangian = slope - (multipliers[..., None] * a).sum(axis=2)
    free = ~((points <= 0) & (lagrangian < 0) | (points >= 1) & (lagrangian > 0))  # else held by a side of the box
    both = free[..., None] & free[..., None, :]
    size, axes = np.linalg.eigh(np.where(both, bend, -np.eye(d)))
    # Where the model is not concave: the curvature at which a step is as long as allowed.
    strength = np.linalg.norm(np.where(free, lagrangian, 0.0), axis=2) / reach
    floor = np.maximum(1e-8 * np.abs(size).max(axis=2), 1e-9)
    curvature = np.maximum(np.abs(size), floor[..., None])
    concave = np.asarray((size < 0).all(axis=2))
    curvature = np.where(concave[..., None], curvature, np.maximum(curvature, strength[..., None]))
    inverse = np.where(both, np.matmul(axes / curvature[..., None, :], axes.swapaxes(2, 3)), 0.0)  # (-B)^-1
    toward = np.matmul(inverse, slope[..., None])[..., 0]
    m = a.shape[2]
    if m:
        through = np.matmul(a, inverse)
        gram = np.matmul(through, a.swapaxes(2, 3))
        wanted = local.kinked + np.matmul(a, toward[..., None])[..., 0]  # kinked value after the free step
        multipliers = multipliers.copy()
        for _ in range(1 if m == 1 else SWEEPS):
            for j in range(m):
                rest = (
                    wanted[..., j] - (gram[..., j, :] * multipliers).sum(axis=2) + gram[..., j, j] * multipliers[..., j]
                )
                best = rest / np.maximum(gram[..., j, j], 1e-300)
                multipliers[..., j] = np.clip(best, 0.0, local.price[..., j])
        toward = toward - (multipliers[..., None] * through).sum(axis=2)
    length = np.abs(toward).max(axis=2)
    return toward * np.minimum(1.0, reach / np.maximum(length, 1e-300))[..., None], multipliers


def _quadratic(slope: Array, bend: Array, steps: Array) -> Array:
    """slope.p + p.bend.p / 2 for slopes (..., d), bends (..., d, d) and steps (n, d): (..., n)."""
    curved = 0.5 * np.matmul(steps, bend) + slope[..., None, :]
    return np.asarray((curved * steps).sum(axis=-1))


def _stencil(d: int) -> Array:
    """The centre, one step each way along every axis, and one along every pair of axes: (1 + 2d + d(d-1)/2, d)."""
    axes = np.eye(d)
    pairs = [axes[i] + axes[j] for i in range(d) for j in range(i + 1, d)]
    return np.concatenate([np.zeros((1, d)), axes, -axes, np.array(pairs).reshape(-1, d)])


def _differences(values: Array, d: int) -> tuple[Array, Array]:
    """Slopes (..., d) and bends (..., d, d) from values (..., n) on the stencil."""
    h = DIFFERENCE
    centre, plus, minus = values[..., :1], values[..., 1 : 1 + d], values[..., 1 + d : 1 + 2 * d]
    slope = (plus - minus) / (2 * h)
    bend = np.zeros((*values.shape[:-1], d, d))
    bend[..., np.arange(d), np.arange(d)] = (plus - 2 * centre + minus) / h**2
    column = 1 + 2 * d
    for i in range(d):
        for j in range(i + 1, d):
            mixed = (values[..., column] - plus[..., i] - plus[..., j] + centre[..., 0]) / h**2
            bend[..., i, j] = bend[..., j, i] = mixed
            column += 1
    return slope, bend
