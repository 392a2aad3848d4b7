"""Scores with kinks, in the forms that a maximiser climbs.

The maximum of a constrained bandit's score on a box is usually on a kink. So a score is written in
parts: `total` is its value, and `kinks` its form smooth - Σ_j price_j [kinked_j]⁺ (see
`cbobench.gp.maximise`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array


class Score(Protocol):
    """A score at k candidates in any form."""

    def total(self) -> Array:
        """The score, (S, k)."""

    def kinks(self) -> Parts:
        """Return the same up to rounding, as smooth and kinked parts."""


class Parts(NamedTuple):
    """smooth - Σ_j price_j [kinked_j]⁺: smooth (S, k), kinked (S, m, k) and its price (S, m); m may
    be 0.
    """

    smooth: Array
    kinked: Array
    price: Array

    @classmethod
    def of(cls, smooth: Array) -> Parts:
        """Return a score without kinks."""
        return cls(smooth, np.empty((len(smooth), 0, smooth.shape[1])), np.empty((len(smooth), 0)))

    def total(self) -> Array:
        excess, price = np.fmax(self.kinked, 0.0), self.price[:, :, None]
        # An infinite price times no excess is 0, and not a NaN; a price that is NaN stays one.
        penalty = np.where((excess > 0) | np.isnan(price), price, 0.0)
        penalty *= excess
        # A sum of one is the same to the last bit, and takes longer than all before it.
        of_all = penalty[:, 0] if penalty.shape[1] == 1 else np.add.reduce(penalty, axis=1)
        return self.smooth - of_all

    def kinks(self) -> Parts:
        return self


class Truncated(NamedTuple):
    """Proj_[-B, B] f - Σ_j price_j Proj_[-G_j, G_j] g_j, for prices >= 0.

    Its total keeps ties: wherever f is above B it equals B to the last bit, unlike a smooth part
    minus a kink.

    Attributes:
        f, bound: (S, k), and B (S, 1).
        costs: price (S, m), g (S, m, k) and its bounds G (S, m, 1); None without costs.
    """

    f: Array
    bound: Array
    costs: tuple[Array, Array, Array] | None = None

    def minus(self, price: Array, g: Array, bound: Array) -> Truncated:
        """Return the score with costs."""
        return Truncated(self.f, self.bound, (price, g, bound))

    def total(self) -> Array:
        z = truncate(self.f, self.bound)
        if self.costs is not None:
            price, g, bound = self.costs
            g = truncate(g, bound)
            g *= price[:, :, None]
            for j in range(g.shape[1]):
                z -= g[:, j]
        return z

    def kinks(self) -> Parts:
        """Truncating f from above and g from below makes kinks on which a maximum may lie."""
        smooth, above = np.maximum(self.f, -self.bound), self.f[:, None] - self.bound[:, :, None]
        unit_price = np.ones_like(self.bound)
        if self.costs is None:
            return Parts(smooth, above, unit_price)
        price, g, bound = self.costs
        smooth = smooth - (price[:, :, None] * np.minimum(g, bound)).sum(axis=1)
        return Parts(
            smooth,
            np.concatenate([above, -g - bound], axis=1),
            np.concatenate([unit_price, price], axis=1),
        )


def truncate(values: Array, bound: Array) -> Array:
    """Return Proj_[-bound, bound] of every value, as a fresh array."""
    inside = np.minimum(values, bound)
    return np.maximum(inside, -bound, out=inside)


def check_shape(score: Array, shape: tuple[int, ...]) -> Array:
    """Refuse a score that lacks a value for some candidate."""
    if np.shape(score) != shape:
        raise CellFailure(f"the score has shape {np.shape(score)}; it must be (S, k) = {shape}")
    return score
