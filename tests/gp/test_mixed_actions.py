"""Action sets of floats, whole numbers and choices: coordinates, candidates, and climbs on them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbobench.gp.beliefs import Parts
from cbobench.gp.jets import taylor
from cbobench.gp.maximise import Surface, polish
from cbobench.gp.mixed_actions import ENUMERATED, FAR, FEWEST, NEAR, Mixed
from cbobench.gp.posteriors.fitted import FittedPosterior
from cbobench.problems.known import limit_box, make_known
from cbobench.problems.tables.inputs import read_types

RANDOM = np.random.default_rng
TYPES = {
    "rate": {"float": [1e-4, 1e-1], "log": True},
    "kind": {"choice": ["a", None, 2.5]},
    "width": {"int": [1, 40], "log": True},
    "length": {"float": [-2.0, 3.0]},
    "depth": {"int": [-1, 3]},
}


def make_actions(types=TYPES, known=(), size=1024):
    kinds = read_types(types)
    numbers = [t.name for t in kinds if not t.choices]
    return limit_box(Mixed.of(kinds, "matern52", 0.3, size), make_known(list(known), numbers))


def draw(actions, count, seed=0):
    return actions.scale(RANDOM(seed).random((count, actions.d)))


# Coordinates --------------------------------------------------------------------------------------


def test_points_are_the_same_after_a_way_through_the_cube_and_through_names():
    actions = make_actions()
    points = draw(actions, 500)
    again = actions.scale(actions.unit(points))
    np.testing.assert_allclose(again, points, rtol=1e-12)
    np.testing.assert_array_equal(again[:, actions.held], points[:, actions.held])
    np.testing.assert_array_equal(actions.round(points), points)
    for x in (actions.low, actions.high, *points[:20]):
        written = actions.write(x)
        assert [type(written[name]) for name in ("rate", "width", "depth")] == [float, int, int]
        np.testing.assert_array_equal(actions.read(written), x)
    ends = actions.scale(np.array([np.zeros(5), np.ones(5)]))
    np.testing.assert_allclose(ends, [actions.low, actions.high])


def test_uniform_points_are_uniform_over_values():
    actions = make_actions()
    points = actions.scale(np.tile((np.arange(6000) + 0.5)[:, None] / 6000, (1, 5)))
    for column, count in ((1, 3), (4, 5)):
        values, times = np.unique(points[:, column], return_counts=True)
        assert len(values) == count
        assert np.ptp(times) <= 2
    # The ends of the side of a logarithm are half a step beyond 1 and 40.
    shares = np.log(np.array([1.5, 20.5]) / 0.5) / np.log(40.5 / 0.5)
    np.testing.assert_allclose([(points[:, 2] < x).mean() for x in (1.5, 20.5)], shares, atol=1e-3)
    assert np.mean(points[:, 0] < np.sqrt(1e-5)) == pytest.approx(0.5, abs=1e-3)
    assert np.mean(points[:, 3] < 0.5) == pytest.approx(0.5, abs=1e-3)


def test_a_model_sees_two_choices_at_a_distance_of_one_and_numbers_rounded():
    actions = make_actions()
    assert actions.width == 7
    assert actions.firsts.tolist() == [0, 1, 4, 5, 6]
    assert actions.floats.tolist() == [0, 5]
    units = RANDOM(1).random((200, 5))
    seen = actions.embed(units)
    points = actions.scale(units)
    for a, b in itertools.pairwise(range(200)):
        is_other = points[a, 1] != points[b, 1]
        assert np.linalg.norm(seen[a, 1:4] - seen[b, 1:4]) == pytest.approx(float(is_other))
    np.testing.assert_array_equal(seen[:, [0, 5]], units[:, [0, 3]])
    np.testing.assert_allclose(seen[:, 4], np.log(2 * points[:, 2]) / np.log(81))
    np.testing.assert_allclose(seen[:, 6], (points[:, 4] + 1.5) / 5)
    # Points that stand for one action are one to a model, bit by bit.
    np.testing.assert_array_equal(actions.embed(actions.snap(units)), seen)


# Candidates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [(), ("length + depth <= 3", "rate * width <= 1")])
def test_candidates_hold_every_combination_and_only_what_is_allowed(known):
    few = {**TYPES, "width": {"int": [1, 30], "log": True}}
    actions = make_actions(few, known)
    points = actions.scale(actions.candidates)
    assert len(points) >= FEWEST * 3 * 30 * 5 > 1024
    assert not actions.forbids(points).any()
    values, times = np.unique(points[:, actions.held], axis=0, return_counts=True)
    assert len(values) == 3 * 30 * 5 <= ENUMERATED
    assert known or times.min() == FEWEST
    assert len(np.unique(points[:, 3])) > 0.9 * len(points), "each with floats of its own"


def test_of_many_combinations_there_are_as_many_candidates_as_asked_for():
    actions = make_actions(known=("width * depth <= 60",))
    assert actions.combinations is None
    points = actions.scale(actions.candidates)
    assert len(points) == 1024
    assert (points[:, 2] * points[:, 4] <= 60).all()
    np.testing.assert_array_equal(actions.snap(actions.candidates), actions.candidates)


def test_one_whole_number_or_choice_is_changed_at_a_time():
    actions = make_actions()
    before = draw(actions, 3)
    units = actions.unit(before)
    changed = actions.change_once(units)
    assert changed.shape == (3, 3 + 2 * NEAR + FAR + 5, 5)
    points = actions.scale(changed)
    assert ((points != actions.scale(units)[:, None]).sum(axis=2) <= 1).all()
    floats = changed[..., ~actions.held]
    assert (floats == units[:, None, ~actions.held]).all()
    for column, count in ((1, 3), (4, 5)):
        assert len(np.unique(points[0, :, column])) == count


@pytest.mark.parametrize("log", [False, True])
def test_of_a_wide_range_near_values_are_tried_and_some_of_all_sizes(log):
    types = {"n": {"int": [1, 2**53 - 1], "log": log}, "x": {"float": [0.0, 1.0]}}
    actions = make_actions(types)
    tried = actions.scale(actions.change_once(actions.unit(np.array([[1000.0, 0.5]]))))[0, :, 0]
    assert {999, 1001} <= {*np.round(tried)}
    assert (tried == np.round(tried)).all()
    assert tried.max() > 1e15
    assert ((tried > 2e3) & (tried < 1e6)).any() == log


# Models and climbs --------------------------------------------------------------------------------


def learned(actions, rounds=30):
    """A posterior of f and one g, told both at random points."""
    posterior = FittedPosterior(actions, 1, 2)
    for point in draw(actions, rounds, seed=3):
        unit = actions.unit(point)
        f = np.sin(3 * unit[0]) + 0.3 * point[1] - (unit[3] - 0.4) ** 2
        posterior.update(unit[None], np.array([[f, unit[2] - unit[0]]]))
    return posterior


def test_derivatives_are_differences_in_the_floats_and_0_elsewhere():
    actions = make_actions()
    posterior = learned(actions)
    layout = taylor(5)
    point = actions.unit(draw(actions, 1, seed=5))
    jet = posterior.jet(point[None])
    step = 1e-4
    moved = np.concatenate([point, point + step * np.eye(5), point - step * np.eye(5)])
    mean, variance = posterior.at(moved[None])
    for models, values in ((jet.mean[0], mean[0]), (jet.variance[0], variance[0])):
        model = models.reshape(2, len(layout.steps))
        slopes = (values[:, 1:6] - values[:, 6:]) / (2 * step)
        np.testing.assert_allclose(model[:, 0], values[:, 0], rtol=1e-6)
        np.testing.assert_allclose(layout.slopes(model), slopes, rtol=1e-4, atol=1e-7)
        assert (layout.slopes(model)[:, ~actions.held] != 0).all()
        bends = layout.bends(model)
        assert (bends[:, actions.held] == 0).all()
        assert (layout.slopes(model)[:, actions.held] == 0).all()
        second = (values[:, 1:6] + values[:, 6:] - 2 * values[:, [0]]) / step**2
        np.testing.assert_allclose(np.diagonal(bends, axis1=1, axis2=2), second, atol=1e-3)


def test_a_climb_gains_and_keeps_whole_numbers_and_choices():
    actions = make_actions()
    posterior = learned(actions)

    def score(mean, variance, points):
        return Parts.of(mean[:, 0] + np.sqrt(variance[:, 0]))

    starts = actions.snap(RANDOM(7).random((1, 12, 5)))
    surface = Surface(score, posterior.jet, actions.spacing, actions.held)
    ends, values = polish(surface, starts)
    before = score(*posterior.at(starts), starts).total()
    assert values.max() > before.max() + 1e-3
    held = {*map(tuple, starts[0][:, actions.held])}
    assert {*map(tuple, ends[0][:, actions.held])} <= held
    np.testing.assert_allclose(score(*posterior.at(ends), ends).total(), values, rtol=1e-6)
