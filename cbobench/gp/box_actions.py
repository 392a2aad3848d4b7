"""Continuous action sets: a box, its fixed candidates, and their coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import signature
from typing import Any, Literal

import numpy as np

from cbobench.gp.actions import Finite
from cbobench.gp.kernels import (
    RIDGE,
    Actions,
    Array,
    Indices,
    Mask,
    Matern,
    SquaredExponential,
    StationaryName,
    smooth_norm,
    stationary,
)
from cbobench.gp.mesh import Mesh, resolving
from cbobench.threads import single_thread

POINTS = 1024  # points at which norms are computed
# Share of the prior variance; SE, lengthscale 0.2: 0.02 in four dimensions, 0.82 in seven; 0.05:
# 0.99 in four.
UNKNOWN = 0.9
# Where known constraints forbid points: batches that are drawn at most, and points of a spread.
MOST_BATCHES = 1000
MOST_SPREAD = 2**18
BISECTIONS = 40
MOST_KEPT = 2**16  # numbers of a Sobol set that is kept


@dataclass(frozen=True)
class Box:
    """All points between two corners. The kernel acts on the unit cube [0, 1]^d, to which the box
    is scaled.

    Args:
        low, high: corners, (d,) each.
        kernel_name: a stationary kernel.
        lengthscale: in units of the sides.
        size: number of candidates at which an acquisition function is first evaluated, unless a
            mesh replaces them.
        meshed: whether a mesh may replace them; not where constraints are known.
        known: of the numbers of points of the box (..., d) to known constraints (..., k), at most 0
            where a point may be played; None without them.
    """

    low: Array
    high: Array
    kernel_name: StationaryName = "se"
    lengthscale: float = 0.2
    size: int = 1024
    meshed: bool = True
    known: Callable[[Array], Array] | None = None

    @property
    def d(self) -> int:
        return len(self.low)

    @property
    def kernel(self) -> SquaredExponential | Matern:
        return stationary(self.kernel_name, self.lengthscale)

    @cached_property
    def mesh(self) -> Mesh | None:
        """A mesh, if the kernel is so smooth that its values on the mesh determine a posterior;
        else None.
        """
        if self.meshed and self.known is None and self.kernel_name == "se":
            return resolving(self.d, self.lengthscale)
        return None

    # What a box of floats has in common with others (see `gp.mixed_actions`) ----------------------

    @property
    def held(self) -> Mask:
        """Coordinates that no climb moves, as they are no floats, (d,)."""
        return np.zeros(self.d, dtype=bool)

    @property
    def width(self) -> int:
        """Number of coordinates that a model sees."""
        return self.d

    @property
    def floats(self) -> Indices:
        """Of the coordinates that a model sees those that are floats."""
        return np.arange(self.d)

    @property
    def firsts(self) -> Indices | None:
        """Of every input the first of the coordinates that a model sees; None if they are the
        same.
        """
        return None

    def numbers(self, points: Array) -> Array:
        """Return those inputs of points (..., d) that are numbers, not choices."""
        return points

    def round(self, points: Array) -> Array:
        """Return points of the box (..., d) with whole numbers and choices rounded."""
        return points

    def embed(self, units: Array) -> Array:
        """Return points of the unit cube (..., d) as a model sees them, (..., width)."""
        return units

    def snap(self, units: Array) -> Array:
        """Return the points of the unit cube (..., d) that stand for the same actions, one for
        each.
        """
        return units

    def spread(self, count: int) -> Array:
        """Return points of the unit cube, at least `count`, (n, d)."""
        return sobol(self.d, count)

    # Candidates -----------------------------------------------------------------------------------

    @cached_property
    def scattered(self) -> Array:
        """The first `size` points of a Sobol sequence in the unit cube that may be played, (at most
        size, d), the same for all seeds.
        """
        points = self.spread(self.size)
        kept = self.keep(points)
        while len(kept) < min(self.size, len(points)) and len(points) < MOST_SPREAD:
            points = self.spread(2 * len(points))
            kept = self.keep(points)
        return kept[: self.size]

    @cached_property
    def candidates(self) -> Array:
        """Candidates in the unit cube, (M, d): the points of the mesh, or scattered ones."""
        if self.mesh is None:
            return self.scattered
        return self.mesh.points

    @property
    def spacing(self) -> float:
        """Distance between neighbouring candidates."""
        if self.mesh is None:
            return float(self.size ** (-1 / self.d))
        return self.mesh.spacing

    def forbids(self, points: Array) -> Mask:
        """Return which points of the box (..., d) a known constraint forbids, (...)."""
        if self.known is None:
            return np.zeros(points.shape[:-1], dtype=bool)
        return np.asarray(~(self.known(self.numbers(points)) <= 0).all(axis=-1))

    def beyond(self, units: Array) -> Mask:
        """Return which points of the unit cube (..., d) a known constraint forbids, (...)."""
        return self.forbids(units if self.known is None else self.scale(units))

    @cached_property
    def wall_units(self) -> Array:
        """The spread of each known constraint over the candidates, (k,)."""
        assert self.known is not None
        spread = self.known(self.numbers(self.scale(self.scattered))).std(axis=0)
        return np.where(spread > 0, spread, 1.0)

    def walls(self, units: Array) -> Array:
        """Return known constraints in units of their spread at points of the unit cube (S, k, d),
        (S, w, k), above 0 where they forbid a point.
        """
        assert self.known is not None
        values = self.known(self.numbers(self.scale(units)))
        return np.moveaxis(values / self.wall_units, -1, 1)

    def keep(self, units: Array) -> Array:
        """Return those of points of the unit cube (n, d) that may be played."""
        return units[~self.beyond(units)]

    def pull_inside(self, units: Array, inside: Array) -> Array:
        """Return points of the unit cube (S, d), those that are forbidden moved towards others that
        are not, (S, d), just far enough.
        """
        low = np.zeros((len(units), 1))
        high = np.ones((len(units), 1))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            is_beyond = self.beyond(inside + middle * (units - inside))[:, None]
            low = np.where(is_beyond, low, middle)
            high = np.where(is_beyond, middle, high)
        is_beyond = self.beyond(units)[:, None]
        return np.where(is_beyond, inside + low * (units - inside), units)

    def unit(self, points: Array) -> Array:
        """Scale points of the box (..., d) to the unit cube."""
        return (points - self.low) / (self.high - self.low)

    def scale(self, units: Array) -> Array:
        """Scale points of the unit cube (..., d) to the box, never outside it."""
        return np.clip(self.low + units * (self.high - self.low), self.low, self.high)

    @cached_property
    def grid(self) -> Finite:
        """The scattered points as a finite action set, on which sample paths are maximised."""
        return finite(self.scale(self.scattered), self)

    def norm(self, formula: Callable[[Array], Array]) -> Array:
        """Return regularised RKHS norms of functions given by a formula, from points (n, d) of the
        box to values (n, p): (p,).

        A formula need not be in the kernel's space (no polynomial is in an SE kernel's), where its
        norm is infinite. So this is the norm of the function h of the space that minimises, over
        the first 1,024 points of a Sobol sequence,

            Σ (formula - h)² + 1e-4 |h|_k²,

        whatever `size` is (see `smooth_norm`). In two dimensions and from lengthscale 0.05 on, more
        points would change it by a few per cent. If the points leave much of the prior variance
        between them (short lengthscales, many dimensions), it depends on these points; beyond the
        share `UNKNOWN`, the norm is infinite.
        """
        values = formula(self.scale(sobol(self.d, POINTS))).T
        # A copy, because the cache would hand a changed array to the next caller.
        return _norms(self.kernel, self.d, values.shape, values.tobytes()).copy()


ActionSet = Finite | Box


@lru_cache(maxsize=64)
@single_thread()
def _norms(
    kernel: SquaredExponential | Matern, d: int, shape: tuple[int, int], values: bytes
) -> Array:
    """See `Box.norm`; values at the points as the bytes of an array (p, POINTS)."""
    # At the points between it is seen how much of the prior variance the others leave.
    points = sobol(d, POINTS)
    between = sobol(d, 2 * POINTS)[POINTS::8]
    covariance = kernel(points, points)
    cross = kernel(points, between)
    explained = (cross * np.linalg.solve(covariance + RIDGE * np.eye(POINTS), cross)).sum(axis=0)
    if (1 - explained).mean() > UNKNOWN:
        return np.full(shape[0], np.inf)
    return smooth_norm(covariance, np.frombuffer(values).reshape(shape))


def finite(points: Array, box: Box) -> Finite:
    """Return points of a box (n, d) as a finite action set with the box's kernel."""
    units = box.embed(box.unit(points))
    actions = Finite.at(units, box.kernel, box.kernel_name, points=points)
    actions.firsts = box.firsts
    return actions


