"""The maximum of a score over a box: climbs from peaks among fixed candidates, for S replicates in
lock step.

Scores of constrained bandits have kinks, and their maximum is usually on one: f - Q [g]+ is best
where g = 0. A quasi-Newton method such as L-BFGS-B stops short there. A score is therefore given in
parts (`cbobench.gp.beliefs`),

    score = smooth - sum_j price_j [kinked_j]+,

with an infinite price for a set that must not be left, and is climbed by sequential quadratic
programming on this exact penalty (Fletcher 1985; Nocedal & Wright 2006, ch. 18): each step
maximises a concave quadratic model of the augmented Lagrangian with linearised kinks. Derivatives
with respect to x come from the posterior's own first and second derivatives; those of the score in
terms of beliefs by differences, which costs nothing in t.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.actions import levels, smallest
from cbobench.gp.beliefs import Parts
from cbobench.gp.box_actions import Box, sobol
from cbobench.gp.jets import STEP, Jet, Taylor, taylor
from cbobench.gp.kernels import Array, Indices, Mask
from cbobench.gp.mixed_actions import Mixed
from cbobench.gp.posteriors.interface import VARIANCE_FLOOR

STEPS = 24  # largest number of steps
MEMORY = 8  # steps whose values are remembered
# steps without a gain before going back: a good step along a kink may look worse at first
PATIENCE = 3
# a shorter step ends a climb, in units of the cube; its error in the score is of second order
TOLERANCE = 1e-6
FINEST = 1e-8  # the same for narrow maxima
SHARE = 1e-3  # of the distance over which a belief changes: steps of differences for narrow maxima
# So near to a better climb another one ends, in units of the first steps; and to one that has
# ended, at most so near.
NEAR = 0.03
NEAR_ENDED = 0.25
NEAREST = 0.01
LOWEST = -1e300  # value of a climb that is not made
WALL = 1e5  # stands for an infinite price while climbing

MANY_INPUTS = 20  # from here on a step costs so much that few climbs are made
BESIDE = 0.75  # in units of the spacing: distance from the best point at which others start
Number = TypeVar("Number", bound=np.generic)
Scorer = Callable[[Array, Array, Array], Parts]
"""Parts from means (S, p, k) and variances (S, k) or (S, p, k) at points (S, k, d) of the unit
cube.
"""


@dataclass(frozen=True)
class Pace:
    """How many climbs continue, and for how long.

    Attributes:
        field: number of best climbs that continue, by step.
        split: the step after which, on kinks, climbs start next to the best one: maxima on a kink
            may lie close together.
        gains, over: a climb ends if this multiple of its gain over the last steps would not bring
            it to the best one.
        fine: whether the score may change over shorter distances than beliefs do on most of the
            box.
    """

    field: dict[int, int]
    split: int
    gains: float
    over: int
    fine: bool = False


# The paces were measured on played rounds, which `python -m benchmarks.quality.maximiser` holds
# against a dense search. Who changes one needs its table: the tests hold but the easy cases.
FAST = Pace({1: 12, 2: 8, 3: 5, 8: 5, 12: 3}, 3, 10.0, 5)
SMOOTH = Pace({1: 8, 2: 5, 4: 4, 8: 3}, 99, 10.0, 4)
SLOW = Pace({3: 12, 6: 8, 9: 5, 12: 3}, 99, 10.0, 6)
THOROUGH = Pace({4: 64, 8: 32, 12: 16, 18: 8}, 10, 10.0, 6)  # kinks in three dimensions or more
NARROW = Pace({0: 32, 2: 16, 5: 8}, 99, 10.0, 6, fine=True)  # products of probabilities
WIDE = replace(NARROW, field={0: 16, 2: 8, 6: 4})  # the same in many dimensions
CUSPED = replace(THOROUGH, fine=True)  # cusps
# The best floats beside another whole number may be far from those beside this one.
CHANGED = Pace({4: 16, 8: 8}, 99, 10.0, 6, fine=True)
MEETING = Pace({3: 128, 6: 64, 9: 32, 14: 16}, 9, 10.0, 6)  # kinks that may meet there


@dataclass(slots=True)
class Climbs:
    """q climbs of S replicates.

    Attributes:
        points, best: present points and best points so far, (S, q, d). value, earlier: the highest
        score so far, (S, q), and after each of the last steps, (S, q, MEMORY). models: of the
        smooth part and the m kinked ones at `points` and at `best`, (S, q, 1 + m, n). multipliers:
        of the kinks, (S, q, m). reach, length: the longest next step, and the last one that was not
        a correction, (S, q). patience: steps since the last gain, (S, q). done: whether a climb has
        ended, (S, q). least: gains up to here are none, (S, q).
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
    patience: Indices
    done: Mask
    least: Array

    def thinned(self, order: Indices) -> Climbs:
        """Return some of them, (S, k)."""
        return Climbs(*(pick(getattr(self, field.name), order) for field in fields(self)))

    def joined(self, climbs: Climbs) -> Climbs:
        """Return these and others."""
        pairs = ((getattr(self, field.name), getattr(climbs, field.name)) for field in fields(self))
        return Climbs(*(np.concatenate(pair, axis=1) for pair in pairs))


