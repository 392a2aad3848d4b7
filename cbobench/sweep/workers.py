"""Worker processes on this machine, which begin to play at once.

A process that has no other threads is forked, which takes milliseconds; another one (a notebook's) starts fresh
interpreters. Tasks and receipts pass through one socket per worker. A worker ends when its driver's end of the socket
closes, however the driver went; signals from a terminal do not reach it.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from cbobench.errors import CbobenchError, one_line
from cbobench.play.task import Receipt, Task, carry_out_there
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.sweep.raysweep import Crashed, pickled
from cbobench.threads import THREAD_VARIABLES

READY = "ready"
SIGNALS = {signal.SIGINT, signal.SIGTERM}
FORK_SAFE = {"jemalloc_bg_thd"}  # Arrow's allocator, which starts its thread again in a fork
BOOT = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from cbobench.sweep.workers import serve_at
serve_at(int(sys.argv[2]))
"""


def usable_cpus() -> int:
    """CPUs that this process may use: those that it is bound to, at most its container's quota."""
    bound = getattr(os, "sched_getaffinity", None)
    count = len(bound(0)) if bound else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or no quota ("max")
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, ceil(int(quota) / int(period))))
    return count


@dataclass
class _Worker:
    """One process as its driver sees it: `known` are the problems that it holds, `task` what it plays."""

    pid: int
    process: subprocess.Popen[bytes] | None
    link: Connection[Any, Any]
    known: set[str]
    task: Task | None = None
    ready: bool = False

    def end(self) -> None:
        """End it, if it has not ended, and forget it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        else:
            with suppress(ChildProcessError):  # a program of the user's may wait for all its children
                os.waitpid(self.pid, 0)
        self.link.close()


@dataclass
class Workers:
    """Plays tasks on `size` processes.

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        size: how many processes, at least 1.
    """

    problems: Mapping[str, Problem]
    folder: RunFolder
    size: int
    crew: list[_Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        import pandas as pandas  # Arrow does when it makes its first table: once here, not in every fork

        try:
            for _ in range(self.size):
                self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def pending(self) -> Sequence[Task]:
        """What is being played."""
        return [worker.task for worker in self.crew if worker.task is not None]

    def room(self) -> int:
        """How many tasks may be given now."""
        return self.size - len(self.pending)

    def give(self, task: Task) -> None:
        """Hand a task to an idle worker; one that has gone meanwhile is seen by `take`."""
        worker = next(worker for worker in self.crew if worker.task is None)
        worker.task = task
        title = task.pair.problem.title
        problem = None if title in worker.known else pickled(self.problems[title])
        worker.known.add(title)
        with suppress(BrokenPipeError, ConnectionResetError):
            worker.link.send((title, problem, task, self.folder))

    def take(self, seconds: float) -> Iterator[tuple[Task, Receipt | Crashed]]:
        """Tasks that ended, waiting up to some seconds for one.

        Raises:
            CbobenchError: a worker cannot start, or refuses its task.
        """
        links = {worker.link: worker for worker in self.crew}
        for link in wait(list(links), seconds):
            worker = links[link]  # type: ignore[index]
            try:
                answer = worker.link.recv()
            except (EOFError, ConnectionResetError):
                task = self._gone(worker)
                if task is not None:
                    yield task, Crashed("crashed its worker")
                continue
            if isinstance(answer, CbobenchError):
                raise answer
            if answer == READY:
                worker.ready = True
                continue
            task, worker.task = worker.task, None
            if len(self.crew) > self.size:
                self.crew.remove(worker)
                worker.end()
            assert task is not None
            yield task, answer

    def retire(self) -> None:
        """Take no more tasks: idle workers end now, the others after what they play."""
        self.size = 0
        for worker in [worker for worker in self.crew if worker.task is None]:
            self.crew.remove(worker)
            worker.end()

    def stop(self) -> None:
        """End all workers, in the middle of what they play."""
        for worker in self.crew:
            worker.end()
        self.folder.forget([task.name for task in self.pending])
        self.crew.clear()

    def _gone(self, worker: _Worker) -> Task | None:
        """Replace a worker that has ended; the task that it took with it."""
        self.crew.remove(worker)
        worker.end()
        if worker.task is not None:
            self.folder.forget([worker.task.name])
        if not worker.ready:
            raise CbobenchError("a worker process ended before it began; --cpus 0 plays in this process")
        if self.size:
            self._start()
        return worker.task

    def _start(self) -> None:
        mine, theirs = Pipe()
        with theirs:
            if _alone():
                self.crew.append(_Worker(self._fork(mine, theirs), None, mine, {*self.problems}))
                return
            words = [sys.executable, "-c", BOOT, json.dumps([*filter(lambda p: isinstance(p, str), sys.path)])]
            process = subprocess.Popen(
                [*words, str(theirs.fileno())], pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=2, env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"),
            )  # fmt: skip
            self.crew.append(_Worker(process.pid, process, mine, set()))

    def _fork(self, mine: Connection[Any, Any], theirs: Connection[Any, Any]) -> int:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # none, or closed
                stream.flush()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # none may unwind the driver's stack in the worker
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 counts the threads of FORK_SAFE, too
                pid = os.fork()
            if pid == 0:
                try:
                    os.setsid()
                    os.dup2(2, 1)  # standard output is the table's
                    sys.stdout = sys.stderr
                    for link in (mine, *(worker.link for worker in self.crew)):
                        link.close()  # else this worker would keep the others alive when the driver goes
                    _serve(theirs, dict(self.problems))
                finally:
                    os._exit(1)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid


def _alone() -> bool:
    """Whether this process has no thread that a fork would cut off."""
    threads = []
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # a thread that has just ended
            threads.append(name.read_text().strip())
    return len([name for name in threads if name not in FORK_SAFE]) == 1


def serve_at(descriptor: int) -> None:
    """The whole life of a worker in a fresh interpreter."""
    os.set_inheritable(descriptor, False)
    _serve(Connection(descriptor), {})


def _serve(link: Connection[Any, Any], problems: dict[str, Problem]) -> None:
    """Play what comes until the driver goes."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the driver is told, too, and ends us
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    inbox: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(link, inbox), daemon=True).start()
    link.send(READY)
    while True:
        title, problem, task, folder = inbox.get()
        try:
            if problem is not None:
                problems[title] = pickle.loads(problem)  # noqa: S301 - from our own driver
            answer: Any = carry_out_there(problems[title], task, folder)
        except CbobenchError as error:
            answer = error
        except BaseException as error:
            answer = CbobenchError(f"task {task.name} could not be carried out: {one_line(error)}")
        link.send(answer)


def _listen(link: Connection[Any, Any], inbox: SimpleQueue[Any]) -> None:
    """Pass on what the driver sends; end this process when the driver has gone, even in the middle of a task."""
    while True:
        try:
            inbox.put(link.recv())
        except BaseException:
            os._exit(1)
