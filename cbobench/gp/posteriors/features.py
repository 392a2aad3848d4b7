"""Gaussian-process posteriors of S replicates in lock step, in feature space.

On a finite set K = Phi Phi^T with Phi (n, r), so the posterior is Bayesian linear regression in r
dimensions with A = (I + sum phi phi^T / lambda)^-1. We keep a square root L of A = L L^T and update
it by Potter's rank-one step: with u = L^T phi, s = u.u = the variance at the played action,

    L <- L - L u u^T / (sqrt(lambda + s) (sqrt(lambda + s) + sqrt(lambda))),

which keeps A positive semi-definite by construction, and makes a joint posterior sample one
product, mean + Phi L z. The cost per replicate and round is O(n r + r^2), whatever t is. All p
functions observed at the same actions share A.

Every product is a stacked `np.matmul`, one matrix-vector product per replicate, which gives the
same bits for any S.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.box_actions import Box
from cbobench.gp.jets import Jet, interpolate_jet
from cbobench.gp.kernels import Actions, Array, Indices, Mask, combine_features
from cbobench.gp.posteriors.interface import (
    VARIANCE_FLOOR,
    Moments,
    MomentsOfSlots,
    SharedPosterior,
)

EXACT_FROM = 1e-8  # smallest exact λ: Φ omits 1e-13 of K


class Outer:
    """Outer products of S pairs of vectors, (S, a) and (S, b) to (S, a, b), in a reused buffer.

    BLAS is called only for products of depth two or more; a second, zero column is three times
    faster than broadcasting and gives the same bits.
    """

    def __init__(self, replicates: int, rows: int, columns: int) -> None:
        self.left = np.zeros((replicates, rows, 2))
        self.right = np.zeros((replicates, 2, columns))
        self.product = np.empty((replicates, rows, columns))

    def __call__(self, left: Array, right: Array) -> Array:
        self.left[..., 0] = left
        self.right[:, 0] = right
        return np.matmul(self.left, self.right, out=self.product)


class FeaturePosterior(SharedPosterior):
    """Posteriors of p functions over n actions, for S replicates (see `Posterior`).

    Args:
        features: Phi, shape (n, r), shared by all replicates.
        lam: the regulariser lambda (the model's noise variance).
        replicates: S.
        functions: p, the number of functions observed at every played action.
        prior: k(x, x), (n,); the diagonal of Phi Phi^T by default. Given exactly, equal variances
            are equal to the last bit, so that a stationary prior makes round 1 the tie that it is.
        rank: r, if a subclass knows more features than those of `features`.

    Attributes:
        mean: (S, p, n).
        variance: (S, n), latent (no noise added), shared by the p functions.
        gain: (S,), the information gain 1/2 log det(I + K/lambda) of the actions played so far.
        factor: L, (S, r, r).
    """

    def __init__(
        self,
        features: Array,
        lam: float,
        replicates: int,
        functions: int,
        prior: Array | None = None,
        rank: int | None = None,
    ) -> None:
        self.features = features
        self.prior = np.maximum(
            (features**2).sum(axis=1) if prior is None else prior, VARIANCE_FLOOR
        )
        self._by_action = features.flags.c_contiguous
        self.by_rank = np.ascontiguousarray(features.T)  # no copy for a large set
        self.rank = features.shape[1] if rank is None else rank
        self.replicates = replicates
        self._rows = np.arange(replicates)
        self.functions = functions
        self._outer_factor = Outer(replicates, self.rank, self.rank)
        n = len(self.prior)
        self._outer_mean = Outer(replicates, functions, n)
        self.reset(lam)

    def reset(self, lam: float | None = None) -> None:
        n = len(self.prior)
        if lam is not None:
            if not lam >= EXACT_FROM:
                raise CellFailure(
                    f"λ = {lam:.3g} is lost in feature space; allowed: {EXACT_FROM:g} and more"
                )
            self.lam = lam
            self._root = math.sqrt(lam)
        self.mean = np.zeros((self.replicates, self.functions, n))
        self.variance = np.tile(self.prior, (self.replicates, 1))
        self.gain = np.zeros(self.replicates)
        self.factor = np.tile(np.eye(self.rank), (self.replicates, 1, 1))

    def update_some(self, t: int, actions: Indices, values: Array, mask: Mask) -> None:
        self.update(actions, values, mask)

    def update(self, actions: Indices, values: Array, mask: Mask | None = None) -> None:
        """Condition all replicates, or those of a mask (S,)."""
        phi = self._phi(actions)
        u = phi[:, None, :] @ self.factor  # (L^T phi)^T, (S, 1, r)
        s = (u @ u.mT)[:, 0]  # variance at the action, (S, 1)
        total = np.sqrt(self.lam + s)
        lu = (self.factor @ u.mT)[..., 0]  # A phi, (S, r)
        lu /= total
        gained = 0.5 * np.log1p(s[:, 0] / self.lam)
        if mask is not None:  # replicates without an observation move by 0
            lu *= mask[:, None]
            gained *= mask
        column = self._spread(lu)  # posterior covariance with the action / total, (S, n)
        residual = (values - self._mean_at(actions)) / total
        self.mean += self._outer_mean(residual, column)
        column *= column
        self.variance -= column
        np.maximum(self.variance, VARIANCE_FLOOR, out=self.variance)
        self.factor -= self._outer_factor(lu, u[:, 0] / (total + self._root))
        self.gain += gained

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        """A mean moves by A phi / lambda."""
        factor = self.factor[replicate]
        a = factor @ (self._phi(np.asarray(action)[None]) @ factor)[0]
        self.mean[replicate, function] += value / self.lam * self._spread(a[None])[0]

    def _phi(self, actions: Actions) -> Array:
        """Return the features of one action per replicate, (S, r)."""
        if self._by_action:
            return self.features.take(actions, axis=0)
        # `take` would first copy the whole view
        return np.ascontiguousarray(self.features[actions])

    def _spread(self, weights: Array) -> Array:
        """Return values at all actions, (S[, q], n), from weights of the features (S[, q], r)."""
        return combine_features(weights, self.by_rank)

    def _mean_at(self, actions: Actions) -> Array:
        """Return means (S, p) at one action per replicate."""
        return self.mean[self._rows, :, actions]

    def paths(self, z: Array, first: int = 0) -> Array:
        """Return Phi L z. All functions share a covariance, so `first` makes no difference."""
        lz = (z[..., None, :] @ self.factor.mT[:, None])[:, :, 0]
        return self._spread(lz)

    def covariances(self, replicate: int, function: int, indices: Indices) -> Array:
        roots = self.features[indices] @ self.factor[replicate]
        return (roots @ self.factor[replicate].T) @ self.by_rank


class ExtendedPosterior(FeaturePosterior):
    """The same with c further actions of every replicate, such as its initial design; their indices
    begin at n.

    Args:
        further: their features, (S, c, r + c), whose first r go with Phi (see `extend_features`).

    Attributes:
        mean: (S, p, n + c).
        variance: (S, n + c).
    """

    def __init__(
        self,
        features: Array,
        further: Array,
        lam: float,
        replicates: int,
        functions: int,
        prior: Array,
    ) -> None:
        self.further = further
        variance = prior[0]  # of all, because a box has a stationary prior
        variances = np.concatenate([prior, np.full(further.shape[1], variance)])
        super().__init__(features, lam, replicates, functions, variances, further.shape[2])

    def _phi(self, actions: Indices) -> Array:
        return np.stack([self._phi_of(s, int(action)) for s, action in enumerate(actions)])

    def _phi_of(self, replicate: int, action: int) -> Array:
        n, r = self.features.shape
        if action >= n:
            return self.further[replicate, action - n]
        return np.concatenate([self.features[action], np.zeros(self.rank - r)])

    def _spread(self, weights: Array) -> Array:
        r = self.features.shape[1]
        shared = combine_features(np.ascontiguousarray(weights[..., :r]), self.by_rank)
        further = self.further if weights.ndim == 2 else self.further[:, None]
        return np.concatenate([shared, (further @ weights[..., None])[..., 0]], axis=-1)

    def reveal(self, replicate: int, t: int, action: Any, function: int, value: float) -> None:
        a = np.zeros((self.replicates, self.rank))
        phi = self._phi_of(replicate, int(action))
        a[replicate] = self.factor[replicate] @ (phi[None] @ self.factor[replicate])[0]
        self.mean[replicate, function] += value / self.lam * self._spread(a)[replicate]


class InterpolatedPosterior(FeaturePosterior):
    """Posteriors of p functions on a box with a mesh, for S replicates (see `Posterior`).

    Means and variances at the candidates, which are the points of the mesh, are all there is to
    know; beliefs between them are interpolated (see `cbobench.gp.mesh`). Errors of 1e-14 in the
    kernel become some 1e-14/λ in the means.
    """

    def __init__(self, box: Box, lam: float, replicates: int, functions: int) -> None:
        assert box.mesh is not None
        self.mesh = box.mesh
        super().__init__(
            self.mesh.features(self.mesh.points),
            lam,
            replicates,
            functions,
            np.ones(len(box.candidates)),
        )

    def reset(self, lam: float | None = None) -> None:
        super().reset(lam)
        self.entered: list[tuple[Array, Mask]] = []

    def update(self, actions: Actions, values: Array, mask: Mask | None = None) -> None:
        super().update(actions, values, mask)
        self.entered.append(
            (actions, np.ones(self.replicates, dtype=bool) if mask is None else mask)
        )

    def at_observations(self) -> MomentsOfSlots:
        actions, held = zip(*self.entered, strict=True)
        return *self.at(np.stack(actions, axis=1)), np.stack(held, axis=1)

    def _phi(self, actions: Actions) -> Array:
        return self.mesh.features(actions)

    def _spread(self, weights: Array) -> Array:
        return self.mesh.spread(weights)

    def _mean_at(self, actions: Actions) -> Array:
        return self.mesh.values(self.mean, actions[:, None])[..., 0]

    def at(self, actions: Actions) -> Moments:
        variance = self.mesh.values(self.variance[:, None], actions)[:, 0]
        return self.mesh.values(self.mean, actions), np.maximum(variance, VARIANCE_FLOOR)

    def jet(self, points: Array, mask: Mask | None = None) -> Jet:
        return interpolate_jet(self.mesh, self.mean, self.variance, points)
