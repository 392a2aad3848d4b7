"""Recorded rounds are read in parts, without a copy of everything; groups of an open run are made
once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cbobench
from cbobench.play.block import RoundRows
from cbobench.report import groups
from cbobench.report.curves import curves
from cbobench.report.figures import Profile, draw_all
from cbobench.report.load import Run, sort_by_cell
from cbobench.results.folder import RunFolder
from tests.helpers import swept


@pytest.fixture
def in_parts(small_suite, tmp_path, monkeypatch):
    """A run whose files hold many row groups."""
    monkeypatch.setattr(RoundRows, "FLUSH", 40)
    monkeypatch.setattr("cbobench.play.play.CHUNK", 7)
    cbobench.run(
        small_suite(horizon=60, seeds=5, extra="record: all\n"), out=tmp_path / "run", cpus=0
    )
    return tmp_path / "run"


def test_files_of_many_parts_are_read_whole(in_parts):
    run = Run(in_parts)
    task = next(iter(run.played.by_task(run.cells["cell"])))
    assert len(list(run.folder.row_groups("rounds", task))) > 3
    frame = run.rounds()
    assert len(frame) == 3 * 5 * 60
    keys = list(zip(frame["algorithm"], frame["seed"], frame["t"], strict=True))
    assert keys == [
        (a, s, t) for a in ("ckb-ucb", "ckb-ts", "stageopt") for s in range(5) for t in range(1, 61)
    ]


@pytest.mark.usefixtures("unpainted")
def test_figures_never_hold_a_whole_file(in_parts, tmp_path, monkeypatch):
    """And their means are those of the rows."""
    run = Run(in_parts)
    means = run.rounds("regret").groupby(["algorithm", "t"], sort=False)["regret"].mean()
    read = RunFolder.read

    def cells_only(self, kind, task, columns=None):
        assert kind == "cells", "a whole file of rounds"
        return read(self, kind, task, columns)

    monkeypatch.setattr(RunFolder, "read", cells_only)
    result = curves(run, "regret", run.record.grids[-1].pairs[0].problem.title)
    np.testing.assert_allclose(result["mean"], means.loc[[*means.index]], rtol=1e-12)
    assert list(draw_all(run, tmp_path / "figures"))
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".csv", ".txt"}, (
        "and no part is left"
    )


def test_rows_are_cut_where_another_tasks_cells_lie_between():
    table = pa.table({"cell": ["c", "a", "c", "b", "a", "b"], "t": [2, 2, 1, 2, 1, 1]})
    parts = sort_by_cell(table, {"a": 0, "b": 1, "elsewhere": 2, "c": 3})
    assert [(rank, part["cell"].to_pylist(), part["t"].to_pylist()) for rank, part in parts] == [
        (0, ["a", "a", "b", "b"], [1, 2, 1, 2]),
        (3, ["c", "c"], [1, 2]),
    ]


SUITE = "suite: g\nhorizon: 10\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: [random, oracle]\n"


def test_the_groups_of_a_run_are_made_once(tmp_path, monkeypatch, words_of):
    """However often the panels and the caption of a figure ask; what a table adds to them stays its
    own.
    """
    calls, grouped = [], groups._group_cells
    monkeypatch.setattr(
        groups, "_group_cells", lambda run, only: calls.append(only) or grouped(run, only)
    )
    run = Run(swept(tmp_path, SUITE))
    assert words_of(run, [Profile("performance"), Profile("data")])
    assert calls == [None]
    cbobench.compare(run, target=1.0)
    assert "rounds_to_target" not in groups.find_groups(run)[0].good
    assert calls == [None]
    assert groups.find_groups(run)[0] is groups.find_groups(run, by="algorithm")[0], (
        "nor are they copied"
    )
    groups.find_groups(run.only("*"))
    assert len(calls) == 2


def test_tables_take_the_values_of_a_group_from_its_frame_once(tmp_path, monkeypatch):
    calls, plain = [], groups.take_values

    def take(cells, name):
        calls.append((name, id(cells)))
        return plain(cells, name)

    monkeypatch.setattr(groups, "take_values", take)
    run = Run(swept(tmp_path, SUITE))
    for requested in ({}, {"best": True}, {"against": "oracle"}):
        cbobench.compare(run, **requested)
    assert calls
    assert len(calls) == len(set(calls))
