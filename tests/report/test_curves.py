"""What stands for many seeds at a round."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.report.curves import centre, quantile


def test_quantiles_are_numpys():
    values = np.sort(np.random.default_rng(0).standard_cauchy((7, 11)), axis=1)
    for n in (1, 2, 10, 11):
        for share in (0.25, 0.5, 0.75):
            np.testing.assert_allclose(quantile(values[:, :n], share), np.quantile(values[:, :n], share, axis=1))


def test_what_is_undefined():
    values = np.array([[1.0, 2.0, np.nan], [np.nan] * 3, [3.0, 1.0, 2.0]])
    mean, low, high = centre(values, "regret")
    assert np.isnan(mean[:2]).all()
    assert np.isnan(low[:2]).all()
    assert mean[2] == 2
    median, low, high = centre(values, "regret", "median")
    assert [median[0], low[0]] == [2.0, 1.5], "undefined is worse than any value"
    assert np.isnan([high[0], median[1]]).all()
    assert [part[2] for part in (low, median, high)] == [1.5, 2.0, 2.5]
    assert np.isnan(centre(values[:, :1], "regret")[1]).all(), "one seed has no interval"
    assert np.isnan(centre(values[:, :0], "regret")[0]).all()
    with pytest.raises(Misuse, match="unknown statistic 'mode'"):
        centre(values, "regret", "mode")
