"""Noisy EI against sampling all that it integrates over, without noise against EI and P, and its
last rounds.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr

from cbobench.algorithms.improvement import log_expected_improvement
from cbobench.algorithms.noisy_improvement import log_product
from cbobench.gp.fit import Fitted
from cbobench.gp.posteriors.fitted import NUGGET
from cbobench.gp.recommend import rivals_around, worth_of_plays
from cbobench.problems.base import Feedback
from tests.algorithms.easy import bowl, on_box
from tests.helpers import actions, make, play, problem, watch_asks


def told(hypers, points, values, **parameters):
    """A run that was told values (c, 1 + m) at points (c, d) of a box, under given
    hyperparameters.
    """
    algorithm = make("nei", **parameters)
    algorithm.start(on_box(2))
    for t, (x, y) in enumerate(zip(points, values, strict=True), 1):
        algorithm.observe(t, x[None], Feedback(y[None, 0], y[None, 1:]))
    model = algorithm.fitted
    model.pulled[:] = False
    model.values = model.observed
    model.fits = [hypers]
    model._store_hyperparameters()
    model._recompute()
    return algorithm


HYPERS = [
    Fitted(np.array([0.3, 0.6]), 1.0, 0.3, 0.2),
    Fitted(np.array([0.5, 0.4]), 0.8, 0.2, 0.1),
]


def matern(left, right, lengths):
    r = np.sqrt(5) * np.sqrt((((left[:, None] - right) / lengths) ** 2).sum(axis=2))
    return (1 + r + r * r / 3) * np.exp(-r)


@pytest.mark.long
def test_score_is_the_logarithm_of_what_joint_samples_gain_on_average():
    """f and g at the observed points and at x are drawn together, many times, by plain algebra."""
    rng = np.random.default_rng(2)
    x, y = rng.random((5, 2)), rng.standard_normal((5, 2)) * 0.5
    algorithm = told(HYPERS, x, y, samples=2048)
    belief = algorithm.believe(6)
    score = np.exp(algorithm.score(belief)[0])
    tested = [0, 5, 11, 20]
    candidates = algorithm.box.candidates[tested]
    drawn = []
    for j, hyper in enumerate(HYPERS):
        every = np.concatenate([x, candidates])
        prior = matern(every, every, hyper.lengthscales)
        gain = np.linalg.solve(prior[:5, :5] + hyper.ratio * np.eye(5), prior[:5]).T
        mean = gain @ (y[:, j] - hyper.centre) / hyper.amplitude
        root = np.linalg.cholesky(prior - gain @ prior[:5] + 1e-9 * np.eye(9))
        drawn.append(
            hyper.centre + hyper.amplitude * (mean + rng.standard_normal((400_000, 9)) @ root.T)
        )
    f, g = drawn
    low = np.minimum(f[:, :5].min(axis=1), HYPERS[0].centre) - HYPERS[0].amplitude
    best = np.maximum(np.where(g[:, :5] <= 0, f[:, :5], -np.inf).max(axis=1), low)
    gains = np.maximum(f[:, 5:] - best[:, None], 0.0) * (g[:, 5:] <= 0)
    np.testing.assert_allclose(score[tested], gains.mean(axis=0), rtol=0.05)


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_without_noise_it_is_the_improvement_on_the_best_observed_times_feasibility(shift):
    """The rule of `cei` with an observed incumbent; a low one where nothing is feasible."""
    rng = np.random.default_rng(4)
    x, y = rng.random((6, 2)), rng.standard_normal((6, 2))
    y[0] = 2.0, 0.5  # the best f is not feasible
    y[:, 1] += shift
    hypers = [Fitted(h.lengthscales, h.amplitude, NUGGET, h.centre) for h in HYPERS]
    algorithm = told(hypers, x, y)
    score = algorithm.score(algorithm.believe(7))[0]
    mean, deviation = algorithm.posterior.mean[0], np.sqrt(algorithm.posterior.variance[0])
    feasible = y[:, 1] <= 0
    assert feasible.any() == (shift == 0)
    low = min(y[:, 0].min(), HYPERS[0].centre) - HYPERS[0].amplitude
    best = y[feasible, 0].max() if feasible.any() else low
    plain = log_expected_improvement(mean[0], deviation[0], best)
    np.testing.assert_allclose(score, plain + log_ndtr(-mean[1] / deviation[1]), atol=1e-5)


def test_the_logarithm_of_a_product_that_underflows():
    z = np.random.default_rng(0).standard_normal((2, 3, 4, 50)) * np.array([1, 5, 20, 200])[:, None]
    np.testing.assert_allclose(log_product(z), log_ndtr(z).sum(axis=1), rtol=1e-12, atol=1e-14)
    assert log_product(z).min() < -700, "some do"


@pytest.mark.parametrize("task", [bowl(), problem("rkhs", d=2, n=30)])
def test_the_last_rounds_play_what_is_worth_the_most_to_the_recommendation(task):
    confirmed = []

    def look(t, chosen):
        model = algorithm.fitted
        if not algorithm.confirms:
            assert t <= 16
            return
        confirmed.append(t)
        if algorithm.box is None:
            rivals = np.broadcast_to(np.arange(30), (2, 30))
            played = chosen
        else:
            unit = algorithm.box.unit(algorithm.recommend(t))
            rivals = rivals_around(unit, model, algorithm.box)
            same = (algorithm.box.scale(rivals) == chosen[:, None]).all(axis=2)
            assert same.any(axis=1).all()
            played = same.argmax(axis=1)
        worth = worth_of_plays(model, rivals, algorithm.fantasies)
        chosen_worth = np.take_along_axis(worth, played[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(chosen_worth, worth.max(axis=1), rtol=1e-9)

    algorithm = watch_asks(make("nei", confirm=0.2, samples=4), look)
    play(task, algorithm, seeds=2, horizon=20)
    assert confirmed == [17, 18, 19, 20]


def test_it_finds_the_optimum_under_noise():
    cells, chunks = play(bowl(noise_f=0.02, noise_g=0.02), make("nei"), seeds=1, horizon=30)
    assert (cells.metrics.final["simple_regret"] < 0.03).all()
    assert (cells.metrics.final["recommended_regret"] < 0.1).all()
    assert len(actions(chunks)) == 30
