"""One against one over all problems: floors, infeasible seeds, rounds, and who is better."""

from __future__ import annotations

import numpy as np
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.tables.duels import judge
from cbobench.stats.paired_tests import holm, signed_rank
from tests.report.made import make

N = 10
RNG = np.random.default_rng(5)
NEAR = RNG.uniform(2e-3, 9e-3, N)
NEVER = np.full(N, np.nan)


def make_run(folder, values, **options):
    cells = {
        (problem, method): {"simple_regret": column, "regret": column}
        for problem, columns in values.items()
        for method, column in columns.items()
    }
    return make(folder, cells, seeds=range(N), **options)


def row_of(compared, rival, floor):
    frame = compared.frame
    is_asked = (frame["against_label"] == rival) & (frame["floor"] == floor)
    (row,) = frame[is_asked].to_dict("records")
    return row


def sides(row):
    return row["won"], row["tied"], row["lost"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A is better than B by more than 1e-3 and less than 1e-2 on P and Q, worse by 1 on R; C finds
    nothing feasible on Q, and neither does A on S.
    """
    values = {
        "P": {"A": 1 - NEAR, "B": np.ones(N), "C": np.full(N, 2.0)},
        "Q": {"A": 1 - NEAR, "B": np.ones(N), "C": NEVER},
        "R": {"A": np.full(N, 2.0), "B": np.ones(N), "C": np.full(N, 2.0)},
        "S": {"A": NEVER, "B": np.ones(N), "C": NEVER},
    }
    return make_run(tmp_path_factory.mktemp("duels") / "run", values)


def test_a_floor_makes_ties_of_wins_and_of_losses_alike(run):
    compared = cbobench.compare(run, against="A", metric="r", floor=[1e-3, 1e-2])
    assert sides(row_of(compared, "B", 1e-3)) == (2, 0, 2)
    assert sides(row_of(compared, "B", 1e-2)) == (0, 2, 2)
    mirrored = cbobench.compare(run, against="B", metric="r", floor=[1e-3, 1e-2])
    for floor in (1e-3, 1e-2):
        one, other = row_of(compared, "B", floor), row_of(mirrored, "A", floor)
        assert sides(one) == sides(other)[::-1]
        assert (one["p"], one["effect"]) == (other["p"], -other["effect"])


def test_infeasible_is_worse_than_any_number_and_two_such_are_tied(run):
    compared = cbobench.compare(run, against="A", metric="r", floor=1e3)
    assert sides(row_of(compared, "C", 1e3)) == (1, 3, 0), "won on Q, however large the floor"
    assert sides(row_of(compared, "B", 1e3)) == (0, 3, 1), "lost on S"


def test_a_failed_seed_is_lost_and_so_is_a_problem_of_such(tmp_path):
    """Who fails in hard seeds would be better for it."""
    hard = np.repeat([0.5, 9.0], [4, 6])
    values = {name: {"A": hard, "B": np.ones(N)} for name in "PQ"}
    whole = cbobench.compare(make_run(tmp_path / "whole", values), against="A", floor=0)
    failed = {("P", "A"): range(4, N), ("Q", "A"): range(N)}
    run = make_run(tmp_path / "failed", values, failed=failed)
    lost = cbobench.compare(run, against="A", floor=0)
    assert sides(whole.frame.iloc[0]) == sides(lost.frame.iloc[0]) == (0, 0, 2)
    both = make_run(tmp_path / "both", values, failed={("P", name): range(N) for name in "AB"})
    assert sides(cbobench.compare(both, against="A", floor=0).frame.iloc[0]) == (0, 1, 1)


def test_p_is_of_all_seeds_with_problems_as_strata_and_holm_over_the_rivals(run):
    compared = cbobench.compare(run, against="A", metric="r", floor=1e-3)
    far = np.full(N, 1e60)
    tests = {
        "B": signed_rank(NEAR, NEAR, -np.ones(N), -far),
        "C": signed_rank(1 + NEAR, far, np.zeros(N), np.zeros(N)),
    }
    rows = {rival: row_of(compared, rival, 1e-3) for rival in tests}
    assert [row["p"] for row in rows.values()] == [p for p, _ in tests.values()]
    expected = holm([p for p, _ in tests.values()])
    assert [row["p_holm"] for row in rows.values()] == expected.tolist()
    assert rows["C"]["effect"] == tests["C"][1] > 0
    text = str(compared)
    assert "2/2/0 <0.001+" in text, "A is better than C"
    assert "2/0/2 1.000\n" in text, "nothing is known of A and B"
    assert "0/2/2 <0.001-" in str(cbobench.compare(run, against="C", metric="r", floor=0))


def test_a_difference_at_the_floor_counts_and_one_below_is_a_tie():
    assert sides(judge([np.full(4, 0.5)], 0.5)) == (1, 0, 0)
    assert sides(judge([np.full(4, -0.5)], 0.5)) == (0, 0, 1)
    assert sides(judge([np.full(4, 0.4999)], 0.5)) == (0, 1, 0)
    assert judge([np.full(4, 0.4999)], 0.5)["p"] == 1.0
    assert sides(judge([np.zeros(4)], 0.0)) == (0, 1, 0), "equal is a tie without a floor, too"


def test_rounds_of_longer_plays_are_looked_at(tmp_path):
    """A leads after round 20, B in the end; on Q nobody is feasible before that, which is a tie."""
    t = np.arange(10, 101, 10)
    early, late = np.ones((N, 10)), np.ones((N, 10))
    early[:, 1:] = 0.5
    late[:, 9] = 0.1
    rounds = {
        ("P", name): {"t": t, "simple_regret": curve} for name, curve in (("A", early), ("B", late))
    }
    found = np.where(t < 100, np.nan, late)
    rounds |= {("Q", name): {"t": t, "simple_regret": found} for name in ("A", "B")}
    values = {
        "P": {"A": early[:, -1], "B": late[:, -1]},
        "Q": {"A": found[:, -1], "B": found[:, -1]},
    }
    folder = make_run(tmp_path / "run", values, rounds=rounds)
    compared = cbobench.compare(folder, against="A", metric="r", floor=0, rounds=[10, 20, 100])
    assert [sides(row) for row in compared.frame.to_dict("records")] == [
        (0, 2, 0),
        (1, 1, 0),
        (0, 1, 1),
    ]
    assert "t = 20, floor 0" in str(compared)
    assert sides(cbobench.compare(folder, against="A", metric="r", floor=0).frame.iloc[0]) == (
        0,
        1,
        1,
    )
    with pytest.raises(Misuse, match="round 15 of 40 cells was not recorded; give a round that"):
        cbobench.compare(folder, against="A", metric="r", rounds=15)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"floor": 0.1}, "of one method against each other one; name it"),
        ({"floor": 0.1, "against": ["A", "B"]}, "names 2 algorithms of this run; give one of"),
        ({"floor": -1.0, "against": "A"}, "floor is -1.0; allowed: numbers from 0"),
        ({"floor": [0.1, float("nan")], "against": "A"}, "allowed: numbers from 0"),
        ({"floor": 0.1, "against": "A", "metric": ["r", "R"]}, "by one metric; give r alone"),
        ({"floor": 0.1, "against": "nobody"}, "unknown algorithm 'nobody'"),
        ({"rounds": [10, 0], "against": "A"}, r"rounds are \[10, 0\]; allowed: whole numbers"),
        ({"rounds": True, "against": "A"}, "rounds are True; allowed: whole numbers from 1"),
        (
            {"rounds": 10, "against": "A", "metric": "first_feasible"},
            "first is known of the end alone; leave rounds out",
        ),
        ({"floor": 0, "against": "A", "metric": "µs"}, "of µs neither side is better"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(run, options, why):
    with pytest.raises(Misuse, match=why) as refused:
        cbobench.compare(run, **options)
    assert "\n" not in str(refused.value)


def test_floors_and_rounds_that_are_named_alike_are_one(run):
    compared = cbobench.compare(run, against="A", metric="r", floor=[0.1, 0.1 + 1e-9, 0.1])
    assert [*compared.frame["floor"]] == [0.1, 0.1]


def test_the_command_prints_a_row_per_rival(run, capsys):
    assert main(["compare", str(run), "--against", "A", "--floor", "1e-2", "1e-3"]) == 0
    out = capsys.readouterr().out
    assert {line.split()[0] for line in out.splitlines()[3:6]} == {"A", "B", "C"}
    assert "floor 0.01" in out
    for style, mark in (("latex", r"\begin{tabular}"), ("csv", "p_holm"), ("json", '"won": 2')):
        assert main(["compare", str(run), "--against", "A", "--floor", "0", "--format", style]) == 0
        assert mark in capsys.readouterr().out


def play(folder, floor, out="run"):
    suite = {
        "suite": "s",
        "horizon": 3,
        "seeds": 2,
        "problems": [{"gardner-1": {"noise_f": 0.0, "noise_g": 0.0}}],
        "algorithms": ["random", "sobol"],
    }
    suite |= {} if floor is None else {"floor": floor}
    return cbobench.run(suite, out=folder / out, cpus=0).folder


def test_the_floor_of_a_suite_stands_before_the_play(tmp_path):
    """It comes first in every table, stays with what is exported, and no later call changes it."""
    run = play(tmp_path, 0.5)
    bundle = cbobench.export(run, tmp_path / "run.zip").file
    for source in (run, bundle, [run, bundle]):
        compared = cbobench.compare(source, against="random", floor=[])
        assert {*compared.frame["floor"]} == {0.5}
        assert "floor of the suite: 0.5" in str(compared)
    others = cbobench.compare(run, against="random", floor=[0, 0.5, 1])
    assert [*others.frame["floor"]] == [0.5, 0.0, 1.0], "it comes first, whatever is asked"
    play(tmp_path, 0.5)
    for other in (0.1, None):
        with pytest.raises(Misuse, match="begun with the floor 0.5, the suite now says") as refused:
            play(tmp_path, other)
        assert "\n" not in str(refused.value)
    other = play(tmp_path, 0.1, "other")
    compared = cbobench.compare([run, other], against="random", floor=0)
    assert [*compared.frame["floor"]] == [0], "the suites do not agree"
    without = play(tmp_path, None, "without")
    compared = cbobench.compare(without, against="random", floor=[])
    assert [*compared.frame["floor"]] == [0.0]
    assert "floor of the suite" not in str(compared)


@pytest.mark.parametrize("floor", ["tiny", -1, True, float("inf"), [0.1]])
def test_a_floor_of_a_suite_is_a_number_from_0(tmp_path, floor):
    with pytest.raises(Misuse, match="floor is .*; allowed: a number from 0, below which") as said:
        play(tmp_path, floor)
    assert "\n" not in str(said.value)
