"""Hyperparameters of a GP from what it has observed: maximum a posteriori, with analytic gradients.

The model is y = c + f(x) + noise, f a GP with covariance s² k(x, x'), k the Matérn-5/2 kernel with
a lengthscale for every input of the unit cube. A number is one coordinate. A category has one per
choice, which share a lengthscale l: two choices add 2/l² to the squared distance wherever they
differ, whatever they are, so that k is of a weighted Hamming distance (as in SMAC: Hutter, Hoos &
Leyton-Brown 2011, and in the overlap kernel of Ru et al. 2020, which both have an exponential
there). On the measured Suzuki couplings it needs 4 lengthscales, where 24 overfit.

Observations are standardised first. A lengthscale's prior is BoTorch's (from 0.12 on; Hvarfner et
al. 2024): LogNormal(√2 + ln(d)/2, √3), d the number of coordinates, not below 0.025. Ours, where
BoTorch has s² = 1 and expects more noise (LogNormal(-4, 1), not below 1e-4): ln s² is N(0, 1), the
noise variance is LogNormal(-9, 3), not below 1e-8. All variances are in standardised units, so that
the floor is 1e-8 of the variance of the observations. The constant c is the one that maximises the
likelihood (generalised least squares).

A fit looks at no more than `MOST` observations and takes no more than `STEPS` steps; `is_due` says
after which rounds there is one. It depends on its own observations, and on the hyperparameters
before, alone. A descent from these begins with the inverse Hessian matrix of their own, as another
observation hardly bends the density otherwise. All functions that were observed at the same points
are fitted side by side, because a step of one costs little more than the calls it takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cbobench.gp.kernels import Array, Indices, Mask
from cbobench.gp.posteriors.factor import lapack

MOST = 256  # largest number of observations in a fit; beyond it they are thinned evenly
STEPS = 50
# A descent ends where the slope is flat or a step gained too little, some 1e-3 above the cost of a
# local optimum.
FLAT = 3e-2
SETTLED = 1e-5
ENOUGH = 1e-4  # share of the expected gain that a step must have
# the longest step, in logarithms, and the smallest share of a step
FARTHEST = 3.0
LEAST_SHARE = 1e-4
IMPOSSIBLE = 1e10  # cost where a covariance has no Cholesky factor
# a fit after each of the first observations, then after each growth by this factor
EVERY = 30
GROWTH = 1.1
# the same for fits that also start from the priors' modes; others only follow the last fit
ANEW = 10
GROWTH_ANEW = 1.3
SHORTEST = 0.025
LONGEST = 100.0
LEAST_NOISE = 1e-8
MOST_NOISE = 1.0
SCALE_PRIOR = (0.0, 1.0)
NOISE_PRIOR = (-9.0, 3.0)
WIDTH = math.sqrt(3)  # standard deviation of the prior of a log lengthscale


@dataclass(frozen=True)
class Fitted:
    """Hyperparameters of one function, in the units of its observations.

    Attributes:
        lengthscales: of every coordinate, in units of the sides, (d,).
        amplitude: s.
        ratio: the noise variance, in units of s².
        centre: c.
        evidence: logarithm of the density of the observations and hyperparameters, up to a constant
            of the kernel.
        inverse: the inverse Hessian matrix of the objective there, about, (k, k); None where no
            descent has ended.
    """

    lengthscales: Array
    amplitude: float
    ratio: float
    centre: float
    evidence: float = 0.0
    inverse: Array | None = None


def is_due(count: int, last: int, every: int = EVERY, growth: float = GROWTH) -> bool:
    """Return whether to fit now, after a last fit at `last` observations."""
    return count > 1 and (count <= every or count >= growth * last)


def modal_lengthscale(d: int) -> float:
    """Return the mode of a lengthscale's prior, used before any observation."""
    return float(math.exp(math.sqrt(2) + math.log(d) / 2 - WIDTH**2))


def thinned(count: int) -> Indices:
    """Return the observations of which a fit takes account."""
    return np.linspace(0, count - 1, min(count, MOST)).round().astype(np.intp)


