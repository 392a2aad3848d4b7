"""Prepares problems in other processes while a sweep is planned: pilots of simulators on workers of this machine; all
in a fresh interpreter, for a driver that imported NumPy before its arithmetic was chosen.

What a problem prepares (features, instances, pilots) travels to the workers, which would play native numbers.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from cbobench.arithmetic import is_as_requested
from cbobench.errors import CbobenchError
from cbobench.gp.kernels import Array
from cbobench.play.failure import describe_error
from cbobench.play.isolation import captured_output, default_warnings
from cbobench.play.process import preserve_process
from cbobench.problems.base import Problem
from cbobench.problems.pilot import ASK, POOL
from cbobench.problems.simulated import SimulationResult
from cbobench.problems.simulator import Simulator
from cbobench.results.folder import RunFolder
from cbobench.results.simulations import SimulationStore
from cbobench.suite.suite_file import load
from cbobench.sweep.children import Child, become_worker, can_fork, describe_end, spawn, wait_for_children
from cbobench.sweep.executors import pickle_problem
from cbobench.threads import single_thread

LOOK_SECONDS = 0.1  # between two answers of a pool that has no simulation to give


class ProcessPool:
    """Runs simulations in worker processes, which last as long as a call of `run` (see `problems.pilot.Pool`).

    Args:
        workers: how many, at least 1.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @property
    def is_quick(self) -> bool:
        return can_fork() and is_as_requested()

    def run(
        self, simulator: Simulator, x: Array, gens: Sequence[np.random.Generator], at_once: Callable[[], int]
    ) -> Generator[tuple[int, SimulationResult] | None]:
        """Yield simulations as they come; one that ends its worker has failed."""
        content, waiting = pickle_problem(simulator), list(reversed(range(len(x))))
        played: dict[int, tuple[Child, int]] = {}
        idle: list[Child] = []

        def hand_out(child: Child) -> None:
            i = waiting.pop()
            played[child.pid] = child, i
            with suppress(OSError):  # it has died: its link says so below
                child.link.send((i, x[i : i + 1], gens[i]))

        def start() -> Child:
            child = spawn(f"{__name__}:serve_simulations", serve_simulations)
            child.link.send(content)
            return child

        try:
            while waiting or played:
                while waiting and len(played) < min(self.workers, at_once()):
                    hand_out(idle.pop() if idle else start())
                ended = wait_for_children([child for child, _ in played.values()], LOOK_SECONDS)
                if not ended:
                    yield None
                for child in ended:
                    _, i = played.pop(child.pid)
                    try:
                        answer = child.receive()
                    except (EOFError, OSError):
                        how = describe_end(child.end())
                        reason = f"{type(simulator).__name__}: simulate {how} at x = {simulator.as_written(x[i])}"
                        answer = SimulationResult(np.full(1 + simulator.m, np.nan), reason, 0.0)
                    else:
                        idle.append(child)
                    if isinstance(answer, CbobenchError):
                        raise answer
                    yield i, answer
        finally:
            for child in (*idle, *(child for child, _ in played.values())):
                child.end()


def serve_simulations(link: Any) -> None:
    """Run the simulations that arrive until the driver goes."""
    inbox = become_worker(link)
    simulator = pickle.loads(inbox.get())  # noqa: S301 - from our own driver
    while True:
        _, x, gen = inbox.get()
        try:
            with default_warnings(), captured_output(), np.errstate(all="ignore"), single_thread(), preserve_process():
                (answer,) = simulator.run_points(x, [gen], not simulator.noisy)
        except CbobenchError as error:
            answer = error
        except BaseException as error:  # no Exception: that is a simulation that failed
            answer = CbobenchError(describe_error(error)[0])
        link.send(answer)


@contextmanager
def pilots_on(workers: int, ask: Callable[[str], bool] | None = None) -> Iterator[None]:
    """Run long pilots on that many workers within the block, 0 for this process; `ask` a person whether they are to go
    on (see `pilot.ASK`).
    """
    tokens = POOL.set(ProcessPool(workers) if workers > 1 else None), ASK.set(ask)
    try:
        yield
    finally:
        POOL.reset(tokens[0])
        ASK.reset(tokens[1])


def prepare_problems(loading: Mapping[str, Any], folder: RunFolder) -> dict[str, Problem]:
    """Return the prepared problems of a suite by title.

    Args:
        loading: arguments of `load` that can be pickled.
        folder: the run, whose kept simulations are used.

    Raises:
        CbobenchError: they cannot be prepared.
    """
    child = spawn(f"{__name__}:serve_problems", serve_problems, fresh=True)
    try:
        child.link.send((dict(loading), folder))
        answer = child.receive()
    except (EOFError, OSError) as error:
        raise CbobenchError("the process that prepares the problems ended; import cbobench before NumPy") from error
    finally:
        child.end()
    if isinstance(answer, CbobenchError):
        raise answer
    return {title: pickle.loads(problem) for title, problem in answer.items()}  # noqa: S301 - from our own process


def serve_problems(link: Any) -> None:
    """Prepare the problems of the suite that the driver asks for, and end."""
    loading, folder = become_worker(link).get()
    try:
        suite = load(**loading, store=lambda name: SimulationStore(folder).of)
        answer: Any = {title: pickle_problem(problem) for title, problem in suite.problems.items()}
    except CbobenchError as error:
        answer = error
    except BaseException as error:
        answer = CbobenchError(f"the problems could not be prepared: {describe_error(error)[0]}")
    link.send(answer)
    os._exit(0)
