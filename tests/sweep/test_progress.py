"""How far a sweep is, and how long the rest takes."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from cbobench.algorithms.references import Random
from cbobench.errors import CellFailure
from cbobench.params import param
from cbobench.play import task as plays
from cbobench.play import watchdog
from cbobench.play.task import Receipt
from cbobench.sweep import progress
from cbobench.sweep.executors import InlineExecutor, ProcessExecutor
from cbobench.sweep.progress import Progress, RoundCounter
from cbobench.sweep.ray_executor import RayExecutor
from cbobench.sweep.run import execute, plan
from tests.sweep.helpers import FakeExecutor, scheduler_of


def test_the_rest_takes_what_the_rounds_so_far_took(small_suite, tmp_path, monkeypatch):
    todo, now = plan(small_suite(horizon=100, seeds=4), out=tmp_path / "run", cpus=0, block=2), [1000.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    counter = RoundCounter(todo.tasks)
    assert counter.seconds_left() is None, "nothing is known"
    now[0] += 10.0
    for task in [*todo.tasks][:4]:
        counter.add(Receipt(task.name, 2, 0, task.rounds, ()))
    seconds, low, high = counter.seconds_left()
    assert seconds == pytest.approx(5.0)
    assert low < seconds < high
    assert counter.report() | {"cells": 8, "rounds": 800, "total": 1200, "rate": 80.0} == counter.report()


def test_a_sweep_is_counted_while_it_is_played(small_suite, tmp_path):
    started = []
    execute(plan(small_suite(horizon=50, seeds=2), out=tmp_path / "run", cpus=0), cpus=0, on_start=started.append)
    (counter,) = started
    assert counter.rounds == counter.total == 300
    assert counter.seconds_left()[0] == 0.0


def test_a_bar_on_a_terminal_says_rounds_and_time_left(small_suite, tmp_path, monkeypatch):
    todo = plan(small_suite(horizon=50, seeds=2), out=tmp_path / "run", cpus=0)
    monkeypatch.setattr(progress.sys, "stderr", SimpleNamespace(isatty=lambda: True, write=len, flush=lambda: None))
    played = 0
    with Progress(todo) as shown:
        counter = RoundCounter(todo.tasks, lambda: played)
        shown.follow(counter)
        (task,) = shown.bar.tasks
        assert (task.completed, task.total, task.fields["left"]) == (0, 300, "unknown")
        played = 60
        assert [*shown.bar.get_renderables()], "it is drawn again"
        assert task.completed == 60, "no task is over"
        assert task.fields["left"].startswith("about ")
        played = 0
        counter.add(Receipt("a", 1, 1, 100, ("why",)))
        shown.add(Receipt("a", 1, 1, 100, ("why",)))
        assert (task.completed, task.description) == (100, "playing (1 failed)")
        assert task.fields["left"].startswith("about ")
    assert shown.bar is None


GATE = 20  # the round that waits


@dataclass(kw_only=True)
class Waits(Random):
    """Waits in a round until a file is there."""

    gate: str = param("", "path of the file")

    def ask(self, t):
        for i in count() if t == GATE and self.gate else ():
            if Path(self.gate).exists():
                break
            time.sleep(0.01)
            if i == 20_000:
                raise CellFailure("nobody has opened the gate")
        return super().ask(t)


EXECUTORS = {
    "inline": lambda todo: InlineExecutor(todo.suite.problems, todo.folder),
    "processes": lambda todo: ProcessExecutor(todo.suite.problems, todo.folder, 1, 1),
    "ray": lambda todo: RayExecutor(todo.suite.problems, todo.folder, 1, None),
}


@pytest.mark.parametrize("name", ["inline", "processes", pytest.param("ray", marks=pytest.mark.long)])
def test_rounds_are_counted_while_a_task_is_played(name, write_suite, tmp_path, monkeypatch):
    gate, seen = tmp_path / "open", []
    method = {"tests.sweep.test_progress:Waits": {"gate": str(gate)}}
    text = f"suite: t\nhorizon: 40\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [{method}]\n"
    todo = plan(write_suite(text), out=tmp_path / "run", cpus=0, block=3)
    monkeypatch.setattr(watchdog, "REPORT_SECONDS", 0.05)
    executor = EXECUTORS[name](todo)
    scheduler = scheduler_of(todo, executor)
    counter = RoundCounter(todo.tasks, scheduler.rounds_in_play)

    def look():
        while (GATE - 1) * 3 not in seen:
            seen.append(counter.rounds)
            time.sleep(0.01)
        seen.append(scheduler.cells_in_play())
        gate.touch()

    looks = threading.Thread(target=look, daemon=True)
    looks.start()
    try:
        receipts = list(scheduler.play())
    finally:
        executor.close()
    looks.join()
    assert [(receipt.ok, receipt.failed) for receipt in receipts] == [(3, 0)]
    assert [*seen[-1].values()] == [[3, (GATE - 1) * 3]], "as heartbeats say it"
    assert scheduler.rounds_in_play() == 0, "what is over is no longer in play"


def test_cells_played_one_by_one_are_counted_together(small_suite, tmp_path, monkeypatch):
    todo, reports = plan(small_suite(horizon=30), out=tmp_path / "run", cpus=0), []
    (task, *_), counts = todo.tasks, []
    monkeypatch.setattr(plays, "watch_play", lambda *given: counts.append(given[-1]) or watchdog.watch_play(*given))
    guard = plays._Guard(task, None, reports.append)
    for before in (0, 2):
        with guard.over(task.cells[:1], before):
            counts[-1](7)
    assert reports == [7, 2 * 30 + 7]
    with plays._Guard(task, None, None).over(task.cells):
        assert counts[-1] is None, "nobody asks"


def test_rounds_of_tasks_that_are_over_are_not_counted_twice(small_suite, tmp_path):
    todo = plan(small_suite(horizon=50, seeds=2), out=tmp_path / "run", cpus=0)
    executor = FakeExecutor(1)
    scheduler = scheduler_of(todo, executor)
    counter = RoundCounter(todo.tasks, scheduler.rounds_in_play)
    executor.rounds = {"a": 90}
    assert counter.report()["rounds"] == 90
    counter.add(Receipt("b", 4, 0, 250, ()))
    assert counter.report()["rounds"] == 300, "never more than there are"
