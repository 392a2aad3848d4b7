"""Performance and data profiles, and rounds to a target, of curves made by hand, in figures and
tables.
"""

from __future__ import annotations

import itertools
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.figures.figures import Figure, Profile, compose
from cbobench.report.figures.profiles import PRECISIONS, RATIOS
from cbobench.report.figures.style import SIZES
from cbobench.report.load import Run
from tests.report import made
from tests.report.made import make

NAN = np.nan
T = [1, 2, 5, 10, 20, 50, 100]
CURVES = {  # of three seeds; |f*| is 1
    ("P", "A"): [
        [NAN, 0.5, 0.5, 0.05, 0.05, 0.005, 0.0],
        [NAN] * 7,
        [2.0, 2.0, 0.9, 0.9, 0.02, 0.02, 0.02],
    ],
    ("P", "B"): [[3.0] * 7, [3.0] * 6 + [1.0], [NAN] * 7],
    ("Q", "A"): [[0.0004] * 7, [0.5] * 7, [0.05] * 7],
    ("Q", "B"): [[0.5] * 7, [0.5] * 7, [0.2] * 6 + [0.1]],
}


def make_run(folder, pairs=tuple(CURVES), **options):
    rounds = {pair: {"t": T, "simple_regret": CURVES[pair]} for pair in pairs}
    cells = {pair: {"simple_regret": [curve[-1] for curve in CURVES[pair]]} for pair in pairs}
    return Run(make(folder, cells, seeds=range(3), rounds=rounds, **options))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("profiles") / "run")


def shares(run, kind, label):
    frame = Profile(kind).data(run)
    return frame[frame["label"] == label].set_index("at")["share"]


def share_at(run, kind, label, *places):
    """The shares of a curve, which is a step function, at some places."""
    curve = shares(run, kind, label)
    return [curve[curve.index <= place * (1 + 1e-9)].iloc[-1] for place in places]


def test_profiles_by_hand(run):
    within, solved = shares(run, "performance", "A"), shares(run, "data", "A")
    assert [within[p] for p in PRECISIONS] == [5 / 6, 4 / 6, 2 / 6, 2 / 6], (
        "0, none, 0.02; 0.0004, 0.5, 0.05"
    )
    at = within.index.to_numpy()
    assert within[at < 0.0004].unique().tolist() == [1 / 6], "one regret is 0"
    assert within[(at >= 0.0004) & (at < 0.02)].unique().tolist() == [2 / 6]
    # targets 1, 0.1, 0.01, 0.001. P: rounds 2, 10, 50, 100; none; 5, 20. Q: all at 1; 1; 1 and 1
    for t, pairs in {
        1: 7,
        2: 8,
        4: 8,
        5: 9,
        10: 10,
        20: 11,
        49: 11,
        50: 12,
        98: 12,
        100: 13,
    }.items():
        assert solved[t / 100] == pairs / 24
    frame = Profile("data").data(run)
    np.testing.assert_allclose(frame["t"], 100 * frame["at"])
    assert (frame[["n", "expected"]] == 6).all().all()
    assert frame["share"].between(0, 1).all()


@pytest.fixture
def cocos(monkeypatch):
    """Made problems are COCO's."""
    monkeypatch.setattr(made, "PROBLEM", "coco")


def test_profiles_of_cocos_problems_have_cocos_targets(tmp_path, cocos, monkeypatch):
    """41 from 100 to 1e-6, five per decade; f* is not 1, which only relative targets look at."""
    values = {
        "A": [NAN, 100.0, 10.0, 1.0, 0.1, 0.1, 9e-5],
        "B": [NAN, NAN, 101.0, 101.0, 101.0, 101.0, 1e-6],
    }
    cells = {
        ("P", name): {"simple_regret": [values[name][-1]], "f_star": [-50.0]} for name in values
    }
    rounds = {("P", name): {"t": T, "simple_regret": [values[name]]} for name in values}
    small_run = Run(make(tmp_path / "run", cells, seeds=[0], rounds=rounds))
    assert share_at(small_run, "performance", "A", 10, 0.1, 1e-4, 1e-6) == [1, 1, 1, 0]
    assert share_at(small_run, "performance", "B", 1e-6) == [1]
    solved = share_at(small_run, "data", "A", 0.01, 0.1, 0.25, 0.5, 1)
    assert solved == pytest.approx([0, 11 / 41, 16 / 41, 16 / 41, 31 / 41])
    assert share_at(small_run, "data", "B", 1) == [1]
    with SIZES["single"].context():
        figure = Figure("p", "p", [Profile("performance")])
        image, _ = compose(small_run, figure, SIZES["single"])
    assert image.axes[0].get_xlabel() == "Precision x, in units of f"
    plt.close(image)
    monkeypatch.setattr(made, "PROBLEM", "rkhs-1d")
    others = {("Q", name): columns for (_, name), columns in cells.items()}
    rounds = {("Q", name): columns for (_, name), columns in rounds.items()}
    plain = Run(make(tmp_path / "plain", others, seeds=[0], rounds=rounds))
    assert share_at(plain, "data", "A", 0.1) == [0.5], "1 is within 50 and 5"
    with pytest.raises(Misuse, match="COCO's problems have targets of their own"):
        Profile("data").data(Run.union([small_run, plain]))


