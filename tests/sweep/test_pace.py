"""Tasks are handed out by measured time: what is known, what is not, and the end of a sweep.

And benchmarks/scale/virtual.py in small: the real plan and scheduler in virtual time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from benchmarks.scale import virtual
from cbobench.algorithms.references import Random
from cbobench.play import watchdog
from cbobench.suite.call import Call
from cbobench.sweep import scheduler
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from cbobench.sweep.scheduler import Pace
from tests.helpers import assert_same_rows, cells, long, play_here
from tests.sweep.helpers import scheduler_of


@pytest.fixture
def task(small_suite, tmp_path):
    """A task of 50 cells."""
    return plan(Call(small_suite(horizon=1000, seeds=50), out=tmp_path / "r", cpus=1)).tasks[0]


@pytest.mark.parametrize(
    ("seconds", "slots", "waiting", "count"),
    [
        pytest.param(None, 2, 10**6, 50, id="nothing is known"),
        pytest.param(50.0, 2, 10**6, 50, id="short"),
        pytest.param(100.0, 2, 10**6, 25, id="a minute at most"),
        pytest.param(50 * 3000.0, 2, 10**6, 1, id="no less than a cell"),
        pytest.param(20.0, 2, 1, 13, id="less when a sweep ends"),
        pytest.param(20.0, 1000, 1, 3, id="not below a second"),
        pytest.param(20.0, 1, 1, 50, id="a worker alone waits for nobody"),
    ],
)
def test_cells_are_handed_out_by_time_and_place_in_the_sweep(task, seconds, slots, waiting, count):
    pace = Pace()
    if seconds is not None:
        pace.learn(task.pair, seconds, task.rounds)
    part = pace.first_part(task, slots, waiting * task.rounds)
    assert part.cells == task.cells[:count]
    assert part.return_after == (scheduler.RETURN_AFTER if seconds is None else None)


def test_pieces_change_nothing_and_resume(small_suite, tmp_path, monkeypatch):
    """Cut as far as it goes, and stopped in between; a call that planned before the first one plays
    nothing twice.
    """
    suite = small_suite(horizon=60, seeds=8)
    play_here(suite, tmp_path / "whole")
    for name in ("TASK_SECONDS", "LEAST_SECONDS", "LEAST_ROUND"):
        monkeypatch.setattr(scheduler, name, 1e-9)
    early, first = (
        plan(Call(suite, out=tmp_path / "cut", cpus=0, block=4, budget=budget))
        for budget in (None, "0.001cpus")
    )
    done = execute(first)
    assert done.spent
    assert execute(early).played == 24 - done.played
    assert plan(Call(suite, out=tmp_path / "cut", cpus=0)).done == 24
    files = [p.name for p in (tmp_path / "cut" / "cells").iterdir()]
    assert len(files) > 6, "it was cut"
    assert len(cells(tmp_path / "cut")) == 24
    assert_same_rows(tmp_path / "whole", tmp_path / "cut")


@dataclass(kw_only=True)
class Sleepy(Random):
    """Takes a millisecond of wall time per replicate and round: nothing is shared."""

    def ask(self, t):
        time.sleep(0.001 * self.setting.replicates)
        return super().ask(t)


def test_what_takes_too_long_is_given_back_and_cut(write_suite, tmp_path, monkeypatch):
    """The whole task would be lost with its machine; what it played until then is."""
    monkeypatch.setattr(watchdog, "TRIAL", 0.1)
    monkeypatch.setattr(scheduler, "RETURN_AFTER", 1.0)
    monkeypatch.setattr(scheduler, "TASK_SECONDS", 0.5)
    monkeypatch.setattr(scheduler, "LEAST_SECONDS", 0.5)
    text = "suite: t\nhorizon: 50\nseeds: 24\nproblems: [rkhs-1d]\n"
    text += f"algorithms: ['{__name__}:Sleepy']\n"
    todo = plan(Call(write_suite(text), out=tmp_path / "r", cpus=0, block=24))
    assert len(todo.tasks) == 1
    receipts = list(scheduler_of(todo).play())
    assert len(receipts) >= 3
    assert sum(receipt.ok for receipt in receipts) == 24
    assert len(list((tmp_path / "r" / "rounds").iterdir())) == len(receipts), (
        "nothing of the first try is left"
    )


@pytest.mark.parametrize("cpus", [*long(1), 100])
def test_cells_are_all_accounted_for_and_machines_are_busy(cpus):
    numbers = virtual.measure(20_000, cpus, 10.0, 500.0, 1e-3).replace(",", "").split()
    cell_count, block, tasks, repeated, planned, driver, _, rate, with_ray, efficiency, _ = map(
        float, [*numbers[:-1], "0"]
    )
    assert (cell_count, tasks) == (cpus, 20_000 / block)
    assert repeated > 20, "machines were lost, workers crashed"
    assert planned < 30
    assert rate > with_ray > 500
    assert efficiency > (80 if cpus > 1 else 60), "of a hundred, the last tasks leave some idle"
