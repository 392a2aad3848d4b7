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

both summed as series where r is small, it is a sum of terms that are as small as itself, for a ≤ b
and with s = r² - b²:

    c = (κ(r) - κ(b) - 5/6 p(b) s) + 5/3 x.y p(a) (1 - p(b)) + 5/6 a² (p(b) + κ(b) - 5/6 b²) - κ(a)
    (1 + κ(b) - 5/6 b²),

where the bracket, what κ as a function of r² leaves above its tangent, is an integral if s is
small.

So the deviation beside x₀ is about (distance in lengthscales)² once the slopes are known, at any
distance, and steps by such a model converge quadratically. The kernel is Matérn-5/2, as in
`cbobench.gp.fit`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.beliefs import Parts
from cbobench.gp.fit import Fitted
from cbobench.gp.jets import Jet, taylor
from cbobench.gp.kernels import Array, Indices, Mask, squared_lengths
from cbobench.gp.maximise import Pace, Surface, polish
from cbobench.gp.posteriors.factor import lapack

TERMS = 24  # of a series, which is used up to √5 r = 1
# added to correlations, the first one with which they have a factor
JITTERS = 10.0 ** np.arange(-13, 4)
ROOT = math.sqrt(5 / 3)
SMALL = 0.1  # of b²: a smaller |s| is integrated over
NODES = np.polynomial.legendre.leggauss(6)
LEAST = 1e-8  # nearer to the anchor, in units of the cube, an observation is the anchor
ROUNDING = 1e-14  # of a value, in units of its change over the box
# the deviation of an unknown slope over that of a learned one: their squares fit into a double
SURE = 1e4
DIFFERENCE = 1e-2  # between points of differences, in units of the box
LOCAL = Pace({3: 8, 6: 4, 9: 2}, 99, 10.0, 6)  # climbs from starts that lie close together
ZOOM, ZOOMS = 0.05, 3  # each time the box around the best point is so much smaller


def _coefficients() -> Array:
    """Return coefficients of p/z² and κ/z² as series in z, lowest first, (`TERMS`, 2, 1): those of
    exp(-z) times polynomials.
    """
    i = np.arange(2, 2 + TERMS, dtype=np.float64)
    signs = np.array([(-1.0) ** n / math.factorial(n) for n in range(2, 2 + TERMS)])
    of_kernel = np.where(i < 4, 0.0, 1 - i + i * (i - 1) / 3)
    return np.stack([-(1 - i) * signs, of_kernel * signs], axis=1)[..., None]


SERIES = _coefficients()


def losses(r: Array) -> tuple[Array, Array, Array]:
    """Return p(r), how much of the slope at the anchor is no longer there at a distance, κ(r), the
    Matérn-5/2 kernel less 1 - 5/6 r², and e = exp(-√5 r).
    """
    z = math.sqrt(5) * r
    decay = np.exp(-z)
    near = z < 1
    both = np.stack([1 - (1 + z) * decay, (1 + z + z * z / 3) * decay - 1 + z * z / 6])
    small = z[near]
    total = np.zeros((2, len(small)))
    for coefficient in SERIES[::-1]:
        total *= small
        total += coefficient
    both[:, near] = total * (small * small)
    return both[0], both[1], decay


