"""Runs made by hand: their cells and rounds are what a test says, so that every number of a table
is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cbobench.algorithms import ALGORITHMS
from cbobench.metrics import METRICS
from cbobench.play.task import Task, publish_cells
from cbobench.results.folder import RunFolder, open_run
from cbobench.results.manifest import Manifest
from cbobench.results.schema import TableWriter, make_footer, schema
from cbobench.results.source import libraries, source_hash
from cbobench.suite.cells import Cell, Grid, Pair
from cbobench.suite.variants import Variant

Columns = Mapping[str, Sequence[Any]]
PLAYER = "random"
PROBLEM = "rkhs-1d"


def variant(name: str, label: str, **values: Any) -> Variant:
    """A problem or algorithm whose title holds its label, and no more of its values."""
    arguments = {"called": label}
    return Variant(name, arguments, arguments | values, label, arguments)


def make(
    folder: Path,
    cells: Mapping[tuple[str, str], Columns],
    *,
    seeds: Sequence[int],
    horizon: int = 100,
    failed: Mapping[tuple[str, str], Sequence[int]] | None = None,
    rounds: Mapping[tuple[str, str], Columns] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write a run.

    Args:
        cells: columns of the cells, one value per seed, by (problem, algorithm); columns that are
            not given are 0.
        failed: seeds of cells that failed.
        rounds: columns of the recorded rounds, (seeds, rounds) each, with `t` (rounds,); by
            (problem, algorithm).
        facts: parameters of every problem.
    """
    names = {
        name: list(dict.fromkeys(key[i] for key in cells))
        for i, name in enumerate(("problem", "algorithm"))
    }
    problems = {name: variant(PROBLEM, name, **(facts or {})) for name in names["problem"]}
    # no method stands under the name of another one
    algorithms = {
        name: variant(name if name in ALGORITHMS.names() else PLAYER, name)
        for name in names["algorithm"]
    }
    pairs = {key: Pair(problems[key[0]], algorithms[key[1]]) for key in cells}
    grid = Grid(
        tuple(problems.values()),
        tuple(algorithms.values()),
        horizon,
        tuple(seeds),
        tuple(pairs.values()),
    )
    at = open_run(folder)
    Manifest("made", "", None, (grid,), ({},)).write(at)
    for key, pair in pairs.items():
        lost = set((failed or {}).get(key, ()))
        source = source_hash(PROBLEM, pair.algorithm.name)
        task = Task(tuple(Cell(pair, horizon, seed) for seed in seeds), None, source, libraries())
        write_rounds(at, task, (rounds or {}).get(key), lost)
        rows = []
        for i, cell in enumerate(task.cells):
            row = {
                "cell": cell.id,
                "problem": pair.problem.title,
                "algorithm": pair.algorithm.title,
                "seed": cell.seed,
                "horizon": horizon,
                "spec": cell.spec,
                "status": "failed" if cell.seed in lost else "ok",
                "source": source,
                "libraries": libraries(),
                "attempt": 1,
                "error": "broken" if cell.seed in lost else None,
            }
            if cell.seed not in lost:
                row |= {"seconds": 1.0, "seconds_per_round": 1e-6, "f_star": 1.0}
                row |= dict.fromkeys(METRICS, 0.0) | {"first_feasible": 1, "longest_streak": 0}
                row |= {name: values[i] for name, values in cells[key].items()}
            rows.append(row)
        publish_cells(at, task, rows)
    return folder


def asked_again(
    folder: Path,
    first: Callable[[], object],
    horizon: int,
    then: Sequence[Callable[[], object]] = (),
) -> Path:
    """A run that was played, and of which another horizon was then asked.

    Args:
        first: makes the run in this folder.
        then: make what is played of the other horizon, likewise.
    """
    first()
    at = open_run(folder)
    record = Manifest.read(at)
    for make_more in then:
        make_more()
    record.append_call(replace(record.grids[-1], horizon=horizon), "", {}).write(at)
    return folder


def write_rounds(at: RunFolder, task: Task, columns: Columns | None, lost: set[int]) -> None:
    """The recorded rounds of a task; none where no columns are given."""
    fields, good = schema("rounds"), [i for i, c in enumerate(task.cells) if c.seed not in lost]
    values = dict(columns or {"t": []})
    t = np.asarray(values.pop("t"), dtype=np.int64)
    frames = [pd.DataFrame(columns=fields.names)]
    for i in good:
        cell = task.cells[i]
        named = {
            "cell": cell.id,
            "problem": cell.pair.problem.title,
            "algorithm": cell.pair.algorithm.title,
            "seed": cell.seed,
        }
        recorded = {name: np.asarray(rows[i], dtype=float) for name, rows in values.items()}
        frames.append(pd.DataFrame({"t": t, **named, **recorded}))
    frame = pd.concat(frames)
    table = pa.Table.from_pandas(frame, fields, preserve_index=False)
    footer = make_footer("rounds", task.name, [c.id for c in task.cells], len(table))

    def write(sink: Any) -> None:
        with TableWriter(sink, fields, footer) as writer:
            writer.write_table(table)

    at.publish(f"rounds/{task.name}.parquet", write)
