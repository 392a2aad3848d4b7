"""Random correlation matrices with given eigenvalues, without `scipy.stats`, which takes longer to load than to use."""

from __future__ import annotations

import math

import numpy as np

from cbobench.gp.kernels import Array


def random_correlation(eigenvalues: Array, gen: np.random.Generator) -> Array:
    """Return a random correlation matrix (n, n) by Davies & Higham (2000), BIT 40(4).

    A random rotation of the eigenvalues, and then plane rotations that make the diagonal 1, one entry each. The bits
    are those of `scipy.stats.random_correlation`, whose steps and products these are.

    Args:
        eigenvalues: (n,), not negative, with sum n.
        gen: draws n² normal numbers.
    """
    n = len(eigenvalues)
    q, r = np.linalg.qr(gen.normal(size=(n, n)))
    q *= np.sign(r.diagonal())  # else the rotations were not uniform
    matrix = np.dot(np.dot(q, np.diag(eigenvalues)), q.T)
    for i in range(n - 1):
        if matrix[i, i] != 1:
            # The trace is n, so that another entry lies on the other side of 1; without it, the last one is taken.
            others = range(i + 1, n)
            is_above = matrix[i, i] > 1
            j = next((j for j in others if (matrix[j, j] < 1 if is_above else matrix[j, j] > 1)), n - 1)
            _rotate(matrix, i, j)
    return matrix


def _rotate(matrix: Array, i: int, j: int) -> None:
    """Rotate the plane of i and j so that entry i of the diagonal becomes 1."""
    from scipy.linalg.blas import drot  # its products are fused; NumPy's would have other last bits

    n = len(matrix)
    first, second, between = matrix[i, i] - 1.0, matrix[j, j] - 1.0, matrix[i, j]
    if second == 0:
        cosine, sine = 0.0, 1.0
    else:
        root = math.sqrt(max(between**2 - first * second, 0))
        tangent = (between + math.copysign(root, between)) / second  # the root without cancellation
        cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
        sine = 1.0 if cosine == 0 else cosine * tangent
    flat = matrix.ravel()
    for step, stride in ((n, 1), (1, n)):  # rows, then columns
        places = {"offx": i * step, "incx": stride, "offy": j * step, "incy": stride}
        drot(flat, flat, cosine, -sine, n=n, **places, overwrite_x=True, overwrite_y=True)
