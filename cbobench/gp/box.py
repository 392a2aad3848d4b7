"""Continuous action sets: a box, its fixed candidates, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array, Matern, SquaredExponential, StationaryName, smooth_norm, stationary


@dataclass(frozen=True)
class Box:
    """All points between two corners. The kernel acts on the unit cube [0, 1]^d, onto which the box is scaled.

    Args:
        low, high: corners, (d,) each.
        kernel_name: a stationary kernel.
        lengthscale: in units of the sides.
        size: M, how many candidates an acquisition function is first evaluated at.
    """

    low: Array
    high: Array
    kernel_name: StationaryName = "se"
    lengthscale: float = 0.2
    size: int = 1024

    @property
    def d(self) -> int:
        return len(self.low)

    @property
    def kernel(self) -> SquaredExponential | Matern:
        return stationary(self.kernel_name, self.lengthscale)

    @cached_property
    def candidates(self) -> Array:
        """The first M points of a Sobol sequence, shifted off the corner, in the unit cube: (M, d)."""
        return sobol(self.d, self.size)

    def unit(self, points: Array) -> Array:
        """Points of the box (..., d) in the unit cube."""
        return np.asarray((points - self.low) / (self.high - self.low))

    def scale(self, units: Array) -> Array:
        """Points of the unit cube (..., d) in the box, never outside it."""
        return np.clip(self.low + units * (self.high - self.low), self.low, self.high)

    @cached_property
    def grid(self) -> Finite:
        """The candidates as a finite action set: where sample paths are maximised."""
        return finite(self.scale(self.candidates), self)

    def norm(self, values: Array) -> Array:
        """RKHS norms of functions given by their values at the candidates, (..., M) to (...): see `smooth_norm`."""
        return smooth_norm(self.kernel(self.candidates, self.candidates), values)


def finite(points: Array, box: Box) -> Finite:
    """Points of a box (n, d) as a finite action set with the box's kernel."""
    units = box.unit(points)
    return Finite(box.kernel(units, units), points, box.kernel_name)


def sobol(d: int, size: int) -> Array:
    """The first `size` points of a Sobol sequence in [0, 1)^d, shifted by half a step so that none is a corner."""
    from scipy.stats import qmc

    power = int(np.ceil(np.log2(size)))
    return np.asarray(qmc.Sobol(d, scramble=False).random_base2(power)[:size] + 0.5 / 2**power)
