"""Plays the cells of one task on a worker, streams their rounds to Parquet, and publishes them.
Returns a receipt.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from cbobench.arithmetic import arithmetic_kind
from cbobench.errors import CbobenchError, Interrupted, Misuse, TimedOut, find_causes
from cbobench.play.block import RoundRows, start, summaries
from cbobench.play.isolation import (
    Company,
    captured_output,
    default_warnings,
    find_company,
    isolate_play,
)
from cbobench.play.play import Observer, Play
from cbobench.play.watchdog import (
    Heartbeat,
    ReturnedTask,
    TaskReturned,
    watch_speed,
)
from cbobench.problems.base import Problem
from cbobench.problems.simulators.simulator import Simulator
from cbobench.results.folder import RunFolder
from cbobench.results.lock import refuse_unshared_folder
from cbobench.results.provenance import cpu_kind
from cbobench.results.rounds import Digests
from cbobench.results.schema import TableWriter, make_footer, schema
from cbobench.results.simulations import SimulationStore
from cbobench.results.source import import_libraries, libraries, module_hashes, source_hash
from cbobench.results.store import StoreFailure, leave_fork
from cbobench.suite.cells import Cell, Pair
from cbobench.suite.settings import ONE, Demand
from cbobench.suite.variants import canonical
from cbobench.threads import single_thread
from cbobench.words import list_names

INSTALL = "install the same on every machine"
SHIP = f"{INSTALL}, or send this machine's with --ship"
# where files lie that are no place of a user's error
OURS = Path(__file__).parents[1]
# characters that an error may take in a row of the cells
LONGEST_LINE = 300
LONGEST_TRACE = 20_000

WriteTable = Callable[[pa.Table], None]
CellRows = list[dict[str, Any]]
"""A row per cell of a task."""


@dataclass(frozen=True)
class Task:
    """A block of cells that play in lock step on one worker.

    Attributes:
        cells: of one problem, algorithm and horizon; parameters differ only where they may vary
            within a block.
        keep: number of recorded rounds, None for all.
        source, libraries: the required code (see `cbobench.results.source`).
        attempt: 1, or more if cells are played again.
        timeout: seconds per cell, None if the suite sets none.
        return_after: seconds; a task that will take longer is returned soon after its start
            (`ReturnedTask`).
        demand: CPUs and memory that it needs.
    """

    cells: tuple[Cell, ...]
    keep: int | None
    source: str
    libraries: str
    attempt: int = 1
    timeout: float | None = None
    return_after: float | None = None
    demand: Demand = ONE

    @cached_property
    def name(self) -> str:
        """File name of its results, fixed by its cells and attempt."""
        digest = hashlib.sha256(
            canonical([self.attempt, *[cell.id for cell in self.cells]]).encode()
        ).hexdigest()[:12]
        names = (self.pair.problem.name, self.pair.algorithm.name)
        # An import path may be long, and hold signs that no file's name should.
        parts = [re.sub(r"[^\w-]+", "_", name).lstrip("_")[:60] for name in names]
        seeds = [cell.seed for cell in self.cells]
        return f"{parts[0]}.{parts[1]}.{min(seeds)}-{max(seeds)}.{digest}"

    @property
    def pair(self) -> Pair:
        """The pair of the first cell; all cells have its problem, and the names of both."""
        return self.cells[0].pair

    @property
    def company(self) -> Company:
        """Whose code its play imports."""
        return find_company(self.pair.problem.name, self.pair.algorithm.name)

    @property
    def horizon(self) -> int:
        return self.cells[0].horizon

    @property
    def rounds(self) -> int:
        """Seed-rounds to play."""
        return len(self.cells) * self.horizon

    def halves(self) -> list[Task]:
        """Return the two halves of a task of several cells."""
        middle = len(self.cells) // 2
        return [replace(self, cells=cells) for cells in (self.cells[:middle], self.cells[middle:])]


@dataclass(frozen=True)
class Receipt:
    """A task's report to the driver: counts and one line per failure, never data.

    Attributes:
        seconds: duration, if known.
        printed: the first printed line, if printed output was discarded.
        notes: lines for the user.
    """

    task: str
    ok: int
    failed: int
    rounds: int
    errors: tuple[str, ...]
    seconds: float | None = None
    printed: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkerCrashed:
    """A task without a result: its worker died during the play, or it took too long.

    Attributes:
        how: what the cell did, if there is only one.
        hung: whether it was ended because it hung.
    """

    how: str
    hung: bool = False


class OtherCode(CbobenchError):
    """A worker has other code or libraries than the driver that planned the sweep.

    Attributes:
        pair: names of problem and algorithm.
        hashes: of the worker's code by module (`module_hashes`); empty where its code is the same
            or not to be had.
    """

    pair: tuple[str, str] = ("", "")
    hashes: Mapping[str, str] = MappingProxyType({})  # of the class, whose objects get their own

    def name_modules(self) -> OtherCode:
        """Return it with the names of the modules whose code is another in this process, the
        driver.
        """
        if not self.hashes:
            return self
        hashes = module_hashes(*self.pair)
        names = sorted(
            name for name in {*hashes, *self.hashes} if hashes.get(name) != self.hashes.get(name)
        )
        return OtherCode(
            f"{self}; other code is in {list_names(names, 3) or 'the list of what counts'}"
        )


def refuse_other_code(
    problem: str, algorithm: str, label: str, source: str, expected_libraries: str
) -> None:
    """Raise unless this process would play a pair with the driver's code.

    Args:
        problem, algorithm: registered names or import paths.
        label: of the pair, for the message.
        source, expected_libraries: the driver's code and libraries (see `cbobench.results.source`).

    Raises:
        OtherCode: another cbobench, another or missing module of the user's, other libraries.
    """
    # A module that is missing has no hash.
    worker = f"worker {platform.node()}"
    try:
        source_here = source_hash(problem, algorithm)
    except Misuse as error:
        raise OtherCode(f"{worker} cannot play {label}: {error}; {SHIP}, then run again") from error
    for noun, actual, expected, remedy in (
        ("code", source_here, source, SHIP),
        ("libraries", libraries(algorithm), expected_libraries, INSTALL),
    ):
        if actual != expected:
            refusal = OtherCode(
                f"{worker} has other {noun} for {label}: {actual}, the driver has {expected}; "
                f"{remedy}, then run again"
            )
            if noun == "code":  # the driver says which modules differ
                refusal.pair = (problem, algorithm)
                refusal.hashes = module_hashes(problem, algorithm)
            raise refusal


def play_task_on_worker(
    problem: Problem, task: Task, folder: RunFolder, beat: Heartbeat | None = None
) -> Receipt | ReturnedTask:
    """`play_task` on a worker, after checking that it has the driver's code.

    Raises:
        OtherCode: another cbobench, another module of the user's, other libraries.
        StoreFailure: another folder than the driver's.
    """
    refuse_unshared_folder(folder)
    names = (task.pair.problem.name, task.pair.algorithm.name)
    refuse_other_code(*names, task.pair.label, task.source, task.libraries)
    with default_warnings(), captured_output() as printed:
        answer = play_task(problem, task, folder, beat)
    if isinstance(answer, Receipt):
        return replace(answer, printed=printed.line())
    return answer


def play_task(
    problem: Problem, task: Task, folder: RunFolder, beat: Heartbeat | None = None
) -> Receipt | ReturnedTask:
    """Play a task and publish its rounds, then its cells.

    The cells advance in lock step. If anything is raised, each cell is played alone with the same
    bits, so that only the faulty cell becomes a failed row. What loads with a library is loaded
    before, as some change how the processor rounds.

    Args:
        beat: hears of each play, and interrupts it at the task's time limit.
    """
    beat = Heartbeat() if beat is None else beat
    with suppress(Exception):  # which the play raises again
        import_libraries(task.pair.algorithm.name)
    if isinstance(problem, Simulator):
        store = SimulationStore(folder, task.pair.problem.name)
        with problem.kept_in(store):
            answer = _play_task(problem, task, folder, beat)
        notes = tuple(store.describe_damage())
        if notes and isinstance(answer, Receipt):
            return replace(answer, notes=notes)
        return answer
    return _play_task(problem, task, folder, beat)


def _play_task(
    problem: Problem, task: Task, folder: RunFolder, beat: Heartbeat
) -> Receipt | ReturnedTask:
    # All cells in lock step, which is many times faster than one by one.
    rows: CellRows | None = None
    began = time.monotonic()
    with single_thread():
        try:
            with _begun(task, task.cells, beat):
                rows = _play_block(problem, task, folder, beat)
        except TaskReturned as returned:
            return returned.answer
        except StoreFailure:  # not the fault of a cell
            raise
        # an algorithm may raise any error; the faulty cell is found one by one
        except BaseException as error:
            reraise_interrupt(error)
            if len(task.cells) == 1:
                rows = [failed_row(task.cells[0], task, error)]
        # not while the block's error is handled, which would be the context of theirs
        if rows is None:
            rows = _play_one_by_one(problem, task, folder, beat)
    receipt = publish_cells(folder, task, rows)
    return replace(receipt, seconds=time.monotonic() - began)


@contextmanager
def _begun(task: Task, cells: Sequence[Cell], beat: Heartbeat, before: int = 0) -> Iterator[None]:
    """Play some cells inside the block; a fork that their code has made ends with it.

    Args:
        before: how many of the task's cells were played before.
    """
    origin = os.getpid()
    names = (task.pair.problem.name, task.pair.algorithm.name)
    allowed = inf if task.timeout is None else task.timeout * len(cells)
    beat.begin(allowed, before * task.horizon)
    try:
        with isolate_play(*names, *(cell.seed for cell in cells)):
            yield
    finally:
        beat.rest()
        # both processes would go on with the same task
        leave_fork(origin)


def publish_cells(folder: RunFolder, task: Task, rows: Sequence[dict[str, Any]]) -> Receipt:
    """Publish the cells table of a task."""
    columns = schema("cells")
    table = pa.Table.from_pylist([*rows], schema=columns)
    cells = [row["cell"] for row in rows]
    _publish(folder, "cells", task, cells, columns, len(rows), lambda write: write(table))
    return _receipt(task, rows)


def published_receipt(folder: RunFolder, task: Task) -> Receipt:
    """Return the receipt of a task whose results exist although no worker reported them."""
    rows = folder.read("cells", task.name, ["cell", "seed", "status", "error"])
    return _receipt(task, rows.to_pylist())


def _receipt(task: Task, rows: Sequence[dict[str, Any]]) -> Receipt:
    failures = [row for row in rows if row["status"] == "failed"]
    cells = {cell.id: cell for cell in task.cells} if failures else {}
    errors = tuple(f"{cells[row['cell']]}: {row['error']}" for row in failures)
    return Receipt(
        task=task.name,
        ok=len(rows) - len(failures),
        failed=len(failures),
        rounds=task.rounds,
        errors=errors,
    )


def _publish(
    folder: RunFolder,
    kind: str,
    task: Task,
    cells: list[str],
    columns: pa.Schema,
    count: int,
    play: Callable[[WriteTable], None],
) -> None:
    """Publish a file of a task.

    Args:
        cells: ids of the cells in it.
        columns, count: of its rows.
        play: gives the tables to what it is called with; the file appears when it has returned.
    """

    def write(sink: Any) -> None:
        with TableWriter(sink, columns, make_footer(kind, task.name, cells, count)) as writer:
            play(writer.write_table)

    folder.publish(f"{kind}/{task.name}.parquet", write)


def _play_rounds(
    task: Task,
    play: Play,
    rounds: RoundRows,
    write_table: WriteTable,
    observers: Sequence[Observer] = (),
) -> CellRows:
    """Play cells of a task up to the horizon, and write their rounds."""
    origin = os.getpid()
    digests = Digests()

    def write_waiting() -> None:
        table = rounds.table()
        digests.add(table)
        write_table(table)

    # A fork that a round has made must not write on: looked for at each choice, and at the end.
    for chunk in play.chunks([lambda t: leave_fork(origin), *observers]):
        leave_fork(origin)
        rounds.add(chunk)
        # Handed on by the row group, as the rounds of a long play may not fit into memory.
        if rounds.full:
            write_waiting()
    if rounds.waiting:
        write_waiting()
    # The footer, which was made first, says how many.
    if rounds.written != rounds.expected:
        raise RuntimeError(f"{rounds.written} rows were recorded, {rounds.expected} were expected")
    return [
        _identity(cell, task) | row | {"digest": digests.finish(cell.id, row)}
        for cell, row in zip(rounds.cells, summaries(play), strict=True)
    ]


def _play_block(problem: Problem, task: Task, folder: RunFolder, beat: Heartbeat) -> CellRows:
    """Play all cells of a task together, and publish their rounds as they come."""
    play, rounds = start(problem, task.cells, task.horizon, task.keep)
    beat.play = play
    return_after = task.return_after
    rows: CellRows = []
    if return_after is None:
        observers = []
    else:
        observers = [watch_speed(return_after, task.horizon, len(task.cells))]

    def play_rounds(write_table: WriteTable) -> None:
        nonlocal rows
        try:
            rows = _play_rounds(task, play, rounds, write_table, observers)
        finally:
            # The play is over: a store that takes its time is no hang.
            beat.rest()

    ids = [cell.id for cell in task.cells]
    _publish(folder, "rounds", task, ids, rounds.schema, rounds.expected, play_rounds)
    return rows


def _play_one_by_one(problem: Problem, task: Task, folder: RunFolder, beat: Heartbeat) -> CellRows:
    """Play each cell of a task alone, so that only those that fail become failed rows."""
    # Rounds are kept until all are played: a file begins with the cells in it, which did not fail.
    rows: CellRows = []
    tables: list[pa.Table] = []
    ids: list[str] = []
    for before, cell in enumerate(task.cells):
        cell_tables: list[pa.Table] = []
        try:
            with _begun(task, [cell], beat, before):
                play, rounds = start(problem, [cell], task.horizon, task.keep)
                beat.play = play
                ok_rows = _play_rounds(task, play, rounds, cell_tables.append)
        # whatever a user's code raises is the cell's failure, but for an interrupt
        except BaseException as error:
            reraise_interrupt(error)
            rows.append(failed_row(cell, task, error))
        else:
            rows += ok_rows
            tables += cell_tables
            ids.append(cell.id)

    def write_all(write_table: WriteTable) -> None:
        for table in tables:
            write_table(table)

    # What the play left out of the columns, the file leaves out.
    columns = tables[0].schema if tables else schema("rounds")
    count = sum(table.num_rows for table in tables)
    _publish(folder, "rounds", task, ids, columns, count, write_all)
    return rows


def failed_row(cell: Cell, task: Task, error: BaseException) -> dict[str, Any]:
    """Return the row of a failed cell."""
    text, trace = describe_error(error)
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
        "arithmetic": arithmetic_kind(),
        "source": task.source,
        "libraries": task.libraries,
        "attempt": task.attempt,
    }


def reraise_interrupt(error: BaseException) -> None:
    """Raise `Interrupted` again if it caused an error: a cell may convert it, or fail while it
    passes.
    """
    for cause in find_causes(error):
        if isinstance(cause, Interrupted):
            raise cause


def describe_error(error: BaseException) -> tuple[str, str]:
    """Return one line with the error and its round, and the traceback."""
    kind = type(error).__name__
    try:
        lines = str(error)[: 10 * LONGEST_LINE].strip().splitlines()
        message = lines[0] if lines else ""
    except BaseException as another:  # the user's code makes its text
        reraise_interrupt(another)
        message = "(its text cannot be shown)"
    # Our own errors say all in their message; others need their kind and their place.
    text = message
    if not isinstance(error, CbobenchError | TimedOut):
        text = kind
        if message:
            text = f"{kind}: {message}"
        text += _place(error)
    # A play notes its round; the user's code may have put anything else there.
    notes = getattr(error, "__notes__", ())
    rounds = [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    try:
        trace = "".join(traceback.format_exception(error))
    except BaseException as another:
        reraise_interrupt(another)
        trace = f"{kind} (its traceback cannot be shown)"
    return safe_line(": ".join([*rounds, text])), safe_text(trace)


def _place(error: BaseException) -> str:
    """Return the place in the user's own file where an error was raised, or ""."""
    place = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        if (
            path.suffix == ".py"
            and OURS not in path.parents
            and not {*path.parts} & {"site-packages", "dist-packages"}
        ):
            place = f" ({path.name}:{number})"
    return place


def safe_line(text: str) -> str:
    """Return a line that any terminal and file can hold: escaped and cut."""
    escaped = "".join(map(_escape_character, text[: LONGEST_LINE + 1]))
    if len(escaped) <= LONGEST_LINE:
        return escaped
    return escaped[: LONGEST_LINE - 4] + " ..."


def safe_text(text: str) -> str:
    """Do the same for several lines; of a long text keep its beginning and end."""
    if len(text) > LONGEST_TRACE:
        half = LONGEST_TRACE // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
    return "".join(c if c == "\n" else _escape_character(c) for c in text)


def _escape_character(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