@dataclass(frozen=True, slots=True)
class Around:
    """Points around the anchor, and what each adds to covariances.

    Attributes:
        x: in lengthscales, (..., k, d); squared: a², (..., k).
        loss, remainder, decay: p(a), κ(a) and e(a), (..., k).
    """

    x: Array
    squared: Array
    loss: Array
    remainder: Array
    decay: Array

    @classmethod
    def of(cls, x: Array) -> Around:
        squared = squared_lengths(x)
        return cls(x, squared, *losses(np.sqrt(squared)))

    @property
    def slopes(self) -> Array:
        """ψ, (..., k, d)."""
        return ROOT * self.x * (1 - self.loss)[..., None]

    @property
    def level(self) -> Array:
        """How much less than the anchor's deviation from the centre a point inherits: k(x, 0) - 1,
        (..., k).
        """
        return self.remainder - 5 / 6 * self.squared

    @property
    def variance(self) -> Array:
        """c(x, x), (..., k)."""
        squared = self.squared
        loss = self.loss
        remainder = self.remainder
        rest = 5 / 3 * squared * loss * (2 - loss) - 25 / 36 * squared * squared
        return rest - remainder * (2 - 5 / 3 * squared + remainder)

    def slope_rows(self) -> Array:
        """ψ and its slopes, (..., k, 1 + d, d)."""
        loss = self.loss[..., None, None]
        decay = self.decay[..., None, None]
        outer = self.x[..., None] * self.x[..., None, :]
        slopes = ROOT * ((1 - loss) * np.eye(self.x.shape[-1]) - 5 * decay * outer)
        return np.concatenate([self.slopes[..., None, :], slopes], axis=-2)

    def bend_of_variance(self) -> tuple[Array, Array]:
        """Return the first and second derivative of c(x, x) with respect to a², (..., k)."""
        u = self.squared
        p = self.loss
        k = self.remainder
        e = self.decay
        kept = 1 - p
        least = 2 - 5 / 3 * u + 2 * k
        first = 5 / 3 * (p * (2 - p) + k) + 25 / 3 * u * kept * e - 25 / 18 * u - 5 / 6 * p * least
        second = (
            25 / 3 * e * (kept * (2 - np.sqrt(5 * u) / 2) - 5 / 2 * u * e) - 25 / 12 * e * least
        )
        return first, second + 25 / 18 * (2 * p - p * p - 1)


@dataclass(frozen=True, slots=True)
class Between:
    """Points around the anchor (..., a, d), and others (..., b, d).

    Attributes:
        near, far: the points.
        apart: x - y, (..., a, b, d). loss, remainder, decay: p, κ and e of its length, (..., a, b).
    """

    near: Around
    far: Around
    apart: Array
    loss: Array
    remainder: Array
    decay: Array

    @classmethod
    def of(cls, near: Around, far: Around) -> Between:
        apart = near.x[..., :, None, :] - far.x[..., None, :, :]
        return cls(near, far, apart, *losses(np.sqrt(squared_lengths(apart))))

    def covariance(self) -> Array:
        """c, (..., a, b)."""
        left = self.near
        right = self.far
        is_left_nearer = left.squared[..., None] < right.squared[..., None, :]

        def order(of_left: Array, of_right: Array) -> tuple[Array, Array]:
            """Return what belongs to the nearer and to the farther point."""
            one = of_left[..., None]
            two = of_right[..., None, :]
            return np.where(is_left_nearer, one, two), np.where(is_left_nearer, two, one)

        a, b = order(left.squared, right.squared)
        loss_near, loss_far = order(left.loss, right.loss)
        of_near, of_far = order(left.remainder, right.remainder)
        products = left.x @ right.x.mT
        shift = a - 2 * products
        curved = self.remainder - of_far - 5 / 6 * loss_far * shift
        small = np.abs(shift) < SMALL * b
        curved[small] = _curved(b[small], shift[small])
        level = of_far - 5 / 6 * b
        of_slopes = 5 / 3 * products * loss_near * (1 - loss_far)
        levels = 5 / 6 * a * (loss_far + level) - of_near * (1 + level)
        return curved + of_slopes + levels

    def covariance_rows(self) -> Array:
        """Return c with its slopes at the first points, (p, a, 1 + d, b): dκ/dx = 5/3 p x, and
        dp/dx = 5 e x.
        """
        x = self.near.x
        y = self.far.x.mT
        kept = 1 - self.far.loss[:, None]
        level = self.far.level[:, None]
        loss = self.near.loss[..., None]
        decay = self.near.decay[..., None]
        along_y = 5 / 3 * (1 - kept * (1 - loss) - self.loss)
        along_x = 25 / 3 * decay * kept * (x @ y)
        along_x += 5 / 3 * (self.loss - loss * (1 + level) + level)
        slopes = along_y[:, :, None] * y[:, None] + along_x[:, :, None] * x[..., None]
        return np.concatenate([self.covariance()[:, :, None], slopes], axis=2)