def fit_all(
    points: Array,
    values: Array,
    before: Sequence[Fitted | None],
    noise: Array | None,
    anew: bool = True,
    firsts: Indices | None = None,
) -> list[Fitted]:
    """Return the most probable hyperparameters of b functions, from the last fits and, anew, from
    the priors' modes.

    The density has several local maxima. The higher one of both starts is taken, which may not be
    the highest.

    Args:
        points: of the unit cube, (c, d), c > 1.
        values: (b, c).
        before: the last fits.
        noise: the noise variances, in units of the values squared, (b,); None to fit them.
        anew: whether to start from the priors' modes, too; else only functions without a last fit
            do.
        firsts: of every input the first of its coordinates; each coordinate its own by default.
    """
    # The priors are of standardised observations.
    indices = thinned(len(points))
    points = points[indices]
    values = np.ascontiguousarray(values[:, indices])
    middle = values.mean(axis=1)
    spread = values.std(axis=1)
    spread = np.where(spread > 0, spread, 1.0)
    standardised = (values - middle[:, None]) / spread[:, None]
    objective = Objective(
        points, standardised, None if noise is None else noise / spread**2, firsts
    )
    # All starts of all functions descend side by side, because a step of one costs little more than
    # its calls.
    starts: list[Array] = []
    inverses: list[Array | None] = []
    rows: list[int] = []  # whose start it is
    for row, last in enumerate(before):
        if last is not None:
            starts.append(objective.of(last, float(spread[row])))
            inverses.append(last.inverse)
        if last is None or anew:
            starts.append(objective.start())
            inverses.append(None)
        rows += [row] * (len(starts) - len(rows))
    ends, cost, centre, bends = descend(objective, np.array(starts), np.array(rows), inverses)
    # Back to the units of the observations; the evidence is of these, so that fits of transforms
    # compare.
    fits = []
    for row in range(len(values)):
        best = int(np.where(np.equal(rows, row), cost, np.inf).argmin())
        lengthscales, scale, noise_variance = objective.read(ends[best : best + 1], np.array([row]))
        fits.append(
            Fitted(
                np.repeat(lengthscales[0], objective.widths),
                float(spread[row] * np.sqrt(scale[0])),
                float(noise_variance[0] / scale[0]),
                float(middle[row] + spread[row] * centre[best]),
                -float(cost[best]) - len(indices) * math.log(spread[row]),
                bends[best],
            )
        )
    return fits


def bilog(g: Array) -> Array:
    """sign(g) ln(1 + |g|), which keeps the sign and pulls large values in (Eriksson & Poloczek
    2021).
    """
    return np.sign(g) * np.log1p(np.abs(g))


def is_bilog_likelier(values: Array, plain: Fitted, pulled: Fitted) -> bool:
    """Return whether values (c,) are likelier under a model of their `bilog` than under one of
    themselves.

    The densities are of the same thing: that of the bilog is multiplied by the slopes of the
    transform, 1/(1 + |g|) (Snelson, Rasmussen & Ghahramani 2003, eq. 6).
    """
    slopes = -float(np.log1p(np.abs(values[thinned(len(values))])).sum())
    return pulled.evidence + slopes > plain.evidence


