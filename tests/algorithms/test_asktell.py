"""Optimisers with ask and tell: what they are given and told, what is refused, and that runs share
nothing.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from cbobench.algorithms import asktell
from cbobench.algorithms.asktell import AskTell
from cbobench.algorithms.base import NONE
from cbobench.errors import CellFailure
from cbobench.params import build
from cbobench.play.block import summaries
from tests.helpers import actions, play, problem

BOX = partial(problem, "gardner-1")
POINTS = partial(problem, "gardner-1", grid=7)
SENSORS = partial(problem, "stocks", data="look-alike")  # without coordinates


def asking(*answers, recommended=()):
    """An algorithm whose optimiser gives these answers, the last one for ever, and keeps what it is
    told.
    """
    observations = []

    class Scripted:
        def __init__(self, facts):
            self.given, self.left = facts, list(answers)

        def ask(self):
            return self.left.pop(0) if len(self.left) > 1 else self.left[0]

        def tell(self, x, f, g):
            observations.append((x, f, g))

    if recommended:
        Scripted.recommend = lambda self: recommended[0]

    @dataclass(kw_only=True)
    class Asking(AskTell):
        """Says what it is told to say."""

        def optimiser(self, facts):
            return Scripted(facts)

    return build(Asking, {}), observations


def test_the_example_of_the_documentation_plays():
    text = textwrap.dedent(asktell.__doc__.split("\n\n", 1)[1].rsplit("\n\n", 1)[0])
    text = text.replace("    from dataclasses", "from dataclasses", 1)
    space: dict = {"__name__": "mine"}
    exec(textwrap.dedent(text), space)
    _, chunks = play(BOX(), build(space["Mine"], {}), seeds=2, horizon=10)
    played = actions(chunks)
    low, high = BOX().actions.low, BOX().actions.high
    assert ((played >= low) & (played <= high)).all()
    assert len(np.unique(played)) == played.size


def test_what_is_given_and_told():
    facts_of_runs = []

    @dataclass(kw_only=True)
    class Keeps(AskTell):
        def optimiser(self, facts):
            facts_of_runs.append(facts)
            return asking(facts.low)[0].optimiser(facts)

    play(BOX(), build(Keeps, {}), seeds=2, horizon=3)
    first, second = facts_of_runs
    np.testing.assert_array_equal(first.low, BOX().actions.low)
    np.testing.assert_array_equal(first.high, BOX().actions.high)
    assert (first.m, first.T, first.d, first.n, first.points) == (1, 3, 2, None, None)
    assert first.seed != second.seed
    assert first.generator.random() != second.generator.random()
    low = BOX().actions.low
    algorithm, observations = asking(low)
    _, chunks = play(BOX(), algorithm, seeds=1, horizon=3)
    assert [f for _, f, _ in observations] == list(chunks[0].observed_f[:, 0])
    for x, _, g in observations:
        np.testing.assert_array_equal(x, low)
        assert g.shape == (1,)


def test_failed_fits_are_recorded():
    @dataclass(kw_only=True)
    class Fails(AskTell):
        def optimiser(self, facts):
            scripted = asking(facts.low)[0].optimiser(facts)
            scripted.failed_fits = 3
            return scripted

    counted, _ = play(BOX(), build(Fails, {}), seeds=2, horizon=3)
    assert [row["failed_fits"] for row in summaries(counted)] == [3, 3]
    uncounted, _ = play(BOX(), asking(BOX().actions.low)[0], seeds=1, horizon=3)
    assert [row["failed_fits"] for row in summaries(uncounted)] == [None]


def test_on_a_finite_set_points_are_moved_to_the_nearest_action():
    points = POINTS().actions.points
    algorithm, observations = asking(points[10] + 0.01, np.int64(3), points[5])
    _, chunks = play(POINTS(), algorithm, seeds=1, horizon=3)
    assert actions(chunks)[:, 0].tolist() == [10, 3, 5]
    np.testing.assert_array_equal(observations[0][0], points[10])
    assert observations[1][0] == 3, "an index is told as an index"


def test_rounding_is_no_mistake():
    high = BOX().actions.high
    algorithm, observations = asking(np.nextafter(high, np.inf))
    play(BOX(), algorithm, seeds=1, horizon=1)
    np.testing.assert_array_equal(observations[0][0], high)


def test_a_recommendation_may_wait():
    high = BOX().actions.high
    none = (BOX, None, np.full((2, 2), np.nan)), (POINTS, None, [NONE, NONE])
    for task, answer, expected in ((BOX, high, [high] * 2), (POINTS, 4, [4, 4]), *none):
        algorithm, _ = asking(BOX().actions.low if task is BOX else 0, recommended=[answer])
        play(task(), algorithm, seeds=2, horizon=3, asked=[1])
        np.testing.assert_array_equal(algorithm.recommend(3), expected)


WRONG = {
    "[1, 2, 3]; it must give a point of 2 finite numbers, shape (2,)": (BOX, [1, 2, 3]),
    "0.5; it must give": (BOX, 0.5),
    "[nan, 1.0]; it must give": (BOX, [np.nan, 1.0]),
    "x[1] = 99": (BOX, [1.0, 99.0]),
    "'here'; it must give": (BOX, "here"),
    "49; it must give an index, 0 to 48, or a point": (POINTS, 49),
    "None; it must give": (POINTS, None),
    "[1.0]; it must give an index, 0 to ": (SENSORS, [1.0]),
}


@pytest.mark.parametrize("says", WRONG)
def test_a_wrong_answer_is_one_line_with_method_and_round(says):
    task, answer = WRONG[says]
    right = BOX().actions.low if task is BOX else 0
    algorithm, _ = asking(right, answer)
    algorithm.needs = frozenset()
    with pytest.raises(CellFailure) as caught:
        play(task(), algorithm, seeds=1, horizon=3)
    assert str(caught.value).startswith("round 2: Asking: ask() gave")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_optimiser_without_tell_is_refused():
    class Half(AskTell):
        def optimiser(self, facts):
            return object()

    with pytest.raises(CellFailure, match=r"Half: optimiser\(\) gave .* has no method ask"):
        play(BOX(), Half(), seeds=1, horizon=1)
