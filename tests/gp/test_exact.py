"""Nearly noiseless posteriors in every round, against a Cholesky factor with eleven more bits."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import squared_lengths, stationary
from cbobench.gp.posteriors.factor import Factor
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.gp.posteriors.separate import OwnNoise, SeparatePosterior
from tests.helpers import make_arrivals

LONG = np.longdouble
LAG = 5
KERNELS = [
    ("se", 0.01),
    ("se", 0.2),
    ("se", 10.0),
    ("matern12", 1.0),
    ("matern32", 10.0),
    ("matern52", 0.2),
]


def a_box(name="se", lengthscale=0.2, size=32):
    return Box(np.zeros(2), np.ones(2), name, lengthscale, size)


def plays(box, rounds, replicates=1, seed=0):
    """Points (T, S, 2), every other one near a favourite, and a function of the space there, (T, S,
    1).
    """
    rng = np.random.default_rng(seed)
    points = rng.random((rounds, replicates, 2))
    points[::2] = np.clip(0.4 + 1e-3 * rng.normal(size=points[::2].shape), 0, 1)
    centres, weights = rng.random((10, 2)), rng.normal(size=10)
    weights *= 6 / np.sqrt(weights @ box.kernel(centres, centres) @ weights)
    values = box.kernel(points.reshape(-1, 2), centres) @ weights
    return points, values.reshape(rounds, replicates, 1)


def exact(kernel, points, values, lam, at):
    """Means and variances at points, in long double."""
    points, at, left = points.astype(LONG), at.astype(LONG), values.astype(LONG).copy()
    schur = kernel.profile(squared_lengths(points[:, None] - points)) + LONG(lam) * np.eye(
        len(points), dtype=LONG
    )
    cross = kernel.profile(squared_lengths(points[:, None] - at))
    mean, variance = np.zeros(len(at), LONG), np.ones(len(at), LONG)
    for i in range(len(points)):
        root = np.sqrt(schur[i, i])
        column, z, u = schur[i + 1 :, i] / root, cross[i] / root, left[i] / root
        schur[i + 1 :, i + 1 :] -= np.multiply.outer(column, column)
        cross[i + 1 :] -= np.multiply.outer(column, z)
        left[i + 1 :] -= column * u
        mean, variance = mean + u * z, variance - z**2
    return mean, np.maximum(variance, 0)


def check(moments, truth, tolerance=1e-6):
    (mean, variance), (m, v) = moments, truth
    scale = max(float(np.abs(m).max()), 1e-3)
    np.testing.assert_allclose(mean / scale, (m / scale).astype(float), atol=tolerance, rtol=0)
    np.testing.assert_allclose(np.sqrt(variance), np.sqrt(v).astype(float), atol=tolerance, rtol=0)


def check_box(posterior, box, points, values, lam, which=(0, 0), tolerance=1e-6):
    """At the candidates, and between them by `at` and by jets; which replicate and function."""
    s, function = which
    between = np.concatenate([points[-3:] + 1e-4, [[0.3, 0.9]]]).clip(0, 1)
    truth = exact(box.kernel, points, values, lam, np.concatenate([box.candidates, between]))
    places = np.tile(between, (len(posterior.gain), 1, 1))
    mean, variance = posterior.at(places)
    jet = posterior.jet(places)

    def of(shared):  # variances have an axis of functions where these are separate
        return shared[s] if shared.ndim == 2 else shared[s, function]

    for means, variances in ((mean, variance), (jet.mean[..., 0], jet.variance[..., 0])):
        all_means = np.append(posterior.mean[s, function], means[s, function])
        check((all_means, np.append(of(posterior.variance), of(variances))), truth, tolerance)


@pytest.mark.parametrize(("T", "slots", "lam"), [(70, 70, 1e-8), (80, 20, 1e-6)])
@pytest.mark.parametrize(("name", "lengthscale"), KERNELS)
def test_every_round_is_exact_in_a_window_too(name, lengthscale, T, slots, lam):
    """Every ninth round, and the last one."""
    box = a_box(name, lengthscale)
    posterior = ObservationPosterior(box, lam, 1, 1, slots)
    points, values = plays(box, T)
    for t in range(1, T + 1):
        posterior.update(points[t - 1], values[t - 1])
        if t % 9 == 0 or t == T:
            held = slice(max(0, t - slots), t)
            at, observed = points[held, 0], values[held, 0, 0]
            check_box(posterior, box, at, observed, lam)
            gram = box.kernel(at, at) / lam + np.eye(len(at))
            gain = 0.5 * np.linalg.slogdet(gram)[1]
            np.testing.assert_allclose(posterior.gain[0], gain, rtol=1e-7)


@pytest.mark.parametrize(("name", "lengthscale"), KERNELS)
def test_delays_are_exact(name, lengthscale):
    box, T, lam = a_box(name, lengthscale), 60, 1e-8
    posterior = SeparatePosterior([ObservationPosterior(box, lam, 2, 1, T) for _ in range(2)])
    points, values = plays(box, T, 2)
    due = np.arange(T)[:, None, None] + 1 + np.random.default_rng(2).poisson(LAG, (T, 2, 2))
    for t in range(1, T + 1):
        arrived = [(s, r + 1, j, values[r, s, 0]) for r, s, j in np.argwhere(due == t).tolist()]
        posterior.receive(t, list(points[:t]), make_arrivals(arrived))
        if t % 20 == 0:
            has_arrived = due[:, 1, 1] <= t
            check_box(
                posterior,
                box,
                points[has_arrived, 1],
                values[has_arrived, 1, 0],
                lam,
                (1, 1),
            )


@pytest.mark.parametrize(("name", "lengthscale"), KERNELS)
def test_values_that_are_revealed_later_are_exact(name, lengthscale):
    box, T, lam = a_box(name, lengthscale), 60, 1e-6
    posterior = ObservationPosterior(box, lam, 1, 2, T)
    points, values = plays(box, T)
    revealed = np.zeros(T)
    for t in range(1, T + 1):
        posterior.update(points[t - 1], np.zeros((1, 2)))
        if t > LAG:
            revealed[t - LAG - 1] = values[t - LAG - 1, 0, 0]
            posterior.reveal(0, t - LAG, points[t - LAG - 1], 1, revealed[t - LAG - 1])
        if t % 9 == 0:
            check_box(posterior, box, points[:t, 0], revealed[:t], lam, (0, 1))
            assert not posterior.mean[0, 0].any()


def test_finite_sets_and_what_is_asked_of_them():
    grid = np.linspace(0, 1, 60)[:, None]
    kernel, lam = stationary("se", 0.1), 1e-7
    actions = Finite(kernel(grid, grid), grid)
    posterior = ObservationPosterior(actions, lam, 1, 1, 90)
    played = np.random.default_rng(0).integers(60, size=90)
    values = actions.covariance[:, 7] - 2 * actions.covariance[:, 40]
    for action in played:
        posterior.update(np.array([action]), values[[action], None])
    truth = exact(kernel, grid[played], values[played], lam, grid)
    check((posterior.mean[0, 0], posterior.variance[0]), truth)
    mean, variance, _ = posterior.at_observations()
    check((mean[0, 0], variance[0]), (truth[0][played], truth[1][played]))
    columns = posterior.covariances(0, 0, np.array([3, 50]))
    np.testing.assert_allclose(
        columns[[0, 1], [3, 50]], truth[1][[3, 50]].astype(float), atol=1e-12
    )


@pytest.mark.parametrize("window", [16, 60])
def test_noise_may_cross_the_line_for_one_replicate_and_back(window):
    """A factor for some replicates changes no bit of the others, and all are right after every
    change.
    """
    box, lam = a_box("matern52"), 0.1
    points, values = plays(box, 60, replicates=3)
    with_constant = np.concatenate([values, np.ones_like(values)], axis=2)
    moving, still = (OwnNoise([ObservationPosterior(box, lam, 3, 2, window)]) for _ in range(2))
    for t in range(60):
        moving.update(points[t], with_constant[t])
        still.update(points[t], with_constant[t])
        small = 1e-6 if 10 <= t < 30 or t > 50 else lam
        moving.set_noise(np.array([[lam], [small], [lam]]))
        for s in (0, 2):
            np.testing.assert_array_equal(moving.mean[s], still.mean[s])
            np.testing.assert_array_equal(moving.variance[s], still.variance[s])
        if t in (15, 29, 35, 59):
            held = slice(max(0, t + 1 - window), t + 1)
            check_box(moving, box, points[held, 1], values[held, 1, 0], small, (1, 0))


@pytest.mark.parametrize(("lam", "noise"), [(1e-14, 0.0), (1e-10, 0.01)])
def test_what_double_precision_cannot_hold_ends_the_cell_in_one_line(lam, noise):
    """And every round before is right, a matrix that could still be factored or not."""
    box, rng = a_box(), np.random.default_rng(1)
    points, values = plays(box, 100)
    posterior = ObservationPosterior(box, lam, 1, 1, 100)

    def play():
        for t in range(100):
            posterior.update(points[t], values[t] + noise * rng.normal())
            observed = posterior.values[0, 0, : t + 1]
            check_box(posterior, box, points[: t + 1, 0], observed, lam, tolerance=1e-5)

    with pytest.raises(
        CellFailure, match=r"^λ = 1e-1\d is lost in double precision.*give a larger lam.*$"
    ):
        play()
    assert posterior.updates > 3


def test_a_singular_matrix_and_a_missing_observation_end_the_cell():
    with pytest.raises(CellFailure, match="lost in double precision"):
        Factor(np.ones((3, 3)), 0.0, np.ones((3, 2)), np.ones((1, 3)), np.arange(3))
    for lam in (0.1, 1e-6):
        posterior = ObservationPosterior(a_box(), lam, 2, 1, 5)
        with pytest.raises(CellFailure, match="an observation of replicate 1 is not a number"):
            posterior.update(np.full((2, 2), 0.5), np.array([[1.0], [np.nan]]))
