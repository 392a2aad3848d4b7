"""Prepares problems in other processes while a sweep is planned: pilots of simulators on workers of
this machine; all in a fresh interpreter, for a driver that imported NumPy before its arithmetic was
chosen.

What a problem prepares (features, instances, pilots) travels to the workers, which would play
native numbers.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import numpy as np

from cbobench.arithmetic import is_as_requested
from cbobench.call import Call
from cbobench.errors import CbobenchError
from cbobench.gp.kernels import Array
from cbobench.play.failure import describe_error
from cbobench.play.isolation import captured_output, default_warnings
from cbobench.play.process import preserve_process
from cbobench.problems.base import Problem
from cbobench.problems.data import Site
from cbobench.problems.simulated import SimulationResult
from cbobench.problems.simulator import Simulator
from cbobench.results.folder import RunFolder
from cbobench.results.simulations import SimulationStore
from cbobench.suite.prepare import prepare
from cbobench.suite.text import read_suite
from cbobench.sweep.children import (
    Child,
    become_worker,
    can_fork,
    describe_end,
    spawn,
    wait_for_children,
)
from cbobench.sweep.executors import pickle_problem, unpickle_problem
from cbobench.sweep.messages import Prepare, Prepared, Refused, Simulate
from cbobench.threads import single_thread

LOOK_SECONDS = 0.1  # between two answers of a pool that has no simulation to give
STOPPED_LOOKS = 600  # in a row that find a worker stopped, after which it is ended
BATCH_SECONDS = 0.2  # that the simulations of a message take, of those that take less


class ProcessPool:
    """Runs simulations in worker processes, which last as long as a call of `run` (see
    `problems.pilot.Pool`).

    Args:
        workers: how many, at least 1.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @property
    def is_quick(self) -> bool:
        return can_fork() and is_as_requested()

    def run(
        self,
        simulator: Simulator,
        x: Array,
        gens: Sequence[np.random.Generator],
        at_once: Callable[[], int],
    ) -> Generator[tuple[int, SimulationResult] | None]:
        """Yield simulations as they come; one that ends its worker has failed."""
        crew = _Crew(simulator, x, gens)
        try:
            while crew.waiting or crew.played:
                while crew.waiting and len(crew.played) < min(self.workers, at_once()):
                    crew.hand_out(at_once())
                ended = wait_for_children(
                    [child for child, _ in crew.played.values()], LOOK_SECONDS
                )
                if not ended:
                    yield None
                crew.end_stopped()
                for child in ended:
                    answer = crew.take(child)
                    if answer is not None:
                        yield answer
        finally:
            for child in (*crew.idle, *(child for child, _ in crew.played.values())):
                child.end()


