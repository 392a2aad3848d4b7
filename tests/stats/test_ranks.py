"""Ranks and their tests against Demšar's published example, SciPy and hand-made blocks."""

from __future__ import annotations

import numpy as np

from cbobench.stats.paired_tests import average_ranks, ranks

# Demšar (2006), Table 6: AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on fourteen data sets.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],  # printed alike, ranked apart
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_average_ranks_are_demsars():
    np.testing.assert_allclose(
        average_ranks(AUC, "higher"), [3.143, 2.000, 2.893, 1.964], atol=5e-4
    )
    np.testing.assert_allclose(
        average_ranks(AUC, "lower"), 5 - average_ranks(AUC, "higher"), atol=1e-12
    )


def test_ranks_by_hand():
    values = [[3, 1, 2], [5, 5, 1], [2, 2, 2]]
    np.testing.assert_array_equal(ranks(values), [[3, 1, 2], [2.5, 2.5, 1], [2, 2, 2]])
    np.testing.assert_array_equal(ranks(values, "higher"), [[1, 3, 2], [1.5, 1.5, 3], [2, 2, 2]])
    np.testing.assert_allclose(average_ranks(values), [2.5, 5.5 / 3, 5 / 3], atol=1e-12)
    assert np.isnan(average_ranks(np.empty((0, 3)))).all()
