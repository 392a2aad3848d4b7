"""Prepares problems in other processes while a sweep is planned: pilots of simulators on workers of this machine; all
in a fresh interpreter, for a driver that imported NumPy before its arithmetic was chosen.

What a problem prepares (features, instances, pilots) travels to the workers, which would play native numbers.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from cbobench.errors import CbobenchError
from cbobench.gp.kernels import Array
from cbobench.play.failure import describe_error
from cbobench.play.isolation import captured_output, default_warnings
from cbobench.play.process import preserve_process
from cbobench.problems.base import Problem
from cbobench.problems.pilot import POOL
from cbobench.problems.simulated import SimulationResult
from cbobench.problems.simulator import Simulator
from cbobench.results.folder import RunFolder
from cbobench.results.simulations import SimulationStore
from cbobench.suite.suite_file import load
from cbobench.sweep.executors import Child, become_worker, describe_end, pickle_problem, spawn
from cbobench.threads import single_thread


class ProcessPool:
    """Runs simulations in worker processes, which last as long as a call of `run` (see `problems.pilot.Pool`).

    Args:
        workers: how many, at least 1.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self, simulator: Simulator, x: Array, gens: Sequence[np.random.Generator]
    ) -> Iterator[tuple[int, SimulationResult]]:
        """Yield simulations as they come; one that ends its worker has failed."""
        content, waiting = pickle_problem(simulator), list(reversed(range(len(x))))
        played: dict[Any, tuple[Child, int]] = {}

        def hand_out(child: Child) -> None:
            i = waiting.pop()
            played[child.link] = child, i
            with suppress(BrokenPipeError, ConnectionResetError):  # it has died: its link says so below
                child.link.send((i, x[i : i + 1], gens[i]))

        def start() -> None:
            child = spawn(f"{__name__}:serve_simulations", serve_simulations)
            child.link.send(content)
            hand_out(child)

        try:
            while waiting and len(played) < self.workers:
                start()
            while played:
                for link in wait(list(played)):
                    child, i = played.pop(link)
                    try:
                        answer = child.link.recv()
                    except (EOFError, ConnectionResetError):
                        how = describe_end(child.end())
                        reason = f"{type(simulator).__name__}: simulate {how} at x = {simulator.as_written(x[i])}"
                        answer = SimulationResult(np.full(1 + simulator.m, np.nan), reason, 0.0)
                        if waiting:
                            start()
                    else:
                        if waiting:
                            hand_out(child)
                        else:
                            child.end()
                    if isinstance(answer, CbobenchError):
                        raise answer
                    yield i, answer
        finally:
            for child, _ in played.values():
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
def pilots_on(workers: int) -> Iterator[None]:
    """Run long pilots on that many workers within the block; 0 for this process."""
    token = POOL.set(ProcessPool(workers) if workers > 1 else None)
    try:
        yield
    finally:
        POOL.reset(token)


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
        answer = child.link.recv()
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
