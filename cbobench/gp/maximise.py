"""The maximum of a score over a box: climbs from peaks among fixed candidates, for S replicates in lock step.

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
from dataclasses import dataclass

import numpy as np

from cbobench.gp.climbs import BESIDE, Climbs, beside, meeting, ranked
from cbobench.gp.kernels import Array
from cbobench.gp.parts import Parts
from cbobench.gp.posteriors.contract import VARIANCE_FLOOR, Jet, Mask
from cbobench.gp.subproblem import best_step
from cbobench.gp.taylor import Taylor, taylor

STEPS = 24  # at most
MEMORY = 8  # steps of which the values are remembered
PATIENCE = 3  # steps without a gain before going back (a watchdog: a good step along a kink may look worse at first)
TOLERANCE = 1e-6  # a step this short ends a climb, in units of the cube: its error in the score is of second order
# So near to a better climb another one ends, in units of the first steps; and to one that has ended, at most so near.
NEAR, NEAR_ENDED, NEAREST = 0.03, 0.25, 0.01
LOWEST = -1e300  # the value of a climb that is not made
WALL = 1e5  # what an infinite price counts as while climbing

Scorer = Callable[[Array, Array, Array], Parts]
"""Parts from means (S, p, k) and variances (S, k) or (S, p, k) at points (S, k, d) of the unit cube."""


@dataclass(frozen=True)
class Pace:
    """How many climbs go on, and for how long.

    Attributes:
        field: after so many steps so many go on, the best ones.
        split: then, on kinks, climbs next to the best one begin: maxima on a kink may lie close together.
        gains, over: a climb ends when so many times its gain over the last steps would not bring it to the best one.
    """

    field: dict[int, int]
    split: int
    gains: float
    over: int


FAST = Pace({1: 12, 2: 8, 3: 5, 8: 5, 12: 3}, 3, 10.0, 5)
SMOOTH = Pace({1: 8, 2: 5, 4: 4, 8: 3}, 99, 10.0, 4)
SLOW = Pace({3: 12, 6: 8, 9: 5, 12: 3}, 99, 10.0, 6)
THOROUGH = Pace({4: 64, 8: 32, 12: 16, 18: 8}, 10, 10.0, 6)  # kinks in three dimensions or more, cusps
MEETING = Pace({3: 128, 6: 64, 9: 32, 14: 16}, 9, 10.0, 6)  # kinks that may meet there


def polish(
    score: Scorer, jet: Callable[[Array, Mask], Jet], points: Array, radius: float, rough: bool = False
) -> tuple[Array, Array]:
    """Climb from every point to a local maximum.

    Args:
        score: the round's score in parts, as a function of beliefs.
        jet: beliefs with two derivatives at points (S, q, d) of the unit cube, where a mask (S, q) asks for them.
        points: where to start, (S, q, d).
        radius: the longest first step, in units of the cube.
        rough: whether beliefs have cusps, so that it takes longer to tell which climb is the best one.

    Returns:
        The best that is found, points (S, at most q, d) and their scores: how many is fixed beforehand, so that no
        replicate depends on those beside it. Never worse than the start.
    """
    layout = taylor(points.shape[2])
    climbs, price = _begin(score, jet, points, layout, radius)
    m = price.shape[1]
    small, large = (FAST, THOROUGH) if m else (SMOOTH, SLOW)
    pace = MEETING if meeting(m, layout.d) else THOROUGH if rough else large if layout.d > 2 else small
    for taken in range(STEPS):
        if taken in pace.field and pace.field[taken] < climbs.value.shape[1]:
            follows = _follows(climbs, radius)
            climbs.done |= follows
            climbs = climbs.thinned(ranked(np.where(follows, -np.inf, climbs.value))[:, : pace.field[taken]])
        if taken == pace.split and m:
            best = climbs.best[np.arange(len(points)), climbs.value.argmax(axis=1)]
            climbs = climbs.joined(_begin(score, jet, beside(best, BESIDE * radius), layout, radius)[0])
        if not climbs.done.all():  # else the field still thins out: what is returned depends on no other replicate
            _step(climbs, score, jet, price, layout, taken, radius, pace)
    return climbs.best, climbs.value


def _begin(
    score: Scorer, jet: Callable[[Array, Mask], Jet], points: Array, layout: Taylor, radius: float
) -> tuple[Climbs, Array]:
    """Climbs from points (S, q, d), and the prices of the score, (S, m)."""
    order = np.arange(points.shape[1])
    same = (points[:, :, None] == points[:, None]).all(axis=3) & (order < order[:, None])
    once = ~same.any(axis=2)
    value, models, price = _model(score, jet(points, once), points, layout)
    value = np.where(once, value, LOWEST)
    return Climbs(
        points=points,
        best=points,
        value=value,
        earlier=np.repeat(value[..., None], MEMORY, axis=2),
        models=models,
        at_best=models,
        multipliers=np.zeros((*points.shape[:2], price.shape[1])),
        reach=np.full(points.shape[:2], radius),
        length=np.full(points.shape[:2], np.inf),
        patience=np.zeros(points.shape[:2], dtype=np.intp),
        done=~once,
    ), price


def _step(
    climbs: Climbs,
    score: Scorer,
    jet: Callable[[Array, Mask], Jet],
    price: Array,
    layout: Taylor,
    taken: int,
    radius: float,
    pace: Pace,
) -> None:
    """One step of all climbs that are not done."""
    going = ~climbs.done
    back = climbs.patience > 0  # a second-order correction: only back to the kinks
    step, found = best_step(climbs, price, layout, back)
    climbs.multipliers = np.where(back[..., None], climbs.multipliers, found)
    climbs.points = np.minimum(np.maximum(climbs.points + step, 0.0), 1.0)
    reached, climbs.models, _ = _model(score, jet(climbs.points, going), climbs.points, layout)
    better = (reached > climbs.value) & going
    climbs.length = np.where(back, climbs.length, np.abs(step).max(axis=2))
    grown = np.minimum(2 * climbs.reach, radius)
    climbs.reach = np.where(better & ~back, grown, climbs.reach)
    climbs.patience = np.where(better, 0, climbs.patience + 1)
    climbs.best = np.where(better[..., None], climbs.points, climbs.best)
    climbs.value = np.where(better, reached, climbs.value)
    climbs.at_best = np.where(better[..., None, None], climbs.models, climbs.at_best)
    lost = climbs.patience >= PATIENCE
    bent = (climbs.multipliers > 0).any(axis=2)  # else there is no kink to go back to
    lost |= (climbs.patience > 0) & ~bent
    if lost.any():
        shrunk = np.maximum(np.minimum(climbs.reach, climbs.length) / 6, 1e-12)
        climbs.reach = np.where(lost, shrunk, climbs.reach)
        climbs.points = np.where(lost[..., None], climbs.best, climbs.points)
        climbs.models = np.where(lost[..., None, None], climbs.at_best, climbs.models)
        climbs.patience = np.where(lost, 0, climbs.patience)
    climbs.earlier[..., taken % MEMORY] = climbs.value
    climbs.done |= climbs.length < TOLERANCE
    if taken >= pace.over:
        gain = pace.gains * (climbs.value - climbs.earlier[..., (taken - pace.over) % MEMORY])
        hopeless = climbs.value + gain < climbs.value.max(axis=1, keepdims=True)
        climbs.done |= hopeless | _follows(climbs, radius)


def _follows(climbs: Climbs, radius: float) -> Mask:
    """Which climbs (S, q) have a better one so near that they end where it ends."""
    value, order = climbs.value, np.arange(climbs.value.shape[1])
    better = value[:, None, :] > value[:, :, None]
    better |= (value[:, None, :] == value[:, :, None]) & (order < order[:, None])
    near = np.where(climbs.done, min(NEAR_ENDED * radius, NEAREST), NEAR * radius)[:, None]
    close = np.abs(climbs.best[:, None, :] - climbs.best[:, :, None]).max(axis=3) < near
    return np.asarray((better & close).any(axis=2))


def _model(score: Scorer, here: Jet, points: Array, layout: Taylor) -> tuple[Array, Array, Array]:
    """The score at the points, (S, q), models of its parts (S, q, 1 + m, n), and prices (S, m).

    Derivatives of the score in terms of beliefs are differences of the beliefs' models.
    """
    replicates, q, d = points.shape
    n = len(layout.steps)
    mean, variance = np.matmul(here.mean, layout.values), np.matmul(here.variance, layout.values)
    around = (points[:, :, None] + layout.steps).reshape(replicates, q * n, d)
    variance = np.maximum(variance, VARIANCE_FLOOR).reshape(*variance.shape[:-2], q * n)
    parts = score(mean.reshape(replicates, -1, q * n), variance, around)
    m = parts.kinked.shape[1]
    values = np.empty((replicates, q, 1 + m, n))
    values[:, :, 0] = parts.smooth.reshape(replicates, q, n)
    values[:, :, 1:] = parts.kinked.reshape(replicates, m, q, n).swapaxes(1, 2)
    price = np.minimum(parts.price, WALL) if m else parts.price
    value = values[:, :, 0, 0]
    if m:
        value = value - (price[:, None] * np.maximum(values[:, :, 1:, 0], 0.0)).sum(axis=2)
    return value, np.matmul(values, layout.models), price
