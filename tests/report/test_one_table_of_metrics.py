"""A metric that is defined in one place is everywhere: in Parquet, frames, tables of every format,
and figures.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.metrics import METRICS, Metric, total
from cbobench.report.compare import compare
from cbobench.report.figures.figures import Panel
from cbobench.report.load import Run
from tests.helpers import swept

SUITE = (
    "suite: toy\nhorizon: 30\nseeds: 3\nproblems: [rkhs-1d: {h: 0.25}]\nalgorithms: [random, "
    "ckb-ts]\n"
)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run, and a toy metric: the sum of squares of f over feasible rounds, unknown where f* is
    negative.
    """

    def step(rounds):
        worth = np.where(rounds.violated, 0.0, rounds.f**2)
        return np.where(rounds.f_star > 0, worth, np.nan)

    toy = Metric(
        "squares",
        "Q",
        "Cumulative squares Q",
        total(step),
        better="higher",
        nullable=True,
        is_count=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METRICS, toy.name, toy)
        yield Run(swept(tmp_path_factory.mktemp("toy"), SUITE))


def test_it_is_in_parquet_and_in_frames(played):
    for kind in ("rounds", "cells"):
        (folder,) = played.folders
        file = folder.path(f"{kind}/{folder.names(kind)[0]}.parquet")
        assert "squares" in pq.read_schema(file).names
    rounds = cbobench.load_rounds(str(played), algorithm="random", seed=2)
    feasible = [all(g <= 0 for g in row) for row in rounds["g"]]
    expected = (rounds["f"] ** 2).where(feasible, 0.0).cumsum()
    np.testing.assert_allclose(rounds["squares"], expected, rtol=1e-12)
    cells = cbobench.load_cells(str(played), algorithm="random", seed=2)
    assert cells["squares"].item() == rounds["squares"].iloc[-1]


def test_it_is_in_tables_of_every_format(played):
    mean = played.cells.query("algorithm == 'ckb-ts'")["squares"].mean()
    compared = compare(played, all=True)
    row = json.loads(compared.render("json"))[1]
    assert row["squares"] == pytest.approx(mean, rel=1e-12)
    assert {"squares_low", "squares_median_high"} <= set(row)
    for style, heading in (
        ("table", "Q"),
        ("markdown", "| Q |"),
        ("latex", "& Q"),
        ("csv", ",squares,"),
    ):
        assert heading in compared.render(style)


def test_it_is_in_a_figure(played, words_of, tmp_path):
    problem = played.cells["problem"].iloc[0]
    assert words_of(played, [Panel("squares", problem), Panel("squares", problem, average=True)])
    behind = pd.read_csv(tmp_path / "words" / "words.csv")
    assert set(behind["metric"]) == {"squares", "average_squares"}
    last = behind[
        (behind["metric"] == "squares") & (behind["t"] == 30) & (behind["algorithm"] == "ckb-ts")
    ]
    np.testing.assert_allclose(
        last["mean"].item(), played.cells.query("algorithm == 'ckb-ts'")["squares"].mean()
    )
    assert METRICS["squares"].label_of(average=True) == "Average squares Q"


def test_runs_of_other_metrics_can_be_read(played, monkeypatch, tmp_path):
    """One that is not there any more is left out, and one that was not there yet is null."""
    with monkeypatch.context() as without:
        without.delitem(METRICS, "squares")
        run = Run(str(played))
        assert "squares" not in {*run.cells, *run.rounds()}
        assert compare(run)
        before = swept(tmp_path, SUITE)
    early = Run(before)
    assert early.cells["squares"].isna().all()
    assert early.rounds(["squares"])["squares"].isna().all()
    assert early.stale == set(), "the table of this test lives in no module that a play imports"
