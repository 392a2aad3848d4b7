"""Profiles with answers known by hand; no algorithm moves another's."""

from __future__ import annotations

import numpy as np

from cbobench.stats.profile_shares import data_profile, performance_profile


def test_a_performance_profile_by_hand():
    costs = [[1.0, 4.0, 30.0, np.nan], [2.0, 2.0, 10.0, -1.0]]
    reference = [1.0, 2.0, 10.0, 5.0]  # ratios: 1, 2, 3, never; 2, 1, 1, below
    profile = performance_profile(costs, reference, [0.5, 1, 2, 3, 100])
    np.testing.assert_allclose(
        profile, [[0, 1 / 4, 2 / 4, 3 / 4, 3 / 4], [1 / 4, 3 / 4, 1, 1, 1]], rtol=0, atol=1e-12
    )


def test_a_data_profile_by_hand():
    first = [[2, 10, np.inf], [1, 5, np.inf]]  # of two problems and three targets
    profile = data_profile(first, [0, 1, 2, 5, 9, 10, 1000])
    np.testing.assert_allclose(profile, np.array([0, 1, 2, 3, 3, 4, 4]) / 6, rtol=0, atol=1e-12)


def test_what_is_never_reached_still_counts():
    np.testing.assert_array_equal(data_profile([3.0, np.inf, np.nan, np.inf], [3]), [0.25])
