"""What of a run is done: from its folder alone, without Ray."""

from __future__ import annotations

from dataclasses import dataclass, field

from cbobench.errors import DamagedRun
from cbobench.results.folder import REPAIR, RunFolder, Unfinished, Vanished
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
    reads, the rounds of every cell that it has seen are there. A file that goes meanwhile was never listed.

    Raises:
        DamagedRun: a file of the run is truncated or foreign, or a task's rounds are missing.
    """
    tasks = dict.fromkeys(folder.names("cells"))
    known = set()
    for task in folder.names("rounds"):
        try:
            folder.footer("rounds", task)
            known.add(task)
        except Vanished:
            pass
        except Unfinished:
            if task in tasks:
                raise  # else its cells are played again, and it is written again
    result: dict[str, Played] = {}
    bare: dict[str, tuple[str, int]] = {}
    for task in tasks:
        try:
            folder.footer("cells", task)
            columns = folder.read("cells", task, COLUMNS).to_pydict()
        except Vanished:
            continue
        for cell, state, error, source, libraries, attempt in zip(*columns.values(), strict=True):
            if state == "ok" and task not in known:
                bare[cell] = task, attempt
            elif cell not in result or attempt > result[cell].attempt:
                result[cell] = Played(cell, task, state, error, source, libraries, attempt)
    for cell, (task, attempt) in bare.items():
        if cell not in result or attempt > result[cell].attempt:  # else a straggler of a call that died
            raise DamagedRun(
                f"{folder.path('rounds')}/{task}.parquet is missing, its cells are there; restore it, or, when nothing "
                f"writes to the run: {REPAIR}"
            )
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