def _curved(squared: Array, shift: Array) -> Array:
    """κ at a squared distance of b² + s, less its tangent at b²: s² times the integral of (1 - t)
    κ'' at b² + t s over t from 0 to 1, κ'' = 25/12 exp(-√5 b), by Gauss's rule.
    """
    total = np.zeros_like(shift)
    for node, weight in zip(*NODES, strict=True):
        t = (1 + node) / 2
        total += weight / 2 * (1 - t) * np.exp(-np.sqrt(5 * (squared + t * shift)))
    return 25 / 12 * shift * shift * total


class AnchoredModels:
    """p functions beside an anchor.

    Args:
        offsets: of the other observations from the anchor, in the cube, (k, d), none nearer than
            `LEAST`.
        changes: of the values there from the anchor's, (p, k).
        values: the anchor's, (p,).
        fits: the functions' hyperparameters; their noise counts as none.
        floats: the coordinates in which points may be away from the anchor, (f,); all by default.

    Raises:
        CellFailure: no jitter makes the correlations positive definite.
    """

    def __init__(
        self,
        offsets: Array,
        changes: Array,
        values: Array,
        fits: Sequence[Fitted],
        floats: Indices | None = None,
    ) -> None:
        self.floats = np.arange(offsets.shape[1]) if floats is None else floats
        self.lengthscales = np.array([fitted.lengthscales for fitted in fits])
        self.amplitude = np.array([fitted.amplitude for fitted in fits])
        self.above = (values - [fitted.centre for fitted in fits]) / self.amplitude
        self.around = around = Around.of(offsets / self.lengthscales[:, None])
        rest = changes / self.amplitude[:, None] - self.above[:, None] * around.level
        # In units of their own deviations, observations at all distances are alike.
        self.scale = 1 / np.sqrt(np.maximum(around.variance, 1e-300))[:, None]
        correlations = Between.of(around, around).covariance() * self.scale * self.scale.mT
        self.roots = [_factor(matrix) for matrix in correlations]
        rows = np.concatenate([around.slopes.mT, rest[:, None]], axis=1)
        white = _solve(self.roots, rows * self.scale)
        self.carried = white[:, :-1].mT
        white = white[:, -1:]
        # The slope at the anchor, whose prior is standard normal in units of √(5/3), is that of a
        # regression.
        self.precisions, pull = _regress(self.carried, white)
        self.slope = _solve(self.precisions, pull, trans=1)
        self.left = white - self.slope @ self.carried.mT
        self.weights = _solve(self.roots, self.left, trans=1) * self.scale

    def __call__(self, offsets: Array) -> tuple[Array, Array]:
        """Return means of the change from the anchor's value, and deviations, (p, q), at offsets
        (q, f).
        """
        near = self._around(offsets)
        white, lack, pull = self._condition(Between.of(near, self.around).covariance(), near.slopes)
        mean = self.above[:, None] * near.level + pull
        variance = np.maximum(near.variance - squared_rows(white), 0.0) + squared_rows(lack)
        return self.amplitude[:, None] * mean, self.amplitude[:, None] * np.sqrt(variance)

    def _around(self, offsets: Array) -> Around:
        """Return what covariances take of offsets (q, f)."""
        padded = np.zeros((len(offsets), self.lengthscales.shape[1]))
        padded[:, self.floats] = offsets
        return Around.of(padded / self.lengthscales[:, None])

    def _condition(self, covariances: Array, slopes: Array) -> tuple[Array, Array, Array]:
        """Return rows times L⁻ᵀ, (p, r, k), what is unknown of the slope, (p, r, d), and the part
        of means that was learned, (p, r), from rows of c (p, r, k) and ψ (p, r, d).
        """
        white = _solve(self.roots, covariances * self.scale)
        lack = _solve(self.precisions, slopes - white @ self.carried)
        pull = slopes @ self.slope.mT
        return white, lack, (pull + white @ self.left.mT)[..., 0]

    def jet(self, offsets: Array) -> tuple[Array, Array, Array]:
        """Return the mean change and the variance at offsets (q, f), (p, q, 2), their slopes, (p,
        q, 2, f), and second derivatives, (p, q, 2, f, f).
        """
        d = self.lengthscales.shape[1]
        near = self._around(offsets)
        # ψ and c with their slopes, as rows, given the observations.
        pair = Between.of(near, self.around)
        psi = near.slope_rows()
        rows = pair.covariance_rows()
        p, q, _, k = rows.shape
        white, lack, pull = self._condition(
            rows.reshape(p, q * (1 + d), k), psi.reshape(p, q * (1 + d), d)
        )
        white = white.reshape(rows.shape)
        lack = lack.reshape(psi.shape)
        pull = pull.reshape(p, q, 1 + d)
        known = lack @ lack.mT - white @ white.mT
        # The second derivatives of c and ψ count by these weights in those of mean and variance.
        unknown = _solve(self.precisions, lack[:, :, 0], trans=1)
        moved = white[:, :, 0] + unknown @ self.carried.mT
        moved = -2 * self.scale * _solve(self.roots, moved, trans=1)
        bends = self._bends(
            pair,
            np.stack(np.broadcast_arrays(self.weights, moved), axis=2),
            np.stack(np.broadcast_arrays(self.slope, 2 * unknown), axis=2),
        )
        bends[:, :, 1] += 2 * known[..., 1:, 1:]
        # In units of the cube, and of the values.
        of_level = near.x * (-5 / 3 * (1 - near.loss))[..., None]
        above = self.above[:, None]
        slopes = np.stack(
            [
                above[..., None] * of_level + pull[..., 1:],
                2 * near.bend_of_variance()[0][..., None] * near.x + 2 * known[..., 0, 1:],
            ],
            axis=2,
        )
        variance = np.maximum(near.variance - squared_rows(white[:, :, 0]), 0.0)
        variance += squared_rows(lack[:, :, 0])
        level = np.stack([above * near.level + pull[..., 0], variance], axis=2)
        units = np.stack([self.amplitude, self.amplitude**2], axis=1)[:, None]
        lengths = self.lengthscales[:, None, None]
        slopes = units[..., None] * slopes / lengths
        bends = units[..., None, None] * bends / (lengths[..., None] * lengths[..., None, :])
        floats = self.floats
        return units * level, slopes[..., floats], bends[..., floats[:, None], floats]

    def _bends(self, pair: Between, weights: Array, of_slope: Array) -> Array:
        """Return second derivatives (p, q, 2, d, d) of weighted sums of c (p, q, 2, k) and ψ (p, q,
        2, d), with those of what the mean inherits of the anchor, and of c(x, x).
        """
        near = pair.near
        far = pair.far
        apart = pair.apart
        x = near.x
        loss = near.loss[..., None]
        decay = near.decay[..., None]
        above = np.stack([self.above, np.zeros_like(self.above)], axis=1)[:, None]
        # d²κ/dx² = 5/3 p I + 25/3 e x xᵀ, and d²p/dx² = 5 e (I - 5/z x xᵀ)
        toward = 25 / 3 * ((weights * (1 - far.loss)[:, None, None]) @ far.x[:, None])
        toward -= 5 * ROOT * of_slope
        inherited = (weights @ (1 + far.level)[:, None, :, None])[..., 0] - above
        flat = (weights @ (pair.loss + far.level[:, None])[..., None])[..., 0]
        flat -= loss * inherited + above
        along = (toward @ x[..., None])[..., 0]
        z = np.maximum(np.sqrt(5 * near.squared), 1e-300)[..., None]
        first, second = near.bend_of_variance()
        of_x = -decay * (5 * along / z + 25 / 3 * inherited)
        of_eye = 5 / 3 * flat + decay * along
        of_x[..., 1] += 4 * second
        of_eye[..., 1] += 2 * first
        curved = (weights * pair.decay[:, :, None])[..., None] * apart[:, :, None]
        bends = 25 / 3 * (apart.mT[:, :, None] @ curved)
        cross = (decay[..., None] * toward)[..., None] * x[:, :, None, None]
        bends += cross + cross.mT + of_eye[..., None, None] * np.eye(x.shape[2])
        return bends + of_x[..., None, None] * (x[..., None] * x[:, :, None])[:, :, None]


