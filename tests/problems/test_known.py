"""Known constraints: of inputs of tables and simulators, and comparisons on a box."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from cbobench import AskTell, BoxProblem, Reference, Simulator, params
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.box_actions import Box, design
from cbobench.opponents.library import LibraryMethod
from cbobench.play.play import Play, PlayOptions
from cbobench.problems.known import Known, limit_box, make_known
from cbobench.problems.tables.past import take_past
from cbobench.problems.tables.table import UserTable
from tests.helpers import long, make, prepare, prepare_class

BOTORCH = ("botorch-cei", "botorch-nei", "botorch-scbo")
ROWS = {"a": np.repeat(np.arange(1, 9), 3), "f": np.repeat(np.arange(1.0, 9.0), 3)}
ROWS["f"] = ROWS["f"] + np.tile([-0.2, 0.0, 0.2], 8)


@dataclass(kw_only=True)
class Cut(BoxProblem):
    """A learned disc, cut by a known line; the best point is on both."""

    source = "made up"
    about = "made up"
    low = (0.0, 0.0)
    high = (2.0, 1.0)
    known = ("x_1 + 2 * x_2 <= 2",)
    reference = Reference(x=(1.0, 0.5), f=1.5, slater=0.5, share=0.5, how="by hand")

    def formula(self, x):
        return np.stack([x[..., 0] + x[..., 1], x[..., 0] ** 2 - 1], axis=-1)


@dataclass(kw_only=True)
class Mill(Simulator):
    """Typed inputs, a known product, and a known bound of an input."""

    source = "made up"
    about = "made up"
    inputs: ClassVar = {"speed": {"int": [1, 20]}, "feed": {"int": [1, 20]}}
    objective: ClassVar = {"maximise": "rate"}
    constraints: ClassVar = {"heat": {"at_most": 50}, "feed": {"at_most": 15}}
    known = ("speed * feed <= 90",)
    noisy = False

    def simulate(self, x, gen):
        assert x["speed"] * x["feed"] <= 90
        assert x["feed"] <= 15
        return {"rate": x["speed"] + x["feed"], "heat": x["speed"] ** 2}


def play(problem, name, seeds=2, horizon=9):
    algorithm = make(name)
    algorithm.check(problem)
    options = PlayOptions(initial={"sobol": 3}, recommend_after=(5,))
    result = Play(problem, "p", algorithm, name, range(seeds), horizon, options)
    return np.concatenate([chunk.actions for chunk in result]), result


def make_table(tmp_path, bound, **words):
    pd.DataFrame(ROWS).to_csv(tmp_path / "t.csv", index=False)
    settings = {
        "layout": "configurations",
        "rows": str(tmp_path / "t.csv"),
        "inputs": {"a": {"int": [1, 8]}},
        "objective": "f",
        "constraints": {"a": {"at_most": bound, **words}},
    }
    resolved = params.resolve(UserTable, settings)
    return prepare_class(UserTable, **UserTable.complete(resolved))


@pytest.mark.parametrize(
    ("bound", "words"), [(4, {}), (4.5, {"known": False}), (4, {"known": False})]
)
@pytest.mark.parametrize("name", ["cei", "scbo", "ckb-ucb", *long("nei", "furbo")])
def test_a_bound_that_rows_meet_is_one_between_two_rows(name, bound, words, tmp_path):
    task = make_table(tmp_path, bound, **words)
    actions, result = play(task, name, seeds=2, horizon=20)
    recommended, _ = result.recommendations.last
    assert recommended.tolist() == [3] * 2
    assert words or actions.max() == 3


def test_what_is_known_is_cut_noted_and_not_told(tmp_path):
    task = make_table(tmp_path, 4)
    assert task.actions.n == 4
    assert task.constraints == 1
    assert task.learned.tolist() == [0]
    assert "4 of 8 configurations lie beyond a at most 4: known, not played" in task.note()
    learned = make_table(tmp_path, 4, known=False)
    assert (learned.actions.n, learned.learned.tolist()) == (8, [0, 1])
    assert "beyond" not in learned.note()
    with pytest.raises(Misuse, match=r"is left \(8 of 8 .* lie beyond a at most 0"):
        make_table(tmp_path, 0)


def test_stored_parameters_without_the_word_are_learned():
    stored = {"inputs": ["a", "b"], "constraints": {"a": {"at_most": 1}, "f": {"at_most": 2}}}
    completed = UserTable.complete(stored)
    assert completed["constraints"]["a"] == {"known": True, "at_most": 1}
    assert completed["constraints"]["f"] == {"at_most": 2}


def test_only_an_input_can_be_known(tmp_path):
    pd.DataFrame({**ROWS, "g": ROWS["f"]}).to_csv(tmp_path / "t.csv", index=False)
    settings = {
        "layout": "configurations",
        "rows": str(tmp_path / "t.csv"),
        "inputs": ["a"],
        "objective": "f",
        "constraints": {"g": {"at_most": 3, "known": True}},
    }
    with pytest.raises(Misuse, match="'g': known is true, but it is no input"):
        prepare_class(UserTable, **settings)
    settings["constraints"]["g"]["known"] = "yes"
    with pytest.raises(Misuse, match="known is 'yes'; allowed: true, false"):
        prepare_class(UserTable, **settings)


def test_levels_are_modelled_in_the_middle_and_equal_repeats_are_exact(tmp_path):
    task = make_table(tmp_path, 4, known=False)
    unit = np.arange(1.0, 9.0).std()
    np.testing.assert_allclose(task.middle, [0.5 / unit])
    np.testing.assert_allclose(make_table(tmp_path, 4.5, known=False).middle, [0.0], atol=1e-12)
    _, noise = task.played._facts
    assert noise[0] > 0
    assert noise[1] == 0


@pytest.mark.parametrize(
    "name", ["cei", "scbo", "ckb-ucb", "ckb-ts", "admmbo", *long("nei", "furbo")]
)
@pytest.mark.parametrize("noise", [0.0, *long(0.1)])
def test_ours_stay_inside_on_a_box(name, noise):
    task = prepare_class(Cut, noise_f=noise, noise_g=noise)
    actions, result = play(task, name)
    recommended, _ = result.recommendations.last
    for points in (actions, recommended):
        assert (points[..., 0] + 2 * points[..., 1] <= 2).all()


@pytest.mark.parametrize("name", ["random", "sobol"])
def test_who_knows_no_constraint_is_asked_again_at_no_cost_of_a_round(name):
    task = prepare_class(Cut)
    actions, _ = play(task, name)
    assert actions.shape[:2] == (9, 2)
    assert (actions @ [1, 2] <= 2).all()


@pytest.mark.opponent
@pytest.mark.parametrize(
    "name",
    ["cobyla", "cobyqa", "slsqp", "nomad", "cma-es", "pymoo-ga", "optuna-tpe", *BOTORCH],
)
def test_other_libraries_play_inside_or_are_asked_again(name, tmp_path):
    method = ALGORITHMS.get(name)
    if issubclass(method, LibraryMethod) and method.missing():
        pytest.skip(method.missing())
    task = prepare_class(Cut, noise_f=0.0, noise_g=0.0)
    actions, _ = play(task, name, seeds=1, horizon=14)
    assert (actions @ [1, 2] <= 2).all()
    # Where all constraints are known, f alone is left.
    actions, _ = play(make_table(tmp_path, 4), name, seeds=1, horizon=14)
    assert actions.max() <= 3


class Stubborn:
    """Asks for one point."""

    def ask(self):
        return [2.0, 1.0]

    def tell(self, x, f, g):
        """Learn nothing."""


@dataclass(kw_only=True)
class Insisting(AskTell):
    """Insists on a point."""

    source = "made up"
    about = "made up"

    def optimiser(self, given):
        return Stubborn()


def test_who_insists_is_refused_in_a_line():
    task = prepare_class(Cut)
    with pytest.raises(CellFailure, match="100 points in a row lie beyond a known constraint"):
        list(Play(task, "p", Insisting(), "insisting", [0], 2))
    with pytest.raises(CellFailure, match="beyond a known constraint, which this method does not"):
        play(task, "bandit-oco", horizon=40)


def test_a_simulator_is_asked_for_what_is_allowed_alone():
    task = prepare_class(Mill)
    assert task.m == task.constraints == 2
    assert task.learned.tolist() == [0, 1]
    assert task.identity() == {"known": ["speed * feed <= 90", "feed at most 15"]}
    assert len(task.space.configurations) == sum(
        s * f <= 90 for s in range(1, 21) for f in range(1, 16)
    )
    assert "400 configurations lie beyond speed * feed <= 90, feed at most 15: known" in task.note()
    play(task, "cei")


def test_a_stated_optimum_keeps_known_constraints():
    wrong = type(
        "Wrong",
        (Cut,),
        {"reference": Reference(x=(1.0, 1.0), f=2.0, slater=0.5, share=0.5, how="by hand")},
    )
    with pytest.raises(Misuse, match=r"is beyond x_1 \+ 2 \* x_2 <= 2"):
        prepare_class(wrong)


def test_designs_and_candidates_lie_inside():
    box = limit_box(Box(np.zeros(2), np.ones(2)), make_known(["x_1 * x_2 <= 0.1"], ["x_1", "x_2"]))
    assert box.mesh is None
    assert len(box.candidates) == 1024
    generators = [np.random.default_rng(0), np.random.default_rng(1)]
    for points in (
        box.candidates,
        *design(box, "sobol", 9, generators),
        *design(box, "random", 9, generators),
    ):
        assert (points[..., 0] * points[..., 1] <= 0.1).all()
    pulled = box.pull_inside(np.array([[1.0, 1.0], [0.1, 0.1]]), np.zeros((2, 2)))
    np.testing.assert_allclose(pulled, [[0.1**0.5] * 2, [0.1, 0.1]])
    assert (pickle.loads(pickle.dumps(box)).candidates == box.candidates).all()  # noqa: S301


def test_comparisons_are_arithmetic():
    points = np.array([[1.0, 2.0], [3.0, 4.0]])
    values = Known(("2 * a - b**2 <= 1", "a >= b / 2"), ("a", "b"))(points)
    np.testing.assert_array_equal(values, [[-3, 0], [-11, -1]])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("spead <= 1", "unknown input 'spead'; did you mean 'speed'"),
        ("speed", "is not one comparison"),
        ("1 <= speed <= 2", "is not one comparison"),
        ("speed < 2", "does not compare by <= or >="),
        ("speed <=", "is no comparison"),
        ("abs(speed) <= 1", "holds more than arithmetic"),
        ("speed <= '1'", "holds more than arithmetic"),
        ("1 / (speed - 1) <= 1", "no number at speed = 1, feed = 1: it divides by 0"),
        ("(1 - speed) ** 0.5 <= 1", "no number at speed = 2, feed = 1"),
        ("9 ** 9 ** 9 ** 9 <= speed", "has no value: OverflowError"),
        ("speed <= 0", "none of 400 points keeps speed <= 0"),
    ],
)
def test_other_comparisons_are_refused_in_a_line(text, complaint):
    wrong = type("Wrong", (Mill,), {"known": [text]})
    with pytest.raises(Misuse, match=complaint) as refused:
        params.build(wrong, {})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("known", [True, "speed <= 2", [1], {"speed": 2}])
def test_known_is_a_list_of_texts(known):
    for base in (Mill, Cut):
        wrong = type("Wrong", (base,), {"known": known})
        with pytest.raises(Misuse, match="allowed: a list of comparisons of inputs"):
            prepare_class(wrong)


def test_constraints_of_a_simulator_are_known_on_inputs_alone():
    wrong = {"heat": {"at_most": 50, "known": True}}
    with pytest.raises(Misuse, match="'heat': known is true, but it is no input"):
        params.build(type("Wrong", (Mill,), {"constraints": wrong}), {})
    wrong = {"heat": {"at_most": 50}, "feed": {"at_most": 15, "known": "no"}}
    with pytest.raises(Misuse, match="'feed': known is 'no'; allowed: true, false"):
        params.build(type("Wrong", (Mill,), {"constraints": wrong}), {})
    with pytest.raises(Misuse, match="constraints: 'heat' is 5; allowed"):
        params.build(type("Wrong", (Mill,), {"constraints": {"heat": 5}}), {})


def test_bounds_of_coordinates_and_of_whole_subclasses():
    limits = {"heat": {"at_most": 50}, "x_2": {"at_least": 0.5}}
    members = {"inputs": None, "low": (0.0, 0.0), "high": (1.0, 1.0), "constraints": limits}
    on_box = params.build(type("OnBox", (Mill,), {**members, "known": ()}), {})
    assert (on_box.box.candidates[:, 1] >= 0.5).all()
    # A class that states its constraints anew has no others; names need not be words of Python.
    inputs = {"b-a": {"int": [1, 9]}, "b": {"int": [1, 9]}, "a": {"int": [1, 9]}}
    limits = {"heat": {"at_most": 50}, "b-a": {"at_most": 3}}
    named = {"inputs": inputs, "constraints": limits, "known": ()}
    parent = type("Named", (Mill,), named)
    assert len(params.build(parent, {}).space.configurations) == 243
    child = type("Child", (parent,), {"constraints": {"heat": {"at_most": 50}}})
    assert len(params.build(child, {}).space.configurations) == 729


def test_only_known_constraints_leave_f_to_learn():
    class Free(Mill):
        constraints: ClassVar = {"feed": {"at_most": 15}}

        def simulate(self, x, gen):
            return {"rate": x["speed"] - x["feed"]}

    task = prepare_class(Free)
    assert task.learned.tolist() == [0]
    _, result = play(task, "cei")
    assert result.metrics.final["violations"].tolist() == [0, 0]


def test_what_is_beyond_is_refused_wherever_it_is_stated(tmp_path):
    beyond = {"low": (0.0, 0.0), "high": (1.0, 1.0), "inputs": None, "known": ("x_1 <= 0.5",)}
    wrong = type(
        "Wrong",
        (Mill,),
        {**beyond, "constraints": {"heat": {"at_most": 5}}, "best_known": (0.7, 0.1)},
    )
    with pytest.raises(Misuse, match="best_known is .* beyond what is known"):
        params.build(wrong, {})
    task = prepare_class(Cut)
    past = {"columns": ["x_1", "x_2", "f", "g_1"], "rows": [["0.9", "0.95", "1.85", "-0.19"]]}
    with pytest.raises(Misuse, match="no action of the problem, .* and has known constraints"):
        take_past(task, past)
    past["rows"] = [["0.9", "0.5", "1.4", "-0.19"]]
    assert take_past(task, past)[0].tolist() == [[0.9, 0.5]]


def test_past_measurements_of_a_table_hold_inputs_with_bounds(tmp_path):
    task = make_table(tmp_path, 4, known=False)
    past = {"columns": ["a", "f"], "rows": [["2", "1.9"], ["6", "6.1"]]}
    actions, values = take_past(task, past)
    assert actions.tolist() == [1, 5]
    assert (values[:, 1] > 0).tolist() == [False, True]


def test_hardly_any_point_left():
    box = Box(np.zeros(2), np.ones(2), size=16)
    for text in ("x_1 <= 0", "x_1 + x_2 <= 0.01"):
        with pytest.raises(Misuse, match="points keep|none of"):
            limit_box(box, make_known([text], ["x_1", "x_2"]))
    small = limit_box(box, make_known(["x_1 + x_2 <= 0.05"], ["x_1", "x_2"]))
    assert len(small.candidates) == 16
    generators = [np.random.default_rng(seed) for seed in range(4)]
    together = design(small, "sobol", 20, generators)
    alone = design(small, "sobol", 20, [np.random.default_rng(2)])
    np.testing.assert_array_equal(together[:, 2], alone[:, 0])


def test_functions_that_move_are_not_known_where_they_were_played():
    words = {"noise_f": 0.05, "noise_g": 0.0, "grid": 16, "first_change": 6, "second_change": 12}
    task = prepare("feasible-pocket-drift", **words)
    _, result = play(task, "ckb-restart", horizon=14)
    assert result.algorithm.measured is None
    assert not result.setting.exact.any()
