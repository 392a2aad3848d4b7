"""Beliefs between the candidates of a box, with two derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cbobench.gp.kernels import Array, Matern, SquaredExponential, squared_lengths
from cbobench.gp.posteriors.contract import VARIANCE_FLOOR, Jet, Mask


def jet_at(
    points: Array,
    kernel: SquaredExponential | Matern,
    observed: Array,
    full: Mask,
    weights: Array,
    explain: Callable[[Array], tuple[Array, Array]],
) -> Jet:
    """The jet at points (S, q, d) of the unit cube.

    Args:
        observed, full: what the slots hold, (S, c, d), and which of them hold anything, (S, c).
        weights: w = (K + λI)⁻¹ y, (S, p, c).
        explain: from rows (S, q, 1 + d, c), covariances k with the slots and their slopes: k (K + λI)⁻¹, (S, q, 1, c),
            and what all pairs of rows explain, (S, q, 1 + d, 1 + d).
    """
    replicates, q, d = points.shape
    functions, c = weights.shape[1:]
    delta = points[..., None] - observed[:, None].swapaxes(2, 3)  # (S, q, d, c)
    k, k1, k2 = (part * full[:, None] for part in kernel.slopes(squared_lengths(delta.swapaxes(2, 3))))
    rows = np.empty((replicates, q, 1 + d, c))  # k and its slope
    rows[:, :, 0] = k
    np.multiply(2 * k1[:, :, None], delta, out=rows[:, :, 1:])
    moved, explained = explain(rows)
    means = np.matmul(weights[:, None], rows.swapaxes(2, 3)).swapaxes(1, 2)  # (S, p, q, 1 + d)
    of_bends = np.concatenate(  # of d²k(x, x_i)/dx² = 4 k'' δ δᵀ + 2 k' I in the bends of the means, and of k K⁻¹ k
        [np.broadcast_to(weights[:, None], (replicates, q, functions, c)), moved], axis=2
    )
    products = (delta[:, :, :, None] * delta[:, :, None]).reshape(replicates, q, d * d, c)
    bends = np.matmul(of_bends * (4 * k2)[:, :, None], products.swapaxes(2, 3)).reshape(replicates, q, -1, d, d)
    bends += np.matmul(of_bends, (2 * k1)[..., None])[..., None] * np.eye(d)
    return Jet(
        mean=means[..., 0],
        mean_slope=means[..., 1:],
        mean_bend=bends[:, :, :-1].swapaxes(1, 2),
        variance=np.maximum(1 - explained[:, :, 0, 0], VARIANCE_FLOOR),
        variance_slope=-2 * explained[:, :, 0, 1:],
        variance_bend=-2 * (explained[:, :, 1:, 1:] + bends[:, :, -1]),
    )
