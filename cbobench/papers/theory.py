"""What the theorems say of a play: the best policy, the events of the proofs round by round, and
the bounds.

The linear program behind R₊ on a finite set gives the best policy, its dual variables, and the
margin of a policy. The events are those of Zhou & Ji (2022), Section 3.2, with c^(1) = β: E^est
(bounds hold at all actions), E^conc_t (estimates are near the means) and E^anti_t (estimates of the
best policy are optimistic). The bounds of R₊ and V are those of their Theorems 1 and 2, with the
constants of the proofs (Appendices A, B).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms.ckb import CKB
from cbobench.algorithms.optimistic import Optimistic, OptimisticReward
from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.beliefs import UCB, Belief, FunctionBelief, Thompson
from cbobench.gp.kernels import Array
from cbobench.play.play import Play
from cbobench.problems.instances import best_policy_value

BATCH = 2**17  # means that a batch may hold
ROUNDING = 1e-12
NEARLY = 1 + 1e-6  # norms come from a least-squares fit, and δ from a solver
OF_CKB = "CKB: "
"""Prefix of notes that concern the theorems of CKB, not the confidence bounds."""


@dataclass(frozen=True)
class Program:
    """max E_π f over policies π with E_π g_j <= 0 (Zhou & Ji 2022, eq. 2), solved for S replicates.

    Attributes:
        actions: the actions that the best policy π* mixes, (S, 1 + m); those of weight 0 fill up.
        weights: their probabilities, (S, 1 + m).
        dual: optimal dual variables φ* = argmin_{φ >= 0} max_x f(x) - φ·g(x), (S, m); with one
            constraint the smallest.
        margin: δ = min(1, max over policies of min_j -E_π g_j) of Assumption 1, (S,); negative
            where none is feasible.
    """

    actions: NDArray[np.intp]
    weights: Array
    dual: Array
    margin: Array


def solve(f: Array, g: Array, value: Array | None = None) -> Program:
    """The programs of replicates.

    Args:
        f: (S, n).
        g: (S, m, n); some action satisfies every constraint.
        value: of the best policy, (S,), if known.

    Raises:
        CellFailure: a program has no solution.
    """
    value = best_policy_value(f, g) if value is None else value
    solutions = [
        _solve_one_constraint(f[s], g[s, 0], value[s])
        if g.shape[1] == 1
        else _solve_by_lp(f[s], g[s])
        for s in range(len(f))
    ]
    actions, weights, dual, margin = (np.stack(part) for part in zip(*solutions, strict=True))
    return Program(actions, weights, dual, margin)


def _solve_one_constraint(
    f: Array, g: Array, value: float
) -> tuple[NDArray[np.intp], Array, Array, Array]:
    """Solve a program with one constraint.

    φ is optimal if no Lagrangian f(x) - φ g(x) exceeds the value. The least such φ is set by the
    infeasible action that exceeds it longest; π* mixes that action with the feasible one whose
    Lagrangian attains the value at φ.
    """
    inside, outside = np.flatnonzero(g <= 0), np.flatnonzero(g > 0)
    prices = (f[outside] - value) / g[outside]
    price = float(prices.max(initial=0.0))
    i = inside[(f[inside] - price * g[inside]).argmax()]
    j = outside[prices.argmax()] if price > 0 else i
    share = -g[i] / (g[j] - g[i]) if price > 0 else 0.0
    return (
        np.array([i, j]),
        np.array([1 - share, share]),
        np.array([price]),
        np.asarray(min(1.0, float(-g.min()))),
    )


def _solve_by_lp(f: Array, g: Array) -> tuple[NDArray[np.intp], Array, Array, Array]:
    from scipy.optimize import linprog

    m, n = g.shape
    ones = np.ones((1, n))
    best = linprog(
        -f,
        A_ub=g if m else None,
        b_ub=np.zeros(m) if m else None,
        A_eq=ones,
        b_eq=[1.0],
        method="highs-ds",
    )
    if not best.success:
        raise CellFailure(f"the policy LP has no solution ({best.message})")
    actions = np.argsort(-best.x, kind="stable")[: 1 + m]
    if m == 0:
        return actions, np.ones(1), np.empty(0), np.asarray(1.0)
    # max s subject to E_π g_j + s <= 0 for all j
    cost, rows = np.append(np.zeros(n), -1.0), np.concatenate([g, np.ones((m, 1))], axis=1)
    free = [*[(0.0, None)] * n, (None, None)]
    safest = linprog(
        cost, rows, np.zeros(m), np.append(ones, [[0.0]], axis=1), [1.0], free, method="highs-ds"
    )
    if not safest.success:
        raise CellFailure(f"the margin's LP has no solution ({safest.message})")
    weights = np.maximum(best.x[actions], 0.0)
    dual = np.maximum(-best.ineqlin.marginals, 0.0)
    return actions, weights / weights.sum(), dual, np.asarray(min(1.0, float(-safest.fun)))


class Events:
    """Watches the beliefs of S replicates at n actions.

    Rounds are evaluated in batches: one by one they would take as long as the play itself.

    Args:
        algorithm: started, with a width for each of its p functions.
        truth: f, g_1, ..., (S, p, n), noise-free, at the actions (or candidates) of its beliefs.
        program: the best policy; None if no action is feasible.
        star: the best feasible action, (S,); None if there is none.
        lagrangian: whether the score is f̄ - φ·ḡ with clipped estimates; otherwise each function is
            checked alone.
        marks: rounds of the curves; the last one is the horizon.

    Attributes:
        rounds: number of evaluated rounds.
        held: number of rounds in which the bound of each function held, (S, p).
        all_held: number of rounds in which all bounds held, (S,).
        needed: the largest |h - μ|/(βσ), (S, p).
        optimistic, concentrated, anti: number of rounds with these events, (S,).
        missed: Σ_t p_{2,t}.
        spread: Σ_t β_t σ(x_t), (S, p).
        curve: `spread` after the rounds `marks`.
        width: β of the last round, (S, p).
    """

    def __init__(
        self,
        algorithm: OptimisticReward,
        truth: Array,
        program: Program | None,
        star: NDArray[np.intp] | None,
        lagrangian: bool,
        marks: NDArray[np.int64],
    ) -> None:
        self.algorithm, self.truth, self.program = algorithm, truth, program
        self.lagrangian = lagrangian
        replicates, p, n = truth.shape
        # With a common variance, the array lacks the axis of the functions.
        self.separate_deviations = p > 1 and algorithm.posterior.variance.ndim == 3
        # Rounds are gathered and evaluated together, as many as memory allows: few large steps cost
        # less than many.
        depth = max(1, min(int(marks[-1]), BATCH // truth.size))
        self.mean, self.wrong = np.empty((2, depth, *truth.shape))
        self.deviation = np.empty((depth, replicates, p if self.separate_deviations else 1, n))
        self.path = np.empty(self.mean.shape) if algorithm.joint else None
        self.widths, self.multiple = np.empty((2, depth, replicates, p))
        fixed = [explore.multiple for explore in algorithm.explorations if isinstance(explore, UCB)]
        self.fixed = len(fixed) == len(algorithm.explorations)
        if self.fixed:
            self.multiple[:] = [fixed[0], *fixed[1:] * (p - 1)]
        self.dual = np.zeros((depth, replicates, p - 1))
        self.chosen = np.empty((depth, replicates), dtype=np.intp)
        self.at_chosen = np.empty((depth, replicates, self.deviation.shape[2]))
        self.t: list[int] = []
        self.points: NDArray[np.intp] | None = None
        if program is not None and star is not None:
            self.points = np.concatenate([program.actions, star[:, None]], axis=1)[:, None]
        self.rounds, self.missed = 0, 0.0
        self.held, self.needed, self.spread = (np.zeros((replicates, p)) for _ in range(3))
        self.all_held, self.optimistic, self.concentrated, self.anti = np.zeros((4, replicates))
        self.marks = marks
        self.curve = np.zeros((len(self.marks), replicates, p))
        self.width = np.ones((replicates, p))

    def observe(self, t: int) -> None:
        """Record round t: its actions are chosen, the algorithm has no feedback yet."""
        a, i = self.algorithm, len(self.t)
        self.mean[i] = a.posterior.mean
        self.deviation[i] = (
            np.sqrt(a.posterior.variance)
            if self.separate_deviations
            else a.belief.f.deviation[:, None]
        )
        self.widths[i] = a.widths
        if self.path is not None:
            for function, function_slice in self.functions(a.belief):
                self.path[i, :, function_slice] = function.path
        elif not self.fixed:
            for explore, (_, function_slice) in zip(
                a.explorations, self.functions(a.belief), strict=True
            ):
                self.multiple[i, :, function_slice] = explore.multiple
        if self.lagrangian:
            self.dual[i] = a.duals
        if a.box is None:
            self.chosen[i] = a.chosen
        else:
            variance = a.posterior.at(a.chosen[:, None])[1][..., 0]
            self.at_chosen[i] = np.sqrt(variance.reshape(self.at_chosen[i].shape))
        self.t.append(t)
        if len(self.t) == len(self.mean):
            self.flush()

    def functions(self, belief: Belief) -> Iterator[tuple[FunctionBelief, int | slice]]:
        """Beliefs of f and of g with their indices."""
        yield belief.f, 0
        if self.truth.shape[1] > 1:
            yield belief.constraint, slice(1, None)

    def flush(self) -> None:
        """Evaluate the recorded rounds."""
        k = len(self.t)
        if k == 0:
            return
        mean, width, deviation = self.mean[:k], self.widths[:k], self.deviation[:k]
        wrong = np.subtract(self.truth, mean, out=self.wrong[:k])
        np.abs(wrong, out=wrong)
        wrong /= deviation
        ratio = wrong.max(axis=3)
        held = ratio <= width
        self.held += held.sum(axis=0)
        self.all_held += held.all(axis=2).sum(axis=0)
        unit = np.divide(ratio, width, out=np.full_like(ratio, np.inf), where=width > 0)
        self.needed = np.maximum(self.needed, unit.max(axis=0))
        self._concentration(k)
        if self.points is not None:
            self._optimism(self.points)
        if self.algorithm.box is None:
            rows, which = np.arange(self.chosen.shape[1])[:, None], np.arange(deviation.shape[2])
            self.at_chosen[:k] = deviation[
                np.arange(k)[:, None, None], rows, which, self.chosen[:k, :, None]
            ]
        spread = np.concatenate([self.spread[None], width * self.at_chosen[:k]]).cumsum(axis=0)[1:]
        for place in np.flatnonzero(
            (self.marks >= self.t[0]) & (self.marks <= self.t[-1])
        ).tolist():
            self.curve[place] = spread[self.marks[place] - self.t[0]]
        self.spread, self.width = spread[-1], width[-1].copy()
        self.rounds += k
        self.t.clear()

    def _concentration(self, k: int) -> None:
        """E^conc: |estimate - mean| <= c^(2) σ at all actions."""
        explorations, p, n = self.algorithm.explorations, *self.truth.shape[1:]
        if self.path is None:
            distance = np.abs(self.multiple[:k])
        else:
            scaled = np.abs(self.path[:k], out=self.wrong[:k])
            scaled /= self.deviation[:k]
            distance = scaled.max(axis=3)
        is_near = np.ones(distance.shape[:2], dtype=bool)
        for explore, function_slice, count in zip(
            explorations, (slice(0, 1), slice(1, None)), (1, p - 1), strict=False
        ):
            allowed = np.array([explore.concentration(t, n) for t in self.t])
            is_near &= (
                distance[:, :, function_slice] <= allowed[:, None, None] * (1 + ROUNDING)
            ).all(axis=2)
            self.missed += sum(min(1.0, count * explore.misses(t)) for t in self.t)
        self.concentrated += is_near.sum(axis=0)

    def _optimism(self, points: NDArray[np.intp]) -> None:
        """E^anti at the best policy, and optimism at x*."""
        assert self.program is not None
        k, (replicates, p, _) = len(self.t), self.truth.shape
        rows, functions = np.arange(replicates)[:, None, None], np.arange(p)[:, None]
        shared = functions if self.separate_deviations else 0 * functions
        deviation = self.deviation[:k, rows, shared, points]  # (k, S, p, q)
        if self.path is None:
            step = self.multiple[:k, :, :, None] * deviation
        else:
            step = self.path[:k, rows, functions, points]
        sign = np.where(np.arange(p) == 0, 1.0, -1.0)
        weights = self.program.weights[:, None]
        if self.path is None:
            anti = sign * self.multiple[:k] >= 1
        else:
            anti = (weights * (sign[:, None] * step - deviation)[..., :-1]).sum(axis=3) >= 0
        self.anti += anti.all(axis=2).sum(axis=0)
        estimate = (self.mean[:k, rows, functions, points] + self.widths[:k, :, :, None] * step)[
            ..., -1
        ]
        true = self.truth[rows, functions, points][..., -1]
        if self.lagrangian:
            bounds = self.algorithm.bounds
            estimate = np.clip(estimate, -bounds, bounds)
            price = np.concatenate([np.ones((k, replicates, 1)), -self.dual[:k]], axis=2)
            gap = (price * (estimate - true)).sum(axis=2)
        else:
            gap = (sign * (estimate - true)).min(axis=2)
        self.optimistic += (gap >= -ROUNDING * (1 + np.abs(true).max(axis=1))).sum(axis=0)


def theorem_bounds(a: CKB, events: Events, horizon: int) -> dict[str, Any]:
    """Bounds at T, and for UCB after earlier rounds: columns of the audit table. Empty if no
    theorem applies.

    Their inequalities (12), (15) and Lemma 2, with χ(φ) >= T1 + T2 and the slack ε of Section 4:

        R₊(T) <= χ(0) + Σ_j T (G_j + ε)²/(2V_j) + 2BTε/δ
        V(T) <= 2/ρ (χ(ρ) + Σ_j V_j ρ²/2 + T (G_j + ε)²/(2V_j)) - Tε

    For UCB χ(φ) = 2 Σ_t β_t σ(x_t) + φ Σ_j 2 Σ_t β_jt σ(x_t); the bounds at T have β_T √(4(T +
    2)γ_T) in the place of the sums (Chowdhury & Gopalan 2017, Lemma 4), with γ_T of the actions
    played.
    """
    if not a.capped or a.anytime:
        return {}
    cap, G = a.cap[:, :1], a.bounds[:, 1:]
    lost = 2 * a.bounds[:, :1] * a.slack / a.setting.margin(a.delta)[:, None]

    def regret(chi: Array, t: int) -> Array:
        return np.asarray(chi + _dual_step_cost(a, G, t) + t * lost)

    def violation(chi: Array, t: int) -> Array:
        pulled = (a.inverse_step * cap**2 / 2).sum(axis=1, keepdims=True)
        return np.maximum(2 / cap * (chi + pulled + _dual_step_cost(a, G, t)) - t * a.slack, 0.0)

    def priced(terms: Array) -> Array:
        return np.asarray(terms[:, :1] + cap * terms[:, 1:].sum(axis=1, keepdims=True))

    # Thompson sampling has a bound at T alone: that of Theorem 2 is for one horizon.
    gain = np.asarray(a.posterior.gain).reshape(len(G), -1).max(axis=1)[:, None]
    deviations = np.sqrt(4 * (horizon + 2) * gain)
    if not all(isinstance(explore, UCB) for explore in a.explorations):
        chi = _chi_of_thompson(a, events, deviations, horizon)
        return {
            "regret_bound": regret(chi, horizon)[:, 0],
            "violation_bound": violation(chi, horizon)[:, 0],
        }
    final_sums, marks = 2 * events.width * deviations, events.marks.tolist()
    sums = [*zip(2 * events.curve, marks, strict=True)]
    return {
        "regret_bound": regret(final_sums[:, :1], horizon)[:, 0],
        "violation_bound": violation(priced(final_sums), horizon)[:, 0],
        "curve_t": [marks] * len(G),
        "curve_regret": np.concatenate([regret(s[:, :1], t) for s, t in sums], axis=1),
        "curve_violation": np.concatenate([violation(priced(s), t) for s, t in sums], axis=1),
    }


def _dual_step_cost(a: CKB, G: Array, t: int) -> Array:
    """The cost of the dual steps, Σ_j t (G_j + ε)²/(2V_j), (S, 1)."""
    return np.asarray((t * (G + a.slack) ** 2 / (2 * a.inverse_step)).sum(axis=1, keepdims=True))


def _chi_of_thompson(a: CKB, events: Events, deviations: Array, horizon: int) -> Array:
    """χ of Theorem 2, (22) before the O, (S, 1).

    1/p_4 is 1 + 2/p_3. It leaves out p_{2,t}, which exceeds p_3 in the first rounds, where no p_4
    satisfies the proof.
    """
    n, m, cap = events.truth.shape[2], a.bounds.shape[1] - 1, a.cap[:, :1]
    # (c^(1) + c^(2))/β
    wide = [1 + explore.concentration(horizon, n) for explore in a.explorations]
    c = events.width * np.array([wide[0], *[wide[1]] * m])
    weighted_width = c[:, :1] + cap * c[:, 1:].sum(axis=1, keepdims=True)
    inverse = 1 + 2 / (a.explorations[0].optimism() * a.explorations[1].optimism() ** m)
    kappa = 4 * a.bounds[:, :1] + 4 * cap * a.bounds[:, 1:].sum(axis=1, keepdims=True)
    luck = np.sqrt(2 * horizon * np.log(1 / a.alpha))
    return np.asarray(
        inverse * weighted_width * deviations
        + events.missed * kappa
        + inverse * weighted_width * kappa * luck
    )


def find_broken_premises(
    play: Play, norm: Array | None, program: Program | None
) -> list[list[str]]:
    """The broken assumptions of Theorems 1 and 2, per cell.

    Args:
        play: finished.
        norm: true RKHS norms of the functions, (S, 1 + m); None if unknown.
        program: the linear program of the instances, or None.
    """
    setting, algorithm = play.setting, play.algorithm
    premises: list[tuple[str, object]] = [
        ("functions move", bool(setting.changes)),
        ("functions are known by sampling alone", not play.instances.exact),
        ("feedback is delayed", setting.delayed),
        ("models are fitted", bool(algorithm.fits)),
        (
            "k(x, x) > 1",
            isinstance(setting.actions, Finite) and bool((setting.actions.prior > NEARLY).any()),
        ),
    ]
    # Without widths of the functions themselves no theorem applies, and what else it breaks would
    # mislead.
    if not isinstance(algorithm, OptimisticReward):
        return [["no widths"] for _ in range(setting.replicates)]
    if not isinstance(algorithm, Optimistic) and algorithm.models_constraints:
        return [["bounds are those of an inner target"] for _ in range(setting.replicates)]
    a, form = algorithm, algorithm.width_form()
    bounds, noise = a.bounds, a.noise_constants()
    q = bounds.shape[1]
    premises += [
        ("β is a constant", not isinstance(form, str)),
        ("β is scaled", isinstance(form, str) and a.beta_scale < 1),
        (
            "λ is not 1 + 2/T",
            form == "theory" and not np.isclose(a.regulariser, 1 + 2 / play.horizon, rtol=1e-12),
        ),
        ("γ is a rate", a.gain == "rate"),
        ("R < noise", (noise * NEARLY < setting.noise[:, :q]).any(axis=1)),
    ]
    # Of a box the norms are not known.
    if norm is not None:
        premises += [
            ("B < |f|", bounds[:, 0] * NEARLY < norm[:, 0]),
            ("G < |g|", (bounds[:, 1:] * NEARLY < norm[:, 1:q]).any(axis=1)),
        ]
    if isinstance(a, CKB):
        premises += [(f"{OF_CKB}{text}", holds) for text, holds in _ckb_premises(play, a, program)]
    premises_by_seed = [
        (text, np.broadcast_to(np.asarray(holds), len(bounds))) for text, holds in premises
    ]
    return [[text for text, holds in premises_by_seed if holds[s]] for s in range(len(bounds))]


def _ckb_premises(play: Play, a: CKB, program: Program | None) -> list[tuple[str, object]]:
    setting = play.setting
    delta, rho = setting.margin(a.delta), a.cap[:, 0]
    step = a.bounds[:, 1:] * np.sqrt(play.horizon) / a.cap
    premises: list[tuple[str, object]] = [
        ("slack > δ/2", a.slack > delta / 2 * NEARLY),
        ("ρ < 4B/δ", rho * NEARLY < 4 * a.bounds[:, 0] / delta),
        ("V is not G√T/ρ", not a.anytime and ~np.isclose(a.inverse_step, step).all(axis=1)),
        ("φ is not capped", not a.capped),
        ("epochs", a.anytime),
    ]
    if program is not None:
        mixture = (program.weights > 0).sum(axis=1) > 1
        # of a box, the program knows the candidates alone
        true = np.maximum(program.margin, setting.slater)
        premises += [
            ("δ exceeds the true one", delta > true * NEARLY),
            ("ρ < 2φ*", rho < 2 * program.dual.max(axis=1, initial=0.0)),
            (
                "π* is a mixture (TS)",
                mixture & any(isinstance(e, Thompson) for e in a.explorations),
            ),
        ]
    return premises
