"""Prepare a suite's problems in a fresh interpreter, for a driver that imported NumPy before its arithmetic was chosen.

What a problem prepares (features, instances, pilots) travels to the workers, which would play native numbers.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from typing import Any

from cbobench.errors import CbobenchError
from cbobench.play.failure import describe_error
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.results.simulations import SimulationStore
from cbobench.suite.suite_file import load
from cbobench.sweep.executors import become_worker, pickle_problem, spawn


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