def _regress(carried: Array, white: Array) -> tuple[Array, Array]:
    """Return L of I + CᵀC = L Lᵀ, (p, d, d), and L⁻¹ Cᵀ w, (p, 1, d), from C (p, k, d) and w (p, 1,
    k).

    Beside what close observations tell along their directions, CᵀC loses the I of directions of
    which none tells. If there surely is one, C itself is factorised (Björck 1996, ch. 2).
    """
    k, d = carried.shape[1:]
    with suppress(np.linalg.LinAlgError):  # all on a line
        root = np.linalg.cholesky(np.eye(d) + np.matmul(carried.mT, carried))
        if k >= d or root.max() < SURE:
            return root, _solve(root, white @ carried)
    prior = np.broadcast_to(np.eye(d), (len(carried), d, d))
    q, r = np.linalg.qr(np.concatenate([carried, prior], axis=1))
    return r.mT, white @ q[:, :k]


def _solve(roots: Sequence[Array] | Array, rows: Array, trans: int = 0) -> Array:
    """Return rows (p, q, k) times L⁻ᵀ, or L⁻¹ if transposed, of lower triangles L, p of (k, k)."""
    solve = lapack().dtrtrs
    pairs = zip(roots, rows, strict=True)
    return np.stack([solve(root, right.T, lower=1, trans=trans)[0].T for root, right in pairs])


