"""What a worker does: play the cells of one task, stream their rounds to Parquet, and publish. Returns a receipt."""

from __future__ import annotations

import platform
import resource
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError
from cbobench.problems.base import Problem
from cbobench.sweep.grid import Cell, Task
from cbobench.sweep.metrics import METRICS
from cbobench.sweep.play import Play
from cbobench.sweep.rows import RoundRows
from cbobench.sweep.store import CELLS, RunFolder, footer, open_writer
from cbobench.sweep.threads import single_thread


@dataclass(frozen=True)
class Order:
    """A task with what a worker needs to carry it out.

    Attributes:
        task: the block of cells.
        problem_name: names the problem in the random streams.
        keep: recorded rounds, None for all.
        source: hash of the code that plays the task.
    """

    task: Task
    problem_name: str
    keep: int | None
    source: str


@dataclass(frozen=True)
class Receipt:
    """What the driver learns of a task: counts and one line per failure, never data."""

    task: str
    ok: int
    failed: int
    rounds: int
    errors: tuple[str, ...]


def carry_out(problem: Problem, order: Order, folder: RunFolder) -> Receipt:
    """Play a task and publish its rounds, then its cells.

    The cells advance in lock step. If anything is raised, each cell is played alone (the results are the same bits),
    so that one bad cell becomes one failed row and the others stand.
    """
    task = order.task
    with single_thread():
        try:
            rows = _play_block(problem, order, folder)
        except (Exception, SystemExit):  # an algorithm may raise anything; who is at fault is found one by one
            rows = _play_one_by_one(problem, order, folder)
    write_cells(folder, task, rows)
    failures = [row for row in rows if row["status"] == "failed"]
    errors = tuple(f"{row['problem']} / {row['algorithm']} seed {row['seed']}: {row['error']}" for row in failures)
    return Receipt(task.name, len(rows) - len(failures), len(failures), task.rounds, errors)


def write_cells(folder: RunFolder, task: Task, rows: Sequence[dict[str, Any]]) -> None:
    """Publish the cells table of a task."""
    table = pa.Table.from_pylist([{name: row.get(name) for name in CELLS.names} for row in rows], schema=CELLS)

    def write(sink: Any) -> None:
        metadata = footer("cells", task.name, [row["cell"] for row in rows], len(rows), task.attempt)
        with open_writer(sink, "cells", metadata) as writer:
            writer.write_table(table)

    folder.publish(f"cells/{task.name}.parquet", write)


def _start(problem: Problem, order: Order, cells: Sequence[Cell]) -> tuple[Play, RoundRows]:
    variant = order.task.algorithm
    algorithm = params.build(ALGORITHMS.get(variant.name), variant.settings)
    seeds = [cell.seed for cell in cells]
    play = Play(problem, order.problem_name, algorithm, variant.name, seeds, order.task.horizon)
    return play, RoundRows(cells, order.task.horizon, order.keep)


def _play_block(problem: Problem, order: Order, folder: RunFolder) -> list[dict[str, Any]]:
    task = order.task
    play, rows = _start(problem, order, task.cells)

    def write(sink: Any) -> None:
        ids = [cell.id for cell in task.cells]
        with open_writer(sink, "rounds", footer("rounds", task.name, ids, rows.expected, task.attempt)) as writer:
            for chunk in play:
                rows.add(chunk)
                if rows.full:
                    writer.write_table(rows.table())
            if rows.waiting:
                writer.write_table(rows.table())
        if rows.written != rows.expected:
            raise RuntimeError(f"{rows.written} rows were recorded, {rows.expected} were expected")

    folder.publish(f"rounds/{task.name}.parquet", write)
    return _cell_rows(play, task.cells, order)


def _play_one_by_one(problem: Problem, order: Order, folder: RunFolder) -> list[dict[str, Any]]:
    task = order.task
    rows: list[dict[str, Any]] = []
    tables: list[pa.Table] = []
    good: list[str] = []
    for cell in task.cells:
        try:
            play, collected = _start(problem, order, [cell])
            for chunk in play:
                collected.add(chunk)
        except (Exception, SystemExit) as error:
            rows.append(failed_row(cell, order, error))
        else:
            rows += _cell_rows(play, [cell], order)
            tables.append(collected.table())
            good.append(cell.id)

    def write(sink: Any) -> None:
        count = sum(table.num_rows for table in tables)
        with open_writer(sink, "rounds", footer("rounds", task.name, good, count, task.attempt)) as writer:
            for table in tables:
                writer.write_table(table)

    folder.publish(f"rounds/{task.name}.parquet", write)
    return rows


def _cell_rows(play: Play, cells: Sequence[Cell], order: Order) -> list[dict[str, Any]]:
    metrics, instances = play.metrics, play.instances
    seconds = play.seconds / len(cells)
    declared = play.algorithm.declared_infeasible
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = []
    for s, cell in enumerate(cells):
        row = _identity(cell, order) | {name: _known(metrics.final[name][s]) for name in METRICS}
        first = int(metrics.first_feasible[s])
        row |= {
            "status": "ok",
            "f_star": _known(metrics.stars[0, s]),
            "f_plus": _known(metrics.stars[1, s]),
            "first_feasible": first if first > 0 else None,
            "longest_streak": int(metrics.longest_streak[s]),
            "infeasibility_declared": declared is not None and bool(declared[s]),
            "redraws": int(instances.redraws[s]),
            "seconds": seconds,
            "seconds_per_round": seconds / order.task.horizon,
            "peak_memory_mb": memory,
        }
        result.append(row)
    return result


def _known(value: float) -> float | None:
    """A number, or nothing where it is not known (R₊ on boxes)."""
    return None if np.isnan(value) else float(value)


def failed_row(cell: Cell, order: Order, error: BaseException) -> dict[str, Any]:
    """The row of a cell that could not be played."""
    message = str(error).splitlines()[0] if str(error) else ""
    text = message if isinstance(error, CbobenchError) else f"{type(error).__name__}: {message}"
    trace = "".join(traceback.format_exception(error))
    return _identity(cell, order) | {"status": "failed", "error": text, "traceback": trace}


def _identity(cell: Cell, order: Order) -> dict[str, Any]:
    return {
        "cell": cell.id,
        "problem": cell.problem,
        "algorithm": cell.algorithm,
        "seed": cell.seed,
        "horizon": cell.horizon,
        "spec": cell.spec,
        "host": platform.node(),
        "source": order.source,
        "attempt": order.task.attempt,
    }
