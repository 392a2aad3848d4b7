"""Constraints that say only yes or no, as Gaussian processes: a probit classifier behind pseudo-
values.

Such a constraint is a class, not a number: how far a point is from the boundary no observation
says. A latent function l ~ GP(0, s² k) stands behind it, and a point is infeasible where l + ε is
above 0, ε ~ N(0, 1): with probability Φ(l) (Rasmussen & Williams 2006, ch. 3). A large s says that
the boundary is sharp, a small one that classes are flipped by chance.

Given u = l + ε at the observations, l has the posterior of a regression on u with noise variance 1
(Albert & Chib 1993), so whatever takes numbers takes a class, too. With l̂ the most probable latent
values (Laplace) and w = K⁻¹ l̂ = ∇ ln p(y|l̂), u = l̂ + w gives l̂ as the posterior mean.
Hyperparameters are the most probable ones by the approximate evidence (their eq. 3.32), under the
priors of `cbobench.gp.fit`, that of ln s² excepted, which is N(ln 100, 2).

Differs from Laplace's approximation: variances are those given u, (K + I)⁻¹ in place of
(K + W⁻¹)⁻¹. Laplace's hardly shrink where a class is sure (W is near 0): where an infeasible point
was seen without noise, its P(feasible) stays at 0.2, and improvement far behind the boundary draws
play after play there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cbobench.gp.fit import LONGEST, SHORTEST, WIDTH, Fitted, descend, modal_lengthscale, thinned
from cbobench.gp.kernels import Array, Indices, Mask
from cbobench.gp.posteriors.factor import lapack

FEWEST = 5  # observations that show whether a function is a class
STEPS = 100
SETTLED = 1e-10  # gain of a step, in logarithms
LEAST_SHARE = 1e-6  # of a step
FLATTEST = 1e-12  # least W, which is 0 in the tails but for rounding
LEAST_SCALE, MOST_SCALE = 1.0, 1e6  # s²
SCALE_PRIOR = (math.log(100), 2.0)


def are_classes(values: Array) -> bool:
    """Return whether values (c,) are two, one above 0 and one not.

    One value alone says nothing of the other class, and a third one shows a number.
    """
    if len(values) < FEWEST:
        return False
    low = values.min()
    high = values.max()
    return bool(low <= 0 < high and ((values == low) | (values == high)).all())


def are_silent(values: Array) -> Mask:
    """Return which constraints (S, m) have had but one value (S, m, c), an infeasible one: they say
    nothing of where they are feasible.
    """
    same = ((values == values[..., :1]) & (values > 0)).all(axis=2)
    return same & (values.shape[2] >= FEWEST)


@dataclass(frozen=True)
class Mode:
    """The most probable latent values of n observations.

    Attributes:
        latent, weights: l̂ and K⁻¹ l̂, (n,).
        slopes, bends, turns: of ln p(y|l̂): the first derivatives, W, and the third, (n,).
        root: the lower Cholesky factor of I + W^½ K W^½.
        evidence: ln p(y), approximately.
    """

    latent: Array
    weights: Array
    slopes: Array
    bends: Array
    turns: Array
    root: Array
    evidence: float


def signs_of(values: Array) -> Array:
    """Return the classes of values: 1 for infeasible, -1 for feasible."""
    return np.where(values > 0, 1.0, -1.0)


def pseudo_values(covariance: Array, values: Array) -> Array:
    """Return u of values (n,) with latent covariance K (n, n)."""
    mode = find_mode(covariance, signs_of(values))
    return mode.latent + mode.weights


def find_mode(covariance: Array, signs: Array) -> Mode:
    """Find the mode by Newton's steps (Rasmussen & Williams 2006, algorithm 3.1), shortened where
    one would lose.
    """
    weights = latent = np.zeros(len(signs))
    height, slopes, bends, turns = _differentiate(signs, latent)
    diagonal = np.arange(len(signs))
    for _ in range(STEPS):
        # Lines 4 and 5: no eigenvalue of I + W½ K W½ is below 1, so that its root always exists.
        half = np.sqrt(bends)
        balanced = half[:, None] * covariance * half
        balanced[diagonal, diagonal] += 1
        root = np.tril(lapack().dpotrf(balanced, lower=1)[0])

        # Lines 6 and 7: where the whole step leads.
        goal = bends * latent + slopes
        pulled = half * (covariance @ goal[:, None])[:, 0]
        move = goal - half * lapack().dpotrs(root, pulled, lower=1)[0] - weights
        evidence = height - float(np.log(root.diagonal()).sum())

        # Line 8, halved until the posterior rises: a whole step may lead beyond the top.
        share = 1.0
        gain = -1.0
        while gain < 0 and share > LEAST_SHARE:
            trial = weights + share * move
            tried = (covariance @ trial[:, None])[:, 0]
            derivatives = _differentiate(signs, tried)
            gain = derivatives[0] - 0.5 * float((trial * tried).sum()) - height
            share /= 2

        # What gains nothing any more is the top, as there is one only.
        if gain < SETTLED:
            break
        weights = trial
        latent = tried
        height = height + gain
        _, slopes, bends, turns = derivatives
    return Mode(latent, weights, slopes, bends, turns, root, evidence)


def _differentiate(signs: Array, latent: Array) -> tuple[float, Array, Array, Array]:
    """Return ln p(y|l) and its derivatives (eq. 3.16): slopes, W, and the third ones."""
    from scipy.special import log_ndtr  # imported late: SciPy takes long to load

    margin = signs * latent
    logs = log_ndtr(margin)
    hazard = np.exp(-0.5 * margin**2 - 0.5 * math.log(2 * math.pi) - logs)
    shift = margin + hazard
    turns = signs * hazard * (shift * shift - 1 + hazard * shift)
    return float(logs.sum()), signs * hazard, np.maximum(hazard * shift, FLATTEST), turns


class ClassDensity:
    """The negative logarithm of the posterior density of hyperparameters, with its gradient:
    ln l_1, ..., ln l_d and ln s² (see `gp.fit.Objective`).

    Args:
        points: (n, d).
        signs: (n,).
    """

    def __init__(self, points: Array, signs: Array) -> None:
        self.n, self.d = points.shape
        self.signs, self.low = signs, np.tril_indices(self.n, -1)
        # (d, pairs)
        self.squares = np.ascontiguousarray(((points[self.low[0]] - points[self.low[1]]) ** 2).T)
        laws = [(math.sqrt(2) + math.log(self.d) / 2, WIDTH, 1.0)] * self.d + [(*SCALE_PRIOR, 0.0)]
        self.location, self.width, self.density = np.array(laws).T
        bounds = np.array([(SHORTEST, LONGEST)] * self.d + [(LEAST_SCALE, MOST_SCALE)])
        self.lowest, self.highest = np.log(bounds).T

    def __call__(self, logs: Array, rows: Indices) -> tuple[Array, Array, Array]:
        """Return costs (q,), slopes (q, k) and zeros for centres (q,) at hyperparameters (q, k)."""
        costs, slopes = zip(*(self._differentiate(row) for row in logs), strict=True)
        return np.array(costs), np.array(slopes), np.zeros(len(logs))

    def _differentiate(self, logs: Array) -> tuple[float, Array]:
        # Pairs below the diagonal stand for both, as in `gp.fit`.
        n = self.n
        d = self.d
        low = self.low
        rates = np.exp(-2 * logs[:d])
        scale = math.exp(logs[d])
        a = np.sqrt(5 * (rates[None] @ self.squares)[0])
        decay = scale * np.exp(-a)
        covariance = np.zeros((n, n))
        covariance[low] = (1 + a + a * a / 3) * decay
        covariance += covariance.T
        covariance[np.arange(n), np.arange(n)] = scale
        mode = find_mode(covariance, self.signs)
        # Algorithm 5.1: the evidence moves with K itself, and as the mode moves with K.
        inverse_root = lapack().dtrtri(mode.root, lower=1)[0] * np.sqrt(mode.bends)
        precision = inverse_root.T @ inverse_root  # (K + W⁻¹)⁻¹
        explained = inverse_root @ covariance
        tilt = 0.5 * (scale - (explained * explained).sum(axis=0)) * mode.turns
        tilt = tilt - (precision @ (covariance @ tilt[:, None]))[:, 0]
        pull = 0.5 * (np.outer(mode.weights, mode.weights) - precision)
        pull += np.outer(tilt, mode.slopes)
        pull += pull.T
        slope = np.empty(d + 1)
        bends = pull[low] * ((5 / 3) * (1 + a) * decay)
        slope[:d] = (self.squares @ bends[:, None])[:, 0] * rates
        slope[d] = 0.5 * float((pull * covariance).sum())
        away = (logs - self.location) / self.width
        prior = float((0.5 * away * away + self.density * logs).sum())
        return prior - mode.evidence, away / self.width + self.density - slope


def fit_class(points: Array, values: Array, before: Fitted | None, anew: bool) -> Fitted:
    """Return the most probable hyperparameters of a class, from the last fit and, anew, from the
    priors' modes.

    Args:
        points: of the unit cube, (c, d).
        values: (c,).
    """
    indices = thinned(len(points))
    density = ClassDensity(points[indices], signs_of(values[indices]))
    starts = [] if before is None else [[*before.lengthscales, before.amplitude**2]]
    if before is None or anew:
        starts.append([modal_lengthscale(density.d)] * density.d + [math.exp(SCALE_PRIOR[0])])
    logs = np.clip(np.log(starts), density.lowest, density.highest)
    ends, costs, *_ = descend(density, logs, np.zeros(len(logs), dtype=np.intp))
    best = int(costs.argmin())
    scale = math.exp(ends[best, -1])
    lengthscales = np.exp(ends[best, :-1])
    return Fitted(lengthscales, math.sqrt(scale), 1 / scale, 0.0, -float(costs[best]))
