"""What of a run is done: from its folder alone, without Ray."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cbobench.errors import CbobenchError, DamagedRun
from cbobench.sweep.grid import Cell
from cbobench.sweep.provenance import source_hash
from cbobench.sweep.record import RunRecord
from cbobench.sweep.store import RunFolder

COLUMNS = ["cell", "status", "error", "source", "attempt"]


@dataclass(frozen=True)
class Played:
    """The published row of a cell that counts: the latest attempt, and the task that holds it."""

    cell: str
    task: str
    status: str
    error: str | None
    source: str
    attempt: int


def played(folder: RunFolder) -> dict[str, Played]:
    """The row that counts of every published cell, by id. A cell played twice counts once, by its latest attempt.

    Raises:
        DamagedRun: a file of the run is truncated or foreign, or a task's rounds are missing.
    """
    rounds = set(folder.names("rounds"))
    result: dict[str, Played] = {}
    for task in sorted(rounds):
        folder.footer("rounds", task)
    for task in folder.names("cells"):
        folder.footer("cells", task)
        for row in folder.read("cells", task, COLUMNS).to_pylist():
            if row["status"] == "ok" and task not in rounds:
                raise DamagedRun(
                    f"{folder.path('rounds')}/{task}.parquet is missing; remove cells/{task}.parquet to play it again"
                )
            one = Played(row["cell"], task, row["status"], row["error"], row["source"], row["attempt"])
            if row["cell"] not in result or one.attempt > result[row["cell"]].attempt:
                result[row["cell"]] = one
    return result


@dataclass
class Status:
    """Cells of a run by state; `stale` ones are done, by code that has changed since."""

    done: list[Cell] = field(default_factory=list)
    failed: list[tuple[Cell, str]] = field(default_factory=list)
    stale: list[Cell] = field(default_factory=list)
    missing: list[Cell] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in ("done", "failed", "stale", "missing")}


def status(folder: RunFolder) -> tuple[RunRecord, Status]:
    """The state of every cell that was asked for."""
    record = RunRecord.read(folder)
    rows = played(folder)
    now = current_sources(record)
    result = Status()
    for cell in record.cells().values():
        row = rows.get(cell.id)
        if row is None:
            result.missing.append(cell)
        elif row.status == "failed":
            result.failed.append((cell, row.error or ""))
        else:
            result.done.append(cell)
            if now[cell.problem, cell.algorithm] not in (None, row.source):
                result.stale.append(cell)
    return record, result


def current_sources(record: RunRecord) -> dict[tuple[str, str], str | None]:
    """Hash of today's code by (problem, algorithm) title; None where the code is not at hand."""
    result: dict[tuple[str, str], str | None] = {}
    for g in record.grids:
        problems: dict[str, Any] = {v.title: v.name for v in g.problems}
        algorithms: dict[str, Any] = {v.title: v.name for v in g.algorithms}
        for p, a in g.pairs:
            try:
                result[p, a] = source_hash(problems[p], algorithms[a])
            except CbobenchError:
                result[p, a] = None
    return result
