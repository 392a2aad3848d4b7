"""Typed inputs: whole numbers, floats and categories become configurations that every method for
finite sets plays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import cbobench
from cbobench.algorithms.asktell import Given
from cbobench.algorithms.base import Setting
from cbobench.errors import Misuse
from cbobench.params import build
from cbobench.problems.simulators.simulator import Simulator
from cbobench.problems.tables.inputs import InputSpace, InputType, read_types
from cbobench.rng import Streams
from tests.algorithms.test_contract import check_alone_as_in_a_block
from tests.helpers import actions, entry, make, play, play_here, prepare_class, refused

TYPES = {
    "width": {"int": [32, 512], "log": True},
    "depth": {"int": [2, 6]},
    "act": {"choice": ["relu", "tanh", None]},
    "rate": {"float": [1e-4, 1e-1], "log": True},
}
SEEN = []


@dataclass(kw_only=True)
class Net(Simulator):
    """A bowl in depth with a bonus for one category, a constraint on width; noise-free."""

    source = "a test"
    about = "typed inputs"
    inputs = {  # noqa: RUF012
        "width": {"int": [1, 9]},
        "depth": {"int": [2, 6]},
        "act": {"choice": ["relu", "tanh"]},
    }
    noisy = False

    def simulate(self, x, gen):
        SEEN.append(x)
        f = -((x["depth"] - 4) ** 2) + 0.3 * x["width"] + (2 if x["act"] == "tanh" else 0)
        return [f, x["width"] * x["depth"] / 20 - 1]


def brute_force(cls=Net):
    space = InputSpace.of(read_types(cls.inputs), 10_000)
    values = {tuple(c.values()): cls.simulate(None, c, None) for c in space.configurations}
    return max((f, c) for c, (f, g) in values.items() if g <= 0)


def prepared(cls=Net, **settings):
    return prepare_class(cls, **settings)


# Types --------------------------------------------------------------------------------------------


def test_whole_numbers_and_choices_come_equally_often():
    unit = (np.arange(3000) + 0.5) / 3000
    for name, count in (("depth", 5), ("act", 3)):
        values = InputType.of(name, TYPES[name]).at(unit)
        counts = [values.count(value) for value in dict.fromkeys(values)]
        assert len(counts) == count
        assert max(counts) - min(counts) <= 2
    wide = InputType.of("width", TYPES["width"]).at(unit)
    assert {type(value) for value in wide} == {int}
    assert (min(wide), max(wide)) == (32, 512)
    assert np.mean(np.array(wide) < 128) == pytest.approx(0.5, abs=0.01), (
        "as many below the geometric mean"
    )


@pytest.mark.parametrize("low", [2.44e9, -2.44e9, 7.0, 0.123456123])
def test_floats_of_a_narrow_range_stay_apart_and_inside(low):
    high = low + 1e-6 * abs(low)
    values = InputType.of("rate", {"float": [low, high]}).at(np.linspace(0, 1, 101)[:-1])
    assert len({*values}) == 100
    assert low <= min(values) <= max(values) <= high


def test_distances_are_those_of_the_kernel_that_rounds_and_encodes():
    space = InputSpace.of(read_types(TYPES), 500)
    x = space.points
    assert x.shape == (len(space.configurations), 1 + 1 + 3 + 1)
    a, b = (InputType.of("act", TYPES["act"]).encode([value]) for value in ("relu", "tanh"))
    assert np.linalg.norm(a - b) == pytest.approx(1)
    first, last = space.configurations[0], space.configurations[-1]
    for configuration, column in ((first, x[0]), (last, x[-1])):
        assert column[0] == pytest.approx(np.log(configuration["width"] / 32) / np.log(16))
        assert column[1] == pytest.approx((configuration["depth"] - 2) / 4)
        assert column[-1] == pytest.approx(np.log(configuration["rate"] / 1e-4) / np.log(1000))


def test_all_configurations_are_played_where_they_are_few():
    two_types = {name: TYPES[name] for name in ("depth", "act")}
    space = InputSpace.of(read_types(two_types), 15)
    assert len(space.configurations) == 15
    incomplete = InputSpace.of(read_types(two_types), 14)
    assert (
        len({tuple(c.values()) for c in incomplete.configurations})
        == len(incomplete.configurations)
        <= 14
    )


def test_a_configuration_is_found_and_the_nearest_is_named():
    space = InputSpace.of(read_types(TYPES), 200)
    for i in (0, 7, 199):
        assert space.find(dict(space.configurations[i]), "best_known") == i
        assert space.at(space.points[i]) == space.configurations[i]
    for configuration, message in (
        (
            {"width": 100, "depth": 3, "act": "relu", "rate": 0.01},
            r"none of the 200 configurations played; the nearest is \{'width'",
        ),
        (
            {"width": 100, "depth": 3, "act": "gelu", "rate": 0.01},
            "act is 'gelu'; allowed: relu, tanh, None",
        ),
        ({"width": 100}, "must give width, depth, act, rate"),
    ):
        with pytest.raises(Misuse, match=f"^best_known.* {message}"):
            space.find(configuration, "best_known")


WRONG = {
    "nothing": ({}, r"inputs is \{\}; give a mapping of names to types"),
    "no kind": (
        {"a": {"integer": [1, 2]}},
        r"inputs: 'a' is .*; allowed: \{float: \[low, high\]\}",
    ),
    "key": ({"a": {"int": [1, 2], "logs": True}}, "unknown key 'logs'.*did you mean 'log'"),
    "log from 0": (
        {"a": {"int": [0, 9], "log": True}},
        "inputs: 'a': log of 0 does not exist; begin above 0",
    ),
    "log by a word": ({"a": {"int": [1, 9], "log": "no"}}, "log is 'no'; allowed: true or false"),
    "ends": (
        {"a": {"float": [2, 1]}},
        r"float is \[2, 1\]; give two numbers, \[low, high\], low below high",
    ),
    "equal ends": ({"a": {"int": [3, 3]}}, r"int is \[3, 3\]; .* low below high"),
    "halves": ({"a": {"int": [1.5, 4]}}, "the ends must be whole numbers"),
    "infinite": (
        {"a": {"float": [0.0, float("inf")]}},
        r"float is \[0.0, inf\]; give two numbers, \[low, high\]",
    ),
    "beyond a float": (
        {"a": {"int": [0, 2**60]}},
        "the ends must be whole numbers of at most 9,007,199,254,740,992",
    ),
    "no list": ({"a": {"int": 3}}, "int is 3; it must be a list"),
}


@pytest.mark.parametrize(("types", "message"), WRONG.values(), ids=WRONG)
def test_wrong_types_are_one_line(types, message):
    with refused(message):
        build(type("Net", (Net,), {"inputs": types, "__module__": "mine"}), {})


def test_inputs_and_corners_exclude_each_other():
    with pytest.raises(Misuse, match="Net has inputs and corners; say one of them"):
        build(type("Net", (Net,), {"low": (0.0,), "high": (1.0,), "__module__": "mine"}), {})


# Plays --------------------------------------------------------------------------------------------


def test_simulators_get_names_and_values():
    SEEN.clear()
    task = prepared()
    _, chunks = play(task, make("random"), seeds=2, horizon=20)
    assert all(x.keys() == {"width", "depth", "act"} for x in SEEN)
    assert {type(x["width"]) for x in SEEN} == {int}
    chosen = actions(chunks)
    for t, s in np.ndindex(chosen.shape):
        f, _ = Net.simulate(None, task.space.configurations[chosen[t, s]], None)
        assert chunks[0].observed_f[t, s] == pytest.approx(f)


@pytest.mark.parametrize("name", ["cei", "random", *map(entry, ("optuna-tpe", "pymoo-ga"))])
def test_blocks_change_no_bit(name):
    check_alone_as_in_a_block(prepared(), name, 15)


def test_regret_against_a_configuration():
    _, configuration = brute_force()
    class_with_best = type(
        "Net",
        (Net,),
        {"best_known": dict(zip(Net.inputs, configuration, strict=True)), "__module__": "mine"},
    )
    task = prepared(class_with_best)
    cells, _ = play(task, make("oracle"), seeds=2, horizon=3)
    np.testing.assert_allclose(cells.metrics.final["regret"], 0, atol=1e-12)
    assert "a safe seed set" not in task.offers()


def test_pymoo_gets_the_types():
    """The same proposals as pymoo's own loop over mixed variables."""
    pytest.importorskip("pymoo", reason="pip install 'cbobench[pymoo]'")
    from pymoo.core.mixed import MixedVariableGA
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.core.variable import Choice, Integer
    from pymoo.optimize import minimize

    class Own(ElementwiseProblem):
        def __init__(self):
            kinds = {"width": Integer(bounds=(1, 9)), "depth": Integer(bounds=(2, 6))}
            super().__init__(
                vars=kinds | {"act": Choice(options=["relu", "tanh"])}, n_obj=1, n_ieq_constr=1
            )

        def _evaluate(self, x, out, *args, **kwargs):
            f, g = Net.simulate(None, x, None)
            played.append(dict(x))
            out["F"], out["G"] = -f, g

    task, played = prepared(), []
    run = make("pymoo-ga", population=8, offspring=4)
    drawn = task.draw([np.random.default_rng(0)])
    run.start(Setting.of(task, drawn, 30, Streams([("a", 0)])))
    single_run = run.runs[0]
    ga = MixedVariableGA(pop_size=8, n_offsprings=4)
    minimize(Own(), ga, ("n_gen", 6), seed=Given(single_run.setting).seed)
    assert len(played) > 20, "some generations"
    for t, x in enumerate(played, 1):
        index = single_run.ask_one(t)
        assert task.space.configurations[index] == x
        f, g = Net.simulate(None, x, None)
        single_run.tell_one(t, index, f, np.array([g]))


