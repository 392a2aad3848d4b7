"""Scheduler and executors: the same rows of every engine, and what becomes of tasks whose worker or
node is lost.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Future
from dataclasses import replace
from queue import SimpleQueue
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import cbobench
from cbobench.call import Call
from cbobench.errors import CbobenchError, Misuse
from cbobench.play.task import Receipt, WorkerCrashed, play_task
from cbobench.results.folder import RunFolder
from cbobench.sweep import children, ray_executor, scheduler
from cbobench.sweep import run as sweep
from cbobench.sweep.executors import ProcessExecutor
from cbobench.sweep.messages import Crashed, Ended, Join, NodeLost, Slots
from cbobench.sweep.plan import plan
from cbobench.sweep.ray_executor import RayClient, RayExecutor
from cbobench.watcher import SILENT
from tests.helpers import Listener, assert_same_rows
from tests.sweep.helpers import FakeExecutor, scheduler_of


@pytest.mark.parametrize("players", [None, pytest.param("ray", marks=pytest.mark.long)])
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
def engines(monkeypatch):
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
        (65, {"engine": "inline"}, "InlineExecutor"),
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
        ({"cpus": "2"}, "cpus is '2'; it must be a whole number"),
        ({"seeds": 1.5}, "seeds is 1.5; it must be a whole number"),
        ({"block": 0}, "block is 0; it must be at least 1"),
        ({"again": "late"}, "unknown kind of cell to play again 'late'"),
    ],
)
def test_a_call_is_refused_where_it_is_made(small_suite, tmp_path, options, why):
    for call in (Call, cbobench.run):
        with pytest.raises(Misuse, match=why):
            call(small_suite(), out=tmp_path / "run", **options)


@pytest.mark.parametrize("engine", [None, "ray"])
def test_where_ray_does_not_start_worker_processes_play(small_suite, tmp_path, monkeypatch, engine):
    """Unless it was asked for; each in a line."""

    def refuse(*arguments):
        raise RuntimeError("no room in /dev/shm\nat all")

    monkeypatch.setattr(ray_executor, "start_ray", refuse)
    monkeypatch.setattr(children, "can_fork", lambda: True)
    # else it starts afresh, without what is patched
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr(sweep, "SMALL", 0)
    notes = []
    if engine:
        with pytest.raises(CbobenchError, match="RuntimeError: no room in /dev/shm"):
            cbobench.run(small_suite(), out=tmp_path / "run", cpus=2, engine=engine)
        return
    assert (
        cbobench.run(small_suite(), out=tmp_path / "run", cpus=2, on_note=notes.append).played == 12
    )
    assert notes[0].startswith(
        "Ray did not start (RuntimeError: no room in /dev/shm (test_scheduler.py:"
    )
    assert notes[0].endswith("); worker processes play instead")
    assert notes[1] == "played by 2 worker processes"


def test_a_lease_is_renewed_while_a_cluster_starts(monkeypatch):
    beats, polls = [], iter([False, False, True])
    link = Mock(poll=lambda seconds: next(polls), recv=lambda: Slots(4))
    monkeypatch.setattr(ray_executor, "spawn", lambda *arguments, **options: Mock(link=link))
    monkeypatch.setattr(ray_executor, "send_heartbeat", beats.append)
    executor = RayExecutor({}, RunFolder("run", "me"), None, "head:1")
    assert (executor.slots, beats) == (4, [executor.folder] * 3)


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

    def killed(self):
        start(self)
        started.append(self.workers[-1].child.pid)
        if len(started) in (1, 3):
            os.kill(started[-1], signal.SIGKILL)

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


def test_a_lost_node_and_a_crash(small_suite, tmp_path):
    """What lost its node is played again whole; what crashed its worker in halves, and a cell three
    times.
    """
    todo, listener = plan(Call(small_suite(seeds=2), out=tmp_path / "run", cpus=3)), Listener()
    executor = FakeExecutor(3, [NodeLost(), *[WorkerCrashed("ran out of memory")] * 2])
    lossy_scheduler = scheduler_of(todo, executor, listener)
    assert sum(receipt.ok for receipt in lossy_scheduler.play()) == 6
    assert lossy_scheduler.rounds == 0, "none waits"
    (note,) = listener.notes
    assert note.startswith("a machine was lost that played rkhs-1d.ckb-ucb.0-1.")
    executor = FakeExecutor(1, [WorkerCrashed("ran out of memory")] * 1000)
    receipts = list(scheduler_of(todo, executor).play())
    assert executor.submitted == 3 + 6 * 3
    assert sum(receipt.failed for receipt in receipts) == 6
    assert all("ran out of memory 3 times" in receipt.errors[0] for receipt in receipts)
    with pytest.raises(CbobenchError, match="lost their node"):
        list(scheduler_of(todo, FakeExecutor(1, [NodeLost()] * 1000)).play())


def test_ray_tells_lost_nodes_from_crashes_and_refusals(small_suite, tmp_path):
    class Errors:
        NodeDiedError, ObjectLostError, WorkerCrashedError = (
            type(n, (Exception,), {}) for n in "abc"
        )
        OutOfMemoryError, RayTaskError = (type(n, (Exception,), {}) for n in "de")

    todo = plan(Call(small_suite(seeds=2), out=tmp_path / "run", cpus=0))
    (task, *_) = todo.tasks
    receipt = Receipt(task.name, 2, 0, task.rounds, ())
    refused = Errors.RayTaskError()
    refused.cause = CbobenchError("other code")
    answers = [
        receipt, Errors.NodeDiedError(), Errors.ObjectLostError(), Errors.WorkerCrashedError(),
        Errors.OutOfMemoryError(), Errors.RayTaskError("traceback\nKeyError: 'x'"), refused,
    ]  # fmt: skip

    def begin(problem, packed):
        assert (problem, packed) == ("put", b"task")
        future = Future()
        answer = answers.pop(0)
        future.set_exception(answer) if isinstance(answer, Exception) else future.set_result(answer)
        return Mock(future=lambda: future)

    ray = Mock(
        exceptions=Errors,
        put=lambda problem: "put",
        remote=lambda **options: lambda play: Mock(remote=begin),
    )
    inbox = SimpleQueue()
    client = RayClient(ray, Join({"p": b""}, todo.folder, None, "head:1", None), inbox)
    for i in range(len(answers)):
        client.submit(f"task {i}", "p", task.demand, b"task")
    ended = [inbox.get() for _ in range(len(client.flight))]
    assert [client.collect(future) for future in ended[:5]] == [
        Ended("task 0", receipt),
        Ended("task 1", NodeLost()),
        Ended("task 2", NodeLost()),
        Ended("task 3", Crashed("crashed its worker")),
        Ended("task 4", Crashed("ran out of memory")),
    ]
    for future, message in zip(
        ended[5:], (r"could not be carried out: e: KeyError: 'x'", "^other code$"), strict=True
    ):
        with pytest.raises(CbobenchError, match=message):
            client.collect(future)
    assert not client.flight


def silent(monkeypatch, todo, executor, **limits):
    """A scheduler whose clock goes on when its executor is waited for, however long that takes
    here.
    """
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: executor.now))
    for name, value in {
        "SILENCE_SECONDS": 0.2,
        "CHECK_SECONDS": 0.1,
        "NOTE_SECONDS": 1e9,
        "OVERDUE_SECONDS": 1e9,
        **limits,
    }.items():
        monkeypatch.setattr(scheduler, name, value)
    listener = Listener()
    return scheduler_of(todo, executor, listener), listener.notes


class Deaf(FakeExecutor):
    """An executor whose first answers are lost; what was recalled is answered when it is given
    again.
    """

    def __init__(self, size, lost, publish):
        super().__init__(size)
        self.lost, self.publish, self.held, self.recalled, self.now = lost, publish, [], [], 0.0

    def collect(self, seconds):
        self.now += 0.01
        for task in list(self.pending):
            if self.lost and task not in self.held:
                self.lost -= 1
                self.held.append(task)
                if self.publish:
                    self.publish(task)
            elif task not in self.held:
                self.pending.remove(task)
                yield task, Receipt(task.name, len(task.cells), 0, task.rounds, (), 0.01)

    def cancel(self, task):
        self.pending.remove(task)
        self.held.remove(task)
        self.recalled.append(task)
        self.lost = 0


def test_a_lost_answer_is_found_in_the_store(small_suite, tmp_path, monkeypatch):
    todo = plan(Call(small_suite(), out=tmp_path / "run", cpus=0, block=1))

    def publish(task):
        play_task(todo.suite.problems[task.pair.problem.title], task, todo.folder)

    executor = Deaf(3, 2, publish)
    deaf_scheduler, notes = silent(monkeypatch, todo, executor)
    receipts = list(deaf_scheduler.play())
    assert sum(receipt.ok for receipt in receipts) == 12
    assert len({receipt.task for receipt in receipts}) == 12
    assert len(executor.recalled) == 2
    assert notes == [
        f"{task.name} is done, though its worker's answer was lost" for task in executor.recalled
    ]


def test_a_task_that_takes_far_too_long_is_queued_again(small_suite, tmp_path, monkeypatch):
    """Where its pair's other tasks say how long it takes; else it is only named."""
    todo = plan(Call(small_suite(), out=tmp_path / "run", cpus=0, block=1))
    executor = Deaf(3, 1, None)
    deaf_scheduler, notes = silent(
        monkeypatch, todo, executor, OVERDUE_SECONDS=0.4, OVERDUE_FACTOR=2.0
    )
    assert sum(receipt.ok for receipt in deaf_scheduler.play()) == 12
    name = executor.recalled[0].name
    assert notes == [f"no answer for 0 min from {name}; queued again"]


