"""Problems: their functions, thresholds, references, noise and the facts of the recorded data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from cbobench.errors import CellFailure
from cbobench.problems.data import DataFolder
from cbobench.problems.instances import best_feasible, best_policy_value, slater_margin
from cbobench.problems.tables.recorded import STOCK_MEANS, LightSensors, Stocks
from cbobench.rng import generator
from tests.helpers import problem


def draw(task, count=8):
    return task.draw([generator("instance", "p", s) for s in range(count)])


@pytest.mark.parametrize(
    ("form", "h"), [("threshold", 0.25), ("threshold", 0.5), ("independent", 0.5)]
)
def test_synthetic_functions_and_norms(form, h):
    task = problem("rkhs-1d", constraint=form, h=h)
    drawn = draw(task)
    covariance = task.actions.covariance
    # any weights with K a = f have the same norm
    weights = np.linalg.lstsq(covariance, drawn.f.T, rcond=1e-12)[0]
    np.testing.assert_allclose(
        drawn.norm[:, 0], np.sqrt((drawn.f * weights.T).sum(axis=1)), rtol=1e-6
    )
    if form == "threshold":
        np.testing.assert_allclose(drawn.g[:, 0], h * drawn.norm[:, :1] - drawn.f)
    assert (np.abs(drawn.functions).max(axis=2) <= drawn.norm + 1e-12).all(), (
        "sup norm <= RKHS norm as k(x,x) = 1"
    )
    assert (drawn.g <= 0).all(axis=1).any(axis=1).all()
    assert (drawn.seed_set <= (drawn.g <= 0).all(axis=1)).all()
    spread = drawn.f.max(axis=1) - drawn.f.min(axis=1)
    np.testing.assert_allclose(drawn.noise[:, 0] ** 2, 0.01 * spread)


def test_redraws_are_counted():
    drawn = draw(problem("rkhs-1d", h=0.75), 40)
    assert drawn.redraws.sum() > 0
    assert (drawn.g <= 0).any(axis=2).all()


def test_an_impossible_threshold_is_a_failure():
    with pytest.raises(CellFailure, match="no feasible instance in 1000 draws; lower h"):
        draw(problem("rkhs-1d", h=1.5), 1)


def test_reference_optimum_by_exhaustion():
    drawn = draw(problem("rkhs", n=30, m=2))
    for s in range(drawn.replicates):
        feasible = [i for i in range(30) if (drawn.g[s, :, i] <= 0).all()]
        assert drawn.f_star[s] == max(drawn.f[s, i] for i in feasible)
        assert drawn.optimum[s] in feasible
        assert set(np.flatnonzero(drawn.seed_set[s])) <= set(feasible), (
            "safe starts keep all constraints"
        )


@pytest.mark.parametrize("m", [1, 2])
def test_best_policy_value_is_the_linear_program(m):
    drawn = draw(problem("rkhs", n=30, m=m), 12)
    for s in range(drawn.replicates):
        lp = linprog(-drawn.f[s], drawn.g[s], np.zeros(m), np.ones((1, 30)), [1.0])
        np.testing.assert_allclose(drawn.f_plus[s], -lp.fun, rtol=1e-9)
    assert (drawn.f_plus >= drawn.f_star - 1e-12).all()
    assert (drawn.f_plus > drawn.f_star + 1e-6).any(), (
        "mixing must pay somewhere, or the test shows nothing"
    )


def test_best_policy_by_hand():
    f, g = np.array([[1.0, 5.0]]), np.array([[[-1.0, 3.0]]])
    np.testing.assert_allclose(best_policy_value(f, g), 0.75 * 1 + 0.25 * 5)
    assert best_feasible(f, g).tolist() == [0]
    with pytest.raises(CellFailure, match="no feasible action"):
        best_feasible(f, np.ones((1, 1, 2)))


def test_slater_margin_by_hand():
    task = problem("rkhs-1d", h=0.25)
    drawn = draw(task)
    np.testing.assert_allclose(drawn.slater, np.minimum(1, -drawn.g.min(axis=(1, 2))))
    two = np.array([[[-0.3, -0.9, 0.1], [-0.5, -0.1, -2.0]]])
    np.testing.assert_array_equal(slater_margin(two), [0.3], "of both constraints at one action")


def drawn_with_facts(task):
    """The one instance, which has the published facts of its data set, to the digits that are
    published.
    """
    rows, top, feasible, best, largest = {
        "stocks": ((823, 29), [21.38, 2.79, 1.57], 15, 237.33, 203.29),
        "light-sensors": ((192, 41), [26.91, 9.94, 1.03], 19, 945.54, 835.28),
    }[task.name]
    drawn = draw(task, 1)
    assert task.table.rows.shape == rows
    np.testing.assert_allclose(task.actions.covariance.diagonal(), 1.0)
    np.testing.assert_allclose(np.linalg.eigvalsh(task.actions.covariance)[:-4:-1], top, atol=2e-2)
    assert (drawn.g <= 0).sum() == feasible
    np.testing.assert_allclose([drawn.f_star[0], drawn.noise[0, 0]], [best, largest], atol=5e-3)
    np.testing.assert_allclose(drawn.f[0], task.table.rows.mean(axis=0))
    return drawn


@pytest.mark.parametrize(("name", "condition"), [("stocks", 9.6e3), ("light-sensors", 4.75e5)])
def test_look_alikes_have_the_published_facts(name, condition):
    task = problem(name, data="look-alike")
    drawn_with_facts(task)
    np.testing.assert_allclose(np.linalg.cond(task.actions.covariance), condition, rtol=1e-2)


@pytest.mark.parametrize(
    ("cls", "best", "norm"), [(Stocks, "BA", 2065), (LightSensors, None, 12_809)]
)
def test_recorded_data_have_the_published_facts(original_data, cls, best, norm):
    task = cls()
    task.prepare(DataFolder(original_data))
    drawn = drawn_with_facts(task)
    np.testing.assert_allclose(drawn.norm[0, 0], norm, atol=1)
    means = dict(zip(task.table.names, drawn.f[0], strict=True))
    if cls is Stocks:
        assert task.table.names[drawn.optimum[0]] == best
        np.testing.assert_allclose(
            [means[name] for name in STOCK_MEANS], [*STOCK_MEANS.values()], atol=6e-3
        )
    else:
        assert (task.table.points.shape, drawn.optimum[0]) == ((41, 2), 3)


@pytest.mark.parametrize("name", ["cloud-latency", "expert-guidance", "tuning-under-deadline"])
def test_what_is_shown_of_a_problem_are_its_facts(name):
    task = problem(name)
    drawn, facts = draw(task, 1), type(task).facts()
    assert facts["actions"] == f"n = {task.actions.n}, d = {task.actions.d}"
    assert facts["feasible"] == f"{(drawn.g[0, 0] <= 0).sum()} of {task.actions.n}"
    assert name == "expert-guidance" or facts["best"] == f"{drawn.f_star[0]:.7g}"
