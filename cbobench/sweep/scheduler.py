"""Hands the tasks of a sweep to an executor, and decides what follows where a task does not end well.

A task that loses its node is queued again. One that crashes its worker, runs out of memory or hangs is halved until the
cell at fault is alone; that cell fails after three crashes, or two hangs. A task that nothing is heard of for long is
looked up in the run folder, and queued again if other tasks of its pair took far less time. One whose worker does not
even report that it runs hangs.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite

from cbobench.errors import CbobenchError, CellFailure, Misuse, show, unknown
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
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.results.lease import pair_id, send_heartbeat
from cbobench.sweep.blocks import Pace, Tasks
from cbobench.sweep.cluster import collect_code
from cbobench.sweep.executors import (
    Executor,
    ExecutorDied,
    InlineExecutor,
    ProcessExecutor,
    usable_cpus,
)
from cbobench.sweep.messages import Answer, NodeLost
from cbobench.sweep.ray_executor import RayExecutor
from cbobench.sweep.run_options import Budget, EngineOptions
from cbobench.words import count_noun, list_names

ENGINES = ("ray", "processes", "inline")
# Tasks that worker processes run by default. On one machine they are never slower: Ray begins seconds later and takes
# 20 ms of CPU time more per task (measured with 8 and with 264); for more tasks that is little beside what they take.
SMALL = 64
CRASHES_OF_A_CELL = 3
HANGS_OF_A_CELL = 2  # a process that was suspended may seem to hang, once
LOST_NODES_PER_TASK = 20
LOSS_NOTE_SECONDS = 10.0  # seconds between two notes on lost tasks: a machine loses many at once
LONGEST_FIRST, LONGEST_FIRST_PER_SLOT = 64, 4  # waiting tasks of which the longest is handed out first
WAIT = 2.0  # seconds to wait for a task

SILENCE_SECONDS = 60.0  # seconds without any answer after which the run folder is looked at
CHECK_SECONDS = 30.0  # and seconds between two looks; an answer that was published before the last one is lost
OVERDUE_FACTOR = 20.0  # times the longest of its pair's tasks so far, after which a task is queued again ...
OVERDUE_SECONDS = 900.0  # ... but not before so many seconds
SUSPENDED_SECONDS = 60.0  # seconds between two calls, after which this process itself was suspended
NOTE_SECONDS = 600.0  # seconds without any answer that the user is told of, and then twice as many


def choose_engine(engine: str | None, cpus: int | None, address: str | None) -> str | None:
    """The engine that the options name; None if the number of tasks decides (see `start_executor`).

    Raises:
        Misuse: an unknown engine, or options that exclude each other.
    """
    if engine not in (None, *ENGINES):
        raise unknown("engine", engine, ENGINES)
    if cpus == 0 and address is not None:
        raise Misuse("--cpus 0 plays in this process, --address on a cluster; give one of them")
    if cpus == 0 and engine in ("ray", "processes"):
        raise Misuse(f"--cpus 0 plays in this process, --engine {engine} does not; give one of them")
    if address is not None and engine in ("processes", "inline"):
        raise Misuse(f"--engine {engine} plays on this machine, --address on a cluster; give one of them")
    return "inline" if cpus == 0 else "ray" if address is not None else engine


def ray_is_started() -> bool:
    """Whether this program has started Ray itself."""
    imported = sys.modules.get("ray")
    return imported is not None and bool(imported.is_initialized())


def start_executor(
    problems: Mapping[str, Problem],
    folder: RunFolder,
    tasks: Tasks,
    engine_options: EngineOptions,
    *,
    ship: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> Executor:
    """Start the executor that the options name; by default Ray, or worker processes if there are few tasks.

    A Ray that the program has started itself runs all tasks. Worker processes replace a Ray that does not start here.

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        engine_options: where they are played.
        ship: whether this machine's code is sent to the cluster.
        note: called with one line that says who plays.

    Raises:
        Misuse: options that exclude each other. CbobenchError: what was asked for cannot be started.
    """
    cpus, address = engine_options.cpus, engine_options.address
    chosen_engine = choose_engine(engine_options.engine, cpus, address)
    if ship and address is None:
        raise Misuse("--ship sends this machine's code to a cluster; give its --address, too")
    if chosen_engine == "inline":
        note("played by this process")
        return InlineExecutor(problems, folder)
    ray_started = ray_is_started()
    if ray_started and address is not None:
        raise Misuse(f"this program has started Ray already; leave address {show(address)} out, or call ray.shutdown()")
    if chosen_engine == "ray" or (chosen_engine is None and (ray_started or len(tasks) > SMALL)):
        if ray_started:
            address = sys.modules["ray"].get_runtime_context().gcs_address
        code = None if address is None else collect_code(tasks.sources, ship)
        try:
            limit = cpus if ray_started or address is None else None
            ray = RayExecutor(problems, folder, limit, address, code, note)
        except CbobenchError as error:
            if chosen_engine == "ray" or ray_started:
                raise
            note(f"Ray did not start ({error}); worker processes play instead")
        else:
            note("played on Ray")
            return ray
    cpus = cpus or usable_cpus()
    workers = ProcessExecutor(problems, folder, min(cpus, len(tasks)), cpus)
    note(f"played by {count_noun(workers.slots, 'worker process')}")
    return workers


class Scheduler:
    """Hands out tasks and yields their receipts as they come.

    Args:
        folder: the run.
        tasks: to play.
        executor: what runs them.
        pace: how long tasks take.
        note: called with one line about what is lost or overdue.
        budget: no further task begins once it is spent.

    Attributes:
        spent: whether tasks were left for the budget's sake.
    """

    def __init__(
        self,
        folder: RunFolder,
        tasks: Tasks,
        executor: Executor,
        pace: Pace,
        note: Callable[[str], None] = lambda text: None,
        budget: Budget | None = None,
    ) -> None:
        self.folder, self.executor, self.pace, self.note = folder, executor, pace, note
        self.budget, self.spent = budget or Budget(None), False
        self.tasks = tasks
        self.queue: deque[int | Task] = deque(range(len(tasks)))  # a number is a task that is made when it is played
        self.rounds = tasks.rounds  # that wait
        self.losses_left = LOST_NODES_PER_TASK * max(1, len(tasks))
        self.crashes: dict[str, int] = {}
        self.print_noted = False
        self.loss_noted_at = -LOSS_NOTE_SECONDS
        self.overdue = OverdueTasks(folder, note)
        self.silent = SilentTasks()
        self.best_over: dict[str, list[float]] = {}  # seen by the cells that this call has played

    def play(self) -> Iterator[Receipt]:
        """Receipts of all tasks, as they come. Closing the executor ends what is in play.

        Raises:
            CbobenchError: a worker has other code, cannot write, or cannot start; too many nodes were lost; the
                executor died before all was published.
        """
        try:
            while self.queue or self.executor.pending:
                send_heartbeat(self.folder)
                self._submit()
                for task, answer in self.executor.collect(WAIT):
                    self.overdue.answered(task, answer)
                    receipt = self._settle(task, answer)
                    if receipt is not None:
                        yield self._account(receipt)
                for task, crash in self.silent.look(self.executor):
                    self.note(f"{task.name}: {crash.how}; its worker is ended")
                    self.executor.cancel(task)
                    receipt = self._settle(task, crash)
                    if receipt is not None:
                        yield self._account(receipt)
                for task, receipt in self.overdue.look(self.executor.pending):
                    self.executor.cancel(task)
                    if receipt is None:
                        self._queue_again([task])
                    else:
                        yield self._account(receipt)
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

    def cells_in_play(self) -> dict[str, list[int]]:
        """Submitted cells by a hash of pair and horizon: [count, finished seed-rounds]."""
        counts_by_pair: dict[str, list[int]] = {}
        # Copies, because the thread that sends heartbeats may ask while tasks begin and end.
        rounds = dict(self.executor.rounds)
        for task in [*self.executor.pending]:
            rounds_per_cell = rounds.get(task.name, 0) // len(task.cells)
            for cell in task.cells:
                counts = counts_by_pair.setdefault(pair_id(cell.pair, cell.horizon), [0, 0])
                counts[0] += 1
                counts[1] += rounds_per_cell
        return counts_by_pair

    def best_seen(self) -> dict[str, list[float]]:
        """Of cells that this call plays or has played, by a hash of pair and horizon, those that have seen a feasible
        point: [count, mean, best] of the rewards (see `Play.best_seen`).
        """
        seen = {key: [*values] for key, values in [*self.best_over.items()]}
        best = dict(self.executor.best)
        for task in [*self.executor.pending]:
            _add_best(seen, task, best.get(task.name, ()))
        return {key: [len(values), sum(values) / len(values), max(values)] for key, values in seen.items()}

    def rounds_in_play(self) -> int:
        """Finished seed-rounds of tasks that are not over."""
        return sum(dict(self.executor.rounds).values())

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
        task, *later_pieces = self.pace.pieces(self._make_task(self.queue.popleft()), slots, self.rounds)
        self.queue.extendleft(reversed(later_pieces))
        return task

    def _make_task(self, entry: int | Task) -> Task:
        return self.tasks[entry] if isinstance(entry, int) else entry

    def _queue_again(self, tasks: Iterable[Task]) -> None:
        tasks = [*tasks]
        self.rounds += sum(task.rounds for task in tasks)
        self.queue.extendleft(reversed(tasks))

    def _account(self, receipt: Receipt) -> Receipt:
        """Charge a task to the budget; once it is spent, drop the tasks that have not begun."""
        if self.budget.over(receipt) and self.queue:
            self.spent, self.rounds = True, 0
            self.queue.clear()
        return receipt

    def _settle(self, task: Task, answer: Answer) -> Receipt | None:
        """A receipt if the task is over; else the task is queued again, whole or in two halves."""
        if isinstance(answer, Receipt):
            _add_best(self.best_over, task, answer.best)
            if answer.seconds is not None:
                self.pace.learn(task, answer.seconds, answer.rounds)
            for text in answer.notes:
                self.note(text)
            if answer.printed and not self.print_noted:
                self.print_noted = True
                began = f"{task.pair.label} began with {show(answer.printed)}"
                self.note(f"what cells print is shown only with --cpus 0; {began}")
            return answer
        # It is longer than a task of unknown pace may be. Now its pace is known, and it is cut before it is played.
        if isinstance(answer, ReturnedTask):
            self.pace.learn(task, answer.seconds, answer.rounds)
            self._queue_again([task])
            return None
        if isinstance(answer, NodeLost):
            self.losses_left -= 1
            if self.losses_left < 0:
                raise CbobenchError("too many tasks lost their node; run again when the cluster is well")
            self._queue_again([task])
            if answer.elsewhere and time.monotonic() - self.loss_noted_at >= LOSS_NOTE_SECONDS:
                self.loss_noted_at = time.monotonic()
                self.note(f"a machine was lost that played {task.name}; its tasks are queued again")
            return None
        # One of its cells may be at fault. Half by half it is soon alone, and the others are played.
        if len(task.cells) > 1:
            self._queue_again(task.halves())
            return None
        self.crashes[task.name] = self.crashes.get(task.name, 0) + 1
        if self.crashes[task.name] < (HANGS_OF_A_CELL if answer.hung else CRASHES_OF_A_CELL):
            self.rounds += task.rounds
            self.queue.append(task)  # what killed it, a lack of memory, say, may have passed by then
            return None
        how = answer.how if answer.hung else f"the cell {answer.how} {CRASHES_OF_A_CELL} times"
        return publish_cells(self.folder, task, [failed_row(task.cells[0], task, CellFailure(how), answer.trace)])


def _add_best(seen: dict[str, list[float]], task: Task, best: Iterable[float]) -> None:
    """Add what cells of a task have seen; NaN is nothing."""
    for cell, value in zip(task.cells, best, strict=False):
        if isfinite(value):
            seen.setdefault(pair_id(cell.pair, cell.horizon), []).append(value)


class OverdueTasks:
    """Finds tasks whose answer was lost although their results are published, and tasks that were lost themselves.

    A worker ends hanging cells itself (`cbobench.play.watchdog`); this class covers the way from worker to driver.

    Args:
        folder: the run.
        note: called with one line about what is overdue.
    """

    def __init__(self, folder: RunFolder, note: Callable[[str], None]) -> None:
        self.folder, self.note = folder, note
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
        """Pending tasks to give up after long silence: with a receipt, or None to queue them again."""
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
            # It was published before the last look already: its answer has had the time between two looks to come.
            if task.name in published & self.published:
                self.note(f"{task.name} is done, though its worker's answer was lost")
                yield task, published_receipt(self.folder, task)
            elif task.name not in published and self._is_overdue(task, current_time):
                overdue.append(task)
        self.published = published
        if overdue:
            self.note(f"no answer for {minutes} from {list_names((task.name for task in overdue), 3)}; queued again")
            yield from ((task, None) for task in overdue)
            # The silence begins anew. Otherwise the next look would find what is queued now overdue as well.
            self.answered_at = current_time
        elif current_time - self.answered_at >= self.note_after:
            self.note_after *= 2
            self.note(f"no answer for {minutes}; in play: {list_names((task.name for task in pending), 3)}")

    def _is_overdue(self, task: Task, current_time: float) -> bool:
        """Whether the time since the last answer is far longer than the pair's tasks took."""
        longest = self.longest.get(_names(task))
        return longest is not None and current_time - self.answered_at > max(OVERDUE_SECONDS, OVERDUE_FACTOR * longest)


@dataclass
class _Silence:
    """Of a task in play: how often its worker has reported, and for how many seconds it has not, now and at most."""

    reports: int
    seconds: float = 0.0
    longest: float = 0.0


class SilentTasks:
    """Finds tasks whose worker says nothing any more: it was stopped, or what held it up would never have ended.

    A worker reports each second whatever its play does (`cbobench.play.watchdog.reporting`), and ends itself where a
    play hangs.
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
            if silence.reports == reports[task.name]:
                silence.seconds += passed
            else:
                longest = max(silence.longest, silence.seconds)
                silence = _Silence(reports[task.name], longest=longest)
            allowed = allowed_silence(task.timeout, len(task.cells), task.horizon, silence.longest)
            if silence.seconds > allowed:
                seconds = f"{silence.seconds:.0f} s"
                yield task, WorkerCrashed(f"no word of its worker for {seconds}: stopped, or suspended?", hung=True)
            else:
                self.silences[task.name] = silence


def _names(task: Task) -> tuple[str, str]:
    """What the tasks of a problem and an algorithm share, which may be of several pairs."""
    return task.pair.problem.title, task.pair.algorithm.name
