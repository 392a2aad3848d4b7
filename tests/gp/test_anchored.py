"""Models anchored at an observation: they are the GP, with all its digits at any distance."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from cbobench.gp.anchored import (
    LEAST,
    AnchoredModel,
    Around,
    covariance,
    kernel_remainder,
    slope_loss,
    step_from_best,
)
from cbobench.gp.fit import Fitted
from cbobench.gp.kernels import Matern

UNIT = Matern(2.5, 1.0)
FITTED = Fitted(np.array([0.7, 0.4]), 1.5, 0.0, 0.3)


def exact_kernel(x, y):
    """Matérn-5/2 of points in lengthscales, in as many digits as the context has."""
    squared = sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Decimal(0))
    z = (5 * squared).sqrt()
    return (1 + z + z * z / 3) * (-z).exp()


def exact_left_over(x, y):
    """The covariance given value and slope at 0, from its definition."""
    five_thirds, zero = Decimal(5) / 3, [Decimal(0)] * len(x)

    def slopes(point):
        z = (5 * sum((a * a for a in point), Decimal(0))).sqrt()
        return [(1 + z) * (-z).exp() * a for a in point]

    of_slopes = five_thirds * sum(a * b for a, b in zip(slopes(x), slopes(y), strict=True))
    return exact_kernel(x, y) - exact_kernel(x, zero) * exact_kernel(y, zero) - of_slopes


@pytest.mark.parametrize("distance", [3.0, 0.3, 1e-2, 1e-4, 1e-7])
def test_the_covariance_left_over_has_all_digits_at_any_distance(distance):
    directions = np.random.default_rng(1).standard_normal((5, 2))
    points = Around.of(distance * directions)
    computed = covariance(points, points)
    with localcontext() as context:
        context.prec = 80
        rows = [[Decimal(float(value)) for value in row] for row in points.x]
        exact = np.array([[float(exact_left_over(x, y)) for y in rows] for x in rows])
    scale = np.sqrt(np.outer(exact.diagonal(), exact.diagonal()))
    assert np.abs((computed - exact) / scale).max() < 1e-12
    np.testing.assert_allclose(points.variance, exact.diagonal(), rtol=1e-12)


def test_series_and_formulas_meet():
    for function in (kernel_remainder, slope_loss):
        below, above = function(np.array([1 - 1e-12, 1 + 1e-12]) / np.sqrt(5))
        assert below == pytest.approx(above, rel=1e-11)


def predict_plainly(points, values, hyper, at):
    """The GP's mean and deviation without noise, from the covariance matrix itself."""
    scaled, there = points / hyper.lengthscales, at / hyper.lengthscales
    k = UNIT(there, scaled)
    weights = np.linalg.solve(UNIT(scaled, scaled), np.column_stack([values - hyper.centre, k.T]))
    variance = 1 - (k * weights[:, 1:].T).sum(axis=1)
    return hyper.centre + k @ weights[:, 0], hyper.amplitude * np.sqrt(variance)


def test_an_anchored_model_is_the_process_itself():
    generator = np.random.default_rng(2)
    points, at = generator.random((9, 2)), generator.random((6, 2))
    values = np.sin(3 * points[:, 0]) - points[:, 1] ** 2
    model = AnchoredModel(points[1:] - points[0], values[1:] - values[0], values[0], FITTED)
    mean, deviation = predict_plainly(points, values, FITTED, at)
    change, anchored_deviation = model(at - points[0])
    np.testing.assert_allclose(values[0] + change, mean, atol=1e-10)
    np.testing.assert_allclose(anchored_deviation, deviation, rtol=1e-8)


def test_a_cluster_of_a_hundred_points_has_a_factor():
    generator = np.random.default_rng(3)
    offsets = generator.standard_normal((100, 2)) * 10.0 ** generator.uniform(-8, -2, (100, 1))
    offsets = offsets[np.abs(offsets).max(axis=1) > LEAST]
    slopes = np.array([2.0, -1.0])
    model = AnchoredModel(offsets, offsets @ slopes, 0.5, FITTED)
    change, deviation = model(offsets / 2)
    distance = np.abs(offsets).max(axis=1)
    assert (np.abs(change - offsets @ slopes / 2) <= 1e-4 * distance).all()
    assert (deviation <= 5e-3 * distance).all()


def test_deviations_fall_with_the_square_of_the_distance():
    """What a step is unsure of, which a jitter in the covariance matrix would hold up at its
    root.
    """
    axes = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
    deviations = []
    for distance in (1e-3, 1e-5):
        model = AnchoredModel(distance * axes, distance * axes @ [1.0, 2.0], 0.0, FITTED)
        deviations.append(model(0.5 * distance * np.array([[1.0, 1.0]]))[1][0])
    assert deviations[1] / deviations[0] == pytest.approx(1e-4, rel=0.05)


def disk(points):
    """f = x + y/2 - x²/4 within a disk around the cube's corner: the optimum is on the circle."""
    x, y = points.T
    return np.stack([x + y / 2 - x * x / 4, x * x + y * y - 0.25])


def test_steps_converge_to_the_boundary_to_rounding():
    points = 0.6 * np.random.default_rng(4).random((12, 2))
    hyper = [
        Fitted(np.array([1.5, 1.5]), 1.0, 1e-8, 0.2),
        Fitted(np.array([1.5, 1.5]), 1.0, 1e-8, 0.0),
    ]
    angle = np.linspace(0, np.pi / 2, 2_000_001)
    optimum = disk(0.5 * np.column_stack([np.cos(angle), np.sin(angle)]))[0].max()
    regrets = []
    for _ in range(11):
        values = disk(points)
        regrets.append(optimum - values[0][values[1] <= 0].max())
        step = step_from_best(points, values, values, hyper, 0.5)
        if step is None:  # nothing is left to gain
            break
        points = np.concatenate([points, step[0][None]])
    assert regrets[0] > 1e-2
    assert -1e-12 < regrets[-1] < 1e-11


def test_without_a_feasible_observation_there_is_no_step():
    points = np.array([[0.9, 0.9], [0.8, 0.7]])
    values = disk(points)
    assert step_from_best(points, values, values, [FITTED, FITTED], 1.645) is None
    assert (
        step_from_best(
            points[:1] / 3, disk(points[:1] / 3), disk(points[:1] / 3), [FITTED] * 2, 1.645
        )
        is None
    )
