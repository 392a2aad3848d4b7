"""The linear program behind R₊ on a finite set: the best policy, its dual variables, and the margin of a policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array
from cbobench.problems.instances import best_policy_value


@dataclass(frozen=True)
class Program:
    """max E_π f over policies π with E_π g_j <= 0 (Zhou & Ji 2022, eq. 2), solved for S replicates.

    Attributes:
        actions: the actions that the best policy π* mixes, (S, 1 + m); those of weight 0 fill up.
        weights: their probabilities, (S, 1 + m).
        dual: optimal dual variables φ* = argmin_{φ >= 0} max_x f(x) - φ·g(x), (S, m); with one constraint the smallest.
        margin: δ = min(1, max over policies of min_j -E_π g_j) of Assumption 1, (S,); negative where none is feasible.
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
        _solve_one_constraint(f[s], g[s, 0], value[s]) if g.shape[1] == 1 else _solve_by_lp(f[s], g[s])
        for s in range(len(f))
    ]
    actions, weights, dual, margin = (np.stack(part) for part in zip(*solutions, strict=True))
    return Program(actions, weights, dual, margin)


def _solve_one_constraint(f: Array, g: Array, value: float) -> tuple[NDArray[np.intp], Array, Array, Array]:
    """Solve a program with one constraint.

    φ is optimal if no Lagrangian f(x) - φ g(x) exceeds the value. The least such φ is set by the infeasible action that
    exceeds it longest; π* mixes that action with the feasible one whose Lagrangian attains the value at φ.
    """
    inside, outside = np.flatnonzero(g <= 0), np.flatnonzero(g > 0)
    prices = (f[outside] - value) / g[outside]
    price = float(prices.max(initial=0.0))
    i = inside[(f[inside] - price * g[inside]).argmax()]
    j = outside[prices.argmax()] if price > 0 else i
    share = -g[i] / (g[j] - g[i]) if price > 0 else 0.0
    return np.array([i, j]), np.array([1 - share, share]), np.array([price]), np.asarray(min(1.0, float(-g.min())))


def _solve_by_lp(f: Array, g: Array) -> tuple[NDArray[np.intp], Array, Array, Array]:
    from scipy.optimize import linprog

    m, n = g.shape
    ones = np.ones((1, n))
    best = linprog(-f, A_ub=g if m else None, b_ub=np.zeros(m) if m else None, A_eq=ones, b_eq=[1.0], method="highs-ds")
    if not best.success:
        raise CellFailure(f"the policy LP has no solution ({best.message})")
    actions = np.argsort(-best.x, kind="stable")[: 1 + m]
    if m == 0:
        return actions, np.ones(1), np.empty(0), np.asarray(1.0)
    # max s subject to E_π g_j + s <= 0 for all j
    cost, rows = np.append(np.zeros(n), -1.0), np.concatenate([g, np.ones((m, 1))], axis=1)
    free = [*[(0.0, None)] * n, (None, None)]
    safest = linprog(cost, rows, np.zeros(m), np.append(ones, [[0.0]], axis=1), [1.0], free, method="highs-ds")
    if not safest.success:
        raise CellFailure(f"the margin's LP has no solution ({safest.message})")
    weights = np.maximum(best.x[actions], 0.0)
    dual = np.maximum(-best.ineqlin.marginals, 0.0)
    return actions, weights / weights.sum(), dual, np.asarray(min(1.0, float(-safest.fun)))