def pick(values: NDArray[Number], order: Indices) -> NDArray[Number]:
    """Return climbs (S, k) of arrays (S, q, ...)."""
    return values[np.arange(len(values))[:, None], order]


def neighbours(points: Array, distance: float) -> Array:
    """Return points at a distance along every axis on both sides of points (S, d), in the unit
    cube: (S, 2 d, d).
    """
    d = points.shape[1]
    moves = distance * np.concatenate([np.eye(d), -np.eye(d)])
    return np.clip(points[:, None] + moves, 0.0, 1.0)


def rank_values(values: Array) -> Indices:
    """Return indices (S, k) from the highest of every row to the lowest; of equal ones the first
    comes first.
    """
    return np.argsort(-values, axis=1, kind="stable")


def may_kinks_meet(m: int, d: int) -> bool:
    """Return whether so many of m kinks may meet that only many starts find the best point."""
    return m > 2 and d > 2


@dataclass(frozen=True)
class Surface:
    """What the climbs of a round climb: its score as a function of points.

    Attributes:
        score: the round's score in parts, as a function of beliefs.
        jet: returns beliefs with two derivatives at points (S, q, d) of the unit cube, where a mask
            (S, q) asks for them.
        radius: the longest first step, in units of the cube.
        held: coordinates that stay as they are, (d,); None for none.
    """

    score: Scorer
    jet: Callable[[Array, Mask], Jet]
    radius: float
    held: Mask | None = None

    def layout(self, d: int) -> Taylor:
        """Return that of the Taylor models."""
        if self.held is None:
            return taylor(d)
        return replace(taylor(d), held=self.held)

    def model(self, points: Array, mask: Mask, fine: bool) -> tuple[Array, Array, Array]:
        """Return the score at points (S, q, d), models of its parts (S, q, 1 + m, n), both
        arbitrary where a mask (S, q) is false, and prices (S, m).

        Derivatives of the score in terms of beliefs are differences of the beliefs' models.
        """
        replicates, q, d = points.shape
        layout = self.layout(d)
        jet = self.jet(points, mask)
        n = len(layout.steps)
        steps = layout.steps

        # Shorter steps for fine structure: derivatives scale with the share, and back at the end.
        if fine:
            share = _share_of_steps(jet, d)
            steps = share[..., None, None] * steps
            powers = share[..., None] ** layout.orders
            jet = Jet(
                *(
                    model * (powers if model.ndim == 3 else powers[:, None])
                    for model in (jet.mean, jet.variance)
                )
            )

        # Beliefs around a point are by their own models: the posterior itself would cost more.
        mean = jet.mean @ layout.values
        variance = jet.variance @ layout.values
        around = (points[:, :, None] + steps).reshape(replicates, q * n, d)
        # A model of a variance may fall below 0.
        variance = np.maximum(variance, VARIANCE_FLOOR).reshape(*variance.shape[:-2], q * n)
        parts = self.score(mean.reshape(replicates, -1, q * n), variance, around)

        # Each part has a model of its own, as their sum has kinks that no polynomial follows.
        m = parts.kinked.shape[1]
        values = np.empty((replicates, q, 1 + m, n))
        values[:, :, 0] = parts.smooth.reshape(replicates, q, n)
        values[:, :, 1:] = parts.kinked.reshape(replicates, m, q, n).swapaxes(1, 2)
        # An infinite price would leave no slope to climb.
        price = np.minimum(parts.price, WALL) if m else parts.price
        value = values[..., 0, 0]
        if m:
            value = value - (price[:, None] * np.maximum(values[..., 1:, 0], 0.0)).sum(axis=2)
        models = values @ layout.models
        return value, models / powers[:, :, None] if fine else models, price


