"""FuRBO: its ranking of inspectors by hand, the box that they span, and that all else is SCBO's."""

from __future__ import annotations

import copy

import numpy as np

from cbobench.algorithms.scbo import rank
from tests.algorithms.easy import GRID, bowl, on_box, started
from tests.helpers import make, play, setting


def learn_grid(**settings):
    """A run that knows f = x_1 and g = (x_2 - 0.6, 10 (0.2 - x_1)) at a grid."""
    run = started("furbo", on_box(2, constraints=2), **settings)
    for x in np.stack(np.meshgrid([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]), axis=-1).reshape(-1, 2):
        run._learn(x[None], x[0], np.array([x[1] - 0.6, 10 * (0.2 - x[0])]))
    return run


def test_the_order_of_inspectors_by_hand():
    """The constraints' scales are 2 and 100, so that their largest shares are -0.1, 0.5, -0.5, 0.4,
    1 and 0.
    """
    f = [1.0, 9.0, 3.0, 9.0, 9.0, 2.0]
    g = [[-0.2, 1.0, -2.0, 0.2, 2.0, -1.0], [-20.0, -100.0, -50.0, 40.0, -1.0, 0.0]]
    assert rank(np.array([f, *g])).tolist() == [2, 5, 0, 3, 1, 4], (
        "feasible by f; then 0.4, 0.5 and 1"
    )
    assert rank(np.array([f, [0.3, 0.2, 0.5, 0.4, 0.1, 0.6]])).tolist() == [4, 1, 0, 3, 2, 5], (
        "f does not count"
    )
    assert rank(np.zeros((2, 3))).tolist() == [0, 1, 2], "equal ones stay in order"


def test_the_region_is_the_box_around_the_best_tenth():
    run, middle = learn_grid(), np.array([0.5, 0.5])
    run.side = 0.45
    before = copy.deepcopy(run.generator)
    low, high = run._bounds(middle)
    run.generator = before
    drawn, points = run._inspect(middle)
    assert drawn == 2000
    f, *g = run.model.at(points)[0]
    shares = np.max([constraint / np.abs(constraint).max() for constraint in g], axis=0)
    order = sorted(
        range(len(points)), key=lambda i: (shares[i] > 0, shares[i] if shares[i] > 0 else -f[i])
    )
    np.testing.assert_array_equal(
        (low, high), (points[order[:200]].min(axis=0), points[order[:200]].max(axis=0))
    )
    assert low[0] > 0.5, "where f is large"
    assert high[1] < 0.65, "and g is not positive"


def test_inspectors_are_uniform_in_distance_and_direction():
    run = learn_grid(inspectors=20_000)
    run.side = 0.5
    _, points = run._inspect(np.array([0.5, 0.5]))
    away = points - 0.5
    distance, angle = np.linalg.norm(away, axis=1), np.arctan2(away[:, 1], away[:, 0])
    np.testing.assert_allclose(
        np.quantile(distance, [0.25, 0.5, 0.75]), [0.125, 0.25, 0.375], atol=0.01
    )
    np.testing.assert_allclose(
        np.quantile(angle, [0.25, 0.5, 0.75]), np.pi * np.array([-0.5, 0, 0.5]), atol=0.05
    )


def test_inspectors_of_a_finite_set_are_the_actions_in_the_ball():
    run = started("furbo", setting(np.eye(81), points=GRID), length=0.126)
    assert run._inspect(np.array([0.5, 0.5]))[1].tolist() == [31, 39, 40, 41, 49]
    run_of_four = started("furbo", setting(np.eye(81), points=GRID), inspectors=4)
    assert len(run_of_four._inspect(np.array([0.5, 0.5]))[1]) == 8


def test_it_solves_an_easy_problem():
    cells, _ = play(bowl(noise_f=0.0, noise_g=0.0), make("furbo", initial=5), seeds=2, horizon=25)
    assert cells.metrics.final["simple_regret"].max() < 0.01
