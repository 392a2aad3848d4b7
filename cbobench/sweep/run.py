"""A sweep from suite file to published results: plan, play, resume, extend, stop."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from cbobench import resources
from cbobench.errors import Misuse, one_line, unknown
from cbobench.problems.base import Problem
from cbobench.sweep import checks, grid, provenance
from cbobench.sweep import suite as suites
from cbobench.sweep.record import FILE, Grid, RunRecord
from cbobench.sweep.status import played
from cbobench.sweep.store import RunFolder
from cbobench.sweep.task import Order, Receipt, carry_out
from cbobench.sweep.variants import Suite

CLUSTER_CPUS = 64  # a guess, as a cluster may grow: it only decides how finely a run is cut
Again = Literal["failed", "stale"]


@dataclass(frozen=True)
class Plan:
    """What a sweep would do.

    Attributes:
        suite: validated.
        folder: the run.
        record: what `run.json` will say.
        orders: tasks still to play.
        cells: cells asked for by this call; done: those that need not be played.
    """

    suite: Suite
    folder: RunFolder
    record: RunRecord
    orders: list[Order]
    cells: int
    done: int

    @property
    def problems(self) -> list[Problem]:
        return [problem for _, problem in self.suite.problems]


@dataclass(frozen=True)
class Outcome:
    """What a sweep did."""

    folder: RunFolder
    cells: int
    played: int
    failed: int
    errors: tuple[str, ...]
    stopped: bool


def plan(
    suite: str | Path,
    *,
    out: str | Path | None = None,
    seeds: int | None = None,
    horizon: int | None = None,
    only: str | None = None,
    data: Path | None = None,
    cpus: int | None = None,
    address: str | None = None,
    block: int | None = None,
    again: Sequence[Again] = (),
    imports: bool = True,
    command: Sequence[str] = (),
) -> Plan:
    """Validate a suite and find what is still to be played. Writes nothing.

    Args:
        suite: a file, or the name of a shipped suite.
        out: run folder (path or URI); `runs/<suite>` by default.
        seeds, horizon: replace the file's.
        only: a glob over "problem/algorithm".
        data: folder with the original data sets.
        cpus: how many workers to cut blocks for; None for this machine's.
        address: of a cluster; blocks are then cut for many workers.
        block: seeds per task; chosen when a run begins and kept for its life.
        again: also play cells that failed, or that older code played.
        imports: whether import paths in the suite are allowed.
        command: the command line, for the record.

    Raises:
        Misuse: a wrong suite, or a folder that holds something else. DamagedRun: a broken file in the folder.
    """
    for name, number in (("seeds", seeds), ("horizon", horizon), ("block", block)):
        if number is not None and number < 1:
            raise Misuse(f"{name} is {number}; it must be at least 1")
    if cpus is not None and cpus < 0:
        raise Misuse(f"cpus is {cpus}; it must be at least 0 (0: in this process, without Ray)")
    if cpus == 0 and address is not None:
        raise Misuse("--cpus 0 plays in this process, --address on a cluster; give one of them")
    path = resources.find_suite(suite)
    loaded = suites.load(path, data=data, horizon=horizon, seeds=seeds, imports=imports)
    wanted = Grid.of(loaded, only, command)
    if not wanted.pairs:
        pairs = ", ".join(f"{g[0].problem}/{g[0].algorithm}" for g in grid.cells(loaded)[:6])
        raise Misuse(f"--only {only!r} matches nothing; pairs are {pairs}, ... (use * as a wildcard)")
    folder = RunFolder.at(Path("runs") / loaded.name if out is None else out)
    invocation = provenance.invocation(list(command))
    for word in again:
        if word not in ("failed", "stale"):
            raise unknown("kind of cell to play again", word, ("failed", "stale"))
    if folder.exists(FILE):
        record = RunRecord.read(folder).extended(wanted, loaded, invocation, folder.uri)
        rows = played(folder)
    else:
        _refuse_foreign(folder)
        workers = CLUSTER_CPUS if address is not None else cpus or os.cpu_count() or 1
        size = block or min(grid.block_size(len(wanted.pairs), len(loaded.seeds), workers), checks.memory_limit(loaded))
        record = RunRecord(loaded.name, loaded.about, loaded.record, size, (wanted,), (invocation,))
        rows = {}
    keys = {title: (p, a) for title, p, a in _names(loaded)}
    fresh = {pair: provenance.source_hash(*keys[pair]) for pair in wanted.pairs}
    cells = {cell.id: cell for cell in wanted.cells()}
    attempts = {row.cell: row.attempt for row in rows.values()}
    done = set()
    for row in rows.values():
        if row.cell not in cells:
            continue
        stale = row.source != fresh[cells[row.cell].problem, cells[row.cell].algorithm]
        if not (("failed" in again and row.status == "failed") or ("stale" in again and stale)):
            done.add(row.cell)
    tasks = grid.tasks(loaded, record.block, done, attempts, only)
    problem_names = [variant.name for variant, _ in loaded.problems]
    orders = [
        Order(task, problem_names[task.problem], loaded.record, fresh[task.cells[0].problem, task.cells[0].algorithm])
        for task in tasks
    ]
    return Plan(loaded, folder, record, orders, len(cells), len(done))


def _names(suite: Suite) -> Iterator[tuple[tuple[str, str], str, str]]:
    for problem, _ in suite.problems:
        for algorithm in suite.algorithms:
            yield (problem.title, algorithm.title), problem.name, algorithm.name


def _refuse_foreign(folder: RunFolder) -> None:
    """A folder without run.json must be empty or not there."""
    if folder.local and Path(folder.uri).exists():
        if not Path(folder.uri).is_dir():
            raise Misuse(f"{folder.uri} is a file; give a folder for the run")
        if any(not entry.name.startswith(".run.json.") for entry in Path(folder.uri).iterdir()):
            raise Misuse(f"{folder.uri} is not empty and not a run folder; give another --out")


def execute(
    todo: Plan,
    *,
    cpus: int | None = None,
    address: str | None = None,
    fail_fast: bool = False,
    on_receipt: Callable[[Receipt], None] = lambda receipt: None,
    when_played: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Play a plan.

    Args:
        cpus: workers on this machine (None for all), or 0 to play in this process without Ray.
        address: of a Ray cluster, instead of this machine.
        fail_fast: stop at the first failed cell.
        on_receipt: called with each receipt as it comes.
        when_played: called with the outcome as soon as it is known, before Ray is shut down (which takes a second).

    Ctrl-C or SIGTERM stops it: what is published stays, and the same command resumes (`stopped` is then true).
    """
    receipts: list[Receipt] = []
    stopped = False

    def outcome() -> Outcome:
        errors = tuple(error for receipt in receipts for error in receipt.errors)
        failed = sum(receipt.failed for receipt in receipts)
        count = sum(receipt.ok for receipt in receipts) + failed
        return Outcome(todo.folder, todo.cells, count, failed, errors, stopped)

    if not todo.orders:
        _write_record(todo)
        when_played(outcome())
        return outcome()
    with _interruptible() as interrupted:
        source, close = _player(todo, cpus, address)
        try:
            _write_record(todo)
            for receipt in source:
                receipts.append(receipt)
                on_receipt(receipt)
                if fail_fast and receipt.failed:
                    stopped = True
                    break
        except KeyboardInterrupt:
            stopped = True
        finally:
            interrupted.deaf = True
            try:
                if sys.exception() is None:
                    when_played(outcome())
            finally:
                close()
    return outcome()


