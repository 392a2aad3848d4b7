"""Rate allocation: utilities, the optimum (derived in test_literature.py), and noise of two
laws.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.problems.formulas.applications import SHAPES, log_utility, sigmoid_utility
from cbobench.rng import Streams
from tests.helpers import problem


@pytest.mark.parametrize("i", range(4))
def test_utilities_are_normalised_and_rise(i):
    utility = sigmoid_utility if i % 2 == 0 else log_utility
    values = utility(np.linspace(0, 2, 201), *SHAPES[i])
    np.testing.assert_allclose(values[[0, -1]], [0, 1], atol=1e-12)
    assert (np.diff(values) > 0).all()
    bends = np.diff(values, 2)
    assert (bends < 0).all() if i % 2 else (bends[:50] > 0).all() and (bends[-50:] < 0).all(), (
        "sigmoids: not concave"
    )


def noise(task, rounds=1500):
    drawn = task.draw([np.random.default_rng(s) for s in range(2)])
    channel = task.feedback(drawn, Streams([("test", s) for s in range(2)]))
    x = np.ones((2, 4))
    clean = drawn.values(1, x[None])[0]
    feedbacks = [channel.at(t, x) for t in range(1, rounds + 1)]
    return np.stack([a.f for a in feedbacks]) - clean[:, 0], np.stack(
        [a.g[:, 0] for a in feedbacks]
    ) - clean[:, 1]


def test_the_noise_of_g_has_a_law_of_its_own():
    f, g = noise(problem("rate-allocation", noise_g=0.2 / 3**0.5))
    assert 0.19 < np.abs(g).max() <= 0.2, "U[-0.2, 0.2]"
    assert np.abs(f).max() > 0.6, "Gaussian: four errors of variance 0.01"
    np.testing.assert_allclose([f.std(), g.std()], [0.2, 0.2 / 3**0.5], rtol=0.05)
    assert abs(np.corrcoef(f.ravel(), g.ravel())[0, 1]) < 0.05
    same_f, none = noise(problem("rate-allocation"), 50)
    assert not none.any(), "noiseless by default"
    np.testing.assert_array_equal(f[:50], same_f)
    f, g = noise(problem("rate-allocation", noise_g=0.1, law_g="gaussian"))
    assert np.abs(g).max() > 0.25
    assert abs(np.corrcoef(f.ravel(), g.ravel())[0, 1]) < 0.05, "of one law, too, from two streams"


def test_delays_and_full_information_go_with_two_laws():
    settings = {"noise_g": 0.1, "full_information": True}
    task = problem("rate-allocation", **settings)
    drawn = task.draw([np.random.default_rng(s) for s in range(2)])
    channel, x = task.feedback(drawn, Streams([("test", s) for s in range(2)])), np.ones((2, 4))
    preview = channel.before(1)(task.box.unit(x)[:, None])
    np.testing.assert_allclose(preview[:, :, 0], channel.at(1, x).g, atol=1e-12)
    delayed = problem("rate-allocation", delay=3.0, **settings).feedback(
        drawn, Streams([("test", s) for s in (0, 1)])
    )
    assert np.isnan(delayed.at(1, x).f).all()
