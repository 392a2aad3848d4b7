"""What a run of a simulator may return, and what of it is a failed run or a fault."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from cbobench.errors import CellFailure
from cbobench.problems.user_classes import read_runs
from tests.helpers import actions, make, play
from tests.problems.test_simulator import Exact, prepared

NAMES = ["f", "g_1"]


def play_once(attributes):
    """One round of a simulator with those attributes."""
    return play(prepared(Exact, attributes), make("random"), seeds=1, horizon=1)


@pytest.mark.parametrize(
    "result",
    [
        [1.5, -2.0],
        (1.5, -2),
        np.array([1.5, -2.0], dtype=np.float32),
        [np.float32(1.5), np.array(-2)],
        pd.Series({"yield": 1.5, "stress": -2.0}),
        [Decimal("1.5"), -2.0 + 0j],
        np.ma.masked_array([1.5, -2.0], mask=[False, False]),
    ],
)
def test_a_run_returns_numbers_in_order(result):
    (read,) = read_runs([result], 1, NAMES, "simulate")
    assert (read.dtype, read.tolist()) == (np.float64, [1.5, -2.0])
    many = read_runs(np.array([[1.5, -2.0]] * 3), 3, NAMES, "simulate")
    np.testing.assert_array_equal(many, [read] * 3)


NO_VALUE = {
    "complex": [1.0, 2.0 + 1e-9j],
    "masked": np.ma.masked_array([1.0, 2.0], mask=[False, True]),
    "none": [1.0, None],
    "nothing": None,
    "not a number": [Decimal("nan"), 1.0],
    "too large": [10**400, 1.0],
}


@pytest.mark.parametrize("form", NO_VALUE)
@pytest.mark.parametrize("many", [False, True])
def test_a_run_without_a_value_has_failed(form, many):
    """Others beside it have not, and no warning says what one line does."""

    def simulate(self, x, gen):
        return NO_VALUE[form] if x[0] > 1.8 else [x[0], x[1] - 1.0]

    def simulate_many(self, x, gens):
        return [simulate(self, point, None) for point in x]

    attributes = {"simulate": simulate} | ({"simulate_many": simulate_many} if many else {})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        task = prepared(Exact, attributes)
        cells, chunks = play(task, make("random"), seeds=2, horizon=30)
        with pytest.raises(
            CellFailure,
            match=r"every simulation failed; the last: Exact: simulate (gives|fails)",
        ):
            play_once({"simulate": lambda s, x, gen: NO_VALUE[form]})
    assert warned == []
    np.testing.assert_array_equal(cells.channel.failed, (actions(chunks)[..., 0] > 1.8).sum(axis=0))
    assert cells.channel.failed.sum() > 0


FORM = r"; return \[f, g_1\]$"
BOOLEAN = "for g_1; .*give -1 where it holds, 1 where not"
UNCLEAR = {
    "too many": ([1.0, 2.0, 3.0], rf"gives list \[1.0, 2.0, 3.0\]{FORM}"),
    "table": (np.ones((3, 2)), rf"gives ndarray array.*{FORM}"),
    "number": (1.0, f"gives float 1.0{FORM}"),
    "mapping": ({"f": 1.0, "g_1": 2.0}, f"gives dict .*{FORM}"),
    "text": ("12", f"gives str '12'{FORM}"),
    "iterator": (iter([1.0, 2.0]), f"gives list_iterator .*{FORM}"),
    "nested": ((1.0, [2.0]), r"gives list \[2.0\] for g_1; it must be a number"),
    "f in text": (["1.5", 2.0], "gives str '1.5' for f; it must be a number"),
    "time": ([np.timedelta64(3, "s"), 2.0], "gives .* for f; it must be a number"),
    "Boolean": ([1.0, True], f"gives True {BOOLEAN}"),
    "Boolean of NumPy": ([1.0, np.float64(2.0) <= 0], f"gives False {BOOLEAN}"),
}


@pytest.mark.parametrize("form", UNCLEAR)
@pytest.mark.parametrize("many", [False, True])
def test_any_other_shape_is_a_line_that_shows_the_right_one(form, many):
    result, message = UNCLEAR[form]
    attributes = {"simulate": lambda s, x, gen: result}
    if many:
        attributes["simulate_many"] = lambda s, x, gens: [result for _ in x]
    with pytest.raises(CellFailure, match=f"^round 1: Exact: simulate {message}"):
        play_once(attributes)


def test_what_one_run_returns_is_not_what_many_do():
    with pytest.raises(CellFailure, match="for 1 point; it must give a list of as many results"):
        play_once({"simulate_many": lambda s, x, gens: np.array([1.0, 2.0])})
