"""What stands for many seeds at a round, and what a figure says where nothing does."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.report.curves import centre
from cbobench.report.figures import Panel
from cbobench.report.load import Run
from cbobench.report.quantities import quantities
from cbobench.report.summary import statistics
from tests.report.made import make


def test_quartiles_are_those_of_tables():
    values = np.random.default_rng(0).standard_cauchy((7, 11)) ** 2
    values[values > 5] = np.nan
    for quantity in (quantities()["simple_regret"], quantities()["reward"]):
        for row in values if quantity.censored else np.nan_to_num(values):
            middle, low, high = (part[0] for part in centre(row[None], quantity.name, "median"))
            (known,) = statistics(quantity, [row])
            for mine, name in ((middle, "median"), (low, "q25"), (high, "q75")):
                assert mine == known[name] or (np.isnan(mine) and not np.isfinite(known[name]))


def test_no_statistic_of_a_sample_depends_on_another_sample():
    gen = np.random.default_rng(1)
    for quantity in quantities().values():
        samples = [gen.lognormal(size=n) for n in (0, 1, 2, 5, 9, 150) for _ in range(8)]
        for values in samples:
            values[gen.random(len(values)) < 0.2 * gen.integers(6)] = np.nan
        together, alone = statistics(quantity, samples), [statistics(quantity, [values])[0] for values in samples]
        assert repr(together) == repr(alone), "to the last bit"
        for found, values in zip(together, samples, strict=True):
            assert found["defined"] == (~np.isnan(values)).sum()
            assert found["defined"] == 0 or found["mean"] == pytest.approx(np.nanmean(values))


def test_captions_say_which_curves_are_undefined_and_why(tmp_path, words_of):
    values = {
        "A": [[1.0, 0.5]] * 4,
        "late": [[np.nan, 0.5]] * 3 + [[np.nan] * 2],
        "never": [[0.1] * 2] + [[np.nan] * 2] * 3,
    }
    rounds = {("P", label): {"t": [1, 100], "simple_regret": some} for label, some in values.items()}
    cells = {pair: {"simple_regret": np.array(some["simple_regret"])[:, -1]} for pair, some in rounds.items()}
    run = Run(make(tmp_path / "run", cells, seeds=range(4), rounds=rounds))
    problem = next(iter(run.record.labels("problems")))
    for statistic, wanted in (("mean", ["late (known in 3", "never (known in 1"]), ("median", ["never (known in 1"])):
        words = words_of(run, [Panel("simple_regret", problem, statistic=statistic)])
        listed = ", ".join(f"{statistic} of r of {one} of 4 seeds)" for one in wanted)
        assert f"Undefined in the end: {listed}. A mean is drawn where every seed has a value" in words


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
