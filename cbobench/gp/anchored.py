"""A GP beside a point whose value is known, without the digits that its covariance matrix loses
there.

Where observations without noise lie close together, the matrix of their covariances k(x, y) is
nearly singular: its entries are almost 1, and what tells the observations apart are the last
digits. Given the value at the anchor x₀, take lengths in lengthscales from x₀, a = |x|, b = |y| and
r = |x - y|. Then

    k(x, y) - k(x, 0) k(0, y) = ψ(x).ψ(y) + c(x, y),   ψ(x) = √(5/3) (1 + √5 a) exp(-√5 a) x,

where ψ carries the unknown slope at x₀ (of variance 5/3 along every axis), and c is the covariance
that is left once the slope is known, too. It is of order a² b². With

    κ(r) = k(r) - 1 + 5/6 r²   and   p(r) = 1 - (1 + √5 r) exp(-√5 r),

both summed as series where r is small, it is a sum of terms that are as small as itself:

    c = 5/3 x.y (p(a) + p(b) - p(a) p(b)) + κ(r) - κ(a) - κ(b) - 25/36 a² b² + 5/6 (a² κ(b) + b²
    κ(a)) - κ(a) κ(b).

So the deviation beside x₀ is about (distance in lengthscales)² once the slopes are known, at any
distance, and steps by such a model converge quadratically. The kernel is Matérn-5/2, as in
`cbobench.gp.fit`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.fit import Fitted
from cbobench.gp.kernels import Array
from cbobench.gp.maximise import polish
from cbobench.gp.parts import Parts
from cbobench.gp.posteriors.factor import lapack
from cbobench.gp.posteriors.interface import Jet, Mask
from cbobench.gp.taylor import STEP, taylor

TERMS = 24  # of a series, which is used up to √5 r = 1
# added to correlations, the first one with which they have a factor
JITTERS = 10.0 ** np.arange(-13, 4)
LEAST = 1e-8  # nearer to the anchor, in units of the cube, an observation is the anchor
ROUNDING = 1e-14  # of a value, in units of its change over the box
DIFFERENCE = 1e-2  # between points of differences, in units of the box
ZOOM, ZOOMS = 0.05, 3  # each time the box around the best point is so much smaller


def _coefficients(first: int, factor: Array) -> Array:
    """Coefficients of z^i, i from `first`, of a series with terms (-1)^i factor_i / i!."""
    return np.array([(-1.0) ** i * factor[i] / math.factorial(i) for i in range(first, TERMS)])


_I = np.arange(TERMS, dtype=np.float64)
_OF_KERNEL = _coefficients(4, 1 - _I + _I * (_I - 1) / 3)  # of (1 + z + z²/3) exp(-z)
_OF_SLOPE = _coefficients(2, 1 - _I)  # of (1 + z) exp(-z)


def _series(coefficients: Array, first: int, z: Array) -> Array:
    total = np.zeros_like(z)
    for coefficient in coefficients[::-1]:
        total = total * z + coefficient
    return np.asarray(total * z**first)


def kernel_remainder(r: Array) -> Array:
    """κ: the Matérn-5/2 kernel less 1 - 5/6 r²."""
    z = math.sqrt(5) * r
    direct = (1 + z + z * z / 3) * np.exp(-z) - 1 + z * z / 6
    return np.where(z < 1, _series(_OF_KERNEL, 4, np.minimum(z, 1.0)), direct)


def slope_loss(r: Array) -> Array:
    """p: how much of the slope at the anchor is no longer there at a distance."""
    z = math.sqrt(5) * r
    return np.where(z < 1, -_series(_OF_SLOPE, 2, np.minimum(z, 1.0)), 1 - (1 + z) * np.exp(-z))


@dataclass(frozen=True, slots=True)
class Around:
    """Points around the anchor, and what each adds to covariances.

    Attributes:
        x: in lengthscales, (k, d); squared: a², (k,).
        loss, remainder: p(a) and κ(a), (k,).
    """

    x: Array
    squared: Array
    loss: Array
    remainder: Array

    @classmethod
    def of(cls, x: Array) -> Around:
        squared = (x * x).sum(axis=-1)
        a = np.sqrt(squared)
        return cls(x, squared, slope_loss(a), kernel_remainder(a))

    @property
    def slopes(self) -> Array:
        """ψ, (k, d)."""
        return math.sqrt(5 / 3) * self.x * (1 - self.loss)[:, None]

    @property
    def level(self) -> Array:
        """How much less than the anchor's deviation from the centre a point inherits: k(x, 0) - 1,
        (k,).
        """
        return self.remainder - 5 / 6 * self.squared

    @property
    def variance(self) -> Array:
        """c(x, x), (k,)."""
        squared, loss, remainder = self.squared, self.loss, self.remainder
        rest = 5 / 3 * squared * loss * (2 - loss) - 25 / 36 * squared * squared
        return np.asarray(rest - remainder * (2 - 5 / 3 * squared + remainder))


def covariance(left: Around, right: Around) -> Array:
    """c between points (a, d) and others (b, d), (a, b)."""
    apart = left.x[:, None] - right.x[None]
    products = (left.x[:, None] * right.x[None]).sum(axis=2)
    r = np.sqrt((apart * apart).sum(axis=2))
    loss_left, loss_right = left.loss[:, None], right.loss[None]
    of_slopes = 5 / 3 * products * (loss_left + loss_right - loss_left * loss_right)
    a, b, of_left, of_right = (
        left.squared[:, None],
        right.squared[None],
        left.remainder[:, None],
        right.remainder[None],
    )
    of_levels = 25 / 36 * a * b - 5 / 6 * (a * of_right + b * of_left) + of_left * of_right
    return np.asarray(of_slopes + kernel_remainder(r) - of_left - of_right - of_levels)


class AnchoredModel:
    """One function beside an anchor.

    Args:
        offsets: of the other observations from the anchor, in the cube, (k, d), none nearer than
            `LEAST`.
        changes: of the values there from the anchor's, (k,).
        value: the anchor's.
        fitted: the function's hyperparameters; its noise counts as none.

    Raises:
        CellFailure: no jitter makes the correlations positive definite.
    """

    def __init__(self, offsets: Array, changes: Array, value: float, fitted: Fitted) -> None:
        self.fitted = fitted
        self.above = (value - fitted.centre) / fitted.amplitude
        self.around = Around.of(offsets / fitted.lengthscales)
        rest = changes / fitted.amplitude - self.above * self.around.level
        # In units of their own deviations, observations at all distances are alike.
        self.scale = 1 / np.sqrt(np.maximum(self.around.variance, 1e-300))
        self.root = _factor(covariance(self.around, self.around) * self.scale[:, None] * self.scale)
        self.carried = self._whiten(self.around.slopes)
        white = self._whiten(rest[:, None])[:, 0]
        # The slope at the anchor, whose prior is standard normal in units of √(5/3), is that of a
        # regression.
        d = offsets.shape[1]
        self.precision = np.linalg.cholesky(np.eye(d) + np.matmul(self.carried.T, self.carried))
        pull = np.matmul(self.carried.T, white[:, None])
        self.slope = lapack().dpotrs(self.precision, pull, lower=1)[0][:, 0]
        self.left = white - np.matmul(self.carried, self.slope[:, None])[:, 0]

    def _whiten(self, columns: Array) -> Array:
        return np.asarray(lapack().dtrtrs(self.root, self.scale[:, None] * columns, lower=1)[0])

    def __call__(self, offsets: Array) -> tuple[Array, Array]:
        """Return means of the change from the anchor's value, and deviations, (q,), at offsets (q,
        d).
        """
        near = Around.of(offsets / self.fitted.lengthscales)
        white = self._whiten(covariance(self.around, near))
        lack = near.slopes.T - np.matmul(self.carried.T, white)
        mean = self.above * near.level + np.matmul(near.slopes, self.slope[:, None])[:, 0]
        mean += np.matmul(self.left[None], white)[0]
        unknown_slope = lapack().dtrtrs(self.precision, lack, lower=1)[0]
        variance = np.maximum(near.variance - (white * white).sum(axis=0), 0.0)
        variance = variance + (unknown_slope * unknown_slope).sum(axis=0)
        return self.fitted.amplitude * mean, self.fitted.amplitude * np.sqrt(variance)


def _factor(correlations: Array) -> Array:
    """Return the lower Cholesky factor, with the least jitter that gives one."""
    for jitter in JITTERS:
        root, info = lapack().dpotrf(correlations + jitter * np.eye(len(correlations)), lower=1)
        if not info:
            return np.asarray(root)
    raise CellFailure("the correlations beside a point have no Cholesky factor")


NEIGHBOURS = 4  # times d + 1 observations beside the anchor
REACH = 4.0  # of a step, times the distance of the d-th nearest observation


def step_from_best(
    points: Array, observed: Array, modelled: Array, fits: Sequence[Fitted], width: float
) -> tuple[Array, float] | None:
    """Return the point of the cube, (d,), that is best by models anchored at the best feasible
    observation, and f at the anchor.

    It has the highest mean of f among the points near the anchor at which every g_j is at most 0 by
    `width` deviations. None if nothing feasible was observed, or no step gains more than rounding.

    Args:
        points: of the observations, in the cube, (n, d).
        observed: f and g there, without noise, (1 + m, n).
        modelled: the same as it is modelled: g, or its bilog.
        fits: hyperparameters of f, g_1, ..., g_m.
    """
    feasible = (observed[1:] <= 0).all(axis=0)
    if not feasible.any():
        return None
    anchor = int(np.where(feasible, observed[0], -np.inf).argmax())
    offsets = points - points[anchor]
    distance = np.abs(offsets).max(axis=1)
    d = points.shape[1]
    near = np.argsort(distance, kind="stable")
    near = near[distance[near] > LEAST][: NEIGHBOURS * (d + 1)]
    if not len(near):
        return None
    values = modelled[:, anchor]
    models = [
        AnchoredModel(offsets[near], row[near] - value, float(value), fitted)
        for row, value, fitted in zip(modelled, values, fits, strict=True)
    ]
    # Models are trusted as far as they were tried in as many directions as there are.
    reach = REACH * distance[near][min(d, len(near)) - 1]
    low, high = np.maximum(-points[anchor], -reach), np.minimum(1 - points[anchor], reach)
    step = best_step(models, values[1:], width, low, high)
    gain = float(models[0](step[None])[0][0])
    if gain <= ROUNDING * max(abs(float(values[0])), fits[0].amplitude):
        return None
    return np.clip(points[anchor] + step, 0.0, 1.0), float(observed[0, anchor])


def best_step(
    models: Sequence[AnchoredModel], constraints: Array, width: float, low: Array, high: Array
) -> Array:
    """Return the offset (d,) of the best mean of f at which every g_j is at most 0 by `width`
    deviations.

    Args:
        models: of f, g_1, ..., g_m.
        constraints: g at the anchor, (m,).
        low, high: sides of the box of offsets, (d,), which holds 0.
    """
    best = np.zeros(len(low))
    for zoom in range(1 + ZOOMS):
        reach = ZOOM**zoom * (high - low)
        sides = np.maximum(low, best - reach / 2), np.minimum(high, best + reach / 2)
        best = _climb(models, constraints, width, *sides, best)
    return best


def _climb(
    models: Sequence[AnchoredModel],
    constraints: Array,
    width: float,
    low: Array,
    high: Array,
    start: Array,
) -> Array:
    """Return the best offset (d,) of a box by sequential quadratic programming from near
    `start`.
    """
    side = high - low
    levels = np.concatenate([[0.0], constraints])

    def values(points: Array) -> Array:
        moments = [model(low + points * side) for model in models]
        changes = np.stack(
            [
                mean + (width * deviation if j else 0.0)
                for j, (mean, deviation) in enumerate(moments)
            ]
        )
        return levels[:, None] + changes

    # Every function is in units of its largest change along an axis, or of its value where it
    # hardly changes: kinks that are far off stay far off.
    d = len(low)
    middle = (start - low) / side
    probes = values(np.concatenate([middle[None], middle + np.eye(d) / 2, middle - np.eye(d) / 2]))
    units = np.maximum(np.abs(probes[:, 1:] - probes[:, :1]).max(axis=1), np.abs(probes[:, 0]))
    units = np.where(units > 0, units, 1.0)
    layout = taylor(d)
    steps, powers = layout.steps * (DIFFERENCE / STEP), (DIFFERENCE / STEP) ** layout.orders

    def jet(points: Array, mask: Mask) -> Jet:
        q, n = points.shape[1], len(steps)
        around = (points[0, :, None] + steps).reshape(q * n, d)
        shares = (values(around) / units[:, None]).reshape(1, len(models), q, n)
        certain = np.zeros((1, q, n))
        certain[..., 0] = 1.0
        return Jet(np.matmul(shares, layout.models) / powers, certain)

    def score(mean: Array, variance: Array, points: Array) -> Parts:
        m = mean.shape[1] - 1
        return Parts(mean[:, 0], mean[:, 1:] + ROUNDING, np.full((1, m), np.inf))

    starts = np.clip(
        np.concatenate([middle[None], middle + np.eye(d) / 4, middle - np.eye(d) / 4]), 0.0, 1.0
    )
    points, reached = polish(score, jet, starts[None], 0.5)
    return np.clip(low + points[0, int(reached[0].argmax())] * side, low, high)