def test_long_silence_names_what_is_in_play(small_suite, tmp_path, monkeypatch):
    todo = plan(Call(small_suite(), out=tmp_path / "run", cpus=0, block=4))
    deaf_scheduler, notes = silent(monkeypatch, todo, Deaf(3, 3, None), NOTE_SECONDS=0.5)
    names = [task.name for task in todo.tasks]
    receipts = deaf_scheduler.play()

    class Impatient(Listener):
        def note(self, text):
            notes.append(text)
            if len(notes) == 2:
                raise KeyboardInterrupt

    deaf_scheduler.overdue.watcher = Impatient()
    with pytest.raises(KeyboardInterrupt):
        list(receipts)
    assert notes == [f"no answer for 0 min; in play: {', '.join(names)}"] * 2


@pytest.fixture
def overdue(monkeypatch):
    """What looks after overdue tasks, its notes, and a clock that tests set."""
    clock, listener = SimpleNamespace(now=0.0), Listener()
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: clock.now))
    watched = scheduler.OverdueTasks(SimpleNamespace(published_tasks=set), listener)

    def wait(seconds, pending):
        """Look every half a minute; returns what is given up."""
        given_up = []
        for _ in range(int(seconds / 30)):
            clock.now += 30
            given_up += watched.look(pending)
        return given_up

    return SimpleNamespace(watched=watched, clock=clock, notes=listener.notes, wait=wait)


