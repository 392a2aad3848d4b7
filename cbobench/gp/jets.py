"""Second-order Taylor models of beliefs in d variables, packed: a value, d slopes, and the
d (d + 1) / 2 second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cbobench.gp.kernels import Array, Indices, Mask, Matern, SquaredExponential, squared_lengths
from cbobench.gp.mesh import Mesh

STEP = 1e-4  # between the points at which a function of models is evaluated, in units of the cube
FEW = 5  # rows; with 200 to 1,000 columns, as measured


@dataclass(frozen=True)
class Taylor:
    """The layout of models (..., n) with n = 1 + d + d (d + 1) / 2, and their values around a
    point.

    The n points are the centre, one step each way along every axis, and one along every pair of
    axes.

    Attributes:
        d: number of variables.
        steps: from the centre to the points, (n, d).
        values: models times this matrix are values at the points, (n, n).
        models: values at the points times this one are models, by differences, (n, n).
        rows, columns: of the second derivatives in their matrix, (n - 1 - d,) each.
        orders: of the derivatives in a model, (n,): 0, 1 or 2.
        square: positions in a model of the matrix of second derivatives, (d, d).
        held: variables on which nothing depends that is climbed, (d,).
    """

    d: int
    steps: Array
    values: Array
    models: Array
    rows: Indices
    columns: Indices
    square: Indices
    orders: Indices
    held: Mask

    def slopes(self, models: Array) -> Array:
        """(..., n) to (..., d)."""
        return models[..., 1 : 1 + self.d]

    def bends(self, models: Array) -> Array:
        """(..., n) to (..., d, d)."""
        return models[..., self.square]

    def place(self, variables: Indices) -> Indices:
        """Return where in a model the numbers of one in some of its variables are."""
        part = taylor(len(variables))
        bends = self.square[variables[part.rows], variables[part.columns]]
        return np.concatenate([[0], 1 + variables, bends])


@lru_cache(maxsize=64)
def taylor(d: int) -> Taylor:
    """Return the layout for d variables."""
    axes = np.eye(d)
    pairs = [axes[i] + axes[j] for i in range(d) for j in range(i + 1, d)]
    steps = np.concatenate([np.zeros((1, d)), axes, -axes, np.array(pairs).reshape(len(pairs), d)])
    rows, columns = np.triu_indices(d)
    bends = steps[:, rows] * steps[:, columns] * np.where(rows == columns, 0.5, 1.0)
    # values = units @ model, for steps of 1
    units = np.concatenate([np.ones((len(steps), 1)), steps, bends], axis=1)
    orders = np.repeat([0, 1, 2], [1, d, len(rows)])
    scale = STEP ** orders.astype(np.float64)
    square = np.zeros((d, d), dtype=np.intp)
    square[rows, columns] = square[columns, rows] = 1 + d + np.arange(len(rows))
    inverse = np.round(2 * np.linalg.inv(units)) / 2  # differences: whole and half numbers
    values = (units * scale).T.copy()
    models = (inverse / scale[:, None]).T.copy()
    held = np.zeros(d, dtype=bool)
    return Taylor(d, STEP * steps, values, models, rows, columns, square, orders, held)


def monomials(moved: Array) -> Array:
    """Return what models are multiplied with to give values at steps (S, q, d), (S, n, q)."""
    layout = taylor(moved.shape[2])
    moved = moved.mT
    models = np.empty((len(moved), 1 + layout.d + len(layout.rows), moved.shape[2]))
    models[:, 0] = 1.0
    models[:, 1 : 1 + layout.d] = moved
    halves = np.where(layout.rows == layout.columns, 0.5, 1.0)[:, None]
    np.multiply(
        halves * moved[:, layout.rows], moved[:, layout.columns], out=models[:, 1 + layout.d :]
    )
    return models


@dataclass(frozen=True)
class Jet:
    """Second-order models at q points of S replicates (see `Taylor` for their n numbers).

    Attributes:
        mean: (S, p, q, n).
        variance: (S, q, n), or (S, p, q, n) if functions have their own.
    """

    mean: Array
    variance: Array


def models_at(
    points: Array,
    replicate_of: Indices,
    kernel: SquaredExponential | Matern,
    observed: Array,
    weights: Array,
    explain: Callable[[Array], tuple[Array, Array]],
    floats: Indices,
) -> tuple[Array, Array]:
    """Return Taylor models of means (q, p, n) and variances (q, n) at points (q, k), in d of their
    coordinates.

    Args:
        replicate_of: the replicate of every point, (q,).
        observed: points of the slots, (S, c, k).
        weights: w = (K + λI)⁻¹ y, (S, p, c), 0 for an empty slot.
        explain: maps rows (q, 1 + d, c), covariances k with the slots and their slopes, to k (K +
            λI)⁻¹, (q, c), 0 for an empty slot, and to the explained part of all pairs of rows, (q,
            1 + d, 1 + d).
        floats: the coordinates of the slopes, (d,).
    """
    q = len(points)
    d = len(floats)
    layout = taylor(d)
    # coordinate by coordinate: whole planes, which are contiguous
    delta = np.empty((points.shape[1], q, observed.shape[1]))
    np.subtract(points.T[..., None], observed[replicate_of].transpose(2, 0, 1), out=delta)
    k, k1, k2 = kernel.slopes(squared_lengths(np.moveaxis(delta, 0, -1)))
    delta = delta[floats]
    rows = np.empty((q, 1 + d, delta.shape[2]))  # k and its slope
    rows[:, 0] = k
    twice = 2 * k1
    np.multiply(twice[:, None], delta.swapaxes(0, 1), out=rows[:, 1:])
    moved, explained = explain(rows)
    # d²k(x, x_i)/dx² = 4 k'' δ δᵀ + 2 k' I, in the bends of the means and of k (K + λI)⁻¹ k.
    all_weights = np.concatenate([weights[replicate_of], moved[:, None]], axis=1)
    products = np.empty((len(layout.rows), *k.shape))
    end = 0
    k2 = 4 * k2
    for i in range(d):  # pairs (i, i), ..., (i, d - 1)
        first = end
        end = end + d - i
        np.multiply(k2 * delta[i], delta[i:], out=products[first:end])
        products[first] += twice
    bends = all_weights @ products.transpose(1, 2, 0)  # (q, p + 1, n - 1 - d)
    means = np.concatenate([all_weights[:, :-1] @ rows.mT, bends[:, :-1]], axis=2)
    variances = np.empty((q, means.shape[2]))
    variances[:, 0] = 1 - explained[:, 0, 0]
    variances[:, 1 : 1 + d] = -2 * explained[:, 0, 1:]
    variances[:, 1 + d :] = -2 * (explained[:, 1 + layout.rows, 1 + layout.columns] + bends[:, -1])
    return means, variances


def interpolate_jet(mesh: Mesh, mean: Array, variance: Array, points: Array) -> Jet:
    """Return the jet at points (S, q, d) of beliefs on a mesh: means (S, p, M) and variances (S,
    M).
    """
    models = mesh.models(np.concatenate([mean, variance[:, None]], axis=1), points)
    return Jet(models[:, :-1], models[:, -1])


def pad(models: Array, place: Indices, size: int) -> Array:
    """Return models in more variables, (..., size), that change with none of the others."""
    if len(place) == size:
        return models
    padded = np.zeros((*models.shape[:-1], size))
    padded[..., place] = models
    return padded


def times(rows: Array, matrix: Array) -> Array:
    """Return rows (..., k, c) times a matrix (..., c, c); few rows one by one, which is faster than
    one BLAS call.
    """
    if rows.shape[-2] > FEW:
        return rows @ matrix
    return (rows[..., None, :] @ matrix[..., None, :, :])[..., 0, :]
