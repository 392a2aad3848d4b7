"""Plays the cells of one task on a worker, streams their rounds to Parquet, and publishes. Returns a receipt."""

from __future__ import annotations

import hashlib
import platform
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from cbobench.errors import CbobenchError, Misuse
from cbobench.play.block import start, summaries
from cbobench.play.failure import describe_error, is_timeout, reraise_interrupt, safe_text
from cbobench.play.isolation import captured_output, default_warnings, isolate_play
from cbobench.play.play import Play
from cbobench.play.watch import (
    GivenBack,
    NoWatchdog,
    TooLong,
    Watchdog,
    read_stacks,
    stacks_path,
    watch_play,
    watch_speed,
)
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.results.lease import refuse_unshared_folder
from cbobench.results.provenance import cpu_kind
from cbobench.results.schema import TableWriter, make_footer, schema
from cbobench.results.source import libraries, source_hash
from cbobench.results.store import StoreFailure
from cbobench.suite.cells import Cell, Pair
from cbobench.suite.settings import ONE, Demand
from cbobench.suite.variants import canonical
from cbobench.threads import single_thread

INSTALL = "install the same on every machine"
SHIP = f"{INSTALL}, or send this machine's with --ship"


@dataclass(frozen=True)
class Task:
    """A block of cells that share problem and algorithm, for one worker.

    Attributes:
        pair: what is played.
        cells: in the order of their seeds.
        keep: how many rounds are recorded, None for all.
        source, libraries: the code that must play it (see `cbobench.results.source`).
        attempt: 1, or more where cells are played again.
        audit: whether the theory is audited beside the play.
        timeout: seconds that a cell may take, None where the suite does not say.
        give_back: where its first seconds say that it will take longer than so many, it is not played on (`TooLong`).
        demand: what it takes of a machine.
    """

    pair: Pair
    cells: tuple[Cell, ...]
    keep: int | None
    source: str
    libraries: str
    attempt: int = 1
    audit: bool = False
    timeout: float | None = None
    give_back: float | None = None
    demand: Demand = ONE

    @cached_property
    def name(self) -> str:
        """File name of its results, fixed by its cells and attempt."""
        digest = hashlib.sha256(canonical([self.attempt, *[cell.id for cell in self.cells]]).encode()).hexdigest()[:12]
        names = (self.pair.problem.name, self.pair.algorithm.name)
        words = [re.sub(r"[^\w-]+", "_", name).lstrip("_")[:60] for name in names]
        return f"{words[0]}.{words[1]}.{self.cells[0].seed}-{self.cells[-1].seed}.{digest}"

    @property
    def horizon(self) -> int:
        return self.cells[0].horizon

    @property
    def rounds(self) -> int:
        """Seed-rounds to play."""
        return len(self.cells) * self.horizon

    def halves(self) -> list[Task]:
        """The two halves of a task of several cells."""
        middle = len(self.cells) // 2
        return [replace(self, cells=some) for some in (self.cells[:middle], self.cells[middle:])]


@dataclass(frozen=True)
class Receipt:
    """What the driver learns of a task: counts and one line per failure, never data.

    Attributes:
        seconds: how long it took, where known.
        printed: the first line of what it printed, where that was not shown.
    """

    task: str
    ok: int
    failed: int
    rounds: int
    errors: tuple[str, ...]
    seconds: float | None = None
    printed: str = ""


@dataclass(frozen=True)
class WorkerCrashed:
    """A task that came to nothing: its worker died while it played, or it took too long.

    Attributes:
        how: what its cell did, if there is but one.
        trace: stacks, where they are known.
        hung: whether it was ended for that.
    """

    how: str
    trace: str = ""
    hung: bool = False


class OtherCode(CbobenchError):
    """A worker has other code or libraries than the driver that planned the sweep."""


def refuse_other_code(problem: str, algorithm: str, label: str, source: str, wanted: str) -> None:
    """Raise unless this process would play a pair with the driver's code.

    Args:
        problem, algorithm: registered names or import paths.
        label: of the pair, for the message.
        source, wanted: the driver's code and libraries (see `cbobench.results.source`).

    Raises:
        OtherCode: another cbobench, another module of the user's or none, other libraries.
    """
    here = f"worker {platform.node()}"
    try:
        found = source_hash(problem, algorithm)
    except Misuse as error:
        raise OtherCode(f"{here} cannot play {label}: {error}; {SHIP}, then run again") from error
    for what, mine, drivers, then in (
        ("code", found, source, SHIP),
        ("libraries", libraries(algorithm), wanted, INSTALL),
    ):
        if mine != drivers:
            raise OtherCode(
                f"{here} has other {what} for {label}: {mine}, the driver has {drivers}; {then}, then run again"
            )


