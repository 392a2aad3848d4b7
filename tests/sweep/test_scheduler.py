"""Scheduler and executors: the same rows of every engine, and what becomes of tasks whose worker or
node is lost.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import cbobench
from cbobench.errors import CbobenchError, Misuse
from cbobench.play.task import Receipt, WorkerCrashed, play_task
from cbobench.suite.call import Call
from cbobench.sweep import children, ray_executor, scheduler
from cbobench.sweep import engines as sweep
from cbobench.sweep.executors import ProcessExecutor, Report
from cbobench.sweep.plan import plan
from cbobench.watcher import SILENT
from tests.helpers import Listener, assert_same_rows, long
from tests.sweep.helpers import FakeExecutor, scheduler_of


@pytest.mark.parametrize("players", [None, *long("ray")])
def test_the_engine_changes_no_bit(small_suite, tmp_path, cli, players):
    """A run that worker processes began and this one ended is compared in `test_run`."""
    suite, run = small_suite(horizon=30), tmp_path / "run"
    cbobench.run(suite, out=run, engine="inline", block=50)
    done = cli(
        "run", suite, "--out", tmp_path / "there", "--cpus", 2, "--block", 3, players=players
    )
    assert done.returncode == 0, done.stderr
    who = "on Ray" if players == "ray" else "by 2 worker processes"
    assert f"\nplayed {who}\n" in done.stderr
    assert_same_rows(run, tmp_path / "there")


@pytest.fixture
def prepared_here(monkeypatch):
    """No process apart prepares problems, as one does where this one has threads."""
    monkeypatch.setattr(sweep, "prepare_apart", lambda todo: todo.suite.problems)


@pytest.fixture
def engines(monkeypatch, prepared_here):
    """Executors that are made, by the names of their classes, without being made."""
    for name in ("RayExecutor", "ProcessExecutor"):
        monkeypatch.setattr(sweep, name, lambda *arguments, name=name: Mock(made=name, slots=2))
    return lambda todo, **options: getattr(
        sweep.start_engine(replace(todo, call=replace(todo.call, **options)), SILENT),
        "made",
        "InlineExecutor",
    )


@pytest.mark.parametrize(
    ("seeds", "options", "engine_class"),
    [
        (64, {}, "ProcessExecutor"),
        (65, {}, "RayExecutor"),
        (65, {"engine": "processes"}, "ProcessExecutor"),
        (65, {"cpus": 0}, "InlineExecutor"),
        (2, {"engine": "ray"}, "RayExecutor"),
        (2, {"address": "head:1"}, "RayExecutor"),
    ],
)
def test_the_engine_is_decided_by_the_number_of_tasks_and_options(
    write_suite, engines, seeds, options, engine_class
):
    text = f"suite: s\nhorizon: 2\nseeds: {seeds}\nproblems: [rkhs-1d]\nalgorithms: [random]\n"
    assert engines(plan(Call(write_suite(text), block=1)), **options) == engine_class


def test_a_program_that_has_started_ray_plays_there(small_suite, engines, monkeypatch):
    started = Mock()
    started.get_runtime_context().gcs_address = "127.0.0.1:7"
    monkeypatch.setitem(sys.modules, "ray", started)
    todo = plan(Call(small_suite()))
    assert engines(todo) == "RayExecutor"
    assert engines(todo, engine="processes") == "ProcessExecutor"
    with pytest.raises(Misuse, match="has started Ray already; leave address 'head:1' out"):
        engines(todo, address="head:1")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"engine": "rai"}, "unknown engine 'rai'; did you mean 'ray'"),
        (
            {"cpus": 0, "address": "auto"},
            "--cpus 0 plays in this process, --address on a cluster; give one of them",
        ),
        (
            {"cpus": 0, "engine": "ray"},
            "--cpus 0 plays in this process, --engine ray does not; give one of them",
        ),
        (
            {"engine": "inline", "address": "auto"},
            "--engine inline plays on this machine, --address on a cluster",
        ),
    ],
)
def test_engines_that_exclude_other_options(small_suite, tmp_path, options, why):
    with pytest.raises(Misuse, match=why):
        cbobench.run(small_suite(), out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cpus": "2"}, "cpus is '2'; allowed: a whole number"),
        ({"seeds": 1.5}, "seeds is 1.5; allowed: a whole number"),
        ({"block": 0}, "block is 0; allowed: a whole number from 1"),
        ({"again": "late"}, "unknown kind of cell to play again 'late'"),
    ],
)
def test_a_call_is_refused_where_it_is_made(small_suite, tmp_path, options, why):
    for call in (Call, cbobench.run):
        with pytest.raises(Misuse, match=why):
            call(small_suite(), out=tmp_path / "run", **options)


@pytest.mark.usefixtures("prepared_here")
def test_where_ray_does_not_start_worker_processes_play(small_suite, tmp_path, monkeypatch):
    """Unless it was asked for; each in a line."""

    def refuse(*arguments):
        raise RuntimeError("no room in /dev/shm\nat all")

    monkeypatch.setattr(ray_executor, "start_ray", refuse)
    monkeypatch.setattr(children, "can_fork", lambda: True)
    # else it starts afresh, without what is patched
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr(sweep, "SMALL", 0)
    notes = []
    with pytest.raises(CbobenchError, match="RuntimeError: no room in /dev/shm"):
        cbobench.run(small_suite(horizon=5), out=tmp_path / "run", cpus=2, engine="ray")
    done = cbobench.run(small_suite(horizon=5), out=tmp_path / "run", cpus=2, on_note=notes.append)
    assert done.played == 12
    assert notes[0].startswith("Ray did not start (RuntimeError: no room in /dev/shm (")
    assert notes[0].endswith("); worker processes play instead")


@pytest.fixture
def processes(forking):
    """Plays a plan on worker processes; returns the receipts."""

    def play(todo, slots=2):
        executor = ProcessExecutor(todo.suite.problems, todo.folder, slots, slots)
        try:
            return list(scheduler_of(todo, executor).play())
        finally:
            executor.close()

    return play


def test_a_worker_that_cannot_start_is_no_fault_of_its_task(
    small_suite, tmp_path, monkeypatch, processes
):
    monkeypatch.setattr(children, "BOOT", "raise SystemExit(3)")
    monkeypatch.setattr(children, "can_fork", lambda: False)
    with pytest.raises(
        CbobenchError, match="ended before it began; --cpus 0 plays in this process"
    ):
        processes(plan(Call(small_suite(), out=tmp_path / "run", cpus=2)))


def test_a_worker_that_is_killed_before_it_begins_is_replaced(
    small_suite, tmp_path, monkeypatch, processes
):
    """By the kernel, where memory is short; only where none begins the sweep ends."""
    started, start = [], ProcessExecutor._start

    def killed(self, company):
        worker = start(self, company)
        started.append(worker.child.pid)
        if len(started) in (1, 3):
            os.kill(started[-1], signal.SIGKILL)
        return worker

    monkeypatch.setattr(ProcessExecutor, "_start", killed)
    receipts = processes(plan(Call(small_suite(), out=tmp_path / "run", cpus=2)))
    assert sum(receipt.ok for receipt in receipts) == 12
    assert len(started) == 4


def test_a_problem_that_python_cannot_pickle_reaches_its_worker(
    small_suite, tmp_path, monkeypatch, processes
):
    """Ray's pickler takes functions within functions, too; a fresh interpreter needs it."""
    monkeypatch.setattr(children, "can_fork", lambda: False)
    todo = plan(Call(small_suite(horizon=5), out=tmp_path / "run", cpus=1))
    next(iter(todo.suite.problems.values())).hook = lambda: None
    assert sum(receipt.ok for receipt in processes(todo, 1)) == 12


