"""Metrics against their definitions, summed in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.play.block import recorded_rounds
from cbobench.play.recorder import Recorder
from tests.helpers import problem


@pytest.fixture
def instances():
    task = problem("rkhs", n=12, m=2)
    return task.draw([np.random.default_rng(s) for s in range(3)])


@pytest.mark.parametrize("cut", [40, 7, 1])
def test_metrics_are_their_definitions(instances, cut):
    actions = np.random.default_rng(0).integers(0, 12, (40, 3))
    metrics = Recorder(instances)
    chunks = [metrics.add(actions[i : i + cut]) for i in range(0, 40, cut)]
    for s in range(3):
        f, g = instances.f[s], instances.g[s]
        best = max(f[i] for i in range(12) if (g[:, i] <= 0).all())
        regret = plus = positive = hard = count = reward = 0.0
        achieved = -np.inf
        total = np.zeros(2)
        streak = longest = 0
        first = None
        for t, a in enumerate(actions[:, s], start=1):
            regret += best - f[a]
            positive += max(best - f[a], 0)
            plus += instances.f_plus[s] - f[a]
            total += g[:, a]
            hard += max(g[0, a], 0) + max(g[1, a], 0)
            violated = (g[:, a] > 0).any()
            count += violated
            reward += f[a]
            achieved = achieved if violated else max(achieved, f[a])
            streak = streak + 1 if violated else 0
            longest = max(longest, streak)
            if first is None and not violated:
                first = t
            got = {
                name: np.concatenate([c.values[name] for c in chunks])[t - 1, s]
                for name in chunks[0].values
            }
            expected = {
                "regret": regret,
                "regret_plus": plus,
                "violation_hard": hard,
                "violations": count,
                "reward": reward,
                "violation": np.sqrt((np.maximum(total, 0) ** 2).sum()),
                "regret_positive": positive,
                "simple_regret": best - achieved if achieved > -np.inf else np.nan,
                "simple_value": achieved if achieved > -np.inf else np.nan,
                "recommended_regret": np.nan,
                "recommended_violation": np.nan,
            }
            assert got == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
        assert metrics.longest_streak[s] == longest
        assert metrics.first_feasible[s] == (first or 0)


def test_cutting_the_horizon_changes_no_bit(instances):
    actions = np.random.default_rng(1).integers(0, 12, (500, 3))
    undivided, parts = Recorder(instances), Recorder(instances)
    undivided.add(actions)
    for i in range(0, 500, 37):
        parts.add(actions[i : i + 37])
    for name, values in undivided.final.items():
        np.testing.assert_array_equal(values, parts.final[name])


def test_recorded_rounds():
    assert recorded_rounds(5, None).tolist() == [1, 2, 3, 4, 5]
    assert recorded_rounds(5, 1000).tolist() == [1, 2, 3, 4, 5]
    assert recorded_rounds(7, 3).tolist() == [3, 5, 7], "rounded up"
    thinned = recorded_rounds(10_000, 1000)
    assert thinned.tolist() == list(range(10, 10_001, 10))
    for horizon, keep in ((2007, 1000), (2011, 1000), (970, 7), (199_999, 1000)):
        assert recorded_rounds(horizon, keep)[-1] == horizon
        assert len(recorded_rounds(horizon, keep)) == keep
    odd = recorded_rounds(1537, 100)
    assert len(odd) == 100
    assert odd[-1] == 1537
    assert (np.diff(odd) > 0).all()
