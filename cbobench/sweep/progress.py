"""The progress of a sweep in rounds, from receipts and from workers: a bar on a terminal, plain
lines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cbobench.play.task import Receipt
from cbobench.sweep.outcome import SHOWN, FailureCounts
from cbobench.sweep.plan import Plan
from cbobench.sweep.scheduler import RoundCounter
from cbobench.watcher import Watcher
from cbobench.words import count_noun, describe_rate, time_left

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Terminal(Watcher):
    """Shows the progress of a sweep on standard error."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.failed = FailureCounts()
        self.last_failed = 0
        self.has_begun = False
        self.counter: RoundCounter | None = None
        self.bar: Bar | None = None

    def begin(self) -> None:
        """Print what there is to play, once."""
        if self.has_begun:
            return
        self.has_begun = True
        new = self.plan.cells - self.plan.done
        if self.plan.stale:
            stale = f", {self.plan.stale} of them stale: play them again with --again stale"
        else:
            stale = ""
        suffix = f" ({self.plan.done} done before{stale})" if self.plan.done else ""
        tasks = count_noun(len(self.plan.tasks), "task")
        print(
            f"{self.plan.suite.name}: {count_noun(new, 'cell')} in {tasks}{suffix}", file=sys.stderr
        )

    def note(self, text: str) -> None:
        """Print a note; before the first one, what there is to play."""
        self.begin()
        if self.bar is not None:
            self.bar.console.print(text)
        else:
            print(text, file=sys.stderr)

    def began(self, counter: RoundCounter) -> None:
        """Let the bar begin (before workers are there its thread would keep them from forking)."""
        self.counter = counter
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar
            from rich.table import Column

            share = Column(min_width=5)  # where a line is too long its end is cut
            columns = (
                BarColumn(bar_width=8),
                TextColumn("{task.percentage:>3.0f} %", table_column=share),
                TextColumn("{task.description}"),
            )
            show = self._show

            class Counting(Bar):
                def get_renderables(self) -> Iterable[Any]:
                    show()  # what is drawn, several times a second, is what is played by then
                    return super().get_renderables()

            self.bar = Counting(*columns, console=Console(stderr=True), refresh_per_second=4)
            self.bar.add_task(self._describe(counter), total=counter.total)
            self.bar.start()

    def _show(self) -> None:
        """Set the bar to the rounds that are played."""
        if self.bar is not None and self.bar.task_ids and self.counter is not None:
            task = self.bar.task_ids[0]
            description = self._describe(self.counter)
            self.bar.update(task, completed=self.counter.rounds, description=description)

    def _describe(self, counter: RoundCounter) -> str:
        """What the bar says beside the share of the rounds."""
        cells = count_noun(len(self.plan.tasks.cells), "cell")
        parts = [f"{counter.cells:,} of {cells}"]
        left = counter.seconds_left()
        parts.append(f"left: {'unknown' if left is None else time_left(left)}")
        if self.failed.total:
            parts.append(f"{self.failed.total:,} failed")
        if counter.rounds:
            parts.append(describe_rate(counter.rate))
        return ", ".join(parts)

    def played(self, receipt: Receipt) -> None:
        """Print the failures at the first one, at a new kind, and whenever they have doubled."""
        kinds = len(self.failed.counts)
        for error in receipt.errors:
            self.failed.add(error)
        total = self.failed.total
        self._show()
        if total >= 2 * self.last_failed + 1 or kinds < len(self.failed.counts) <= SHOWN:
            self.last_failed = total
            self.note(str(self.failed))

    def close(self) -> None:
        """Take the bar down, whether the sweep has ended or failed."""
        bar = self.bar
        self.bar = None
        if bar is not None:
            with suppress(OSError):  # a terminal that is gone
                bar.stop()
