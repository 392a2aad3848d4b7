"""Gaussian-process posteriors of S replicates in lock step, in feature space.

On a finite set K = Phi Phi^T with Phi (n, r), so the posterior is Bayesian linear regression in r dimensions with
A = (I + sum phi phi^T / lambda)^-1. We keep a square root L of A = L L^T and update it by Potter's rank-one step: with
u = L^T phi, s = u.u = the variance at the played action,

    L <- L - L u u^T / (sqrt(lambda + s) (sqrt(lambda + s) + sqrt(lambda))),

which keeps A positive semi-definite by construction, and makes a joint posterior sample one product, mean + Phi L z.
The cost per replicate and round is O(n r + r^2), whatever t is. All p functions observed at the same actions share A.

Every product is a stacked `np.matmul`, one matrix-vector product per replicate, which gives the same bits for any S.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array

VARIANCE_FLOOR = 1e-14  # rounding may push a variance below zero; no deviation is under 1e-7


class Outer:
    """Outer products of S pairs of vectors, (S, a) and (S, b) to (S, a, b), in a buffer that is used again.

    BLAS is called only for products of depth two or more; a second, zero column is three times faster than
    broadcasting and gives the same bits.
    """

    def __init__(self, replicates: int, rows: int, columns: int) -> None:
        self.left = np.zeros((replicates, rows, 2))
        self.right = np.zeros((replicates, 2, columns))
        self.product = np.empty((replicates, rows, columns))

    def __call__(self, left: Array, right: Array) -> Array:
        self.left[:, :, 0] = left
        self.right[:, 0] = right
        return np.matmul(self.left, self.right, out=self.product)


class FeaturePosterior:
    """Posteriors of p functions over n actions, for S replicates.

    Args:
        features: Phi, shape (n, r), shared by all replicates.
        lam: the regulariser lambda (the model's noise variance).
        replicates: S.
        functions: p, the number of functions observed at every played action.
        prior: k(x, x), (n,); the diagonal of Phi Phi^T by default. Given exactly, equal variances are equal to the last
            bit, so that a stationary prior makes round 1 the tie that it is.

    Attributes:
        mean: (S, p, n).
        variance: (S, n), latent (no noise added), shared by the p functions.
        gain: (S,), the information gain 1/2 log det(I + K/lambda) of the actions played so far.
        factor: L, (S, r, r).
    """

    def __init__(
        self, features: Array, lam: float, replicates: int, functions: int, prior: Array | None = None
    ) -> None:
        self.features = features
        self.prior = np.maximum((features**2).sum(axis=1) if prior is None else prior, VARIANCE_FLOOR)
        self.by_rank = np.ascontiguousarray(features.T)
        self.rank = features.shape[1]
        self.replicates = replicates
        self.functions = functions
        self._outer_factor = Outer(replicates, self.rank, self.rank)
        self._outer_mean = Outer(replicates, functions, len(features))
        n = len(features)
        self._offsets = n * np.arange(replicates * functions).reshape(replicates, functions)
        self.reset(lam)

    def reset(self, lam: float | None = None) -> None:
        """Back to the prior, with another lambda if one is given."""
        n = len(self.features)
        if lam is not None:
            self.lam = lam
        self.mean = np.zeros((self.replicates, self.functions, n))
        self.variance = np.tile(self.prior, (self.replicates, 1))
        self.gain = np.zeros(self.replicates)
        self.factor = np.tile(np.eye(self.rank), (self.replicates, 1, 1))

    def update(self, actions: NDArray[np.intp], values: Array) -> None:
        """Condition on one observation of every function.

        Args:
            actions: the played action of each replicate, (S,).
            values: observed values, (S, p).
        """
        phi = self.features.take(actions, axis=0)
        u = np.matmul(phi[:, None, :], self.factor)  # (L^T phi)^T, (S, 1, r)
        s = np.matmul(u, u.transpose(0, 2, 1))[:, 0]  # variance at the action, (S, 1)
        total = np.sqrt(self.lam + s)
        lu = np.matmul(self.factor, u.transpose(0, 2, 1))[:, :, 0]  # A phi, (S, r)
        lu /= total
        column = np.matmul(lu[:, None, :], self.by_rank)[:, 0]  # posterior covariance with the action / total, (S, n)
        residual = (values - self._at(self.mean, actions)) / total
        self.mean += self._outer_mean(residual, column)
        column *= column
        self.variance -= column
        np.maximum(self.variance, VARIANCE_FLOOR, out=self.variance)
        self.factor -= self._outer_factor(lu, u[:, 0] / (total + np.sqrt(self.lam)))
        self.gain += 0.5 * np.log1p(s[:, 0] / self.lam)

    def update_some(self, t: int, actions: NDArray[np.intp], values: Array, mask: NDArray[np.bool_]) -> None:
        """Condition the replicates of a mask (S,) only; `t` as in `ObservationPosterior`."""
        held = (self.mean, self.variance, self.gain, self.factor)
        self.mean, self.variance, self.gain, self.factor = (array.copy() for array in held)
        self.update(actions, values)
        for name, before in zip(("mean", "variance", "gain", "factor"), held, strict=True):
            after = getattr(self, name)
            setattr(self, name, np.where(mask.reshape(mask.shape + (1,) * (after.ndim - 1)), after, before))

    def refresh(self) -> None:
        """Nothing to do: the square root does not drift."""

    def reveal(self, replicate: int, t: int, action: int, function: int, value: float) -> None:
        """A value arrives for an action that entered as 0: it moves a mean by A phi / lambda, and no variance."""
        factor = self.factor[replicate]
        a = np.matmul(factor, np.matmul(self.features[action][None], factor)[0])
        self.mean[replicate, function] += value / self.lam * np.matmul(a[None], self.by_rank)[0]

    def _at(self, mean: Array, actions: NDArray[np.intp]) -> Array:
        """Values (S, p) of a function stack (S, p, n) at one action per replicate."""
        return mean.reshape(-1).take(self._offsets + actions[:, None])

    def paths(self, z: Array, first: int = 0) -> Array:
        """Zero-mean joint samples with the posterior covariance: Phi L z.

        Args:
            z: standard normal draws, (S, q, r).
            first: which function the first draw is for; all functions share a covariance, so it makes no difference.

        Returns:
            (S, q, n): q independent functions per replicate, each correlated over the n actions.
        """
        lz = np.matmul(z[:, :, None, :], self.factor.transpose(0, 2, 1)[:, None])
        return np.matmul(lz, self.by_rank)[:, :, 0]

    def covariance(self, replicate: int) -> Array:
        """The posterior covariance over all actions, (n, n), of one replicate."""
        root = self.features @ self.factor[replicate]
        return root @ root.T
