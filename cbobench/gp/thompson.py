"""Joint posterior samples of f and all g at many actions, drawn only as far as needed to find the
best action.

A sample at q actions needs a Cholesky factor of their covariance, O(q³). But once some values are
drawn, most other actions can hardly win. So the factor is computed in blocks of columns, the most
promising actions first. Then means and variances of the others are conditioned on the drawn values,
and actions that cannot win are dropped. The drawn values have the law of the joint sample, whatever
the order. An action is dropped if its probability to win is below
`NEGLIGIBLE`: functions are independent and Φ(-x) <= exp(-x²/2), so it is at most exp(-Σ_j x_j²/2)
with x_j the deviations by which function j falls short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite, smallest
from cbobench.gp.box_actions import ActionSet
from cbobench.gp.fit import bilog
from cbobench.gp.kernels import Actions, Array, Indices, Mask, squared_lengths
from cbobench.gp.posteriors.factor import SMALL, Factor, lapack
from cbobench.gp.posteriors.fitted import UNIT, FittedPosterior
from cbobench.gp.posteriors.interface import VARIANCE_FLOOR, Moments
from cbobench.gp.recommend import RunMoments
from cbobench.gp.single import RunData, in_batches, normal_scores, with_constant

BLOCK = 48  # actions per block
# added to drawn variances in units of the prior's; ten times more if no factor exists
JITTER = 1e-8
NEGLIGIBLE = 1e-10
REACH = -2 * math.log(NEGLIGIBLE)
MOST_VIOLATION = 700.0  # of a bilog; larger ones stand for it, as their inverse overflows

KernelInputs = Sequence[Actions]

Beliefs = tuple[Array, Array, list[Array], list[Actions]]
"""Means (p, q), variances of the unit GPs (1, q) or (p, q), per factor R⁻ᵀ k, (q, c), and what the
kernels take for the actions."""


class ThompsonModel(RunData):
    """GPs of f, g_1, ..., g_m for one run (see `RunData`) from Cholesky factors, for joint samples.

    There is one factor for all functions, or one for each if their noise variances differ.

    Attributes:
        played_means: means at the observed actions, (p, c), from K (K + λI)⁻¹ = I - λ (K + λI)⁻¹;
            equal for all observations of an action.
    """

    factors: list[Factor]
    played_means: Array

    def forget(self) -> None:
        super().forget()
        self.factors = []
        self.alike = np.empty(0, dtype=np.intp)  # per observation the first one of the same action

    def tell(self, inputs: Actions, values: Array) -> None:
        super().tell(inputs, values)
        c = self.count
        same = (self.played == inputs).reshape(c, -1).all(axis=1)
        self.alike = np.append(self.alike, same.argmax())
        row = self._prior(inputs, self.played)[0]
        means = []
        for i, (lam, y) in enumerate(zip(self._noise(), self._standardised(), strict=True)):
            # λ in units of a function's scale moves with the scale, and a factor is of one λ.
            if c > 1 and self.factors[i].lam == lam:
                self.factors[i].append(c - 1, row[:-1], row[-1], np.empty(0), y[:, -1])
            else:
                gram = self._prior(self.played, self.played)
                self.factors[i : i + 1] = [Factor(gram, lam, np.empty((c, 0)), y, np.arange(c))]
            means.append(y - lam * self.factors[i].weights(c))
        self.played_means = self._scaled(means)[:, self.alike]

    @property
    def amplitude(self) -> Array:
        """Amplitudes of the functions, (p,)."""
        return self.scale.amplitude[0]

    def _noise(self) -> list[float]:
        """Return λ of the unit GPs, per factor."""
        if self.noise_per_function:
            variances: list[float] = self.scale.unit_noise(self.noise)[0].tolist()
            return variances
        assert isinstance(self.noise, float)
        return [self.noise]

    def _standardised(self) -> list[Array]:
        """Return per factor the values of its functions, and of a constant 1."""
        values = with_constant(self.observed)
        if not self.noise_per_function:
            return [values]
        return [np.stack([y, values[-1]]) for y in values[:-1]]

    def _scaled(self, means: Sequence[Array]) -> Array:
        """Return means (p, q) from those of the unit GPs: per factor its functions' and the
        constant's.
        """
        return self.scale.means(
            np.concatenate([m[:-1] for m in means] + [m[-1:] for m in means])[None]
        )[0]

    def judged(self, values: Array) -> Array:
        """Return values (1 + m, q) of the models in the units in which violations are added up."""
        return values

    def limits(self, violation: float) -> Array:
        """Return the models' values of all g_j, (m, 1), at a violation in those units."""
        return np.full((len(self.observed) - 1, 1), violation)

    # Prior covariances ----------------------------------------------------------------------------

    def _prior(self, left: Actions, right: Actions) -> Array:
        """Return prior covariances of actions, (a,) or (a, d), with others, (b,) or (b, d): (a,
        b).
        """
        if isinstance(self.actions, Finite):
            return self.actions.between(left, right)
        return self.actions.kernel.profile(squared_lengths(left[:, None] - right))

    def _kernel_inputs(self, inputs: Actions) -> list[Actions]:
        """Return the inputs of `_products` for actions, per kernel."""
        return [inputs if isinstance(self.actions, Finite) else lift_points(inputs - 0.5)]

    def _products(self, left: KernelInputs, right: KernelInputs) -> list[Array]:
        """Return prior covariances of places, one matrix per factor."""
        if isinstance(self.actions, Finite):
            covariance = self.actions.between(left[0], right[0])
        else:
            covariance = self.actions.kernel.profile(apart(left[0], right[0]))
        return [covariance] * len(self.factors)

    # Posteriors -----------------------------------------------------------------------------------

    def at(self, inputs: Actions) -> Beliefs:
        """Return the beliefs at actions."""
        kernel_inputs = self._kernel_inputs(inputs)
        exact = any(factor.lam < SMALL for factor in self.factors)
        if exact:
            cross = [self._prior(inputs, self.played)] * len(self.factors)
        else:
            cross = self._products(kernel_inputs, self._kernel_inputs(self.played))
        whitened = [factor.whiten(k) for factor, k in zip(self.factors, cross, strict=True)]
        prior = self.actions.prior[inputs] if isinstance(self.actions, Finite) else 1.0
        variance = np.maximum(
            prior - np.stack([squares(white) for white in whitened]), VARIANCE_FLOOR
        )
        if exact:
            for factor, y, white, v in zip(
                self.factors, self._standardised(), whitened, variance, strict=True
            ):
                factor.check(
                    factor.weights(self.count), np.abs(y).max(axis=1), v, factor.means(white)[-1]
                )
        means = [
            factor.means(white)[:-1] for factor, white in zip(self.factors, whitened, strict=True)
        ]
        return self._scaled(means), variance, whitened, kernel_inputs

    def sample(self, inputs: Actions, generator: np.random.Generator) -> tuple[Indices, Array]:
        """Draw a joint posterior sample of every function, at those of q actions that may be the
        `best_of` all.

        Returns:
            Indices of the drawn actions, (k,), and their values, (p, k).

        Raises:
            CellFailure: a covariance has no Cholesky factor, whatever jitter is added.
        """
        mean, variance, whitened, kernel_inputs = self.at(inputs)
        amplitude = self.amplitude[:, None]
        drawn = np.empty(0, dtype=np.intp)
        values = np.empty((len(mean), 0))
        # Candidates are conditioned on the drawn actions; contenders, indices of candidates, can
        # still win.
        candidates = contenders = np.arange(len(inputs))
        best, limits = mean[0].max(), self.limits(0.0)  # the goal of the first block
        gaps = shortfall(mean, amplitude * np.sqrt(variance + JITTER), best, limits)
        while len(contenders):
            # The most promising first: what they give shows soonest that others cannot win.
            size = BLOCK if len(contenders) > 1.5 * BLOCK else len(contenders)
            chosen = smallest(gaps[contenders], size)
            block = contenders[chosen]
            remainder = np.delete(contenders, chosen)
            block_inputs = [points[candidates[block]] for points in kernel_inputs]
            block_whitened = [white[block] for white in whitened]
            priors = self._products(block_inputs, block_inputs)
            roots = [
                upper(prior - white @ white.T)
                for prior, white in zip(priors, block_whitened, strict=True)
            ]
            normals = generator.standard_normal((len(mean), size))
            drawn = np.concatenate([drawn, candidates[block]])
            values = np.concatenate(
                [values, mean[:, block] + amplitude * times(normals, roots)], axis=1
            )
            # The best that is drawn is what the others must beat.
            judged = self.judged(values)
            goal = judged[:, best_of(judged)]
            violation = float(np.maximum(goal[1:], 0.0).sum())
            best = goal[0] if violation == 0 else None
            limits = self.limits(violation)

            # Who cannot win by the laws of before need not be conditioned, which is what costs.
            deviation = amplitude * np.sqrt(variance[:, remainder] + JITTER)
            remainder = remainder[shortfall(mean[:, remainder], deviation, best, limits) < REACH]
            if not len(remainder):
                break
            candidates = candidates[remainder]
            whitened = [white[remainder] for white in whitened]
            priors = self._products([points[candidates] for points in kernel_inputs], block_inputs)
            factors = zip(roots, priors, whitened, block_whitened, strict=True)
            new_rows = [
                solve_rows(root, prior - white @ block_white.T)
                for root, prior, white, block_white in factors
            ]
            mean = mean[:, remainder] + amplitude * times(normals, [rows.T for rows in new_rows])
            variance = np.maximum(
                variance[:, remainder] - np.stack([squares(rows) for rows in new_rows]), 0.0
            )
            whitened = [
                np.concatenate(pair, axis=1) for pair in zip(whitened, new_rows, strict=True)
            ]
            gaps = shortfall(mean, amplitude * np.sqrt(variance + JITTER), best, limits)
            contenders = np.flatnonzero(gaps < REACH)
        return drawn, values


