"""Executors run tasks: in this process, or in worker processes of this machine (on Ray: `cbobench.sweep.ray_executor`).

A process that has no other threads forks its workers, which takes milliseconds; another one (a notebook's), or one that
imported NumPy before the arithmetic was chosen, starts fresh interpreters. A worker ends when its driver's end of their
socket closes, however the driver ended. Signals to the driver's process group do not reach it. With it end the programs
that its cells have started; a worker in which cells leave any, or other traces, is replaced.
"""

from __future__ import annotations

import importlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn, Protocol

from cbobench.arithmetic import is_as_requested
from cbobench.errors import CbobenchError
from cbobench.play.failure import describe_error
from cbobench.play.process import Traces, refuse_replaced
from cbobench.play.task import Receipt, Task, WorkerCrashed, explain_crash, play_task, play_task_on_worker
from cbobench.play.watchdog import ReturnedTask
from cbobench.problems.base import Problem
from cbobench.processes import end_session
from cbobench.registry import fresh_interpreter
from cbobench.results.folder import RunFolder
from cbobench.surroundings import Surroundings
from cbobench.sweep.blocks import machine_memory
from cbobench.sweep.interrupt import SIGNALS, ignore
from cbobench.threads import THREAD_VARIABLES, has_lingering_threads

READY = "ready"
FAILED_STARTS = 3  # workers in a row that end before they begin: none will; a single one may have been killed
FORK_SAFE = {"jemalloc_bg_thd"}  # Arrow's allocator, which starts its thread again in a fork
BOOT = "from cbobench.sweep.executors import begin; begin(sys.argv[1], int(sys.argv[2]))"


@dataclass(frozen=True)
class NodeLost:
    """A task whose node was lost: no fault of its own.

    Attributes:
        elsewhere: whether it may be another machine; a Ray on this one that loses its only node ends, and says so.
    """

    elsewhere: bool = True


class ExecutorDied(CbobenchError):
    """An executor has ended, and not because it was closed; what is published stays."""


Answer = Receipt | WorkerCrashed | ReturnedTask | NodeLost


class Executor(Protocol):
    """Runs tasks.

    Attributes:
        slots: how many tasks run at a time.
        pending: tasks that were submitted and not yet collected.
        rounds: seed-rounds of pending tasks that are played, by name, as reported about once a second; to be copied at
            once, because other threads change it.
        best: likewise the best that their cells have seen so far (see `Play.best_seen`).
    """

    @property
    def slots(self) -> int: ...
    @property
    def pending(self) -> Collection[Task]: ...
    @property
    def rounds(self) -> Mapping[str, int]: ...
    @property
    def best(self) -> Mapping[str, tuple[float, ...]]: ...
    def room(self) -> int:
        """How many more tasks may be submitted."""

    def accepts(self, task: Task) -> bool:
        """Whether there is, beside what is pending, what a task demands of a machine."""

    def submit(self, task: Task) -> None:
        """Begin a task, or queue it."""

    def collect(self, seconds: float) -> Iterable[tuple[Task, Answer]]:
        """Tasks that have ended, waiting up to some seconds for one.

        Raises:
            CbobenchError: a worker cannot start, or refuses its task. ExecutorDied: this executor has ended.
        """

    def cancel(self, task: Task) -> None:
        """End a task, wherever it is."""

    def close(self) -> None:
        """End all that is pending."""


def usable_cpus() -> int:
    """CPUs that this process may use: those that it is bound to, at most its container's quota."""
    bound = getattr(os, "sched_getaffinity", None)
    count = len(bound(0)) if bound else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or no quota ("max")
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, ceil(int(quota) / int(period))))
    return count


def pickle_problem(problem: Problem) -> bytes:
    """A problem for another process; by Ray's pickler where Python's fails (functions within functions)."""
    try:
        return pickle.dumps(problem)
    except Exception:
        from cbobench.sweep.ray_start import import_ray

        return bytes(import_ray(None).cloudpickle.dumps(problem))


def unpickle_problem(content: bytes) -> Problem:
    """A problem of our own driver; what the import of its modules sets in this process is put back."""
    surroundings = Surroundings()
    try:
        problem: Problem = pickle.loads(content)  # noqa: S301 - from our own driver
    finally:
        surroundings.put_back(noted=False)
    return problem


class InlineExecutor:
    """Runs tasks in this process, one at a time."""

    slots = 1

    def __init__(self, problems: Mapping[str, Problem], folder: RunFolder) -> None:
        self.problems, self.folder = problems, folder
        self.pending: list[Task] = []
        self.rounds: dict[str, int] = {}
        self.best: dict[str, tuple[float, ...]] = {}

    def room(self) -> int:
        return 1 - len(self.pending)

    def accepts(self, task: Task) -> bool:
        return True

    def submit(self, task: Task) -> None:
        self.pending.append(task)

    def collect(self, seconds: float) -> Iterator[tuple[Task, Answer]]:
        for task in self.pending:
            count = partial(self._count, task.name)
            answer = play_task(self.problems[task.pair.problem.title], task, self.folder, count=count)
            refuse_replaced(task.pair.label)
            self.rounds.clear()
            self.best.clear()
            yield task, answer
        self.pending.clear()

    def _count(self, name: str, rounds: int, best: tuple[float, ...]) -> None:
        self.rounds[name], self.best[name] = rounds, best

    def cancel(self, task: Task) -> None:
        """Nothing runs between two calls."""

    def close(self) -> None:
        """Remove what was half-written, even where a signal came while a play removed it."""
        self.folder.remove_temporary([task.name for task in self.pending])


