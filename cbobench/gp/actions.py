"""Action sets. A finite one is n actions with a covariance, with or without coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array, Root, distances


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

    @property
    def d(self) -> int:
        """Input dimension; 0 without coordinates."""
        return 0 if self.points is None else self.points.shape[1]

    @cached_property
    def _root(self) -> Root:
        return Root(self.covariance)

    @property
    def features(self) -> Array:
        """Phi (n, r), Phi Phi^T = covariance."""
        return self._root.features

    def rank_is_at_most(self, most: int) -> bool:
        """Whether r <= `most`. Counts no further: all features of a rough kernel on 10,000 actions take minutes."""
        return self._root.rank_is_at_most(most)

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

        Least squares in feature space. A function that the features reach to a relative 1e-5 (a constant under an SE
        kernel of numerical rank 19: 1e-7) gets the norm of its neighbour there; one that they do not reach is not in
        the space, and its norm is infinite.
        """
        flat = values.reshape(-1, self.n).T
        weights, *_ = np.linalg.lstsq(self.features, flat, rcond=None)
        missed = np.abs(self.features @ weights - flat).max(axis=0)
        norms = np.where(missed <= 1e-5 * np.abs(flat).max(axis=0), np.linalg.norm(weights, axis=0), np.inf)
        return np.asarray(norms.reshape(values.shape[:-1]))


def break_ties(score: Array, coin: NDArray[np.float64]) -> NDArray[np.intp]:
    """The best action of every replicate, ties broken at random.

    Args:
        score: (S, n).
        coin: a uniform draw per replicate, (S,); it picks among equally good actions.

    Raises:
        CellFailure: a score is not a number, or every score of a replicate is minus infinity.

    A stationary prior makes round 1 a total tie, and truncation makes more of them: a plain argmax would
    always give the lowest index a free ride.
    """
    replicates, n = score.shape
    rows = n * np.arange(replicates)
    best = score.argmax(axis=1)  # of a row with a NaN, its position
    top = score.take(rows + best)
    if not (top > -np.inf).all():
        problem = "is not a number" if np.isnan(top).any() else "is minus infinity everywhere: no action is allowed"
        raise CellFailure(f"the score of some replicate {problem}")
    tied = score == top[:, None]
    if np.count_nonzero(tied) == replicates:
        return best
    hits = np.flatnonzero(tied)
    per_row = np.bincount(hits // n, minlength=replicates)
    chosen = per_row.cumsum() - per_row + (coin * per_row).astype(np.intp)
    return np.asarray(hits[chosen] - rows)
