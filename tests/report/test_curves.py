"""What stands for many seeds at a round."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.report.aggregate import statistics
from cbobench.report.curves import centre
from cbobench.report.quantities import quantities


def test_quartiles_are_those_of_tables():
    values = np.random.default_rng(0).standard_cauchy((7, 11)) ** 2
    values[values > 5] = np.nan
    for quantity in (quantities()["simple_regret"], quantities()["reward"]):
        for row in values if quantity.censored else np.nan_to_num(values):
            middle, low, high = (part[0] for part in centre(row[None], quantity.name, "median"))
            known = statistics(quantity, row)
            for mine, name in ((middle, "median"), (low, "q25"), (high, "q75")):
                assert mine == known[name] or (np.isnan(mine) and not np.isfinite(known[name]))


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
