"""Cloud latency: the queue simulation against closed forms, and the problem made of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.problems.rkhs.queues import percentile, simulate, sojourn_times
from cbobench.rng import Streams, generator
from tests.helpers import problem

WARM_UP = 2000


def long_run(load, servers, speeds, jobs=12_000, days=40):
    """Sojourn times of stationary queues, (jobs, days, K), and the work, (jobs, days)."""
    gen = generator("test", "cloud")
    gaps, work = gen.standard_exponential((2, jobs + WARM_UP, days))
    times = sojourn_times(gaps / load, work, np.array(servers), np.array(speeds))
    return times[WARM_UP:], work[WARM_UP:]


def off(values, truth):
    """Distance of the mean over independent days from the truth, in standard errors."""
    return abs(values.mean() - truth) / (values.std(ddof=1) / np.sqrt(len(values)))


def test_one_server_is_m_m_1():
    """Sojourn times of M/M/1 are exponential with rate μ - λ, so p95 = ln 20 / (μ - λ)."""
    load, speeds = 7.0, [10.0, 14.0]
    times, _ = long_run(load, [1, 1], speeds)
    p95 = percentile(times)
    for k, speed in enumerate(speeds):
        truth = math.log(20) / (speed - load)
        assert off(p95[:, k], truth) < 4
        assert abs(p95[:, k].mean() / truth - 1) < 0.02
        assert off(p95[:, k], truth * 1.1) > 5, "negative control: ten percent off would be seen"
        assert off(times[:, :, k].mean(axis=0), 1 / (speed - load)) < 4


def erlang_c(load, servers):
    """Probability that a job waits in M/M/c; `load` in Erlang."""
    blocked = load**servers / math.factorial(servers) * servers / (servers - load)
    return blocked / (sum(load**k / math.factorial(k) for k in range(servers)) + blocked)


@pytest.mark.parametrize("servers", [2, 5])
def test_several_servers_are_m_m_c(servers):
    """Mean sojourn time of M/M/c: C(c, λ/μ) / (c μ - λ) + 1/μ (Erlang C), beside a larger queue in
    the same call.
    """
    load, speed = 0.8 * servers, 1.0
    times, _ = long_run(load, [servers, servers + 3], [speed, speed])
    truth = erlang_c(load, servers) / (servers * speed - load) + 1 / speed
    assert off(times[:, :, 0].mean(axis=0), truth) < 4
    assert off(times[:, :, 0].mean(axis=0), truth * 1.1) > 5, "negative control"


def test_three_jobs_by_hand():
    """Two servers: the third job waits until the first leaves."""
    gaps, work = np.array([[0.0], [1.0], [1.0]]), np.array([[5.0], [9.0], [2.0]])
    times = sojourn_times(gaps, work, np.array([2, 1]), np.array([1.0, 1.0]))
    np.testing.assert_allclose(times[:, 0, 0], [5, 9, 5])
    np.testing.assert_allclose(times[:, 0, 1], [5, 13, 14])


def test_percentile_by_hand():
    times = np.arange(100.0, 0, -1)[:, None]
    assert percentile(times).tolist() == [95.0]
    assert percentile(times[:1]).tolist() == [100.0]


def test_more_days_are_the_same_days_and_some_more():
    np.testing.assert_array_equal(simulate(10.0, 0.9, 4).rows, simulate(10.0, 0.9, 8).rows[:4])


def test_instances_and_rows():
    task = problem("cloud-latency")
    drawn = task.draw([np.random.default_rng(s) for s in range(3)])
    assert task.actions.n == 80
    assert np.isfinite(drawn.norm).all()
    assert 0.3 < (drawn.g[0, 0] <= 0).mean() < 0.7
    assert (drawn.f_star < drawn.f.max(axis=1)).all(), "the cheapest configuration is too slow"
    assert (drawn.slater > 0.1).all()
    rows = task.readings.rows
    np.testing.assert_allclose(drawn.functions[0], rows.mean(axis=0))
    np.testing.assert_allclose(drawn.noise[0], np.abs(rows - rows.mean(axis=0)).max(axis=(0, 2)))
    channel = task.feedback(drawn, Streams([("test", s) for s in range(3)]))
    days = []
    for t in range(1, 200):
        feedback = channel.at(t, np.array([0, 40, 79]))
        candidate_days = [
            np.flatnonzero((rows[:, 0, a] == f) & (rows[:, 1, a] == g))
            for a, f, g in zip((0, 40, 79), feedback.f, feedback.g[:, 0], strict=True)
        ]
        assert all(len(indices) == 1 for indices in candidate_days), "f and g of one day"
        days.append([int(indices[0]) for indices in candidate_days])
    assert len(np.unique(days)) > 50
    assert not np.array_equal(np.array(days)[:, 0], np.array(days)[:, 1])


def test_an_impossible_limit():
    with pytest.raises(
        Misuse, match=r"limit is 0.3 s, but no action keeps it; the best needs 0.6\d* s"
    ):
        problem("cloud-latency", limit=0.3, days=8)
