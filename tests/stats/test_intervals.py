"""Intervals cover what they promise, column by column, and refuse what has none."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from scipy import optimize, stats

from benchmarks.quality import coverage
from cbobench.stats import intervals
from cbobench.stats.intervals import interval
from tests.conftest import calls
from tests.helpers import long

CONTINUOUS = ("normal", "t3", "exponential", "lognormal", "lognormal-1.5", "pareto", "difference")


def quoted():
    """The table in the docstring: law to coverage by n."""
    head, *rows = re.findall(
        r"^ +(\w[\w.-]*)((?: +[\d.]+)+)$", intervals.of_mean.__doc__, flags=re.M
    )
    return {
        law: dict(zip(map(int, head[1].split()), map(float, row.split()), strict=True))
        for law, row in rows
    }


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{5, 20}, *long({2, 3, 4, 6, 8, 10, 50})])
def test_the_coverage_of_means_is_what_the_docstring_quotes(sizes):
    assert set(quoted()) == set(coverage.LAWS)
    for law, entries in quoted().items():
        for n in sizes & entries.keys():
            held, _ = coverage.measured(coverage.LAWS[law], "mean", n, 4000, seed=1)["interval"]
            assert held == pytest.approx(entries[n], abs=3 if entries[n] < 90 else 1.5), (law, n)


def test_the_quoted_coverage_is_near_95_or_says_so():
    assert {n for entries in quoted().values() for n in entries} == {2, 3, 4, 5, 6, 8, 10, 20, 50}
    low = {
        (law, n)
        for law, entries in quoted().items()
        for n, entry in entries.items()
        if n >= 10 and entry < 92
    }
    assert {law for law, _ in low} == {"lognormal", "lognormal-1.5", "pareto", "counts"}
    assert not {("lognormal", 20), ("lognormal", 50), ("counts", 50)} & low
    ordinary = [quoted()[law] for law in ("normal", "t3", "difference")]
    assert all(94.5 <= entry <= 98.5 for entries in ordinary for entry in entries.values())


@pytest.mark.slow
@pytest.mark.parametrize("law", CONTINUOUS)
def test_medians_are_covered_as_promised_whatever_the_law(law):
    for n in (6, 10, 20, 50):
        held = coverage.measured(coverage.LAWS[law], "median", n, 4000)
        assert 94 <= held["interval"][0] <= 96.2
        assert held["order"][0] > held["interval"][0]


def test_the_measurement_of_coverage_can_fail():
    held = coverage.measured(coverage.LAWS["exponential"], "mean", 10, 4000)
    assert held["student"][0] < 91 < 93 < held["interval"][0]


def test_ends_solve_halls_equation_or_are_students():
    """Hall (1992): T + γT²/3 + γ²T³/27 + γ/6 is nearly normal, for γ = skewness / √n, here
    bounded.
    """
    for n in (3, 5, 10, 50):
        x = np.random.default_rng(n).lognormal(size=n)
        gamma = stats.skew(x, bias=False) / np.sqrt(n)
        t = stats.t.ppf(0.975, n - 1)
        gamma = np.clip(gamma, -0.8 / t, 0.8 / t) if n > 3 else 0.0

        def turned(u, gamma=gamma):
            return optimize.brentq(
                lambda s: s + gamma * s**2 / 3 + gamma**2 * s**3 / 27 + gamma / 6 - u, -1e3, 1e3
            )

        error = stats.sem(x)
        expected = x.mean() - error * max(t, turned(t)), x.mean() + error * max(t, -turned(-t))
        np.testing.assert_allclose(interval(x), expected, rtol=1e-9)
        assert abs(gamma) <= 1 + 1e-12


@pytest.mark.parametrize("n", [2, 3, 8, 50])
def test_no_interval_is_much_wider_than_students(n):
    x = np.random.default_rng(n).lognormal(0, 2, size=(n, 2000))
    low, high = interval(x)
    ratio = (high - low) / (2 * stats.t.ppf(0.975, n - 1) * stats.sem(x))
    assert ratio.min() >= 1 - 1e-9
    assert ratio.max() < 1.4


def test_what_the_range_of_few_values_attains():
    assert [intervals.range_level(n) for n in (1, 2, 3, 4, 5)] == [0, 0.5, 0.75, 0.875, 0.9375]
    x = np.random.default_rng(0).normal(size=(5, 20_000))
    low, high = interval(x, "median")
    assert ((low <= 0) & (high >= 0)).mean() == pytest.approx(intervals.range_level(5), abs=0.01)


def test_the_interval_of_a_median_by_hand():
    """n = 10: between the 2nd and 9th 1002/1024, between the 3rd and 8th 912/1024; 95 % is
    972.8/1024.
    """
    part = (1002 - 972.8) / (1002 - 912)
    weight = 8 * part / (2 + 6 * part)
    x = np.random.default_rng(0).permutation(np.arange(1.0, 11))
    np.testing.assert_allclose(interval(x, "median"), (2 + weight, 9 - weight), rtol=1e-12)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_no_column_moves_another(statistic):
    x = np.random.default_rng(0).lognormal(size=(50, 7, 3))
    low, high = interval(x, statistic)
    assert low.shape == high.shape == (7, 3)
    for i, j in np.ndindex(7, 3):
        assert interval(x[:, i, j].copy(), statistic) == (low[i, j], high[i, j])
    wider = np.concatenate([1e9 * x, x], axis=1)
    np.testing.assert_array_equal(interval(wider, statistic)[1][7:], high)
    moved = np.moveaxis(x, 0, 2)
    np.testing.assert_array_equal(interval(moved, statistic, axis=2), (low, high))


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_the_order_of_seeds_and_the_unit_change_nothing(statistic):
    gen = np.random.default_rng(0)
    x = gen.exponential(size=(20, 50))
    bounds = np.array(interval(x, statistic))
    np.testing.assert_allclose(interval(gen.permutation(x), statistic), bounds, rtol=1e-12)
    np.testing.assert_allclose(interval(1e120 * x, statistic), 1e120 * bounds, rtol=1e-9)
    np.testing.assert_allclose(interval(1e-160 * x, statistic), 1e-160 * bounds, rtol=1e-9)
    np.testing.assert_allclose(interval(-x, statistic), -bounds[::-1], rtol=1e-9)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_edges(statistic):
    assert np.isnan(interval([1.0], statistic)).all()
    assert np.isnan(interval(np.empty((0, 3)), statistic)).all()
    assert np.shape(interval(np.empty((5, 0)), statistic)) == (2, 0)
    assert interval([0.1] * 7, statistic) == (0.1, 0.1)
    assert interval([0, 0, 0, 0, 0, 0, 9], statistic, bounds=(0, None))[0] == 0
    assert interval([3, 9], statistic, bounds=(2.5, 9))[1] == 9
    low, high = interval([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]], statistic)
    assert np.isnan([low[1], high[1]]).all()
    assert np.isfinite([low[0], high[0]]).all()
    low, high = interval([1.0, 2.0], statistic)
    assert low <= 1 <= 2 <= high


def test_resamples_are_draws_with_replacement_and_always_the_same():
    counts = intervals.draw_resamples(10, 5000)
    assert (counts.sum(axis=1) == 10).all()
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=0.06)
    np.testing.assert_allclose(counts.var(axis=0), 0.9, atol=0.06)  # binomial: 10 draws, one in ten
    np.testing.assert_array_equal(intervals.draw_resamples(10, 5000), counts)
    assert (intervals.draw_resamples(10, 5000, seed=1) != counts).any()


def test_percentiles_of_few_seeds_lie_further_out():
    gen = np.random.default_rng(0)
    held = {"plain": 0, "expanded": 0}
    counts = intervals.draw_resamples(10)
    for _ in range(2000):
        drawn = counts @ gen.normal(size=10) / 10
        low, high = intervals.percentiles(drawn, 10)
        held["expanded"] += low <= 0 <= high
        low, high = np.quantile(drawn, [0.025, 0.975])
        held["plain"] += low <= 0 <= high
    assert held["plain"] < 0.92 * 2000 < 0.935 * 2000 < held["expanded"] < 0.965 * 2000
    assert intervals.percentiles(np.array([np.inf, 0.0, 1.0]), 2) == (0, np.inf)


@pytest.mark.parametrize("n", [1, 7, 50, 1000])
def test_proportions_are_clopper_and_pearsons(n):
    for k in {0, 1, n // 3, n - 1, n}:
        exact = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose(intervals.proportion(k, n), exact, rtol=1e-9, atol=1e-12)
    assert np.isnan(intervals.proportion(0, 0)).all()


def test_a_mean_that_few_seeds_carry_is_marked():
    gen = np.random.default_rng(0)
    assert intervals.is_carried_by_few([*gen.integers(20, 110, size=49), 12_513])
    assert intervals.is_carried_by_few([*[0.0] * 47, 3, 200, 500])
    assert intervals.is_carried_by_few([np.nan, *[-1.0] * 12, -99])
    assert not intervals.is_carried_by_few([5.0] * 20)
    assert not intervals.is_carried_by_few([0.0, 0, 1, 1, 0, 1, 0, 1, 1, 0])
    assert not intervals.is_carried_by_few([1, 2, 3, 4, 1e6])  # too few to say
    assert not intervals.is_carried_by_few([])


@pytest.mark.parametrize("n", [6, 15, 50])
def test_normal_means_are_hardly_ever_marked(n):
    x = np.random.default_rng(n).normal(size=(1000, n))
    assert np.mean([intervals.is_carried_by_few(row) for row in x]) < 0.01


def test_ten_thousand_rounds_are_taken_at_once_and_in_little_memory():
    x = np.random.default_rng(0).lognormal(size=(50, 10_000))
    interval(x[:, :1])  # what is computed once
    assert calls(lambda: interval(x)) < 1000, "and not round by round"
    assert calls(lambda: interval(x, "median")) < 1000
    x = np.random.default_rng(0).normal(size=(1000, 5000))
    tracemalloc.start()
    interval(x)
    assert tracemalloc.get_traced_memory()[1] < 150e6
    tracemalloc.stop()
