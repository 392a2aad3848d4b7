"""Problems from paired readings: every row holds the reward and the constraint value of all actions at once.

f and g are the means of the rows. A round's noise is one row drawn at random, so that f and g of a round belong to
the same day of a simulation, or to the same repetition of a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array, StationaryName, smooth_norm, stationary
from cbobench.params import param, state
from cbobench.problems.base import Channel, Drawn, Instances, Problem, choose_seed_set
from cbobench.problems.channels import PairedRows
from cbobench.rng import Streams


def unit_grid(*axes: Sequence[float]) -> Array:
    """All combinations of axis values, the last axis fastest, each axis scaled to [0, 1]: (n, d)."""
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
        return np.asarray(self.rows.mean(axis=0))


@dataclass(kw_only=True)
class ReadingsProblem(Problem):
    """Base of problems of paired readings. Subclasses set `readings` in `prepare`, and then call `check`."""

    kernel: StationaryName = param("se", "kernel of the learners' models, on coordinates scaled to the unit cube")
    lengthscale: float = param(0.3, "its lengthscale, in units of the sides", at_least=1e-4, at_most=1e4)
    scaled: bool = param(False, "shift f to mean 0, divide f and g by their standard deviations over the actions")
    seed_size: int = param(5, "how many random feasible actions a safe method may start from", at_least=1)

    readings: Readings = state()

    def check(self, limit: float, unit: str) -> None:
        """Raises `Misuse` where no action keeps the limit."""
        lowest = float(self.settle(self.readings.mean[1]).min())
        if lowest > 0:
            raise Misuse(
                f"limit is {limit:g} {unit}, but no action keeps it; the best needs {limit + lowest:.4g} {unit}"
            )

    @cached_property
    def rows(self) -> Array:
        """The readings in the units that are played, (rows, 2, n)."""
        if not self.scaled:
            return self.readings.rows
        mean = self.readings.mean
        shift = np.array([[mean[0].mean()], [0.0]])
        return np.asarray((self.readings.rows - shift) / mean.std(axis=1, keepdims=True))

    @cached_property
    def actions(self) -> Finite:
        points = self.readings.points
        return Finite.at(points, stationary(self.kernel, self.lengthscale), self.kernel, self.readings.names)

    @property
    def constraints(self) -> int:
        return 1

    def known_instance(self) -> Drawn:
        return self.draw([np.random.default_rng(0)])

    @cached_property
    def _facts(self) -> tuple[Array, Array, Array]:
        """(f, g) (2, n), their regularised norms (2,), and the largest residual of either (2,), as in `tabular`."""
        mean = np.asarray(self.rows.mean(axis=0))
        return mean, smooth_norm(self.actions.covariance, mean), np.abs(self.rows - mean).max(axis=(0, 2))

    def draw(self, generators: Sequence[np.random.Generator]) -> Instances:
        replicates = len(generators)
        mean, norm, residual = self._facts
        f, g = np.tile(mean[0], (replicates, 1)), np.tile(mean[1], (replicates, 1, 1))
        seeds = choose_seed_set(self.settle(g), self.seed_size, generators)
        redraws = np.zeros(replicates, dtype=np.intp)
        return Instances(f, g, np.tile(norm, (replicates, 1)), np.tile(residual, (replicates, 1)), seeds, redraws)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        return PairedRows(self.rows, streams)
