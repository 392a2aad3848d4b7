"""Hands the tasks of a sweep to an executor, and decides what follows where a task does not end
well.

A task that loses its node is queued again. One that crashes its worker, runs out of memory or hangs
is halved until the cell at fault is alone; that cell fails after three crashes, or two hangs. A
task that nothing is heard of for long is looked up in the run folder, and queued again if other
tasks of its pair took far less time. One whose worker does not even report that it runs hangs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
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
from cbobench.play.watchdog import ReturnedTask, allowed_silence
from cbobench.results.folder import RunFolder
from cbobench.results.lease import send_heartbeat
from cbobench.sweep.blocks import Pace
from cbobench.sweep.executors import Executor, ExecutorDied
from cbobench.sweep.messages import Answer, NodeLost
from cbobench.sweep.plan import Plan
from cbobench.sweep.progress import RoundCounter
from cbobench.watcher import SILENT, Watcher
from cbobench.words import list_names

CRASHES_OF_A_CELL = 3
HANGS_OF_A_CELL = 2  # a process that was suspended may seem to hang, once
LOST_NODES_PER_TASK = 20
LOSS_NOTE_SECONDS = 10.0  # seconds between two notes on lost tasks: a machine loses many at once
# waiting tasks of which the longest is handed out first
LONGEST_FIRST, LONGEST_FIRST_PER_SLOT = 64, 4
WAIT = 2.0  # seconds to wait for a task

SILENCE_SECONDS = 60.0  # seconds without any answer after which the run folder is looked at
# and seconds between two looks; an answer that was published before the last one is lost
CHECK_SECONDS = 30.0
# times the longest of its pair's tasks so far, after which a task is queued again ...
OVERDUE_FACTOR = 20.0
OVERDUE_SECONDS = 900.0  # ... but not before so many seconds
SUSPENDED_SECONDS = 60.0  # seconds between two calls, after which this process itself was suspended
NOTE_SECONDS = 600.0  # seconds without any answer that the user is told of, and then twice as many


class Scheduler:
    """Hands out the tasks of a plan and yields their receipts as they come.

    Args:
        plan: what is played.
        executor: what runs it.
        watcher: told of what is lost or overdue.

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
        self.pace = Pace(plan.suite.problems, plan.measured)
        # A number is a task that is made when it is played.
        self.queue: deque[int | Task] = deque(range(len(plan.tasks)))
        self.rounds = plan.tasks.rounds  # that wait
        self.losses_left = LOST_NODES_PER_TASK * max(1, len(plan.tasks))
        self.crashes: dict[str, int] = {}
        self.print_noted = False
        self.loss_noted_at = -LOSS_NOTE_SECONDS
        self.overdue = OverdueTasks(plan.folder, watcher)
        self.silent = SilentTasks()
        work = self.pace.total(plan.tasks)
        expected = None if work is None else work / min(executor.slots, len(plan.tasks.cells))
        self.counter = RoundCounter(plan.tasks, executor, expected)

    def play(self) -> Iterator[Receipt]:
        """Receipts of all tasks, as they come. Closing the executor ends what is in play.

        Raises:
            CbobenchError: a worker has other code, cannot write, or cannot start; too many nodes
                were lost; the executor died before all was published.
        """
        for receipt in self._play():
            self.counter.add(receipt)
            yield receipt

    def _play(self) -> Iterator[Receipt]:
        try:
            while self.queue or self.executor.pending:
                send_heartbeat(self.folder)
                self._submit()
                yield from self._take_answers()
                yield from self._end_silent_workers()
                yield from self._give_up_overdue()
        except OtherCode as error:
            raise error.name_modules() from None
        except ExecutorDied:
            # What was published before the executor died needs no other play.
            published = self.folder.published_tasks()
            for task in [task for task in self.executor.pending if task.name in published]:
                with suppress(ExecutorDied):
                    self.executor.cancel(task)
                yield published_receipt(self.folder, task)
            if self.queue or self.executor.pending:
                raise

    def _take_answers(self) -> Iterator[Receipt]:
        for task, answer in self.executor.collect(WAIT):
            self.overdue.answered(task, answer)
            yield from self._settle(task, answer)

    def _end_silent_workers(self) -> Iterator[Receipt]:
        for task, crash in self.silent.look(self.executor):
            self.watcher.note(f"{task.name}: {crash.how}; its worker is ended")
            self.executor.cancel(task)
            yield from self._settle(task, crash)

    def _give_up_overdue(self) -> Iterator[Receipt]:
        for task, receipt in self.overdue.look(self.executor.pending):
            self.executor.cancel(task)
            if receipt is None:
                self._queue_again([task])
            else:
                yield receipt

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
            longest = max(range(len(tasks)), key=lambda i: self.pace.expected(tasks[i]) or inf)
            self.queue = deque([tasks.pop(longest), *tasks])
        task, *later_pieces = self.pace.pieces(
            self._make_task(self.queue.popleft()), slots, self.rounds
        )
        self.queue.extendleft(reversed(later_pieces))
        return task

    def _make_task(self, entry: int | Task) -> Task:
        return self.tasks[entry] if isinstance(entry, int) else entry

    def _queue_again(self, tasks: Iterable[Task]) -> None:
        tasks = [*tasks]
        self.rounds += sum(task.rounds for task in tasks)
        self.queue.extendleft(reversed(tasks))

    def _settle(self, task: Task, answer: Answer) -> Iterator[Receipt]:
        """Yield a receipt if the task is over; else it is queued again, whole or in two halves."""
        match answer:
            case Receipt():
                self._hear(task, answer)
                yield answer
            case ReturnedTask():
                # It is longer than a task of unknown pace may be. Now its pace is known, and it is
                # cut before its play.
                self.pace.learn(task, answer.seconds, answer.rounds)
                self._queue_again([task])
            case NodeLost():
                self._count_loss(task, answer)
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
            self.pace.learn(task, receipt.seconds, receipt.rounds)
        for text in receipt.notes:
            self.watcher.note(text)
        if receipt.printed and not self.print_noted:
            self.print_noted = True
            began = f"{task.pair.label} began with {show(receipt.printed)}"
            self.watcher.note(f"what cells print is shown only with --cpus 0; {began}")

    def _count_loss(self, task: Task, loss: NodeLost) -> None:
        """Raise `CbobenchError` where ever more nodes are lost; note a loss, but not each of many
        at once.
        """
        self.losses_left -= 1
        if self.losses_left < 0:
            raise CbobenchError(
                "too many tasks lost their node; run again when the cluster is well"
            )
        if loss.elsewhere and time.monotonic() - self.loss_noted_at >= LOSS_NOTE_SECONDS:
            self.loss_noted_at = time.monotonic()
            self.watcher.note(
                f"a machine was lost that played {task.name}; its tasks are queued again"
            )

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
            row = failed_row(task.cells[0], task, CellFailure(how), crash.trace)
            yield publish_cells(self.folder, task, [row])


