"""Models anchored at an observation: they are the GP, with all its digits at any distance."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from cbobench.gp.anchored import (
    LEAST,
    AnchoredModels,
    Around,
    Between,
    step_from_best,
)
from cbobench.gp.fit import Fitted
from cbobench.gp.kernels import Matern

UNIT = Matern(2.5, 1.0)
FITTED = Fitted(np.array([0.7, 0.4]), 1.5, 0.0, 0.3)
OTHER = Fitted(np.array([0.5, 1.2]), 0.7, 0.0, -1.0)


def exact_kernel(x, y):
    """Matérn-5/2 of points in lengthscales, in as many digits as the context has."""
    squared = sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Decimal(0))
    z = (5 * squared).sqrt()
    return (1 + z + z * z / 3) * (-z).exp()


def map_decimal(row):
    return [Decimal(float(value)) for value in row]


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
    computed = Between.of(points, points).covariance()
    with localcontext() as context:
        context.prec = 80
        rows = [map_decimal(row) for row in points.x]
        exact = np.array([[float(exact_left_over(x, y)) for y in rows] for x in rows])
    scale = np.sqrt(np.outer(exact.diagonal(), exact.diagonal()))
    assert np.abs((computed - exact) / scale).max() < 1e-12
    np.testing.assert_allclose(points.variance, exact.diagonal(), rtol=1e-12)


@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-8])
def test_near_and_far_points_have_all_digits_of_their_covariance(distance):
    directions = np.random.default_rng(6).standard_normal((8, 2))
    near, far = Around.of(distance * directions[:4]), Around.of(directions[4:])
    with localcontext() as context:
        context.prec = 80
        exact = [
            [float(exact_left_over(map_decimal(x), map_decimal(y))) for y in far.x] for x in near.x
        ]
    scale = np.sqrt(np.outer(near.variance, far.variance))
    assert np.abs((Between.of(near, far).covariance() - exact) / scale).max() < 1e-13
    assert np.abs((Between.of(far, near).covariance().T - exact) / scale).max() < 1e-13


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
    values = np.stack([values, np.cos(2 * points[:, 1]) + points[:, 0]])
    models = AnchoredModels(
        points[1:] - points[0], values[:, 1:] - values[:, :1], values[:, 0], [FITTED, OTHER]
    )
    change, anchored_deviation = models(at - points[0])
    for j, hyper in enumerate([FITTED, OTHER]):
        mean, deviation = predict_plainly(points, values[j], hyper, at)
        np.testing.assert_allclose(values[j, 0] + change[j], mean, atol=1e-10)
        np.testing.assert_allclose(anchored_deviation[j], deviation, rtol=1e-8)


@pytest.mark.parametrize("distance", [1.0, 1e-2, 1e-3])
def test_derivatives_are_those_of_finite_differences(distance):
    generator = np.random.default_rng(5)
    offsets, at = distance * generator.uniform(-1, 1, (2, 9, 2))
    changes = np.stack([np.sin(3 * offsets[:, 0]) - offsets[:, 1] ** 2, offsets @ [1.0, 2.0]])
    models = AnchoredModels(offsets, changes, np.array([0.2, 0.5]), [FITTED, OTHER])
    level, slopes, bends = models.jet(at)
    mean, deviation = models(at)
    np.testing.assert_allclose(level[..., 0], mean, rtol=1e-12)
    np.testing.assert_allclose(level[..., 1], deviation**2, rtol=1e-9)
    for axis in range(2):
        step = 1e-4 * distance * np.eye(2)[axis]
        above, below = models.jet(at + step), models.jet(at - step)
        for i, exact in ((0, slopes), (1, bends)):
            difference = (above[i] - below[i]) / (2e-4 * distance)
            largest = np.abs(exact).max(axis=tuple(j for j in range(exact.ndim) if j != 2))
            error = np.abs(difference - exact[..., axis])
            largest = largest.reshape(-1, *[1] * (error.ndim - 3))
            assert (error <= 1e-3 * largest).all()


def test_a_cluster_of_a_hundred_points_has_a_factor():
    generator = np.random.default_rng(3)
    offsets = generator.standard_normal((100, 2)) * 10.0 ** generator.uniform(-8, -2, (100, 1))
    offsets = offsets[np.abs(offsets).max(axis=1) > LEAST]
    slopes = np.array([2.0, -1.0])
    models = AnchoredModels(offsets, (offsets @ slopes)[None], np.array([0.5]), [FITTED])
    change, deviation = models(offsets / 2)
    distance = np.abs(offsets).max(axis=1)
    assert (np.abs(change - offsets @ slopes / 2) <= 1e-4 * distance).all()
    assert (deviation <= 5e-3 * distance).all()


def test_a_direction_of_which_no_neighbour_tells_keeps_its_prior():
    """By hand: so near the anchor, a mean changes along the direction that was tried, and all of
    the prior slope across it is unknown.
    """
    for seed in range(9):
        tried, *at = 1e-7 * np.random.default_rng(seed).uniform(-1, 1, (5, 2))
        change, deviation = AnchoredModels(tried[None], [[3e-7]], np.ones(1), [FITTED])(at)
        x, y = at / FITTED.lengthscales, tried / FITTED.lengthscales
        along = x @ y / (y @ y)
        np.testing.assert_allclose(change[0], 3e-7 * along, atol=1e-12)
        across = np.linalg.norm(x - along[:, None] * y, axis=1)
        np.testing.assert_allclose(deviation[0], 1.5 * np.sqrt(5 / 3) * across, rtol=1e-6)
        line = np.arange(1, 6)[:, None] * tried
        assert np.isfinite(AnchoredModels(line, line.T[:1], np.ones(1), [FITTED])(at)).all()


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
    for _ in range(14):
        values = disk(points)
        regrets.append(optimum - values[0][values[1] <= 0].max())
        step = step_from_best(points, values, values, hyper, 0.5)
        if step is None:  # nothing is left to gain
            break
        point, gain = step
        gained = disk(point[None])[0, 0] - values[0][values[1] <= 0].max()
        assert gain == pytest.approx(gained, rel=0.2, abs=1e-12), "what the models predict"
        points = np.concatenate([points, point[None]])
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
