"""What a run says of itself while it plays: how far it is, how long the rest takes, and counters on
Ray.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from cbobench.algorithms.references import Random
from cbobench.errors import CellFailure
from cbobench.params import param
from cbobench.play import watchdog
from cbobench.play.task import Receipt
from cbobench.suite.call import Call
from cbobench.sweep import progress
from cbobench.sweep import scheduler as counters
from cbobench.sweep.executors import InlineExecutor, ProcessExecutor, Report
from cbobench.sweep.plan import plan
from cbobench.sweep.progress import Terminal
from cbobench.sweep.ray_executor import RayExecutor
from cbobench.sweep.scheduler import RoundCounter
from tests.helpers import long
from tests.sweep.helpers import FakeExecutor, scheduler_of


def test_the_rest_takes_what_the_rounds_so_far_took_and_what_was_expected(
    small_suite, tmp_path, monkeypatch
):
    todo, clock = plan(Call(small_suite(horizon=100, seeds=4), out=tmp_path / "run", cpus=0)), [0.0]
    monkeypatch.setattr(counters, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    executor = FakeExecutor(1)
    counter, expecting = (RoundCounter(todo.tasks, executor, seconds) for seconds in (None, 1200.0))
    assert (counter.seconds_left(), expecting.seconds_left()) == (None, 1200.0)
    clock[0], executor.reports = 240.0, {"a": Report(rounds=90), "b": Report(rounds=30)}
    assert (counter.rounds, counter.total, counter.rate) == (120, 1200, 0.5)
    assert counter.seconds_left() == pytest.approx(2.0 * 1080)
    # What was expected stands for 60 of 1200 rounds, a second each.
    assert expecting.seconds_left() == pytest.approx((240 + 60) / (120 + 60) * 1080)
    counter.add(Receipt("b", 4, 0, 250, ()))
    executor.reports = {"a": Report(rounds=1000)}
    assert (counter.cells, counter.rounds) == (4, 1200), "never more than there are"
    assert counter.seconds_left() == 0


def test_a_bar_on_a_terminal_says_rounds_and_time_left(small_suite, tmp_path, monkeypatch):
    todo = plan(Call(small_suite(horizon=50, seeds=2), out=tmp_path / "run", cpus=0))
    monkeypatch.setattr(
        progress.sys, "stderr", SimpleNamespace(isatty=lambda: True, write=len, flush=lambda: None)
    )
    executor = FakeExecutor(1)
    with closing(Terminal(todo)) as terminal:
        counter = RoundCounter(todo.tasks, executor)
        terminal.began(counter)
        (task,) = terminal.bar.tasks
        assert (task.completed, task.total) == (0, 300)
        assert task.description == "0 of 6 cells, left: unknown"
        executor.reports = {"a": Report(rounds=60)}
        counter.add(Receipt("b", 1, 1, 100, ("why",)))
        terminal.played(Receipt("b", 1, 1, 100, ("why",)))
        assert [*terminal.bar.get_renderables()], "it is drawn again"
        assert task.completed == 160
        assert re.fullmatch(
            r"2 of 6 cells, left: about .*, 1 failed, [\d.,]+ rounds/s", task.description
        )
    assert terminal.bar is None


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


def plan_gated(write_suite, folder, gate):
    """A task of three seeds whose method waits for a file, the gate."""
    method = {"tests.sweep.test_progress:Waits": {"gate": str(gate)}}
    text = f"suite: t\nhorizon: 40\nseeds: 3\nproblems: [rkhs-1d]\nalgorithms: [{method}]\n"
    return plan(Call(write_suite(text), out=folder / "run", cpus=0, block=3))


def play_beside(scheduler, executor, look):
    """The receipts of a play that a thread looks at meanwhile."""
    looks = threading.Thread(target=look, daemon=True)
    looks.start()
    try:
        receipts = list(scheduler.play())
    finally:
        executor.close()
    looks.join()
    return receipts


@pytest.mark.parametrize("name", ["inline", "processes", *long("ray")])
def test_rounds_are_counted_while_a_task_is_played(name, write_suite, tmp_path, monkeypatch):
    gate, counts = tmp_path / "open", []
    todo = plan_gated(write_suite, tmp_path, gate)
    monkeypatch.setattr(watchdog, "REPORT_SECONDS", 0.05)
    executor = EXECUTORS[name](todo)
    scheduler = scheduler_of(todo, executor)
    counter = RoundCounter(todo.tasks, executor)

    def look():
        while (GATE - 1) * 3 not in counts:
            counts.append(counter.rounds)
            time.sleep(0.01)
        gate.touch()

    receipts = play_beside(scheduler, executor, look)
    assert [(receipt.ok, receipt.failed) for receipt in receipts] == [(3, 0)]
    assert scheduler.counter.in_play == 0, "what is over is no longer in play"
