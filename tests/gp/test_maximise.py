"""The maximum of a score over a box, against a dense search."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp import maximise
from cbobench.gp.beliefs import Parts
from cbobench.gp.jets import Jet, taylor
from tests.helpers import make, play, problem


def dense_best(algorithm, replicate):
    """The best score of the round over a fine grid, polished by shrinking random search from its
    best points.
    """
    rng = np.random.default_rng(0)

    def total(points):
        shape = (algorithm.setting.replicates, len(points), points.shape[1])
        everywhere = np.broadcast_to(points, shape)
        mean, variance = algorithm.posterior.at(everywhere)
        return algorithm.parts(algorithm.view(mean, variance, everywhere)).total()[replicate]

    axis = np.linspace(0, 1, 101)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    scores = np.concatenate([total(part) for part in np.array_split(grid, 5)])
    best = scores.max()
    for start in np.argsort(-scores)[:40:8]:
        point, value, side = grid[start], scores[start], 0.01
        for _ in range(40):
            cloud = np.clip(point + side * rng.uniform(-1, 1, (100, 2)), 0, 1)
            cloud_scores = total(cloud)
            if cloud_scores.max() > value:
                point, value = cloud[cloud_scores.argmax()], cloud_scores.max()
            else:
                side *= 0.6
        best = max(best, value)
    return best


def recorded(name, rounds, **settings):
    """Relative shortfalls of the played score against the dense search, over the given rounds."""
    algorithm = make(name, **settings)
    shortfalls = []
    ask = algorithm.ask

    def spy(t):
        action = ask(t)
        if t in rounds:
            best = dense_best(algorithm, 0)
            shortfalls.append((best - algorithm.achieved[0]) / max(abs(best), 1e-12))
        return action

    algorithm.ask = spy
    play(problem("feasible-pocket"), algorithm, seeds=1, horizon=max(rounds))
    return np.array(shortfalls)


SETTINGS = {"B": 1.0, "G": 1.0, "beta_scale": 0.5}


@pytest.mark.slow
def test_the_maximiser_reaches_the_true_maximum():
    assert recorded("rpol-ucb", range(12, 72, 12), **SETTINGS).max() <= 1e-6


@pytest.mark.long
@pytest.mark.parametrize("name", ["rpol-ucb", "ckb-ucb", "config", "igp-ucb"])
def test_scores_of_several_methods_reach_the_true_maximum(name):
    settings = {k: v for k, v in SETTINGS.items() if name != "igp-ucb" or k != "G"}
    assert np.quantile(recorded(name, range(10, 410, 10), **settings), 0.95) <= 1e-6


def quadratic(kink, price):
    """Scores with known maxima: -|x - c|² with a penalty on a linear kink."""

    def score(mean, variance, points):
        smooth = -((points - 0.7) ** 2).sum(axis=2)
        return Parts(smooth, (points.sum(axis=2) - kink)[:, None], np.full((len(points), 1), price))

    return score


def flat(points, mask):
    """Beliefs that are 0 everywhere."""
    replicates, q, d = points.shape
    n = len(taylor(d).steps)
    return Jet(np.zeros((replicates, 1, q, n)), np.zeros((replicates, q, n)))


@pytest.mark.parametrize(
    ("kink", "price", "expected"),
    [
        (5.0, 1.0, [0.7, 0.7]),  # never reached
        (1.0, np.inf, [0.5, 0.5]),  # on the kink: projection onto x + y <= 1
        (1.0, 10.0, [0.5, 0.5]),  # dear enough to stay on it
        (1.0, 0.2, [0.6, 0.6]),  # cheap: the penalised gradient vanishes beyond it
    ],
)
def test_a_quadratic_with_a_kink(kink, price, expected):
    start = np.array([[[0.1, 0.9], [0.9, 0.2]]])
    points, values = maximise.polish(maximise.Surface(quadratic(kink, price), flat, 0.3), start)
    np.testing.assert_allclose(points[0], [expected] * points.shape[1], atol=1e-6)
    np.testing.assert_allclose(values, values[0, 0], atol=1e-9)
