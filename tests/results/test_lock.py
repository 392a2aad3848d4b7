"""Calls on one run folder, one of which plays; what a killed one leaves; disks that fail."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import DamagedRun, Misuse
from cbobench.play.task import play_task_on_worker
from cbobench.results import folder as folders
from cbobench.results import lock
from cbobench.results.compact import compact
from cbobench.results.folder import open_run
from cbobench.results.lock import hold
from cbobench.results.store import StoreFailure
from cbobench.results.verify import verify
from cbobench.suite.call import Call
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from tests.helpers import Listener, assert_same_rows, play_here
from tests.results.holders import count_holders


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def test_a_second_call_is_refused_in_a_line_and_changes_nothing(small_suite, run):
    suite = small_suite(horizon=20)
    play_here(suite, run, seeds=1)
    with hold(open_run(run)):
        before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        who = f"process {os.getpid()} on {os.uname().nodename} since 20"
        with pytest.raises(Misuse) as error:
            play_here(suite, run)
        assert str(error.value).startswith(f"{run} is being played by another call ({who}")
        assert str(error.value).endswith("); wait for it, end it, or give another --out")
        assert {path: path.read_bytes() for path in before} == before
        notes = []
        complete = play_here(suite, run, seeds=1, on_note=notes.append)
        assert complete.played == 0, "nothing to play, nothing in the way"
        assert notes[-1].startswith(f"this call is not recorded: {run} is being played by")
    assert play_here(suite, run).played == 9


def test_of_calls_that_come_at_once_one_plays(run):
    assert count_holders(run, calls=4) == 1


def test_a_disk_without_locks_is_refused_in_a_line(small_suite, run, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(Misuse, match=f"cannot lock {run}: No locks available; give another --out"):
        play_here(small_suite(horizon=20), run)


def test_rounds_without_cells_go_with_the_next_call(small_suite, run, tmp_path):
    suite = small_suite(horizon=20)
    play_here(suite, run, block=1, seeds=2)
    play_here(suite, tmp_path / "blocks", block=2)
    orphan = shutil.copy(next(tmp_path.glob("blocks/rounds/*.parquet")), run / "rounds")
    assert verify(open_run(run)).damaged == []
    assert play_here(suite, run).played == 6
    assert not Path(orphan).exists()
    assert len(list(run.glob("rounds/*"))) == len(list(run.glob("cells/*")))


def test_what_another_call_has_published_meanwhile_is_not_played_again(small_suite, run):
    first, second = (plan(Call(small_suite(horizon=20), out=run, cpus=0)) for _ in range(2))
    assert execute(first).played == 12
    assert compact(first.folder) == (3, 1)
    assert execute(second).played == 0
    assert len(cbobench.load_cells(run)) == 12


def test_every_call_is_remembered(small_suite, run):
    suite = small_suite(horizon=20)
    for glob in ("ckb-ucb", "ckb-ts"):
        play_here(suite, run, only=glob)
    content = open_run(run).read_json("run.json")
    assert [call["arithmetic"] is not None for call in content["invocations"]] == [True, True]
    assert len(content["grids"]) == 2


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_text("{")])
def test_a_record_is_made_again_by_the_suite_that_played_the_cells(
    small_suite, run, tmp_path, damage
):
    suite = small_suite(horizon=20)
    play_here(suite, run, block=2)
    shutil.copytree(run, tmp_path / "whole")
    damage(run / "run.json")
    with pytest.raises(DamagedRun, match="run.json is (missing|not JSON)"):
        cbobench.load_cells(run)
    assert [damage.file for damage in verify(open_run(run)).damaged] == ["run.json"]
    notes = []
    again = {"again": "damaged", "on_note": notes.append}
    assert play_here(suite, run, seeds=2, **again).played == 0
    assert "run.json is missing or damaged: it is made again of this call alone" in notes[0]
    assert verify(open_run(run)).damaged == [], "what nobody asks for now is whole"
    assert play_here(suite, run).played == 0
    assert_same_rows(tmp_path / "whole", run)


def test_a_worker_that_sees_another_folder_is_refused(small_suite, tmp_path, monkeypatch):
    """The same path on a machine that does not share it; nothing is played there."""
    monkeypatch.setattr(lock, "VISIBLE_WITHIN", 0.0)
    todo = plan(Call(small_suite(horizon=20), out=tmp_path / "run", cpus=0))
    problem, task = next(iter(todo.suite.problems.values())), todo.tasks[0]
    with hold(todo.folder) as held:
        elsewhere = replace(held, uri=str(tmp_path / "elsewhere"))
        with pytest.raises(
            StoreFailure,
            match=f"does not see the driver's folder {tmp_path}/elsewhere: .* all machines share",
        ):
            play_task_on_worker(problem, task, elsewhere)
        assert not (tmp_path / "elsewhere").exists()
        assert play_task_on_worker(problem, task, held).ok == 4


def test_a_complete_run_is_shown_where_nothing_can_be_written(small_suite, tmp_path, capsys):
    command = ["run", str(small_suite()), "--cpus", "0", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    table = capsys.readouterr().out
    (tmp_path / "run" / "lock").unlink()
    (tmp_path / "run" / "lock").mkdir()
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out == table
    assert f"this call is not recorded: cannot lock {tmp_path / 'run'}: Is a directory" in err


def test_a_run_folder_that_is_removed_is_not_made_again(small_suite, run):
    class Removing(Listener):
        def played(self, receipt):
            shutil.rmtree(run)

    todo = plan(Call(small_suite(horizon=20), out=run, cpus=0, block=1))
    with pytest.raises(StoreFailure, match=f"cannot write to {run}: No such file or directory"):
        execute(todo, Removing())
    assert not run.exists()


@contextlib.contextmanager
def short_files():
    """The kernel refuses to write more than 9,000 bytes into a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_ends_the_run_in_one_line(write_suite, run, tmp_path, capsys):
    """In the middle of a file of rounds; the same command resumes."""
    suite = write_suite(
        "suite: full\nhorizon: 400\nseeds: 6\nproblems: [rkhs-1d]\nalgorithms: [random]\n"
    )
    play_here(suite, run, horizon=5, seeds=1)
    with short_files():
        assert main(["run", str(suite), "--out", str(run), "--cpus", "0"]) == 1
    error = capsys.readouterr().err
    line = f"cbobench: cannot write to {run}: File too large; when that is mended the same command"
    assert line in error
    assert "; what is published stays, to go on: cbobench run" in error
    assert not list(tmp_path.rglob("*.tmp"))
    assert play_here(suite, run).played == 6


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done, fsync, file = [], os.fsync, tmp_path / "run" / "run.json"
    monkeypatch.setattr(
        os,
        "fsync",
        lambda number: done.append("there" if file.exists() else "fsync") or fsync(number),
    )
    rename = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, target: done.append("replace") or rename(self, target)
    )
    open_run(tmp_path / "run").write_json("run.json", {})
    assert done == ["fsync", "replace"]


def test_a_disk_that_is_away_while_a_table_is_read_is_no_damage(small_suite, run, monkeypatch):
    def fail(*arguments, **options):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    play_here(small_suite(horizon=5), run)
    monkeypatch.setattr(folders.pq, "ParquetFile", fail)
    with pytest.raises(StoreFailure, match="cannot reach .*: Stale file handle"):
        open_run(run).footer("cells", open_run(run).names("cells")[0])
