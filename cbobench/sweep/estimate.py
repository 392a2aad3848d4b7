"""`--dry-run`: cells, tasks, time and disk, from a few rounds of some pairs really played (nothing is written).

Pairs of one algorithm and one problem, whatever their parameters, share their samples: one pair of each is played, and
further ones as long as that takes less than `SAMPLE_SECONDS`. Those that are not have the mean of those that are.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
import pyarrow as pa

from cbobench.play.block import start
from cbobench.play.rows import recorded_rounds
from cbobench.play.task import Task
from cbobench.results.schema import footer, open_writer
from cbobench.sweep.run import Plan
from cbobench.sweep.workers import usable_cpus
from cbobench.threads import single_thread
from cbobench.words import counted

SAMPLE_ROUNDS = 200
SAMPLE_SECONDS = 5.0  # after which no further pair is sampled
STARTUP_SECONDS = 2.0  # imports, worker processes, the table


def estimate(todo: Plan, cpus: int | None) -> str:
    """Three lines for a reader. The time is measured on this machine, for this machine's CPUs (or `cpus`)."""
    samples, of = _samples(todo)
    seconds = size = 0.0
    for task in todo.tasks:
        per_round, per_row = of[task.pair.title]
        seconds += per_round * task.rounds
        size += per_row * len(task.cells) * len(recorded_rounds(task.horizon, task.keep))
    workers = max(1, cpus if cpus is not None else usable_cpus())
    wall = seconds / min(workers, max(1, len(todo.tasks)))
    new = todo.cells - todo.done
    some = f"; {samples} of {len(of)} pairs were tried" if samples < len(of) else ""
    startup = f", plus about {STARTUP_SECONDS:.0f} s to start" if cpus != 0 and todo.tasks else ""
    return "\n".join(
        [
            f"{todo.suite.name}: {new} of {todo.cells} cells to play, in {counted(len(todo.tasks), 'task')}"
            f" -> {todo.folder}",
            f"time: about {_duration(wall)} on {workers} CPU(s){startup} ({_duration(seconds)} of work{some})",
            f"disk: about {_size(size)}",
        ]
    )


def _samples(todo: Plan) -> tuple[int, dict[str, tuple[float, float]]]:
    """How many pairs were sampled, and (seconds per seed-round, bytes per recorded row) of every pair to play."""
    first = {task.pair.title: task for task in reversed(todo.tasks)}
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in reversed(first.values()):
        groups.setdefault((task.pair.problem.name, task.pair.algorithm.name), []).append(task)
    began = time.perf_counter()
    found: dict[str, tuple[float, float]] = {}
    for position, turn in enumerate(itertools.zip_longest(*groups.values())):
        for task in turn:
            if task is not None and (position == 0 or time.perf_counter() - began < SAMPLE_SECONDS):
                found[task.pair.title] = _sample(todo, task)
    sampled = len(found)
    for tasks in groups.values():
        known = np.array([found[task.pair.title] for task in tasks if task.pair.title in found])
        per_round, per_row = known.mean(axis=0)
        for task in tasks:
            found.setdefault(task.pair.title, (per_round, per_row))
    return sampled, found


def _sample(todo: Plan, task: Task) -> tuple[float, float]:
    """(seconds per seed-round, bytes per recorded row) of the first rounds of a task."""
    horizon = min(task.horizon, SAMPLE_ROUNDS)
    play, rows = start(todo.suite.problems[task.pair.problem.title], task.cells, horizon, None)
    with single_thread():
        for chunk in play:
            rows.add(chunk)
    table = rows.table()
    sink = pa.BufferOutputStream()
    with open_writer(sink, "rounds", footer("rounds", task.name, [], table.num_rows, 1)) as writer:
        writer.write_table(table)
    return play.seconds / (horizon * len(task.cells)), sink.getvalue().size / table.num_rows


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(number: float) -> str:
    return f"{number / 1e6:.0f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"
