"""Where climbs on a box start: maxima on sides, in corners, on kinks and in small sets are found
from there.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbobench.gp import maximise
from cbobench.gp.beliefs import Parts
from cbobench.gp.box_actions import Box
from cbobench.gp.maximise import Starts
from tests.gp.test_maximise import flat as flat_beliefs

RANDOM = np.random.default_rng


def reached(box, score):
    """Where climbs from the starts of a score of points alone end: the best point and its score."""

    def scorer(mean, variance, points):
        return score(points)

    start = Starts(box)(score(box.candidates[None]), score, np.full((1, 1, box.d), 0.5))
    points, values = maximise.polish(maximise.Surface(scorer, flat_beliefs, box.spacing), start)
    best = values[0].argmax()
    return points[0, best], values[0, best]


BOXES = [("se", 1), ("se", 2), ("matern52", 1), ("matern52", 2), ("matern52", 3), ("matern12", 2)]


def box_of(name, d):
    return Box(np.zeros(d), np.ones(d), name, 0.3, 256)


@pytest.mark.parametrize(("name", "d"), BOXES)
def test_maxima_on_sides_and_in_corners_are_found(name, d):
    for target in itertools.product((-0.3, 0.613, 1.2), repeat=d):
        goal = np.clip(target, 0, 1)

        def score(points, target=target):
            return Parts.of(-((points - np.array(target)) ** 2).sum(axis=2))

        point, value = reached(box_of(name, d), score)
        np.testing.assert_allclose(point, goal, atol=1e-6)
        np.testing.assert_allclose(value, -((goal - target) ** 2).sum(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("name", "d"), BOXES)
def test_a_maximum_on_a_kink_between_candidates_is_found(name, d):
    """Where candidates on both sides of it pay for it: on x_1 = 0.4321 f is highest, off it the
    price is dear.
    """
    goal = np.full(d, 0.567)
    goal[0] = 0.4321

    def score(points):
        smooth = 1 + points[..., 0] - ((points[..., 1:] - 0.567) ** 2).sum(axis=2)
        over, under = points[..., 0] - 0.4321, 0.4321 - points[..., 0]
        return Parts(smooth, np.stack([over, under], axis=1), np.full((1, 2), 50.0))

    point, value = reached(box_of(name, d), score)
    np.testing.assert_allclose(point, goal, atol=1e-6)
    np.testing.assert_allclose(value, 1.4321, rtol=1e-8)


@pytest.mark.parametrize("name", ["se", "matern52"])
def test_a_maximum_on_a_thin_set_is_found_beside_many_that_cost_nothing(name):
    """Beside it every candidate pays more than the maxima elsewhere are worth."""

    def score(points):
        x, y = points[..., 0], points[..., 1]
        smooth = np.exp(-((y - 0.75) ** 2)) + 0.3 * np.sin(45 * x) * np.sin(45 * y) * np.clip(
            0.4 - y, 0, None
        )
        gate = np.clip((y - 0.4) / 0.1, 0, 1) ** 2
        return Parts(
            smooth,
            np.stack([gate * (x - 0.4321), gate * (0.4321 - x)], axis=1),
            np.full((1, 2), 500.0),
        )

    box = box_of(name, 2)
    total = score(box.candidates[None]).total()[0]
    assert box.candidates[total.argmax(), 1] < 0.5, (
        "negative control: the best candidates are elsewhere"
    )
    point, value = reached(box, score)
    np.testing.assert_allclose(point, [0.4321, 0.75], atol=1e-5)
    np.testing.assert_allclose(value, 1.0, atol=1e-8)


@pytest.mark.parametrize("kinks", [0, 2, 4])
@pytest.mark.parametrize("name", ["matern52", "matern12"])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_few_candidates_are_enough_to_start_from(d, name, kinks):
    def score(points):
        far = ((points - 0.3) ** 2).sum(axis=2)
        return Parts(
            -far,
            np.stack([far - 0.5] * kinks, axis=1) if kinks else np.empty((1, 0, far.shape[1])),
            np.ones((1, kinks)),
        )

    point, _ = reached(Box(np.zeros(d), np.ones(d), name, 0.3, 16), score)
    np.testing.assert_allclose(point, 0.3, atol=1e-5)


@pytest.mark.parametrize(("name", "d"), [("se", 2), ("matern52", 2), ("matern52", 3)])
def test_a_small_feasible_set_between_candidates_is_found(name, d):
    """An infinite price everywhere but in a ball that holds no candidate."""
    box = box_of(name, d)
    centre = np.full(d, 0.5) + 1e-3
    apart = np.sqrt(((box.candidates - centre) ** 2).sum(axis=1)).min()

    def score(points):
        inside = ((points - centre) ** 2).sum(axis=2) - (0.5 * apart) ** 2
        return Parts(points[..., 0], inside[:, None], np.full((1, 1), np.inf))

    assert np.isneginf(score(box.candidates[None]).total()).all()
    point, value = reached(box, score)
    np.testing.assert_allclose(value, centre[0] + 0.5 * apart, atol=1e-5)
    np.testing.assert_allclose(point[1:], centre[1:], atol=1e-3)