def squared_rows(rows: Array) -> Array:
    """Return squared lengths of rows (..., k)."""
    return (rows * rows).sum(axis=-1)


def _factor(correlations: Array) -> Array:
    """Return the lower Cholesky factor, with the least jitter that gives one."""
    for jitter in JITTERS:
        root, info = lapack().dpotrf(correlations + jitter * np.eye(len(correlations)), lower=1)
        if not info:
            return root
    raise CellFailure("the correlations beside a point have no Cholesky factor")


NEIGHBOURS = 4  # times d + 1 observations beside the anchor
REACH = 4.0  # of a step, times the distance of the d-th nearest observation


def best_feasible(observed: Array) -> int | None:
    """Return which observation of f and g, (1 + m, n), is the best feasible one; None without
    one.
    """
    feasible = (observed[1:] <= 0).all(axis=0)
    if feasible.any():
        return int(np.where(feasible, observed[0], -np.inf).argmax())
    return None


def step_from_best(
    points: Array,
    observed: Array,
    modelled: Array,
    fits: Sequence[Fitted],
    width: float,
    floats: Indices | None = None,
) -> tuple[Array, float] | None:
    """Return the floats (f,) of the point of the cube that is best by models anchored at the best
    feasible observation, and by how much the model's mean of f is higher there. Whole numbers and
    choices are the anchor's.

    It has the highest mean of f among the points near the anchor at which every g_j is at most 0 by
    `width` deviations. None if nothing feasible was observed, or no step gains more than rounding.

    Args:
        points: of the observations, in the cube, as models see them, (n, d).
        observed: f and g there, without noise, (1 + m, n).
        modelled: the same as it is modelled: g, or its bilog.
        fits: hyperparameters of f, g_1, ..., g_m.
        floats: of the coordinates, those that are floats, (f,); all by default.
    """
    anchor = best_feasible(observed)
    has_no_float = floats is not None and not len(floats)
    if anchor is None or has_no_float:
        return None
    offsets = points - points[anchor]
    distance = np.abs(offsets).max(axis=1)
    d = points.shape[1]
    near = np.argsort(distance, kind="stable")
    near = near[distance[near] > LEAST][: NEIGHBOURS * (d + 1)]
    if not len(near):
        return None
    values = modelled[:, anchor]
    changes = modelled[:, near] - values[:, None]
    models = AnchoredModels(offsets[near], changes, values, fits, floats)
    # Models are trusted as far as they were tried in as many directions as there are.
    reach = REACH * distance[near][min(d, len(near)) - 1]
    centre = points[anchor, models.floats]
    low = np.maximum(-centre, -reach)
    high = np.minimum(1 - centre, reach)
    step = best_step(models, values[1:], width, low, high)
    gain = float(models(step[None])[0][0, 0])
    if gain <= ROUNDING * max(abs(float(values[0])), fits[0].amplitude):
        return None
    return np.clip(centre + step, 0.0, 1.0), gain


