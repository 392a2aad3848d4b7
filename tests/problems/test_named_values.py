"""A simulator that names its objective and constraints: what it may return, that it plays as one
that turns them into f and g itself, and that tables and figures speak its words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import cbobench
from cbobench import params
from cbobench.errors import CellFailure, Misuse
from cbobench.problems.simulators.simulator import Simulator, name_values
from cbobench.problems.tables.configurations import orient
from cbobench.problems.user_classes import read_runs
from tests.helpers import make, play, play_here, prepare_class

WORDS = {
    "objective": {"minimise": "cost"},
    "constraints": {"late": {"at_most": 0.3}, "speed": {"at_least": 2.5}},
}


def make_class(name, simulate, **words):
    body = {"__module__": "mine", "source": "a test", "about": "two clerks"}
    body |= {"low": (1.1, 1.1), "high": (4.0, 4.0), "simulate": simulate}
    return dataclass(kw_only=True)(type(name, (Simulator,), body | words))


def serve(self, x, gen):
    late = gen.exponential(1 / x.sum())
    return {"cost": x[0] + 1.5 * x[1], "late": late, "speed": x[0] + 0.1 * gen.normal()}


def serve_turned(self, x, gen):
    """The same with f to be maximised and g_j <= 0, in multiples of bounds."""
    values = serve(self, x, gen)
    return [-values["cost"], (values["late"] - 0.3) / 0.3, (2.5 - values["speed"]) / 2.5]


NAMED = make_class("Clerks", serve, **WORDS)
TURNED = make_class("Clerks", serve_turned, m=2)  # of the same name: equal streams


@pytest.mark.parametrize("algorithm", ["random", "cei"])
def test_a_class_that_names_its_values_plays_bit_for_bit_as_one_that_turns_them(algorithm):
    results = []
    for cls in (NAMED, TURNED):
        problem = prepare_class(cls, repeats=2, candidates=64)
        assert (problem.constraints, cls.facts()["constraints"]) == (2, "2")
        _, (chunk,) = play(problem, make(algorithm), 2, 8)
        results.append([chunk.actions, chunk.observed_f, chunk.observed_g, chunk.metrics.f])
    for named, turned in zip(*results, strict=True):
        np.testing.assert_array_equal(named, turned)


def test_readers_get_the_users_words():
    problem = prepare_class(NAMED)
    assert problem.describe_objective() == ("cost", 0.0, -1.0)
    assert re.search(
        "f = minus cost; g: late at most 0.3 in units of 0.3, speed at least 2.5 in units of 2.5;",
        problem.note(),
    )
    assert prepare_class(TURNED).describe_objective() == ("f", 0.0, 1.0)


def test_a_target_is_in_the_users_units():
    aimed = prepare_class(make_class("Aimed", serve, target=6.0, **WORDS))
    _, (chunk,) = play(aimed, make("random"), 1, 3)
    np.testing.assert_allclose(chunk.metrics.f_star, -6.0)
    turned = make_class("Aimed", serve_turned, m=2, target=-6.0)
    _, (other,) = play(prepare_class(turned), make("random"), 1, 3)
    np.testing.assert_array_equal(chunk.metrics.values["regret"], other.metrics.values["regret"])


def test_a_heir_has_the_words_of_its_parent():
    heir = dataclass(kw_only=True)(type("Heir", (NAMED,), {"__module__": "mine", "noisy": False}))
    assert [rule.column for rule in name_values(heir)] == ["cost", "late", "speed"]
    assert (heir.m, params.build(heir, {}).sign) == (2, -1.0)


RULES = name_values(NAMED)
VALUES = {"late": 0.5, "cost": 3.0, "speed": 2.0}


def read_named(results, count=1):
    return read_runs(results, count, [rule.column for rule in RULES], "simulate", by_name=True)


def test_values_are_read_by_name_and_truths_are_numbers():
    values, other = read_named([VALUES, {"cost": 1.0, "late": None, "speed": True}], 2)
    assert values.tolist() == [3.0, 0.5, 2.0]
    np.testing.assert_allclose(orient(values, RULES), [-3.0, 0.2, 0.5])
    np.testing.assert_array_equal(other, [1.0, np.nan, 1.0])
    with pytest.raises(CellFailure, match="for 3 points; it must give a list of as many results"):
        read_named([VALUES], 3)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (VALUES | {"lat": 1.0}, "gives dict .*'lat': 1.0.*; return"),
        ({"cost": 1.0, "late": 0.1}, r"return \{'cost': \.\.\., 'late': \.\.\., 's"),
        ([3.0, 0.1, 2.0], r"gives list \[3.0, 0.1, 2.0\]; return"),
        (VALUES | {"cost": "dear"}, "str 'dear' for cost; it must be a number"),
    ],
)
def test_another_result_is_one_line(result, message):
    with pytest.raises(CellFailure, match=message):
        read_named([result])
    with pytest.raises(ValueError, match="it returned None; return {'cost'"):
        read_named([None])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"objective": {"minimse": "cost"}}, "unknown direction 'minimse'; did you mean 'minimise"),
        ({"objective": {"minimise": "a", "maximise": "b"}}, "objective is .*; allowed: a column's"),
        ({"constraints": {"late": {"atmost": 1}}}, r"'late' is \{'atmost': 1\}; allowed: \{at_mo"),
        ({"constraints": {"late": {"at_most": np.nan}}}, "at_most is nan; it must be a finite"),
        ({"constraints": {"late": {"at_most": 1, "noise": 0.1}}}, "'late': unknown key 'noise'"),
        ({"constraints": {"late": {"at_most": 1, "unit": 0}}}, "'late': unit is 0; it must be ab"),
        ({"constraints": {"late": {"at_most": 1, "unit": -1}}}, "unit is -1; .* of at least 0"),
        ({"constraints": {}}, "constraints is empty"),
        ({"m": 2}, "Mine says m beside its constraints; leave m out"),
    ],
)
def test_wrong_words_are_one_line(words, message):
    with pytest.raises(Misuse, match=message):
        params.build(make_class("Mine", serve, **(WORDS | words)), {})


def test_what_fails_and_what_is_infeasible_is_said_in_the_users_words():
    lost = prepare_class(make_class("Mine", serve, **WORDS))
    _, reason = lost.observe(np.array([[2.0, np.nan]]), [np.random.default_rng(0)])
    assert re.search(r"gives \[nan, nan, [12]\.\d+\] at x", reason), "speed as it was returned"
    wrong = prepare_class(make_class("Mine", serve, best_known=(1.2, 2.0), **WORDS))
    with pytest.raises(CellFailure, match=r"has speed = \S+ \(speed at least 2.5\); give a point"):
        play(wrong, make("random"), 1, 3)


MINE = """\
from dataclasses import dataclass
from cbobench import Simulator

