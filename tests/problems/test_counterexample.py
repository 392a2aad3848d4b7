"""The counterexample of Proposition 1: what a fixed penalty maximises, and what should be
maximised.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.problems.formulas.applications import penalty_of
from tests.helpers import problem

CASES = [
    (0.0, "linear", 0.5),
    (1.0, "exponential", 0.1),
    (7.0, "linear", 0.2),
    (50.0, "exponential", 0.5),
]


@pytest.mark.parametrize(("kappa", "kind", "c"), CASES)
def test_the_penalised_maximum_is_infeasible_and_the_optimum_is_at_the_boundary(kappa, kind, c):
    task = problem("no-fixed-penalty", kappa=kappa, penalty=kind, c=c)
    x = np.linspace(-1, 1, 2001)
    f, g = task.formula(x[:, None]).T
    penalised = f - kappa * penalty_of(kind, g)
    assert abs(x[penalised.argmax()] - c) < 1e-9
    assert g[penalised.argmax()] == pytest.approx(c)
    assert (f.max() > task.optimum.f + 1e-6, task.optimum.binds) == (True, True)
    assert task.formula(np.array(task.optimum.x))[0] == task.optimum.f
    assert task.draw([np.random.default_rng(0)]).stars(1, 1)[0].item() == task.optimum.f
    assert f[g <= 0].max() == pytest.approx(task.optimum.f, abs=1e-12)


def test_exponential_penalty_by_hand():
    np.testing.assert_allclose(
        penalty_of("exponential", np.array([-1.0, 0.0, np.log(3)])), [0, 0, 2]
    )
    np.testing.assert_allclose(penalty_of("linear", np.array([-1.0, 2.0])), [-1, 2])


def test_a_finite_grid_has_the_same_story():
    task = problem("no-fixed-penalty", grid=21)
    drawn = task.draw([np.random.default_rng(0)])
    assert task.optimum == task.reference, "the reference is that of the default parameters"
    assert abs(task.actions.points[drawn.optimum[0], 0]) < 1e-12
    # f is concave: mixing does not pay
    np.testing.assert_allclose(drawn.f_plus, drawn.f_star, atol=1e-12)
