"""Ties, information gains, confidence widths and exploration strategies."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import CellFailure, Misuse
from cbobench.gp.actions import Finite, break_ties, levels
from cbobench.gp.beliefs import FunctionBelief, RandUCB
from cbobench.gp.confidence import Width, gain_rate, greedy_gain
from cbobench.gp.kernels import kernel
from cbobench.rng import Streams

GRID = np.linspace(0, 1, 30)[:, None]
ACTIONS = Finite(kernel("se", 0.2)(GRID, GRID), GRID, "se")


def test_ties_are_broken_uniformly_and_only_among_the_best():
    score = np.tile([0.0, 2.0, 1.0, 2.0, 2.0], (3000, 1))
    chosen = break_ties(score, np.random.default_rng(0).random(3000))
    counts = np.bincount(chosen, minlength=5)
    assert counts[[0, 2]].sum() == 0
    assert np.abs(counts[[1, 3, 4]] - 1000).max() < 6 * np.sqrt(1000 * 2 / 3)


def test_a_score_that_is_not_a_number_is_an_error():
    for score in ([[0.0, np.nan]], [[0, np.nan], [2, 2]], [[3.0, 1.0], [np.nan, 1.0], [2.0, 2.0]]):
        with pytest.raises(CellFailure, match="not a number"):
            break_ties(np.array(score), np.full(len(score), 0.5))
    with pytest.raises(CellFailure, match="no action is allowed"):
        break_ties(np.array([[0.0, 1.0], [-np.inf, -np.inf]]), np.full(2, 0.5))


def test_greedy_gain_bounds_the_gain_of_any_play():
    bound = greedy_gain(ACTIONS, 1.0, 50)
    rng = np.random.default_rng(0)
    for _ in range(20):
        played = rng.integers(0, 30, 50)
        gram = ACTIONS.covariance[np.ix_(played, played)]
        assert 0.5 * np.linalg.slogdet(np.eye(50) + gram)[1] <= bound[50]
    assert (np.diff(bound) > 0).all()
    np.testing.assert_allclose(bound[1] * (1 - np.exp(-1)), 0.5 * np.log(2), rtol=1e-12)


def test_rates_of_the_papers():
    np.testing.assert_allclose(gain_rate(ACTIONS, 10)[10], np.log(10) ** 2)
    linear = Finite(kernel("linear", 1)(GRID, GRID), GRID, "linear")
    np.testing.assert_allclose(gain_rate(linear, 10)[10], np.log(10))
    rough = Finite(kernel("matern12", 1)(GRID, GRID), GRID, "matern12")
    np.testing.assert_allclose(gain_rate(rough, 10)[10], 10 ** (1 / 2))
    with pytest.raises(Misuse, match="no closed-form rate"):
        gain_rate(Finite(ACTIONS.covariance), 10)


def test_width_is_the_formula_of_the_paper():
    bound, noise, gain = np.array([[2.0, 3.0]]), np.array([[0.5, 0.5]]), np.array([1.7])
    theory = Width(bound, noise, alpha=0.1).at(gain)
    np.testing.assert_allclose(
        theory,
        [
            [
                2 + 0.5 * np.sqrt(2 * (1.7 + 1 + np.log(20))),
                3 + 0.5 * np.sqrt(2 * (2.7 + np.log(20))),
            ]
        ],
    )
    scaled = Width(bound, noise, alpha=0.1, scale=0.2).at(gain)
    np.testing.assert_allclose(scaled, 0.2 * theory)
    normalised = Width(bound, noise, alpha=0.1, form="self-normalised", lam=0.25).at(gain)
    np.testing.assert_allclose(normalised[0, 0], 2 + 0.5 / 0.5 * np.sqrt(2 * (1.7 + np.log(20))))
    np.testing.assert_allclose(Width(bound, noise, alpha=0.1, form=3.0, scale=0.2).at(gain), 3.0)
    single = Width(bound[:, :1], noise[:, :1], alpha=0.1).at(gain)
    np.testing.assert_allclose(single, 2 + 0.5 * np.sqrt(2 * (2.7 + np.log(10))))


def belief(count):
    return FunctionBelief(np.zeros((count, 3)), np.ones((count, 3)), np.full((count, 1), 2.0))


@pytest.mark.parametrize(
    ("law", "mean", "variance", "low", "high"),
    [
        ("normal", 0.0, 4.0, -np.inf, np.inf),
        ("uniform", 2.0, 4 / 3, 0.0, 4.0),
        ("discrete-gaussian", 1.45, 0.98, 0.0, 4.0),
    ],
)
def test_rand_laws(law, mean, variance, low, high):
    """Moments in units of beta = 2; points 200 so that the discrete laws are near their limits."""
    gain, cost = RandUCB(law, points=200), RandUCB(law, sign=-1, points=200)
    for strategy in (gain, cost):
        strategy.start(Streams([("rand", s) for s in range(200)]), "f", (), 100)
    drawn = []
    for t in range(1, 101):
        for strategy in (gain, cost):
            strategy.begin(t)
        values = gain(belief(200))
        assert (values == values[:, :1]).all(), "one Z for all actions"
        if law != "normal":
            np.testing.assert_allclose(cost(belief(200)), -values, atol=1e-12)
        drawn.append(values[:, 0])
    z = np.array(drawn)
    assert abs(z.mean() - mean) < 0.06
    assert abs(z.var() - variance) < 0.12
    assert low <= z.min() <= z.max() <= high
    assert abs(np.corrcoef(z[:-1].ravel(), z[1:].ravel())[0, 1]) < 0.05, "another Z in every round"


def test_scores_that_rounding_tells_apart_tie():
    score = np.array([[1.0, 1.0 - 1e-13, 0.5, -1.0], [-1e9, 1.0, 1.0 - 1e-13, 1.0 - 1e-6]])
    coins = np.linspace(0, 0.999, 9)
    chosen = [{int(break_ties(score, np.full(2, coin))[s]) for coin in coins} for s in range(2)]
    assert chosen == [{0, 1}, {1, 2}], "a huge price on some actions makes no others tie"
    assert levels(score)[:, :3].tolist()[0][:2] == [0.0, 0.0]
    assert (levels(score)[1] == 0).tolist() == [False, True, True, False]


def test_a_tie_is_seen_beside_a_negative_score_without_one():
    score = np.array([[1.0, 1.0 - 1e-13, 0.5], [-1.0, -1.1, -1.2]])
    chosen = [break_ties(score, np.full(2, coin)).tolist() for coin in (0.1, 0.9)]
    assert chosen == [[0, 0], [1, 0]]


def test_a_plateau_of_rounding_alone_is_a_total_tie():
    score = 3.7 + 1e-15 * np.random.default_rng(0).standard_normal((1, 50))
    assert len(np.unique(score)) > 1
    chosen = {int(break_ties(score, np.full(1, coin))[0]) for coin in np.linspace(0, 0.999, 500)}
    assert chosen == {*range(50)}
    assert (levels(score) == 0).all()


def test_an_endless_score_ties_with_its_like_alone():
    score = np.array([[np.inf, np.inf, 0.0], [1.0, 1.0 - 1e-13, -np.inf]])
    assert break_ties(score, np.full(2, 0.9)).tolist() == [1, 1]
