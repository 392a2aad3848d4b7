"""How far a sweep is, and how long the rest takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cbobench.play.task import Receipt
from cbobench.sweep import progress
from cbobench.sweep.progress import Progress, RoundCounter
from cbobench.sweep.run import execute, plan


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
    with Progress(todo) as shown:
        counter = RoundCounter(todo.tasks)
        shown.follow(counter)
        (task,) = shown.bar.tasks
        assert (task.completed, task.total, task.fields["left"]) == (0, 300, "unknown")
        counter.add(Receipt("a", 1, 1, 100, ("why",)))
        shown.add(Receipt("a", 1, 1, 100, ("why",)))
        assert (task.completed, task.description) == (100, "playing (1 failed)")
        assert task.fields["left"].startswith("about ")
    assert shown.bar is None
