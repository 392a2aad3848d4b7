"""A run that was extended by another horizon: figures, ranks and profiles show the same one of each
problem.
"""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.figures.figures import Figure, Panel, Profile, compose
from cbobench.report.figures.planes import Plane
from cbobench.report.figures.style import SIZES
from cbobench.report.load import Run
from cbobench.report.notes import describe_horizons
from cbobench.results.export import export
from tests.helpers import long
from tests.report.made import asked_again, make

SEEDS = range(3)
REGRETS = {  # in the end, by horizon
    100: {("P", "A"): 0.5, ("P", "B"): 0.05, ("Q", "A"): 0.5, ("Q", "B"): 0.5},
    1200: {("P", "A"): 0.0005, ("P", "B"): 0.005},
}


def played(folder, horizon, pairs):
    t = [1, horizon // 2, horizon]
    rounds = {
        pair: {"t": t, "simple_regret": [[1.0, 1.0, regret]] * 3} for pair, regret in pairs.items()
    }
    cells = {
        pair: {"simple_regret": [regret] * 3, "regret": [horizon] * 3}
        for pair, regret in pairs.items()
    }
    return make(folder, cells, seeds=SEEDS, horizon=horizon, rounds=rounds)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """T = 1,200 was asked of both problems, and played on P."""
    folder = tmp_path_factory.mktemp("horizons") / "run"
    first, then = (partial(played, folder, horizon, pairs) for horizon, pairs in REGRETS.items())
    return Run(asked_again(folder, first, 1200, [then]))


@pytest.fixture
def titles(run):
    return {label: title for title, label in run.record.labels("problems").items()}


def test_every_problem_has_the_latest_of_which_a_cell_is_good(run, titles):
    assert [run.horizon_of(titles[label]) for label in "PQ"] == [1200, 100]
    for label, horizon in (("P", 1200), ("Q", 100)):
        frame = Panel("simple_regret", titles[label]).data(run)
        assert set(frame.groupby("algorithm")["t"].max()) == {horizon}
        assert (frame[["n", "expected"]] == 3).all().all()
        assert Plane("regret", "violations", titles[label]).data(run)["x"].tolist() == [horizon] * 2
        assert (
            Plane("regret", "violations", titles[label], average=True).data(run)["x"] == 1
        ).all()
    assert (
        describe_horizons(run, [titles["P"]]) == "T = 1,200 (the run also holds T = 100, not shown)"
    )
    assert describe_horizons(run, [titles["Q"]]) == "T = 100 (no cell of T = 1,200 is good)"
    assert run.only("*/A").horizon_of(titles["Q"]) == 100


@pytest.mark.parametrize("only", [None, "Q/*"])
def test_tables_and_figures_have_one_rule(run, only):
    part = run if only is None else run.only(only)
    for kind in ("performance", "data"):
        frame = Profile(kind).data(part)
        assert {*frame["n"]} == {3 if only == "Q/*" else 6}
        assert (kind == "data" and only == "Q/*") == frame["t"].notna().all(), (
            "rounds of one horizon"
        )
    within = Profile("performance").data(part).set_index(["label", "at"])["share"]
    assert within["A", 0.001] == (0 if only == "Q/*" else 0.5)
    caption = " ".join(str(cbobench.compare(run, only=only)).split())
    assert (
        "T = 100 (Q), 1,200 (P) (the run also"
        if only != "Q/*"
        else "T = 100 (no cell of T = 1,200 is good)"
    ) in caption


def test_captions_and_axes_say_so(run, titles, words_of):
    panels = [Panel("simple_regret", titles[label], title=label) for label in "PQ"]
    assert "T = 100 (Q), 1,200 (P)" in words_of(run, panels)
    assert "T = 1,200 (the run also holds T = 100, not shown)." in words_of(run, panels[:1])
    with SIZES["single"].context():
        image, _ = compose(run, Figure("p", "p", [Profile("data")]), SIZES["single"])
        plt.close(image)
    assert image.axes[0].get_xlabel() == "Round t, in units of T"
    assert np.isclose(image.axes[0].get_lines()[0].get_xdata()[-1], 1.0)


GEN = np.random.default_rng(5)
SHIFTS = {"A": 0.0, "B": 0.6, "C": 0.9, "D": 1.2}


def drawn(seeds=9):
    """Cells of two problems whose methods are so near that the number of tests decides what is
    significant.
    """
    return {
        (p, a): {
            name: GEN.normal(10, 1, seeds) + shift
            for name in ("regret", "simple_regret", "violations")
        }
        for p in "PQ"
        for a, shift in SHIFTS.items()
    }


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """Runs of T = 25 alone, of T = 30 alone, and of T = 25 and then T = 30 in one folder."""
    folder, cells = tmp_path_factory.mktemp("extended"), {25: drawn(), 30: drawn()}
    alone = {t: make(folder / str(t), cells[t], seeds=range(9), horizon=t) for t in cells}
    first, then = (
        partial(make, folder / "both", cells[t], seeds=range(9), horizon=t) for t in cells
    )
    return alone, asked_again(folder / "both", first, 30, [then])


def without_notes(text):
    """A rendered table without what it says of horizons."""
    return [
        line.removesuffix("\\") for line in text.splitlines() if "the run also holds" not in line
    ]


@pytest.mark.parametrize(
    "options",
    [{}, *long({"ranks": True}, {"against": "A"})],
    ids=str,
)
def test_an_earlier_horizon_changes_no_mark_and_no_number(extended, options):
    alone, extended_run = extended
    for arguments, latest in (({}, 30), ({"horizon": 30}, 30), ({"horizon": 25}, 25)):
        comparison, expected = (
            cbobench.compare(extended_run, **arguments, **options),
            cbobench.compare(alone[latest], **options),
        )
        pd.testing.assert_frame_equal(comparison.frame, expected.frame)
        for style in ("table", "latex", "markdown", "csv"):
            assert without_notes(comparison.render(style, 300)) == without_notes(
                expected.render(style, 300)
            )
    assert "T = 30 (the run also holds T = 25, not shown)" in str(
        cbobench.compare(extended_run, **options)
    )


def test_each_horizon_is_a_family_of_tests(extended):
    alone, extended_run = extended
    every = cbobench.compare(extended_run, horizon="all", against="A")
    frame = every.frame[every.frame["problem"].notna()]
    parts = [frame[frame["horizon"] == t].reset_index(drop=True) for t in alone]
    for part, run in zip(parts, alone.values(), strict=True):
        expected = cbobench.compare(run, against="A").frame
        expected = expected[expected["problem"].notna()].reset_index(drop=True)
        pd.testing.assert_frame_equal(part, expected)
        assert (part["p_holm"] < 0.05).any()
    together = frame.groupby("metric")["p"].transform(lambda p: np.minimum(1, len(p) * p))
    assert ((frame["p_holm"] < 0.05) & (together >= 0.05)).any(), (
        "one family of both would weaken them"
    )
    assert "Holm over the rows of a metric and T" in " ".join(str(every).split())


def test_all_horizons_are_shown_with_the_marks_of_each(extended):
    alone, extended_run = extended
    rows = cbobench.compare(extended_run, horizon="all", metric="R").table.rows
    assert {row[2] for row in rows} == {"25", "30"}
    for t, run in alone.items():
        expected = [
            (type(row[-1]), row[-1]) for row in cbobench.compare(run, metric="R").table.rows
        ]
        assert [(type(row[-1]), row[-1]) for row in rows if row[2] == str(t)] == expected
    assert set(cbobench.summary(extended_run)["horizon"]) == {30}
    assert len(cbobench.summary(extended_run, horizon="all")) == 2 * len(
        cbobench.summary(extended_run, horizon=25)
    )


def test_a_bundle_and_a_union_have_the_latest_horizon_too(extended, tmp_path):
    alone, extended_run = extended
    bundle = export(extended_run, tmp_path / "both.zip").file
    expected = cbobench.compare(alone[30], against="A").frame
    for run in (bundle, [alone[25], alone[30]], [str(bundle), str(extended_run)]):
        pd.testing.assert_frame_equal(cbobench.compare(run, against="A").frame, expected)


def test_the_command_takes_a_horizon(extended, capsys):
    alone, extended_run = extended
    for t in alone:
        assert main(["compare", str(extended_run), "--horizon", str(t), "--format", "csv"]) == 0
        assert main(["compare", str(alone[t]), "--format", "csv"]) == 0
        text = capsys.readouterr().out
        assert text[: len(text) // 2] == text[len(text) // 2 :]
    assert main(["compare", str(extended_run), "--horizon", "all", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 2 * 8
    for wrong, phrase in (
        ("7", "horizon is 7; allowed: 25, 30, all"),
        ("latest", "'latest' is not a whole number"),
    ):
        assert main(["compare", str(extended_run), "--horizon", wrong]) == 2
        assert phrase in capsys.readouterr().err
    for wrong in ("30", True, 0):
        with pytest.raises(Misuse, match="allowed: 25, 30, all"):
            cbobench.compare(extended_run, horizon=wrong)
    with pytest.raises(Misuse, match="ranks and floors are of one horizon"):
        cbobench.compare(extended_run, horizon="all", ranks=True)


def test_two_runs_are_compared_at_the_latest_horizon_of_the_first(extended):
    alone, extended_run = extended
    for arguments, latest in (({}, 30), ({"horizon": 25}, 25)):
        comparison = cbobench.compare(extended_run, extended_run, metric="R", **arguments)
        assert set(comparison.frame["horizon"].dropna()) == {latest}
    assert "the run also holds T = 25, not shown" in str(
        cbobench.compare(extended_run, extended_run, metric="R")
    )
    every = cbobench.compare(extended_run, alone[25], metric="R", horizon="all")
    assert set(every.frame.loc[every.frame["verdict"] == "missing", "horizon"]) == {30}
    assert every.worse
    assert cbobench.compare(extended_run, alone[25], metric="R").worse, "the latest is missing"
    assert not cbobench.compare(extended_run, alone[25], metric="R", horizon=25).worse
    assert not cbobench.compare(alone[25], extended_run, metric="R").worse