def polish(
    surface: Surface,
    points: Array,
    narrow: bool = False,
    widths: Array | None = None,
    pace: Pace | None = None,
) -> tuple[Array, Array]:
    """Climb from every point to a local maximum.

    Args:
        points: starts, (S, q, d).
        narrow: whether maxima are narrow (see `Starts`), so that it takes longer to tell which
            climb is the best.
        widths: scores that differ by less tie, (S,): a climb on a plateau must not follow rounding;
            None for 0.
        pace: None for that of the score's shape.

    Returns:
        The best points found, (S, at most q, d), and their scores, never worse than the starts.
        Their number is fixed beforehand, so that no replicate depends on those beside it.
    """
    d = points.shape[2]
    widths = np.zeros(len(points)) if widths is None else widths
    climbs, price = _begin(surface, points, narrow, widths)
    m = price.shape[1]
    pace = _pace(m, d, narrow) if pace is None else pace
    last = max(pace.field, default=0)
    for number in range(STEPS):
        if number in pace.field and pace.field[number] < climbs.value.shape[1]:
            follows = _follows(climbs, surface.radius)
            climbs.done |= follows
            value = np.where(follows, -np.inf, levels(climbs.value, widths))
            climbs = climbs.thinned(rank_values(value)[:, : pace.field[number]])
        if number == pace.split and m:
            best = climbs.best[np.arange(len(points)), levels(climbs.value, widths).argmax(axis=1)]
            beside = neighbours(best, BESIDE * surface.radius)
            climbs = climbs.joined(_begin(surface, beside, pace.fine, widths)[0])
        # otherwise the field still thins out: the result depends on no other replicate
        if not climbs.done.all():
            _step(climbs, surface, price, pace, number)
        elif number >= last and (number >= pace.split or not m):
            break
    return climbs.best, climbs.value


def _pace(m: int, d: int, narrow: bool) -> Pace:
    """Return the pace for a score with m kinks over d dimensions."""
    small, large = (FAST, THOROUGH) if m else (SMOOTH, SLOW)
    if narrow:
        small = large = CUSPED if m else NARROW if d < MANY_INPUTS else WIDE
    if may_kinks_meet(m, d):
        return MEETING
    if d > 2:
        return large
    return small


def _begin(surface: Surface, points: Array, fine: bool, widths: Array) -> tuple[Climbs, Array]:
    """Return climbs from points (S, q, d), and the prices of the score, (S, m)."""
    # Of equal starts only the first one climbs: the others would end where it ends.
    order = np.arange(points.shape[1])
    same = (points[:, :, None] == points[:, None]).all(axis=3) & (order < order[:, None])
    once = ~same.any(axis=2)
    value, models, price = surface.model(points, once, fine)
    value = np.where(once, value, LOWEST)
    return Climbs(
        points=points,
        best=points,
        value=value,
        earlier=np.repeat(value[..., None], MEMORY, axis=2),
        models=models,
        at_best=models,
        multipliers=np.zeros((*points.shape[:2], price.shape[1])),
        reach=np.full(points.shape[:2], surface.radius),
        length=np.full(points.shape[:2], np.inf),
        patience=np.zeros(points.shape[:2], dtype=np.intp),
        done=~once,
        least=np.repeat(widths[:, None], points.shape[1], axis=1),
    ), price


