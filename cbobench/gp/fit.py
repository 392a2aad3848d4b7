"""Hyperparameters of a GP from what it has observed: maximum a posteriori, with analytic gradients.

The model is y = c + f(x) + noise, f a GP with covariance s² k(x, x'), k the Matérn-5/2 kernel with a lengthscale for
every coordinate of the unit cube. Observations are standardised first. A lengthscale's prior is BoTorch's (from 0.12
on; Hvarfner et al. 2024): LogNormal(√2 + ln(d)/2, √3), not below 0.025. Ours, where BoTorch has s² = 1 and expects more
noise (LogNormal(-4, 1), not below 1e-4): ln s² is N(0, 1), the noise variance is LogNormal(-9, 3), not below 1e-8.
All variances are in standardised units, so that the floor is 1e-8 of the variance of the observations. The constant c
is the one that maximises the likelihood (generalised least squares).

A fit looks at no more than `MOST` observations and takes no more than `STEPS` steps; `due` says after which rounds
there is one. It depends on its own observations, and on the hyperparameters before, alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.factor import lapack

MOST = 256  # largest number of observations in a fit; beyond it they are thinned evenly
STEPS = 50
EVERY, GROWTH = 30, 1.1  # a fit after each of the first observations, then after each growth by this factor
ANEW = 10  # the same for fits that also start from the priors' modes; others only follow the last fit
SHORTEST, LONGEST = 0.025, 100.0
LEAST_NOISE, MOST_NOISE = 1e-8, 1.0
SCALE_PRIOR = (0.0, 1.0)
NOISE_PRIOR = (-9.0, 3.0)
WIDTH = math.sqrt(3)  # standard deviation of the prior of a log lengthscale


@dataclass(frozen=True)
class Fitted:
    """Hyperparameters of one function, in the units of its observations.

    Attributes:
        lengthscales: in units of the sides, (d,).
        amplitude: s.
        ratio: the noise variance, in units of s².
        centre: c.
        evidence: logarithm of the density of the observations and hyperparameters, up to a constant of the kernel.
    """

    lengthscales: Array
    amplitude: float
    ratio: float
    centre: float
    evidence: float = 0.0


def due(count: int, last: int, every: int = EVERY) -> bool:
    """Return whether to fit now, after a last fit at `last` observations."""
    return count > 1 and (count <= every or count >= GROWTH * last)


def modal_lengthscale(d: int) -> float:
    """Return the mode of a lengthscale's prior, used before any observation."""
    return float(math.exp(math.sqrt(2) + math.log(d) / 2 - WIDTH**2))


def thinned(count: int) -> NDArray[np.intp]:
    """Return the observations of which a fit takes account."""
    return np.linspace(0, count - 1, min(count, MOST)).round().astype(np.intp)


def fit(points: Array, values: Array, before: Fitted | None, noise: float | None = None, anew: bool = True) -> Fitted:
    """Return the most probable hyperparameters, by L-BFGS from the last fit and, anew, from the priors' modes.

    The density has several local maxima. The higher one of both starts is taken, which may not be the highest: of 400
    fits of `cei` on the boxes here, 5 missed it by over 0.01 (0.5 at most), compared with 40 more starts.

    Args:
        points: of the unit cube, (c, d), c > 1.
        values: (c,).
        before: the last fit.
        noise: the noise variance, in units of the values squared; None to fit it.
        anew: whether to start from the priors' modes, too.
    """
    from scipy.optimize import minimize  # imported late: SciPy takes long to load

    indices = thinned(len(points))
    points, values = points[indices], values[indices]
    middle, spread = float(values.mean()), float(values.std())
    spread = spread if spread > 0 else 1.0
    objective = Objective(points, (values - middle) / spread, None if noise is None else noise / spread**2)
    starts = [] if before is None else [objective.of(before, spread)]
    starts += [objective.start()] if anew or before is None else []
    options = {"maxiter": STEPS, "ftol": 1e-5, "gtol": 1e-2}  # within 1e-3 of the logarithm at a local optimum
    optima = [
        minimize(objective, start, jac=True, method="L-BFGS-B", bounds=objective.bounds, options=options)
        for start in starts
    ]
    best = min(optima, key=lambda optimum: float(optimum.fun))
    lengthscales, scale, noise_variance = objective.read(best.x)
    centre = objective.centre(best.x)
    evidence = -float(best.fun) - len(values) * math.log(spread)
    return Fitted(lengthscales, spread * math.sqrt(scale), noise_variance / scale, middle + spread * centre, evidence)


def bilog(g: Array) -> Array:
    """sign(g) ln(1 + |g|), which keeps the sign and pulls large values in (Eriksson & Poloczek 2021)."""
    return np.asarray(np.sign(g) * np.log1p(np.abs(g)))


def fit_both(
    points: Array, values: Array, before: tuple[Fitted, Fitted] | None, noise: float | None
) -> tuple[tuple[Fitted, Fitted], bool]:
    """Fit models of values (c,) and of their `bilog`; return both, and whether that of the bilog is the likelier one.

    The densities are of the same thing: that of the bilog is multiplied by the slopes of the transform, 1/(1 + |g|)
    (Snelson, Rasmussen & Ghahramani 2003, eq. 6).
    """
    first, second = (None, None) if before is None else before
    plain, pulled = fit(points, values, first, noise), fit(points, bilog(values), second, noise)
    slopes = -float(np.log1p(np.abs(values[thinned(len(values))])).sum())
    return (plain, pulled), pulled.evidence + slopes > plain.evidence