def test_what_crashes_its_worker_is_halved_and_a_cell_fails_in_the_end(small_suite, tmp_path):
    todo = plan(Call(small_suite(seeds=2), out=tmp_path / "run", cpus=3))
    crash = WorkerCrashed("ran out of memory")
    unlucky_scheduler = scheduler_of(todo, FakeExecutor(3, [crash] * 2))
    assert sum(receipt.ok for receipt in unlucky_scheduler.play()) == 6
    assert unlucky_scheduler.rounds == 0, "none waits"
    executor = FakeExecutor(1, [crash] * 1000)
    receipts = list(scheduler_of(todo, executor).play())
    assert executor.submitted == 3 + 6 * 3
    assert sum(receipt.failed for receipt in receipts) == 6
    assert all("ran out of memory 3 times" in receipt.errors[0] for receipt in receipts)


class Deaf(FakeExecutor):
    """An executor on a clock of its own, whose first answers are lost; what was recalled is
    answered when it is given again.
    """

    def __init__(self, size, lost, publish):
        super().__init__(size)
        self.lost, self.publish, self.held, self.recalled, self.now = lost, publish, [], [], 0.0

    def collect(self, seconds):
        self.now += seconds
        for task in list(self.pending):
            if self.lost and task not in self.held:
                self.lost -= 1
                self.held.append(task)
                self.reports[task.name] = Report(stamp=1)
                self.publish(task)
            elif task not in self.held:
                self.pending.remove(task)
                yield task, Receipt(task.name, len(task.cells), 0, task.rounds, (), 0.01)

    def cancel(self, task):
        self.pending.remove(task)
        self.held.remove(task)
        self.recalled.append(task)
        self.lost = 0


