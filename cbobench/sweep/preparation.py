"""Prepares problems in a fresh interpreter, for a driver that imported NumPy before its arithmetic
was chosen: what a problem prepares (features, instances) travels to the workers, which would play
native numbers.
"""

from __future__ import annotations

import os
from typing import Any

from cbobench.call import Call
from cbobench.errors import CbobenchError
from cbobench.play.failure import describe_error
from cbobench.problems.base import Problem
from cbobench.problems.data import Site
from cbobench.suite.prepare import prepare
from cbobench.suite.text import read_suite
from cbobench.sweep.children import become_worker, spawn
from cbobench.sweep.executors import pickle_problem, unpickle_problem
from cbobench.sweep.messages import Prepare, Prepared, Refused


def prepare_problems(call: Call) -> dict[str, Problem]:
    """Return the prepared problems of a call's suite by title.

    Raises:
        CbobenchError: they cannot be prepared.
    """
    child = spawn(f"{__name__}:serve_problems", serve_problems, fresh=True)
    try:
        child.link.send(Prepare(call))
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
    (call,) = become_worker(link).get()
    try:
        suite = prepare(read_suite(call), Site())
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
