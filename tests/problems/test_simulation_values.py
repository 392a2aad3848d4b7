"""What a run of a simulator may return: every form that is clear, and which of them are a failed
run or a fault.
"""

from __future__ import annotations

import warnings
from array import array
from collections import deque, namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from cbobench.errors import CellFailure
from cbobench.problems.simulation_values import read_run, read_runs
from tests.helpers import actions, make, play
from tests.problems.test_simulator import Exact, prepared

Labelled = namedtuple("Labelled", ["g", "f"])
Measured = namedtuple("Measured", ["yield_", "stress"])
SAME = {
    "list": [1.5, -2.0],
    "tuple": (1.5, -2.0),
    "array": np.array([1.5, -2.0]),
    "single precision": np.array([1.5, -2.0], dtype=np.float32),
    "scalars of NumPy": [np.float32(1.5), np.int8(-2)],
    "arrays without axes": [np.array(1.5), np.array(-2.0)],
    "arrays of one": [np.array([1.5]), np.array([-2.0])],
    "row": np.array([[1.5, -2.0]]),
    "column": np.array([[1.5], [-2.0]]),
    "f and list": (1.5, [-2.0]),
    "f and tuple": [1.5, (-2,)],
    "f and array": (1.5, np.array([-2.0])),
    "mapping": {"f": 1.5, "g": [-2.0]},
    "mapping of numbers": {"g": -2.0, "f": 1.5},
    "mapping by number": {"g_1": -2.0, "f": 1.5},
    "named tuple": Labelled(f=1.5, g=[-2.0]),
    "series": pd.Series([1.5, -2.0]),
    "labelled series": pd.Series([-2.0, 1.5], index=["g_1", "f"]),
    "series with other labels": pd.Series({"yield": 1.5, "stress": -2.0}),
    "row of a table": pd.DataFrame({"yield": [1.5], "stress": [-2.0]}).iloc[0],
    "named tuple with other names": Measured(1.5, -2.0),
    "array of Python": array("d", [1.5, -2.0]),
    "view": memoryview(array("d", [1.5, -2.0])),
    "queue": deque([1.5, -2.0]),
    "f and queue": (1.5, deque([-2.0])),
    "decimals": [Decimal("1.5"), Fraction(-2)],
    "objects": np.array([1.5, -2], dtype=object),
    "real complex": [1.5 + 0j, np.complex128(-2)],
    "real complex array": np.array([1.5, -2.0], dtype=np.complex64),
    "true f": [True, -2.0],
    "masked nowhere": np.ma.masked_array([1.5, -2.0], mask=[False, False]),
}


def play_once(attributes):
    """One round of a simulator with those attributes."""
    return play(prepared(Exact, attributes), make("random"), seeds=1, horizon=1)


@pytest.mark.parametrize("form", SAME)
def test_a_run_may_return_any_form_that_is_clear(form):
    read = read_run(SAME[form], 1, "simulate")
    assert (read.dtype, read.tolist()) == (np.float64, [1.0 if form == "true f" else 1.5, -2.0])
    (of_many,) = read_runs([SAME[form]], 1, 1, "simulate")
    np.testing.assert_array_equal(of_many, read)


@pytest.mark.parametrize(
    "result",
    [
        [1.0, 2.0, 3.0],
        (1.0, [2.0, 3.0]),
        (1.0, np.array([2.0, 3.0])),
        (1.0, np.array([[2.0, 3.0]])),
        (np.array([1.0]), [[2.0, 3.0]]),
        range(1, 4),
        pd.Series({"yield": 1.0, "stress": 2.0, "g_1": 3.0}),
        {"f": 1, "g": (2, 3)},
        {"f": np.array([1.0]), "g": np.array([[2.0, 3.0]])},
        {"g_2": 3.0, "g_1": 2.0, "f": 1.0},
        pd.DataFrame([[1.0, 3.0, 2.0]], columns=["f", "g_2", "g_1"]).iloc[0],
    ],
)
def test_several_constraints_may_stand_together(result):
    assert read_run(result, 2, "simulate").tolist() == [1.0, 2.0, 3.0]
    many = read_runs([result, [4.0, 5.0, 6.0]], 2, 2, "simulate")
    np.testing.assert_array_equal(many, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    "results",
    [
        np.array([[1.0, 3.0], [2.0, 4.0]]),
        np.array([[1, 3], [2, 4]]),
        [(1.0, [3.0]), {"f": 2.0, "g": 4.0}],
        {"f": [1.0, 2.0], "g": [3.0, 4.0]},
        {"f": np.array([1.0, 2.0]), "g": np.array([[3.0], [4.0]])},
        {"g_1": np.array([3.0, 4.0]), "f": np.array([1.0, 2.0])},
        pd.DataFrame({"g_1": [3.0, 4.0], "f": [1.0, 2.0]}),
    ],
)
def test_many_runs_may_be_an_array_a_list_or_columns(results):
    np.testing.assert_array_equal(read_runs(results, 2, 1, "simulate"), [[1.0, 3.0], [2.0, 4.0]])


