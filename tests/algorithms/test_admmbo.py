"""ADMMBO: improvements against sampling, the dual step by hand, and what is not evaluated again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.algorithms.easy import on_box, started


def learned(count=6, **settings):
    """A run on the unit cube that has been told of a few points."""
    run = started("admmbo", on_box(constraints=2), side=1.0, lam=0.05, **settings)
    rng = np.random.default_rng(2)
    for x in rng.random((count, 2)):
        run.inputs = x[None]
        run.tell_one(0, x, float(np.sin(5 * x[0]) + x[1]), np.array([x[0] - 0.6, 0.4 - x[1]]))
    return run


@pytest.mark.parametrize("values", ["posterior", "observed"])
def test_optimality_improvement_is_an_expectation(values):
    """E[u⁺ - u(x)]⁺ of u = -f + ρ/2 Σ_i |x - z_i + y_i/ρ|², f from the posterior and the quadratic
    known.
    """
    run = learned(values=values)
    run.penalty, run.y = 0.7, np.array([[0.1, -0.2], [0.3, 0.0]])
    run.z = np.array([[0.2, 0.9], [0.8, 0.1]])

    def quadratic(x):
        return sum(
            0.35 * ((x - z + y / 0.7) ** 2).sum(axis=-1) for z, y in zip(run.z, run.y, strict=True)
        )

    points = np.array([[0.3, 0.9], [0.9, 0.9], [0.05, 0.05]])
    values_at_played = (
        run.model.observed[0] if values == "observed" else run.model.at_played()[0][0]
    )
    best = (quadratic(run.model.played) - values_at_played).min()
    mean, deviation = run.model.at(points)
    f = mean[0] + deviation[0] * np.random.default_rng(3).standard_normal((100_000, 3))
    sampled = np.maximum(best - (quadratic(points) - f), 0.0).mean(axis=0)
    assert sampled.max() > 0.01
    np.testing.assert_allclose(
        np.exp(run.optimality_improvement(points)), sampled, rtol=0.03, atol=1e-3
    )


@pytest.mark.parametrize("i", [0, 1])
def test_feasibility_improvement_is_an_expectation(i):
    """E[h⁺ - 1[g_i(z) > 0] - ρ/(2M) |x - z + y_i/ρ|²]⁺ with g_i(z) from the posterior, by
    sampling.
    """
    run = learned(rho=2.0, M=1.0)
    run.x, run.y = np.array([0.2, 0.9]), np.array([[0.8, 0.0], [0.0, -0.8]])
    points = np.array([[0.5, 0.6], [0.3, 0.4], [0.65, 0.7], [0.9, 0.3], [0.6, 0.45]])

    def quadratic(z):
        return ((run.x - z + run.y[i] / 2.0) ** 2).sum(axis=1)

    losses_at_played = (run.model.at_played()[0][1 + i] > 0) + quadratic(run.model.played)
    mean, deviation = run.model.at(points)
    g = mean[1 + i] + deviation[1 + i] * np.random.default_rng(4).standard_normal((100_000, 5))
    sampled = np.maximum(losses_at_played.min() + 0.2 - (g > 0) - quadratic(points), 0.0).mean(
        axis=0
    )
    run._infeasibility = lambda i: losses_at_played + 0.2  # so that some points promise something
    promised = run.feasibility_improvement(points, i)
    assert np.count_nonzero(sampled > 0.02) >= 2
    np.testing.assert_allclose(promised, sampled, atol=6e-3)


def test_dual_step_by_hand():
    """x = (1, 2), z = (0, 2), y = (0.5, 0), ρ = 2: r = 1, y <- (2.5, 0); s = 2 |z - before|.

    before = (0, 1.9): s = 0.2, r > 10 s fails at 1 > 2, ρ stays; before = (0, 1.97): s = 0.06, ρ
    doubles; before = (0, -4): s = 12 > 10 r, ρ halves.
    """
    for before, rho in (((0.0, 1.9), 2.0), ((0.0, 1.97), 4.0), ((0.0, -4.0), 1.0)):
        run = started("admmbo", on_box(), tolerance=0.05)
        run.x, run.z, run.y, run.penalty = (
            np.array([1.0, 2.0]),
            np.array([[0.0, 2.0]]),
            np.array([[0.5, 0.0]]),
            2.0,
        )
        assert not run.dual_step(np.array([before]))
        np.testing.assert_allclose(run.y, [[2.5, 0.0]])
        assert run.penalty == rho


@pytest.mark.parametrize(
    ("gap", "moved", "stops"), [(0.2, 0.02, True), (0.25, 0.02, False), (0.2, 0.06, False)]
)
def test_stopping_rule_by_hand(gap, moved, stops):
    """d = 2, ε = 0.05: |x - z| < 0.0707 + 0.075 max(|x|, |z|) and ρ|z - before| < 0.0707 + 0.075 |ρ
    y|.

    With |x| = 2 + gap the first bound is 0.2357 or 0.2395; with ρ = 2 and y = 2 gap e_1 after its
    step, the second is 0.0707 + 0.15 * 2 gap: 0.1307 against 2 * 0.02 or, in the last case, 2 *
    0.06 + 0.04.
    """
    run = started("admmbo", on_box(), tolerance=0.05)
    run.x, run.z, run.penalty = np.array([2.0 + gap, 0.0]), np.array([[2.0, 0.0]]), 2.0
    before = run.z - np.array([[moved if stops or gap > 0.2 else moved + 0.02, 0.0]])
    assert run.dual_step(before) is stops
