"""Posteriors on a mesh against dense solves, against observation space, and against themselves."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp.box_actions import Box
from cbobench.gp.jets import taylor
from cbobench.gp.posteriors import choice
from cbobench.gp.posteriors.features import InterpolatedPosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from tests.gp.test_observations import box_truth

S, P = 3, 2


def a_box(d=2, lengthscale=0.3, name="se"):
    return Box(np.zeros(d), np.full(d, 6.0), name, lengthscale, 64)


def dense(box, points, values, lam, at):
    """Means (p, k), variances (k,) and gain by a direct solve; values (n, p)."""
    mean, variance, gain = box_truth(box, points, values, at, lam)
    return mean.T, variance, gain


def check(posterior, s, box, points, values, lam, functions=slice(None)):
    """At the mesh, and between its points by `at` and by jets."""
    rng = np.random.default_rng(9)
    between = np.concatenate(
        [rng.random((5, box.d)), np.round(rng.random((2, box.d))), points[-2:]]
    )
    mean, variance, gain = dense(
        box, points, values, lam, np.concatenate([box.candidates, between])
    )
    places = np.tile(between, (len(posterior.gain), 1, 1))
    means, variances = posterior.at(places)
    jet, scale, size = posterior.jet(places), max(1.0, np.abs(values).max()), len(box.candidates)
    for moment, truth in (
        (posterior.mean[s, functions], mean[:, :size]),
        (means[s, functions], mean[:, size:]),
        (jet.mean[s, functions, :, 0], mean[:, size:]),
    ):
        np.testing.assert_allclose(moment / scale, truth / scale, atol=1e-8)
    for moment, truth in (
        (posterior.variance[s], variance[:size]),
        (variances[s], variance[size:]),
        (jet.variance[s, :, 0], variance[size:]),
    ):
        np.testing.assert_allclose(moment, truth, atol=1e-9)
    np.testing.assert_allclose(posterior.gain[s], gain, rtol=1e-9)


def plays(d, rounds, seed=0, size=1.0):
    """Points (T, S, d), every other one near a favourite or on a side, and values (T, S, P)."""
    rng = np.random.default_rng(seed)
    points = rng.random((rounds, S, d))
    points[::2] = np.clip(0.4 + 1e-3 * rng.normal(size=points[::2].shape), 0, 1)
    points[::5, :, 0] = 1.0
    return points, size * rng.normal(size=(rounds, S, P))


@pytest.mark.parametrize(
    ("d", "lengthscale", "lam", "size"),
    [
        (1, 0.2, 0.05, 1.0),
        (1, 0.03, 1e-3, 1e4),
        (2, 0.2, 0.05, 1.0),
        (2, 0.3, 1e-3, 1e4),
        (2, 1.0, 1.0, 1.0),
    ],
)
def test_many_rounds_agree_with_a_dense_solve_and_with_observation_space(d, lengthscale, lam, size):
    box, T = a_box(d, lengthscale), 120
    mesh, slots = InterpolatedPosterior(box, lam, S, P), ObservationPosterior(box, lam, S, P, T)
    points, values = plays(d, T, size=size)
    for t in range(T):
        mesh.update(points[t], values[t])
        slots.update(points[t], values[t])
    check(mesh, 1, box, points[:, 1], values[:, 1], lam)
    ours, theirs = mesh.at_observations(), slots.at_observations()
    np.testing.assert_allclose(ours[0] / size, theirs[0] / size, atol=1e-8)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-8)
    assert ours[2].all()


def test_where_a_mesh_does_the_choice_is_feature_space():
    def chosen(box, lam):
        return type(choice.make_cheapest(box, S, P, 100, lam))

    assert chosen(a_box(), 1e-3) is InterpolatedPosterior
    assert chosen(a_box(1, 0.05), 1.0) is InterpolatedPosterior
    assert chosen(a_box(), 0.9e-3) is ObservationPosterior, "errors of the mesh grow as 1/λ"
    assert chosen(a_box(name="matern52"), 1.0) is ObservationPosterior
    assert chosen(a_box(3), 1.0) is ObservationPosterior
    assert chosen(a_box(2, 0.05), 1.0) is ObservationPosterior


def test_what_the_choice_needs():
    short, long = (choice.replicate_memory(a_box(), horizon, 1, P) for horizon in (100, 100_000))
    assert short == long, "in feature space nothing grows with t"


def layouts(jet, d):
    """Slopes and bends of means and variances together, (S, p + 1, q, d) and (S, p + 1, q, d,
    d).
    """
    moments = np.concatenate([jet.mean, jet.variance[:, None]], axis=1)
    return moments[..., 0], taylor(d).slopes(moments), taylor(d).bends(moments)


@pytest.mark.parametrize(
    ("name", "lam", "window"),
    [("se", 1e-6, 12), ("se", 0.05, 12), ("se", 1e-6, 60), ("matern52", 0.05, 60)],
)
def test_a_window_has_the_jets_of_what_it_remembers(name, lam, window):
    """From fields on the mesh, from the factor that a replicate has where λ is small, and without a
    mesh.
    """
    box, T, h = a_box(2, 0.4, name), 40, 1e-4
    posterior = ObservationPosterior(box, lam, S, P, window)
    points, values = plays(2, T)
    if lam < 1e-3:  # functions of the kernel's space: others have huge means there
        values = box.kernel(points.reshape(-1, 2), points[:4, 0]).reshape(T, S, 4)[..., :2]
    for t in range(T):
        posterior.update(points[t], values[t])
    held = slice(max(0, T - window), T)
    at = np.random.default_rng(3).uniform(0.01, 0.99, (S, 4, 2))
    value, slope, bend = layouts(posterior.jet(at), 2)

    def truth(at):
        mean, variance = zip(
            *(dense(box, points[held, s], values[held, s], lam, at[s])[:2] for s in range(S)),
            strict=True,
        )
        return np.concatenate([np.stack(mean), np.stack(variance)[:, None]], axis=1)

    loose = 1.0 if lam > 1e-3 else 100.0
    np.testing.assert_allclose(value, truth(at), atol=1e-8 * loose)
    for i, step in enumerate(h * np.eye(2)):
        up, down = posterior.jet(at + step), posterior.jet(at - step)
        np.testing.assert_allclose(
            slope[..., i], (truth(at + step) - truth(at - step)) / (2 * h), atol=1e-4 * loose
        )
        difference = (layouts(up, 2)[1] - layouts(down, 2)[1]) / (2 * h)
        np.testing.assert_allclose(bend[..., i], difference, atol=1e-3 * loose)
