"""Clopper–Pearson intervals beside SciPy's, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from cbobench.errors import Misuse
from cbobench.stats.binomial import clopper_pearson


@pytest.mark.parametrize(("count", "of"), [(0, 1), (1, 1), (0, 12), (12, 12), (3, 10), (47, 50), (5, 5000)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_interval_is_scipys(count, of, confidence):
    other = binomtest(count, of).proportion_ci(confidence, method="exact")
    np.testing.assert_allclose(clopper_pearson(count, of, confidence), (other.low, other.high), atol=1e-12)


def test_it_covers_at_least_as_often_as_it_says():
    for p in (0.02, 0.1, 0.5, 0.93):
        ends = [clopper_pearson(k, 30) for k in range(31)]
        covered = sum(binom.pmf(k, 30, p) for k, (low, high) in enumerate(ends) if low <= p <= high)
        assert 0.95 <= covered <= 1


def test_nothing_is_known_of_no_trials():
    assert clopper_pearson(0, 0) == (0.0, 1.0)


def test_impossible_counts_are_refused():
    with pytest.raises(Misuse, match="3 of 2 trials"):
        clopper_pearson(3, 2)