def sobol(d: int, size: int) -> Array:
    """Return the first `size` points of a Sobol sequence in [0, 1)^d, shifted by half a step so
    that none is a corner.

    One fixed set, the same for every seed and method, which cannot be written to: small sets are
    kept, because a round asks for the same ones several times.
    """
    if d * size > MOST_KEPT:
        return _draw_sobol.__wrapped__(d, size)
    return _draw_sobol(d, size)


@lru_cache(maxsize=32)
def _draw_sobol(d: int, size: int) -> Array:
    from scipy.stats import qmc

    power = int(np.ceil(np.log2(size)))
    points: Array = qmc.Sobol(d, scramble=False).random_base2(power)[:size] + 0.5 / 2**power
    points.setflags(write=False)
    return points


def scrambled_sobol(d: int, generator: np.random.Generator) -> Any:
    """Return SciPy's Sobol sequence in [0, 1)^d, scrambled by a generator (Owen 1998)."""
    from scipy.stats import qmc

    newer = "rng" in signature(qmc.Sobol).parameters  # SciPy 1.15 renames `seed`
    return qmc.Sobol(d, scramble=True, **{"rng" if newer else "seed": generator})


DesignName = Literal["sobol", "random"]


def design(
    actions: ActionSet, name: DesignName, count: int, generators: Sequence[np.random.Generator]
) -> Actions:
    """Return the first `count` actions of S replicates: indices (count, S) of a finite set, or
    points (count, S, d) of a box.

    `sobol`: on a box the first points of a Sobol sequence that each generator scrambles anew; on a
    finite set the actions nearest to them; random ones without coordinates. `random`: uniform. Of a
    finite set none comes twice before all have come. Designs of different seeds are independent.
    """
    return np.stack(
        [_draw_design(actions, name, count, generator) for generator in generators], axis=1
    )


