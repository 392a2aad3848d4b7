"""Prepares problems anew where the driver has imported what may have changed them: what a problem
prepares (features, instances) travels to the workers, and each problem must be as it is alone.

So it is for a driver that has imported somebody's code, and for one that imported NumPy before its
arithmetic was chosen. Each set of modules has a fresh interpreter.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cbobench import params
from cbobench.arithmetic import is_as_requested
from cbobench.errors import CbobenchError
from cbobench.play.company import Company, find_company
from cbobench.play.failure import describe_error
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import Site
from cbobench.resources import find_suite
from cbobench.sweep.children import become_worker, spawn
from cbobench.sweep.executors import pickle_problem, unpickle_problem
from cbobench.sweep.messages import Refused
from cbobench.sweep.plan import Plan
from cbobench.threads import single_thread

Asked = dict[str, tuple[str, Mapping[str, Any]]]
"""By the titles of problems, the name and the settings of each."""


def prepare_apart(plan: Plan) -> dict[str, Problem]:
    """Return the prepared problems of a plan by title; those of workers that this process cannot
    fork as a process prepares them that has imported nobody else's code.

    Raises:
        CbobenchError: they cannot be prepared.
    """
    call, waiting = plan.call, dict[Company, Asked]()
    for pair in (pair_cells.pair for pair_cells in plan.tasks.by_pair):
        problem = pair.problem
        company = find_company(problem.name, pair.algorithm.name)
        if not (company.may_fork and is_as_requested()):
            group = waiting.setdefault(find_company(problem.name), {})
            group[problem.title] = problem.name, problem.settings
    base = Path() if isinstance(call.suite, Mapping) else find_suite(call.suite).parent
    problems = dict(plan.suite.problems)
    for asked in waiting.values():
        problems |= _prepare(asked, Site(call.data, base))
    return problems


def _prepare(asked: Asked, site: Site) -> dict[str, Problem]:
    """Return problems that a fresh interpreter has prepared."""
    child = spawn(f"{__name__}:serve_problems", serve_problems, fresh=True)
    try:
        child.link.send((asked, site))
        answer = child.link.recv()
    except (EOFError, OSError) as error:
        raise CbobenchError(
            "the process that prepares the problems ended; import cbobench before NumPy"
        ) from error
    finally:
        child.end()
    if isinstance(answer, Refused):
        raise answer.error
    return {title: unpickle_problem(problem) for title, problem in answer.items()}


def serve_problems(link: Any) -> None:
    """Prepare the problems that the driver asks for, and end."""
    asked, site = become_worker(link).get()
    answer: dict[str, bytes] | Refused
    try:
        with single_thread(), np.errstate(all="ignore"):
            answer = {title: _make(words, site) for title, words in asked.items()}
    except CbobenchError as error:
        answer = Refused(error)
    except BaseException as error:
        answer = Refused(
            CbobenchError(f"the problems could not be prepared: {describe_error(error)[0]}")
        )
    link.send(answer)
    os._exit(0)


def _make(words: tuple[str, Mapping[str, Any]], site: Site) -> bytes:
    name, settings = words
    problem: Problem = params.build(PROBLEMS.get(name), settings)
    problem.prepare(site)
    problem.known_instance()
    return pickle_problem(problem)
