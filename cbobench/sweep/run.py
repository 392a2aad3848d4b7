"""A sweep from a plan to published results: play, resume, extend, stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from cbobench.arithmetic import describe_arithmetic, is_as_requested
from cbobench.errors import CbobenchError
from cbobench.params import accept_fields
from cbobench.play.task import Receipt
from cbobench.results.compact import finish
from cbobench.results.lock import hold
from cbobench.suite.call import Call
from cbobench.sweep.engines import start_engine
from cbobench.sweep.interrupt import Interruption, interruptible
from cbobench.sweep.outcome import Outcome
from cbobench.sweep.plan import Plan, plan, settle
from cbobench.sweep.scheduler import Scheduler
from cbobench.watcher import SILENT, Watcher


@dataclass
class Ledger:
    """Counts what a call has played of a plan.

    Attributes:
        tasks: names of those that are said to be done.
        stopped, spent: whether cells are left, for a signal or a failure, or for the budget's sake.
    """

    plan: Plan
    tasks: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    played: int = 0
    failed: int = 0
    stopped: bool = False
    spent: bool = False

    def add(self, receipt: Receipt) -> None:
        """Count a task that is over."""
        self.tasks.append(receipt.task)
        self.errors += receipt.errors
        self.failed += receipt.failed
        self.played += receipt.ok + receipt.failed

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Tasks that are said to be done and are not in the folder, once nothing more is played."""
        published = {*self.plan.folder.names("cells")} if self.tasks else set()
        return tuple(name for name in self.tasks if name not in published)

    @property
    def outcome(self) -> Outcome:
        """What was done, once it is over."""
        return Outcome(
            folder=self.plan.folder,
            cells=self.plan.cells,
            played=self.played,
            failed=self.failed,
            errors=tuple(self.errors),
            stopped=self.stopped,
            tasks=len(self.tasks),
            absent=self.absent,
            spent=self.spent,
        )

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
    call = plan.call
    ledger = Ledger(plan)
    is_fresh = not call.plays_inline and not is_as_requested()
    arithmetic = describe_arithmetic(fresh=is_fresh) if call.address is None else []
    left_out = [f"not played: {line}" for line in plan.record.unplayable]
    for text in (*plan.notes, *left_out, *arithmetic):
        watcher.note(text)
    changes_results = bool(plan.tasks or plan.damaged)
    try:
        _play(plan, ledger, watcher)
    except CbobenchError as error:
        # What is complete can be read where nothing can be written, and while others play.
        if changes_results:
            raise
        watcher.note(f"this call is not recorded: {str(error).partition(';')[0]}")
    return ledger.outcome


def _play(plan: Plan, ledger: Ledger, watcher: Watcher) -> None:
    """Play what the locked folder lacks of a plan, count it, and merge the files of a large run."""
    changes_results = bool(plan.tasks or plan.damaged)
    # What ends first stands last: the engine closes, then the folder is free for others.
    with (
        interruptible() as interrupted,
        hold(plan.folder, watcher) as folder,
        ExitStack() as engines,
        ledger.until_stopped(interrupted),
    ):
        plan = settle(plan, folder)
        receipts: Iterable[Receipt] = ()
        if plan.tasks:
            engine = engines.enter_context(closing(start_engine(plan, watcher)))
            scheduler = Scheduler(plan, engine, watcher)
            watcher.began(scheduler.counter)
            receipts = scheduler.play()
        # After the engine has started: a call that cannot play leaves no record. Before the first
        # cell, which is of it.
        plan.record.write(folder)
        for receipt in receipts:
            ledger.add(receipt)
            watcher.played(receipt)
            interrupted.check()
            ledger.spent = scheduler.is_spent
            if plan.call.fail_fast and receipt.failed:
                ledger.stopped = True
                break
        else:
            if changes_results:
                assert ledger.absent is not None  # looked for under the names that tasks have
                finish(folder, watcher)


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

    # The record says how to play it again; a suite that is no file has no such command.
    command = [] if isinstance(call.suite, Mapping) else ["cbobench", "run", str(call.suite)]
    for name in ("out", "seeds", "horizon", "only", "data") if command else ():
        value = getattr(call, name)
        command += [f"--{name}", str(value)] if value is not None else []
    return execute(plan(replace(call, command=command)), Callbacks())