def _draw_design(
    actions: ActionSet, name: DesignName, count: int, generator: np.random.Generator
) -> Actions:
    if isinstance(actions, Finite) and (name == "random" or actions.points is None):
        return np.resize(generator.permutation(actions.n), count)
    sequence = scrambled_sobol(actions.d, generator) if name == "sobol" else None

    def draw(size: int) -> Array:
        if sequence is None:
            return generator.random((size, actions.d))
        return np.asarray(sequence.random(size))

    if isinstance(actions, Box) and actions.known is not None:
        return actions.scale(draw_allowed(actions, draw, count))
    # In whole powers of two, as which the sequence is balanced.
    size = count if sequence is None else 1 << int(np.ceil(np.log2(count)))
    unit = draw(size)[:count]
    if isinstance(actions, Box):
        return actions.scale(unit)
    return nearest(actions.units, unit)


def draw_allowed(box: Box, draw: Callable[[int], Array], count: int) -> Array:
    """Return the first `count` points of the cube that known constraints allow, (count, d), of
    draws (size, d); candidates follow where few are.
    """
    kept = np.empty((0, box.d))
    for _ in range(MOST_BATCHES):
        kept = np.concatenate([kept, box.keep(draw(1 << int(np.ceil(np.log2(count)))))])
        if len(kept) >= count:
            return kept[:count]
    return np.resize(np.concatenate([kept, box.scattered]), (count, box.d))


def nearest(points: Array, targets: Array) -> Indices:
    """Return the nearest of points (n, d) to each target (k, d) that no earlier target has taken,
    (k,); once all are taken, all are free again.
    """
    free = np.ones(len(points), dtype=bool)
    indices = np.empty(len(targets), dtype=np.intp)
    for i, target in enumerate(targets):
        if i % len(points) == 0:
            free[:] = True
        indices[i] = np.where(free, ((points - target) ** 2).sum(axis=1), np.inf).argmin()
        free[indices[i]] = False
    return indices
