"""The scaled model of one run against the formulas it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.kernels import kernel
from cbobench.gp.single import Cube, RunModel, RunningScale, cholesky

RNG = np.random.default_rng(0)
KERNEL = kernel("matern52", 0.3)
LAM = 0.05


def model(kind: str, scaled: bool = True, count: int = 9):
    """A model told of `count` points, the points, the values (2, count), and where to ask."""
    points = RNG.random((40, 2))
    actions = Box(np.zeros(2), np.ones(2), "matern52", 0.3) if kind == "box" else Finite(KERNEL(points, points), points)
    made = RunModel(actions, 2, LAM, 50, scaled)
    values = np.stack([5 + 3 * np.sin(4 * points[:count, 0]), points[:count, 1] - 0.7])
    for i in range(count):
        made.tell(points[i : i + 1] if kind == "box" else np.array([i]), values[:, i])
    where = np.arange(20, 40)
    return made, points, values, points[where] if kind == "box" else where


@pytest.mark.parametrize("kind", ["box", "finite"])
@pytest.mark.parametrize("scaled", [True, False])
def test_moments_are_those_of_a_gp_with_that_centre_and_amplitude(kind, scaled):
    """Kernel s² k, noise s² λ, prior mean c: c + k_x (K + λ)^-1 (y - c) and s² (1 - k_x (K + λ)^-1 k_x)."""
    made, points, values, where = model(kind, scaled)
    f, g = values
    centre = np.array([(f.min() + f.max()) / 2, 0.0]) if scaled else np.zeros(2)
    amplitude = np.array([np.ptp(f) / 4, np.abs(g).max() / 2]) if scaled else np.ones(2)
    for asked, (mean, deviation) in ((points[20:], made.at(where)), (points[:9], made.at_played())):
        k = KERNEL(asked, points[:9])
        gain = k @ np.linalg.inv(KERNEL(points[:9], points[:9]) + LAM * np.eye(9))
        expected = centre[:, None] + (values - centre[:, None]) @ gain.T
        variance = 1 - (gain * k).sum(axis=1)
        np.testing.assert_allclose(mean, expected, atol=1e-8)
        np.testing.assert_allclose(deviation, amplitude[:, None] * np.sqrt(variance), atol=1e-8)
    np.testing.assert_allclose(made.observed, values)
    np.testing.assert_array_equal(made.units(made.played), points[:9] if kind == "box" else made.cube.units[:9])


@pytest.mark.parametrize("kind", ["box", "finite"])
def test_samples_are_joint(kind):
    """Means, variances and correlations of 20,000 paths are the posterior's: neighbours move together."""
    made, points, _, where = model(kind)
    where, asked = where[:6], points[20:26]
    paths = np.stack([made.sample(where, RNG.standard_normal((2, 6))) for _ in range(20_000)])
    mean, deviation = made.at(where)
    k = KERNEL(asked, points[:9])
    covariance = KERNEL(asked, asked) - k @ np.linalg.solve(KERNEL(points[:9], points[:9]) + LAM * np.eye(9), k.T)
    for p in range(2):
        np.testing.assert_allclose(paths[:, p].mean(axis=0), mean[p], atol=0.04 * deviation.max())
        expected = made.scale.amplitude[0, p] ** 2 * covariance
        np.testing.assert_allclose(np.cov(paths[:, p].T), expected, atol=0.05 * expected.max())
    assert abs(np.corrcoef(paths[:, 0, 0], paths[:, 1, 0])[0, 1]) < 0.05, "functions are independent"


def test_forgetting():
    made, _, _, where = model("box")
    made.forget()
    assert made.count == 0
    made.tell(where[:1], np.array([5.0, 0.1]))
    assert made.observed.shape == (2, 1)
    np.testing.assert_allclose(made.at(where[:1])[1][0] ** 2, made.scale.amplitude[0, 0] ** 2 * LAM / (1 + LAM))


def test_the_scale_follows_the_range():
    scale = RunningScale(1, 2)
    np.testing.assert_array_equal(scale.amplitude, [[1.0, 1.0]])
    scale.add(np.array([[3.0, 0.0]]))
    np.testing.assert_array_equal(scale.amplitude, [[1.0, 1.0]])
    np.testing.assert_array_equal(scale.centre, [[3.0, 0.0]])
    for _ in range(50):  # playing one action does not shrink it
        scale.add(np.array([[7.0, -0.6]]))
    np.testing.assert_allclose(scale.amplitude, [[1.0, 0.3]])
    np.testing.assert_allclose(scale.centre, [[5.0, 0.0]])


def test_cube():
    cube = Cube(Finite(np.eye(3), np.array([[10.0, 5.0], [20.0, 5.0], [12.0, 5.0]])))
    np.testing.assert_allclose(cube.units, [[0, 0], [1, 0], [0.2, 0]])
    assert cube.action(np.array([0.15, 0.9])) == 2
    box = Cube(Box(np.array([-1.0]), np.array([3.0])))
    np.testing.assert_allclose(box.action(np.array([0.5])), [1.0])
    np.testing.assert_allclose(box.action(np.array([1.5])), [3.0])


def test_jitter():
    ones = np.ones((5, 5))
    root = cholesky(ones)
    np.testing.assert_allclose(root @ root.T, ones, atol=1e-5)
    with pytest.raises(CellFailure, match="no Cholesky factor"):
        cholesky(-2 * np.eye(3))
