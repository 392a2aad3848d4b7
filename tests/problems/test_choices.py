"""Choices of typed inputs: what may be one, and that every opponent plays all kinds of them as they
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.opponents.local_search import LocalMethod, Restarts
from cbobench.problems.simulators.simulator import Simulator
from cbobench.problems.tables.inputs import InputSpace, read_types
from tests.algorithms.test_opponents import OPPONENTS
from tests.helpers import actions, entry, make, play, play_here, prepare_class, refused

CHOICES = {
    "features": ["sqrt", 0.5, None, 2, True],
    "solver": ["adam", "adamax", "adamax "],
    "layers": [(50,), (100, 50), ("relu", None)],
    "limit": [1.5, float("inf")],
}
SMALL = {
    "pymoo-ga": {"population": 6, "offspring": 4},
    "pymoo-de": {"population": 6},
    "optuna-tpe": {"startup": 6},
}
LOCAL = [name for name in ALGORITHMS.names() if issubclass(ALGORITHMS.get(name), LocalMethod)]
SEEN = []


@dataclass(kw_only=True)
class Choosy(Simulator):
    """A value per choice, noise-free; one kind of choice is infeasible."""

    source = "a test"
    about = "choices of all kinds"
    inputs = {name: {"choice": values} for name, values in CHOICES.items()} | {
        "rate": {"float": [0.1, 1.0]}
    }
    noisy = False

    def simulate(self, x, gen):
        SEEN.append(x)
        places = [CHOICES[name].index(x[name]) for name in CHOICES]
        return [sum(places) - x["rate"], 0.5 - places[3]]


def prepared():
    return prepare_class(Choosy, configurations=200)


@pytest.mark.parametrize(
    "name", [*(entry(name, long=name in ("egobox", "smt-optim")) for name in OPPONENTS), *LOCAL]
)
def test_every_opponent_plays_choices_of_all_kinds(name):
    task = prepared()
    SEEN.clear()
    _, chunks = play(task, make(name, **SMALL.get(name, {})), seeds=2, horizon=24)
    is_local = issubclass(getattr(ALGORITHMS.get(name), "optimiser_class", type), Restarts)
    assert len({*actions(chunks).ravel().tolist()}) > (1 if is_local else 8), "several are played"
    for x in SEEN:
        for kind, values in CHOICES.items():
            assert any(x[kind] == value and type(x[kind]) is type(value) for value in values)


def test_choices_of_all_kinds_are_stored_and_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = {
        "suite": "s", "horizon": 40, "seeds": 1, "algorithms": ["random"],
        "problems": [{f"{__name__}:Choosy": {"configurations": 200}}],
    }  # fmt: skip
    done = play_here(suite, tmp_path / "run")
    rounds = cbobench.load_rounds(done)
    assert {*rounds["features"]} == {*CHOICES["features"]}
    assert {*rounds["layers"]} == {"(50,)", "(100, 50)", "('relu', None)"}
    assert {*rounds["limit"]} == {1.5, "inf"}
    assert {*cbobench.best(done).frame["limit"]} <= {1.5, "inf"}


def test_numbers_of_numpy_are_numbers():
    types = {
        "trees": {"int": [np.int64(1), np.int32(4)]},
        "rate": {"float": [np.float32(0.5), np.float64(1.0)]},
        "kind": {"choice": [np.int64(3), np.str_("a"), np.bool_(False), (np.int64(5), "b")]},
    }
    space = InputSpace.of(read_types(types), 50)
    assert {type(value) for value in space.columns()["trees"]} == {int}
    assert {type(value) for value in space.columns()["rate"]} == {float}
    assert [type(value) for value in space.types[2].choices] == [int, str, bool, tuple]
    assert type(space.types[2].choices[3][0]) is int


WRONG = {
    "one value": (
        ["sqrt"],
        r"choice is \['sqrt'\]; give two or more different values, or leave the input out",
    ),
    "nan": (
        [0.5, float("nan")],
        r"choice holds nan \(float\); allowed: text, numbers, True, False, None and tuples",
    ),
    "nan in a tuple": ([(1.0, float("nan")), (1.0,)], r"choice holds \(1.0, nan\) \(tuple\)"),
    "list": (
        [[50], [100, 50]],
        r"choice holds \[50\] \(list\); .*; name it by a text, and look that up in simulate",
    ),
    "function": ([np.sin, np.cos], r"choice holds <ufunc 'sin'> \(ufunc\)"),
    "equal": ([1, "a", 1.0], "choice holds 1 and 1.0, which are equal; give different values"),
    "control": (
        ["a", "a\0"],
        r"choice 'a\\x00' holds U\+0000 \(control character\); allowed: printable text",
    ),
    "look alike": ([None, "None"], "choice holds None and 'None', which look alike in tables"),
}


@pytest.mark.parametrize(("values", "message"), WRONG.values(), ids=WRONG)
def test_wrong_choices_are_one_line(values, message):
    with refused(f"inputs: 'a': {message}"):
        read_types({"a": {"choice": values}})
