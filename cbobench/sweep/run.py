"""A sweep from a plan to published results: play, resume, extend, stop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from cbobench.arithmetic import describe_arithmetic, is_as_requested
from cbobench.call import Call
from cbobench.errors import CbobenchError, Misuse, show
from cbobench.options import accept_fields
from cbobench.play.company import find_company
from cbobench.play.task import Receipt
from cbobench.results.compact import compact_if_large
from cbobench.results.lock import hold, remove_orphans
from cbobench.results.manifest import FILE, Manifest
from cbobench.results.query import read_published
from cbobench.sweep.cluster import collect_code
from cbobench.sweep.executors import Executor, InlineExecutor, ProcessExecutor, usable_cpus
from cbobench.sweep.interrupt import Interruption, interruptible
from cbobench.sweep.outcome import Outcome
from cbobench.sweep.plan import Plan, plan
from cbobench.sweep.preparation import prepare_apart
from cbobench.sweep.ray_executor import RayExecutor
from cbobench.sweep.scheduler import Scheduler
from cbobench.watcher import SILENT, Watcher
from cbobench.words import count_noun, list_names

# Tasks that worker processes run by default. On one machine they are never slower: Ray begins
# seconds later and takes 20 ms of CPU time more per task (measured with 8 and with 264); for more
# tasks that is little beside what they take.
SMALL = 64


@dataclass
class Ledger:
    """Counts what a call has played of a plan.

    Attributes:
        tasks: names of those that are said to be done.
        stopped, spent: whether cells are left, for a signal or a failure, or for the budget's sake.
        seconds: CPU time that tasks took, as their receipts say.
    """

    plan: Plan
    tasks: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    played: int = 0
    failed: int = 0
    stopped: bool = False
    spent: bool = False
    seconds: float = 0.0

    def add(self, receipt: Receipt) -> None:
        """Count a task that is over."""
        self.tasks.append(receipt.task)
        self.errors += receipt.errors
        self.failed += receipt.failed
        self.played += receipt.ok + receipt.failed
        self.seconds += receipt.seconds or 0.0

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Tasks that are said to be done and are not in the folder, once nothing more is played."""
        published = {*self.plan.folder.names("cells")} if self.tasks else set()
        return tuple(name for name in self.tasks if name not in published)

    @property
    def outcome(self) -> Outcome:
        """What was done, once it is over."""
        counts = (self.plan.cells, self.played, self.failed, tuple(self.errors))
        tasks = (len(self.tasks), self.absent)
        return Outcome(self.plan.folder, *counts, self.stopped, *tasks, self.spent)

    @contextmanager
    def until_stopped(self, interrupted: Interruption) -> Iterator[None]:
        """Note that a signal has stopped the block; what closes then is not interrupted."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = True
        finally:
            interrupted.ignoring = True


def execute(plan: Plan, watcher: Watcher = SILENT) -> Outcome:
    """Play a plan, as its call says.

    Ctrl-C, SIGTERM or SIGHUP stops it: what is published stays, and the same command resumes
    (`stopped` is then true).

    Raises:
        CbobenchError: another call plays, the folder cannot be written, or nothing can play.
    """
    ledger = Ledger(plan)
    for text in _describe_before(plan):
        watcher.note(text)
    if plan.tasks or plan.damaged:
        _execute(plan, ledger, watcher)
        return ledger.outcome
    try:
        with hold(plan.folder, watcher) as folder:
            _write_record(replace(plan, folder=folder))
    except CbobenchError as error:
        # What is complete can be read where nothing can be written, and while others play.
        watcher.note(f"this call is not recorded: {str(error).partition(';')[0]}")
    return ledger.outcome


def _execute(plan: Plan, ledger: Ledger, watcher: Watcher) -> None:
    call = plan.call
    # What ends first stands last: the engine closes, then the folder is free for others.
    with (
        interruptible() as interrupted,
        hold(plan.folder, watcher) as folder,
        ExitStack() as engines,
        ledger.until_stopped(interrupted),
    ):
        plan = _refresh_plan(replace(plan, folder=folder))
        receipts: Iterable[Receipt] = ()
        if plan.tasks:
            engine = engines.enter_context(closing(start_engine(plan, watcher)))
            scheduler = Scheduler(plan, engine, watcher)
            watcher.began(scheduler.counter)
            receipts = scheduler.play()
        # After the engine has started: a call that cannot play leaves no record. Before the first
        # cell, which is of it.
        _write_record(plan)
        for receipt in receipts:
            ledger.add(receipt)
            watcher.played(receipt)
            interrupted.check()
            if ledger.seconds >= call.budget_seconds:
                ledger.spent |= scheduler.drop_waiting()
            if call.fail_fast and receipt.failed:
                ledger.stopped = True
                break
        else:
            assert ledger.absent is not None  # looked for under the names that tasks have
            remove_orphans(plan.folder)
            compact_if_large(plan.folder, watcher)


def _describe_before(plan: Plan) -> list[str]:
    """Lines on the folder, on pairs that are not played, and on the arithmetic of this machine, if
    it plays.
    """
    call = plan.call
    is_fresh = not call.plays_inline and not is_as_requested()
    arithmetic = describe_arithmetic(fresh=is_fresh) if call.address is None else []
    return [*plan.notes, *(f"not played: {line}" for line in plan.record.unplayable), *arithmetic]


def _refresh_plan(plan: Plan) -> Plan:
    """Return the plan for the locked folder, without its damaged files, and the cells that another
    call has published since the plan was made.
    """
    for file in plan.damaged:
        plan.folder.remove(file)
    # The names of new files tell nothing of their cells: they may be of pieces, which have names of
    # their own.
    if {*plan.folder.names("cells")} - plan.published_tasks:
        return replace(plan, tasks=plan.tasks.without(read_published(plan.folder)))
    return plan


def _write_record(plan: Plan) -> None:
    """Write run.json, keeping what another call may have added since the plan was made."""
    record = plan.record
    if plan.folder.exists(FILE):
        (grid, begun), place = (plan.suite.grid, record.invocations[-1]), str(plan.folder)
        record = Manifest.read(plan.folder).add_call(grid, plan.suite, begun, place)
    record.write(plan.folder)


def ray_is_started() -> bool:
    """Whether this program has started Ray itself."""
    imported = sys.modules.get("ray")
    return imported is not None and bool(imported.is_initialized())


def start_engine(plan: Plan, watcher: Watcher) -> Executor:
    """Start what plays, as the call says; by default Ray, or worker processes if there are few
    tasks.

    A Ray that the program has started itself runs all tasks. Worker processes replace a Ray that
    does not start here.

    Raises:
        Misuse: an address although this program has started Ray. CbobenchError: what was asked for
            cannot be started.
    """
    call, problems = plan.call, plan.suite.problems
    if call.plays_inline:
        watcher.note(f"played by this process{_warn_of_users(plan)}")
        return InlineExecutor(problems, plan.folder)
    problems = prepare_apart(plan)
    is_started = ray_is_started()
    if is_started and call.address is not None:
        address_asked = show(call.address)
        raise Misuse(
            f"this program has started Ray already; leave address {address_asked} out, or call "
            "ray.shutdown()"
        )
    # A Ray that nobody has asked for may fail to start: containers with little shared memory have
    # none.
    is_asked = call.engine == "ray" or call.address is not None
    if is_asked or (call.engine is None and (is_started or len(plan.tasks) > SMALL)):
        address = (
            sys.modules["ray"].get_runtime_context().gcs_address if is_started else call.address
        )
        code = None if address is None else collect_code(plan.tasks.sources, call.ship)
        limit = call.cpus if is_started or address is None else None
        try:
            ray = RayExecutor(problems, plan.folder, limit, address, code)
        except CbobenchError as error:
            if is_asked or is_started:
                raise
            watcher.note(f"Ray did not start ({error}); worker processes play instead")
        else:
            watcher.note("played on Ray")
            return ray
    cpus = call.cpus or usable_cpus()
    workers = ProcessExecutor(problems, plan.folder, min(cpus, len(plan.tasks)), cpus)
    watcher.note(f"played by {count_noun(workers.slots, 'worker process')}")
    return workers


def _warn_of_users(plan: Plan) -> str:
    """Return what may follow where others' code plays in this process; "" if all is ours."""
    names = sorted({name for names in plan.tasks.sources for name in find_company(*names).users})
    if not names:
        return ""
    return f", unguarded: what {list_names(names, 3)} changes in it stays; --cpus 1 keeps it apart"


