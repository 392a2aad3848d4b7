"""A run that was extended by another horizon: figures, ranks and profiles show the same one of each problem."""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest

import cbobench
from cbobench.report.curves import curves
from cbobench.report.figures import Figure, Panel, Profile, compose
from cbobench.report.groups import describe_horizons
from cbobench.report.load import Run
from cbobench.report.planes import Plane
from cbobench.report.profiles import PRECISIONS, SHARES
from cbobench.report.style import SIZES
from tests.report.made import asked_again, make

SEEDS = range(3)
REGRETS = {  # in the end, by horizon
    100: {("P", "A"): 0.5, ("P", "B"): 0.05, ("Q", "A"): 0.5, ("Q", "B"): 0.5},
    1200: {("P", "A"): 0.0005, ("P", "B"): 0.005},
}


def played(folder, horizon, pairs):
    t = [1, horizon // 2, horizon]
    rounds = {pair: {"t": t, "simple_regret": [[1.0, 1.0, regret]] * 3} for pair, regret in pairs.items()}
    cells = {pair: {"simple_regret": [regret] * 3, "regret": [horizon] * 3} for pair, regret in pairs.items()}
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
        frame = curves(run, "simple_regret", titles[label])
        assert set(frame.groupby("algorithm")["t"].max()) == {horizon}
        assert (frame[["n", "expected"]] == 3).all().all()
        assert Plane("regret", "violations", titles[label]).data(run)["x"].tolist() == [horizon] * 2
        assert (Plane("regret", "violations", titles[label], average=True).data(run)["x"] == 1).all()
    assert describe_horizons(run, [titles["P"]]) == "T = 1,200 (the run also holds T = 100, not shown)"
    assert describe_horizons(run, [titles["Q"]]) == "T = 100 (no cell of T = 1,200 is good)"
    assert run.only("*/A").horizon_of(titles["Q"]) == 100


@pytest.mark.parametrize("only", [None, "Q/*"])
def test_tables_and_figures_have_one_rule(run, only):
    part = run if only is None else run.only(only)
    made = cbobench.compare(run, only=only, profile=True)
    table = made.frame.set_index("algorithm_label")
    assert set(table["n"]) == {3 if only == "Q/*" else 6}
    for kind, at, column in (("performance", PRECISIONS, "within"), ("data", SHARES, "solved_by")):
        frame = Profile(kind).data(part)
        assert (kind == "data" and only == "Q/*") == frame["t"].notna().all(), "rounds of one horizon"
        for label, some in frame.groupby("label"):
            share = some.set_index("at")["share"]
            assert [share[one] for one in at] == [table.loc[label, f"{column}_{one:g}"] for one in at]
    assert table.loc["A", "within_0.001"] == (0 if only == "Q/*" else 0.5)
    words = " ".join(str(made).split())
    assert (
        "T = 100 (Q), 1,200 (P) (the run also" if only != "Q/*" else "T = 100 (no cell of T = 1,200 is good)"
    ) in words


def test_ranks_are_of_the_same_cells(run):
    frame = cbobench.compare(run, ranks=True, metric="simple_regret").frame.set_index("algorithm_label")
    assert frame["rank"].to_dict() == {"A": 1.25, "B": 1.75}, "A is better on P at T = 1,200, neither on Q"
    assert (set(frame["blocks"]), set(frame["expected"])) == ({2}, {2})


def test_captions_and_axes_say_so(run, titles, words_of):
    panels = [Panel("simple_regret", titles[label], title=label) for label in "PQ"]
    assert "T = 100 (Q), 1,200 (P)" in words_of(run, panels)
    assert "T = 1,200 (the run also holds T = 100, not shown)." in words_of(run, panels[:1])
    with SIZES["single"].context():
        image, _ = compose(run, Figure("p", "p", [Profile("data")]), SIZES["single"])
        plt.close(image)
    assert image.axes[0].get_xlabel() == "Round t, in units of T"
    assert np.isclose(image.axes[0].get_lines()[0].get_xdata()[-1], 1.0)
