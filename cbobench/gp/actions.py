"""Action sets. A finite one is n actions with a covariance, with or without coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array, distances, features


@dataclass(frozen=True)
class Finite:
    """n actions.

    Args:
        covariance: k(x, x') of every pair, shape (n, n).
        points: coordinates, shape (n, d), or None for actions that have none (sensors, stocks).
        kernel_name: what the covariance is, for closed-form rates of the information gain ("given" has none).
        names: a name per action, for figures and tables.
    """

    covariance: Array
    points: Array | None = None
    kernel_name: str = "given"
    names: tuple[str, ...] | None = None

    @property
    def n(self) -> int:
        return len(self.covariance)

    @cached_property
    def features(self) -> Array:
        """Phi (n, r), Phi Phi^T = covariance."""
        return features(self.covariance)

    @cached_property
    def input_metric(self) -> Array | None:
        """Euclidean distances (n, n), or None without coordinates."""
        return None if self.points is None else distances(self.points, self.points)

    @cached_property
    def kernel_metric(self) -> Array:
        """d_k(x, x') = sqrt(k(x,x) + k(x',x') - 2 k(x,x')), shape (n, n): |g(x) - g(x')| <= |g|_k d_k(x, x')."""
        variance = self.covariance.diagonal()
        return np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * self.covariance, 0.0))

    def norm(self, values: Array) -> Array:
        """RKHS norms of functions given by their values, shape (..., n) to (...).

        Least squares in feature space; values outside the features' span (such as a constant under an SE kernel of
        numerical rank 19) are approximated to about 1e-7, so this is the norm of a nearby function.
        """
        weights, *_ = np.linalg.lstsq(self.features, values.reshape(-1, self.n).T, rcond=None)
        return np.asarray(np.linalg.norm(weights, axis=0).reshape(values.shape[:-1]))


def break_ties(score: Array, coin: NDArray[np.float64]) -> NDArray[np.intp]:
    """The best action of every replicate, ties broken at random.

    Args:
        score: (S, n).
        coin: a uniform draw per replicate, (S,); it picks among equally good actions.

    Raises:
        CellFailure: a score is not a number.

    A stationary prior makes round 1 a total tie, and truncation makes more of them: a plain argmax would
    always give the lowest index a free ride.
    """
    replicates, n = score.shape
    rows = n * np.arange(replicates)
    best = score.argmax(axis=1)
    tied = score == score.take(rows + best)[:, None]
    count = np.count_nonzero(tied)
    if count == replicates:
        return best
    if count < replicates:  # not a number is not equal to itself
        raise CellFailure("the score of some action is not a number")
    hits = np.flatnonzero(tied)
    per_row = np.bincount(hits // n, minlength=replicates)
    chosen = per_row.cumsum() - per_row + (coin * per_row).astype(np.intp)
    return np.asarray(hits[chosen] - rows)
