"""Tasks are cut by measured time: what is known, what it costs, the end of a sweep, and what is
given back.

And benchmarks/scale/virtual.py in small: the real plan and scheduler in virtual time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

import cbobench
from benchmarks.scale import virtual
from cbobench.algorithms.references import Random
from cbobench.call import Call
from cbobench.play import watchdog
from cbobench.sweep import blocks as paces
from cbobench.sweep.blocks import Pace
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from tests.helpers import assert_same_rows, cells
from tests.sweep.helpers import scheduler_of


@dataclass(kw_only=True)
class Sleepy(Random):
    """Takes a millisecond of wall time per replicate and round: nothing is shared."""

    def ask(self, t):
        time.sleep(0.001 * self.setting.replicates)
        return super().ask(t)


@pytest.fixture
def first(small_suite, tmp_path):
    """A plan, its first task (of 50 cells), and its pace."""
    todo = plan(Call(small_suite(horizon=1000, seeds=50), out=tmp_path / "r", cpus=1))
    return todo, todo.tasks[0], Pace(todo.suite.problems)


def sizes(tasks):
    return [len(task.cells) for task in tasks]


def test_a_long_task_is_cut_into_pieces_of_half_a_minute(first):
    _, task, pace = first
    assert pace.expected(task) is None
    assert [t.return_after for t in pace.pieces(task, 2, 10**9)] == [paces.RETURN_AFTER], (
        "nothing is known: whole"
    )
    pace.learn(task, 100.0, task.rounds)
    assert pace.expected(task) == pytest.approx(100.0)
    pieces = pace.pieces(task, 2, 10**9)
    assert sizes(pieces) == [12, 13, 12, 13]
    assert [c for piece in pieces for c in piece.cells] == list(task.cells)
    assert all(
        pace.expected(piece) < paces.TASK_SECONDS and piece.return_after is None for piece in pieces
    )


@pytest.mark.parametrize(
    ("seconds", "slots", "waiting", "pieces"),
    [
        pytest.param(20.0, 2, 10, 1, id="short"),
        pytest.param(20.0, 2, 1, 4, id="shorter ones when a sweep ends"),
        pytest.param(20.0, 1000, 1, 20, id="none below a second"),
        pytest.param(20.0, 1, 1, 1, id="a worker alone waits for nobody"),
        pytest.param(50 * 3000.0, 2, 10**9, 50, id="none without a cell"),
        pytest.param(
            1.5 * 1000 * paces.SHARED_ROUND[True],
            100,
            1,
            1,
            id="not where the block shares the cost",
        ),
    ],
)
def test_pieces_by_time_and_place_in_the_sweep(first, seconds, slots, waiting, pieces):
    _, task, pace = first
    pace.learn(task, seconds, task.rounds)
    assert len(pace.pieces(task, slots, waiting * task.rounds)) == pieces


def test_a_pair_that_is_not_known_goes_by_its_names(write_suite, tmp_path):
    text = (
        "suite: t\nhorizon: 100\nseeds: 4\nproblems: [rkhs-1d]\nalgorithms:\n  - random\n  - "
        "ckb-ts\n"
    )
    text += "  - ckb-rand: {law: uniform, points: {sweep: [10, 20]}}\n"
    todo = plan(Call(write_suite(text), out=tmp_path / "r", cpus=1))
    _, ts, first_task, second_task = todo.tasks
    pace = Pace(todo.suite.problems)
    pace.learn(first_task, 8.0, first_task.rounds)
    assert (pace.expected(ts), pace.expected(second_task)) == (None, pytest.approx(8.0))
    pace.learn(second_task, 2.0, second_task.rounds)
    assert (pace.expected(first_task), pace.expected(second_task)) == (
        pytest.approx(8.0),
        pytest.approx(2.0),
    )


def test_pieces_change_nothing_and_resume(small_suite, tmp_path, monkeypatch):
    """Cut as far as it goes, and stopped in between; a call that planned before the first one plays
    nothing twice.
    """
    suite = small_suite(horizon=60, seeds=8)
    cbobench.run(suite, out=tmp_path / "whole", cpus=0)
    monkeypatch.setattr(Pace, "_least", lambda pace, task: 2.0)
    monkeypatch.setattr(paces, "TASK_SECONDS", 1e-9)
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


def test_what_takes_too_long_is_given_back_and_cut(write_suite, tmp_path, monkeypatch):
    """The whole task would be lost with its machine; what it played until then is."""
    monkeypatch.setattr(watchdog, "TRIAL", 0.1)
    monkeypatch.setattr(paces, "RETURN_AFTER", 1.0)
    monkeypatch.setattr(paces, "TASK_SECONDS", 0.5)
    text = (
        "suite: t\nhorizon: 50\nseeds: 24\nproblems: [rkhs-1d]\nalgorithms: "
        "['tests.sweep.test_pace:Sleepy']\n"
    )
    todo = plan(Call(write_suite(text), out=tmp_path / "r", cpus=0, block=24))
    assert sizes(todo.tasks) == [24]
    receipts = list(scheduler_of(todo).play())
    assert len(receipts) >= 3
    assert sum(receipt.ok for receipt in receipts) == 24
    assert len(list((tmp_path / "r" / "rounds").iterdir())) == len(receipts), (
        "nothing of the first try is left"
    )


@pytest.mark.parametrize("cpus", [pytest.param(1, marks=pytest.mark.long), 100])
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
