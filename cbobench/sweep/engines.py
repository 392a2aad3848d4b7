"""Starts what plays a plan, with the problems as they are alone.

What a problem prepares (features, instances) travels to the workers. A driver that has imported
somebody's code, or NumPy before its arithmetic was chosen, may have changed it: there each set of
modules prepares its problems anew, in a fresh interpreter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from cbobench import params
from cbobench.arithmetic import is_as_requested
from cbobench.errors import CbobenchError, Misuse, show
from cbobench.play.isolation import Company, find_company
from cbobench.play.task import describe_error
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import Site
from cbobench.sweep.children import become_worker, spawn
from cbobench.sweep.executors import (
    Executor,
    InlineExecutor,
    ProcessExecutor,
    Refused,
    pickle_problem,
    unpickle_problem,
    usable_cpus,
)
from cbobench.sweep.plan import Plan
from cbobench.sweep.ray_executor import RayExecutor
from cbobench.sweep.ray_start import collect_code
from cbobench.threads import single_thread
from cbobench.watcher import Watcher
from cbobench.words import count_noun, list_names

# Tasks that worker processes run by default. On one machine they are never slower: Ray begins
# seconds later and takes 20 ms of CPU time more per task (measured with 8 and with 264); for more
# tasks that is little beside what they take.
SMALL = 64

Asked = dict[str, tuple[str, Mapping[str, Any]]]
"""By the titles of problems, the name and the settings of each."""


def start_engine(plan: Plan, watcher: Watcher) -> Executor:
    """Start what plays, as the call says; by default Ray, or worker processes if there are few
    tasks.

    A Ray that the program has started itself runs all tasks. Worker processes replace a Ray that
    does not start here.

    Raises:
        Misuse: an address although this program has started Ray. CbobenchError: what was asked for
            cannot be started.
    """
    call = plan.call
    ray = sys.modules.get("ray")
    is_started = ray is not None and bool(ray.is_initialized())
    engine = choose_engine(plan, is_started)
    problems = plan.suite.problems if engine == "inline" else prepare_apart(plan)

    if engine == "ray":
        if is_started and call.address is not None:
            address_asked = show(call.address)
            raise Misuse(
                f"this program has started Ray already; leave address {address_asked} out, or call "
                "ray.shutdown()"
            )
        address = ray.get_runtime_context().gcs_address if ray and is_started else call.address
        code = None if address is None else collect_code(plan.tasks.sources, call.ship)
        limit = call.cpus if is_started or address is None else None
        try:
            on_ray = RayExecutor(problems, plan.folder, limit, address, code)
        except CbobenchError as error:
            # One that nobody has asked for may fail to start: containers with little shared memory
            # have none.
            if is_started or call.engine == "ray" or call.address is not None:
                raise
            watcher.note(f"Ray did not start ({error}); worker processes play instead")
        else:
            watcher.note("played on Ray")
            return on_ray

    if engine == "inline":
        users = sorted({name for company in plan.tasks.companies for name in company.users})
        warning = ""
        if users:
            warning = (
                f", unguarded: what {list_names(users, 3)} changes in it stays; --cpus 1 keeps it "
                "apart"
            )
        watcher.note(f"played by this process{warning}")
        return InlineExecutor(problems, plan.folder)
    cpus = call.cpus or usable_cpus()
    workers = ProcessExecutor(problems, plan.folder, min(cpus, len(plan.tasks)), cpus)
    watcher.note(f"played by {count_noun(workers.slots, 'worker process')}")
    return workers


def choose_engine(plan: Plan, is_started: bool) -> str:
    """Return "inline", "ray" or "processes".

    Args:
        is_started: whether this program has started Ray itself.
    """
    call = plan.call
    if call.plays_inline:
        return "inline"
    if call.engine is not None:
        return call.engine
    wants_ray = call.address is not None or is_started or len(plan.tasks) > SMALL
    if wants_ray:
        return "ray"
    return "processes"


def prepare_apart(plan: Plan) -> dict[str, Problem]:
    """Return the prepared problems of a plan by title; those of workers that this process cannot
    fork as a process prepares them that has imported nobody else's code.

    Raises:
        CbobenchError: they cannot be prepared.
    """
    # A process for each company, whose code may change what others' problems are made of.
    waiting: dict[Company, Asked] = {}
    for pair in (pair_cells.pair for pair_cells in plan.tasks.by_pair):
        problem = pair.problem
        company = find_company(problem.name, pair.algorithm.name)
        if not (company.may_fork and is_as_requested()):
            group = waiting.setdefault(find_company(problem.name), {})
            group[problem.title] = problem.name, problem.settings

    # What such a process prepared replaces what this one has prepared under the same title.
    problems = dict(plan.suite.problems)
    for asked in waiting.values():
        child = spawn(f"{__name__}:serve_problems", serve_problems, fresh=True)
        try:
            child.link.send((asked, plan.site))
            answer = child.link.recv()
        except (EOFError, OSError) as error:
            raise CbobenchError(
                "the process that prepares the problems ended; import cbobench before NumPy"
            ) from error
        finally:
            child.end()
        if isinstance(answer, Refused):
            raise answer.error
        problems |= {title: unpickle_problem(content) for title, content in answer.items()}
    return problems


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
