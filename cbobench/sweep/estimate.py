"""`--dry-run`: cells, tasks, time and disk, from a few rounds of some pairs really played (nothing is written).

Pairs of one algorithm and one problem, whatever their parameters, share their samples: one pair of each is played, and
further ones as long as that takes less than `SAMPLE_SECONDS`. Those that are not have the mean of those that are.
"""

from __future__ import annotations

import itertools
import time
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cbobench.play.block import start, summaries
from cbobench.play.rows import recorded_rounds
from cbobench.play.task import Task
from cbobench.results.compact import MANY
from cbobench.results.schema import footer, open_writer
from cbobench.sweep.run import Plan
from cbobench.sweep.workers import usable_cpus
from cbobench.threads import single_thread
from cbobench.words import counted

SAMPLE_ROUNDS = 200
SAMPLE_SECONDS = 5.0  # after which no further pair is sampled
TASK_SECONDS = 0.012  # to publish its files, and to hand it out
STARTUP_SECONDS = 2.0  # imports, worker processes, the table


class Sample(NamedTuple):
    """What a pair takes: seconds per seed-round, and per cell beside its rounds; bytes per recorded row."""

    per_round: float
    per_cell: float
    per_row: float


def estimate(todo: Plan, cpus: int | None) -> str:
    """Three lines for a reader. The time is measured on this machine, for this machine's CPUs (or `cpus`)."""
    samples, of = _samples(todo)
    size, seconds = 0.0, TASK_SECONDS * len(todo.tasks)
    for strip in todo.tasks.strips:
        per_round, per_cell, per_row = of[strip.pair.title]
        seconds += (per_round * strip.horizon + per_cell) * len(strip)
        size += per_row * len(strip) * len(recorded_rounds(strip.horizon, todo.record.keep))
    workers = max(1, cpus if cpus is not None else usable_cpus())
    wall = seconds / min(workers, max(1, len(todo.tasks)))
    new = todo.cells - todo.done
    some = f"; {samples} of {len(of)} pairs were tried" if samples < len(of) else ""
    files = len(todo.tasks) * (3 if todo.record.audit else 2)
    merged = ", merged when the run ends" if len(todo.tasks) > MANY else ""
    startup = f", plus about {STARTUP_SECONDS:.0f} s to start" if cpus != 0 and todo.tasks else ""
    return "\n".join(
        [
            f"{todo.suite.name}: {new} of {todo.cells} cells to play, in {counted(len(todo.tasks), 'task')}"
            f" -> {todo.folder}",
            f"time: about {_duration(wall)} on {workers} CPU(s){startup} ({_duration(seconds)} of work{some})",
            f"disk: about {_size(size)} in {counted(files, 'file')}{merged}",
        ]
    )


def _samples(todo: Plan) -> tuple[int, dict[str, Sample]]:
    """How many pairs were sampled, and what every pair to play takes."""
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in todo.tasks.of_pairs():
        groups.setdefault((task.pair.problem.name, task.pair.algorithm.name), []).append(task)
    began = time.perf_counter()
    found: dict[str, Sample] = {}
    for position, turn in enumerate(itertools.zip_longest(*groups.values())):
        for task in turn:
            if task is not None and (position == 0 or time.perf_counter() - began < SAMPLE_SECONDS):
                found[task.pair.title] = _sample(todo, task)
    sampled = len(found)
    for tasks in groups.values():
        known = np.array([found[task.pair.title] for task in tasks if task.pair.title in found])
        mean = Sample(*known.mean(axis=0).tolist())
        for task in tasks:
            found.setdefault(task.pair.title, mean)
    return sampled, found


def _sample(todo: Plan, task: Task) -> Sample:
    """What the first rounds of a task take."""
    horizon = min(task.horizon, SAMPLE_ROUNDS)
    began = time.thread_time()
    play, rows = start(todo.suite.problems[task.pair.problem.title], task.cells, horizon, None)
    with single_thread():
        for chunk in play:
            rows.add(chunk)
        summaries(play)
    fixed = max(0.0, time.thread_time() - began - play.seconds)
    table = rows.table()
    sink = pa.BufferOutputStream()
    with open_writer(sink, "rounds", footer("rounds", task.name, [], table.num_rows, 1)) as writer:
        writer.write_table(table)
    cells = len(task.cells)
    return Sample(play.seconds / (horizon * cells), fixed / cells, sink.getvalue().size / table.num_rows)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(number: float) -> str:
    return f"{number / 1e6:.0f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"
