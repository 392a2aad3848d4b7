"""Posteriors in observation space against a dense solve, against feature space, and against themselves."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import kernel
from cbobench.gp.posteriors import choice
from cbobench.gp.posteriors.features import FeaturePosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.gp.posteriors.separate import SeparatePosterior
from cbobench.gp.taylor import taylor
from cbobench.problems.base import Arrivals

LAM = 0.05


def a_box(name="se", d=2):
    return Box(np.zeros(d), np.full(d, 6.0), name, 0.2, 128)


def a_grid(name="matern52", n=40):
    points = np.linspace(0, 1, n)[:, None]
    return Finite(kernel(name, 0.2)(points, points), points, name)


def dense(covariance, cross, prior, values):
    """Means (k, p), variances (k,) and gain of a direct solve."""
    gram = covariance + LAM * np.eye(len(covariance))
    mean = cross.T @ np.linalg.solve(gram, values)
    variance = prior - (cross * np.linalg.solve(gram, cross)).sum(axis=0)
    return mean, variance, 0.5 * np.linalg.slogdet(gram / LAM)[1]


def box_truth(box, points, values, at):
    return dense(box.kernel(points, points), box.kernel(points, at), np.ones(len(at)), values)


def check(posterior, s, truth):
    mean, variance, gain = truth
    np.testing.assert_allclose(posterior.mean[s].T, mean, atol=1e-8)
    np.testing.assert_allclose(posterior.variance[s], variance, atol=1e-8)
    np.testing.assert_allclose(posterior.gain[s], gain, atol=1e-8)


@pytest.mark.parametrize("name", ["se", "matern12", "matern32", "matern52"])
def test_a_box_agrees_with_a_dense_solve(name):
    rng, box, T = np.random.default_rng(0), a_box(name), 100
    posterior = ObservationPosterior(box, LAM, 3, 2, T)
    points, values = rng.random((T, 3, 2)), rng.normal(size=(T, 3, 2))
    for t in range(T):
        posterior.update(points[t], values[t])
    for s in range(3):
        check(posterior, s, box_truth(box, points[:, s], values[:, s], box.candidates))
    anywhere = rng.random((3, 5, 2))
    mean, variance = posterior.at(anywhere)
    truth = box_truth(box, points[:, 1], values[:, 1], anywhere[1])
    np.testing.assert_allclose(mean[1].T, truth[0], atol=1e-8)
    np.testing.assert_allclose(variance[1], truth[1], atol=1e-8)


@pytest.mark.slow
def test_a_window_knows_only_its_last_observations():
    rng, box, T, W = np.random.default_rng(1), a_box(), 120, 37
    posterior = ObservationPosterior(box, LAM, 2, 2, W)
    points, values = rng.random((T, 2, 2)), rng.normal(size=(T, 2, 2))
    for t in range(T):
        posterior.update(points[t], values[t])
    for s in range(2):
        check(posterior, s, box_truth(box, points[-W:, s], values[-W:, s], box.candidates))
    assert not np.allclose(posterior.gain[0], box_truth(box, points[:, 0], values[:, 0], box.candidates)[2])


def test_reset_is_a_new_posterior():
    rng, box = np.random.default_rng(2), a_box()
    used, fresh = (ObservationPosterior(box, LAM, 2, 1, 50) for _ in range(2))
    for _ in range(30):
        used.update(rng.random((2, 2)), rng.normal(size=(2, 1)))
    used.reset()
    for _ in range(20):
        point, value = rng.random((2, 2)), rng.normal(size=(2, 1))
        used.update(point, value)
        fresh.update(point, value)
    for name in ("mean", "variance", "gain"):
        np.testing.assert_array_equal(getattr(used, name), getattr(fresh, name))


def test_features_and_observations_are_one_posterior():
    rng, actions = np.random.default_rng(3), a_grid()
    features = FeaturePosterior(actions.features, LAM, 3, 2, actions.covariance.diagonal())
    observations = ObservationPosterior(actions, LAM, 3, 2, 200)
    for _ in range(200):
        played, values = rng.integers(actions.n, size=3), rng.normal(size=(3, 2))
        features.update(played, values)
        observations.update(played, values)
    for name in ("mean", "variance", "gain"):
        np.testing.assert_allclose(getattr(features, name), getattr(observations, name), atol=1e-8)


@pytest.mark.parametrize("kind", ["features", "observations"])
def test_censored_values_enter_means_when_they_arrive_and_variances_when_played(kind):
    rng, actions, T = np.random.default_rng(4), a_grid(), 60
    posterior = (
        FeaturePosterior(actions.features, LAM, 2, 2)
        if kind == "features"
        else ObservationPosterior(actions, LAM, 2, 2, T)
    )
    played, values = rng.integers(actions.n, size=(T, 2)), rng.normal(size=(T, 2, 2))
    known = np.zeros_like(values)
    for t in range(1, T + 1):
        posterior.update(played[t - 1], np.zeros((2, 2)))
        when = t - 7 if t > 7 else 0
        if when:
            posterior.reveal(0, when, played[when - 1, 0], 1, values[when - 1, 0, 1])
            known[when - 1, 0, 1] = values[when - 1, 0, 1]
    for s in range(2):
        K = actions.covariance
        index = played[:, s]
        check(posterior, s, dense(K[np.ix_(index, index)], K[index], K.diagonal(), known[:, s]))


@pytest.mark.parametrize("where", ["box", "features", "observations"])
def test_delayed_functions_know_what_has_arrived(where):
    rng, T, S = np.random.default_rng(5), 40, 3
    box, grid = a_box(), a_grid()

    def single():
        if where == "box":
            return ObservationPosterior(box, LAM, S, 1, T)
        return (
            FeaturePosterior(grid.features, LAM, S, 1)
            if where == "features"
            else ObservationPosterior(grid, LAM, S, 1, T)
        )

    posterior = SeparatePosterior([single(), single()])
    played = rng.random((T, S, 2)) if where == "box" else rng.integers(grid.n, size=(T, S))
    values, due = rng.normal(size=(T, S, 2)), np.arange(1, T + 1)[:, None, None] + rng.poisson(4, (T, S, 2))
    for t in range(1, T + 1):
        found = sorted((s, r + 1, j, values[r, s, j]) for r, s, j in np.argwhere(due == t).tolist())
        columns = list(zip(*found, strict=True)) or [(), (), (), ()]
        arrivals = Arrivals(*(np.array(c, dtype=np.intp) for c in columns[:3]), np.array(columns[3], dtype=float))
        posterior.receive(t, played[:t], arrivals)
    for s in range(S):
        for j in range(2):
            there = due[:, s, j] <= T
            seen, told = played[there, s], values[there, s, j][:, None]
            if where == "box":
                truth = box_truth(box, seen, told, box.candidates)
            else:
                K = grid.covariance
                truth = dense(K[np.ix_(seen, seen)], K[seen], K.diagonal(), told)
            np.testing.assert_allclose(posterior.mean[s, j], truth[0][:, 0], atol=1e-8)
            np.testing.assert_allclose(posterior.variance[s, j], truth[1], atol=1e-8)
            np.testing.assert_allclose(posterior.gain[s, j], truth[2], atol=1e-8)


@pytest.mark.parametrize("name", ["se", "matern52"])
def test_jets_are_derivatives(name):
    rng, box, h = np.random.default_rng(7), a_box(name), 1e-4
    posterior = ObservationPosterior(box, 1.0, 2, 2, 50)
    for _ in range(50):
        posterior.update(rng.random((2, 2)), rng.normal(size=(2, 2)))
    at, layout = rng.random((2, 3, 2)), taylor(2)
    jet = posterior.jet(at)
    for i in range(2):
        step = h * np.eye(2)[i]
        up, down = posterior.jet(at + step), posterior.jet(at - step)
        for what in ("mean", "variance"):
            here, above, below = (getattr(one, what) for one in (jet, up, down))
            difference = (above[..., 0] - below[..., 0]) / (2 * h)
            np.testing.assert_allclose(layout.slopes(here)[..., i], difference, atol=1e-4)
            difference = (layout.slopes(above) - layout.slopes(below)) / (2 * h)
            np.testing.assert_allclose(layout.bends(here)[..., i], difference, atol=1e-2)


def test_the_cheaper_representation_is_chosen():
    smooth, rough = a_grid("se", 100), a_grid("matern52", 1000)
    assert choice.in_features(smooth, 10_000)
    assert not choice.in_features(rough, 100)
    assert choice.in_features(rough, 100_000), "observations would not fit into memory"
    assert choice.representation(rough, 100) == "observations (rank above 49 of 1,000 actions, T = 100)"
    assert "rank 19 of 100" in choice.representation(smooth, 10_000)


@pytest.mark.parametrize("horizon", [1, 7, 100, 1234])
def test_the_largest_rank_for_features_is_where_the_costs_cross(horizon):
    n = 300
    costs = [2 * n * r + 3 * r**2 <= horizon * n + 2 * horizon**2 / 3 for r in range(5000)]
    assert choice.largest_rank(n, horizon) == sum(costs) - 1


@pytest.mark.slow
def test_a_rank_is_counted_no_further_than_asked():
    rough, rank = a_grid("matern52", 150), a_grid("matern52", 150).features.shape[1]
    assert not any(rough.rank_is_at_most(most) for most in (10, 50, 30, rank - 1))
    assert rough._features is None
    assert rough.rank_is_at_most(rank)
    assert not rough.rank_is_at_most(rank - 1)
    np.testing.assert_array_equal(rough.features, a_grid("matern52", 150).features)