def test_curves_are_steps_that_grow(run):
    assert set(PRECISIONS) <= set(RATIOS)
    assert (np.diff(RATIOS) > 0).all()
    for kind, label in itertools.product(("performance", "data"), "AB"):
        result = shares(run, kind, label)
        assert result.index.is_monotonic_increasing
        assert result.is_monotonic_increasing
    with SIZES["single"].context():
        image, _ = compose(
            run, Figure("p", "p", [Profile("performance"), Profile("data")]), SIZES["single"]
        )
        plt.close(image)
    for axis in image.axes:
        assert {line.get_drawstyle() for line in axis.get_lines() if line.get_gid() is None} == {
            "steps-post"
        }
        assert axis.get_xscale() == "log"
        assert axis.get_ylim()[0] < 0 < 1 < axis.get_ylim()[1]


def test_no_algorithm_moves_another(run, tmp_path):
    alone = make_run(tmp_path / "alone", [pair for pair in CURVES if pair[1] == "A"])
    for kind in ("performance", "data"):
        before, beside = (Profile(kind).data(item).query("label == 'A'") for item in (alone, run))
        pd.testing.assert_frame_equal(before, beside)


def test_what_failed_solves_nothing_and_is_counted(tmp_path, words_of):
    small_run = make_run(
        tmp_path / "run", failed={("P", "A"): [0], ("P", "B"): range(3), ("Q", "B"): range(3)}
    )
    assert shares(small_run, "performance", "A")[1.0] == 4 / 6
    frame = Profile("data").data(small_run).drop_duplicates("label").set_index("label")
    assert frame["n"].to_dict() == {"A": 5, "B": 0}
    assert (Profile("data").data(small_run).query("label == 'B'")["share"] == 0).all()
    panels = [Profile("performance"), Profile("data")]
    with SIZES["single"].context():
        image, _ = compose(small_run, Figure("p", "p", panels), SIZES["single"])
        plt.close(image)
    assert [text.get_text() for text in image.legends[0].get_texts()] == [
        "A (5 of 6)",
        "B (0 of 6)",
    ]
    assert "Incomplete: A on P 2 of 3, B on P 0 of 3, B on Q 0 of 3 seeds." in words_of(
        small_run, panels
    )


def test_captions_say_what_counts(run, tmp_path, words_of):
    caption = words_of(run, [Profile("performance"), Profile("data")])
    for phrase in (
        "(a) Performance profile: Share of the cells asked for whose final simple regret is at "
        "most x times",
        "(b) Data profile: Share of (cell, target) pairs solved by round t, targets 1, 0.1, "
        "0.01, 0.001",
        "3 seeds of each problem; a cell that failed, or never played a feasible action, solves "
        "nothing. T = 100",
        "Problem Q (rkhs-1d)",
    ):
        assert phrase in caption
    frame = pd.read_csv(tmp_path / "words" / "words.csv")
    assert set(frame["metric"]) == {"performance_profile", "data_profile"}
    rounds = {("P", "A"): {"t": T, "simple_regret": [[0.1] * 7]}}
    single = Run(make(tmp_path / "one", {("P", "A"): {}}, seeds=[0], rounds=rounds))
    assert "One seed of each problem" in words_of(single, [Profile("data")])


