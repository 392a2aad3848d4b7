"""Smooth functions on a box of one or two dimensions by their values on a Chebyshev mesh.

With a squared-exponential kernel that is not too short, posterior means and variances are
polynomials of low degree, up to rounding. So a mesh of G^d Chebyshev points determines them, and
beliefs between the points, with their derivatives, are interpolated at a cost that does not depend
on the number of observations (Trefethen 2019, ch. 2-8). The kernel is a product over the axes, and
so are its features: eigenfunctions of the kernel of one variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from cbobench.gp.kernels import Array, Indices, SquaredExponential
from cbobench.threads import single_thread

# relative to the prior variance: largest error of the mesh, and least contribution of a feature
EXACT = 1e-12
# points along an axis in two dimensions (lengthscale 0.15: 44), the square of it in one
LARGEST = 48
COARSEST = 12


@dataclass(frozen=True)
class Mesh:
    """A mesh on the unit cube of d <= 2 dimensions that resolves the posteriors of a kernel.

    Args:
        d: dimensions.
        lengthscale: of the squared-exponential kernel, in units of the sides.
        size: G, points along every axis, both ends among them.
    """

    d: int
    lengthscale: float
    size: int

    @cached_property
    def nodes(self) -> Array:
        """Nodes along one axis, (G,)."""
        return nodes(self.size)

    @cached_property
    def points(self) -> Array:
        """All points, the last coordinate changing fastest, (G^d, d)."""
        axes = np.meshgrid(*[self.nodes] * self.d, indexing="ij")
        return np.stack([axis.ravel() for axis in axes], axis=1)

    @cached_property
    def spacing(self) -> float:
        """The widest gap along an axis."""
        return float(np.diff(self.nodes).max())

    def rows(self, points: Array, orders: int = 3) -> Array:
        """Return the weights from nodes to value, slope and second derivative at points (...) of an
        axis: (..., orders, G).
        """
        angles = np.arccos(np.clip(2 * points - 1, -1.0, 1.0))
        waves = np.cos(angles[..., None] * np.arange(self.size))
        return (waves[..., None, None, :] @ _differentiation(self.size)[:orders])[..., 0, :]

    def models(self, fields: Array, points: Array) -> Array:
        """Return Taylor models (S, p, q, n) at points (S, q, d) of fields (S, p, G^d)."""
        replicates, q, d = points.shape
        functions = fields.shape[1]
        rows = self.rows(points)
        along = rows[:, :, 0].reshape(replicates, 1, 3 * q, self.size)
        if d == 1:
            return (fields[:, :, None] @ along.mT).reshape(replicates, functions, q, 3)
        square = fields.reshape(replicates, functions, self.size, self.size)
        half = (along @ square).reshape(replicates, functions, q, 3, self.size)
        derivatives = (half @ rows[:, None, :, 1].mT).reshape(replicates, functions, q, 9)
        return derivatives[..., [0, 3, 1, 6, 4, 2]]

    def values(self, fields: Array, points: Array) -> Array:
        """Return values (S, p, q) at points (S, q, d) of fields (S, p, G^d)."""
        replicates, q, d = points.shape
        rows = self.rows(points, 1)[..., 0, :]  # (S, q, d, G)
        if d == 1:
            return fields @ rows[:, :, 0].mT
        square = fields.reshape(replicates, -1, self.size, self.size)
        half = rows[:, None, :, 0] @ square
        return (half * rows[:, None, :, 1]).sum(axis=3)

    @cached_property
    @single_thread()
    def factors(self) -> Array:
        """The kernel of one variable on the nodes is L Lᵀ with L (G, r)."""
        size, vectors = np.linalg.eigh(
            SquaredExponential(self.lengthscale)(self.nodes[:, None], self.nodes[:, None])
        )
        mask = size > EXACT
        return np.ascontiguousarray((vectors[:, mask] * np.sqrt(size[mask]))[:, ::-1])

    @cached_property
    def pairs(self) -> Indices:
        """Indices of the kept products of the axes' features, among all r^d."""
        size = (self.factors**2).sum(axis=0)
        weights = size if self.d == 1 else np.outer(size, size).ravel()
        return np.flatnonzero(weights > EXACT)

    def features(self, points: Array) -> Array:
        """Return φ at points (S, d): (S, rank), with φ(x).φ(y) = k(x, y) up to about `EXACT`."""
        at = (self.rows(points, 1) @ self.factors)[..., 0, :]  # (S, d, r)
        if self.d == 1:
            # keeps the memory layout, on which the bits of products depend
            return at[:, 0].take(self.pairs, axis=1)
        return (
            (at[:, 0, :, None] * at[:, 1, None, :])
            .reshape(len(points), -1)
            .take(self.pairs, axis=1)
        )

    def spread(self, weights: Array) -> Array:
        """Return fields Σ_i w_i φ_i on the mesh, (S, G^d), from weights (S, rank)."""
        r = self.factors.shape[1]
        full = np.zeros((len(weights), r**self.d))
        full[:, self.pairs] = weights
        if self.d == 1:
            return (full[:, None] @ self.factors.T)[:, 0]
        left = self.factors @ full.reshape(-1, r, r)
        return (left @ self.factors.T).reshape(len(weights), -1)


def nodes(size: int) -> Array:
    """Return the Chebyshev points of [0, 1], both ends included."""
    return (1 - np.cos(np.pi * np.arange(size) / (size - 1))) / 2


@lru_cache(maxsize=8)
@single_thread()
def _differentiation(size: int) -> Array:
    """Return the map from node values to the coefficients of T_0, T_1, ... of the function and two
    derivatives: (3, G, G).
    """
    k = np.arange(size)
    coefficients = np.linalg.inv(np.cos(np.pi * np.outer(k[::-1], k) / (size - 1)))
    # d/dx T_n = 2 * 2n (T_{n-1} + T_{n-3} + ...), T_0 counted half; x = (1 + z) / 2
    slope = np.zeros((size, size))
    for n in range(1, size):
        slope[n - 1 :: -2, n] = 4.0 * n
    slope[0] /= 2
    return np.stack([coefficients, slope @ coefficients, slope @ slope @ coefficients])


@lru_cache(maxsize=8)
@single_thread()
def resolving(d: int, lengthscale: float) -> Mesh | None:
    """Return the smallest mesh, in steps of four points, on which posteriors of a kernel are exact;
    None if it is too large.

    It must resolve products of two kernel functions, because variances are sums of them.
    """
    if d > 2:
        return None
    largest = LARGEST if d == 2 else 12 * LARGEST
    probe = np.linspace(0.0, 1.0, 257)
    size = max(COARSEST, 4 * int(1 / lengthscale))  # fewer are never enough
    while size <= largest:
        mesh = Mesh(d, lengthscale, size)
        squared = SquaredExponential(lengthscale / np.sqrt(2))
        rows = mesh.rows(probe, 1)[:, 0]
        error = rows @ squared(mesh.nodes[:, None], probe[::8, None]) - squared(
            probe[:, None], probe[::8, None]
        )
        if np.abs(error).max() < EXACT:
            return mesh
        size += 4
    return None