CHOICES: Callable[..., Call] = Call
"""For type checkers, which know of no keywords that follow those of a class: any may be given to
`run`.
"""


@accept_fields(CHOICES, hidden=("command",))
def run(
    call: Call,
    *,
    on_receipt: Callable[[Receipt], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Outcome:
    """`cbobench run` as a function: `plan`, then `execute`.

    Args: see `Call`.
        on_receipt, on_note: called with each receipt, and with one line on who plays, or what is
        lost or overdue.

    Returns:
        What was done. `cbobench.compare`, `summary`, `plot`, `load_cells` and `load_rounds` take it
        as the run.

    Raises:
        Misuse: a wrong suite, folder or option.

    Example:
        >>> import cbobench
        >>> suite = {  # doctest: +SKIP
        ...     "suite": "my-study", "horizon": 100, "seeds": 10,
        ...     "problems": ["gardner-1"], "algorithms": ["cei", {"ckb-rand": {"beta_scale": 0.2}}],
        ... }
        >>> done = cbobench.run(suite, out="runs/my-study")  # doctest: +SKIP
        >>> print(cbobench.compare(done))  # doctest: +SKIP
    """

    class Callbacks(Watcher):
        def note(self, text: str) -> None:
            if on_note is not None:
                on_note(text)

        def played(self, receipt: Receipt) -> None:
            if on_receipt is not None:
                on_receipt(receipt)

    command = [] if isinstance(call.suite, Mapping) else ["cbobench", "run", str(call.suite)]
    for name in ("out", "seeds", "horizon", "only", "data") if command else ():
        value = getattr(call, name)
        command += [f"--{name}", str(value)] if value is not None else []
    return execute(plan(replace(call, command=command)), Callbacks())