def _step(climbs: Climbs, surface: Surface, price: Array, pace: Pace, number: int) -> None:
    """Make step `number` (from 0) of all climbs that are not done."""
    # Where the last step gained nothing it may have left the kinks, not gone the wrong way.
    active = ~climbs.done
    layout = surface.layout(climbs.points.shape[2])
    returning = climbs.patience > 0  # a second-order correction, only back to the kinks
    step, multipliers = best_step(climbs, price, layout, returning)
    climbs.multipliers = np.where(returning[..., None], climbs.multipliers, multipliers)
    climbs.points = np.minimum(np.maximum(climbs.points + step, 0.0), 1.0)
    reached, climbs.models, _ = surface.model(climbs.points, active, pace.fine)
    # A smaller gain may be rounding, which would lead a climb along a plateau.
    better = (reached > climbs.value + climbs.least) & active
    climbs.length = np.where(returning, climbs.length, np.abs(step).max(axis=2))
    grown = np.minimum(2 * climbs.reach, surface.radius)
    climbs.reach = np.where(better & ~returning, grown, climbs.reach)
    climbs.patience = np.where(better, 0, climbs.patience + 1)
    climbs.best = np.where(better[..., None], climbs.points, climbs.best)
    climbs.value = np.where(better, reached, climbs.value)
    climbs.at_best = np.where(better[..., None, None], climbs.models, climbs.at_best)
    lost = climbs.patience >= PATIENCE
    bent = (climbs.multipliers > 0).any(axis=2)  # otherwise there is no kink to go back to
    lost |= (climbs.patience > 0) & ~bent
    # After too many steps without a gain a climb goes back to its best point, and the next step is
    # shorter.
    if lost.any():
        shrunk = np.maximum(np.minimum(climbs.reach, climbs.length) / 6, 1e-12)
        climbs.reach = np.where(lost, shrunk, climbs.reach)
        climbs.points = np.where(lost[..., None], climbs.best, climbs.points)
        climbs.models = np.where(lost[..., None, None], climbs.at_best, climbs.models)
        climbs.patience = np.where(lost, 0, climbs.patience)
    # What cannot catch up with the best climb of its replicate, at its pace of late, costs steps
    # for nothing.
    climbs.earlier[..., number % MEMORY] = climbs.value
    climbs.done |= climbs.length < (FINEST if pace.fine else TOLERANCE)
    if number >= pace.over:
        gain = pace.gains * (climbs.value - climbs.earlier[..., (number - pace.over) % MEMORY])
        hopeless = climbs.value + gain < climbs.value.max(axis=1, keepdims=True) - climbs.least
        first = levels(climbs.value, climbs.least[:, 0]).argmax(axis=1)[:, None] == np.arange(
            gain.shape[1]
        )
        hopeless |= (gain <= 0) & ~first
        climbs.done |= hopeless | _follows(climbs, surface.radius)


def _follows(climbs: Climbs, radius: float) -> Mask:
    """Return which climbs (S, q) have a better one so near that they would end where it ends."""
    value = levels(climbs.value, climbs.least[:, 0])
    order = np.arange(climbs.value.shape[1])
    better = value[:, None, :] > value[..., None]
    better |= (value[:, None, :] == value[..., None]) & (order < order[:, None])
    near = np.where(climbs.done, min(NEAR_ENDED * radius, NEAREST), NEAR * radius)[:, None]
    close = np.abs(climbs.best[:, None, :] - climbs.best[:, :, None]).max(axis=3) < near
    return (better & close).any(axis=2)


def _share_of_steps(jet: Jet, d: int) -> Array:
    """Return which share of the usual steps differences should take at q points, (S, q), at most 1.

    Near an observation a mean changes by a deviation, and a variance by itself, within a short
    distance. A step is `SHARE` of it, for the steepest mean and the smallest deviation of all
    functions.
    """
    variance = jet.variance if jet.variance.ndim == 4 else jet.variance[:, None]
    level = np.maximum(variance[..., :1], VARIANCE_FLOOR)
    slopes = slice(1, 1 + d)
    of_means = np.abs(jet.mean[..., slopes]).max(axis=(1, 3)) / np.sqrt(level.min(axis=(1, 3)))
    of_variances = (np.abs(variance[..., slopes]) / level).max(axis=(1, 3))
    return 1 / np.maximum(1.0, np.maximum(of_means, of_variances) * (STEP / SHARE))


SWEEPS = 12  # largest number of sweeps of coordinate ascent on the multipliers
SETTLED = 1e-12  # a smaller change of the multipliers ends the sweeps
AUGMENT = 100.0  # curvature added across a kink, in units of the largest there


