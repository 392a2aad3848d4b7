"""Posteriors in observation space against a dense solve, against feature space, and against
themselves.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import kernel
from cbobench.gp.posteriors import choice
from cbobench.gp.posteriors.features import FeaturePosterior, InterpolatedPosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.gp.posteriors.separate import SeparatePosterior
from tests.helpers import make_arrivals

LAM = 0.05


def a_box(name="se", d=2):
    return Box(np.zeros(d), np.full(d, 6.0), name, 0.2, 128)


def a_grid(name="matern52", n=40):
    points = np.linspace(0, 1, n)[:, None]
    return Finite(kernel(name, 0.2)(points, points), points, name)


def make_posterior(kind, replicates, functions):
    """A posterior in feature space or of observations, each on a grid and on a box, where the first
    has a mesh.
    """
    return {
        "features": lambda: FeaturePosterior(
            a_grid().features, LAM, replicates, functions, a_grid().prior
        ),
        "observations": lambda: ObservationPosterior(a_grid(), LAM, replicates, functions, 60),
        "mesh": lambda: InterpolatedPosterior(a_box(), LAM, replicates, functions),
        "box": lambda: ObservationPosterior(a_box(), LAM, replicates, functions, 60),
    }[kind]()


def dense(covariance, cross, prior, values, lam=LAM):
    """Means (k, p), variances (k,) and gain of a direct solve."""
    gram = covariance + lam * np.eye(len(covariance))
    mean = cross.T @ np.linalg.solve(gram, values)
    variance = prior - (cross * np.linalg.solve(gram, cross)).sum(axis=0)
    return mean, variance, 0.5 * np.linalg.slogdet(gram / lam)[1]


def box_truth(box, points, values, at, lam=LAM):
    return dense(box.kernel(points, points), box.kernel(points, at), np.ones(len(at)), values, lam)


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


@pytest.mark.parametrize("kind", ["features", "box", "mesh"])
def test_reset_is_a_new_posterior(kind):
    """With the prior's means and variances, and what is told later is all that it knows."""
    rng, grid = np.random.default_rng(2), a_grid()
    used, fresh = (make_posterior(kind, 2, 1) for _ in range(2))

    def tell(*posteriors):
        point, value = (
            rng.random((2, 2)) if kind != "features" else rng.integers(grid.n, size=2),
            rng.normal(size=(2, 1)),
        )
        for posterior in posteriors:
            posterior.update(point, value)

    for _ in range(30):
        tell(used)
    for posterior in (used, fresh):
        posterior.reset(0.5)
    assert not used.mean.any()
    np.testing.assert_allclose(used.variance, 1.0, rtol=1e-12)
    for _ in range(20):
        tell(used, fresh)
    for name in ("mean", "variance", "gain", "lam"):
        np.testing.assert_array_equal(getattr(used, name), getattr(fresh, name))


@pytest.mark.parametrize("kind", ["features", "observations", "mesh"])
def test_censored_values_enter_means_when_they_arrive_and_variances_when_played(kind):
    rng, grid, box, T = np.random.default_rng(4), a_grid(), a_box(), 60
    posterior = make_posterior(kind, 2, 2)
    played = rng.random((T, 2, 2)) if kind == "mesh" else rng.integers(grid.n, size=(T, 2))
    values, arrived_values = rng.normal(size=(T, 2, 2)), np.zeros((T, 2, 2))
    for t in range(T):
        posterior.update(played[t], np.zeros((2, 2)))
        if t >= 7:
            arrived_values[t - 7, 0, 1] = values[t - 7, 0, 1]
            posterior.reveal(0, t - 6, played[t - 7, 0], 1, arrived_values[t - 7, 0, 1])
    for s in range(2):
        index, K = played[:, s], grid.covariance
        if kind == "mesh":
            check(posterior, s, box_truth(box, index, arrived_values[:, s], box.candidates))
        else:
            check(
                posterior,
                s,
                dense(K[np.ix_(index, index)], K[index], K.diagonal(), arrived_values[:, s]),
            )


@pytest.mark.parametrize("kind", ["box", "mesh", "features", "observations"])
def test_delayed_functions_know_what_has_arrived(kind):
    rng, T, S = np.random.default_rng(5), 40, 3
    box, grid = a_box(), a_grid()
    posterior = SeparatePosterior([make_posterior(kind, S, 1) for _ in range(2)])
    played = rng.random((T, S, 2)) if kind in ("box", "mesh") else rng.integers(grid.n, size=(T, S))
    values, due = (
        rng.normal(size=(T, S, 2)),
        np.arange(1, T + 1)[:, None, None] + rng.poisson(4, (T, S, 2)),
    )
    for t in range(1, T + 1):
        arrived = [(s, r + 1, j, values[r, s, j]) for r, s, j in np.argwhere(due == t).tolist()]
        posterior.receive(t, played[:t], make_arrivals(arrived))
    for s in range(S):
        for j in range(2):
            has_arrived = due[:, s, j] <= T
            played_points, observed = played[has_arrived, s], values[has_arrived, s, j][:, None]
            if kind in ("box", "mesh"):
                truth = box_truth(box, played_points, observed, box.candidates)
            else:
                K = grid.covariance
                truth = dense(
                    K[np.ix_(played_points, played_points)],
                    K[played_points],
                    K.diagonal(),
                    observed,
                )
            np.testing.assert_allclose(posterior.mean[s, j], truth[0][:, 0], atol=1e-8)
            np.testing.assert_allclose(posterior.variance[s, j], truth[1], atol=1e-8)
            np.testing.assert_allclose(posterior.gain[s, j], truth[2], atol=1e-8)


def test_the_cheaper_representation_is_chosen():
    smooth, rough = a_grid("se", 100), a_grid("matern52", 1000)
    assert choice.in_features(smooth, 10_000)
    assert not choice.in_features(rough, 100)
    assert choice.in_features(rough, 100_000), "observations would not fit into memory"
