"""Finite sets: the best feasible action, the best policy of R+ (an exact LP), and where safe methods start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.actions import LARGEST
from cbobench.gp.kernels import Array

PAIRS = 2**20  # that are looked at together


def best_feasible(f: Array, g: Array) -> NDArray[np.intp]:
    """Index of the best action with every g_j <= 0.

    Args:
        f: (S, n).
        g: (S, m, n).

    Raises:
        CellFailure: some replicate has no feasible action.
    """
    feasible = np.asarray((g <= 0).all(axis=1))
    if not feasible.any(axis=1).all():
        missing = int(np.flatnonzero(~feasible.any(axis=1))[0])
        raise CellFailure(f"replicate {missing} has no feasible action: nothing to compare with")
    return np.asarray(np.where(feasible, f, -np.inf).argmax(axis=1), dtype=np.intp)


def best_policy_value(f: Array, g: Array) -> Array:
    """max over distributions pi of E_pi f with E_pi g_j <= 0 for all j (Zhou & Ji 2022, eq. 2), shape (S,).

    With one constraint the optimum mixes at most two actions, so all pairs (feasible, infeasible) are tried:
    exact, and a thousand times faster than a solver. With more, HiGHS solves the LP.
    """
    if g.shape[1] == 0:
        return np.asarray(f.max(axis=1))
    if g.shape[1] == 1:
        return np.array([_best_mixture(f[s], g[s, 0]) for s in range(len(f))])
    return np.array([_linear_program(f[s], g[s]) for s in range(len(f))])


def _best_mixture(f: Array, g: Array) -> float:
    if len(f) > LARGEST:
        kept = _upper_hull(f, g)
        f, g = f[kept], g[kept]
    inside, outside = np.flatnonzero(g <= 0), np.flatnonzero(g > 0)
    best = float(f[inside].max())
    step = max(1, PAIRS // max(1, len(outside)))
    for i in range(0, len(inside) if len(outside) else 0, step):
        some = inside[i : i + step]
        slack, excess = -g[some][:, None], g[outside][None, :]
        share = slack / (slack + excess)  # the largest share of the infeasible action that keeps E g = 0
        mixed = (1 - share) * f[some][:, None] + share * f[outside][None, :]
        best = max(best, float(mixed.max()))
    return best


def _upper_hull(f: Array, g: Array) -> NDArray[np.intp]:
    """The actions on the upper concave hull of f over g, between which the best mixture lies (and the best feasible
    one). The rest may be left out: on 100,000 actions there are 2.5e9 pairs."""
    hull: list[int] = []
    for i in np.lexsort((-f, g)).tolist():
        if hull and g[hull[-1]] == g[i]:
            continue
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (f[b] - f[a]) * (g[i] - g[a]) > (f[i] - f[a]) * (g[b] - g[a]):
                break
            hull.pop()
        hull.append(i)
    feasible = np.where(g <= 0, f, -np.inf)
    return np.unique(np.append(hull, feasible.argmax())).astype(np.intp)


def _linear_program(f: Array, g: Array) -> float:
    from scipy.optimize import linprog

    solution = linprog(-f, A_ub=g, b_ub=np.zeros(len(g)), A_eq=np.ones((1, len(f))), b_eq=[1.0], method="highs")
    if not solution.success:
        raise CellFailure(f"the policy LP has no solution ({solution.message})")
    return float(-solution.fun)


def slater_margin(g: Array) -> Array:
    """delta = min(1, max over actions of -max_j g_j), shape (S,): Assumption 1 of Zhou & Ji, at a single action."""
    if g.shape[1] == 0:
        return np.ones(len(g))
    return np.asarray(np.minimum(1.0, (-g.max(axis=1)).max(axis=1)))


def choose_seed_set(g: Array, size: int, generators: Sequence[np.random.Generator]) -> NDArray[np.bool_]:
    """`size` feasible actions per replicate, uniformly at random (all of them where there are fewer), (S, n).

    The draw comes from a child of each generator, so that it does not depend on how much the instance used.

    Random rather than safest: where g = h - f the safest actions are the best ones, which would hand a safe
    method the answer.
    """
    mask = np.zeros((len(g), g.shape[2]), dtype=bool)
    for s, gen in enumerate(generators):
        feasible = np.flatnonzero((g[s] <= 0).all(axis=0))
        if len(feasible) == 0:
            raise CellFailure("no feasible action to start from")
        mask[s, gen.spawn(1)[0].permutation(feasible)[:size]] = True
    return mask