def _write_record(todo: Plan) -> None:
    """Write run.json, keeping what another call may have added since the plan was made."""
    record = todo.record
    if todo.folder.exists(FILE):
        now = RunRecord.read(todo.folder)
        if len(now.invocations) >= len(record.invocations):
            record = now.extended(record.grids[-1], todo.suite, record.invocations[-1], todo.folder.uri)
    try:
        record.write(todo.folder)
    except OSError as error:
        raise Misuse(f"cannot write to {todo.folder.uri}: {one_line(error)}; give another --out") from error


def _player(todo: Plan, cpus: int | None, address: str | None) -> tuple[Iterator[Receipt], Callable[[], None]]:
    if cpus == 0:
        return (carry_out(todo.problems[o.task.problem], o, todo.folder) for o in todo.orders), lambda: None
    from cbobench.sweep.raysweep import RaySweep

    sweep = RaySweep(todo.problems, todo.folder, cpus, address)
    return sweep.play(todo.orders), sweep.stop


class _Deaf:
    """Whether signals are ignored: while a sweep closes down."""

    deaf = False


@contextmanager
def _interruptible() -> Iterator[_Deaf]:
    """SIGINT and SIGTERM become KeyboardInterrupt, once."""
    flag = _Deaf()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not flag.deaf:
            flag.deaf = True
            raise KeyboardInterrupt

    previous: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, interrupt)
    except ValueError:  # not in the main thread: leave signals to whoever owns them
        pass
    try:
        yield flag
    finally:
        for known, handler in previous.items():
            signal.signal(known, handler)


def run(suite: str | Path, *, out: str | Path | None = None, **options: Any) -> Outcome:
    """`cbobench run` as a function: `plan`, then `execute`; options are those of both."""
    executing = {k: options.pop(k) for k in ("fail_fast", "on_receipt") if k in options}
    words = ["cbobench", "run", str(suite), *(["--out", str(out)] if out is not None else [])]
    for name in ("seeds", "horizon", "only", "data"):
        if options.get(name) is not None:
            words += [f"--{name}", str(options[name])]
    todo = plan(suite, out=out, command=words, **options)
    return execute(todo, cpus=options.get("cpus"), address=options.get("address"), **executing)