class FittedThompson(ThompsonModel):
    """The same with fitted kernels, one factor per function (see `cbobench.gp.posteriors.fitted`).

    Args:
        noise: the functions' noise variances, (p,); None to fit them.
        scored: whether f is modelled by its `normal_scores`.
        undecided: functions that may be modelled by their bilog (see `FittedPosterior`). Violations
            are added up in its units if one of them is, and as they are if none is.
    """

    def __init__(
        self,
        actions: ActionSet,
        functions: int,
        noise: Array | None,
        slots: int,
        scored: bool = False,
        undecided: Mask | None = None,
    ) -> None:
        no_candidates = np.empty((0, actions.d))
        self.scored = scored
        noise = None if noise is None else noise[None]
        self.fitted = FittedPosterior(
            actions, 1, functions, noise, no_candidates, undecided=undecided
        )
        super().__init__(actions, functions, 1.0, slots, scaled=False)

    def forget(self) -> None:
        super().forget()
        self.fitted.reset()

    def tell(self, inputs: Actions, values: Array) -> None:
        RunData.tell(self, inputs, values)
        if self.scored:
            # what is not told is the worst
            f = np.where(np.isnan(self.observed[:1]), -np.inf, self.observed[:1])
            targets = np.concatenate([normal_scores(f), self.observed[1:]])
            self.fitted.replace_values(targets[None, :, :-1])
            values = targets[:, -1]
        self.fitted.update(inputs, values[None])
        self.played_means = self.fitted.at_observations()[0][0]

    @property
    def amplitude(self) -> Array:
        return self.fitted.amplitude[0]

    @property
    def _translated(self) -> Mask:
        """The functions, (p, 1), that are modelled as they are while others are modelled by their
        bilog.
        """
        pulled = self.fitted.pulled[0]
        return (self.fitted.undecided & ~pulled & pulled.any())[:, None]

    def judged(self, values: Array) -> Array:
        if self.fitted.pulled.any():
            return np.where(self._translated, bilog(values), values)
        return values

    def limits(self, violation: float) -> Array:
        return np.where(self._translated[1:], np.expm1(min(violation, MOST_VIOLATION)), violation)

    def _kernel_inputs(self, inputs: Actions) -> list[Actions]:
        return [
            lift_points((self.seen(inputs) - 0.5) / lengths)
            for lengths in self.fitted.lengthscales[0]
        ]

    def _products(self, left: KernelInputs, right: KernelInputs) -> list[Array]:
        return [UNIT.profile(apart(a, b)) for a, b in zip(left, right, strict=True)]

    def at(self, inputs: Actions) -> Beliefs:
        fitted = self.fitted
        c = self.count
        kernel_inputs = self._kernel_inputs(inputs)
        cross = self._products(kernel_inputs, self._kernel_inputs(self.played))
        whitened = [k @ root[:c, :c].T for k, root in zip(cross, fitted.root[0], strict=True)]
        pull = np.stack([white @ u[:c] for white, u in zip(whitened, fitted.u[0], strict=True)])
        unit = np.maximum(1 - np.stack([squares(white) for white in whitened]), VARIANCE_FLOOR)
        means = fitted.centre[0][:, None] + self.amplitude[:, None] * pull
        return means, unit, whitened, kernel_inputs