class Objective:
    """The negative logarithm of the posterior density of hyperparameters, with its gradient, for b
    functions.

    They are ln l_1, ..., ln l_d of d inputs, ln s² and, where it is to be fitted, the logarithm of
    the noise variance.

    Args:
        points: (c, d).
        values: standardised, (b, c).
        noise: the noise variances, if they are known, (b,).
        firsts: see `fit_all`, (d,).
    """

    def __init__(
        self,
        points: Array,
        values: Array,
        noise: Array | None,
        firsts: Indices | None = None,
    ) -> None:
        self.n, self.coordinates = points.shape
        self.firsts = np.arange(self.coordinates) if firsts is None else firsts
        self.d, self.widths = len(self.firsts), np.diff(self.firsts, append=self.coordinates)
        self.values = values
        self.noise = noise
        self.low = np.tril_indices(self.n, -1)
        # (d, pairs), those of an input's coordinates added up
        squares = ((points[self.low[0]] - points[self.low[1]]) ** 2).T
        self.squares = np.ascontiguousarray(np.add.reduceat(squares, self.firsts))
        # Normal laws of logarithms: mean, deviation, and 1 for a density of the variable itself.
        laws = [(math.sqrt(2) + math.log(self.coordinates) / 2, WIDTH, 1.0)] * self.d
        laws += [(*SCALE_PRIOR, 0.0)]
        laws += [(*NOISE_PRIOR, 1.0)] if noise is None else []
        self.location, self.width, self.density = np.array(laws).T
        bounds = [(math.log(SHORTEST), math.log(LONGEST))] * self.d + [
            (math.log(1e-3), math.log(1e3))
        ]
        bounds += [(math.log(LEAST_NOISE), math.log(MOST_NOISE))] if noise is None else []
        self.lowest, self.highest = np.array(bounds).T

    def start(self) -> Array:
        """The modes of lengthscales, s² = 1, and a little noise."""
        logs = [math.log(modal_lengthscale(self.coordinates))] * self.d + [0.0]
        return np.array(logs if self.noise is not None else [*logs, math.log(1e-3)])

    def of(self, before: Fitted, spread: float) -> Array:
        """Where an earlier fit is, within the bounds."""
        scale = (before.amplitude / spread) ** 2
        lengthscales = before.lengthscales[self.firsts]
        noise = max(scale * before.ratio, LEAST_NOISE)
        logs = np.log(np.concatenate([lengthscales, [scale, noise]]))
        return np.clip(logs[: len(self.lowest)], self.lowest, self.highest)

    def read(self, logs: Array, rows: Indices) -> tuple[Array, Array, Array]:
        """Lengthscales (q, d), s² and the noise variances (q,) of functions (q,)."""
        if self.noise is None:
            noise = np.exp(logs[:, -1])
        else:
            noise = np.maximum(self.noise[rows], LEAST_NOISE)
        return np.exp(logs[:, : self.d]), np.exp(logs[:, self.d]), noise

    def __call__(self, logs: Array, rows: Indices) -> tuple[Array, Array, Array]:
        """Return costs (q,), slopes (q, k) and constants c (q,) at hyperparameters (q, k) of
        functions (q,).
        """
        # Only pairs below the diagonal are computed: kernels of them cost more than the factors of
        # small matrices.
        n = self.n
        d = self.d
        low = self.low
        lengthscales, scale, noise = self.read(logs, rows)
        rates = lengthscales**-2
        a = np.sqrt(5 * (rates[:, None] @ self.squares)[:, 0])
        decay = scale[:, None] * np.exp(-a)
        covariance = np.zeros((len(logs), n, n))
        covariance[:, low[0], low[1]] = (1 + a + a * a / 3) * decay
        covariance[:, np.arange(n), np.arange(n)] = (scale + noise)[:, None]
        inverse = np.empty_like(covariance)
        halves = np.empty(len(logs))
        failed = np.zeros(len(logs), dtype=bool)
        # A matrix without a factor is an impossible place, and no error: a long step may end there.
        for i, matrix in enumerate(covariance):
            root, info = lapack().dpotrf(matrix, lower=1)
            failed[i] = info != 0
            inverse[i] = np.eye(n) if info else lapack().dpotri(root, lower=1)[0]
            halves[i] = 0.0 if info else float(np.log(root.diagonal()).sum())
        inverse[:, low[1], low[0]] = inverse[:, low[0], low[1]]
        # The constant is that of generalised least squares.
        values = self.values[rows]
        ones = (inverse @ np.ones((n, 1)))[..., 0]
        constant = (ones * values).sum(axis=1) / ones.sum(axis=1)
        residuals = values - constant[:, None]
        weights = (inverse @ residuals[..., None])[..., 0]
        quadratic = (residuals * weights).sum(axis=1)
        pull = inverse - weights[..., None] * weights[:, None]
        # Row by row in memory: sums and products of another layout have other bits, and the layout
        # would depend on q.
        bends = np.ascontiguousarray(pull[:, low[0], low[1]]) * ((5 / 3) * (1 + a) * decay)
        noise_term = noise * np.ascontiguousarray(pull[:, np.arange(n), np.arange(n)]).sum(axis=1)
        slope = np.empty_like(logs)
        slope[:, :d] = (self.squares @ bends[..., None])[..., 0] * rates
        # tr(K⁻¹ K) - wᵀ K w, without noise
        slope[:, d] = 0.5 * (n - quadratic - noise_term)
        if self.noise is None:
            slope[:, -1] = 0.5 * noise_term
        away = (logs - self.location) / self.width
        slope += away / self.width + self.density
        prior = (0.5 * away * away + self.density * logs).sum(axis=1)
        cost = 0.5 * quadratic + halves + 0.5 * n * math.log(2 * math.pi) + prior
        return np.where(failed, IMPOSSIBLE, cost), np.where(failed[:, None], 0.0, slope), constant


class Descended(Protocol):
    """What `descend` goes down: costs, slopes and constants as `Objective` gives them, in
    bounds (k,).
    """

    lowest: Array
    highest: Array

    def __call__(self, logs: Array, rows: Indices) -> tuple[Array, Array, Array]: ...


