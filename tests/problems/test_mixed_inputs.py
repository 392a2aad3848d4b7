"""Simulators of floats, whole numbers and choices: what is played, stored, shown and refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import cbobench
from cbobench import params
from cbobench.gp.actions import Finite
from cbobench.gp.mixed_actions import Mixed
from cbobench.play.play import Play, PlayOptions
from cbobench.problems.simulators.simulator import Simulator
from cbobench.problems.tables.past import read_past, take_past
from tests.algorithms.test_contract import check_alone_as_in_a_block
from tests.algorithms.test_opponents import LIGHT
from tests.helpers import actions, entry, load, long, make, play, play_here, prepare_class, refused

INPUTS = {
    "teeth": {"int": [2, 8]},
    "coating": {"choice": ["TiN", "DLC", 0.283]},
    "feed": {"float": [0.1, 10.0], "log": True},
}
SEEN = []


@dataclass(kw_only=True)
class Cut(Simulator):
    """The best is at six teeth, DLC and a feed of one, where the heat is at its bound."""

    source = "a test"
    about = "a float, a whole number and a choice"
    inputs = INPUTS
    objective = {"minimise": "cost"}  # noqa: RUF012
    constraints = {"heat": {"at_most": 6}}  # noqa: RUF012
    noisy = False

    def simulate(self, x, gen):
        SEEN.append(x)
        price = ["TiN", "DLC", 0.283].index(x["coating"]) - 1
        cost = 5 - x["teeth"] * x["feed"] / (1 + x["feed"]) + price**2
        return {"cost": cost, "heat": x["teeth"] * x["feed"]}


def derived(**members):
    return type("Cut", (Cut,), {"__module__": "mine", **members})


WITHOUT_A_FLOAT = {"teeth": {"int": [1, 100]}, "feed": {"int": [1, 100]}}


# What is played -----------------------------------------------------------------------------------


def test_few_configurations_are_a_finite_set_and_a_float_or_many_are_not():
    finite = {**WITHOUT_A_FLOAT, "coating": {"choice": ["TiN", "DLC"]}}
    few = params.build(derived(inputs=WITHOUT_A_FLOAT), {})
    assert isinstance(few.actions, Finite)
    assert few.actions.n == 10_000
    assert "are played" not in few.note()
    for inputs in (finite, INPUTS, {"feed": {"float": [0.1, 10.0]}}):
        task = params.build(derived(inputs=inputs), {})
        assert isinstance(task.actions, Mixed)
        assert task.facts()["actions"] == f"mixed, of {', '.join(inputs)}"


def test_a_sample_is_played_where_it_is_asked_for_and_tables_say_so():
    task = prepare_class(Cut, configurations=64)
    assert isinstance(task.actions, Finite)
    assert "64 of the configurations of its inputs are played" in task.note()
    assert "configurations" not in prepare_class(Cut).note()
    assert task.identity() == {}
    assert prepare_class(Cut).identity() == {"actions": "mixed"}
    known = prepare_class(derived(known=["teeth * feed <= 30"]), configurations=64)
    assert " of the configurations of its inputs are played; " in known.note()
    assert "of 64 configurations lie beyond teeth * feed <= 30" in known.note()


@pytest.mark.parametrize("name", ["cei", "scbo", "random", *long("nei", "furbo")])
def test_blocks_change_no_bit_and_simulators_get_names_and_values(name):
    SEEN.clear()
    check_alone_as_in_a_block(prepare_class(Cut), name, 12)
    assert {tuple(x) for x in SEEN} == {("teeth", "coating", "feed")}
    assert {type(x["teeth"]) for x in SEEN} == {int}
    assert {type(x["feed"]) for x in SEEN} == {float}
    assert {x["coating"] for x in SEEN} == {"TiN", "DLC", 0.283}


@pytest.mark.parametrize(
    "name",
    ["cei", "scbo", "random", *map(entry, [*LIGHT, "nomad"]), *long("nei", "furbo")],
)
def test_what_is_known_is_kept(name):
    cls = derived(known=["teeth + feed <= 6"])
    _, chunks = play(prepare_class(cls), make(name), seeds=2, horizon=8)
    points = actions(chunks)
    assert (points[..., 0] + points[..., 2] <= 6).all()


@pytest.mark.parametrize(
    "inputs",
    [
        {"teeth": {"int": [1, 200]}, "feed": {"int": [1, 200]}},
        {"teeth": {"float": [2, 8]}, "feed": {"float": [0.1, 10.0]}},
        {"teeth": {"int": [2, 2**53 - 1], "log": True}, "feed": {"float": [0.1, 10.0]}},
        {"teeth": {"choice": [float(i) for i in range(513)]}, "feed": {"float": [0.1, 1]}},
    ],
    ids=["no float", "floats alone", "a wide range", "513 choices"],
)
def test_inputs_of_one_kind_and_of_many_values_are_played(inputs):
    class Other(derived(inputs=inputs)):
        def simulate(self, x, gen):
            return super().simulate({**x, "coating": "DLC"}, gen)

    for name in ("cei", "scbo"):
        cells, _ = play(prepare_class(Other), make(name), seeds=1, horizon=4)
        assert np.isfinite(cells.metrics.final["violation"]).all()


def test_cei_improves_on_a_point_that_meets_its_bound_exactly():
    """A model says of such a point that it is feasible with a probability of 1/2 alone."""
    inputs = {
        "teeth": {"int": [1, 20]},
        "bolts": {"int": [1, 20]},
        "feed": {"float": [0.0, 1.0]},
    }

    class Exact(derived(inputs=inputs)):
        def simulate(self, x, gen):
            cost = (x["bolts"] - 7) ** 2 / 9 + 9 * (x["feed"] - 0.3) ** 2 - x["teeth"]
            return {"cost": cost, "heat": x["teeth"]}

    options = PlayOptions(initial={"sobol": 5})
    algorithm = make("cei")
    list(Play(prepare_class(Exact), "exact", algorithm, "cei", [0], 20, options))
    np.testing.assert_allclose(algorithm.incumbent, 6, atol=0.1)


# What is stored and shown -------------------------------------------------------------------------


def test_a_run_finds_and_names_the_best_and_stores_values_with_their_types(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = {
        "suite": "cuts", "horizon": 25, "seeds": 2, "initial": {"sobol": 8}, "record": "all",
        "problems": [{f"{__name__}:Cut": {"label": "cut"}}], "algorithms": ["cei", "random"],
    }  # fmt: skip
    done = play_here(suite, tmp_path / "run")
    rounds = cbobench.load_rounds(done)
    assert {*rounds["coating"]} == {"TiN", "DLC", 0.283}
    assert {type(value) for value in rounds["teeth"].tolist()} == {int}
    assert rounds["teeth"].between(2, 8).all()
    assert rounds["feed"].between(0.1, 10).all()
    best = cbobench.best(done)
    assert best.frame["coating"].iloc[0] == "DLC"
    assert "best: teeth 8, coating DLC, feed 0.7" in str(best)
    # Of T teeth the feed is 6 / T, where the heat is at its bound.
    value = max(6 / (1 + 6 / teeth) for teeth in range(2, 9)) - 5
    found = cbobench.load_cells(done, algorithm="cei")["simple_value"]
    np.testing.assert_allclose(found, value, atol=1e-3)


PAST = "cost,heat,coating,feed,teeth\n2.4,4,DLC,1,4\n3.2,2.5,0.2830,0.5,5\n"


def test_methods_are_told_past_measurements(tmp_path):
    (tmp_path / "past.csv").write_text(PAST)
    told, values = take_past(prepare_class(Cut), read_past(tmp_path / "past.csv", ""))
    np.testing.assert_array_equal(told, [[4, 1, 1], [5, 2, 0.5]])
    np.testing.assert_allclose(values, [[-2.4, -2 / 6], [-3.2, -3.5 / 6]])
    options = PlayOptions(initial={"file": read_past(tmp_path / "past.csv", "")})
    cells = Play(prepare_class(Cut), "cut", make("cei"), "cei", [0], 4, options)
    assert np.isfinite(actions(list(cells))).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((",1,4", ",1,2.5"), r"teeth = 2.5, .* is no action .* whose inputs are .*'teeth': \{'int"),
        (("DLC", "TiAlN"), "row 1: .*coating = TiAlN.* is no action of the problem"),
        ((",1,4", ",20,4"), "row 1: .*feed = 20.* is no action of the problem"),
    ],
)
def test_a_past_design_that_is_none_is_refused(tmp_path, change, message):
    (tmp_path / "past.csv").write_text(PAST.replace(*change))
    with refused(message):
        take_past(prepare_class(Cut), read_past(tmp_path / "past.csv", ""))


# What is refused ----------------------------------------------------------------------------------


def test_a_method_with_the_kernel_of_the_problem_is_sent_to_a_sample(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    facts = {"B": 1.0, "G": 1.0, "delta": 0.1}
    suite = {"suite": "s", "horizon": 5, "seeds": 1, "shared": facts}
    problem = f"{__name__}:Cut"
    for method, message in (
        ({"ckb-ucb": {"kernel": "given"}}, "kernel is given, .* allowed: kernel: fit, or conf"),
        ("ckb-ts", "sample paths are drawn over a finite set, .* allowed: configurations: 2048"),
    ):
        with refused(message):
            load({**suite, "problems": [problem], "algorithms": [method]})
        load({**suite, "problems": [{problem: {"configurations": 64}}], "algorithms": [method]})
    load({**suite, "problems": [problem], "algorithms": ["ckb-ucb"]})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"known": ["coating <= 1"]}, "unknown input 'coating'; allowed: feed, teeth"),
        (
            {"constraints": {"heat": {"at_most": 6}, "coating": {"at_most": 1}}},
            "'coating' is a choice, which has no bound",
        ),
        ({"known": ["teeth <= 1"]}, "none of .* points keeps teeth <= 1"),
        (
            {"best_known": {"teeth": 2.5, "coating": "TiN", "feed": 1}},
            "best_known: teeth is 2.5; allowed: whole numbers from 2 to 8",
        ),
        (
            {"best_known": {"teeth": 3, "coating": "TiAlN", "feed": 1}},
            "best_known: coating is 'TiAlN'; allowed: TiN, DLC, 0.283",
        ),
        ({"best_known": (3, 1, 1)}, "best_known is .*; it must give teeth, coating, feed"),
        (
            {
                "known": ["teeth <= 4"],
                "best_known": {"teeth": 6, "coating": "TiN", "feed": 1},
            },
            "best_known is .* beyond what is known",
        ),
    ],
)
def test_wrong_words_of_a_class_are_refused_in_a_line(members, message):
    with refused(message):
        params.build(derived(**members), {})