class ThompsonMoments(RunMoments):
    """What `gp.recommend` asks of a model."""

    def __init__(self, model: ThompsonModel) -> None:
        self.model = model
        self.actions = model.actions

    def at(self, inputs: Actions) -> Moments:
        return in_batches(self._at, inputs)

    def _at(self, inputs: Actions) -> Moments:
        mean, variance, *_ = self.model.at(inputs)
        return mean, self.model.amplitude[:, None] * np.sqrt(variance)


def lift_points(x: Array) -> Array:
    """Return points as rows (x, |x|², 1), for `apart`."""
    return np.concatenate([x, squares(x)[:, None], np.ones((len(x), 1))], axis=1)


def apart(left: Array, right: Array) -> Array:
    """Return squared distances of lifted points, (a, b), by one product, exact to the last digits
    of |x|².
    """
    x = right[:, :-2]
    square = right[:, -2:-1]
    ones = right[:, -1:]
    squared = left @ np.concatenate([-2 * x, ones, square], axis=1).T
    return np.maximum(squared, 0.0, out=squared)


def best_of(values: Array) -> int:
    """Return the feasible point with the largest f, or the one with the smallest total violation;
    values (1 + m, q).
    """
    violation = np.maximum(values[1:], 0.0).sum(axis=0)
    if violation.min() > 0:
        return int(violation.argmin())
    return int(np.where(violation > 0, -np.inf, values[0]).argmax())