@dataclass
class Child:
    """A child process as its parent sees it."""

    pid: int
    process: subprocess.Popen[bytes] | None
    link: Any

    def end(self) -> int | None:
        """Kill it, if it has not ended, and all that it has started; returns its exit code, or minus the number of the
        signal that ended it.
        """
        end_session(self.pid)
        self.link.close()
        _open_links.discard(self.link)
        if self.process is not None:
            return self.process.wait()
        with suppress(ChildProcessError):  # a program of the user's may wait for all its children
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return None


@dataclass
class _Worker:
    """A worker process, the titles of the problems that it holds, its task, and how far that is."""

    child: Child
    problems: set[str]
    task: Task | None = None
    ready: bool = False
    rounds: int = 0  # played of its task
    best: tuple[float, ...] = ()  # that each of its cells has seen


class ProcessExecutor:
    """Runs tasks in worker processes of this machine, which begin at once.

    No pool of a library replaces it. `pebble` 5.2 fails one task per crash and has time limits per task, but its
    workers play on when the driver is killed (test_workers_end_with_a_driver_that_is_killed); forked, they are replaced
    from a driver that then has three threads, and otherwise take longer than 0.3 s to start. In `loky` 3.7 a crash
    fails every task in play (test_a_cell_that_crashes_its_worker_is_found_and_the_others_stand).

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        slots: how many workers, at least 1.
        cpus: CPUs that tasks may take together.
    """

    def __init__(self, problems: Mapping[str, Problem], folder: RunFolder, slots: int, cpus: int) -> None:
        self.problems, self.folder, self.slots, self.cpus = problems, folder, slots, cpus
        self.workers: list[_Worker] = []
        self.failed_starts = 0
        import pandas as pandas  # Arrow does when it makes its first table: once here, not in every fork

        try:
            for _ in range(slots):
                self._start()
        except BaseException:
            self.close()
            raise

    @property
    def pending(self) -> list[Task]:
        return [worker.task for worker in self.workers if worker.task is not None]

    @property
    def rounds(self) -> dict[str, int]:
        return {worker.task.name: worker.rounds for worker in [*self.workers] if worker.task is not None}

    @property
    def best(self) -> dict[str, tuple[float, ...]]:
        return {worker.task.name: worker.best for worker in [*self.workers] if worker.task is not None}

    def room(self) -> int:
        return self.slots - len(self.pending)

    def accepts(self, task: Task) -> bool:
        demands = [running.demand for running in self.pending]
        cpus, memory = sum(demand.cpus for demand in demands), sum(demand.memory for demand in demands)
        return not demands or task.demand.fits(self.cpus - cpus, machine_memory() - memory)

    def submit(self, task: Task) -> None:
        """Send a task to an idle worker; one that has died meanwhile is noticed by `collect`."""
        worker = next(worker for worker in self.workers if worker.task is None)
        worker.task, worker.rounds, worker.best = task, 0, ()
        title = task.pair.problem.title
        problem = None if title in worker.problems else pickle_problem(self.problems[title])
        worker.problems.add(title)
        with suppress(BrokenPipeError, ConnectionResetError):
            worker.child.link.send((title, problem, task, self.folder))

    def collect(self, seconds: float) -> Iterator[tuple[Task, Answer]]:
        links = {worker.child.link: worker for worker in self.workers}
        for link in wait(list(links), seconds):
            worker = links[link]  # type: ignore[index]
            try:
                answer, worn_out = worker.child.link.recv()
            except (EOFError, ConnectionResetError):
                how = describe_end(self._replace(worker))
                if worker.task is not None:
                    yield worker.task, explain_crash(self.folder, worker.task, how)
                continue
            if isinstance(answer, CbobenchError):
                raise answer
            if isinstance(answer, tuple):
                worker.rounds, worker.best = answer
                continue
            if answer == READY:
                worker.ready, self.failed_starts = True, 0
                continue
            task, worker.task = worker.task, None
            if worn_out:
                self._replace(worker)
            assert task is not None
            yield task, answer

    def cancel(self, task: Task) -> None:
        for worker in [worker for worker in self.workers if worker.task is task]:
            self._replace(worker)
            self.folder.remove_temporary([task.name])

    def close(self) -> None:
        for worker in self.workers:
            worker.child.end()
        self.folder.remove_temporary([task.name for task in self.pending])
        self.workers.clear()

    def _replace(self, worker: _Worker) -> int | None:
        """End a worker and start another; how it ended (see `Child.end`)."""
        self.workers.remove(worker)
        code = worker.child.end()
        self.failed_starts += not worker.ready
        if self.failed_starts == FAILED_STARTS:
            raise CbobenchError("a worker process ended before it began; --cpus 0 plays in this process")
        self._start()
        return code

    def _start(self) -> None:
        child = spawn(f"{__name__}:serve_tasks", partial(serve_tasks, problems=dict(self.problems)))
        # A fork has the problems that this process holds. A fresh interpreter is sent each with the first task of it.
        self.workers.append(_Worker(child, {*self.problems} if child.process is None else set()))