class OverdueTasks:
    """Finds tasks whose answer was lost although their results are published, and tasks that were
    lost themselves.

    A worker ends hanging cells itself (`cbobench.play.watchdog`); this class covers the way from
    worker to driver.

    Args:
        folder: the run.
        watcher: told of what is overdue.
    """

    def __init__(self, folder: RunFolder, watcher: Watcher) -> None:
        self.folder, self.watcher = folder, watcher
        self.answered_at = self.checked_at = self.called_at = time.monotonic()
        self.longest: dict[tuple[str, str], float] = {}
        self.published: set[str] = set()
        self.note_after = NOTE_SECONDS

    def answered(self, task: Task, answer: Answer) -> None:
        """An answer has come."""
        self.answered_at, self.note_after = time.monotonic(), NOTE_SECONDS
        if isinstance(answer, Receipt) and answer.seconds is not None:
            key = _names(task)
            self.longest[key] = max(self.longest.get(key, 0.0), answer.seconds)

    def look(self, pending: Collection[Task]) -> Iterator[tuple[Task, Receipt | None]]:
        """Pending tasks to give up after long silence: with a receipt, or None to queue them
        again.
        """
        current_time = time.monotonic()
        # This process itself was suspended. In that time it could hear of nobody.
        if current_time - self.called_at > SUSPENDED_SECONDS:
            self.answered_at += current_time - self.called_at
        self.called_at = current_time
        silence, since_check = current_time - self.answered_at, current_time - self.checked_at
        if not pending or silence < SILENCE_SECONDS or since_check < CHECK_SECONDS:
            return
        self.checked_at = current_time
        minutes = f"{silence / 60:.0f} min"
        try:
            published = self.folder.published_tasks()
        except (OSError, CbobenchError):  # the store does not answer either
            published = set()
        overdue = []
        for task in list(pending):
            # It was published before the last look already: its answer has had the time between two
            # looks to come.
            if task.name in published & self.published:
                self.watcher.note(f"{task.name} is done, though its worker's answer was lost")
                yield task, published_receipt(self.folder, task)
            elif task.name not in published and self._is_overdue(task, current_time):
                overdue.append(task)
        self.published = published
        if overdue:
            self.watcher.note(
                f"no answer for {minutes} from {list_names((task.name for task in overdue), 3)}; "
                "queued again"
            )
            yield from ((task, None) for task in overdue)
            # The silence begins anew. Otherwise the next look would find what is queued now overdue
            # as well.
            self.answered_at = current_time
        elif current_time - self.answered_at >= self.note_after:
            self.note_after *= 2
            self.watcher.note(
                f"no answer for {minutes}; in play: "
                f"{list_names((task.name for task in pending), 3)}"
            )

    def _is_overdue(self, task: Task, current_time: float) -> bool:
        """Whether the time since the last answer is far longer than the pair's tasks took."""
        longest = self.longest.get(_names(task))
        return longest is not None and current_time - self.answered_at > max(
            OVERDUE_SECONDS, OVERDUE_FACTOR * longest
        )