def shortfall(mean: Array, deviation: Array, best: float | None, limits: Array) -> Array:
    """Return x² such that a point beats a goal with probability at most exp(-x²/2), (q,).

    It is the sum of the squares of the deviations by which f and every g_j fall short. To beat an
    infeasible goal the violations must also add up to less than its own, V. That is not so where
    Σ_j g_j / limit_j > 1 over any of the constraints, here over those with positive means: on [0,
    limit_j] the violation, g_j or its bilog, is concave, 0 at 0 and V at limit_j. This sum has a
    normal law, too, and the better of both bounds is taken.

    Args:
        mean, deviation: (1 + m, q).
        best: f of a feasible goal, which only a larger one beats; None if the goal is infeasible.
        limits: what no g_j may be above, (m, 1): 0, or the violation of an infeasible goal in units
            of the model.
    """
    short = np.maximum((mean[1:] - limits) / deviation[1:], 0.0)
    total = (short * short).sum(axis=0)
    if best is not None:
        return total + np.maximum((best - mean[0]) / deviation[0], 0.0) ** 2
    violated = mean[1:] > 0
    excess = np.where(violated, mean[1:] / limits, 0.0).sum(axis=0) - 1
    variance = np.where(violated, (deviation[1:] / limits) ** 2, 0.0).sum(axis=0)
    return np.maximum(
        total, np.where(excess > 0, excess, 0.0) ** 2 / np.where(excess > 0, variance, 1.0)
    )


def squares(rows: Array) -> Array:
    """Return squared lengths of rows, (a,)."""
    return np.einsum("ij,ij->i", rows, rows)


def times(normals: Array, matrices: Sequence[Array]) -> Array:
    """Return row j of normals (p, k) times matrix j, or the only one, (k, n): (p, n)."""
    if len(matrices) == 1:
        return normals @ matrices[0]
    return np.concatenate(
        [row[None] @ matrix for row, matrix in zip(normals, matrices, strict=True)]
    )


def upper(covariance: Array) -> Array:
    """Return U with UᵀU = covariance, (k, k), with as much jitter as needed (see
    `ThompsonModel.sample`).
    """
    jitter = JITTER
    while jitter < 1:
        root, info = lapack().dpotrf(covariance + jitter * np.eye(len(covariance)), lower=0)
        if not info:
            return root
        jitter *= 10
    raise CellFailure(
        "a posterior covariance has no Cholesky factor; a larger lam keeps it positive definite"
    )


def solve_rows(root: Array, rows: Array) -> Array:
    """Return U⁻ᵀ times each of the rows (n, k)."""
    return lapack().dtrtrs(root, rows.T, trans=1, overwrite_b=1)[0].T