def best_step(climbs: Climbs, price: Array, layout: Taylor, back: Mask) -> tuple[Array, Array]:
    """Return the step (S, q, d) of the quadratic subproblem and its multipliers (S, q, m), kinks
    held as in the last step.

    Args:
        back: mask (S, q) of climbs that only go back to the kinks.
    """
    most = price[:, None]
    held = (climbs.multipliers > 0) & (climbs.multipliers < most)
    step, multipliers = _subproblem(climbs, most, layout, back, held)
    if not held.any():
        return step, multipliers
    # A held kink whose multiplier ends at a bound was no kink to hold: there the step is that
    # without held kinks.
    wrong = (held & ((multipliers <= 0) | (multipliers >= most))).any(axis=2) & ~climbs.done
    if wrong.any():
        plain, plain_multipliers = _subproblem(climbs, most, layout, back, np.zeros_like(held))
        step = np.where(wrong[..., None], plain, step)
        multipliers = np.where(wrong[..., None], plain_multipliers, multipliers)
    return step, multipliers


def _subproblem(
    climbs: Climbs, price: Array, layout: Taylor, back: Mask, held: Mask
) -> tuple[Array, Array]:
    """The step (S, q, d) of the quadratic subproblem and its multipliers (S, q, m).

    max_p slope.p + p.B.p / 2 - sum_j price_j [kinked_j + a_j.p]+ has the dual: over multipliers in
    [0, price], minimise the maximum over p of the same with multiplier_j (kinked_j + a_j.p) in
    place of the penalty. It is a quadratic programme over a box, solved by coordinate descent.
    """
    points = climbs.points
    models = climbs.models
    reach = climbs.reach
    d = layout.d
    multipliers = climbs.multipliers
    m = multipliers.shape[2]
    slope = np.where(back[..., None], 0.0, layout.slopes(models[:, :, 0]))
    bend = layout.bends(models[:, :, 0])
    lagrangian = slope
    if m:
        kinked, a = models[..., 1:, 0], layout.slopes(models[:, :, 1:])  # (S, q, m), (S, q, m, d)
        bend = bend - (multipliers[:, :, None] @ models[:, :, 1:])[:, :, 0][..., layout.square]
        if held.any():
            # Where a kink holds, - (kinked + a.p)² changes no solution and bends the model down
            # across it.
            largest = AUGMENT * np.abs(bend).max(axis=(2, 3))[..., None]
            weight = np.where(held, largest, 0.0) / np.maximum((a**2).sum(axis=3), 1e-100)
            bend = bend - (weight[..., None] * a).mT @ a
            slope = slope - ((weight * kinked)[:, :, None] @ a)[:, :, 0]
        lagrangian = slope - (multipliers[:, :, None] @ a)[:, :, 0]
    # at a side of the box
    fixed = (points <= 0) & (lagrangian < 0) | (points >= 1) & (lagrangian > 0) | layout.held
    if fixed.any():
        either = fixed[..., None] | fixed[..., None, :]
        bend = np.where(either, -np.eye(d), bend)
        lagrangian = np.where(fixed, 0.0, lagrangian)
    # Where the model bends upwards a step goes as if it bent down as much: uphill, and no farther
    # than trusted.
    size, axes = np.linalg.eigh(bend)
    curvature = np.abs(size)
    floor = np.maximum(1e-8 * curvature.max(axis=2), 1e-9)
    curvature = np.maximum(curvature, floor[..., None])
    bowl = size[..., -1] >= 0
    if bowl.any():
        # Where the model is not concave: the curvature at which a step is as long as allowed.
        strength = np.sqrt((lagrangian**2).sum(axis=2)) / reach
        curvature = np.where(bowl[..., None], np.maximum(curvature, strength[..., None]), curvature)
    inverse = (axes / curvature[..., None, :]) @ axes.mT  # (-B)^-1
    if fixed.any():
        inverse = np.where(either, 0.0, inverse)
    toward = (inverse @ slope[..., None])[..., 0]
    if m:
        through = a @ inverse
        gram = through @ a.mT
        # kinked value after the free step
        kink_values = kinked + (a @ toward[..., None])[..., 0]
        multipliers = _ascend(multipliers, kink_values, gram, price)
        toward = toward - (multipliers[:, :, None] @ through)[:, :, 0]
    length = np.maximum(np.abs(toward).max(axis=2), 1e-300)
    return toward * np.minimum(1.0, reach / length)[..., None], multipliers


