"""Hands the tasks of a sweep to an executor, and decides what follows where a task does not end
well.

A task that crashes its worker, runs out of memory or hangs is halved until the cell at fault is
alone; that cell fails after three crashes, or two hangs. A task whose worker is silent for longer
than it may be is looked up in the run folder; if it is not there, it hangs. What a lost machine
played Ray itself plays again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, inf

from cbobench.errors import CbobenchError, CellFailure, show
from cbobench.play.task import (
    OtherCode,
    Receipt,
    Task,
    WorkerCrashed,
    failed_row,
    publish_cells,
    published_receipt,
)
from cbobench.play.watchdog import ReturnedTask
from cbobench.results.folder import RunFolder
from cbobench.suite.cells import Pair
from cbobench.sweep.blocks import Measured, Tasks
from cbobench.sweep.executors import Answer, Executor, ExecutorDied
from cbobench.sweep.plan import Plan
from cbobench.watcher import SILENT, Watcher

CRASHES_OF_A_CELL = 3
HANGS_OF_A_CELL = 2  # a process that was suspended may seem to hang, once
# waiting tasks of which the longest is handed out first
LONGEST_FIRST = 64
LONGEST_FIRST_PER_SLOT = 4
SILENCE = 600.0  # seconds for which a worker may say nothing: code in C may hold all its threads
GRACE = 10.0  # seconds beyond a task's time limit
WAIT = 2.0  # seconds to wait for a task, and between two looks at what is not heard of

TASK_SECONDS = 60.0  # of work: what a lost machine takes with it
# seconds that a task of unknown pace may take; a longer one is returned soon (see `Task`)
RETURN_AFTER = 300.0
LEAST_SECONDS = 1.0  # of a task at the end of a sweep
# seconds of its rounds at least: in shorter ones much is what cells in lock step share
LEAST_ROUND = 1e-3
TASKS_PER_WORKER = 2  # into which what is left is cut, so that the last ones end together

# share of the rounds that what was expected stands for: the first ones cost less, or wait longer
TRUSTED = 0.05


class Scheduler:
    """Hands out the tasks of a plan and yields their receipts as they come.

    Args:
        plan: what is played.
        executor: what runs it.
        watcher: told of what is overdue.

    Attributes:
        counter: of the rounds that are played.
        is_spent: whether tasks that wait do not begin any more, for the budget's sake.
    """

    def __init__(self, plan: Plan, executor: Executor, watcher: Watcher = SILENT) -> None:
        self.folder = plan.folder
        self.tasks = plan.tasks
        self.executor = executor
        self.watcher = watcher
        self.budget = plan.call.budget_seconds
        self.seconds = 0.0  # of CPU time that tasks took, as their receipts say
        self.is_spent = False
        self.pace = Pace(plan.measured)
        # A number is a task that is made when it is played.
        self.queue: deque[int | Task] = deque(range(len(plan.tasks)))
        self.rounds = plan.tasks.rounds  # that wait
        self.crashes: dict[str, int] = {}
        self.print_noted = False
        self.overdue = OverdueTasks(plan.folder, watcher)
        work = self.pace.total(plan.tasks)
        expected = None if work is None else work / min(executor.slots, len(plan.tasks.cells))
        self.counter = RoundCounter(plan.tasks, executor, expected)

    def play(self) -> Iterator[Receipt]:
        """Receipts of all tasks, as they come. Closing the executor ends what is in play.

        Raises:
            CbobenchError: a worker has other code, cannot write, or cannot start; the executor died
                before all was published.
        """
        for receipt in self._play():
            self.counter.add(receipt)
            self.seconds += receipt.seconds or 0.0
            if self.seconds >= self.budget and self.queue:
                self.is_spent = True
                self.queue.clear()
                self.rounds = 0
            yield receipt

    def _play(self) -> Iterator[Receipt]:
        try:
            while self.queue or self.executor.pending:
                self._submit()
                yield from self._take_answers()
                yield from self._give_up_overdue()
        except OtherCode as error:
            raise error.name_modules() from None
        except ExecutorDied:
            # What was published before the executor died needs no other play.
            published = self.folder.names("cells")
            for task in [task for task in self.executor.pending if task.name in published]:
                with suppress(ExecutorDied):
                    self.executor.cancel(task)
                yield published_receipt(self.folder, task)
            if self.queue or self.executor.pending:
                raise

    def _take_answers(self) -> Iterator[Receipt]:
        for task, answer in self.executor.collect(WAIT):
            yield from self._settle(task, answer)

    def _give_up_overdue(self) -> Iterator[Receipt]:
        for task, answer in self.overdue.look(self.executor):
            self.executor.cancel(task)
            yield from self._settle(task, answer)

    def _submit(self) -> None:
        """Submit tasks while there is room."""
        while self.queue and self.executor.room() > 0:
            task = self._next()
            if not self.executor.accepts(task):
                self.queue.appendleft(task)
                return
            self.rounds -= task.rounds
            self.executor.submit(task)

    def _next(self) -> Task:
        """The next task, cut to a suitable size; the longest first when few are left."""
        slots = self.executor.slots
        if len(self.queue) <= min(LONGEST_FIRST, LONGEST_FIRST_PER_SLOT * slots):
            tasks = [self._make_task(entry) for entry in self.queue]
            longest = max(range(len(tasks)), key=lambda i: self._expected(tasks[i]))
            self.queue = deque([tasks.pop(longest), *tasks])
        task = self._make_task(self.queue.popleft())
        part = self.pace.first_part(task, slots, self.rounds)
        if len(part.cells) < len(task.cells):
            self.queue.appendleft(replace(task, cells=task.cells[len(part.cells) :]))
        return part

    def _expected(self, task: Task) -> float:
        """Seconds that a task will take; without end where nothing is known."""
        seconds = self.pace.expected(task.pair, task.rounds)
        if seconds is None:
            return inf
        return seconds

    def _make_task(self, entry: int | Task) -> Task:
        if isinstance(entry, int):
            return self.tasks[entry]
        return entry

    def _queue_again(self, tasks: Iterable[Task]) -> None:
        tasks = [*tasks]
        self.rounds += sum(task.rounds for task in tasks)
        self.queue.extendleft(reversed(tasks))

    def _settle(self, task: Task, answer: Answer) -> Iterator[Receipt]:
        """Yield a receipt if the task is over; else it is queued again, whole or in two halves."""
        self.overdue.signs.pop(task.name, None)  # it may come again
        match answer:
            case Receipt():
                self._hear(task, answer)
                yield answer
            case ReturnedTask():
                # Now its pace is known, and it is handed out in parts.
                self.pace.learn(task.pair, answer.seconds, answer.rounds)
                self._queue_again([task])
            case WorkerCrashed() if len(task.cells) > 1:
                # One of its cells may be at fault. Half by half it is soon alone, and the others
                # are played.
                self._queue_again(task.halves())
            case WorkerCrashed():
                yield from self._count_crash(task, answer)

    def _hear(self, task: Task, receipt: Receipt) -> None:
        """Learn what a receipt says beside that its task is over."""
        if receipt.seconds is not None:
            self.pace.learn(task.pair, receipt.seconds, receipt.rounds)
        for text in receipt.notes:
            self.watcher.note(text)
        if receipt.printed and not self.print_noted:
            self.print_noted = True
            began = f"{task.pair.label} began with {show(receipt.printed)}"
            self.watcher.note(f"what cells print is shown only with --cpus 0; {began}")

    def _count_crash(self, task: Task, crash: WorkerCrashed) -> Iterator[Receipt]:
        """Queue the task of a single cell again, last; once it has crashed often enough, the cell
        has failed.
        """
        self.crashes[task.name] = self.crashes.get(task.name, 0) + 1
        if self.crashes[task.name] < (HANGS_OF_A_CELL if crash.hung else CRASHES_OF_A_CELL):
            self.rounds += task.rounds
            # what killed it, a lack of memory, say, may have passed by then
            self.queue.append(task)
        else:
            how = crash.how if crash.hung else f"the cell {crash.how} {CRASHES_OF_A_CELL} times"
            row = failed_row(task.cells[0], task, CellFailure(how))
            yield publish_cells(self.folder, task, [row])


@dataclass
class _Signs:
    """Of a task in play: the mark of its worker's last report (None: there was none), the seconds
    since, and those since the first.
    """

    stamp: int | None = None
    silent: float = 0.0
    played: float = 0.0


class OverdueTasks:
    """Finds tasks whose worker says nothing any more (it was stopped, or lost, or its answer was),
    and those that their time limit did not end.

    A worker reports each second whatever its play does (`cbobench.play.watchdog`): a simulation of
    an hour is not silent. On Ray a task that waits for a CPU has no worker, and may wait for any
    time.

    Args:
        folder: the run, where a task may be done although nobody has said so.
        watcher: told of what is overdue.
    """

    def __init__(self, folder: RunFolder, watcher: Watcher) -> None:
        self.folder = folder
        self.watcher = watcher
        self.signs: dict[str, _Signs] = {}
        self.published: set[str] = set()  # of the last look
        self.looked_at = time.monotonic()

    def look(self, executor: Executor) -> Iterator[tuple[Task, Receipt | WorkerCrashed]]:
        """Yield the pending tasks to give up, and what became of them."""
        passed = time.monotonic() - self.looked_at
        if passed < WAIT:
            return
        self.looked_at += passed
        # While this process itself was suspended, it could hear of nobody.
        overdue = self._find_overdue(executor, min(passed, 2 * WAIT))
        if not overdue:
            return
        try:
            published = {*self.folder.names("cells")}
        except (OSError, CbobenchError):  # the store does not answer either
            return
        published_before = self.published
        self.published = published
        for task, how in overdue:
            if task.name in published_before:
                self.watcher.note(f"{task.name} is done, though its worker's answer was lost")
                yield task, published_receipt(self.folder, task)
            elif task.name not in published:  # else its answer may be on its way
                self.watcher.note(f"{task.name}: {how}; its worker is ended")
                yield task, WorkerCrashed(how, hung=True)

    def _find_overdue(self, executor: Executor, passed: float) -> list[tuple[Task, str]]:
        """Return the pending tasks to give up, now that some seconds have passed, and in words
        why.
        """
        reports = dict(executor.reports)
        before = self.signs
        self.signs = {}
        overdue = []
        for task in executor.pending:
            signs = self.signs[task.name] = before.get(task.name, _Signs())
            stamp = reports[task.name].stamp if task.name in reports else None
            heard = stamp != signs.stamp
            signs.stamp = stamp
            if stamp is not None:
                signs.silent = 0.0 if heard else signs.silent + passed
                signs.played += passed
            # A block that is interrupted is played again, cell by cell.
            limit = inf if task.timeout is None else 2 * task.timeout * len(task.cells) + GRACE
            if signs.silent > SILENCE:
                how = f"no word of its worker for {signs.silent:.0f} s: stopped, or suspended?"
                overdue.append((task, how))
            elif signs.played > limit:
                how = f"timed out after {signs.played:.0f} s, and could not be interrupted"
                overdue.append((task, how))
        return overdue


class Pace:
    """Seconds per seed-round of pairs, or else of what shares the names of their problem and
    algorithm.

    Args:
        measured: what cells that were published before took.
    """

    def __init__(self, measured: Iterable[Measured] = ()) -> None:
        self.sums: dict[tuple[str, ...], tuple[float, int]] = {}
        for pair, seconds, rounds in measured:
            self.learn(pair, seconds, rounds)

    def learn(self, pair: Pair, seconds: float, rounds: int) -> None:
        """Seconds that some seed-rounds of a pair have taken."""
        for key in _keys(pair):
            seconds_before, rounds_before = self.sums.get(key, (0.0, 0))
            self.sums[key] = seconds_before + seconds, rounds_before + rounds

    def expected(self, pair: Pair, rounds: int) -> float | None:
        """Seconds that some seed-rounds of a pair will take; None where nothing like it has
        ended.
        """
        for key in _keys(pair):
            if key in self.sums:
                return self.sums[key][0] / self.sums[key][1] * rounds
        return None

    def total(self, tasks: Tasks) -> float | None:
        """Seconds of work that all tasks take; None where of any pair nothing is known."""
        work = 0.0
        for pair_cells in tasks.by_pair:
            seconds = self.expected(pair_cells.pair, len(pair_cells) * pair_cells.horizon)
            if seconds is None:
                return None
            work += seconds
        return work

    def first_part(self, task: Task, slots: int, waiting: int) -> Task:
        """The cells of a task to hand out: of about a minute, fewer when a sweep ends; all where
        nothing is known, but it is returned where they take too long.

        Args:
            slots: how many tasks are played at a time.
            waiting: seed-rounds that are not yet handed out, this task's among them.
        """
        cells = len(task.cells)
        seconds = self.expected(task.pair, task.rounds)
        if seconds is None:
            return replace(task, return_after=RETURN_AFTER if cells > 1 else None)
        wanted = TASK_SECONDS
        if slots > 1:  # a worker alone waits for nobody
            left = seconds * max(1.0, waiting / task.rounds)  # as if all were like this one
            wanted = min(wanted, left / (TASKS_PER_WORKER * slots))
        wanted = max(wanted, LEAST_SECONDS, LEAST_ROUND * task.horizon)
        count = ceil(cells / max(1, ceil(seconds / wanted)))
        return replace(task, cells=task.cells[:count], return_after=None)


def _keys(pair: Pair) -> tuple[tuple[str, ...], ...]:
    return pair.key, ("names", pair.problem.name, pair.algorithm.name)


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
        self.executor = executor
        self.expected = expected
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
