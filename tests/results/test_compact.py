"""Merging the files of a run: nothing is lost or doubled wherever it is killed, and no reader fails
meanwhile.
"""

from __future__ import annotations

import shutil
from functools import cache

import pandas as pd
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.play.task import play_task
from cbobench.report.compare import compare
from cbobench.report.load import Run
from cbobench.report.tables.status import read_status
from cbobench.results import compact as merging
from cbobench.results.compact import compact, remove_orphans
from cbobench.results.folder import SHARD, RunFolder, open_run
from cbobench.results.query import read_published
from cbobench.results.verify import verify
from cbobench.suite.call import Call
from cbobench.sweep.plan import plan
from tests.helpers import long, long_cases, play_here

SUITE = """\
suite: many
horizon: {horizon}
seeds: {seeds}
record: {{rounds: 5}}
problems:
  - rkhs-1d
algorithms:
  - ckb-ucb
  - random
"""


@pytest.fixture
def run(played_once, tmp_path):
    """A copy of the run."""
    return shutil.copytree(played_once / "run", tmp_path / "run")


class Killed(BaseException):
    """What ends a compaction in the middle."""


@pytest.fixture(scope="module")
def played_once(tmp_path_factory):
    """Two horizons, 14 tasks of one cell each."""
    folder = tmp_path_factory.mktemp("many")
    run = folder / "run"
    for horizon, seeds in ((12, 3), (20, 4)):
        path = folder / "suite.yaml"
        path.write_text(SUITE.format(horizon=horizon, seeds=seeds))
        play_here(path, run, block=1)
    return folder


def contents(run):
    """Everything that readers see, without the names of files."""
    opened = Run(run)
    record, state = read_status(opened.folders[0])
    frames = [opened.cells, opened.rounds()]
    series = opened.series("regret", next(iter(opened.expected))[0], "random")
    return frames, series, state.counts(), len(record.cells), str(compare(opened))


@pytest.fixture(scope="module")
def before(played_once):
    """What readers see of the run before anything is merged."""
    return contents(played_once / "run")


def same(first, second):
    for frame, theirs in zip(first[0], second[0], strict=True):
        pd.testing.assert_frame_equal(frame, theirs)
    assert all((a == b).all() for a, b in zip(first[1], second[1], strict=True))
    assert first[2:] == second[2:]


def test_a_merged_run_reads_the_same_from_few_files(played_once, run, before):
    folder = open_run(run)
    assert compact(folder) == (14, 2), "one for each horizon"
    assert {name[: len(SHARD)] for kind in ("cells", "rounds") for name in folder.names(kind)} == {
        SHARD
    }
    same(before, contents(run))
    verdict = verify(folder)
    assert verdict.damaged == []
    assert verdict.cells == verdict.expected == 14
    assert compact(folder) == (2, 2)
    todo = plan(Call(played_once / "suite.yaml", out=run, cpus=0))
    assert (todo.done, len(todo.tasks)) == (8, 0)


def test_a_merged_run_is_extended_and_merged_again(played_once, run):
    folder = open_run(run)
    compact(folder)
    done = play_here(played_once / "suite.yaml", run, seeds=6, block=1)
    assert (done.played, done.absent) == (4, ())
    before = contents(run)
    assert compact(folder) == (6, 2)
    same(before, contents(run))
    assert not verify(folder).damaged


def test_attempts_stay(small_suite, tmp_path, monkeypatch):
    """Cells that were played again: the latest attempt counts, its number stays, earlier rows
    go.
    """
    run, folder = tmp_path / "run", open_run(tmp_path / "run")
    suite = small_suite(horizon=20)

    def play_changed():
        changed = cache(lambda problem, algorithm: "changed")
        with monkeypatch.context() as patch:
            patch.setattr("cbobench.results.source.source_hash", changed)
            again = play_here(suite, run, again="stale", only="ckb-ts")
        assert again.played == 4

    play_here(suite, run, block=2)
    play_changed()
    before = Run(run).cells
    assert sorted(before["attempt"]) == [1] * 8 + [2] * 4
    assert compact(folder) == (7, 1)
    pd.testing.assert_frame_equal(before, Run(run).cells)
    assert not verify(folder).damaged
    play_changed()
    assert sorted(Run(run).cells["attempt"]) == [1] * 8 + [3] * 4