def explain_crash(folder: RunFolder, task: Task, how: str) -> WorkerCrashed:
    """Say how a worker died: it hung if it has written its stacks, else it died as the caller says.

    Its temporary files are removed.
    """
    stacks = read_stacks(folder, task.name)
    folder.remove_temporary([task.name])  # now: the driver may write under that name as soon as it hears of it
    if not stacks:
        return WorkerCrashed(how)
    seconds, _, stacks = stacks.partition("\n")
    return WorkerCrashed(f"timed out after {seconds} s, and could not be interrupted", stacks, hung=True)


def play_task_on_worker(problem: Problem, task: Task, folder: RunFolder) -> Receipt | WorkerCrashed | TooLong:
    """`play_task` on a worker, after a check that it has the driver's code.

    Raises:
        OtherCode: another cbobench, another module of the user's, other libraries.
        StoreFailure: another folder than the driver's.
    """
    refuse_unshared_folder(folder)
    names = (task.pair.problem.name, task.pair.algorithm.name)
    refuse_other_code(*names, task.pair.label, task.source, task.libraries)
    with default_warnings(), captured_output() as printed:
        answer = play_task(problem, task, folder, stacks_path(folder, task.name))
    return replace(answer, printed=printed.line()) if isinstance(answer, Receipt) else answer


def play_task(
    problem: Problem, task: Task, folder: RunFolder, report: Path | None = None
) -> Receipt | WorkerCrashed | TooLong:
    """Play a task and publish its rounds, then its cells.

    The cells advance in lock step. If anything is raised, each cell is played alone (the results are the same bits),
    so that one bad cell becomes one failed row and the others stand. What a play changes in this process is put back.
    Several cells that hang are given back (`WorkerCrashed`), one that does is a failed row.

    Args:
        report: where to write what this process did as it ended a play that cannot be interrupted; None where it must
            not end.
    """
    began = time.monotonic()
    audited: list[dict[str, Any]] = []
    with single_thread():
        try:
            with _guard_play(task, task.cells, folder, report) as watch:
                rows = _play_block(problem, task, folder, audited, watch)
        except GivenBack as given:
            return given.answer
        except StoreFailure:  # no fault of a cell
            raise
        except BaseException as error:  # an algorithm may raise anything; who is at fault is found one by one
            reraise_interrupt(error)
            if is_timeout(error) and len(task.cells) > 1:
                return WorkerCrashed(describe_error(error)[0])
            audited.clear()
            if is_timeout(error):
                rows = [failed_row(task.cells[0], task, error)]
            else:
                rows = _play_one_by_one(problem, task, folder, audited, report)
    if task.audit:
        _publish(folder, "audit", task, audited)
    return replace(publish_cells(folder, task, rows), seconds=time.monotonic() - began)


@contextmanager
def _guard_play(
    task: Task, cells: Sequence[Cell], folder: RunFolder, report: Path | None
) -> Iterator[Watchdog | NoWatchdog]:
    """Around the play of some cells: what they change is put back, and if they hang they are ended."""
    names = (task.pair.problem.name, task.pair.algorithm.name)
    seeds = (cell.seed for cell in cells)
    with isolate_play(*names, *seeds), watch_play(task.timeout, len(cells), task.horizon, report) as watch:
        yield watch


def publish_cells(folder: RunFolder, task: Task, rows: Sequence[dict[str, Any]]) -> Receipt:
    """Publish the cells table of a task."""
    _publish(folder, "cells", task, rows)
    return _receipt(task, rows)


def published_receipt(folder: RunFolder, task: Task) -> Receipt:
    """The receipt of a task whose results are there, though no worker said so."""
    mine = {cell.id for cell in task.cells}  # a shard may have replaced them, which holds others, too
    rows = folder.read("cells", task.name, ["cell", "seed", "status", "error"]).to_pylist()
    return _receipt(task, [row for row in rows if row["cell"] in mine])


def _receipt(task: Task, rows: Sequence[dict[str, Any]]) -> Receipt:
    failures = [row for row in rows if row["status"] == "failed"]
    errors = tuple(f"{task.pair.label} seed {row['seed']}: {row['error']}" for row in failures)
    return Receipt(task.name, len(rows) - len(failures), len(failures), task.rounds, errors)


