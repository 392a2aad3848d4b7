"""A progress bar with an estimate of the time left, where someone is watching."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cbobench.sweep.blocks import rounds_of
from cbobench.sweep.tally import SHOWN, Tally
from cbobench.words import counted

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from cbobench.play.task import Receipt
    from cbobench.sweep.run import Plan


class Progress:
    """Counts seed-rounds of finished tasks; a bar on a terminal, plain lines elsewhere. All on standard error."""

    def __init__(self, todo: Plan) -> None:
        self.todo = todo
        self.total = rounds_of(todo.tasks)
        self.failed = Tally()
        self.said = 0
        self.begun = False
        self.bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Say what there is to play; once, and not before it is known that it can be played."""
        if self.begun:
            return
        self.begun = True
        new = self.todo.cells - self.todo.done
        stale = f", {self.todo.stale} of them stale: play them again with --again stale" if self.todo.stale else ""
        kept = f" ({self.todo.done} done before{stale})" if self.todo.done else ""
        tasks = counted(len(self.todo.tasks), "task")
        print(f"{self.todo.suite.name}: {counted(new, 'cell')} in {tasks}{kept}", file=sys.stderr)

    def note(self, text: str) -> None:
        """Say who plays; with the first note the bar begins (before it, its thread would keep workers from forking)."""
        self.begin()
        if self.bar is not None:
            self.bar.console.print(text)
            return
        print(text, file=sys.stderr)
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
                TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn(), console=Console(stderr=True),
            )  # fmt: skip
            self.bar.start()
            self.task = self.bar.add_task("playing", total=self.total)

    def add(self, receipt: Receipt) -> None:
        """Account for a finished task; say how many have failed when they are the first, or twice as many."""
        kinds = len(self.failed.counts)
        for error in receipt.errors:
            self.failed.add(error)
        total = self.failed.total
        if self.bar is not None:
            text = "playing" if not total else f"playing ({total} failed)"
            self.bar.update(self.task, advance=receipt.rounds, description=text)
        if total >= 2 * self.said + 1 or kinds < len(self.failed.counts) <= SHOWN:
            self.said = total
            self.note(str(self.failed))

    def close(self) -> None:
        """Take the bar down."""
        bar, self.bar = self.bar, None
        if bar is not None:
            with suppress(OSError):  # a terminal that is gone
                bar.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
