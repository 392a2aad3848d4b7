"""Tables that tell little: played without a warning, or refused in one line.

Warnings and invalid arithmetic are errors in all tests.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cbobench.errors import CellFailure
from cbobench.problems.tables.columns import MOST_COORDINATES
from cbobench.problems.tables.table import UserTable
from tests.helpers import make, play, prepare_class, refused, setting


def measure(rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((rows, 2)).round(4), columns=["a", "b"])
    return frame.assign(y=(np.sin(5 * frame.a) + frame.b).round(5), c=frame.a + frame.b)


def prepare(folder, frame, **settings):
    frame.to_csv(folder / "c.csv", index=False)
    roles = {
        "layout": "configurations",
        "rows": "c.csv",
        "inputs": ["a", "b"],
        "ignore": "rest",
        "objective": "y",
        "constraints": {"c": {"at_most": 1.2}},
    }
    return prepare_class(UserTable, folder, **(roles | settings))


FRAME = measure()
WORDS = [f"k{min(i, 30)}" for i in range(40)]
BY_WORD = {"inputs": ["k", "a"], "one_hot": ["k"]}
PLAYED = {
    "two configurations": (FRAME.sort_values("c")[::39], {}),
    "one category": (FRAME.assign(k="x"), BY_WORD),
    "categories that appear once": (FRAME.assign(k=WORDS), BY_WORD),
    "categories alone": (FRAME.assign(k=WORDS), {"inputs": ["k"], "one_hot": ["k"]}),
    "equal constraints": (
        FRAME.assign(d=FRAME.c),
        {"constraints": {"c": {"at_most": 1.2}, "d": {"at_most": 1.2}}},
    ),
    "all columns equal": (FRAME.assign(b=FRAME.a, y=FRAME.a, c=FRAME.a), {}),
    "a constraint that never changes": (FRAME.assign(c=1.0), {}),
    "the same, repeated": (pd.concat([FRAME.assign(c=0.1), FRAME[:9].assign(c=0.1, y=0)]), {}),
    "an objective of two values": (FRAME.assign(y=[0, 1] * 20), {}),
    "an objective with one peak": (FRAME.assign(y=[0] * 39 + [1], c=1.0), {}),
    "an objective of tiny numbers": (FRAME.assign(y=FRAME.y * 1e-200), {}),
}


def assert_plays(task, name, seeds, horizon):
    learner = make(name, kernel="fit")
    learner.check(task)
    _, chunks = play(task, learner, seeds, horizon)
    assert sum(len(chunk.actions) for chunk in chunks) == horizon


@pytest.mark.parametrize("method", ["cei", "scbo", "ckb-ucb"])
@pytest.mark.parametrize("name", PLAYED)
def test_poor_tables_are_played(tmp_path, name, method):
    frame, roles = PLAYED[name]
    assert_plays(prepare(tmp_path, frame, **roles), method, 2, 8)


REFUSED = {
    "one configuration": (
        pd.concat([FRAME[:1]] * 3),
        {},
        r"input 'a' is 0\.637, 'b' is [\d.]+ in every row, which tells nothing",
    ),
    "one configuration of a category": (
        FRAME.assign(k="x"),
        {"inputs": ["k"], "one_hot": ["k"]},
        "all rows are one configuration: nothing to choose; name more inputs",
    ),
    "all infeasible": (
        FRAME,
        {"constraints": {"c": {"at_most": -1}}},
        r"no feasible configuration: .*c at most -1: 0 of 40, best 0\.\d+",
    ),
    "an objective that never changes": (
        FRAME.assign(y=3.0),
        {},
        "objective 'y' is the same in all 40 configurations",
    ),
    "an objective whose repeats differ by rounding": (
        pd.concat([FRAME, FRAME[:5], FRAME[:5]]).assign(y=0.1),
        {},
        "objective 'y' is the same in all 40 configurations",
    ),
    "a name in each row as a category": (
        measure(1200).assign(k=[f"k{i}" for i in range(1200)]),
        BY_WORD,
        "1,201 coordinates, 1,200 of them the categories of input 'k'; allowed: 1,000; write rare",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_make_no_problem_are_refused(tmp_path, name):
    frame, roles, message = REFUSED[name]
    with refused(message):
        prepare(tmp_path, frame, **roles)


def test_a_constraint_that_never_changes_has_the_unit_1(tmp_path):
    """The deviation of forty equal numbers is 1.4e-16, and as a unit made 1e15 of a slack of
    0.2.
    """
    task = prepare(tmp_path, FRAME.assign(c=1.0))
    assert np.full((40, 2), 1.0 - 1.2).std(axis=0)[1] > 0
    assert task.played.divisor[1] == 1
    np.testing.assert_allclose(task.played.means[:, 1], -0.2)


def test_a_step_of_no_bound_is_refused_by_name():
    flat = {"norm": np.zeros((1, 2))}
    with pytest.raises(CellFailure, match=r"^B or G is 0, so that V = G√T/ρ is no number"):
        make("ckb-ucb").start(setting(np.eye(3), **flat))
    make("ckb-ucb", V=1.0).start(setting(np.eye(3), **flat))


@pytest.fixture
def ten_thousand(tmp_path):
    frame = measure(10_000).assign(k=[f"k{i % 9}" for i in range(10_000)])
    return prepare(tmp_path, frame, inputs=["k", "a", "b"], one_hot=["k"])


def test_methods_that_draw_paths_are_refused_before_they_play_10_000_rows(ten_thousand):
    with refused(r"sample paths of 10,000 actions take O\(n³\); allowed: 2,048"):
        make("ckb-ts", kernel="fit").check(ten_thousand)


@pytest.mark.long
@pytest.mark.parametrize("name", ["cei", "scbo", "ckb-ucb"])
def test_10_000_rows_are_played(ten_thousand, name):
    assert_plays(ten_thousand, name, 1, 6)
    assert ten_thousand.actions.d <= MOST_COORDINATES
