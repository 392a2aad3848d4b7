"""Growth exponents in closed form, and what their intervals cover."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.quality import coverage
from cbobench.stats import growth
from cbobench.stats.growth import exponent

T = np.arange(1.0, 2001.0)


@pytest.mark.parametrize("power", [0.0, 0.25, 0.5, 2 / 3, 1.0, 2.0])
def test_powers_of_t(power):
    curves = np.multiply.outer(T**power, [1.0, 3.0, 0.01])
    for part in (0.1, 0.5, 1.0):
        np.testing.assert_allclose(exponent(T, curves, part), [power] * 3, rtol=0, atol=1e-12)
    thinned = T[np.unique(np.geomspace(1, 2000, 40).astype(int)) - 1]
    np.testing.assert_allclose(exponent(thinned, thinned**power)[0], power, rtol=0, atol=1e-12)


def test_what_stopped_growing_has_exponent_zero():
    for curve in (np.zeros_like(T), np.full_like(T, 7.0), np.minimum(T, 900)):
        assert exponent(T, np.stack([curve, 2 * curve], axis=1)) == (0, 0, 0)


def test_what_begins_within_the_part_grows_faster_than_any_power():
    curve = np.maximum(T - 1500, 0)
    assert exponent(T, curve).exponent == np.inf
    fitted = exponent(T, np.stack([curve, *[np.zeros_like(T)] * 9], axis=1))
    assert (fitted.exponent, fitted.low, fitted.high) == (np.inf, 0, np.inf)
    assert not fitted.high < 1


def test_a_negative_curve_has_none():
    fitted = exponent(T, np.stack([T - 1500, T - 1600], axis=1))
    assert np.isnan(fitted).all()
    assert not fitted.high < 1


def test_only_the_last_part_counts():
    curve = np.where(T < 1000, T**2, 1e6 * np.sqrt(T / 1000))
    assert exponent(T, curve).exponent == pytest.approx(0.5, abs=1e-12)
    assert exponent(T, curve, part=1.0).exponent > 1


def test_the_mean_of_seeds_is_what_is_fitted():
    a, b = np.sqrt(T), T
    fitted = exponent(T, np.stack([a, b], axis=1), part=0.5).exponent
    used = growth.last(T, 0.5)
    expected = np.polyfit(np.log(T[used]), np.log((a + b)[used] / 2), 1)[0]
    assert fitted == pytest.approx(expected, abs=1e-12)
    assert 0.5 < fitted < 1


def test_growth_is_told_from_linear_and_the_same_every_time():
    gen = np.random.default_rng(0)
    steps = gen.exponential(size=(2000, 20))
    slow = exponent(T, np.cumsum(steps / np.sqrt(T)[:, None], axis=0))
    line = exponent(T, np.cumsum(steps, axis=0))
    assert slow.high < 1
    assert slow.low < 0.5 < slow.high
    assert not line.high < 1
    assert line.low < 1 < line.high
    assert exponent(T, np.cumsum(steps, axis=0)) == line
    assert exponent(T, np.cumsum(steps, axis=0), draws=1000) != line


def test_one_seed_has_no_interval_and_two_have_a_wide_one():
    assert np.isnan(exponent(T, np.sqrt(T))[1:]).all()
    assert np.isnan(exponent(T, np.empty((2000, 0)))).all()
    fitted = exponent(T, np.stack([np.sqrt(T), T], axis=1))
    assert (fitted.low, fitted.high) == pytest.approx((0.5, 1), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "repeats"), [(10, 400), pytest.param(50, 1000, marks=pytest.mark.long)]
)
def test_the_interval_covers(n, repeats):
    assert 91.5 <= coverage.of_growth(n, repeats) <= 97