def task(name):
    pair = SimpleNamespace(problem=SimpleNamespace(title="p"), algorithm=SimpleNamespace(name="a"))
    return SimpleNamespace(name=name, pair=pair)


def test_a_driver_that_was_suspended_gives_nothing_up(overdue):
    """While it sleeps it hears of nobody: only the time that it is awake is silence."""
    only_task = task("mine")
    overdue.watched.answered(only_task, Receipt("mine", 1, 0, 10, (), 1.0))
    assert overdue.wait(300, [only_task]) == []
    overdue.clock.now += 7200
    assert list(overdue.watched.look([only_task])) == []
    assert overdue.wait(570, [only_task]) == []
    assert overdue.notes == ["no answer for 10 min; in play: mine"], (
        "its pair's tasks take a second"
    )
    assert overdue.wait(60, [only_task]) == [(only_task, None)], "fifteen minutes awake"
    assert overdue.notes[1:] == ["no answer for 16 min from mine; queued again"]


def test_notes_on_silence_come_ever_more_seldom(overdue):
    """After ten minutes, and then whenever it has lasted twice as long; an answer begins it
    anew.
    """
    only_task = task("mine")
    assert overdue.wait(4 * 3600, [only_task]) == []
    minutes = [
        note.removeprefix("no answer for ").removesuffix(" min; in play: mine")
        for note in overdue.notes
    ]
    assert minutes == ["10", "20", "40", "80", "160"]
    overdue.notes.clear()
    overdue.watched.answered(only_task, object())
    assert overdue.wait(1200, [only_task]) == []
    assert len(overdue.notes) == 2
