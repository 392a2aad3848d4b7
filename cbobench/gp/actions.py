"""Action sets. A finite one has n actions with a covariance, with or without coordinates."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from cbobench.errors import CellFailure, Misuse
from cbobench.gp.kernels import (
    COLUMNS,
    Array,
    Indices,
    Kernel,
    Linear,
    Matern,
    SquaredExponential,
    batches,
    combine_features,
    distances,
    find_pivots,
    pivoted_cholesky,
    substitute,
)
from cbobench.threads import single_thread

LARGEST = 10_000  # largest n for matrices (n, n), 0.8 GB each
SECTIONS = 64  # columns of a matrix that is not formed, computed at a time
LARGEST_EAGER = 1_000  # largest n of a matrix that is formed before something asks for it
MOST_FEATURES = 2**26  # largest size of Phi of a set without a matrix, 0.5 GB
LARGEST_RANK = 1024  # largest number of its columns, which cost O(n r²)
FEW = 2**12  # actions, or up to twice as many, among which pivots are first sought
REFINEMENTS = 2  # of weights that are fitted to a function; one gives all digits there are


class Finite:
    """n actions.

    Args:
        covariance: k(x, x') of every pair, shape (n, n).
        points: coordinates, shape (n, d), or None for actions without coordinates (sensors,
            stocks).
        kernel_name: the kernel, for closed-form rates of the information gain ("given" has none).
        names: a name per action, for figures and tables.

    Attributes:
        space: the typed inputs that actions are made of, if there are any
            (`problems.tables.inputs.InputSpace`).
        firsts: of every input the first of its coordinates, as a category has several, (inputs,);
            None if each coordinate is an input.
    """

    space: Any = None
    firsts: Indices | None = None

    def __init__(
        self,
        covariance: Array,
        points: Array | None = None,
        kernel_name: str = "given",
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.points = points
        self.kernel_name = kernel_name
        self.names = names
        self._matrix = covariance
        self._rank_exceeds = 0  # the rank is known to exceed this number

    @staticmethod
    def at(
        inputs: Array,
        kernel: Kernel,
        kernel_name: str = "given",
        names: tuple[str, ...] | None = None,
        points: Array | None = None,
    ) -> Finite:
        """Return actions under a kernel of coordinates; of more than `LARGEST_EAGER`, without
        forming their covariance.

        Args:
            inputs: the kernel's inputs, (n, d).
            points: the actions' coordinates, if they differ from `inputs`.
        """
        points = inputs if points is None else points
        # The rows of a linear kernel have other bits than its matrix.
        is_formed = len(inputs) <= LARGEST_EAGER or isinstance(kernel, Linear)
        if is_formed and len(inputs) <= LARGEST:
            return Finite(kernel(inputs, inputs), points, kernel_name, names)
        kind = Scattered if len(inputs) <= LARGEST else Large
        return kind(inputs, kernel, points, kernel_name, names)

    @property
    def covariance(self) -> Array:
        """k(x, x') of every pair, (n, n).

        Raises:
            CellFailure: there are more actions than `LARGEST`.
        """
        return self._matrix

    @property
    def n(self) -> int:
        return len(self._matrix)

    @property
    def d(self) -> int:
        """Input dimension; 0 without coordinates."""
        if self.points is None:
            return 0
        return self.points.shape[1]

    @property
    def units(self) -> Array:
        """The coordinates scaled to the unit cube by their bounding box, (n, d)."""
        assert self.points is not None
        low = self.points.min(axis=0)
        high = self.points.max(axis=0)
        return (self.points - low) / np.where(high > low, high - low, 1.0)

    def embed(self, units: Array) -> Array:
        """Return points of the unit cube as a model sees them: as they are."""
        return units

    @property
    def prior(self) -> Array:
        """k(x, x), (n,)."""
        return self._matrix.diagonal()

    def rows(self, indices: Indices) -> Array:
        """Return k(x, x') of q actions with all, (q, n)."""
        return self._matrix[indices]

    def between(self, left: Indices, right: Indices) -> Array:
        """Return k(x, x') of some actions, (a,), with others, (b,): (a, b)."""
        return self._matrix[left[:, None], right]

    def combine(self, weights: Array) -> Array:
        """Return Σ_i a_i k(., x_i) at all actions, for q weight vectors a (q, n), one product each:
        (q, n).
        """
        return (weights[:, None, :] @ self._matrix)[:, 0]

    # Features -------------------------------------------------------------------------------------

    @single_thread()
    def _compute_features(self, most: int | None) -> Array | None:
        """Return Phi (n, r), or None if r exceeds `most`."""
        rows = pivoted_cholesky(self.prior, lambda i: self.rows(np.array([i]))[0], most)
        if rows is None:
            return None
        return np.ascontiguousarray(rows.T)

    _features: Array | None = None

    @property
    def features(self) -> Array:
        """Phi (n, r), Phi Phi^T = covariance."""
        if self._features is None:
            self._features = self._compute_features(None)
            assert self._features is not None
        return self._features

    def rank_is_at_most(self, most: int) -> bool:
        """Return whether r <= `most`. Stops counting there: all features of a rough kernel on
        10,000 actions take minutes.
        """
        if self._features is not None or most >= self.n:
            return self.features.shape[1] <= most
        if most > self._rank_exceeds:
            self._features = self._compute_features(most)
            self._rank_exceeds = most if self._features is None else self._rank_exceeds
        return self._features is not None

    # Metrics and norms ----------------------------------------------------------------------------

    def check_pairs(self, option: str, advice: str) -> None:
        """Raise `Misuse` if something (`option`) would compare all pairs of more actions than
        `LARGEST`.
        """
        if self.n > LARGEST:
            raise Misuse(f"{option} compares {self._all_pairs}; {advice}")

    @property
    def _all_pairs(self) -> str:
        """What would not fit into memory, and what would, in words."""
        size = f"{8e-9 * self.n**2:.0f} GB for {self.n:,} actions"
        return f"all pairs of actions, {size}; allowed: {LARGEST:,} actions"

    @cached_property
    def input_metric(self) -> Array | None:
        """Return Euclidean distances (n, n), or None without coordinates."""
        if self.points is None:
            return None
        return distances(self.points, self.points)

    @cached_property
    def kernel_metric(self) -> Array:
        """Return d_k(x, x') = sqrt(k(x,x) + k(x',x') - 2 k(x,x')), shape (n, n): |g(x) - g(x')| <=
        |g|_k d_k(x, x').
        """
        metric = np.empty((self.n, self.n))
        for i, row in enumerate(metric):
            row[:] = self._metric_row(i)
        return metric

    def _metric_row(self, i: int) -> Array:
        """Return a row of `kernel_metric`."""
        return np.sqrt(np.maximum(self.prior[i] + self.prior - 2 * self.covariance[i], 0.0))

    @cached_property
    def steepness(self) -> float:
        """Return the largest d_k(x, x') / |x - x'| over pairs of different points."""
        assert self.input_metric is not None
        slopes = (
            (self._metric_row(i)[row > 0] / row[row > 0]) for i, row in enumerate(self.input_metric)
        )
        return max(float(row_slopes.max(initial=0.0)) for row_slopes in slopes)

    def norm(self, values: Array) -> Array:
        """Return RKHS norms of functions given by their values, shape (..., n) to (...).

        Least squares in feature space. A function that the features approximate to a relative 1e-5
        gets the norm of
        that approximation: a constant under an SE kernel of numerical rank 19 is approximated to
        1e-7, but its norm, and so that of f minus a constant, moves by some 1e-6 with the CPU's
        arithmetic. Any other function is not in the space, and its norm is infinite.
        """
        flat = values.reshape(-1, self.n).T
        weights, errors = self._fit(flat)
        norms = np.where(
            errors <= 1e-5 * np.abs(flat).max(axis=0), np.linalg.norm(weights, axis=0), np.inf
        )
        return norms.reshape(values.shape[:-1])

    def _fit(self, values: Array) -> tuple[Array, Array]:
        """Return weights (r, q) of the features that are nearest to functions (n, q), and the
        largest errors (q,).
        """
        weights, *_ = np.linalg.lstsq(self.features, values, rcond=None)
        return np.asarray(weights), np.abs(self.features @ weights - values).max(axis=0)


class Scattered(Finite):
    """A set whose covariances are computed from coordinates; a matrix (n, n) is formed only if
    something asks for it.

    Args:
        inputs: the kernel's inputs, (n, d).
        kernel: the kernel of these.
        points, kernel_name, names: as of `Finite`.
    """

    def __init__(
        self,
        inputs: Array,
        kernel: Kernel,
        points: Array,
        kernel_name: str,
        names: tuple[str, ...] | None,
    ) -> None:
        super().__init__(np.empty((0, 0)), points, kernel_name, names)
        self.kernel = kernel
        self.inputs = inputs

    @cached_property
    @single_thread()
    def covariance(self) -> Array:  # type: ignore[override]
        return self.kernel(self.inputs, self.inputs)

    @property
    def n(self) -> int:
        return len(self.inputs)

    @cached_property
    @single_thread()
    def prior(self) -> Array:  # type: ignore[override]
        if isinstance(self.kernel, SquaredExponential | Matern):
            return np.ones(self.n)  # to the last bit what pairs of equal points have
        chunks = (self.inputs[i : i + 64] for i in range(0, self.n, 64))
        return np.concatenate([self.kernel(points, points).diagonal() for points in chunks])

    def rows(self, indices: Indices) -> Array:
        return self.kernel(self.inputs[indices], self.inputs)

    def between(self, left: Indices, right: Indices) -> Array:
        return self.kernel(self.inputs[left], self.inputs[right])

    def combine(self, weights: Array) -> Array:
        values = np.empty((len(weights), 1, self.n))
        for batch in batches(self.n, SECTIONS):
            np.matmul(
                weights[:, None],
                self.kernel(self.inputs, self.inputs[batch]),
                out=values[..., batch],
            )
        return values[:, 0]


class Large(Scattered):
    """A set of more than `LARGEST` actions: all is done with its features, and no matrix (n, n) is
    formed.

    Raises:
        Misuse: the kernel has too many features on these points (`features`, `rank_is_at_most`).
    """

    @property
    def covariance(self) -> Array:  # type: ignore[override]
        raise CellFailure(f"something asked for {self._all_pairs}")

    def combine(self, weights: Array) -> Array:
        inner = weights[:, None, :] @ self.features
        return combine_features(inner[:, 0], self.features.T)

    def rank_is_at_most(self, most: int) -> bool:
        return self.features.shape[1] <= most

    @cached_property
    @single_thread()
    def _root(self) -> Array:
        """R (r, r) of Phi = Q R, with which R^T R = Phi^T Phi is solved to more digits than that
        product has. A few actions at a time, which stay in a core's cache.
        """
        root = np.empty((0, self.features.shape[1]))
        for batch in batches(self.n, COLUMNS):
            stacked = np.concatenate([root, self.features[batch]])
            root = np.asarray(np.linalg.qr(stacked, mode="r"))
        return root

    def _fit(self, values: Array) -> tuple[Array, Array]:
        """Factorise Phi once for all functions; one at a time, so that its digits do not depend on
        the others.

        The equations R^T R w = Phi^T y, refined by their residuals, are as exact as a factorisation
        of each function's own (Björck 1987, corrected seminormal equations).
        """
        from scipy.linalg import solve_triangular  # imported late: SciPy takes long to load

        weights = np.zeros((values.shape[1], len(self._root)))
        errors = np.zeros(values.shape[1])
        for i, y in enumerate(values.T):
            w = weights[i]
            residual = np.ascontiguousarray(y)
            for _ in range(1 + REFINEMENTS):
                half = solve_triangular(self._root, self.features.T @ residual, trans="T")
                w += solve_triangular(self._root, half)
                residual = y - w @ self.features.T
            errors[i] = np.abs(residual).max()
        # every function's weights side by side, and so added up in one order
        return weights.T, errors

    @single_thread()
    def _compute_features(self, most: int | None) -> Array:
        """Return Phi as a view of Phi^T (r, n), with which posteriors multiply."""
        allowed = min(LARGEST_RANK, MOST_FEATURES // self.n)
        rows = self._sketched_rows(allowed)
        if rows is None:
            raise Misuse(
                f"{self.kernel_name} has more than {allowed} features on {self.n:,} actions, too "
                "many; allowed: "
                f"{LARGEST:,} actions, or a smoother kernel or a longer lengthscale"
            )
        return rows.T

    def _sketched_rows(self, most: int) -> Array | None:
        """Return Phi^T (r, n), or None if r exceeds `most`.

        A row after the other, each reads all before it from memory; rows of known pivots are
        solved for, a few columns at a time. So pivots are first sought among a few actions.
        """
        few = np.arange(0, self.n, self.n // FEW | 1)  # odd, as grids have periods of even length
        sketch = pivoted_cholesky(
            self.prior[few],
            lambda i: self.between(few[[i]], few)[0],
            most,
            ((), np.empty((most, len(few)))),
        )
        if sketch is None:
            return None
        chosen = find_pivots(sketch, self.prior[few])
        lower = np.tril(sketch[:, chosen].T)
        pivots = few[chosen]
        rows = np.empty((most, self.n))
        for batch in batches(self.n, COLUMNS):
            rows[: len(pivots), batch] = substitute(
                lower, self.kernel(self.inputs[pivots], self.inputs[batch])
            )
        return pivoted_cholesky(
            self.prior, lambda i: self.rows(np.array([i]))[0], most, (pivots.tolist(), rows)
        )


@cache
def rows_of(replicates: int) -> Indices:
    """Return 0, ..., S - 1: a round indexes by it, and must not pay for a new one each time."""
    return np.arange(replicates)


def smallest(values: Array, count: int) -> Indices:
    """Return indices of the smallest of values (..., k), (..., count), ascending; of equal values
    the first count.

    `argpartition` costs the same, but which of equal values it takes, and in which order it returns
    them, depends on the instructions that NumPy uses.
    """
    limit = np.partition(values, count - 1, axis=-1)[..., count - 1 : count]
    mask = values < limit
    ties = values == limit
    missing = count - np.count_nonzero(mask, axis=-1, keepdims=True)
    if (np.count_nonzero(ties, axis=-1, keepdims=True) == missing).all():
        mask |= ties
    else:
        mask |= ties & (ties.cumsum(axis=-1) <= missing)
    return np.nonzero(mask)[-1].reshape(*values.shape[:-1], count)


# of a score's range: scores that agree so far tie, and rounding must not choose among them
TIED = 1e-10
# a range counts up to this multiple of the best score, as a huge price on some actions widens it
OF_BEST = 100.0
ROUNDED = 1e-14  # of the best score: the range of a plateau may be nothing but rounding
WIDEST = 2 * (TIED * OF_BEST + ROUNDED)  # of the best score: what falls shorter ties with none


def tie_widths(score: Array, top: Array) -> Array:
    """Return by how much a score may fall short of the best and ties with it, (S,).

    Args:
        score: (S, n), no entry NaN.
        top: the largest of every row, (S,).
    """
    size = np.abs(top)
    low = np.minimum.reduce(score, axis=1)
    if np.maximum.reduce(size) == np.inf:  # there, only equal scores tie
        endless = size == np.inf
        return np.where(
            endless,
            0.0,
            tie_widths(np.where(endless[:, None], 0.0, score), np.where(endless, 0.0, top)),
        )
    return TIED * np.minimum(top - low, OF_BEST * size) + ROUNDED * size


def levels(score: Array, widths: Array | None = None) -> Array:
    """Return a score (S, n) in steps of what ties, 0 at the best: for comparisons that rounding
    must not decide.

    Args:
        widths: what ties, (S,); None for `tie_widths`. Where it is 0, the score is returned.
    """
    top = score.max(axis=1)
    width = (tie_widths(score, top) if widths is None else widths)[:, None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.where(width > 0, -np.floor((top[:, None] - score) / width), score)


def break_ties(score: Array, coin: Array, widths: Array | None = None) -> Indices:
    """Return the best action of every replicate, ties broken at random.

    A stationary prior makes round 1 a total tie, truncation makes more ties, and far from all data
    scores differ by
    rounding alone: a plain argmax would always favour the lowest index, or what one kind of CPU
    rounds up.

    Args:
        score: (S, n).
        coin: a uniform draw per replicate, (S,), which picks among equally good actions.
        widths: how near to the best a score ties with it, (S,); None for `tie_widths`.

    Raises:
        CellFailure: a score is not a number, or every score of a replicate is minus infinity.
    """
    best = score.argmax(axis=1)  # in a row with a NaN, its position
    replicates, n = score.shape
    top = score[rows_of(replicates), best]
    least = top[top.argmin()]  # a NaN, if there is one
    if not least > -np.inf:
        s = int((~(top > -np.inf)).argmax())
        if np.isnan(top[s]):
            problem = "is not a number"
        else:
            problem = "is minus infinity everywhere: no action is allowed"
        raise CellFailure(f"the score of replicate {s} {problem}")
    if widths is None:
        limit = top * (1 - WIDEST)
        if least < 0:
            limit = np.minimum(limit, top * (1 + WIDEST))
        if (score >= limit[:, None]).reshape(-1).nonzero()[0].size == replicates:
            return best  # nothing ties, whatever the range, which takes as long again to find
        widths = tie_widths(score, top)
    tied = score >= (top - widths)[:, None]
    hits = tied.reshape(-1).nonzero()[0]  # in a row of its own, several times as fast
    if hits.size == replicates:
        return best
    per_row = np.bincount(hits // n, minlength=replicates)
    chosen = per_row.cumsum() - per_row + (coin * per_row).astype(np.intp)
    return hits[chosen] % n