def _publish(folder: RunFolder, kind: str, task: Task, rows: Sequence[dict[str, Any]]) -> None:
    """Publish a table with one row per cell."""
    columns = schema(kind)
    table = pa.Table.from_pylist([{name: row.get(name) for name in columns.names} for row in rows], schema=columns)

    def write(sink: Any) -> None:
        metadata = make_footer(kind, task.name, [row["cell"] for row in rows], len(rows), task.attempt)
        with TableWriter(sink, kind, metadata) as writer:
            writer.write_table(table)

    folder.publish(f"{kind}/{task.name}.parquet", write)


class Observer(Protocol):
    """Looks on at a play (`Play.watch`) and has a row per seed in the end."""

    def rows(self) -> list[dict[str, Any]]: ...


def start_audit(play: Play, keep: int | None) -> Observer:
    """An observer of the theory of the papers, which the round loop does not import."""
    observer: Observer = import_module("cbobench.papers.audit").Audit(play, keep)
    return observer


def _play_block(
    problem: Problem, task: Task, folder: RunFolder, audited: list[dict[str, Any]], watch: Watchdog | NoWatchdog
) -> list[dict[str, Any]]:
    play, rows = start(problem, task.cells, task.horizon, task.keep)
    watch.play = play
    audit = start_audit(play, task.keep) if task.audit else None
    watch_speed(play, task.give_back)

    found: list[dict[str, Any]] = []

    def write(sink: Any) -> None:
        ids = [cell.id for cell in task.cells]
        try:
            with TableWriter(
                sink, "rounds", make_footer("rounds", task.name, ids, rows.expected, task.attempt)
            ) as writer:
                for chunk in play:
                    rows.add(chunk)
                    if rows.full:
                        writer.write_table(rows.table())
                if rows.waiting:
                    writer.write_table(rows.table())
            found.extend(summaries(play))
            if audit is not None:
                audited.extend(_identity(cell, task) | row for cell, row in zip(task.cells, audit.rows(), strict=True))
            if rows.written != rows.expected:
                raise RuntimeError(f"{rows.written} rows were recorded, {rows.expected} were expected")
        finally:
            watch.stop()

    folder.publish(f"rounds/{task.name}.parquet", write)
    return [_identity(cell, task) | known for cell, known in zip(task.cells, found, strict=True)]


def _play_one_by_one(
    problem: Problem, task: Task, folder: RunFolder, audited: list[dict[str, Any]], report: Path | None
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    tables: list[pa.Table] = []
    good: list[str] = []
    for cell in task.cells:
        try:
            with _guard_play(task, [cell], folder, report) as watch:
                play, collected = start(problem, [cell], task.horizon, task.keep)
                watch.play = play
                audit = start_audit(play, task.keep) if task.audit else None
                for chunk in play:
                    collected.add(chunk)
                found, table = summaries(play), collected.table()
                seen = [] if audit is None else [_identity(cell, task) | audit.rows()[0]]
        except BaseException as error:
            reraise_interrupt(error)
            rows.append(failed_row(cell, task, error))
        else:
            rows.append(_identity(cell, task) | found[0])
            audited += seen
            tables.append(table)
            good.append(cell.id)

    def write(sink: Any) -> None:
        count = sum(table.num_rows for table in tables)
        with TableWriter(sink, "rounds", make_footer("rounds", task.name, good, count, task.attempt)) as writer:
            for table in tables:
                writer.write_table(table)

    folder.publish(f"rounds/{task.name}.parquet", write)
    return rows


def failed_row(cell: Cell, task: Task, error: BaseException, stacks: str = "") -> dict[str, Any]:
    """The row of a cell that could not be played; `stacks` stand for the traceback of what did not end by itself."""
    text, trace = describe_error(error)
    trace = safe_text(stacks) if stacks else trace
    return _identity(cell, task) | {"status": "failed", "error": text, "traceback": trace}


def _identity(cell: Cell, task: Task) -> dict[str, Any]:
    return {
        "cell": cell.id,
        "problem": cell.pair.problem.title,
        "algorithm": cell.pair.algorithm.title,
        "seed": cell.seed,
        "horizon": cell.horizon,
        "spec": cell.spec,
        "host": platform.node(),
        "cpu": cpu_kind(),
        "source": task.source,
        "libraries": task.libraries,
        "attempt": task.attempt,
    }
