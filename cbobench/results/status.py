"""What of a run is done: from its folder alone, without Ray."""

from __future__ import annotations

from dataclasses import dataclass, field

from cbobench.errors import DamagedRun
from cbobench.results.folder import RunFolder
from cbobench.results.record import RunRecord
from cbobench.results.staleness import Freshness
from cbobench.suite.cells import Cell

COLUMNS = ["cell", "status", "error", "source", "libraries", "attempt"]


@dataclass(frozen=True, slots=True)
class Played:
    """The published row of a cell that counts: the latest attempt, and the task that holds it."""

    cell: str
    task: str
    status: str
    error: str | None
    source: str
    libraries: str
    attempt: int


def played(folder: RunFolder) -> dict[str, Played]:
    """The row that counts of every published cell, by id. A cell played twice counts once, by its latest attempt.

    Cells are listed before rounds, and a task publishes its rounds before its cells: whatever is published while this
    reads, the rounds of every cell that it has seen are there.

    Raises:
        DamagedRun: a file of the run is truncated or foreign, or a task's rounds are missing.
    """
    tasks = folder.names("cells")
    rounds = folder.names("rounds")
    for task in rounds:
        folder.footer("rounds", task)
    known = set(rounds)
    result: dict[str, Played] = {}
    for task in tasks:
        folder.footer("cells", task)
        columns = folder.read("cells", task, COLUMNS).to_pydict()
        if task not in known and "ok" in columns["status"]:
            raise DamagedRun(
                f"{folder.path('rounds')}/{task}.parquet is missing, its cells are there; restore it, or, when nothing "
                f"writes to the run, move cells/{task}.parquet away and run the suite again"
            )
        for cell, state, error, source, libraries, attempt in zip(*columns.values(), strict=True):
            if cell not in result or attempt > result[cell].attempt:
                result[cell] = Played(cell, task, state, error, source, libraries, attempt)
    return result


@dataclass
class Status:
    """Cells of a run by state.

    Of those that are done, `stale` ones were played by code that has changed since, `unchecked` ones by code that
    cannot be imported here, `other` ones with another NumPy or SciPy than this machine's.
    """

    done: list[Cell] = field(default_factory=list)
    failed: list[tuple[Cell, str]] = field(default_factory=list)
    stale: list[Cell] = field(default_factory=list)
    missing: list[Cell] = field(default_factory=list)
    unchecked: list[Cell] = field(default_factory=list)
    other: list[Cell] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in ("done", "failed", "stale", "missing")}


def status(folder: RunFolder) -> tuple[RunRecord, Status]:
    """The state of every cell that was asked for."""
    record = RunRecord.read(folder)
    rows = played(folder)
    result, freshness = Status(), Freshness()
    for cell in record.cells.values():
        row = rows.get(cell.id)
        if row is None:
            result.missing.append(cell)
        elif row.status == "failed":
            result.failed.append((cell, row.error or ""))
        else:
            result.done.append(cell)
            if freshness.stale(cell.pair, row):
                result.stale.append(cell)
            if freshness.unknown(cell.pair):
                result.unchecked.append(cell)
            if freshness.other_libraries(row):
                result.other.append(cell)
    return record, result