def descend(
    objective: Descended, logs: Array, rows: Indices, inverses: Sequence[Array | None] = ()
) -> tuple[Array, Array, Array, Array]:
    """Descend from hyperparameters (q, k) of functions (q,), each within the bounds by BFGS
    (Nocedal & Wright, ch. 6).

    All steps are made side by side; none depends on another. A variable at a bound that the slope
    points beyond is left out of the step. A step that gains too little is shortened to the minimum
    of a parabola.

    Args:
        inverses: q inverse Hessian matrices (k, k) to begin with; None, or none at all, where none
            is known.

    Returns:
        Where they end, (q, k), their costs, (q,), constants c, (q,), and inverse Hessian matrices
        there, about, (q, k, k).
    """
    low = objective.lowest
    high = objective.highest
    logs = logs.copy()
    cost, slope, centre = objective(logs, rows)
    # Where nothing is known, a first step of length 1 at most: the slope says nothing of the scale.
    steepness = np.sqrt((slope * slope).sum(axis=1))
    inverse = np.eye(logs.shape[1]) / np.maximum(steepness, 1.0)[:, None, None]
    first = np.ones(len(logs), dtype=bool)
    for row, known in enumerate(inverses):
        if known is not None:
            inverse[row] = known
            first[row] = False
    share = np.ones(len(logs))
    direction = np.zeros_like(logs)
    turning = np.ones(len(logs), dtype=bool)  # those that take a new direction
    done = np.zeros(len(logs), dtype=bool)
    for _ in range(STEPS):
        # A new direction only where the last step was taken; else the same one is tried with a
        # shorter share.
        fixed = (logs <= low) & (slope > 0) | (logs >= high) & (slope < 0)
        free_slope = np.where(fixed, 0.0, slope)
        done |= turning & (np.abs(free_slope).max(axis=1) < FLAT)
        if done.all():
            break
        toward = np.where(fixed, 0.0, -(inverse @ free_slope[..., None])[..., 0])
        toward /= np.maximum(np.abs(toward).max(axis=1, keepdims=True) / FARTHEST, 1.0)
        direction = np.where(turning[:, None], toward, direction)
        i = np.flatnonzero(~done)
        trial = np.clip(logs[i] + share[i, None] * direction[i], low, high)
        move = trial - logs[i]
        tried_cost, tried_slope, tried_centre = objective(trial, rows[i])
        # Armijo's rule; a parabola through both costs says how much shorter a refused step should
        # be.
        expected = -(slope[i] * move).sum(axis=1)
        gain = cost[i] - tried_cost
        accepted = (gain >= ENOUGH * expected) & (gain >= 0)
        excess = np.maximum(expected - gain, 1e-300)
        shorter = share[i] * np.clip(0.5 * expected / excess, 0.1, 0.5)
        # Only a positive curvature keeps the inverse Hessian positive definite.
        change = tried_slope - slope[i]
        curvature = (move * change).sum(axis=1)
        bent = accepted & (curvature > 1e-10 * (change * change).sum(axis=1))
        if bent.any():
            _update(inverse, first, i[bent], move[bent], change[bent])
        small = gain <= SETTLED * np.maximum(np.maximum(np.abs(cost[i]), np.abs(tried_cost)), 1.0)
        done[i] = np.where(accepted, small, shorter < LEAST_SHARE)
        turning[:] = False
        turning[i] = accepted
        share[i] = np.where(accepted, 1.0, shorter)
        moved = i[accepted]
        logs[moved], cost[moved], slope[moved] = (
            trial[accepted],
            tried_cost[accepted],
            tried_slope[accepted],
        )
        centre[moved] = tried_centre[accepted]
    return logs, cost, centre, inverse


def _update(inverse: Array, first: Mask, which: Indices, move: Array, change: Array) -> None:
    """Update inverse Hessian matrices (q, k, k) of some descents by moves and changes of slopes (u,
    k).

    A first one is scaled by its curvature before (Nocedal & Wright 2006, eqs. 6.17, 6.20).
    """
    curvature = (move * change).sum(axis=1)
    scaled = (curvature / (change * change).sum(axis=1))[:, None, None] * np.eye(move.shape[1])
    before = np.where(first[which, None, None], scaled, inverse[which])
    first[which] = False
    pushed = (before @ change[..., None])[..., 0]
    factor = ((1 + (change * pushed).sum(axis=1) / curvature) / curvature)[:, None, None]
    cross = pushed[..., None] * move[:, None]
    cross = (cross + cross.mT) / curvature[:, None, None]
    inverse[which] = before + factor * move[..., None] * move[:, None] - cross
