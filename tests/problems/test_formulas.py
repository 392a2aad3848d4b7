"""A formula that breaks its contract is refused in one sentence that says what to do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.params import build
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.problems.formulas.box import BoxProblem, pointwise
from tests.algorithms.easy import Bowl
from tests.helpers import prepare_class, refused


def prepared(cls=Bowl, formula=None, settings=None, **attributes):
    attributes |= {"__module__": "mine"} | ({} if formula is None else {"formula": formula})
    return prepare_class(type(cls.__name__, (cls,), attributes), **(settings or {}))


def values(f, *g):
    return lambda self, x: np.stack([f(x), *(constraint(x) for constraint in g)], axis=-1)


def bowl(x):
    return -((x[0] - 0.2) ** 2) - (x[1] - 1.2) ** 2, x[0] + x[1] - 1.0


WRONG = {
    "f alone": (
        lambda s, x: x[..., 0],
        r"points of shape \(2,\) gives shape \(\); it must be \(2,\).*m = 1 constraints",
    ),
    "first axis": (
        lambda s, x: np.stack(bowl(x), axis=-1),
        r"shape \(2, 2\); it must be \(6, 2\): use x\[\.\.\., 0\] and",
    ),
    "math": (
        lambda s, x: np.stack([np.array(math.sin(x[..., 0])), x[..., 1]], axis=-1),
        r"formula at points of shape \(6, 2\) fails: TypeError: .*; use x\[\.\.\., 0\].* or put "
        r"@cbobench.pointwise",
    ),
    "broadcast": (
        lambda s, x: np.stack([x @ np.ones((3, 1)), x[..., 0]]),
        r"shape \(2,\) fails: ValueError: .*; return",
    ),
    "nan": (
        values(lambda x: x[..., 0] * np.nan, lambda x: x[..., 1]),
        r"formula gives f = nan at x = \[.*8192 points",
    ),
    "pole": (
        values(lambda x: x[..., 0], lambda x: np.where(x[..., 1] < 1e-3, np.inf, 1.0)),
        r"g_1 = inf at x = .*; it must be finite in the whole box: clip it, or move a side",
    ),
    "together": (
        values(lambda x: x[..., 0] - x[..., 0].mean(), lambda x: x[..., 1]),
        "gives a point other values beside other points; each must count alone",
    ),
    "complex": (
        values(lambda x: np.sqrt(x[..., 0] + 0j), lambda x: x[..., 1]),
        r"points of shape \(2,\) gives complex numbers: give \.real where the imaginary part is 0",
    ),
    "Boolean": (
        values(lambda x: x[..., 0] > 0, lambda x: x[..., 1] <= 1),
        "gives Booleans: feasible is where g <= 0, .*give -1 where it holds, 1 where not",
    ),
    "masked": (
        lambda s, x: np.ma.masked_less(np.stack([x[..., 0], x[..., 1]], axis=-1), 0.5),
        r"formula gives f = nan at x = ",
    ),
    "Boolean of a point": (
        pointwise(lambda s, x: [float(x[0]), x[1] <= 1.0]),
        "gives (True|False) for g_1; .*give -1 where it holds, 1 where not",
    ),
}


@pytest.mark.parametrize(
    ("case", "settings"), [*((case, {}) for case in WRONG), ("nan", {"grid": 5})]
)
@pytest.mark.filterwarnings("error")
def test_a_wrong_formula_is_one_sentence(case, settings):
    formula, message = WRONG[case]
    with refused(message) as caught:
        prepared(formula=formula, settings=settings)
    assert str(caught.value).startswith("Bowl: formula")


def test_pointwise_is_the_fix_that_is_named():
    @pointwise
    def formula(self, x):
        assert x.shape == (2,)
        return [-((float(x[0]) - 0.2) ** 2) - math.pow(x[1] - 1.2, 2), x[0] + x[1] - 1.0]

    task = prepared(formula=formula)
    x = np.random.default_rng(0).uniform(task.low, task.high, (3, 4, 2))
    np.testing.assert_allclose(task.formula(x), build(Bowl, {}).formula(x), atol=1e-12)


def test_what_is_missing_is_named():
    empty = type("Mine", (BoxProblem,), {"low": (0.0,), "high": (1.0,)})
    with pytest.raises(Misuse, match=r"Mine does not define formula\(self, x\); return np.stack"):
        build(empty, {}).prepare(DataFolder())
    with pytest.raises(Misuse, match="Mine does not define high; write high = "):
        build(type("Mine", (BoxProblem,), {"low": (0.0,)}), {})
    bare = type("Bare", (Problem,), {})()
    for ask, missing in (
        (lambda: bare.actions, "actions"),
        (lambda: bare.constraints, "constraints"),
        (lambda: bare.draw([]), "draw"),
        (lambda: bare.feedback(None, None), "feedback"),
    ):
        with pytest.raises(Misuse, match=f"Bare does not define {missing}.*; "):
            ask()
