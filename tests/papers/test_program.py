"""The best policy, its dual variables and the margin of a policy, beside brute force and another
solver.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from cbobench.papers.theory import solve
from tests.helpers import problem


def drawn(m, n=7, many=12):
    """Tiny programs, some of them with a feasible action only just: f (S, n), g (S, m, n)."""
    rng = np.random.default_rng(m)
    f, g = (
        rng.normal(size=(many, n)),
        rng.normal(size=(many, m, n)) + rng.choice([0.0, 0.7], size=(many, 1, 1)),
    )
    g[:, :, 0] = -np.abs(g[:, :, 0])
    return f, g


@pytest.mark.parametrize("m", [1, 2, 3])
def test_policy_and_dual_are_those_of_an_interior_point_solver(m):
    f, g = drawn(m)
    solution = solve(f, g)
    for s in range(len(f)):
        interior = linprog(
            -f[s], g[s], np.zeros(m), np.ones((1, f.shape[1])), [1.0], method="highs-ipm"
        )
        np.testing.assert_allclose(solution.dual[s], -interior.ineqlin.marginals, atol=1e-9)
        mixed, weights = solution.actions[s], solution.weights[s]
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert weights @ f[s, mixed] == pytest.approx(-interior.fun, abs=1e-9)
        assert (g[s][:, mixed] @ weights <= 1e-9).all()
    assert (solution.dual > 0).any()
    assert (solution.dual == 0).any()


@pytest.mark.parametrize("m", [1, 2])
def test_no_other_price_gives_a_lower_dual_function(m):
    f, g = drawn(m)
    solution = solve(f, g)
    grid = np.linspace(0, 6, 241 if m == 1 else 61)
    prices = np.array([*itertools.product(grid, repeat=m)])
    for s in range(len(f)):
        least = (f[s] - prices @ g[s]).max(axis=1).min()
        assert (f[s] - solution.dual[s] @ g[s]).max() <= least + 1e-12


def best_pair(g):
    """The largest margin of a mixture of two actions under two constraints: its ends, or where both
    are equal.
    """
    best = -np.inf
    for a, b in itertools.product(range(g.shape[1]), repeat=2):
        gap_a, gap_b = g[0, a] - g[1, a], g[0, b] - g[1, b]
        shares = [0.0, 1.0]
        if gap_a != gap_b and 0 <= gap_b / (gap_b - gap_a) <= 1:
            shares.append(gap_b / (gap_b - gap_a))
        best = max(best, *(min(-(share * g[:, a] + (1 - share) * g[:, b])) for share in shares))
    return min(1.0, best)


def test_the_margin_is_that_of_the_best_pair():
    f, g = drawn(2)
    np.testing.assert_allclose(solve(f, g).margin, [best_pair(costs) for costs in g], atol=1e-9)
    f, g = drawn(1)
    np.testing.assert_allclose(
        solve(f, g).margin, [best_pair(np.concatenate([costs, costs])) for costs in g], atol=1e-9
    )


def test_a_mixture_may_be_much_safer_than_any_action():
    task = problem("rkhs", constraint="independent", m=3, n=60)
    instances = task.draw([np.random.default_rng(s) for s in range(50)])
    margin = solve(instances.f, instances.g).margin
    assert (margin >= instances.slater - 1e-9).all()
    assert (margin > 2 * instances.slater).sum() >= 3


def test_without_constraints_the_best_action_is_the_policy():
    solution = solve(np.array([[0.0, 2.0, 1.0]]), np.empty((1, 0, 3)))
    assert solution.actions.tolist() == [[1]]
    assert solution.dual.shape == (1, 0)