@pytest.mark.parametrize("published", [True, False])
def test_what_is_not_heard_of_is_found_in_the_store_or_played_again(
    small_suite, tmp_path, monkeypatch, published
):
    todo = plan(Call(small_suite(), out=tmp_path / "run", cpus=0, block=1))

    def publish(task):
        if published:
            play_task(todo.suite.problems[task.pair.problem.title], task, todo.folder)

    executor, listener = Deaf(3, 2, publish), Listener()
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: executor.now))
    receipts = list(scheduler_of(todo, executor, listener).play())
    assert sum(receipt.ok for receipt in receipts) == 12
    assert len({receipt.task for receipt in receipts}) == 12
    assert len(executor.recalled) == 2
    what = (
        " is done, though its worker's answer was lost"
        if published
        else ": no word of its worker for 602 s: stopped, or suspended?; its worker is ended"
    )
    assert listener.notes == [f"{task.name}{what}" for task in executor.recalled]


@pytest.fixture
def overdue(small_suite, tmp_path, monkeypatch):
    """A task in play, how long it may be silent, and what is given up of it in some seconds."""
    todo = plan(Call(small_suite(), out=tmp_path / "run", cpus=0))
    task, executor, clock = todo.tasks[0], FakeExecutor(1), SimpleNamespace(now=0.0)
    executor.pending = [task]
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: clock.now))
    watched = scheduler.OverdueTasks(todo.folder, SILENT)

    def wait(seconds, step=scheduler.WAIT, speaks=False):
        given_up = []
        for _ in range(int(seconds / step)):
            clock.now += step
            if speaks:
                executor.reports = {task.name: Report(stamp=int(clock.now))}
            given_up += watched.look(executor)
        return given_up

    return SimpleNamespace(task=task, wait=wait, allowed=scheduler.SILENCE)


def test_who_waits_for_a_cpu_is_not_silent(overdue):
    assert overdue.wait(10 * overdue.allowed) == []


def test_a_worker_that_stops_is_given_up_and_a_suspended_driver_gives_nothing_up(overdue):
    """While it sleeps it hears of nobody: only the time that it is awake is silence. Who plays a
    simulation of an hour reports each second.
    """
    assert overdue.wait(3600, speaks=True) == []
    assert overdue.wait(100 * overdue.allowed, step=overdue.allowed) == []
    assert overdue.wait(scheduler.WAIT, speaks=True) == []
    assert overdue.wait(overdue.allowed) == []
    ((task, crash),) = overdue.wait(scheduler.WAIT)
    assert (task, crash.hung) == (overdue.task, True)
    assert "no word of its worker" in crash.how
