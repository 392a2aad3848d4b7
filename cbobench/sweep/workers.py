"""Worker processes on this machine, which begin to play at once (see `cbobench.sweep.spawn`)."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from cbobench.errors import CbobenchError
from cbobench.play.failure import described
from cbobench.play.task import Crashed, Receipt, Task, TooLong, carry_out_there, crashed
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.sweep.raysweep import pickled
from cbobench.sweep.spawn import Child, ignore_signals, inbox, silence, spawn
from cbobench.threads import lingering

READY = "ready"
STILLBORN = 3  # processes in a row that end before they begin: none will; a single one may have been killed


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
    """A process, the problems that it holds, and what it plays."""

    child: Child
    known: set[str]
    task: Task | None = None
    ready: bool = False


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
    stillborn: int = 0

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
            worker.child.link.send((title, problem, task, self.folder))

    def take(self, seconds: float) -> Iterator[tuple[Task, Receipt | Crashed | TooLong]]:
        """Tasks that ended, waiting up to some seconds for one.

        Raises:
            CbobenchError: a worker cannot start, or refuses its task.
        """
        links = {worker.child.link: worker for worker in self.crew}
        for link in wait(list(links), seconds):
            worker = links[link]  # type: ignore[index]
            try:
                answer, spent = worker.child.link.recv()
            except (EOFError, ConnectionResetError):
                task, how = self._gone(worker)
                if task is not None:
                    yield task, crashed(self.folder, task, how)
                continue
            if isinstance(answer, CbobenchError):
                raise answer
            if answer == READY:
                worker.ready, self.stillborn = True, 0
                continue
            task, worker.task = worker.task, None
            if spent or len(self.crew) > self.size:
                self._gone(worker)
            assert task is not None
            yield task, answer

    def recall(self, task: Task) -> None:
        """End the worker that plays a task, and start another."""
        for worker in [worker for worker in self.crew if worker.task is task]:
            self._gone(worker)
            self.folder.forget([task.name])

    def retire(self) -> None:
        """Take no more tasks: idle workers end now, the others after what they play."""
        self.size = 0
        for worker in [worker for worker in self.crew if worker.task is None]:
            self._gone(worker)

    def stop(self) -> None:
        """End all workers, in the middle of what they play."""
        for worker in self.crew:
            worker.child.end()
        self.folder.forget([task.name for task in self.pending])
        self.crew.clear()

    def _gone(self, worker: _Worker) -> tuple[Task | None, str]:
        """Replace a worker that has ended, or that is to end; the task that it took with it, and how it ended."""
        self.crew.remove(worker)
        code = worker.child.end()
        if not worker.ready and self.size:
            self.stillborn += 1
        if self.stillborn == STILLBORN:
            raise CbobenchError("a worker process ended before it began; --cpus 0 plays in this process")
        if len(self.crew) < self.size:
            self._start()
        return worker.task, _how(code)

    def _start(self) -> None:
        child = spawn(f"{__name__}:serve", partial(serve, problems=dict(self.problems)))
        self.crew.append(_Worker(child, {*self.problems} if child.process is None else set()))


def _how(code: int | None) -> str:
    """What a cell did to its worker, from the way that ended."""
    if code == -signal.SIGKILL:
        return "had its worker killed (SIGKILL: did the machine run out of memory?)"
    if code is not None and code < 0:
        return f"crashed its worker ({signal.Signals(-code).name})"
    return "crashed its worker"


def serve(link: Any, problems: dict[str, Problem] | None = None) -> None:
    """Play what comes until the driver goes; with each answer, whether this process should play on."""
    ignore_signals()
    silence()  # 16 MB of a cell's would bury what the driver says
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # where memory runs out, before its driver
    known = {} if problems is None else problems
    messages = inbox(link)
    _answer(link, (READY, False))
    while True:
        title, problem, task, folder = messages.get()
        try:
            if problem is not None:
                known[title] = pickle.loads(problem)  # noqa: S301 - from our own driver
            answer: Any = carry_out_there(known[title], task, folder)
        except CbobenchError as error:
            answer = error
        except BaseException as error:
            answer = CbobenchError(f"task {task.name} could not be carried out: {described(error)[0]}")
        _answer(link, (answer, lingering()))


def _answer(link: Any, message: tuple[Any, bool]) -> None:
    """Tell the driver, and end where it has gone."""
    try:
        link.send(message)
    except OSError:
        os._exit(1)
