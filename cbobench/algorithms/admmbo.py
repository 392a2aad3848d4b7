"""ADMMBO: Bayesian optimisation with unknown constraints by the alternating direction method of
multipliers.

After Ariafar et al. (2019); where the published code departs from the paper's rules, this file
follows the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.linalg import norm

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Setting
from cbobench.algorithms.fitting import ModelledRun, find_obstacle, is_fitted
from cbobench.algorithms.improvement import log_expected_improvement, log_feasibility
from cbobench.gp.beliefs import FunctionBelief
from cbobench.gp.kernels import Actions, Array
from cbobench.gp.recommend import recommend_in_run
from cbobench.gp.single import RunModel, noise_variance, true_noise
from cbobench.params import param, state

# ρ changes by the factor if one residual exceeds the other by the ratio.
RATIO = 10.0
FACTOR = 2.0
SLACK = 1.5  # relative tolerance, in units of the absolute one


@ALGORITHMS.register("admmbo")
@dataclass(kw_only=True)
class ADMMBO(ModelledRun):
    """Minimises F(x) + M Σ_i 1[g_i(z_i) > 0] subject to x = z_i, F = -f, by ADMM with a search by
    EI in each step.

    Optimality: x minimises F(x) + ρ/2 Σ_i |x - z_i + y_i/ρ|². Feasibility: z_i minimises 1[g_i(z) >
    0] + ρ/(2M) |x - z
    + y_i/ρ|². Then y_i += ρ (x - z_i), and ρ doubles or halves to balance both residuals. The models are of f and of g
    alone: when ρ, x, z or y change, only the quadratic is recomputed and no action is played again.
    When the residuals are small, or the iterations are used up, the incumbent is played for the
    rest: the largest posterior mean of f among the played actions with P(g <= 0) >= 1 - δ, judged
    anew each round; without one, the most probably feasible action. `stopped_at` is the round after
    which that begins (None before), and `converged` says why.

    The defaults are the paper's for its first toy problem, which lies in [0, 6]^d: distances in the
    quadratics and tolerances are taken in a cube of that side. ρ and M are in units of f.

    Differs from the paper:

    1. Every query is one round that observes f and g, and both are used; the paper's queries
    observe one of them.
    2. The kernel is the problem's where it is known, and with `kernel: given`; the paper fits it.
    3. EI is maximised over 1,000 points; the paper has 10⁵, with which a round takes a tenth of a
    second.
    4. Centre and amplitude follow the running range of the observations.
    5. Under noise x, z_i and their best values are read from posterior means at the played actions.
    """  # noqa: E501

    source = "Ariafar et al. (2019)"
    about = "Bayesian optimisation by ADMM; after it stops, its incumbent"
    knows = ("kernel", "λ", "T (if λ is theory)", "R (if λ is true)")
    cost = "O(c t²) for c candidates"

    rho: float = param(0.1, "first penalty ρ of the augmented Lagrangian", above=0.0)
    M: float = param(50.0, "price M of an infeasible z_i", above=0.0)
    side: float = param(
        6.0, "side of the cube in which distances are taken (the paper's toy: 6)", above=0.0
    )
    corner: Literal["upper", "lower"] = param(
        "upper", "corner of the cube at which every z_i starts"
    )
    initial: int = param(
        2, "random points at the beginning, after a suite's initial design", at_least=1
    )
    first_f: int = param(10, "queries of the first optimality step", at_least=1)
    first_g: int = param(50, "queries of the first feasibility step of each constraint", at_least=1)
    later_f: int = param(5, "queries of every later optimality step", at_least=1)
    later_g: int = param(
        5, "queries of every later feasibility step of each constraint", at_least=1
    )
    iterations: int = param(15, "ADMM iterations at most", at_least=1)
    tolerance: float = param(0.05, "ε of the stopping rule: √d ε, and 1.5 ε relative", at_least=0.0)
    candidates: int = param(
        1000, "random points at which EI is maximised, drawn afresh per query", at_least=1
    )
    values: Literal["posterior", "observed"] = param(
        "posterior", "f and g at the played actions: means, or as observed"
    )
    delta: float = param(0.05, "δ: the incumbent has P(g <= 0) >= 1 - δ", above=0.0, below=1.0)

    stopped_at: int | None = state()
    converged: bool = state()

    def start_one(self, setting: Setting) -> None:
        m = setting.constraints
        # `theory` is of T alone, however much is told beside it.
        stated = noise_variance(self.lam, setting.horizon) if self.lam == "theory" else self.lam
        lam = true_noise(setting.noise[0]) if self.lam == "true" else stated
        self.fits = is_fitted(self.kernel, setting, find_obstacle(setting))
        self.model = RunModel(
            setting.actions, 1 + m, lam, setting.observations, self.scaled, self.fits
        )
        self.generator = setting.streams.role("candidates")[0]
        self.penalty = self.rho
        self.x = np.full(self.model.cube.d, 0.5 * self.side)
        corner = self.side if self.corner == "upper" else 0.0
        self.z = np.full((m, self.model.cube.d), corner)
        self.y = np.zeros_like(self.z)
        self.stopped_at = None
        self.converged = False
        # A generator, so that the nested steps keep their place between two asks.
        self.queries = self._plan()

    def ask_one(self, t: int) -> Any:
        self.inputs = next(self.queries)
        return self.model.action(self.inputs)

    def tell_one(self, t: int, action: Any, f: float, g: Array) -> None:
        self.model.tell(self.inputs, np.concatenate([[f], g]))

    def observe_one(self, t: int, action: Any, f: float, g: Array) -> None:
        self.model.tell(self.model.input_of(action), np.concatenate([[f], g]))

    def _plan(self) -> Iterator[Actions]:
        """Yield the queries in order; the model learns from each before the next."""
        # A suite's initial design takes the place of random points.
        for _ in range(self.initial - self.model.count):
            yield self.model.draw_input(self.generator)
        for k in range(self.iterations):
            # Optimality: queries of F plus the quadratic; then x is its best action known.
            count = self.later_f if k else self.first_f
            for _ in range(count):
                yield self._query(self.optimality_improvement)
            self.x = self._coordinates()[self._augmented().argmin()]

            # Feasibility: the same for every z_i, pulled towards the new x.
            before = self.z.copy()
            for i in range(len(self.z)):
                count = self.later_g if k else self.first_g
                for _ in range(count):
                    yield self._query(partial(self.feasibility_improvement, i=i))
                self.z[i] = self._coordinates()[self._infeasibility(i).argmin()]
            self.converged = self.dual_step(before)
            if self.converged:
                break
        self.stopped_at = self.model.count

        # Each play may change the means, and with them which action is the incumbent.
        while True:
            best = self._incumbent()
            yield self.model.played[best : best + 1]

    def _query(self, improvement: Callable[[Actions], Array]) -> Actions:
        """Return the most promising candidate, ties broken at random."""
        inputs = self.model.draw_candidates(self.generator, self.candidates)
        improvements = improvement(inputs)
        best = np.flatnonzero(improvements == improvements.max())
        chosen = best[self.generator.integers(len(best))]
        return inputs[chosen : chosen + 1]

    def recommend_one(self, t: int) -> Any:
        model = self.model
        measured = self.measured_in(model)
        return model.action(recommend_in_run(model, model.played, measured))

    # The two steps --------------------------------------------------------------------------------

    def _coordinates(self) -> Array:
        """The played actions in the cube of side `side`, (c, d)."""
        return self.side * self.model.units(self.model.played)

    def _values_at_played(self) -> Array:
        """f and g at the played actions, (1 + m, c)."""
        if self.values == "posterior":
            return self.model.at_played()[0]
        # An f that was not told is NaN; its posterior mean stands for it.
        observed = self.model.observed
        return np.where(np.isnan(observed), self.model.at_played()[0], observed)

    def _pull(self, points: Array) -> Array:
        """ρ/2 Σ_i |x - z_i + y_i/ρ|² of points x (q, d), (q,)."""
        gap = points[:, None] - self.z + self.y / self.penalty
        return self.penalty / 2 * (gap**2).sum(axis=(1, 2))

    def _push(self, points: Array, i: int) -> Array:
        """ρ/(2M) |x - z + y_i/ρ|² of points z (q, d), (q,)."""
        gap = self.x - points + self.y[i] / self.penalty
        return self.penalty / (2 * self.M) * (gap**2).sum(axis=1)

    def _augmented(self) -> Array:
        """The optimality step's objective at the played actions, (c,)."""
        return self._pull(self._coordinates()) - self._values_at_played()[0]

    def _infeasibility(self, i: int) -> Array:
        """The feasibility step's objective at the played actions, (c,)."""
        return (self._values_at_played()[1 + i] > 0) + self._push(self._coordinates(), i)

    def optimality_improvement(self, inputs: Actions) -> Array:
        """log EI of F + quadratic below its best known value, a GP of which the quadratic is part
        of the mean.
        """
        mean, deviation = self.model.at(inputs)
        negated = mean[0] - self._pull(self.side * self.model.units(inputs))
        return log_expected_improvement(negated, deviation[0], -self._augmented().min())

    def feasibility_improvement(self, inputs: Actions, i: int) -> Array:
        """EI of 1[g_i(z) > 0] + quadratic below its best known value, (q,)."""
        from scipy.special import ndtr

        mean, deviation = self.model.at(inputs)
        gain = self._infeasibility(i).min() - self._push(self.side * self.model.units(inputs), i)
        return indicator_improvement(gain, ndtr(-mean[1 + i] / deviation[1 + i]))

    def dual_step(self, before: Array) -> bool:
        """y_i += ρ (x - z_i), then the stopping rule, then ρ; whether ADMM has converged.

        Args:
            before: z of the last iteration, (m, d).
        """
        if not len(self.z):  # there are no constraints that x has to agree with
            return False
        primal = self.x - self.z
        rho = self.penalty
        root = np.sqrt(len(self.x))
        self.y = self.y + rho * primal

        # Residuals: r is how far x and z_i are apart, s how far z_i moved, in units of y.
        r = norm(primal, axis=-1)
        s = norm(rho * (self.z - before), axis=-1)

        # Each is compared with a tolerance of its own, relative to what it is a difference of.
        relative = SLACK * self.tolerance
        near = r < root * self.tolerance + relative * np.maximum(
            norm(self.x, axis=-1), norm(self.z, axis=-1)
        )
        still = s < root * self.tolerance + relative * norm(rho * self.y, axis=-1)

        # A larger ρ draws x and z_i together, a smaller one lets them follow their objectives.
        if r.mean() > RATIO * s.mean():
            self.penalty *= FACTOR
        elif RATIO * r.mean() < s.mean():
            self.penalty /= FACTOR
        return bool((near & still).all())

    def _incumbent(self) -> int:
        """Return the played action that is played for the rest."""
        mean, deviation = self.model.at_played()
        g = FunctionBelief(mean[None, 1:], deviation[None, 1:])
        # In logarithms, as a product of many probabilities may underflow.
        likely = log_feasibility(g)[0]
        feasible = likely >= np.log1p(-self.delta)
        if not feasible.any():
            return int(likely.argmax())
        return int(np.where(feasible, mean[0], -np.inf).argmax())


def indicator_improvement(gain: Array, feasible: Array) -> Array:
    """Expected improvement of 1[g > 0] + quadratic over the best value h⁺ known, (q,).

    With q = h⁺ - quadratic and θ = P(g <= 0): E[q - 1[g > 0]]⁺ = 0 for q <= 0, q θ for 0 < q < 1, q
    - (1 - θ) above.

    Args:
        gain: q, (q,).
        feasible: θ, (q,).
    """
    return np.where(gain <= 0, 0.0, np.where(gain < 1, gain * feasible, gain - (1 - feasible)))
