"""Where to climb from on a box: peaks among fixed candidates, and on its sides."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.box import Box, sobol
from cbobench.gp.climbs import BESIDE, beside, meeting, pick, ranked
from cbobench.gp.kernels import Array
from cbobench.gp.parts import Parts

PEAKS = 8  # of every form of the score in two dimensions and more, half as many in one
MANY = 4  # times as many where scores have kinks in three dimensions or more, twice that where many may meet
NEIGHBOURS = 20  # of a candidate, at most
ASIDE = 1.5  # so near to a side, in units of the spacing, a peak is moved onto it
FEW = 4  # dimensions in which all combinations of sides are looked at
CLOUD = 32  # points around one centre
FRESH = 128  # starts per round anywhere, where many kinks may meet in three dimensions or more
EVERYWHERE = 2**15  # points of which these are taken in turn
BEYOND = 256  # points of a larger box, moved onto the sides of this one
APART, CLOSE = 0.6, 0.1  # units of the spacing between starts that clouds give: anywhere, and near the best point


class Starts:
    """Where to climb from, given a score at the candidates of a box.

    A candidate that beats its neighbours may stand for a basin. Half of the peaks are those of the score; half those of
    the score with every kinked part as low as at the neighbours (a heuristic), because a maximum on a kink lies between
    candidates that pay its price. A mesh has its sides among its points. Other candidates have not: where there are
    kinks, their peaks are moved onto sides and corners as well; smooth scores are climbed there. Of a smooth score on
    such candidates the best ones are taken that are no neighbours, and points beside the best.

    Where basins are narrower than candidates show (cusps, or many kinks in three dimensions), a basin once found is
    not lost: climbs begin where those of the last round ended, too. Where kinks meet, some begin anywhere, elsewhere in
    every round.
    """

    def __init__(self, box: Box) -> None:
        self.candidates, self.mesh, self.spacing = box.candidates, box.mesh, box.spacing
        size, d = self.candidates.shape
        self.count = PEAKS if d > 1 else PEAKS // 2
        self.rough = box.kernel_name == "matern12"  # cusps at observed points: basins smaller than the candidates show
        self.ended: Array | None = None
        self.round = 0
        if self.mesh is not None:
            return
        from scipy.spatial import cKDTree

        nearest = cKDTree(self.candidates).query(self.candidates, min(3**d, 1 + NEIGHBOURS, size))[1]
        self.neighbours = np.ascontiguousarray(nearest[:, 1:].T)
        every = np.array(list(itertools.product((False, True), repeat=d)))[1:] if d <= FEW else np.eye(d, dtype=bool)
        self.sides = every[:, None]

    def __call__(self, parts: Parts, at: Callable[[Array], Parts], observed: Array) -> Array:
        """Starts (S, q, d), q the same in every round.

        Args:
            parts: the score at the candidates.
            at: the score at points (S, k, d).
            observed: points (S, e, d) that are tried as well where the score has cusps.
        """
        replicates, m = parts.kinked.shape[:2]
        forms = [parts.total()]
        if m:
            lowest = self._around(parts.kinked.reshape(replicates * m, -1), np.minimum).reshape(parts.kinked.shape)
            forms.append(parts._replace(kinked=lowest).total())
        d = self.candidates.shape[1]
        many = meeting(m, d)
        count = self.count * (2 * MANY if many else MANY if m and d > 2 else 1)
        count = min(count, len(self.candidates) - 1)
        choose = self._peaks if m or self.mesh is not None else self._apart
        which = np.concatenate([choose(form, count) for form in forms], axis=1)
        peaks = self.candidates[which]
        if self.mesh is not None:
            return peaks
        found = [peaks]
        if m:
            found += self._sides(parts.kinked - lowest, peaks, which, at)
        # Between two observations next to the best one there may be a better one.
        found.append(beside(peaks[:, 0], BESIDE * self.spacing))
        if self.rough:
            sides = _on_sides(d)
            everywhere = np.broadcast_to(sides, (replicates, *sides.shape))
            tried = np.concatenate([observed, self._clouds(peaks, 1.5 * self.spacing), everywhere], axis=1)
            found.append(pick(tried, _spread(tried, at(tried).total(), 4 * count, APART * self.spacing)))
        if many:
            self.round += 1
            anywhere = _everywhere(d)[np.arange(self.round * FRESH, (self.round + 1) * FRESH) % EVERYWHERE]
            found.append(np.broadcast_to(anywhere, (replicates, FRESH, d)))
        if self.ended is not None and (many or self.rough):
            found.append(self.ended)
        return np.concatenate(found, axis=1)

    def around(self, best: Array, at: Callable[[Array], Parts]) -> Array:
        """Where scores have cusps: the best of three clouds around the best points (S, d) so far, (S, q, d)."""
        tried = np.concatenate([self._clouds(best[:, None], side * self.spacing) for side in (2.0, 0.7, 0.2)], axis=1)
        return pick(tried, _spread(tried, at(tried).total(), 2 * self.count, CLOSE * self.spacing))

    def _sides(self, gains: Array, peaks: Array, which: NDArray[np.intp], at: Callable[[Array], Parts]) -> list[Array]:
        """The best of the peaks (S, q, d) moved onto sides and corners, for both forms of the score."""
        near = np.abs(peaks - 0.5) > 0.5 - ASIDE * self.spacing
        onto = np.where(near | (peaks.shape[2] > 2), np.round(peaks), peaks)
        moved = np.where(self.sides, onto[:, None], peaks[:, None])  # (S, sides, q, d)
        replicates, sides, q, d = moved.shape
        there = at(moved.reshape(replicates, -1, d))
        gained = np.tile(np.take_along_axis(gains, which[:, None], axis=2), (1, 1, sides))
        aside = (onto != peaks).any(axis=2)
        found = []
        for form in (there.total(), there._replace(kinked=there.kinked - gained).total()):
            each = form.reshape(replicates, sides, q)
            every = moved.swapaxes(1, 2).reshape(replicates, -1, d)
            best = pick(every, sides * np.arange(q) + each.argmax(axis=1))
            value = np.where(aside, each.max(axis=1), -np.inf)
            found.append(pick(best, ranked(value)[:, : q // 4]))
        return found

    def _around(self, values: Array, most: np.ufunc) -> Array:
        """The largest (or smallest) of values (S, M) among a candidate and its neighbours, (S, M)."""
        if self.mesh is None:
            result = values
            for neighbour in self.neighbours:
                result = most(result, values[:, neighbour])
            return result
        size = self.mesh.size
        result = values.reshape(len(values), *[size] * self.mesh.d).copy()
        for axis in range(1, 1 + self.mesh.d):
            here = np.moveaxis(result, axis, 1)
            before = here.copy()
            most(here[:, 1:], before[:, :-1], out=here[:, 1:])
            most(here[:, :-1], before[:, 1:], out=here[:, :-1])
        return result.reshape(len(values), -1)

    def _peaks(self, form: Array, count: int) -> NDArray[np.intp]:
        """The highest peaks of a form of the score (S, M): (S, count); where there are fewer, other candidates."""
        peak = form >= self._around(form, np.maximum)
        rank = np.where(peak, form, -np.inf)
        some = np.argpartition(-rank, count, axis=1)[:, :count]
        return np.take_along_axis(some, ranked(np.take_along_axis(rank, some, axis=1)), axis=1)

    def _apart(self, form: Array, count: int) -> NDArray[np.intp]:
        """The best candidates (S, count) of which no two are neighbours."""
        everywhere = np.broadcast_to(self.candidates, (len(form), *self.candidates.shape))
        return _spread(everywhere, form, count, 2 * self.spacing)

    def _clouds(self, centres: Array, side: float) -> Array:
        """Points (S, k, d) within `side` of the centres, along every axis."""
        replicates, _, d = centres.shape
        around = centres[:, :, None] + side * (2 * sobol(d, CLOUD) - 1)
        return np.clip(around.reshape(replicates, -1, d), 0.0, 1.0)


@lru_cache(maxsize=4)
def _everywhere(d: int) -> Array:
    return sobol(d, EVERYWHERE)


@lru_cache(maxsize=4)
def _on_sides(d: int) -> Array:
    """Points on the sides of the unit cube, and its corners where they are few, (k, d)."""
    moved = np.clip(1.5 * sobol(d, BEYOND) - 0.25, 0.0, 1.0)
    some = moved[((moved == 0) | (moved == 1)).any(axis=1)]
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=d if d <= FEW else 0))).reshape(-1, d)
    return np.concatenate([some, corners])


def _spread(points: Array, values: Array, count: int, apart: float) -> NDArray[np.intp]:
    """Which of points (S, k, d) are the best of which no two are nearer to each other, (S, count)."""
    left, rows, some = values.copy(), np.arange(len(values)), np.empty((len(values), count), dtype=np.intp)
    for i in range(count):
        some[:, i] = left.argmax(axis=1)
        best, near = points[rows, some[:, i]], np.ones(left.shape, dtype=bool)
        for axis in range(points.shape[2]):
            near &= np.abs(points[..., axis] - best[:, axis, None]) < apart
        left[near] = -np.inf
    return some
