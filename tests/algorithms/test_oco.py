"""Bandit OCO: steps by hand, estimates against known gradients, queries that stay in the cube."""

from __future__ import annotations

import numpy as np
import pytest

from tests.algorithms.easy import on_box, started
from tests.helpers import setting

BY_HAND = {"alpha": 0.1, "mu": 0.5, "theta": 0.2, "delta": 0.1, "scale": 1.0, "clip": 100.0}


class East:
    """Directions that always point along the first axis."""

    def standard_normal(self, d):
        return np.eye(d)[0] * 3.0


def by_hand(**settings):
    run = started("bandit-oco", on_box(), **(BY_HAND | settings))
    run.x, run.dual, run.directions = np.array([0.5, 0.5]), np.array([1.0]), East()
    return run


def test_a_two_point_step_by_hand():
    """f = 1 and 0.6, g = 0.5 and 0.3 at x ± 0.1 e_1: slopes of -f and g along u are -2 and 1, times
    d = 2: -4 and 2.

    With λ = 1 the gradient is -2 e_1, so x moves by 0.1 * 2; λ <- (1 - 0.5 * 0.2) 1 + 0.5 * 0.4 =
    1.1.
    """
    run = by_hand()
    first = run.ask_one(1)
    np.testing.assert_allclose(first, [0.6, 0.5])
    run.tell_one(1, first, 1.0, np.array([0.5]))
    np.testing.assert_allclose(run.x, [0.5, 0.5])  # no step yet
    second = run.ask_one(2)
    np.testing.assert_allclose(second, [0.4, 0.5])
    run.tell_one(2, second, 0.6, np.array([0.3]))
    np.testing.assert_allclose(run.x, [0.7, 0.5])
    np.testing.assert_allclose(run.dual, [1.1])
    np.testing.assert_allclose(run.dual_one(), [1.1])


@pytest.mark.parametrize(("settings", "x"), [({"clip": 1.0}, 0.6), ({"alpha": 10.0}, 0.9)])
def test_clipping_and_projection(settings, x):
    """The same step with the gradient scaled down to norm 1; and one that ends at the wall of the
    shrunken cube.
    """
    run = by_hand(**settings)
    for f, g in ((1.0, 0.5), (0.6, 0.3)):
        run.tell_one(0, run.ask_one(0), f, np.array([g]))
    np.testing.assert_allclose(run.x, [x, 0.5])


def test_one_point_steps_by_hand():
    """Round 1: f = 0.1, g = -0.2: slopes -0.1/0.1 and -0.2/0.1, times 2: gradient (-2 - 4) e_1, x
    moves by 0.6 -> 0.9.

    λ <- 0.9 - 0.1 = 0.8. Round 2, f = 0.1, g = -0.2 again: equal to the mean of earlier rounds, so
    x stays.
    """
    run = by_hand(points=1)
    assert run.ask_one(1)[0] == pytest.approx(0.6)
    run.tell_one(1, None, 0.1, np.array([-0.2]))
    np.testing.assert_allclose(run.x, [0.9, 0.5])
    np.testing.assert_allclose(run.dual, [0.8])
    run.ask_one(2)
    run.tell_one(2, None, 0.1, np.array([-0.2]))
    np.testing.assert_allclose(run.x, [0.9, 0.5])
    np.testing.assert_allclose(run.dual, [0.9 * 0.8 - 0.1])
    plain = by_hand(points=1, subtract_mean=False, alpha=0.01)
    for t, x in ((1, 0.56), (2, 0.61)):  # λ = 1, then 0.8: gradients -6 and -2 - 3.2
        plain.tell_one(t, plain.ask_one(t), 0.1, np.array([-0.2]))
        np.testing.assert_allclose(plain.x[0], x, atol=0.0025)


@pytest.mark.parametrize(("points", "d"), [(1, 1), (2, 3)])
def test_estimates_average_to_the_gradient(points, d):
    """On f = s.x with tiny steps the mean move is α s: the factor d and the law of u are right."""
    slope = np.array([3.0, -1.0, 2.0])[:d]
    settings = {"alpha": 1e-7, "mu": 0.0, "delta": 0.1, "clip": 1e9, "scale": 1.0, "points": points}
    run = started("bandit-oco", on_box(d), **settings)
    run.x = begin = np.full(d, 0.5)
    rounds = 8_000
    for t in range(rounds):
        x = run.ask_one(t)
        run.tell_one(t, x, float(slope @ (x - 0.5)), np.zeros(1))
    np.testing.assert_allclose((run.x - begin) / (1e-7 * rounds / points), slope, atol=0.25)


def test_values_are_divided_by_what_was_seen():
    """f from -1 to 3 and g from -2 to 0.5 seen: divisors 4 and 2; the recorded dual is in units of
    f per unit of g.
    """
    run = started("bandit-oco", on_box(), alpha=1e-9)
    for f, g in ((-1.0, 0.5), (3.0, -2.0)):
        run.tell_one(0, run.ask_one(0), f, np.array([g]))
    np.testing.assert_allclose(run._divisors(), [4.0, 2.0])
    run.dual = np.array([0.3])
    np.testing.assert_allclose(run.dual_one(), [0.3 * 4 / 2])


def test_theory_steps():
    two, one_point = (
        started("bandit-oco", on_box(horizon=10_000), points=p, c=2.0) for p in (2, 1)
    )
    np.testing.assert_allclose([two.primal_step, two.dual_step, two.shrink], 2e-2)
    np.testing.assert_allclose([one_point.primal_step, one_point.dual_step], 2e-3)
    np.testing.assert_allclose([two.radius, one_point.radius], 0.2 / 10)


def test_queries_stay_in_the_cube_and_snap_to_the_nearest_action():
    run = started("bandit-oco", on_box(horizon=400), c=20.0, clip=50.0)
    rng = np.random.default_rng(0)
    inside = []
    for t in range(400):
        x = run.ask_one(t)
        sign = 1 if run.first is None else -1
        inside.append(run.x + sign * run.radius * run.u)
        run.tell_one(t, x, rng.normal(), rng.normal(size=1))
    assert np.min(inside) >= -1e-12
    assert np.max(inside) <= 1 + 1e-12
    assert np.ptp(inside) > 0.9, "negative control: the walls are reached"
    points = np.array([[10.0], [11.0], [14.0]])
    run = started("bandit-oco", setting(np.eye(3), points=points))
    assert [run.cube.action(np.array([x])) for x in (0.0, 0.3, 0.6, 0.7, 1.0)] == [0, 1, 1, 2, 2]
    assert run.radius == pytest.approx(1 / 3)
