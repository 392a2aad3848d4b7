"""Norms of formulas on a box."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.algorithms.optimistic import read_bound
from cbobench.errors import CellFailure
from cbobench.gp.box_actions import Box
from cbobench.problems.formulas.high_dimensional import HighDimensional
from cbobench.problems.formulas.literature import PublishedProblem
from cbobench.problems.rkhs.pocket import DriftingPocket
from tests.helpers import long_cases, make, on_boxes, play, problem

CENTRES = np.random.default_rng(0).random((6, 2))


def a_box(lengthscale=0.2, size=1024, name="se", d=2):
    return Box(np.zeros(d), np.ones(d), name, lengthscale, size)


def member(box, weights):
    """A function of the space, and its norm."""
    gram = box.kernel(CENTRES, CENTRES)
    return (lambda x: (box.kernel(x, CENTRES) @ weights)[:, None]), float(
        np.sqrt(weights @ gram @ weights)
    )


@pytest.mark.parametrize(
    ("name", "lengthscale"), [("se", 0.1), ("se", 0.2), ("matern52", 0.2), ("matern32", 0.5)]
)
def test_a_function_of_the_space_has_its_norm(name, lengthscale):
    box = a_box(lengthscale, name=name)
    formula, norm = member(box, np.array([1.0, -2.0, 0.5, 1.5, -1.0, 2.0]))
    np.testing.assert_allclose(box.norm(formula), norm, rtol=0.05)


@pytest.mark.parametrize("lengthscale", [0.05, 0.2])
def test_a_norm_does_not_depend_on_the_candidates(lengthscale):
    norms = [
        problem("feasible-pocket", candidates=size, lengthscale=lengthscale).known_instance().norm
        for size in (64, 1024, 3000)
    ]
    np.testing.assert_array_equal(norms[0], norms[1])
    np.testing.assert_array_equal(norms[0], norms[2])


@pytest.mark.parametrize(("lengthscale", "d"), [(0.005, 2), (0.05, 4), (0.01, 3)])
@pytest.mark.slow
def test_a_lengthscale_that_the_points_do_not_resolve_has_no_norm(lengthscale, d):
    norm = a_box(lengthscale, d=d).norm(lambda x: x[:, :1])
    assert np.isinf(norm).all()
    with pytest.raises(CellFailure, match="use sup or a number"):
        read_bound("B", "norm", norm[None], np.ones((1, 1)))


@pytest.mark.parametrize("name", on_boxes(HighDimensional, PublishedProblem, DriftingPocket))
def test_problems_on_boxes_have_norms_as_they_come(name):
    """Other boxes: test_literature.py, what is played; that of a drift is below."""
    assert np.isfinite(problem(name, candidates=64).known_instance().norm).all()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"window": "theory"}, "the window reads"),
        *long_cases(({"window": 5}, "variation")),
    ],
)
@pytest.mark.slow
def test_moves_without_a_norm_are_refused(settings, says):
    task = problem("feasible-pocket-drift", lengthscale=0.005)
    with pytest.raises(CellFailure, match=f"{says}.*infinite.*number"):
        play(task, make("rpol-sw", B="sup", G="sup", **settings), seeds=1, horizon=150)
