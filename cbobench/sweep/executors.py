"""Executors run tasks: in this process, or in worker processes of this machine (on Ray:
`cbobench.sweep.ray_executor`).

A process that has no other threads forks its workers, which takes milliseconds; another one (a
notebook's), or one that imported NumPy before the arithmetic was chosen, starts fresh interpreters
(see `cbobench.sweep.children`), and so does one that has imported code that a worker must not
meet. A worker plays the cells of one company (see `cbobench.play.isolation`).
"""

from __future__ import annotations

import os
import pickle
import select
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cbobench.errors import CbobenchError
from cbobench.play.isolation import Company
from cbobench.play.task import (
    Receipt,
    Task,
    WorkerCrashed,
    describe_error,
    play_task,
    play_task_on_worker,
)
from cbobench.play.watchdog import Heartbeat, ReturnedTask
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.sweep.blocks import machine_memory
from cbobench.sweep.children import (
    Child,
    become_worker,
    describe_end,
    end_worker,
    spawn,
)

# workers in a row that end before they begin: none will; a single one may have been killed
FAILED_STARTS = 3
IDLE_SECONDS = 60.0  # after which a worker of a company that has nothing to play is ended


class Report(NamedTuple):
    """How far a task is that is played.

    Attributes:
        rounds: seed-rounds.
        stamp: another one in each report: who says the same again is there.
    """

    rounds: int = 0
    stamp: int = 0


Answer = Receipt | WorkerCrashed | ReturnedTask


class Refused(NamedTuple):
    """What was asked for cannot be done: the driver raises the error."""

    error: CbobenchError


class ExecutorDied(CbobenchError):
    """An executor has ended, and not because it was closed; what is published stays."""


class Executor(Protocol):
    """Runs tasks.

    Attributes:
        slots: how many tasks run at a time.
        pending: tasks that were submitted and not yet collected.
        reports: the last one on each pending task that has begun, by name, about one a second; to
            be copied at once, because other threads change it.
    """

    @property
    def slots(self) -> int: ...
    @property
    def pending(self) -> Collection[Task]: ...
    @property
    def reports(self) -> Mapping[str, Report]: ...
    def room(self) -> int:
        """How many more tasks may be submitted."""

    def accepts(self, task: Task) -> bool:
        """Whether there is, beside what is pending, what a task demands of a machine."""

    def submit(self, task: Task) -> None:
        """Begin a task, or queue it."""

    def collect(self, seconds: float) -> Iterable[tuple[Task, Answer]]:
        """Tasks that have ended, waiting up to some seconds for one.

        Raises:
            CbobenchError: a worker cannot start, or refuses its task. ExecutorDied: this executor
                has ended.
        """

    def cancel(self, task: Task) -> None:
        """End a task, wherever it is."""

    def close(self) -> None:
        """End all that is pending."""


class Play(NamedTuple):
    """A task to play, of the problem of that title, which comes pickled the first time (else
    None).
    """

    title: str
    problem: bytes | None
    task: Task
    folder: RunFolder


class Progress(NamedTuple):
    """How many seed-rounds of its task a worker has played; it says so first as it begins."""

    rounds: int


class Played(NamedTuple):
    """What became of a task."""

    answer: Answer


def usable_cpus() -> int:
    """CPUs that this process may use: those that it is bound to, at most its container's quota."""
    bound = getattr(os, "sched_getaffinity", None)
    count = len(bound(0)) if bound else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or no quota ("max")
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, ceil(int(quota) / int(period))))
    return count


def pickle_problem(problem: Problem) -> bytes:
    """A problem for another process; by Ray's pickler where Python's fails (functions within
    functions).
    """
    try:
        return pickle.dumps(problem)
    except Exception:
        from cbobench.sweep.ray_start import import_ray

        return bytes(import_ray(None).cloudpickle.dumps(problem))


def unpickle_problem(content: bytes) -> Problem:
    """A problem of our own driver."""
    problem: Problem = pickle.loads(content)  # noqa: S301 - from our own driver
    return problem


class InlineExecutor:
    """Runs tasks in this process, one at a time."""

    slots = 1

    def __init__(self, problems: Mapping[str, Problem], folder: RunFolder) -> None:
        self.problems = problems
        self.folder = folder
        self.pending: list[Task] = []
        self.reports: dict[str, Report] = {}

    def room(self) -> int:
        return 1 - len(self.pending)

    def accepts(self, task: Task) -> bool:
        return True

    def submit(self, task: Task) -> None:
        self.pending.append(task)

    def collect(self, seconds: float) -> Iterator[tuple[Task, Answer]]:
        for task in self.pending:
            problem = self.problems[task.pair.problem.title]
            with Heartbeat(partial(self._count, task.name)) as beat:
                answer = play_task(problem, task, self.folder, beat)
            self.reports.clear()
            yield task, answer
        self.pending.clear()

    def _count(self, name: str, rounds: int) -> None:
        self.reports[name] = Report(rounds)

    def cancel(self, task: Task) -> None:
        """Nothing runs between two calls."""

    def close(self) -> None:
        """Remove what was half-written, even where a signal came while a play removed it."""
        self.folder.remove_temporary([task.name for task in self.pending])


@dataclass
class _Worker:
    """A worker process, whose code it may import, the titles of the problems that it holds, its
    task, and how far that is.
    """

    child: Child
    company: Company
    problems: set[str]
    task: Task | None = None
    ready: bool = False
    report: Report = Report()
    idle_since: float = field(default_factory=time.monotonic)