class Objective:
    """The negative logarithm of the posterior density of hyperparameters, with its gradient.

    They are ln l_1, ..., ln l_d, ln s² and, where it is to be fitted, the logarithm of the noise variance.

    Args:
        points: (c, d).
        values: standardised, (c,).
        noise: the noise variance, if it is known.
    """

    def __init__(self, points: Array, values: Array, noise: float | None) -> None:
        self.n, self.d = points.shape
        self.values, self.noise = values, noise
        self.low = np.tril_indices(self.n, -1)
        self.squares = np.ascontiguousarray(((points[self.low[0]] - points[self.low[1]]) ** 2).T)  # (d, pairs)
        # Normal laws of logarithms: mean, deviation, and 1 for a density of the variable itself.
        laws = [(math.sqrt(2) + math.log(self.d) / 2, WIDTH, 1.0)] * self.d + [(*SCALE_PRIOR, 0.0)]
        laws += [(*NOISE_PRIOR, 1.0)] if noise is None else []
        self.location, self.width, self.density = np.array(laws).T
        self.bounds = [(math.log(SHORTEST), math.log(LONGEST))] * self.d + [(math.log(1e-3), math.log(1e3))]
        if noise is None:
            self.bounds.append((math.log(LEAST_NOISE), math.log(MOST_NOISE)))

    def start(self) -> Array:
        """The modes of lengthscales, s² = 1, and a little noise."""
        logs = [math.log(modal_lengthscale(self.d))] * self.d + [0.0]
        return np.array(logs if self.noise is not None else [*logs, math.log(1e-3)])

    def of(self, before: Fitted, spread: float) -> Array:
        """Where an earlier fit is, within the bounds."""
        scale = (before.amplitude / spread) ** 2
        logs = np.log(np.concatenate([before.lengthscales, [scale, max(scale * before.ratio, LEAST_NOISE)]]))
        low, high = np.array(self.bounds).T
        return np.clip(logs[: len(low)], low, high)

    def read(self, logs: Array) -> tuple[Array, float, float]:
        """Lengthscales (d,), s² and the noise variance."""
        noise_variance = math.exp(logs[-1]) if self.noise is None else max(self.noise, LEAST_NOISE)
        return np.exp(logs[: self.d]), math.exp(logs[self.d]), noise_variance

    def _factor(self, logs: Array) -> tuple[Array, Array, Array] | None:
        """The inverse of the covariance of the observations, its factor, and slopes by ln l² over squares."""
        lengthscales, scale, noise = self.read(logs)
        a = np.sqrt(5 * np.matmul(lengthscales**-2, self.squares))
        decay = scale * np.exp(-a)
        covariance = np.zeros((self.n, self.n))
        covariance[self.low] = (1 + a + a * a / 3) * decay
        covariance[np.diag_indices(self.n)] = scale + noise
        root, info = lapack().dpotrf(covariance, lower=1)
        if info:
            return None
        inverse = lapack().dpotri(root, lower=1)[0]
        inverse[self.low[1], self.low[0]] = inverse[self.low]
        return inverse, root, (5 / 3) * (1 + a) * decay

    def centre(self, logs: Array) -> float:
        """The constant c, by generalised least squares."""
        factors = self._factor(logs)
        return 0.0 if factors is None else self._constant(factors[0])

    def _constant(self, inverse: Array) -> float:
        ones = inverse.sum(axis=0)
        return float((ones * self.values).sum() / ones.sum())

    def __call__(self, logs: Array) -> tuple[float, Array]:
        factors = self._factor(logs)
        if factors is None:
            return 1e10, np.zeros_like(logs)
        inverse, root, bends = factors
        lengthscales, scale, noise = self.read(logs)
        residuals = self.values - self._constant(inverse)
        weights = np.matmul(inverse, residuals)
        value = 0.5 * float((residuals * weights).sum()) + float(np.log(root.diagonal()).sum())
        value += 0.5 * self.n * math.log(2 * math.pi)
        pull = inverse - weights[:, None] * weights
        slope = np.empty_like(logs)
        slope[: self.d] = np.matmul(self.squares, pull[self.low] * bends) / lengthscales**2
        noise_term = noise * float(pull.diagonal().sum())
        # tr(K⁻¹ K) - wᵀ K w, without noise
        slope[self.d] = 0.5 * (self.n - float((residuals * weights).sum()) - noise_term)
        if self.noise is None:
            slope[-1] = 0.5 * noise_term
        return value + self._prior(logs, slope), slope

    def _prior(self, logs: Array, slope: Array) -> float:
        """-ln of the priors' densities of lengthscales and variances, up to a constant; adds to the slope."""
        away = (logs - self.location) / self.width
        slope += away / self.width + self.density
        return float((0.5 * away * away + self.density * logs).sum())