class _Crew:
    """Workers that run the simulations at points x (k, d).

    Attributes:
        waiting: numbers of the points that nobody runs yet.
        played: by process, a worker and the numbers that it has still to run.
        idle: workers without any.
    """

    def __init__(self, simulator: Simulator, x: Array, gens: Sequence[np.random.Generator]) -> None:
        self.simulator, self.x, self.gens = simulator, x, gens
        self.waiting, self.step = [*range(len(x))], len(x) if simulator.runs_together else 1
        self.played: dict[int, tuple[Child, list[int]]] = {}
        self.idle: list[Child] = []
        self.seconds: list[float] = []  # that simulations took
        self.stopped_looks: Counter[int] = Counter()  # in a row, by process
        self.ended_here: set[int] = set()

    def hand_out(self, workers: int) -> None:
        """Give an idle worker, or a new one, what is next; `workers` share what waits."""
        child = self.idle.pop() if self.idle else self._start()
        numbers = self.waiting[: self._count_next(workers)]
        del self.waiting[: len(numbers)]
        self.played[child.pid] = child, numbers
        with suppress(OSError):  # it has died: its link says so when it is read
            child.link.send(Simulate(self.x[numbers], [self.gens[i] for i in numbers], self.step))

    def end_stopped(self) -> None:
        """End workers that were stopped for long: they would hold the pilot for ever."""
        for child, _ in self.played.values():
            self.stopped_looks[child.pid] = (self.stopped_looks[child.pid] + 1) * child.is_stopped()
            if self.stopped_looks[child.pid] == STOPPED_LOOKS:
                self.ended_here.add(child.pid)
                os.kill(child.pid, signal.SIGKILL)

    def take(self, child: Child) -> tuple[int, SimulationResult] | None:
        """Return the number of a point and its simulation, from a worker that has sent one or has
        ended.

        None where it has ended with several that ran together: each is run by itself.

        Raises:
            CbobenchError: a simulation whose result is of no use.
        """
        _, numbers = self.played[child.pid]
        number = numbers.pop(0)
        try:
            answer = child.receive()
        except (EOFError, OSError):
            how = describe_end(child.end())
            if child.pid in self.ended_here:
                how = f"stopped its worker for {STOPPED_LOOKS * LOOK_SECONDS:.0f} s"
            del self.played[child.pid]
            if self.step > 1 and numbers:  # one takes no others with it
                self.waiting, self.step = [number, *numbers, *self.waiting], 1
                return None
            self.waiting[:0] = numbers
            name, place = type(self.simulator).__name__, self.simulator.as_written(self.x[number])
            failed = np.full(1 + self.simulator.m, np.nan)
            return number, SimulationResult(failed, f"{name}: simulate {how} at x = {place}", 0.0)
        if not numbers:
            del self.played[child.pid]
            self.idle.append(child)
        if isinstance(answer, Refused):
            raise answer.error
        self.seconds += [answer.seconds] if answer.seconds else []
        return number, answer

    def _count_next(self, workers: int) -> int:
        """How many simulations a worker is given: more of those that take less than a message
        does.
        """
        if self.step > 1 or not self.seconds:
            return self.step
        seconds_each = max(sum(self.seconds) / len(self.seconds), BATCH_SECONDS / len(self.x))
        return max(1, min(int(BATCH_SECONDS / seconds_each), -(-len(self.waiting) // workers)))

    def _start(self) -> Child:
        child = spawn(
            f"{__name__}:serve_simulations", partial(serve_simulations, simulator=self.simulator)
        )
        if child.process is not None:  # a fork has the simulator
            child.link.send(pickle_problem(self.simulator))
        return child


def serve_simulations(link: Any, simulator: Simulator | None = None) -> None:
    """Run the simulations that arrive until the driver goes, so many at a time as it says; send
    each as it ends.

    Args:
        simulator: None: the first message holds it.
    """
    inbox = become_worker(link)
    if simulator is None:
        simulator = cast(Simulator, unpickle_problem(inbox.get()))
    while True:
        x, gens, step = inbox.get()
        for first in range(0, len(x), step):
            chunk = slice(first, first + step)
            try:
                with (
                    default_warnings(),
                    captured_output(),
                    np.errstate(all="ignore"),
                    single_thread(),
                    preserve_process(),
                ):
                    # A fork begins with the driver's numbers, and what draws from these would seem
                    # to draw none.
                    random.seed()
                    np.random.set_state(dict(np.random.MT19937().state))  # noqa: NPY002 - it must not be used
                    results = simulator.run_points(x[chunk], gens[chunk], not simulator.noisy)
                    answers: list[SimulationResult | Refused] = [*results]
            except CbobenchError as error:
                answers = [Refused(error)]
            except BaseException as error:  # no failure of a simulation
                answers = [Refused(CbobenchError(describe_error(error)[0]))]
            for answer in answers:
                link.send(answer)


def prepare_problems(call: Call, folder: RunFolder) -> dict[str, Problem]:
    """Return the prepared problems of a call's suite by title.

    Args:
        folder: the run, whose kept simulations are used.

    Raises:
        CbobenchError: they cannot be prepared.
    """
    child = spawn(f"{__name__}:serve_problems", serve_problems, fresh=True)
    try:
        child.link.send(Prepare(call, folder))
        answer = child.receive()
    except (EOFError, OSError) as error:
        raise CbobenchError(
            "the process that prepares the problems ended; import cbobench before NumPy"
        ) from error
    finally:
        child.end()
    if isinstance(answer, Refused):
        raise answer.error
    return {title: unpickle_problem(problem) for title, problem in answer.problems.items()}


def serve_problems(link: Any) -> None:
    """Prepare the problems of the suite that the driver asks for, and end."""
    call, folder = become_worker(link).get()
    try:
        suite = prepare(read_suite(call), Site(), SimulationStore(folder))
        pickled = {title: pickle_problem(problem) for title, problem in suite.problems.items()}
        answer: Prepared | Refused = Prepared(pickled)
    except CbobenchError as error:
        answer = Refused(error)
    except BaseException as error:
        answer = Refused(
            CbobenchError(f"the problems could not be prepared: {describe_error(error)[0]}")
        )
    link.send(answer)
    os._exit(0)