@pytest.mark.usefixtures("unpainted")
def test_the_command_line_draws_profiles(run, tmp_path):
    arguments = [
        "figures",
        str(run),
        "--kind",
        "profile",
        "--only",
        "*/A",
        "--size",
        "single",
        "--out",
        str(tmp_path),
    ]
    assert main([*arguments, "--metric", "r"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "profile_made.csv",
        "profile_made.txt",
    ]
    assert set(pd.read_csv(tmp_path / "profile_made.csv")["label"]) == {"A"}


def test_a_run_of_failed_cells_has_no_profile(tmp_path):
    cells = {("P", "A"): {"simple_regret": [1.0] * 3}}
    failed = make(tmp_path / "run", cells, seeds=range(3), failed={("P", "A"): range(3)})
    with pytest.raises(Misuse, match="no cell was played to its end, so there is no profile; see"):
        Profile("data").data(Run(failed))


def test_profiles_in_python(run):
    figure = cbobench.plot(run, kind="profile", problem="Q", algorithm="A", size="single")
    line = next(line for line in figure.axes[0].get_lines() if line.get_gid() is None)
    assert line.get_ydata()[-1] == 1.0, "on Q alone"


def test_functions_that_move_have_no_simple_regret(tmp_path, words_of):
    cells = {
        ("still", "A"): {"simple_regret": [0.1]},
        ("moves", "A"): {"simple_regret": [NAN], "simple_value": [NAN]},
    }
    rounds = {
        ("still", "A"): {"t": T, "simple_regret": [[0.1] * 7]},
        ("moves", "A"): {"t": T, "simple_regret": [[NAN] * 7]},
    }
    small_run = Run(make(tmp_path / "run", cells, seeds=[0], rounds=rounds))
    assert "Not defined: r: the functions of moves move; use R." in words_of(
        small_run, [Profile("data")]
    )
    with pytest.raises(Misuse, match="not defined: the functions of moves move"):
        Profile("data").data(small_run.only("moves/*"))


ROUNDS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
FOUR = {  # of four seeds
    "A": [[np.nan] * 2 + [0.5] * 3 + [0.05] * 5, [2.0] * 9 + [1.0], [np.nan] * 10, [0.0005] * 10],
    "B": [[3.0] * 10] * 4,
}


@pytest.fixture(scope="module")
def targeted(tmp_path_factory):
    cells = {
        ("P", a): {"simple_regret": [curve[-1] for curve in FOUR[a]], "f_star": [-2.0, 1, 1, 0]}
        for a in "AB"
    }
    rounds = {("P", a): {"t": ROUNDS, "simple_regret": FOUR[a]} for a in "AB"}
    return Run(
        make(tmp_path_factory.mktemp("targets") / "run", cells, seeds=range(4), rounds=rounds)
    )


def test_rounds_to_a_target(targeted):
    frame = cbobench.summary(targeted, target=0.5)
    a, b = (frame[frame["algorithm_label"] == name].iloc[0] for name in "AB")
    assert (a["rounds_to_target_defined"], a["rounds_to_target"]) == (2, 20.0), (
        "30 and 10; two never"
    )
    assert (a["rounds_to_target_median"], b["rounds_to_target_defined"]) == (np.inf, 0)
    assert np.isnan(b["rounds_to_target_median"])
    assert cbobench.summary(targeted, target=1)["rounds_to_target_median"][0] == 65, (
        "between 30 and 100"
    )
    assert "∞ 2/4" in str(cbobench.compare(targeted, target=0.5))
    table = cbobench.compare(targeted, target=0.5, metric="rounds_to_target").table
    assert [row[2:] for row in table.rows] == [("∞ 2/4",), ("∞ 0/4",)], (
        "one sign for what is not reached"
    )
    for word in ("rounds_to_target", "t(r ≤ 0.5)"):
        assert cbobench.compare(targeted, target=0.5, metric=word).table == table, (
            "by any of its names"
        )
        with pytest.raises(Misuse, match=rf"^'{re.escape(word)}' needs a target of simple regret"):
            cbobench.compare(targeted, metric=word)
    paired = (
        cbobench.compare(targeted, target=0.5, against="B")
        .frame.set_index("metric")
        .loc["rounds_to_target"]
    )
    assert (paired["n"], paired["wins"], paired["ties"]) == (4, 2, 2), (
        "two never got there with either"
    )


def test_targets_are_in_units_of_the_optimum(targeted):
    """References are 2, 1, 1 and (f* = 0) 1: final regrets of A are 0.025, 1, none and 0.0005 of
    them.
    """
    within = share_at(targeted, "performance", "A", 1, 0.1, 0.01, 0.001)
    assert within == [0.75, 0.5, 0.25, 0.25]
    # targets 2, 0.2, 0.02, 0.002 of the first seed: rounds 30, 60, -, -; 1 of the second: 100; the
    # last all at 10
    assert share_at(targeted, "data", "A", 0.1, 0.5, 1) == [4 / 16, 5 / 16, 7 / 16]
    assert share_at(targeted, "data", "B", 1) == share_at(targeted, "performance", "B", 1) == [0], (
        "3 is more than 2"
    )