NO_VALUE = {
    "complex": [1.0, 2.0 + 1e-9j],
    "complex scalar": [np.complex128(1 + 1j), -1.0],
    "complex array": np.array([1j, -1.0]),
    "masked": np.ma.masked_array([1.0, 2.0], mask=[False, True]),
    "masked number": [1.0, np.ma.masked],
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


FORMS = r'return \[f, g_1\], \(f, \[g_1\]\) or {"f": f, "g": \[g_1\]}'
UNCLEAR = {
    "too many": ([1.0, 2.0, 3.0], f"gives a list of 3; .*{FORMS}"),
    "too many constraints": ((1.0, [2.0, 3.0]), f"gives a tuple of 2; .*{FORMS}"),
    "table": (np.ones((2, 2)), f"gives shape \\(2, 2\\); .*{FORMS}"),
    "number": (1.0, f"gives shape \\(\\); .*{FORMS}"),
    "other keys": ({"loss": 1.0, "g": 2.0}, f"gives a mapping with 'loss', 'g'; .*{FORMS}"),
    "labels": (pd.Series({"f": 1.0, "b": 2.0}), f"gives a Series with 'f', 'b'; .*{FORMS}"),
    "text": ("1.0, 2.0", f"gives the text '1.0, 2.0'; .*{FORMS}"),
    "set": ({1.0, 2.0}, f"gives an object of type set; .*{FORMS}"),
    "iterator": (iter([1.0, 2.0]), f"gives an object of type list_iterator; .*{FORMS}"),
    "f in text": (["1.5", 2.0], "gives the text '1.5' for f; it must be a number"),
    "text of NumPy": (np.array(["1.5", "2"]), f"gives an array of type <U3; .*{FORMS}"),
    "time": ([np.timedelta64(3, "s"), 2.0], "gives .* for f; it must be a number"),
    "function": (
        [len, 2.0],
        "gives an object of type builtin_function_or_method for f; it must be a number",
    ),
    "Boolean": ([1.0, True], "gives True for g_1; .*give -1 where it holds, 1 where not"),
    "Boolean of NumPy": (
        [1.0, np.float64(2.0) <= 0],
        "gives False for g_1; .*give -1 where it holds, 1 where not",
    ),
    "Boolean array": (
        (1.0, np.array([False])),
        "gives False for g_1; .*give -1 where it holds, 1 where not",
    ),
    "Boolean without axes": (
        (1.0, np.array(True)),
        "gives True for g_1; .*give -1 where it holds, 1 where not",
    ),
    "only Booleans": (
        np.array([True, False]),
        "gives False for g_1; .*give -1 where it holds, 1 where not",
    ),
    "Boolean by name": (
        {"f": 1.0, "g_1": False},
        "gives False for g_1; .*give -1 where it holds, 1 where not",
    ),
}


@pytest.mark.parametrize("form", UNCLEAR)
@pytest.mark.parametrize("many", [False, True])
def test_any_other_form_is_a_line_that_shows_one(form, many):
    result, message = UNCLEAR[form]
    attributes = {"simulate": lambda s, x, gen: result}
    if many:
        attributes["simulate_many"] = lambda s, x, gens: [result for _ in x]
    with pytest.raises(CellFailure, match=f"^round 1: Exact: simulate {message}"):
        play_once(attributes)


def test_what_one_run_returns_is_not_what_many_do():
    with pytest.raises(
        CellFailure, match=r"gives shape \(2,\) for 1 point; it must give an array \(1, 2\)"
    ):
        play_once({"simulate_many": lambda s, x, gens: np.array([1.0, 2.0])})