@dataclass
class _Silence:
    """Of a task in play: its worker's last report, and the seconds without another one, now and at
    most.
    """

    stamp: int
    seconds: float = 0.0
    longest: float = 0.0


class SilentTasks:
    """Finds tasks whose worker says nothing any more: it was stopped, or what held it up would
    never have ended.

    A worker reports each second whatever its play does (`cbobench.play.watchdog.reporting`), and
    ends itself where a play hangs.
    """

    def __init__(self) -> None:
        self.silences: dict[str, _Silence] = {}
        self.called_at = time.monotonic()

    def look(self, executor: Executor) -> Iterator[tuple[Task, WorkerCrashed]]:
        """Yield the pending tasks to give up, and what became of them."""
        current_time = time.monotonic()
        # While this process itself was suspended, it could hear of nobody.
        passed, self.called_at = min(current_time - self.called_at, 2 * WAIT), current_time
        reports = dict(executor.reports)
        before, self.silences = self.silences, {}
        for task in [task for task in executor.pending if task.name in reports]:
            silence = before.get(task.name) or _Silence(-1)
            if silence.stamp == reports[task.name].stamp:
                silence.seconds += passed
            else:
                longest = max(silence.longest, silence.seconds)
                silence = _Silence(reports[task.name].stamp, longest=longest)
            allowed = allowed_silence(task.timeout, len(task.cells), task.horizon, silence.longest)
            if silence.seconds > allowed:
                seconds = f"{silence.seconds:.0f} s"
                yield (
                    task,
                    WorkerCrashed(
                        f"no word of its worker for {seconds}: stopped, or suspended?", hung=True
                    ),
                )
            else:
                self.silences[task.name] = silence


def _names(task: Task) -> tuple[str, str]:
    """What the tasks of a problem and an algorithm share, which may be of several pairs."""
    return task.pair.problem.title, task.pair.algorithm.name
