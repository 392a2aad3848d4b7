"""The scaled model of one run against the formulas it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import kernel
from cbobench.gp.single import RunModel, RunningScale

RNG = np.random.default_rng(0)
KERNEL = kernel("matern52", 0.3)
LAM = 0.05


def model(kind: str, scaled: bool = True, count: int = 9, lam=LAM):
    """A model told of `count` points, the points, the values (2, count), and where to ask."""
    points = RNG.random((40, 2))
    actions = (
        Box(np.zeros(2), np.ones(2), "matern52", 0.3)
        if kind == "box"
        else Finite(KERNEL(points, points), points)
    )
    learned = RunModel(actions, 2, lam, 50, scaled)
    values = np.stack([5 + 3 * np.sin(4 * points[:count, 0]), points[:count, 1] - 0.7])
    for i in range(count):
        learned.tell(points[i : i + 1] if kind == "box" else np.array([i]), values[:, i])
    queries = np.arange(20, 40)
    return learned, points, values, points[queries] if kind == "box" else queries


@pytest.mark.parametrize("kind", ["box", "finite"])
@pytest.mark.parametrize(
    ("scaled", "lam"), [(True, LAM), (True, "theory"), (True, "scaled"), (False, LAM)]
)
def test_moments_are_those_of_a_gp_with_that_centre_and_amplitude(kind, scaled, lam):
    """Kernel s² k, noise λ, prior mean c: c + s² k_x (s² K + λ)^-1 (y - c) and s² - s² k_x (s² K +
    λ)^-1 s² k_x.

    A number is λ for every function, whatever its amplitude s; `scaled` is 0.01 s².
    """
    learned, points, values, queries = model(kind, scaled, lam=lam)
    f, g = values
    centre = np.array([(f.min() + f.max()) / 2, 0.0]) if scaled else np.zeros(2)
    amplitude = np.array([np.ptp(f) / 4, np.abs(g).max() / 2]) if scaled else np.ones(2)
    for places, (mean, deviation) in (
        (points[20:], learned.at(queries)),
        (points[:9], learned.at_played()),
    ):
        for j, (c, s) in enumerate(zip(centre, amplitude, strict=True)):
            noise = {"scaled": 0.01 * s**2, "theory": 1 + 2 / 50}.get(lam, lam)
            k = s**2 * KERNEL(places, points[:9])
            gain = k @ np.linalg.inv(s**2 * KERNEL(points[:9], points[:9]) + noise * np.eye(9))
            np.testing.assert_allclose(mean[j], c + gain @ (values[j] - c), atol=1e-8)
            np.testing.assert_allclose(
                deviation[j], np.sqrt(s**2 - (gain * k).sum(axis=1)), atol=1e-8
            )
    np.testing.assert_allclose(learned.observed, values)
    np.testing.assert_array_equal(
        learned.units(learned.played), points[:9] if kind == "box" else learned.cube.units[:9]
    )


@pytest.mark.parametrize("kind", ["box", "finite"])
@pytest.mark.parametrize("lam", [LAM, "scaled"])
def test_an_action_that_was_played_twice_is_one_action(kind, lam):
    """Its mean and deviation are the same number, to the bit, whichever observation they are read
    at.
    """
    learned, points, _, _ = model(kind, lam=lam, count=3)
    for i in (1, 0, 1, 2, 1, 0):
        learned.tell(points[[i]] if kind == "box" else np.array([i]), RNG.normal(size=2))
    mean, deviation = learned.at_played()
    for i, slots in enumerate(([0, 4, 8], [1, 3, 5, 7], [2, 6])):
        assert len(set(zip(*mean[:, slots], *deviation[:, slots], strict=True))) == 1
        assert (learned.units(learned.played)[slots] == learned.units(learned.played)[i]).all()
    assert len(set(mean[0])) == 3, "negative control: other actions have other means"


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


@pytest.mark.parametrize("kind", ["box", "finite"])
def test_what_is_no_number_ends_the_cell(kind):
    learned, points, _, queries = model(kind)
    for values in ([1.0, np.nan], [np.inf, 0.0]):
        with pytest.raises(CellFailure, match="an observation is not a number"):
            learned.tell(queries[:1], np.array(values))


@pytest.mark.parametrize("kind", ["box", "finite"])
def test_the_centre_stands_for_an_f_that_is_not_told(kind):
    learned, points, _, queries = model(kind, count=0)
    for i in range(3):
        learned.tell(points[[i]] if kind == "box" else np.array([i]), np.array([np.nan, 0.3 * i]))
    mean, _ = learned.at(queries)
    np.testing.assert_array_equal(mean[0], 0.0)
    assert np.ptp(mean[1]) > 0, "g is learned"
    learned.tell(points[[3]] if kind == "box" else np.array([3]), np.array([7.0, 0.2]))
    np.testing.assert_allclose(learned.at(queries)[0][0], 7.0)
