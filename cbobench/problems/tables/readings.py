"""Problems from tables of readings: rows per arm, a mean vector with a covariance, or pairs of
reward and constraint.

With rows, f is the mean of the rows, the kernel their empirical correlation (the covariance of
z-scored columns), and a round's noise is a row drawn at random, so one reading gives both the
reward and the constraint value; the constraint is a threshold, g = -f + h. With pairs every row
holds the reward and the constraint value of all actions at once: f and g are the means of the rows,
and f and g of a round belong to the same day of a simulation, or to the same repetition of a
measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array, StationaryName, smooth_norm, stationary
from cbobench.params import param, state
from cbobench.problems.base import Channel, Drawn, Instances, Objective, Problem
from cbobench.problems.channels import AdditiveNoise, PairedRows, lengthscale_of
from cbobench.problems.instances import Generators
from cbobench.rng import Draws, Streams, standard_normal


@dataclass(frozen=True)
class Table:
    """What a tabular problem is made of.

    Args:
        mean: f, (n,).
        covariance: kernel matrix with a diagonal of at most 1, (n, n).
        rows: readings (rows, n) whose residuals are the noise, or None for Gaussian noise.
        names: a name per arm.
        points: coordinates (n, d) or None.
    """

    mean: Array
    covariance: Array
    rows: Array | None
    names: tuple[str, ...]
    points: Array | None = None


def correlation(rows: Array, label: str) -> Array:
    """Covariance of the z-scored columns of `rows`, (n, n).

    Raises:
        Misuse: fewer than two rows, or a column without spread.
    """
    if len(rows) < 2:
        raise Misuse(f"{label} has {len(rows)} row(s); an empirical covariance needs at least 2")
    # Relative: equal readings differ from their mean by rounding.
    flat = np.flatnonzero(rows.std(axis=0) <= 1e-12 * np.abs(rows).max(axis=0))
    if len(flat):
        raise Misuse(f"{label}: column {flat[0]} never changes, so it has no correlation; drop it")
    matrix = np.atleast_2d(np.corrcoef(rows, rowvar=False))
    np.fill_diagonal(matrix, 1.0)  # to the last bit, so that equal prior variances are ties
    return matrix


Normalise = Literal["z-score", "min-max", "max", "common"]


def normalised_covariance(rows: Array, how: Normalise, label: str, unit: bool = False) -> Array:
    """Covariance of the normalised columns of `rows`, (n, n).

    Args:
        how: `z-score`: each column less its mean, over its own deviation (all variances are 1).
            `min-max`: each column from 0 to 1. `max`: each column over its largest value. `common`:
            all columns over the largest value of all. Only the first gives all arms one prior
            variance: under the others, what varies most is tried first.
        unit: whether the matrix is divided by its largest entry, so that the largest prior variance
            is 1.

    Raises:
        Misuse: as `correlation`, or a largest value that is not positive.
    """
    spread = correlation(rows, label)
    if how == "z-score":
        return spread
    highest = rows.max(axis=0)
    # A largest value that is divided by must not turn the sign.
    lacking = np.flatnonzero(highest <= 0)
    if how != "min-max" and len(lacking):
        raise Misuse(
            f"{label}: column {lacking[0]} has no positive value, so normalise: {how} has no "
            "meaning"
        )
    scale = {"min-max": highest - rows.min(axis=0), "max": highest, "common": highest.max()}[how]
    matrix = np.atleast_2d(np.cov(rows / scale, rowvar=False))
    if unit:
        return matrix / matrix.max()
    return matrix


class TabularProblem(Problem):
    """Arms of a `Table` under a threshold; whoever prepares it gives both to `take`, after R and
    the seed size.
    """

    seed_independent = True
    kernel_is_known = True  # the covariance of its readings, or a given one
    constraints = 1
    seed_size: int
    R: float | None = None

    def take(self, table: Table, level: float) -> None:
        """Play this table with h = `level` in g = -f + h, in the table's units.

        Raises:
            Misuse: no arm reaches the threshold.
        """
        self.table = table
        self.level = level
        best = float(table.mean.max())
        # The best arm has the least g = -f + h.
        if self.settle(np.array(level - best)) > 0:
            raise Misuse(
                f"no feasible action: the best mean is {best:.6g}, under the threshold {level:.6g}"
            )

    @cached_property
    def actions(self) -> Finite:
        return Finite(self.table.covariance, self.table.points, "given", self.table.names)

    @property
    def noise(self) -> float:
        """R: the given number, or the largest absolute residual of the rows (as the papers set
        it).
        """
        if self.R is not None:
            return self.R
        assert self.table.rows is not None
        # A bounded variable is sub-Gaussian with its bound.
        return float(np.abs(self.table.rows - self.table.mean).max())

    def draw(self, generators: Generators) -> Instances:
        functions, norm = self._functions
        return self.repeat(functions, norm, np.full(2, self.noise), self.seed_size, generators)

    @cached_property
    def _functions(self) -> tuple[Array, Array]:
        """(f, g), (2, n), and their norms (2,)."""
        functions = np.stack([self.table.mean, self.level - self.table.mean])
        return functions, self.actions.norm(functions)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        if self.table.rows is None:
            # Without rows all that is known of the noise is its constant R.
            draws = Draws(streams.role("noise"), standard_normal, (2,))
            return AdditiveNoise(instances, instances.noise, draws)
        # The constraint is told by the same reading as the reward.
        return PairedRows(
            np.stack([self.table.rows, self.level - self.table.rows], axis=1), streams
        )


def unit_grid(*axes: Sequence[float]) -> Array:
    """All combinations of axis values, the last axis fastest, each axis scaled to [0, 1]: (n,
    d).
    """
    # Lengthscales are in units of the sides.
    scaled = [(np.asarray(axis) - min(axis)) / (max(axis) - min(axis)) for axis in axes]
    return np.stack([part.ravel() for part in np.meshgrid(*scaled, indexing="ij")], axis=1)


@dataclass(frozen=True)
class Readings:
    """What a problem of paired readings is made of.

    Attributes:
        rows: readings (rows, 2, n) of (f, g).
        points: coordinates in the unit cube, on which the kernel acts, (n, d).
        names: a name per action.
    """

    rows: Array
    points: Array
    names: tuple[str, ...]

    @cached_property
    def mean(self) -> Array:
        """(f, g), (2, n)."""
        return self.rows.mean(axis=0)


@dataclass(kw_only=True)
class ReadingsProblem(Problem):
    """Base of problems of paired readings. Subclasses set `readings` in `prepare`, and then call
    `check`.
    """

    kernel: StationaryName = param(
        "se", "kernel of the learners' models, on coordinates scaled to the unit cube"
    )
    lengthscale: float = lengthscale_of(0.3)
    scaled: bool = param(
        False, "shift f to mean 0, divide f and g by their standard deviations over the actions"
    )
    seed_size: int = param(
        5, "how many random feasible actions a safe method may start from", at_least=1
    )

    seed_independent = True
    constraints = 1
    readings: Readings = state()

    def check(self, limit: float, unit: str) -> None:
        """Raises `Misuse` where no action keeps the limit."""
        lowest = float(self.settle(self.readings.mean[1]).min())
        if lowest > 0:
            raise Misuse(
                f"limit is {limit:g} {unit}, but no action keeps it; the best needs "
                f"{limit + lowest:.4g} {unit}"
            )

    @cached_property
    def rows(self) -> Array:
        """The readings in the units that are played, (rows, 2, n)."""
        if not self.scaled:
            return self.readings.rows
        mean = self.readings.mean
        # g is not shifted, since 0 is its limit.
        shift = np.array([[mean[0].mean()], [0.0]])
        return (self.readings.rows - shift) / mean.std(axis=1, keepdims=True)

    def describe_objective(self) -> Objective:
        f = self.readings.mean[0]
        if self.scaled:
            return ("f", float(f.mean()), float(f.std()))
        return super().describe_objective()

    def note(self) -> str:
        if self.scaled:
            return "f counts from its mean; f and g are in standard deviations over the actions"
        return ""

    @cached_property
    def actions(self) -> Finite:
        points = self.readings.points
        return Finite.at(
            points, stationary(self.kernel, self.lengthscale), self.kernel, self.readings.names
        )

    @cached_property
    def _facts(self) -> tuple[Array, Array, Array]:
        """(f, g) (2, n), their regularised norms (2,), and the largest residual of each (2,): see
        `TabularProblem`.
        """
        # Means of readings need not lie in the kernel's space, hence the regularised norm.
        mean = self.rows.mean(axis=0)
        return (
            mean,
            smooth_norm(self.actions.covariance, mean),
            np.abs(self.rows - mean).max(axis=(0, 2)),
        )

    def draw(self, generators: Generators) -> Instances:
        mean, norm, residual = self._facts
        return self.repeat(mean, norm, residual, self.seed_size, generators)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        return PairedRows(self.rows, streams)
