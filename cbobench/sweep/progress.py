"""What a sweep says while it plays; a bar with an estimate of the time left, where someone is watching."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cbobench.results.query import SHOWN, FailureCounts
from cbobench.words import counted

if TYPE_CHECKING:
    from cbobench.play.task import Receipt
    from cbobench.sweep.bar import Bar
    from cbobench.sweep.forecast import Forecast
    from cbobench.sweep.run import Plan


class Progress:
    """A bar on a terminal, plain lines elsewhere. All on standard error."""

    def __init__(self, todo: Plan) -> None:
        self.todo = todo
        self.failed = FailureCounts()
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
        """Say who plays, and what else happens; before the first note, what there is to play."""
        self.begin()
        if self.bar is not None:
            self.bar.console.print(text)
        else:
            print(text, file=sys.stderr)

    def follow(self, forecast: Forecast) -> None:
        """Let the bar begin (before workers are there its thread would keep them from forking)."""
        if sys.stderr.isatty():
            from cbobench.sweep.bar import Bar

            self.bar = Bar(forecast)
            self.bar.start()

    def add(self, receipt: Receipt) -> None:
        """Account for a finished task; say how many have failed when they are the first, or twice as many."""
        kinds = len(self.failed.counts)
        for error in receipt.errors:
            self.failed.add(error)
        total = self.failed.total
        if self.bar is not None:
            self.bar.say("playing" if not total else f"playing ({total} failed)")
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
