"""Posteriors through joint samples against plain linear algebra and scikit-learn's, and what a play
is worth to a recommendation against playing it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.fit import Fitted
from cbobench.gp.jets import taylor
from cbobench.gp.kernels import Matern as UnitMatern
from cbobench.gp.posteriors.fitted import (
    NUGGET,
    FittedPosterior,
    SampledPosterior,
    stratify_normals,
)
from cbobench.gp.recommend import likely_best, rivals_around, worth_of_plays

BOX = Box(np.zeros(2), np.ones(2), "matern52", meshed=False, size=32)
HYPERS = [
    Fitted(np.array([0.3, 0.6]), 2.0, 0.05, 1.0),
    Fitted(np.array([0.5, 0.4]), 0.7, 0.2, -0.3),
]


def observed(replicates: int = 1, count: int = 7, actions=BOX) -> FittedPosterior:
    """A model of two functions with the hyperparameters above; the last point repeats the first."""
    model = FittedPosterior(actions, replicates, 2)
    for s in range(count):
        rngs = [np.random.default_rng([r, s % (count - 1)]) for r in range(replicates)]
        points = np.array([rng.random(2) for rng in rngs])
        values = np.array([rng.standard_normal(2) for rng in rngs]) + s / 10
        if isinstance(actions, Finite):
            points = (points[:, 0] * actions.n).astype(np.intp)
        model._enter(points, values)
    model.fits = [list(HYPERS)] * replicates
    model._store_hyperparameters()
    model._recompute()
    return model


def regressor(hyper: Fitted, x, y, noise: float) -> GaussianProcessRegressor:
    kernel = ConstantKernel(hyper.amplitude**2) * Matern(hyper.lengthscales, nu=2.5)
    plain = GaussianProcessRegressor(kernel, alpha=noise * hyper.amplitude**2, optimizer=None)
    return plain.fit(x, y - hyper.centre)


def test_samples_have_the_law_of_the_posterior_at_the_observed_points():
    """A sample is affine in its normals: that of zeros is the mean, those of unit vectors show the
    covariance.
    """
    model = observed()
    c = model.count
    normals = np.broadcast_to(np.concatenate([np.zeros((1, c)), np.eye(c)]), (1, 2, c + 1, c))
    samples = SampledPosterior(model, normals).samples[0]
    for j, hyper in enumerate(HYPERS):
        plain = regressor(hyper, model.points[0], model.observed[0, j], hyper.ratio)
        mean, covariance = plain.predict(model.points[0], return_cov=True)
        np.testing.assert_allclose(samples[j, 0], hyper.centre + mean, atol=1e-6)
        moves = samples[j, 1:] - samples[j, :1]
        np.testing.assert_allclose(moves.T @ moves, covariance, atol=1e-6)
    np.testing.assert_allclose(samples[..., -1], samples[..., 0], atol=1e-2, err_msg="one point")


def test_beliefs_given_a_sample_are_those_of_noise_free_observations():
    model = observed(replicates=2)
    normals = np.random.default_rng(0).standard_normal((2, 2, 3, model.count))
    sampled = SampledPosterior(model, normals)
    points = np.random.default_rng(1).random((2, 5, 2))
    mean, variance = sampled.at(points)
    candidates = BOX.candidates
    for s in range(2):
        for j, hyper in enumerate(HYPERS):
            for k in range(3):
                h = sampled.samples[s, j, k]
                plain = regressor(hyper, model.points[s], h, NUGGET)
                of_points, deviation = plain.predict(points[s], return_std=True)
                row = 3 * j + k
                np.testing.assert_allclose(mean[s, row], hyper.centre + of_points, rtol=1e-4)
                np.testing.assert_allclose(variance[s, j], deviation**2, rtol=1e-4)
                of_candidates = hyper.centre + plain.predict(candidates)
                np.testing.assert_allclose(sampled.mean[s, row], of_candidates, rtol=1e-3)
    # Taylor models, against differences of beliefs
    jet, layout, step = sampled.jet(points), taylor(2), 1e-4
    around = (points[:, :, None] + step / 1e-4 * layout.steps).reshape(2, -1, 2)
    moved, moved_variance = sampled.at(around)
    shape = (*mean.shape, len(layout.steps))
    np.testing.assert_allclose(
        np.matmul(jet.mean, layout.values), moved.reshape(shape), rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(
        np.matmul(jet.variance, layout.values),
        moved_variance.reshape(*variance.shape, -1),
        rtol=1e-4,
    )


def test_every_stratum_has_one_draw():
    from scipy.special import ndtr

    draws = stratify_normals(np.random.default_rng(0), 8, (3, 50))
    assert draws.shape == (8, 3, 50)
    strata = np.sort(np.floor(8 * ndtr(draws)), axis=0)
    np.testing.assert_array_equal(
        strata, np.broadcast_to(np.arange(8)[:, None, None], strata.shape)
    )
    assert kstest(draws.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(draws.reshape(8, -1).T)).mean() < 0.5, "places are independent"


GRID = Finite.at(np.random.default_rng(5).random((20, 2)), UnitMatern(2.5, 0.3), "matern52")


@pytest.mark.parametrize("actions", [BOX, GRID])
def test_worth_is_the_mean_of_what_is_recommended_after_a_play(actions):
    """Every fantasy of every play is observed by a regressor of scikit-learn's."""
    model = observed(actions=actions)
    if isinstance(actions, Finite):
        rivals = np.arange(8)[None]
        points = actions.units[rivals[0]]
    else:
        rivals = rivals_around(np.array([[0.95, 0.4]]), model, actions)[:, ::12]
        points = rivals[0]
    normals = np.random.default_rng(3).standard_normal((1, 6, 2))
    worth = worth_of_plays(model, rivals, normals)[0]
    before = [
        regressor(h, model.points[0], model.observed[0, j], h.ratio) for j, h in enumerate(HYPERS)
    ]
    least = (HYPERS[0].centre + before[0].predict(points)).min()
    expected = np.zeros(len(points))
    seen = set()
    for i, x in enumerate(points):
        for z in normals[0]:
            moments = []
            for j, hyper in enumerate(HYPERS):
                mean, deviation = before[j].predict(x[None], return_std=True)
                noise = hyper.ratio * hyper.amplitude**2
                y = hyper.centre + mean[0] + np.sqrt(deviation[0] ** 2 + noise) * z[j]
                data = (
                    np.append(model.points[0], x[None], axis=0),
                    np.append(model.observed[0, j], y),
                )
                after = regressor(hyper, *data, hyper.ratio).predict(points, return_std=True)
                moments.append((hyper.centre + after[0], after[1] ** 2))
            (f, _), (g, variance) = moments
            best = likely_best((f[None], g[None, None], variance[None, None]))[0]
            allowed = g[best] + 1.6448536269514722 * np.sqrt(variance[best]) <= 0
            seen.add(bool(allowed))
            expected[i] += (f[best] if allowed else least) / len(normals[0])
    np.testing.assert_allclose(worth, expected, rtol=1e-5)
    assert True in seen