def best_step(
    models: AnchoredModels, constraints: Array, width: float, low: Array, high: Array
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
        best = _climb(models, constraints, width, *sides, best, zoom == 0)
    return best


def _climb(
    models: AnchoredModels,
    constraints: Array,
    width: float,
    low: Array,
    high: Array,
    start: Array,
    whole: bool,
) -> Array:
    """Return the best offset (d,) of a box by sequential quadratic programming from near
    `start`.
    """
    side, d = high - low, len(low)
    levels = np.concatenate([[0.0], constraints])[:, None]
    widths = np.where(np.arange(len(levels)) > 0, width, 0.0)[:, None]
    # Every function is in units of its largest change along an axis, or of its value where it
    # hardly changes: kinks that are far off stay far off.
    middle = (start - low) / side
    probes = np.concatenate([middle[None], middle + np.eye(d) / 2, middle - np.eye(d) / 2])
    mean, deviation = models(low + probes * side)
    reached = levels + mean + widths * deviation
    units = np.maximum(np.abs(reached[:, 1:] - reached[:, :1]).max(axis=1), np.abs(reached[:, 0]))
    units = np.where(units > 0, units, 1.0)[:, None]
    # A deviation has a cone at the anchor, which is rounded off.
    least = np.maximum(DIFFERENCE * deviation.max(axis=1, keepdims=True), 1e-300)
    layout = taylor(d)

    def jet(points: Array, mask: Mask) -> Jet:
        level, slopes, bends = models.jet(low + points[mask] * side)
        deviation = np.sqrt(level[..., 1])
        steep = slopes[:, :, 1]
        rounded = np.maximum(deviation, least)[..., None]
        rate = widths[..., None] / (2 * rounded)
        of_mean = bends[:, :, 0]
        of_variance = bends[:, :, 1]
        bent = of_variance - steep[..., None] * (steep / (2 * rounded**2))[:, :, None]
        bent = (of_mean + rate[..., None] * bent) * side * side[:, None]
        rows = [
            (levels + level[..., 0] + widths * deviation)[..., None],
            (slopes[:, :, 0] + rate * steep) * side,
            bent[..., layout.rows, layout.columns],
        ]
        shape = (points.shape[1], len(layout.steps))
        jet = Jet(np.zeros((1, len(levels), *shape)), np.zeros((1, *shape)))
        jet.mean[0][:, mask[0]] = np.concatenate(rows, axis=2) / units[..., None]
        jet.variance[..., 0] = 1.0
        return jet

    def score(mean: Array, variance: Array, points: Array) -> Parts:
        m = mean.shape[1] - 1
        return Parts(mean[:, 0], mean[:, 1:] + ROUNDING, np.full((1, m), np.inf))

    axes = np.eye(d) / 4
    around = np.concatenate([middle[None], middle + axes, middle - axes])
    starts = np.clip(around if whole else middle[None], 0.0, 1.0)
    points, reached = polish(Surface(score, jet, radius=0.5), starts[None], pace=LOCAL)
    return np.clip(low + points[0, int(reached[0].argmax())] * side, low, high)
