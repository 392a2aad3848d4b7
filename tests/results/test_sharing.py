"""Several calls on one run folder: each is remembered, none plays what another plays, and what the
dead left goes.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace

import numpy as np
import pytest

import cbobench
from cbobench.call import Call
from cbobench.errors import DamagedRun, Misuse
from cbobench.play.task import play_task_on_worker, published_receipt
from cbobench.results import lease
from cbobench.results.compact import compact
from cbobench.results.folder import open_run
from cbobench.results.lease import Lease
from cbobench.results.manifest import Manifest
from cbobench.results.query import read_published, read_status
from cbobench.results.store import StoreFailure, machine_id
from cbobench.results.verify import verify
from cbobench.suite.cells import Cells
from cbobench.sweep.blocks import Tasks
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from tests.helpers import Listener, assert_same_rows
from tests.processes import PATIENCE


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def all_cells(todo):
    return todo.tasks.cells


def content(run):
    return {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}


def test_two_calls_for_the_same_cells(small_suite, run):
    """The second is refused and told who plays; other cells, and the same ones later, are
    played.
    """
    suite = small_suite(horizon=20)
    cbobench.run(suite, out=run, cpus=0, seeds=1)
    todo = plan(Call(suite, out=run, cpus=0))
    with Lease(todo.folder, all_cells(todo)):
        before = content(run)
        with pytest.raises(Misuse) as error:
            cbobench.run(suite, out=run, cpus=0, only="ckb-ts")
        who = f"are played by process {os.getpid()} on {os.uname().nodename} (since 20"
        assert str(error.value).startswith(f"3 of the 3 cells to play in {run} {who}")
        assert str(error.value).endswith(
            "wait for it, or end it, or ask for other cells with --only"
        )
        assert content(run) == before
        assert cbobench.run(suite, out=run, cpus=0, seeds=1).played == 0, (
            "nothing to play, nothing in the way"
        )
        assert cbobench.run(suite, out=run, cpus=0, horizon=10).played == 12, "other cells"
    assert cbobench.run(suite, out=run, cpus=0).played == 9
    assert not list((run / "drivers").iterdir())


def test_of_calls_that_come_at_once_one_plays(small_suite, run):
    todo = plan(Call(small_suite(), out=run, cpus=0))
    tried = threading.Barrier(6)

    def plays(_):
        with suppress(Misuse), Lease(todo.folder, all_cells(todo)):
            tried.wait(PATIENCE)
            return True
        tried.wait(PATIENCE)
        return False

    with ThreadPoolExecutor(6) as calls:
        assert sorted(calls.map(plays, range(6))) == [False] * 5 + [True]


def left(run, todo, **changes):
    """The file of a call that is there no more, or is elsewhere."""
    held = Lease(todo.folder, all_cells(todo))
    file = run / "drivers" / f"{held.id}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(replace(held.driver, holds=True, **changes))))
    return file


def test_leases_of_dead_calls_expire(small_suite, run):
    todo = plan(Call(small_suite(horizon=20), out=run, cpus=0))
    elsewhere, late = {"machine": "elsewhere-1"}, lease.EXPIRES_AFTER + 5
    for changes, silent, alive in (
        ({}, 9999, True),  # however busy
        ({"born": "1"}, 0, False),  # its number is another process's now
        (elsewhere, 0, True),
        (elsewhere, late, False),
    ):
        file = left(run, todo, **changes)
        os.utime(file, (time.time() - silent,) * 2)
        assert [state for _, state in lease.read_drivers(todo.folder)] == [alive]
        if alive:
            with pytest.raises(Misuse, match="12 of the 12 cells to play .* are played by process"):
                execute(todo)
            file.unlink()
        elif silent == 0:
            file.unlink()
    listener = Listener()
    assert execute(todo, listener).played == 12
    assert [note for note in listener.notes if "stopped unexpectedly" in note]
    assert not file.exists()


def test_what_another_call_has_published_meanwhile_is_not_played_again(small_suite, run):
    first, second = (plan(Call(small_suite(horizon=20), out=run, cpus=0)) for _ in range(2))
    assert execute(first).played == 12
    assert compact(first.folder) == (3, 1)
    assert [published_receipt(first.folder, task).ok for task in first.tasks] == [4, 4, 4]
    assert execute(second).played == 0


def test_a_call_sends_heartbeats(small_suite, run, monkeypatch):
    todo = plan(Call(small_suite(horizon=20), out=run, cpus=0, block=1))
    monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.0)
    write, written = lease._write_lease, []
    monkeypatch.setattr(
        lease, "_write_lease", lambda *arguments: (written.append(arguments), write(*arguments))
    )
    execute(todo)
    # one when the lease is taken, and the scheduler's after every task
    assert len(written) > len(todo.tasks)


@pytest.mark.parametrize("cpus", [0, 1], ids=["inline", "workers"])
def test_a_call_is_heard_while_its_finished_run_is_merged(small_suite, run, monkeypatch, cpus):
    """To merge takes minutes, in which another call would take its cells over."""
    monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.01)
    write, written = lease._write_lease, threading.Event()

    def write_and_tell(*arguments):
        written.set()
        write(*arguments)

    def merge_slowly(folder, watcher):
        written.clear()
        heard.append(written.wait(10))

    heard = []
    monkeypatch.setattr(lease, "_write_lease", write_and_tell)
    monkeypatch.setattr("cbobench.sweep.run.compact_if_large", merge_slowly)
    assert execute(plan(Call(small_suite(horizon=20), out=run, cpus=cpus))).played == 12
    assert heard == [True]


def test_a_heartbeat_under_way_does_not_bring_the_lease_back(small_suite, run, monkeypatch):
    todo = plan(Call(small_suite(horizon=20), out=run, cpus=0))
    begun, write = threading.Event(), lease._write_lease

    def slow(folder, *arguments):
        begun.set()
        time.sleep(0.2)
        write(folder, *arguments)

    with Lease(todo.folder, all_cells(todo)) as held:
        monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.01)
        monkeypatch.setattr(lease, "_write_lease", slow)
        held.start_heartbeat_thread()
        assert begun.wait(PATIENCE)
    assert not held._thread.is_alive()
    assert list((run / "drivers").iterdir()) == []


def test_no_call_is_lost_whoever_writes_last(small_suite, run):
    """Two calls read the same run.json, and the second to write knows nothing of the first."""
    suite = small_suite(horizon=20)
    cbobench.run(suite, out=run, cpus=0, only="ckb-ucb")
    early = (run / "run.json").read_bytes()
    cbobench.run(suite, out=run, cpus=0, only="ckb-ts")
    (run / "run.json").write_bytes(early)
    assert len(read_status(open_run(run))[0].grids) == 2
    assert len(cbobench.load_cells(run)) == 8
    (run / "run.json").unlink()
    assert len(cbobench.load_cells(run)) == 8
    cbobench.run(suite, out=run, cpus=0, only="stageopt")
    on_disk = Manifest.from_json(json.loads((run / "run.json").read_text()), "run.json")
    assert len(on_disk.grids) == len(on_disk.invocations) == 3, (
        "run.json alone says all, as older readers need it"
    )
    assert cbobench.run(suite, out=run, cpus=0).played == 0
    assert len(Manifest.read(open_run(run)).grids) == 1, "the latest holds the others"


def test_a_record_is_made_again_by_the_suite_that_played_the_cells(small_suite, run, tmp_path):
    """Nothing but rounds and cells is left: the next call finds all of them."""
    suite = small_suite(horizon=20)
    cbobench.run(suite, out=run, cpus=0, block=2)
    shutil.copytree(run, tmp_path / "whole")
    (run / "run.json").unlink()
    shutil.rmtree(run / "invocations")
    says = "run.json is missing, its cells are there; the next cbobench run of the suite"
    with pytest.raises(DamagedRun, match=says):
        cbobench.load_cells(run)
    notes = []
    assert cbobench.run(suite, out=run, cpus=0, seeds=2, on_note=notes.append).played == 0
    assert "run.json is missing: it is made again of this call alone" in notes[0]
    assert verify(open_run(run)).damaged == [], "what nobody asks for now is whole"
    assert cbobench.run(suite, out=run, cpus=0).played == 0
    assert_same_rows(tmp_path / "whole", run)


def test_a_worker_that_sees_another_folder_is_refused(small_suite, tmp_path, monkeypatch):
    """The same path on a machine that does not share it; nothing is played there."""
    monkeypatch.setattr(lease, "VISIBLE_WITHIN", 0.0)
    todo = plan(Call(small_suite(horizon=20), out=tmp_path / "run", cpus=0))
    problem, task = next(iter(todo.suite.problems.values())), todo.tasks[0]
    with Lease(todo.folder, all_cells(todo)) as held:
        elsewhere = replace(held.folder, uri=str(tmp_path / "elsewhere"))
        with pytest.raises(
            StoreFailure,
            match=f"does not see the driver's folder {tmp_path}/elsewhere: .* all machines share",
        ):
            play_task_on_worker(problem, task, elsewhere)
        assert not (tmp_path / "elsewhere").exists()
        assert play_task_on_worker(problem, task, held.folder).ok == 4


def test_what_killed_calls_left_is_swept_up(small_suite, run):
    """Rounds whose cells were played again by other tasks, and temporary files; nothing of a live
    writer.
    """
    suite = small_suite(horizon=20)
    cbobench.run(suite, out=run, cpus=0, block=1, seeds=2)
    orphans = sorted(run.glob("cells/*.0-0.*"))
    for file in orphans:
        file.unlink()  # killed between rounds and cells
    ours, theirs = f".x.parquet.{machine_id()}", ".x.parquet.elsewhere-1"
    for name in (
        f"{ours}.999999999.1.tmp",
        f"{theirs}.1.2.tmp",
        ".x.parquet.1.2.tmp",
        f"{ours}.{os.getpid()}.1.tmp",
    ):
        (run / "rounds" / name).write_text("half")
    todo = plan(Call(suite, out=run, cpus=0, seeds=2))
    first_pair, *later_pairs = todo.tasks.by_pair
    first, remaining = (  # a second attempt
        Tasks(
            by_pair,
            1,
            attempts=[np.ones(len(pair_cells), dtype=np.int64) for pair_cells in by_pair],
        )
        for by_pair in ([first_pair], later_pairs)
    )
    with Lease(todo.folder, Cells()):  # someone else is there: only what is surely dead goes
        assert execute(replace(todo, tasks=first)).played == 1
        leftovers = sorted(p.name for p in run.glob("rounds/.*"))
        assert leftovers == sorted(
            [f"{theirs}.1.2.tmp", ".x.parquet.1.2.tmp", f"{ours}.{os.getpid()}.1.tmp"]
        )
    listener = Listener()
    execute(replace(todo, tasks=remaining), listener)
    assert "removed 2 unfinished files of calls that were killed" in listener.notes
    assert [p.name for p in run.glob("rounds/.*")] == [f"{ours}.{os.getpid()}.1.tmp"], (
        "its process lives"
    )
    assert sorted(p.name for p in run.glob("rounds/*.parquet")) == sorted(
        p.name for p in run.glob("cells/*.parquet")
    )
    assert len(read_published(open_run(run))) == 6
