"""Whether constraints bind: the best f of all is better than the best feasible one, in every instance that is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.high_dimensional import HighDimensional
from cbobench.problems.optimum import search
from tests.algorithms.easy import Bowl
from tests.helpers import on_boxes, problem

GENERATORS = [np.random.default_rng(s) for s in range(3)]


@pytest.mark.parametrize("name", on_boxes(HighDimensional))
def test_what_is_stated_of_a_box_is_found_again(name):
    task = build(PROBLEMS.get(name), {})
    for formula, known in task.stated():
        with np.errstate(all="ignore"):
            found = search(formula, task.box, starts=4, power=12)
        assert known.binds == (found.highest - known.f > known.accuracy * (1 + abs(known.f))), found.highest
    np.testing.assert_array_equal(task.draw(GENERATORS).binds, [any(k.binds for _, k in task.stated())] * 3)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("queue-stability", {"arrivals": 0.5}), ("queue-stability", {"arrivals": 30.0})]
    + [
        ("no-fixed-penalty", {"kappa": k, "penalty": p, "c": 0.1})
        for k in (0.0, 50.0)
        for p in ("linear", "exponential")
    ],
)
def test_it_holds_for_other_parameters_too(name, settings):
    task = problem(name, **settings)
    known = task.optimum
    assert search(task.formula, task.box, starts=4, power=12).highest > known.f + 1e-6
    assert known.binds


def test_what_is_not_stated_is_not_known():
    assert problem("tests.algorithms.easy:Bowl").draw(GENERATORS).binds is None
    assert Bowl.reference.binds is None


def test_on_finite_sets_it_is_seen_from_all_actions():
    drawn = problem("rkhs", n=40).draw([np.random.default_rng(s) for s in range(40)])
    for s in range(40):
        feasible = (drawn.g[s] <= 0).all(axis=0)
        assert drawn.binds[s] == (drawn.f[s].max() > drawn.f[s][feasible].max())
    assert 0 < drawn.binds.sum() < 40
    assert not problem("rkhs", n=40, constraint="threshold").draw(GENERATORS).binds.any(), "g = h - f never binds"
    assert problem("feasible-pocket", grid=20).draw(GENERATORS).binds.all()
    assert not problem("gardner-1", grid=20).draw(GENERATORS).binds.any()
