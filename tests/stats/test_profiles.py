"""Profiles with answers known by hand; no algorithm moves another's."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.stats.profile_shares import data_profile, performance_profile


def test_a_performance_profile_by_hand():
    costs = [[1.0, 4.0, 30.0, np.nan], [2.0, 2.0, 10.0, -1.0]]
    reference = [1.0, 2.0, 10.0, 5.0]  # ratios: 1, 2, 3, never; 2, 1, 1, below
    found = performance_profile(costs, reference, [0.5, 1, 2, 3, 100])
    np.testing.assert_allclose(found, [[0, 1 / 4, 2 / 4, 3 / 4, 3 / 4], [1 / 4, 3 / 4, 1, 1, 1]], rtol=0, atol=1e-12)


def test_with_the_best_of_all_as_reference_it_is_dolan_and_mores():
    costs = np.random.default_rng(0).lognormal(size=(5, 40))
    ratios = np.geomspace(1, 50, 20)
    found = performance_profile(costs, costs.min(axis=0), ratios)
    expected = [[np.mean(c / costs.min(axis=0) <= tau + 1e-12) for tau in ratios] for c in costs]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert found[:, 0].sum() == pytest.approx(1, abs=1e-12)  # each problem has one best


def test_an_algorithm_moves_no_other():
    costs = np.random.default_rng(0).lognormal(size=(5, 40))
    reference, ratios = np.ones(40), [0.5, 1, 2]
    alone = performance_profile(costs[:4], reference, ratios)
    np.testing.assert_array_equal(performance_profile(costs, reference, ratios)[:4], alone)
    best = performance_profile(costs[:4], costs[:4].min(axis=0), ratios)
    assert (performance_profile(costs, costs.min(axis=0), ratios)[:4] != best).any()  # which references prevent


def test_a_data_profile_by_hand():
    first = [[2, 10, np.inf], [1, 5, np.inf]]  # of two problems and three targets
    found = data_profile(first, [0, 1, 2, 5, 9, 10, 1000])
    np.testing.assert_allclose(found, np.array([0, 1, 2, 3, 3, 4, 4]) / 6, rtol=0, atol=1e-12)


def test_what_is_never_reached_still_counts():
    np.testing.assert_array_equal(data_profile([3.0, np.inf, np.nan, np.inf], [3]), [0.25])


def test_what_has_no_profile_is_refused_in_one_line():
    for wrong, says in (
        (lambda: performance_profile([[1.0]], [0.0], [1]), "positive"),
        (lambda: performance_profile([[1.0]], [np.nan], [1]), "positive"),
        (lambda: performance_profile([[1.0, 2.0]], [1.0], [1]), "allowed: \\(algorithms, 1 references\\)"),
        (lambda: performance_profile(np.empty((1, 0)), [], [1]), "at least one"),
        (lambda: data_profile([], [1]), "at least one"),
    ):
        with pytest.raises(Misuse, match=says) as error:
            wrong()
        assert "\n" not in str(error.value)