def _ascend(multipliers: Array, kink_values: Array, gram: Array, price: Array) -> Array:
    """Return multipliers (S, q, m) after some sweeps over the coordinates of the dual; converged
    climbs are skipped.
    """
    m = multipliers.shape[2]
    # A kinked part that is flat has a pivot of 0.
    pivot = np.maximum(gram[..., np.arange(m), np.arange(m)], 1e-300)
    if m == 1:
        return np.minimum(np.maximum(kink_values / pivot, 0.0), price)
    multipliers = multipliers.copy()
    residual = kink_values - (gram @ multipliers[..., None])[..., 0]
    moving = np.ones(multipliers.shape[:2], dtype=bool)
    for _ in range(SWEEPS):
        before = multipliers.copy()
        for j in range(m):
            best = multipliers[..., j] + residual[..., j] / pivot[..., j]
            best = np.where(
                moving, np.minimum(np.maximum(best, 0.0), price[..., j]), multipliers[..., j]
            )
            residual -= gram[..., j] * (best - multipliers[..., j])[..., None]
            multipliers[..., j] = best
        moving &= (np.abs(multipliers - before) > SETTLED * np.abs(multipliers)).any(axis=2)
        if not moving.any():
            break
    return multipliers


PEAKS = 8  # peaks of every form of the score in two or more dimensions, half as many in one
# factor for scores with kinks in three or more dimensions, twice that if many kinks may meet
MANY = 4
NEIGHBOURS = 20  # largest number of neighbours of a candidate
ASIDE = 1.5  # a peak this near to a side, in units of the spacing, is moved onto it
FEW = 4  # up to this dimension all combinations of sides are tried
CLOUD = 32  # points around one centre
# points around all observations at each of two distances, and beside them along the axes
AROUND = 1024
# Best observations around which products of probabilities are looked at; cusps are at any.
PROMISING = 16
FRESH = 128  # starts anywhere per round, if many kinks may meet in three or more dimensions
EVERYWHERE = 2**15  # points from which these are taken in turn
BEYOND = 256  # points of a larger box, moved onto the sides of this one
# Distances between starts in units of the spacing: anywhere, within a narrow basin, and near the
# best point.
APART = 0.6
WITHIN = 0.03
CLOSE = 0.1


