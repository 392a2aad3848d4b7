"""Recorded rounds are read in parts, without a copy of everything."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cbobench.play.block import RoundRows
from cbobench.report.figures.curves import Panel
from cbobench.report.figures.figures import draw_all
from cbobench.report.load import Run, sort_by_cell
from cbobench.results.folder import RunFolder
from tests.helpers import play_here


@pytest.fixture
def in_parts(small_suite, tmp_path, monkeypatch):
    """A run whose files hold many row groups."""
    monkeypatch.setattr(RoundRows, "FLUSH", 40)
    monkeypatch.setattr("cbobench.play.play.CHUNK", 7)
    play_here(small_suite(horizon=60, seeds=5, extra="record: all\n"), tmp_path / "run")
    return tmp_path / "run"


def test_files_of_many_parts_are_read_whole(in_parts):
    run = Run(in_parts)
    task = next(iter(run.played.by_task(run.cells["cell"])))
    assert len(list(task.rounds())) > 3
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
    result = Panel("regret", run.record.grids[-1].pairs[0].problem.title).data(run)
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
