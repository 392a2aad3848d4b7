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
from math import inf

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
from cbobench.sweep.blocks import Pace
from cbobench.sweep.counter import RoundCounter
from cbobench.sweep.executors import Executor, ExecutorDied
from cbobench.sweep.messages import Answer
from cbobench.sweep.plan import Plan
from cbobench.watcher import SILENT, Watcher

CRASHES_OF_A_CELL = 3
HANGS_OF_A_CELL = 2  # a process that was suspended may seem to hang, once
# waiting tasks of which the longest is handed out first
LONGEST_FIRST, LONGEST_FIRST_PER_SLOT = 64, 4
SILENCE = 600.0  # seconds for which a worker may say nothing: code in C may hold all its threads
GRACE = 10.0  # seconds beyond a task's time limit
WAIT = 2.0  # seconds to wait for a task, and between two looks at what is not heard of


class Scheduler:
    """Hands out the tasks of a plan and yields their receipts as they come.

    Args:
        plan: what is played.
        executor: what runs it.
        watcher: told of what is overdue.

    Attributes:
        counter: of the rounds that are played.
    """

    def __init__(self, plan: Plan, executor: Executor, watcher: Watcher = SILENT) -> None:
        self.folder, self.tasks, self.executor, self.watcher = (
            plan.folder,
            plan.tasks,
            executor,
            watcher,
        )
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

    def drop_waiting(self) -> bool:
        """Let no further task begin; whether any waits."""
        any_waits = len(self.queue) > 0
        self.queue.clear()
        self.rounds = 0
        return any_waits

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
        return inf if seconds is None else seconds

    def _make_task(self, entry: int | Task) -> Task:
        return self.tasks[entry] if isinstance(entry, int) else entry

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
        self.folder, self.watcher = folder, watcher
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
        published_before, self.published = self.published, published
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
        reports, before = dict(executor.reports), self.signs
        self.signs, overdue = {}, []
        for task in executor.pending:
            signs = self.signs[task.name] = before.get(task.name, _Signs())
            stamp = reports[task.name].stamp if task.name in reports else None
            heard, signs.stamp = stamp != signs.stamp, stamp
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
