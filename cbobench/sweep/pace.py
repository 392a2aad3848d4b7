"""How long tasks take, learnt from those that ended, and into what pieces a task is cut for it.

The bits of a cell do not depend on its block, so that a task may be cut whenever it is handed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from math import ceil

from cbobench.gp.actions import Finite
from cbobench.play.task import Task
from cbobench.problems.base import Problem
from cbobench.suite.cells import Pair
from cbobench.sweep.blocks import Measured

TASK_SECONDS = 30.0  # of work per task: what a lost machine takes with it
LEAST_SECONDS = 1.0  # of a piece at the end of a sweep
AHEAD = 2  # pieces per worker into which what is left would be cut, so that the last ones end together
LONG = 300.0  # seconds that a task may take of which nothing was known; a longer one is given back soon (see `Task`)
# Seeds in lock step share what a round costs Python, whatever their number: on finite sets a round of 100 seeds takes
# twice as long as one of a single seed. Pieces are no smaller than that they cost so many times as much CPU time.
SHARED_ROUND = {True: 8e-5, False: 1.5e-3}  # seconds per round, measured on finite sets and on boxes
DEARER = 1.25


class Pace:
    """Seconds per seed-round of pairs, or else of what shares the names of their problem and algorithm.

    Args:
        problems: the suite's prepared problems, by title.
        known: what cells that were published before took.
    """

    def __init__(self, problems: Mapping[str, Problem], known: Iterable[Measured] = ()) -> None:
        self.finite = {title: isinstance(problem.actions, Finite) for title, problem in problems.items()}
        self.sums: dict[tuple[str, ...], list[float]] = {}
        for pair, seconds, rounds in known:
            self._add(pair, seconds, rounds)

    def learn(self, task: Task, seconds: float, rounds: int) -> None:
        """Seconds that some seed-rounds of a task have taken."""
        shared = self._shared(task) * rounds / len(task.cells)
        self._add(task.pair, max(0.0, seconds - shared), rounds)

    def expected(self, task: Task) -> float | None:
        """Seconds that a task will take; None where nothing like it has ended."""
        own = self._own(task)
        return None if own is None else task.horizon * (self._shared(task) + own * len(task.cells))

    def pieces(self, task: Task, slots: int, waiting: int) -> list[Task]:
        """A task as it is to be played: whole, or in pieces of `TASK_SECONDS`, shorter ones when a sweep ends.

        Args:
            slots: how many tasks are played at a time.
            waiting: seed-rounds that are not yet handed out, this task's among them.
        """
        seconds, cells = self.expected(task), len(task.cells)
        if cells == 1:
            return [task]
        if seconds is None:
            return [replace(task, give_back=LONG)]
        wanted = TASK_SECONDS
        if slots > 1:
            left = max(1.0, waiting / task.rounds) * seconds  # as if all were like this one
            wanted = min(TASK_SECONDS, max(LEAST_SECONDS, left / (AHEAD * slots)))
        count = max(1, min(ceil(seconds / wanted), int(cells / self._least(task)), cells))
        ends = [cells * i // count for i in range(count + 1)]
        return [replace(task, cells=task.cells[a:b], give_back=None) for a, b in pairwise(ends)]

    def _least(self, task: Task) -> float:
        """Cells of the smallest piece of a task that costs no more than `DEARER` allows."""
        own, shared = self._own(task) or 0.0, self._shared(task)
        return shared / (DEARER * shared / len(task.cells) + (DEARER - 1) * own)

    def _add(self, pair: Pair, seconds: float, rounds: int) -> None:
        for key in _keys(pair):
            some = self.sums.setdefault(key, [0.0, 0.0])
            some[0] += seconds
            some[1] += rounds

    def _own(self, task: Task) -> float | None:
        """Seconds of a seed-round without what its block shares."""
        found = (self.sums[key] for key in _keys(task.pair) if key in self.sums)
        return next((seconds / rounds for seconds, rounds in found), None)

    def _shared(self, task: Task) -> float:
        return SHARED_ROUND[self.finite[task.pair.problem.title]]


def _keys(pair: Pair) -> tuple[tuple[str, ...], ...]:
    return pair.key, ("names", pair.problem.name, pair.algorithm.name)