def test_cells_that_were_published_twice_are_there_once(small_suite, tmp_path):
    """A task is played whole by one call, and in halves by another."""
    run = tmp_path / "run"
    todo = plan(Call(small_suite(horizon=20), out=run, cpus=0, block=4))
    play_here(small_suite(horizon=20), run, block=4)
    plain = cbobench.load_rounds(run)
    for half in (half for task in todo.tasks for half in task.halves()):
        play_task(todo.suite.problems[half.pair.problem.title], half, todo.folder)
    assert verify(todo.folder).damaged == []
    pd.testing.assert_frame_equal(cbobench.load_rounds(run), plain)
    assert compact(todo.folder) == (9, 1)
    assert sum(pq.read_metadata(path).num_rows for path in (run / "rounds").iterdir()) == len(plain)
    pd.testing.assert_frame_equal(cbobench.load_rounds(run), plain)


@pytest.mark.parametrize(
    ("call", "kills"),
    [
        ("publish", (1,)),  # after a shard's rounds
        ("remove", (3,)),
        *long_cases(("publish", range(5)), ("remove", (0, 1, 2, 15, 27, 28))),
    ],
)
def test_wherever_it_is_killed_nothing_is_lost_or_doubled(
    played_once, before, tmp_path, monkeypatch, call, kills
):
    original = getattr(RunFolder, call)
    for kill in kills:
        run = tmp_path / f"run{kill}"
        shutil.copytree(played_once / "run", run)
        calls = iter(range(10**6))

        def killed(self, *arguments, kill=kill, calls=calls):
            if next(calls) == kill:
                raise Killed
            original(self, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, call, killed)
            try:
                compact(open_run(run))
            except Killed:
                pass
            else:
                assert kill == kills[-1], "one after the last"
        same(before, contents(run))
        assert not verify(open_run(run)).damaged
        remove_orphans(open_run(run))
        compact(open_run(run))
        files = [path for kind in ("cells", "rounds") for path in (run / kind).iterdir()]
        assert len(files) == 4
        assert len(read_published(open_run(run))) == 14
        shutil.rmtree(run)


@pytest.mark.parametrize("moment", [1, *long(0, 2)])
def test_a_reader_beside_it_sees_every_cell(run, before, monkeypatch, moment):
    """The files go between two looks of a reader, wherever that is."""
    names, calls = RunFolder.names, iter(range(10**6))
    busy = []

    def meanwhile(self, kind):
        listed = names(self, kind)
        if not busy and next(calls) == moment:
            busy.append(True)
            compact(open_run(run))
        return listed

    monkeypatch.setattr(RunFolder, "names", meanwhile)
    assert read_status(open_run(run))[1].counts() == before[2]


def test_shards_have_a_size(run, before, monkeypatch):
    folder = open_run(run)
    monkeypatch.setattr(merging, "ROWS", 15)
    assert compact(folder) == (14, 5), "three tasks of five rounds each"
    assert max(folder.footer("rounds", name)["rows"] for name in folder.names("rounds")) == 15
    same(before, contents(run))
    assert compact(folder) == (5, 5), "those that are full stay"


def test_a_large_run_is_merged_when_its_call_ends(small_suite, tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "MANY", 5)
    run, suite, notes = tmp_path / "run", small_suite(horizon=20), []
    done = play_here(suite, run, block=1, on_note=notes.append)
    assert (done.played, done.absent) == (12, ())
    assert "merged 12 files of cells into 1" in notes
    assert len(list((run / "cells").iterdir())) == 1
    assert play_here(suite, run).played == 0