class ProcessExecutor:
    """Runs tasks in worker processes of this machine, which begin with the first tasks of their
    company.

    No pool of a library replaces it. `pebble` 5.2 fails one task per crash and has time limits per
    task, but its workers play on when the driver is killed
    (test_workers_end_with_a_driver_that_is_killed); forked, they are replaced from a driver that
    then has three threads, and otherwise take longer than 0.3 s to start. In `loky` 3.7 a crash
    fails every task in play (test_a_cell_that_crashes_its_worker_is_found_and_the_others_stand).

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        slots: how many tasks run at a time, at least 1.
        cpus: CPUs that tasks may take together.
    """

    def __init__(
        self, problems: Mapping[str, Problem], folder: RunFolder, slots: int, cpus: int
    ) -> None:
        self.problems = problems
        self.folder = folder
        self.slots = slots
        self.cpus = cpus
        self.workers: list[_Worker] = []
        self.failed_starts = 0
        # Arrow does when it makes its first table: once here, not in every fork
        import pandas as pandas

    @property
    def pending(self) -> list[Task]:
        return [worker.task for worker in self.workers if worker.task is not None]

    @property
    def reports(self) -> dict[str, Report]:
        return {
            worker.task.name: worker.report for worker in [*self.workers] if worker.task is not None
        }

    def room(self) -> int:
        return self.slots - len(self.pending)

    def accepts(self, task: Task) -> bool:
        demands = [running.demand for running in self.pending]
        cpus = sum(demand.cpus for demand in demands)
        memory = sum(demand.memory for demand in demands)
        return not demands or task.demand.fits(self.cpus - cpus, machine_memory() - memory)

    def submit(self, task: Task) -> None:
        """Send a task to an idle worker; one that has died meanwhile is noticed by `collect`."""
        company = task.company
        idle = (w for w in self.workers if w.task is None and w.company == company)
        worker = next(idle, None) or self._start(company)
        worker.task = task
        worker.report = Report()
        title = task.pair.problem.title
        problem = None if title in worker.problems else pickle_problem(self.problems[title])
        worker.problems.add(title)
        with suppress(OSError):
            worker.child.link.send(Play(title, problem, task, self.folder))

    def collect(self, seconds: float) -> Iterator[tuple[Task, Answer]]:
        readable = wait([worker.child.link for worker in self.workers], seconds)
        for worker in [worker for worker in self.workers if worker.child.link in readable]:
            try:
                message = worker.child.link.recv()
            except (EOFError, OSError):
                # the worker has ended, or stopped in a message, and its task with it
                how = describe_end(self._end(worker))
                if worker.task is not None:
                    yield worker.task, WorkerCrashed(how)
                continue
            match message:
                case Refused(error):
                    raise error
                case Progress(rounds):
                    worker.ready = True
                    self.failed_starts = 0
                    worker.report = Report(rounds, worker.report.stamp + 1)
                case Played(answer):
                    task = worker.task
                    worker.task = None
                    worker.idle_since = time.monotonic()
                    assert task is not None
                    yield task, answer

        # A worker whose company has nothing more to play keeps memory from the others.
        for worker in [*self.workers]:
            if worker.task is None and time.monotonic() - worker.idle_since > IDLE_SECONDS:
                self._end(worker)

    def cancel(self, task: Task) -> None:
        for worker in [worker for worker in self.workers if worker.task is task]:
            self._end(worker)

    def close(self) -> None:
        for worker in self.workers:
            worker.child.end()
        self.folder.remove_temporary([task.name for task in self.pending])
        self.workers.clear()

    def _end(self, worker: _Worker) -> int | None:
        """End a worker, with all that it has started; how it ended (see `Child.end`)."""
        self.workers.remove(worker)
        code = worker.child.end()
        if worker.task is not None:
            self.folder.remove_temporary([worker.task.name])
        self.failed_starts += not worker.ready
        if self.failed_starts == FAILED_STARTS:
            raise CbobenchError(
                "a worker process ended before it began; --cpus 0 plays in this process"
            )
        return code

    def _start(self, company: Company) -> _Worker:
        serve = partial(serve_tasks, problems=dict(self.problems))
        child = spawn(f"{__name__}:serve_tasks", serve, fresh=not company.may_fork)
        # A fork has the problems that this process holds. A fresh interpreter is sent each with the
        # first task of it.
        worker = _Worker(child, company, {*self.problems} if child.process is None else set())
        self.workers.append(worker)
        return worker


def serve_tasks(link: Any, problems: dict[str, Problem] | None = None) -> None:
    """Run the tasks that arrive until the driver goes.

    While a task is played, its progress is sent each second. The thread that does has ended when
    the answer is sent.
    """
    inbox = become_worker(link)

    def report(rounds: int) -> None:
        # else the driver is suspended, and the play must not wait for it
        if select.select([], [link], [], 0.0)[1]:
            _send(link, Progress(rounds))

    with suppress(OSError):
        # where memory runs out, before its driver
        Path("/proc/self/oom_score_adj").write_text("1000")
    problems_by_title = {} if problems is None else problems
    while True:
        title, problem, task, folder = inbox.get()
        answer: Played | Refused
        try:
            with Heartbeat(report) as beat:
                if problem is not None:
                    problems_by_title[title] = unpickle_problem(problem)
                answer = Played(play_task_on_worker(problems_by_title[title], task, folder, beat))
        except CbobenchError as error:
            answer = Refused(error)
        except BaseException as error:
            answer = Refused(
                CbobenchError(
                    f"task {task.name} could not be carried out: {describe_error(error)[0]}"
                )
            )
        _send(link, answer)


def _send(link: Any, message: Progress | Played | Refused) -> None:
    """Send a message; end this process if the driver is gone."""
    try:
        link.send(message)
    except OSError:
        end_worker()
