"""Beliefs between the candidates of a box, with two derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array, Matern, SquaredExponential, squared_lengths
from cbobench.gp.mesh import Mesh
from cbobench.gp.posteriors.contract import Jet, Mask
from cbobench.gp.posteriors.factor import Factor
from cbobench.gp.posteriors.slots import Slots
from cbobench.gp.taylor import taylor

FEW = 5  # rows; with 200 to 1,000 columns, as measured


class Differentiable(Slots):
    """Observations in slots with what it takes to differentiate beliefs.

    Attributes:
        inverse: P, (S, slots, slots); 0 for replicates that have a factor in its place.
        weights: w = P y, (S, p, slots).
        factors: by replicate.
    """

    inverse: Array
    weights: Array
    factors: dict[int, Factor]
    mean: Array
    variance: Array

    def jet(self, points: Array, wanted: Mask | None = None) -> Jet:
        assert self.box is not None
        replicates, q, d = points.shape
        wanted = np.ones((replicates, q), dtype=bool) if wanted is None else wanted
        n, mesh = len(taylor(d).steps), self.box.mesh
        if mesh is None or len(self.factors) == self.replicates:
            jet = Jet(np.zeros((replicates, self.functions, q, n)), np.zeros((replicates, q, n)))
        else:  # a factor holds digits that a mesh has not
            jet = interpolated(mesh, self.mean, self.variance, points)
            wanted = wanted & np.isin(self.rows, list(self.factors))[:, None]
        if wanted.any():
            c, of = self.used, np.nonzero(wanted)[0]
            jet.mean.swapaxes(1, 2)[wanted], jet.variance[wanted] = models_at(
                points[wanted],
                of,
                self.box.kernel,
                self.points[:, :c],
                self.weights[:, :, :c],
                lambda rows: self._explain(rows, np.searchsorted(of, np.arange(replicates + 1))),
            )
        return jet

    def _explain(self, rows: Array, first: NDArray[np.intp]) -> tuple[Array, Array]:
        """k P of rows k, and k P k' of all pairs, for q points' covariances with the slots and slopes (q, 1 + d, c).

        Args:
            first: which of the points is the first of each replicate, (S + 1,).
        """
        c = self.used
        rows = rows * self.full[np.repeat(self.rows, np.diff(first)), None, :c]
        moved, halves = np.zeros_like(rows), {}
        for s in range(self.replicates):
            some = rows[first[s] : first[s + 1]]
            if s in self.factors:
                halves[s] = self.factors[s].half(some)
                moved[first[s] : first[s + 1], 0] = self.factors[s].whole(halves[s][:, 0], c)
            elif len(some):  # as many rows as are this replicate's own, so that it has the same bits in any block
                moved[first[s] : first[s + 1]] = times(some.reshape(-1, c), self.inverse[s, :c, :c]).reshape(some.shape)
        explained = np.matmul(moved, rows.swapaxes(1, 2))
        for s, half in halves.items():
            explained[first[s] : first[s + 1]] = np.matmul(half, half.swapaxes(1, 2))
        return moved[:, 0], explained


def models_at(
    points: Array,
    of: NDArray[np.intp],
    kernel: SquaredExponential | Matern,
    observed: Array,
    weights: Array,
    explain: Callable[[Array], tuple[Array, Array]],
) -> tuple[Array, Array]:
    """Taylor models of means (q, p, n) and variances (q, n) at points (q, d) of the unit cube.

    Args:
        of: whose beliefs, the replicate of every point, (q,).
        observed: what the slots hold, (S, c, d).
        weights: w = (K + λI)⁻¹ y, (S, p, c), 0 where a slot is empty.
        explain: from rows (q, 1 + d, c), covariances k with the slots and their slopes: k (K + λI)⁻¹, (q, c), 0 where a
            slot is empty, and what all pairs of rows explain, (q, 1 + d, 1 + d).
    """
    q, d = points.shape
    layout = taylor(d)
    delta = points[:, :, None] - observed.swapaxes(1, 2)[of]  # (q, d, c)
    k, k1, k2 = kernel.slopes(squared_lengths(delta.swapaxes(1, 2)))
    rows = np.empty((q, 1 + d, delta.shape[2]))  # k and its slope
    rows[:, 0] = k
    np.multiply(2 * k1[:, None], delta, out=rows[:, 1:])
    moved, explained = explain(rows)
    # d²k(x, x_i)/dx² = 4 k'' δ δᵀ + 2 k' I, in the bends of the means and of k (K + λI)⁻¹ k.
    both = np.concatenate([weights[of], moved[:, None]], axis=1)
    products = (4 * k2)[:, None] * delta[:, layout.rows] * delta[:, layout.columns]
    products[:, layout.rows == layout.columns] += (2 * k1)[:, None]
    bends = np.matmul(both, products.swapaxes(1, 2))  # (q, p + 1, n - 1 - d)
    means = np.concatenate([np.matmul(both[:, :-1], rows.swapaxes(1, 2)), bends[:, :-1]], axis=2)
    variances = np.empty((q, means.shape[2]))
    variances[:, 0] = 1 - explained[:, 0, 0]
    variances[:, 1 : 1 + d] = -2 * explained[:, 0, 1:]
    variances[:, 1 + d :] = -2 * (explained[:, 1 + layout.rows, 1 + layout.columns] + bends[:, -1])
    return means, variances


def interpolated(mesh: Mesh, mean: Array, variance: Array, points: Array) -> Jet:
    """The jet at points (S, q, d) of beliefs on a mesh: means (S, p, M) and variances (S, M)."""
    models = mesh.models(np.concatenate([mean, variance[:, None]], axis=1), points)
    return Jet(models[:, :-1], models[:, -1])


def times(rows: Array, matrix: Array) -> Array:
    """Rows (k, c) times a matrix (c, c): for few rows one by one, which is faster than BLAS makes of them together."""
    return np.matmul(rows[:, None], matrix)[:, 0] if len(rows) <= FEW else np.matmul(rows, matrix)