@dataclass(kw_only=True)
class Depot(Simulator):
    source, about = "a test", "a cost with a limit"
    low, high, noisy = (0.0,), (2.0,), False
    objective, constraints = {"minimise": "cost"}, {"late": {"at_most": 0.5}}

    def simulate(self, x, gen):
        return {"cost": 3 + x[0], "late": 1 - x[0]}
"""


def test_tables_and_figures_speak_the_users_words(tmp_path, monkeypatch):
    (tmp_path / "mine_depot.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    suite = {"suite": "depot", "horizon": 6, "seeds": 3, "algorithms": ["random", "sobol"]}
    entry = {"mine_depot:Depot": {"candidates": 64}}
    done = play_here(suite | {"problems": [entry]}, tmp_path / "run")
    stored = cbobench.load_cells(done)
    table = cbobench.compare(done)
    assert table.table.columns[2:] == ["best cost", "V⁺", "N"]
    for label, row in table.frame.set_index("algorithm_label").iterrows():
        f = stored.loc[stored.algorithm == label, "simple_value"]
        assert row.simple_value_median == -f.median() >= 3.5, "a cost, and the least is best"
        assert row.simple_value_median_low == -f.max()
    for words in ("best cost", "best f", "simple_value"):
        assert cbobench.compare(done, metric=words).table.columns[2:] == ["best cost"]
    pairs = cbobench.compare(done, metric="best cost", against="sobol").frame
    costs = -stored.pivot(index="seed", columns="algorithm", values="simple_value")
    assert pairs.wins[0] == (costs["random"] < costs["sobol"]).sum(), "less is better"
    assert pairs.losses[0] == (costs["random"] > costs["sobol"]).sum()
    panel = cbobench.plot(done, "best f").axes[0]
    assert panel.get_ylabel().replace("\n", " ") == "Best feasible cost so far"
    ends = {line.get_ydata()[-1] for line in panel.get_lines() if len(line.get_ydata()) > 2}
    assert ends == set(table.frame.simple_value_median)
