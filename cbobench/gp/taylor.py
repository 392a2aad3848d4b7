"""Second-order Taylor models in d variables, packed: a value, d slopes, and the d (d + 1) / 2
second derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cbobench.gp.kernels import Array, Indices

STEP = 1e-4  # between the points at which a function of models is evaluated, in units of the cube


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
    """

    d: int
    steps: Array
    values: Array
    models: Array
    rows: Indices
    columns: Indices
    square: Indices
    orders: Indices

    def slopes(self, models: Array) -> Array:
        """(..., n) to (..., d)."""
        return models[..., 1 : 1 + self.d]

    def bends(self, models: Array) -> Array:
        """(..., n) to (..., d, d)."""
        return models[..., self.square]


@lru_cache(maxsize=64)
def taylor(d: int) -> Taylor:
    """Return the layout for d variables."""
    axes = np.eye(d)
    pairs = [axes[i] + axes[j] for i in range(d) for j in range(i + 1, d)]
    steps = np.concatenate([np.zeros((1, d)), axes, -axes, np.array(pairs).reshape(-1, d)])
    rows, columns = np.triu_indices(d)
    bends = steps[:, rows] * steps[:, columns] * np.where(rows == columns, 0.5, 1.0)
    # values = units @ model, for steps of 1
    units = np.concatenate([np.ones((len(steps), 1)), steps, bends], axis=1)
    orders = np.repeat([0, 1, 2], [1, d, len(rows)])
    scale = STEP ** orders.astype(np.float64)
    square = np.zeros((d, d), dtype=np.intp)
    square[rows, columns] = square[columns, rows] = 1 + d + np.arange(len(rows))
    inverse = np.round(2 * np.linalg.inv(units)) / 2  # differences: whole and half numbers
    values, models = (units * scale).T.copy(), (inverse / scale[:, None]).T.copy()
    return Taylor(d, STEP * steps, values, models, rows, columns, square, orders)