def test_a_logarithm_of_pymoo_is_ours():
    pytest.importorskip("pymoo", reason="pip install 'cbobench[pymoo]'")
    from cbobench.opponents.pymoo_methods import TypedCube

    types = {"rate": {"float": [1e-4, 1e-1], "log": True}, "width": {"int": [32, 512], "log": True}}
    cube = TypedCube(InputSpace.of(read_types(types), 500))
    for index in (0, 17, 499):
        unit = cube.unit(cube.space.points[index])
        assert -9.3 < unit["rate"] < -2.3
        assert cube.action(unit) == index


def test_the_winner_is_told_with_its_types(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = {
        "suite": "nets",
        "horizon": 20,
        "seeds": 2,
        "initial": {"sobol": 8},
        "problems": [{"tests.problems.test_inputs:Net": {"label": "net"}}],
        "algorithms": ["cei", "random"],
    }
    done = play_here(suite, tmp_path / "run")
    best, (width, depth, act) = brute_force()
    assert f"best: width {width}, depth {depth}, act {act}: f = {best:.3f}" in str(
        cbobench.best(done)
    )
    frame = cbobench.load_rounds(done)
    assert set(frame["act"]) == {"relu", "tanh"}
    assert frame["width"].between(1, 9).all()


def test_a_forest_of_scikit_learn_is_counted_as_it_is():
    sklearn = pytest.importorskip("sklearn.ensemble", reason="pip install 'cbobench[sklearn]'")
    from cbobench.problems.simulators import forest

    task = build(forest.Forest, {"megabytes": 2.0, "visits": 30.0})
    x = {"trees": 5, "depth": 3, "features": 0.1, "criterion": "gini"}
    f, size, visits = task.simulate(x, np.random.default_rng(1))
    assert task.simulate(x, np.random.default_rng(1)) == [f, size, visits]
    gen = np.random.default_rng(1)
    images, digits = forest._digits()
    fold = gen.permutation(len(images)) % 3
    right, nodes, depth = [], [], []
    for k in range(3):
        classifier = sklearn.RandomForestClassifier(
            5, max_depth=3, max_features=0.1, random_state=int(gen.integers(2**31))
        ).fit(images[fold != k], digits[fold != k])
        right.append(classifier.score(images[fold == k], digits[fold == k]) * (fold == k).sum())
        nodes.append(sum(tree.tree_.node_count for tree in classifier.estimators_))
        at = [
            tree.decision_path(images[fold == k]).sum(axis=1).mean()
            for tree in classifier.estimators_
        ]
        depth.append(sum(at))
    assert f == pytest.approx(sum(right) / len(images))
    assert (size + 1) * 2.0 == pytest.approx(np.mean(nodes) * 144 / 1e6)
    assert (visits + 1) * 30.0 == pytest.approx(np.mean(depth))
