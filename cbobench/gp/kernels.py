"""Kernels with k(x, x) <= 1, as the papers' Assumption 2 asks, and the features of a kernel on a
finite set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import Misuse

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
Actions = NDArray[Any]
"""Indices (...,) of a finite set, or points (..., d) of a box; of a play, one per replicate."""
StationaryName = Literal["se", "matern12", "matern32", "matern52"]
KernelName = Literal["se", "matern12", "matern32", "matern52", "linear"]
SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


class Kernel(Protocol):
    """A positive semi-definite function of two points."""

    def __call__(self, left: Array, right: Array) -> Array:
        """Covariances of the rows of `left` (a, d) with the rows of `right` (b, d), shape (a,
        b).
        """


AT_ONCE = 2**18  # pairs of points per batch, so that intermediate arrays stay small
IN_CACHE = 2**14  # pairs of points per batch, so that they stay in a core's cache


def distances(left: Array, right: Array) -> Array:
    """Return Euclidean distances of rows, shape (a, b)."""
    return of_distances(left, right, lambda r: r)


def of_distances(left: Array, right: Array, profile: Callable[[Array], Array]) -> Array:
    """Return a function of the Euclidean distances of rows, shape (a, b), a few rows at a time."""
    values = np.empty((len(left), len(right)))
    step = max(1, IN_CACHE // max(1, len(right)))
    for i in range(0, len(left), step):
        values[i : i + step] = profile(np.sqrt(_squared_distances(left[i : i + step], right)))
    return values


def _squared_distances(left: Array, right: Array) -> Array:
    """Return squared Euclidean distances of rows, shape (a, b)."""
    if left.shape[1] >= 8:  # so many numbers NumPy's sum adds in another order
        return ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=2)
    return _summed_squares(left, right)


def squared_lengths(delta: Array) -> Array:
    """Return squared lengths of vectors (..., d); NumPy's sum over a short last axis takes four
    times as long.
    """
    total = delta[..., 0] ** 2
    for i in range(1, delta.shape[-1]):
        total += delta[..., i] ** 2
    return total


@dataclass(frozen=True)
class SquaredExponential:
    """k(x, x') = exp(-|x - x'|^2 / (2 l^2))."""

    lengthscale: float

    def __call__(self, left: Array, right: Array) -> Array:
        return of_distances(left, right, lambda r: np.exp(-0.5 * (r / self.lengthscale) ** 2))

    def profile(self, squared: Array) -> Array:
        """k as a function of the squared distance u."""
        return np.exp(squared * (-0.5 / self.lengthscale**2))

    def slopes(self, squared: Array) -> tuple[Array, Array, Array]:
        """k, dk/du and d²k/du² at squared distances u."""
        k = self.profile(squared)
        rate = -0.5 / self.lengthscale**2
        return k, rate * k, rate**2 * k


@dataclass(frozen=True)
class Matern:
    """The Matérn kernel for smoothness nu = 1/2, 3/2 or 5/2 (Rasmussen & Williams 2006, eq.
    4.17).
    """

    nu: float
    lengthscale: float

    def __call__(self, left: Array, right: Array) -> Array:
        return of_distances(
            left, right, lambda r: self._of_scaled(np.sqrt(2 * self.nu) * r / self.lengthscale)
        )

    def _of_scaled(self, r: Array) -> Array:
        if self.nu == 0.5:
            return np.exp(-r)
        if self.nu == 1.5:
            return (1 + r) * np.exp(-r)
        if self.nu == 2.5:
            return (1 + r + r**2 / 3) * np.exp(-r)
        raise Misuse(f"nu is {self.nu}; allowed: 0.5, 1.5, 2.5")

    def profile(self, squared: Array) -> Array:
        """k as a function of the squared distance u."""
        return self._of_scaled(np.sqrt(2 * self.nu / self.lengthscale**2 * squared))

    def slopes(self, squared: Array) -> tuple[Array, Array, Array]:
        """k, dk/du and d²k/du² at squared distances u.

        With a = sqrt(2 nu u) / l and c = da²/du = 2 nu / l², each derivative is exp(-a) times a
        rational function of a. For nu = 1/2 the first, for nu = 3/2 the second is infinite at a =
        0; a is kept away from it there.
        """
        c = 2 * self.nu / self.lengthscale**2
        a = np.sqrt(c * squared)
        e = np.exp(-a)
        if self.nu == 2.5:
            return (1 + a + a**2 / 3) * e, -c / 6 * (1 + a) * e, c**2 / 12 * e
        away = np.maximum(a, 1e-6)
        if self.nu == 1.5:
            return (1 + a) * e, -c / 2 * e, c**2 / 4 * e / away
        return e, -c / 2 * e / away, c**2 / 4 * e * (1 + away) / away**3


@dataclass(frozen=True)
class Linear:
    """k(x, x') = x.x' / d: at most 1 on [-1, 1]^d."""

    def __call__(self, left: Array, right: Array) -> Array:
        return left @ right.T / left.shape[1]


def stationary(name: StationaryName, lengthscale: float) -> SquaredExponential | Matern:
    """Return the stationary kernel of that name."""
    if name == "se":
        return SquaredExponential(lengthscale)
    return Matern(SMOOTHNESS[name], lengthscale)


def kernel(name: KernelName, lengthscale: float) -> Kernel:
    """Return the kernel of that name; the linear one ignores `lengthscale`."""
    if name == "linear":
        return Linear()
    return stationary(name, lengthscale)


EIGENVALUES = 1000  # largest matrix whose eigenvalues are checked, in a fraction of a second


def check_covariance(matrix: Array, name: str) -> Array:
    """Return the matrix, symmetrised, if it is a covariance with k(x, x) <= 1."""
    refuse_covariance(matrix, name, len(matrix))
    return (matrix + matrix.T) / 2


def refuse_covariance(matrix: Array, name: str, eigenvalues: int = EIGENVALUES) -> None:
    """Refuse a matrix that is no covariance with k(x, x) <= 1; checks eigenvalues only up to
    `EIGENVALUES` rows.

    Raises:
        Misuse: not square, not finite, not symmetric, not positive semi-definite, or a diagonal
            above 1.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise Misuse(f"{name} has shape {matrix.shape}; a covariance is square, one row per action")
    missing = np.count_nonzero(~np.isfinite(matrix))
    if missing:
        raise Misuse(f"{name} holds {missing} missing or infinite entries; fill them in")
    scale = float(max(matrix.max(), -matrix.min())) or 1.0
    # Block by block, so that intermediate arrays stay small.
    step = max(1, AT_ONCE // max(1, len(matrix)))
    blocks = [slice(i, i + step) for i in range(0, len(matrix), step)]
    skew = max(float(np.abs(matrix[block] - matrix[:, block].T).max()) for block in blocks)
    if skew > 1e-8 * scale:
        raise Misuse(
            f"{name} is not symmetric (largest difference {skew:.3g}); a covariance must be"
        )
    lowest = float(np.linalg.eigvalsh(matrix)[0]) if len(matrix) <= eigenvalues else 0.0
    if lowest < -1e-8 * scale * len(matrix):
        raise Misuse(
            f"{name} is not positive semi-definite (lowest eigenvalue {lowest:.3g}); project or "
            "repair it"
        )
    if matrix.diagonal().max() > 1 + 1e-8:
        highest = matrix.diagonal().max()
        raise Misuse(
            f"{name} has a variance of {highest:.6g}; the theory needs k(x, x) <= 1, so divide "
            "by the largest"
        )


RIDGE = 1e-4


def smooth_norm(covariance: Array, values: Array) -> Array:
    """Return RKHS norms of regularised interpolants of functions given by their values, shape (...,
    n) to (...).

    The norm of the h that minimises Σ (value - h)² + 1e-4 |h|² over the given points: a heuristic.
    Measured or formula values need not be in the kernel's space; the norm of an exact interpolant
    would grow with every digit.
    """
    flat = values.reshape(-1, len(covariance)).T
    weights = np.linalg.solve(covariance + RIDGE * np.eye(len(covariance)), flat)
    norms = np.sqrt(np.maximum((weights * (covariance @ weights)).sum(axis=0), 0.0))
    return norms.reshape(values.shape[:-1])


RELATIVE_TRACE = 1e-13
INDEFINITE = 1e-6  # relative to the largest variance: rounding in a matrix that someone has typed
GREEDY = 1e-3  # of the largest residual variance: what a known pivot has left at least


def pivoted_cholesky(
    diagonal: Array,
    row: Callable[[int], Array],
    most: int | None = None,
    known: tuple[Sequence[int], Array] | None = None,
) -> Array | None:
    """Return features by rank, Phi^T (r, n) with Phi Phi^T = K, by pivoted Cholesky from the r rows
    of K that it requests.

    The loop stops when the remaining trace falls under `RELATIVE_TRACE` times the whole: r is 19
    for the SE kernel with lengthscale 0.2 on 100 points of [0, 1], and n for a kernel of full rank.

    Args:
        diagonal: of K, (n,).
        row: returns a row of K, (n,).
        most: None is returned as soon as r exceeds it.
        known: for a large set, likely pivots (q,), and an array for the result (most, n) whose
            first q rows are those that follow from them. Earlier rows are then subtracted by one
            product, which rounds in another order.

    Raises:
        Misuse: K is not positive semi-definite, as far as these rows tell.
    """
    residual = diagonal.copy()
    n = len(diagonal)
    largest = diagonal.max(initial=0.0)
    trace = residual.sum()
    r = 0
    # only written rows take memory
    pivots, rows = known or ((), np.empty((n if most is None else min(n, most), n)))
    while r < n and residual.sum() > RELATIVE_TRACE * trace:
        if r == most:
            return None
        pivot = int(residual.argmax())
        new = rows[r]
        # A pivot with little left would magnify rounding; those after it have rows of no use, too.
        if r < len(pivots) and residual[pivots[r]] >= GREEDY * residual[pivot]:
            pivot = pivots[r]
        else:
            pivots = ()
            new[:] = row(pivot)
            if known:
                new -= combine_features(rows[:r, pivot], rows[:r])
            else:
                for earlier in rows[:r]:
                    new -= earlier[pivot] * earlier
            new /= np.sqrt(residual[pivot])
        residual -= new**2
        # Exactly 0, so that rounding never makes it a pivot again.
        residual[pivot] = 0.0
        if residual.min() < -INDEFINITE * largest:
            excess = f"{-residual.min():.3g}"
            raise Misuse(
                f"the covariance is not positive semi-definite (by {excess}); project or repair it"
            )
        np.maximum(residual, 0.0, out=residual)
        r += 1
    return rows[:r]


def find_pivots(rows: Array, diagonal: Array) -> list[int]:
    """Return the pivots of `pivoted_cholesky`, none of them known before: the same steps on the
    same diagonal choose them again.
    """
    residual = diagonal.copy()
    pivots = []
    for row in rows:
        pivots.append(int(residual.argmax()))
        residual -= row**2
        residual[pivots[-1]] = 0.0
        np.maximum(residual, 0.0, out=residual)
    return pivots


NOTHING = 1e-12  # of a prior variance: what features leave unexplained, up to rounding


def extend_features(features: Array, prior: Array, cross: Array, covariance: Array) -> Array:
    """Return features (c, r + c) of further actions, whose first r go with those of n actions.

    With φ = (features, 0) of the n actions and these of the others, φ(x).φ(y) = k(x, y) for all n +
    c: the pivoted Cholesky factor is continued. The last c columns hold what the n actions do not
    explain.

    Args:
        features: Phi (n, r), by `pivoted_cholesky` of `prior` (n,).
        cross: covariances of the further actions with the n, (c, n).
        covariance: their covariances with one another, (c, c).
    """
    from scipy.linalg import solve_triangular  # imported late: SciPy takes long to load

    pivots = find_pivots(features.T, prior)
    inside = solve_triangular(features[pivots], cross[:, pivots].T, lower=True).T
    complement = covariance - inside @ inside.T
    outside = np.zeros_like(covariance)
    for i, variance in enumerate(covariance.diagonal()):
        if complement[i, i] > NOTHING * variance:
            outside[:, i] = complement[:, i] / np.sqrt(complement[i, i])
            outside[:i, i] = 0.0
            complement -= np.outer(outside[:, i], outside[:, i])
    return np.concatenate([inside, outside], axis=1)


TOGETHER = 32  # rows that are solved for at a time, so that the rest is products of matrices


def substitute(lower: Array, values: Array) -> Array:
    """Write the solution of L x = v over values v (r, c), and return it, for a factor L (r, r) of
    `pivoted_cholesky` at its pivots. SciPy is as fast, but takes long to import.
    """
    for i in range(0, len(lower), TOGETHER):
        part = slice(i, i + TOGETHER)
        rest = values[part] - lower[part, :i] @ values[:i]
        values[part] = np.linalg.inv(lower[part, part]) @ rest
    return values


COLUMNS = 2**11  # actions per batch, so that their features stay in a core's cache for all weights


def combine_features(weights: Array, rows: Array) -> Array:
    """Return Σ_i a_i φ_i at all actions, (..., n), for weights a (..., r) and features by rank,
    Phi^T (r, n).

    One product each, so that no bit depends on the other weights; the features are read once for
    all of them.
    """
    n = rows.shape[1]
    if n < 2 * COLUMNS:  # one batch
        return (weights[..., None, :] @ rows)[..., 0, :]
    values = np.empty((*weights.shape[:-1], 1, n))
    for batch in batches(n, COLUMNS):
        np.matmul(weights[..., None, :], rows[:, batch], out=values[..., batch])
    return values[..., 0, :]


def batches(n: int, size: int) -> Iterator[slice]:
    """Yield batches of n columns. The last takes what is left over: BLAS multiplies a few columns
    in another order.
    """
    for i in range(0, max(1, n - size + 1), size):
        yield slice(i, i + size if i + 2 * size <= n else n)


def covariances(kernel: SquaredExponential | Matern, left: Array, right: Array) -> Array:
    """Return covariances of points (..., a, d) with others (..., b, d), in units of lengthscales:
    (..., a, b).
    """
    values = np.empty((*left.shape[:-1], right.shape[-2]))
    if values.size <= IN_CACHE:
        return kernel.profile(_summed_squares(left, right))
    from scipy.spatial.distance import cdist  # imported late: SciPy takes long to load

    # A few rows at a time, so that intermediate arrays stay in a core's cache. SciPy adds one
    # coordinate after the other, too: the same bits, sooner.
    rows = max(1, IN_CACHE // values.shape[-1])
    for index in np.ndindex(values.shape[:-2]):
        for i in range(0, values.shape[-2], rows):
            part = (*index, slice(i, i + rows))
            values[part] = kernel.profile(cdist(left[part], right[index], "sqeuclidean"))
    return values


def _summed_squares(left: Array, right: Array) -> Array:
    """Return squared distances of points (..., a, d) from others (..., b, d), (..., a, b)."""
    squared = np.square(left[..., :, None, 0] - right[..., None, :, 0])
    for i in range(1, left.shape[-1]):  # one coordinate at a time, to save memory
        apart = left[..., :, None, i] - right[..., None, :, i]
        squared += np.square(apart, out=apart)
    return squared