class Starts:
    """Chooses the starts of climbs from a score at the candidates of a box.

    A candidate that beats its neighbours may stand for a basin. Half of the peaks are those of the
    score; half are those of the score with every kinked part as low as at the neighbours (a
    heuristic), because a maximum on a kink lies between candidates that pay its price. A mesh
    contains its sides. Other candidates do not: with kinks, their peaks are also moved onto sides
    and corners. For a smooth score on such candidates, the best ones that are no neighbours are
    taken, and points beside the best.

    If basins are narrower than the spacing (cusps, products of probabilities, or many kinks in
    three dimensions), a
    found basin is kept: climbs also start where those of the last round ended. If kinks meet, some
    climbs start anywhere, elsewhere in every round. Narrow maxima are looked for around
    observations, and beside them along the axes, because a product of probabilities is often a
    ridge along which one input is free: cusps around all, products around those with the best
    score, which ranks observations by what they lack, in deviations.

    Whole numbers and choices stay as they are in a climb. Further climbs start at the best end with
    another value of one of them (`around`).
    """

    def __init__(self, box: Box, narrow: bool = False) -> None:
        self.box = box
        self.candidates = box.candidates
        self.mesh = box.mesh
        self.spacing = box.spacing
        size, d = self.candidates.shape
        self.count = PEAKS if d > 1 else PEAKS // 2
        self.cusps = box.kernel_name == "matern12"  # at observed points
        self.narrow = narrow or self.cusps
        self.mixed = box if isinstance(box, Mixed) and box.held.any() else None
        # Whether climbs start once more, around the best end, and how they go on.
        self.again = self.cusps or self.mixed is not None
        self.pace = None if self.mixed is None else CHANGED
        self.ended: Array | None = None
        self.round = 0
        if self.mesh is not None:
            return
        from scipy.spatial import cKDTree

        nearest = cKDTree(self.candidates).query(self.candidates, min(3**d, 1 + NEIGHBOURS, size))[
            1
        ]
        self.neighbours = np.ascontiguousarray(nearest[:, 1:].T)
        if d <= FEW:
            every = np.array(list(itertools.product((False, True), repeat=d)))[1:]
        else:
            every = np.eye(d, dtype=bool)
        self.sides = every[:, None]

    def __call__(self, parts: Parts, at: Callable[[Array], Parts], observed: Array) -> Array:
        """Return starts (S, q, d), q the same in every round.

        Args:
            parts: the score at the candidates.
            at: the score at points (S, k, d).
            observed: the observations (S, e, d), around which narrow maxima are looked for.
        """
        # Candidates on both sides of a kink pay for it, and the maximum between them does not: a
        # second form of the score gives every candidate the least kinked value among its
        # neighbours.
        replicates, m = parts.kinked.shape[:2]
        forms = [parts.total()]
        if m:
            lowest = self._around(parts.kinked.reshape(replicates * m, -1), np.minimum).reshape(
                parts.kinked.shape
            )
            forms.append(parts._replace(kinked=lowest).total())
        d = self.candidates.shape[1]
        many = may_kinks_meet(m, d)
        count = self.count * (2 * MANY if many else MANY if m and d > 2 else 1)
        count = min(count, len(self.candidates) - 1)
        choose = self._peaks if m or self.mesh is not None else self._apart
        which = np.concatenate([choose(levels(form), count) for form in forms], axis=1)
        peaks = self.candidates[which]
        if self.mesh is not None:
            return peaks
        starts = [peaks]
        if m:
            starts += self._sides(parts.kinked - lowest, peaks, which, at)
        # Between two observations next to the best one there may be a better one.
        beside = neighbours(peaks[:, 0], BESIDE * self.spacing)
        if not self.narrow or self.cusps:
            starts.append(beside)
        # Near an observation such a score may change within a millionth of a side, where no
        # candidate shows a maximum.
        if self.narrow:
            sides = _on_sides(d)
            centres = observed
            among = AROUND
            if not self.cusps:
                best = rank_values(levels(at(observed).total()))[:, :PROMISING]
                centres = pick(observed, best)
                among = AROUND // 2
            cloud_size = min(CLOUD, max(1, among // centres.shape[1]))
            clouds = [self._clouds(centres, side * self.spacing, cloud_size) for side in (1.5, 0.3)]
            # which bounds the lines in many dimensions
            latest = centres[:, -max(1, among // d) :]
            clouds += [
                self._clouds(peaks, 1.5 * self.spacing),
                _lines(latest, max(1, among // (d * latest.shape[1]))),
            ]
            on_sides = np.broadcast_to(sides, (replicates, *sides.shape))
            clouds += [on_sides] if self.cusps else [on_sides, beside]
            points = np.concatenate([centres, *clouds], axis=1)
            value = at(points).total()
            for distance in (APART, WITHIN):
                starts.append(
                    pick(points, _spread(points, value, 2 * count, distance * self.spacing))
                )
        # Basins of many kinks are too narrow for any candidate to show: chance finds some, and what
        # was found is kept.
        if many:
            self.round += 1
            anywhere = _everywhere(d)[
                np.arange(self.round * FRESH, (self.round + 1) * FRESH) % EVERYWHERE
            ]
            starts.append(np.broadcast_to(anywhere, (replicates, FRESH, d)))
        if self.ended is not None and (many or self.narrow):
            # In place of none an equal start, which does not climb.
            starts.append(np.where(np.isnan(self.ended), peaks[:, :1], self.ended))
        return self.box.snap(np.concatenate(starts, axis=1))

    def around(self, best: Array, at: Callable[[Array], Parts]) -> Array:
        """Return starts (S, q, d) beside the best points (S, d) so far: with one other whole number
        or choice, or, for scores with cusps, the best of three clouds.
        """
        if self.mixed is not None:
            return self.mixed.change_once(best)
        clouds = [self._clouds(best[:, None], side * self.spacing) for side in (2.0, 0.7, 0.2)]
        points = np.concatenate(clouds, axis=1)
        return pick(
            points, _spread(points, at(points).total(), 2 * self.count, CLOSE * self.spacing)
        )

    def _sides(
        self, gains: Array, peaks: Array, which: Indices, at: Callable[[Array], Parts]
    ) -> list[Array]:
        """Return the best of the peaks (S, q, d) moved onto sides and corners, for both forms of
        the score.
        """
        near = np.abs(peaks - 0.5) > 0.5 - ASIDE * self.spacing
        onto = np.where(near | (peaks.shape[2] > 2), np.round(peaks), peaks)
        moved = np.where(self.sides, onto[:, None], peaks[:, None])  # (S, sides, q, d)
        replicates, sides, q, d = moved.shape
        moved_parts = at(moved.reshape(replicates, -1, d))
        gained = np.tile(np.take_along_axis(gains, which[:, None], axis=2), (1, 1, sides))
        aside = (onto != peaks).any(axis=2)
        starts = []
        for form in (
            moved_parts.total(),
            moved_parts._replace(kinked=moved_parts.kinked - gained).total(),
        ):
            scores = levels(form).reshape(replicates, sides, q)
            points = moved.swapaxes(1, 2).reshape(replicates, -1, d)
            best = pick(points, sides * np.arange(q) + scores.argmax(axis=1))
            value = np.where(aside, scores.max(axis=1), -np.inf)
            starts.append(pick(best, rank_values(value)[:, : q // 4]))
        return starts

    def _around(self, values: Array, most: np.ufunc) -> Array:
        """Return the largest (or smallest) of values (S, M) among a candidate and its neighbours,
        (S, M).
        """
        if self.mesh is None:
            result = values
            for neighbour in self.neighbours:
                result = most(result, values[:, neighbour])
            return result
        size = self.mesh.size
        result = values.reshape(len(values), *[size] * self.mesh.d).copy()
        for axis in range(1, 1 + self.mesh.d):
            axis_first = np.moveaxis(result, axis, 1)
            unchanged = axis_first.copy()
            most(axis_first[:, 1:], unchanged[:, :-1], out=axis_first[:, 1:])
            most(axis_first[:, :-1], unchanged[:, 1:], out=axis_first[:, :-1])
        return result.reshape(len(values), -1)

    def _peaks(self, form: Array, count: int) -> Indices:
        """Return the highest peaks of a form of the score (S, M): (S, count), filled up with other
        candidates.
        """
        peak = form >= self._around(form, np.maximum)
        rank = np.where(peak, form, -np.inf)
        indices = smallest(-rank, count)
        return np.take_along_axis(
            indices, rank_values(np.take_along_axis(rank, indices, axis=1)), axis=1
        )

    def _apart(self, form: Array, count: int) -> Indices:
        """Return the best candidates (S, count) of which no two are neighbours."""
        everywhere = np.broadcast_to(self.candidates, (len(form), *self.candidates.shape))
        return _spread(everywhere, form, count, 2 * self.spacing)

    def _clouds(self, centres: Array, side: float, size: int = CLOUD) -> Array:
        """Points (S, k, d) within `side` of the centres, along every axis."""
        replicates, _, d = centres.shape
        around = centres[:, :, None] + side * (2 * sobol(d, CLOUD)[:size] - 1)
        return np.clip(around.reshape(replicates, -1, d), 0.0, 1.0)


@lru_cache(maxsize=4)
def _everywhere(d: int) -> Array:
    return sobol(d, EVERYWHERE)


@lru_cache(maxsize=4)
def _on_sides(d: int) -> Array:
    """Return points on the sides of the unit cube, and its corners if they are few, (k, d)."""
    moved = np.clip(1.5 * sobol(d, BEYOND) - 0.25, 0.0, 1.0)
    boundary = moved[((moved == 0) | (moved == 1)).any(axis=1)]
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=d if d <= FEW else 0))).reshape(
        -1, d
    )
    return np.concatenate([boundary, corners])


def _lines(points: Array, per_axis: int) -> Array:
    """Return points that differ from given ones (S, e, d) in a single coordinate, (S, e d per_axis,
    d).
    """
    replicates, count, d = points.shape
    moved = np.tile(points[:, :, None, None], (1, 1, d, min(per_axis, CLOUD), 1))
    for axis in range(d):
        moved[..., axis, :, axis] = sobol(1, CLOUD)[:per_axis, 0]
    return moved.reshape(replicates, -1, d)


def _spread(points: Array, values: Array, count: int, distance: float) -> Indices:
    """Return the best of points (S, k, d) of which no two are nearer than a distance, (S,
    count).
    """
    scores = levels(values)
    rows = np.arange(len(values))
    indices = np.empty((len(values), count), dtype=np.intp)
    for i in range(count):
        indices[:, i] = scores.argmax(axis=1)
        best = points[rows, indices[:, i]]
        near = np.ones(scores.shape, dtype=bool)
        for axis in range(points.shape[2]):
            near &= np.abs(points[..., axis] - best[:, axis, None]) < distance
        scores[near] = -np.inf
    return indices