def describe_end(code: int | None) -> str:
    """How a worker ended, in words, from its exit code."""
    if code == -signal.SIGKILL:
        return "had its worker killed (SIGKILL: did the machine run out of memory?)"
    if code is not None and code < 0:
        return f"crashed its worker ({signal.Signals(-code).name})"
    return "crashed its worker"


def serve_tasks(link: Any, problems: dict[str, Problem] | None = None) -> None:
    """Run the tasks that arrive until the driver goes; each answer says whether this process must be replaced.

    While a task is played, pairs are sent: the seed-rounds so far, and the best that each cell has seen. They come from
    the thread that watches the play, which has ended when the answer is sent.
    """
    inbox = become_worker(link)

    def count(rounds: int, best: tuple[float, ...]) -> None:
        if select.select([], [link], [], 0.0)[1]:  # else the driver is suspended, and the play must not wait for it
            _answer(link, ((rounds, best), False))

    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # where memory runs out, before its driver
    problems_by_title = {} if problems is None else problems
    _answer(link, (READY, False))
    traces = Traces()
    while True:
        title, problem, task, folder = inbox.get()
        try:
            if problem is not None:
                problems_by_title[title] = unpickle_problem(problem)
            answer: Any = play_task_on_worker(problems_by_title[title], task, folder, count)
        except CbobenchError as error:
            answer = error
        except BaseException as error:
            answer = CbobenchError(f"task {task.name} could not be carried out: {describe_error(error)[0]}")
        if not traces.holds(link.fileno()):  # a cell has closed it; what was opened since is not the driver's
            _end_itself()
        # Later cells of this worker must not meet what a task leaves running, or what cannot be restored after it.
        _answer(link, (answer, has_lingering_threads() or traces.any_left()))


def _answer(link: Any, message: tuple[Any, bool]) -> None:
    """Send an answer; end this process if the driver is gone."""
    try:
        link.send(message)
    except OSError:
        _end_itself()


def _end_itself() -> NoReturn:
    """End this worker and the programs that it has started: its driver is gone."""
    try:
        end_session(os.getpid())
    finally:
        os._exit(1)


_open_links: set[Any] = set()
"""Links of this process. A fork closes them: an open copy would keep the processes behind them alive."""


def spawn(name: str, serve: Callable[[Any], None], fresh: bool = False) -> Child:
    """Start a process that serves this one through a socket.

    Args:
        name: of the function that serves in a fresh interpreter, as "module:function"; it gets the link.
        serve: the one that serves in a fork.
        fresh: whether it must be a fresh interpreter.
    """
    ours, theirs = Pipe()
    _open_links.add(ours)
    with theirs:
        # A fork keeps the arithmetic with which this process has imported NumPy.
        if not fresh and can_fork() and is_as_requested():
            return Child(_fork(theirs, serve), None, ours)
        process = subprocess.Popen(
            fresh_interpreter(BOOT, name, str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=2,
            env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"),
        )
        return Child(process.pid, process, ours)


def _fork(theirs: Any, serve: Callable[[Any], None]) -> int:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # none, or closed
            stream.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # none may unwind the driver's stack in the child
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 counts the threads of FORK_SAFE, too
            pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os.dup2(2, 1)  # standard output is the table's
                sys.stdout = sys.stderr
                for link in _open_links:
                    link.close()
                serve(theirs)
            finally:
                os._exit(1)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def can_fork() -> bool:
    """Whether this process has no thread that a fork would cut off."""
    threads = []
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # a thread that has just ended
            threads.append(name.read_text().strip())
    return len([name for name in threads if name not in FORK_SAFE]) == 1


def begin(name: str, descriptor: int) -> None:
    """Serve in a fresh interpreter until the process ends."""
    os.set_inheritable(descriptor, False)
    module, _, function = name.partition(":")
    getattr(importlib.import_module(module), function)(Connection(descriptor))


def become_worker(link: Any) -> SimpleQueue[Any]:
    """Ignore signals, discard output, and end with the driver; returns a queue of the driver's messages."""
    ignore_signals()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # the output of cells would bury the driver's messages
        os.dup2(nowhere, descriptor)
    inbox: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(link, inbox), daemon=True).start()
    return inbox


def _listen(link: Any, inbox: SimpleQueue[Any]) -> None:
    while True:
        try:
            inbox.put(link.recv())
        except BaseException:
            _end_itself()


def ignore_signals() -> None:
    """Ignore signals: the driver gets them as well, and ends this process."""
    ignore()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
