"""Problems: their functions, thresholds, references, noise and the facts of the recorded data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from cbobench.errors import CellFailure
from cbobench.problems.data import DataFolder
from cbobench.problems.instances import best_feasible, best_policy_value, slater_margin
from cbobench.problems.recorded import STOCK_MEANS, LightSensors, Stocks
from cbobench.rng import Streams, generator
from tests.helpers import problem


def draw(task, count=8):
    return task.draw([generator("instance", "p", s) for s in range(count)])


@pytest.mark.parametrize(("form", "h"), [("threshold", 0.25), ("threshold", 0.5), ("independent", 0.5)])
def test_synthetic_functions_and_norms(form, h):
    task = problem("rkhs-1d", constraint=form, h=h)
    drawn = draw(task)
    covariance = task.actions.covariance
    weights = np.linalg.lstsq(covariance, drawn.f.T, rcond=1e-12)[0]  # any weights with K a = f have the same norm
    np.testing.assert_allclose(drawn.norm[:, 0], np.sqrt((drawn.f * weights.T).sum(axis=1)), rtol=1e-6)
    if form == "threshold":
        np.testing.assert_allclose(drawn.g[:, 0], h * drawn.norm[:, :1] - drawn.f)
    assert (np.abs(drawn.functions).max(axis=2) <= drawn.norm + 1e-12).all(), "sup norm <= RKHS norm as k(x,x) = 1"
    assert (drawn.g <= 0).all(axis=1).any(axis=1).all()
    assert (drawn.seed_set <= (drawn.g <= 0).all(axis=1)).all()
    spread = drawn.f.max(axis=1) - drawn.f.min(axis=1)
    np.testing.assert_allclose(drawn.noise[:, 0] ** 2, 0.01 * spread)


def test_norm_from_values_agrees_with_norm_from_weights():
    drawn, actions = draw(problem("rkhs-1d")), problem("rkhs-1d").actions
    np.testing.assert_allclose(actions.norm(drawn.f), drawn.norm[:, 0], rtol=1e-6)


def test_redraws_are_counted():
    drawn = draw(problem("rkhs-1d", h=0.75), 40)
    assert drawn.redraws.sum() > 0
    assert (drawn.g <= 0).any(axis=2).all()


def test_an_impossible_threshold_is_a_failure():
    with pytest.raises(CellFailure, match="no feasible instance in 1000 draws; lower h"):
        draw(problem("rkhs-1d", h=1.5), 1)


def test_one_fixed_instance_or_one_per_seed():
    fresh, fixed = draw(problem("rkhs-1d")), draw(problem("rkhs-1d", instance=3))
    assert not np.array_equal(fresh.f[0], fresh.f[1])
    np.testing.assert_array_equal(fixed.f[0], fixed.f[1])
    assert not np.array_equal(fixed.f[0], draw(problem("rkhs-1d", instance=4)).f[0])


@pytest.mark.parametrize("kernel", ["se", "linear"])
def test_rkhs_in_any_dimension_and_with_several_constraints(kernel):
    task = problem("rkhs", d=3, n=40, m=2, kernel=kernel)
    drawn = draw(task, 3)
    assert task.actions.points.shape == (40, 3)
    assert drawn.g.shape == (3, 2, 40)
    assert task.constraints == 2


def test_reference_optimum_by_exhaustion():
    drawn = draw(problem("rkhs", n=30, m=2))
    for s in range(drawn.replicates):
        feasible = [i for i in range(30) if (drawn.g[s, :, i] <= 0).all()]
        assert drawn.f_star[s] == max(drawn.f[s, i] for i in feasible)
        assert drawn.optimum[s] in feasible
        assert set(np.flatnonzero(drawn.seed_set[s])) <= set(feasible), "safe starts keep all constraints"


@pytest.mark.parametrize("m", [1, 2])
def test_best_policy_value_is_the_linear_program(m):
    drawn = draw(problem("rkhs", n=30, m=m), 12)
    for s in range(drawn.replicates):
        lp = linprog(-drawn.f[s], drawn.g[s], np.zeros(m), np.ones((1, 30)), [1.0])
        np.testing.assert_allclose(drawn.f_plus[s], -lp.fun, rtol=1e-9)
    assert (drawn.f_plus >= drawn.f_star - 1e-12).all()
    assert (drawn.f_plus > drawn.f_star + 1e-6).any(), "mixing must pay somewhere, or the test shows nothing"


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


def test_gaussian_noise_has_the_declared_deviation_and_is_independent():
    task = problem("rkhs-1d", noise=0.3)
    drawn = draw(task, 200)
    channel = task.feedback(drawn, Streams([("feedback", s) for s in range(200)]))
    played = np.zeros(200, dtype=np.intp)
    seen = [channel.at(t, played) for t in range(1, 101)]
    f = np.stack([feedback.f for feedback in seen]) - drawn.f[:, 0]
    g = np.stack([feedback.g[:, 0] for feedback in seen]) - drawn.g[:, 0, 0]
    assert abs(f.std() - 0.3) < 6 * 0.3 / np.sqrt(2 * f.size)
    assert abs(f.mean()) < 6 * 0.3 / np.sqrt(f.size)
    assert abs(np.corrcoef(f.ravel(), g.ravel())[0, 1]) < 6 / np.sqrt(f.size)
    assert np.corrcoef(f.ravel(), f.ravel())[0, 1] > 0.9, "negative control: equal noise would be seen"


def test_readings_are_rows_of_the_table():
    task = problem("stocks", data="look-alike")
    drawn = draw(task, 4)
    channel = task.feedback(drawn, Streams([("feedback", s) for s in range(4)]))
    played = np.array([0, 1, 2, 3])
    for t in range(1, 30):
        feedback = channel.at(t, played)
        for s in range(4):
            assert feedback.f[s] in task.table.rows[:, played[s]]
        np.testing.assert_array_equal(feedback.g[:, 0], 100 - feedback.f)


@pytest.mark.parametrize(
    ("name", "n", "rows", "top", "condition", "feasible", "best", "largest"),
    [
        ("stocks", 29, 823, [21.38, 2.79, 1.57], 9.6e3, 15, 237.33, 203.29),
        ("light-sensors", 41, 192, [26.91, 9.94, 1.03], 4.75e5, 19, 945.54, 835.28),
    ],
)
def test_look_alikes_have_the_published_facts(name, n, rows, top, condition, feasible, best, largest):
    task = problem(name, data="look-alike")
    eigenvalues = np.linalg.eigvalsh(task.actions.covariance)[::-1]
    drawn = draw(task, 1)
    assert task.table.rows.shape == (rows, n)
    np.testing.assert_allclose(task.actions.covariance.diagonal(), 1.0)
    np.testing.assert_allclose(eigenvalues[:3], top, rtol=1e-3)
    np.testing.assert_allclose(eigenvalues[0] / eigenvalues[-1], condition, rtol=1e-2)
    assert (drawn.g <= 0).sum() == feasible
    np.testing.assert_allclose(drawn.f_star, best)
    np.testing.assert_allclose(drawn.noise[0], largest)
    np.testing.assert_allclose(drawn.f[0], task.table.rows.mean(axis=0))


def test_recorded_stocks(original_data):
    task = Stocks()
    task.prepare(DataFolder(original_data))
    drawn = draw(task, 1)
    eigenvalues = np.linalg.eigvalsh(task.actions.covariance)[::-1]
    assert task.table.rows.shape == (823, 29)
    np.testing.assert_allclose(eigenvalues[:3], [21.38, 2.79, 1.57], atol=5e-3)
    np.testing.assert_allclose(drawn.f_star, 237.328, atol=1e-3)
    assert task.table.names[drawn.optimum[0]] == "BA"
    np.testing.assert_allclose(drawn.noise[0], 203.29, atol=5e-3)
    np.testing.assert_allclose(drawn.norm[0, 0], 2065, atol=1)
    assert (drawn.g <= 0).sum() == 15
    means = dict(zip(task.table.names, drawn.f[0], strict=True))
    for name, mean in STOCK_MEANS.items():
        np.testing.assert_allclose(means[name], mean, atol=6e-3)


def test_recorded_light_sensors(original_data):
    task = LightSensors()
    task.prepare(DataFolder(original_data))
    drawn = draw(task, 1)
    eigenvalues = np.linalg.eigvalsh(task.actions.covariance)[::-1]
    assert task.table.rows.shape == (192, 41)
    assert task.table.points.shape == (41, 2)
    np.testing.assert_allclose(eigenvalues[:3], [26.91, 9.94, 1.03], atol=6e-3)
    assert drawn.optimum[0] == 3
    np.testing.assert_allclose(drawn.f_star, 945.54, atol=5e-3)
    np.testing.assert_allclose(drawn.noise[0], 835.28, atol=5e-3)
    np.testing.assert_allclose(drawn.norm[0, 0], 12_809, atol=1)
    assert (drawn.g <= 0).sum() == 19
