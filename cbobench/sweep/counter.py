"""Counts the rounds of a sweep that are played, and says how long the others take."""

from __future__ import annotations

import time

from cbobench.play.task import Receipt
from cbobench.sweep.blocks import Tasks
from cbobench.sweep.executors import Executor

# share of the rounds that what was expected stands for: the first ones cost less, or wait longer
TRUSTED = 0.05


class RoundCounter:
    """Counts the rounds that are played: of receipts, and of tasks that are not over.

    Args:
        tasks: all that are to be played.
        executor: says how far the tasks are that are not over.
        expected: seconds on the clock that all of them take, by what is known before; None if that
            is nothing.

    Attributes:
        total, over: seed-rounds of all tasks, and of those that are over.
        cells: that are over.
    """

    def __init__(self, tasks: Tasks, executor: Executor, expected: float | None = None) -> None:
        self.executor, self.expected = executor, expected
        self.total = tasks.rounds
        self.cells = self.over = 0
        self.began = time.monotonic()

    @property
    def in_play(self) -> int:
        """Seed-rounds that are played of tasks that are not over."""
        return sum(report.rounds for report in dict(self.executor.reports).values())

    @property
    def rounds(self) -> int:
        """Seed-rounds that are played."""
        return min(self.total, self.over + self.in_play)

    def add(self, receipt: Receipt) -> None:
        """A task is over."""
        self.cells += receipt.ok + receipt.failed
        self.over += receipt.rounds

    @property
    def rate(self) -> float:
        """Seed-rounds a second so far."""
        return self.rounds / max(time.monotonic() - self.began, 1e-3)

    def seconds_left(self) -> float | None:
        """Seconds left at the mean speed so far.

        What was expected counts as `TRUSTED` of all rounds, played before. Where nothing was
        expected, None before the first rounds.
        """
        share = 0.0 if self.expected is None else TRUSTED
        rounds = self.rounds
        known = rounds + share * self.total
        if not known:
            return None
        seconds = time.monotonic() - self.began + share * (self.expected or 0.0)
        return seconds * (self.total - rounds) / known
