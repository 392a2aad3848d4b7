"""`--dry-run`: cells, tasks, disk, and a time that may be off by a factor of two.

Nothing is written, and nothing is simulated. Where the run folder has cells of a pair, their times
count. Of every other pair a few rounds are played in the middle of a play, after made-up data from
which the method learns as from a suite's initial design, and stand for every round. Where that
fails they are the first ones, and less than the others. A pair that there is no time to try gets
the mean of its algorithm.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from cbobench.errors import TimedOut
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.play.block import start
from cbobench.play.play import Play, read_cpu_seconds
from cbobench.play.task import Task, reraise_interrupt
from cbobench.play.watchdog import Heartbeat
from cbobench.problems.base import Actions, Feedback, Problem
from cbobench.problems.simulators.simulator import Simulator
from cbobench.results.manifest import count_recorded
from cbobench.results.source import import_libraries
from cbobench.suite.cells import Cell
from cbobench.suite.variants import INITIAL
from cbobench.sweep.executors import usable_cpus
from cbobench.sweep.plan import Plan
from cbobench.threads import single_thread
from cbobench.watcher import Watcher
from cbobench.words import count_noun, duration, list_names

BUDGET = 20.0  # seconds on the clock for all that is played
PAIR_SECONDS = 0.1  # for a pair, at least
ROUNDS = 7  # that are played of a pair
LONGEST_HISTORY = 990  # rounds of made-up data of a simulator, whose metrics are never computed
CELL_SECONDS = 0.002  # of a cell, beside its rounds
ROW_SECONDS = 2e-6  # of a recorded round: its metrics, to write it and to read it again
TASK_SECONDS = 0.012  # to publish its files, and to hand it out
STARTUP_SECONDS = 4.0  # imports, worker processes, the table
# of a recorded round: each coordinate, f and g; all its metrics
NUMBER_BYTES = 8
METRIC_BYTES = 30


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a seed-round, the mean over all rounds of a pair, or a lower bound of it."""

    seconds: float
    is_bound: bool = False


UNKNOWN = Cost(0.0, is_bound=True)


def estimate(plan: Plan, cpus: int | None, watcher: Watcher) -> str:
    """Return lines on cells, time and disk, as measured here for the CPUs here (or `cpus`).

    Args:
        watcher: told of a step that may take long.
    """
    costs = try_pairs(plan, watcher)
    pairs = [pair_cells.pair for pair_cells in plan.tasks.by_pair]
    unsure = [p.algorithm.label for p in pairs if costs.get(p.title, UNKNOWN).is_bound]
    lines = [
        f"{plan.suite.name}: {plan.cells - plan.done:,} of {count_noun(plan.cells, 'cell')} to play"
        f", in {count_noun(len(plan.tasks), 'task')} -> {plan.folder}",
        _describe_time(plan, costs, cpus) if costs or not pairs else "time: not estimated",
    ]
    if unsure:
        named = list_names(dict.fromkeys(unsure))
        lines.append(f"not tried, or only in the first rounds, for want of time: {named}")
    simulated = {title for title, problem in plan.suite.problems.items() if problem.simulates}
    measured = {pair.title for pair, _, _ in plan.measured}
    if any(pair.problem.title in simulated for pair in pairs if pair.title not in measured):
        lines.append("not counted: what simulations take, which is known once cells are done")
    lines.append(_describe_disk(plan))
    return "\n".join(lines)


def _describe_time(plan: Plan, costs: Mapping[str, Cost], cpus: int | None) -> str:
    """Return a line on how long a plan takes."""
    work = TASK_SECONDS * len(plan.tasks)
    about = "about"
    # A sum over pairs, as a plan may have a million cells.
    for pair_cells in plan.tasks.by_pair:
        cost = costs.get(pair_cells.pair.title, UNKNOWN)
        recorded = count_recorded(pair_cells.horizon, plan.record.keep)
        of_rounds = cost.seconds * pair_cells.horizon
        work += len(pair_cells) * (of_rounds + CELL_SECONDS + ROW_SECONDS * recorded)
        about = "more than" if cost.is_bound else about
    # Tasks of several CPUs leave fewer workers, and no more are busy than there are tasks.
    workers = usable_cpus() if cpus is None else max(1, cpus)
    widest = max((demand.cpus for demand in plan.suite.demands.values()), default=1)
    busy = max(1, min(workers // widest, len(plan.tasks)))
    has_workers = plan.tasks and cpus != 0
    startup = f", plus about {duration(STARTUP_SECONDS)} to start" if has_workers else ""
    return (
        f"time: {about} {duration(work / busy)} on {workers:,} CPU(s){startup} "
        f"({duration(work)} of work); it may take twice that, or half"
    )


def _describe_disk(plan: Plan) -> str:
    """Return how large the files of a plan will be, in words."""
    size = 0.0
    for pair_cells in plan.tasks.by_pair:
        problem = plan.suite.problems[pair_cells.pair.problem.title]
        coordinates = problem.actions.d if isinstance(problem.actions, Box) else 0
        numbers = 2 * (1 + problem.constraints) + coordinates
        recorded = count_recorded(pair_cells.horizon, plan.record.keep)
        size += len(pair_cells) * recorded * (NUMBER_BYTES * numbers + METRIC_BYTES)
    disk = f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"
    return f"disk: about {disk} in {count_noun(2 * len(plan.tasks), 'file')}"


def try_pairs(plan: Plan, watcher: Watcher) -> dict[str, Cost]:
    """Return what a seed-round costs, by the title of a pair.

    A pair that was not tried gets the mean of its algorithm's, or is left out.
    """
    pairs = {pair_cells.pair.title: pair_cells.pair for pair_cells in plan.tasks.by_pair}
    costs = {pair.title: Cost(seconds / rounds) for pair, seconds, rounds in plan.measured}
    untried = pairs.keys() - costs.keys()
    if untried:
        tries = f"tries {count_noun(len(untried), 'pair')} of which nothing is known"
        watcher.note(f"{tries}, for {BUDGET:.0f} s at most")
    deadline = time.monotonic() + BUDGET
    for task in plan.tasks if untried else ():  # the first ones have cells of every pair
        left = deadline - time.monotonic()
        if left <= 0 or not untried:
            break
        found = {cell.pair.title for cell in task.cells} & untried
        if found:
            # Quick ones leave some of their time to the others.
            seconds = max(PAIR_SECONDS, left / len(untried))
            problem = plan.suite.problems[task.pair.problem.title]
            cost = try_task(problem, task, plan.record.keep, seconds)
            costs |= {} if cost is None else dict.fromkeys(found, cost)
            untried = untried - found
    for title in pairs.keys() - costs.keys():
        name = pairs[title].algorithm.name
        similar = [c for t, c in costs.items() if t in pairs and pairs[t].algorithm.name == name]
        if similar:
            costs[title] = Cost(fmean(c.seconds for c in similar), any(c.is_bound for c in similar))
    return {title: cost for title, cost in costs.items() if title in pairs}


def try_task(problem: Problem, task: Task, keep: int | None, seconds: float) -> Cost | None:
    """Return what a seed-round of a task costs, from a few rounds that may take some seconds on the
    clock; None if it cannot be played.
    """
    with suppress(Exception):  # which is told of when it is played
        import_libraries(task.pair.algorithm.name)  # takes seconds that are no round's
    # On a finite set a block shares what a round costs; on a box a seed costs what it does alone.
    cells = task.cells if isinstance(problem.actions, Finite) else task.cells[:1]
    initial = task.pair.algorithm.values.get(INITIAL, {})
    designed = sum(n for n in initial.values() if isinstance(n, int))
    chosen = max(0, task.horizon - designed)
    middle = (chosen - ROUNDS) // 2
    if isinstance(problem, Simulator):
        middle = min(middle, LONGEST_HISTORY)
    for made_up in (max(0, middle), 0):
        cost = _time_rounds(problem, cells, keep, (designed, made_up), seconds / 2)
        if cost is not None:
            is_bound = made_up == 0 < middle
            return Cost(chosen / task.horizon * cost / len(cells), is_bound)
    return None


def _time_rounds(
    problem: Problem,
    cells: Sequence[Cell],
    keep: int | None,
    rounds: tuple[int, int],
    seconds: float,
) -> float | None:
    """Return the CPU seconds of a round, to choose and to learn; None where no whole one was played
    in time, or the method fails.

    Args:
        rounds: before those that are timed: of the suite's design, and of made-up data.
        seconds: on the clock, after which the play is broken off.
    """
    marks: list[float] = []
    deadline = time.monotonic() + seconds

    def observe(t: int) -> None:
        """The actions of round t are chosen."""
        if t > sum(rounds):
            marks.append(read_cpu_seconds())
        if len(marks) > ROUNDS or time.monotonic() > deadline:
            raise TimedOut

    try:
        # The observer ends a play between rounds, the watchdog one whose round does not end.
        with suppress(TimedOut), Heartbeat(seconds=seconds), single_thread():
            for _ in _begin(problem, cells, keep, rounds[1]).chunks([observe]):
                pass
    except BaseException as error:  # a user's algorithm may raise any error
        reraise_interrupt(error)
        return None
    if len(marks) > 1:
        return (marks[-1] - marks[0]) / (len(marks) - 1)
    return None


def _begin(problem: Problem, cells: Sequence[Cell], keep: int | None, made_up: int) -> Play:
    """Start a play with rounds of made-up data; what a simulator would say is made up, too."""
    generator = np.random.default_rng(0)
    size = made_up, len(cells)
    allowed = problem.actions
    actions: Actions
    if isinstance(allowed, Finite):
        actions = generator.integers(allowed.n, size=size)
    else:
        actions = allowed.scale(generator.random((*size, allowed.d)))
    play, _ = start(problem, cells, cells[0].horizon, keep, list(actions))
    if isinstance(problem, Simulator):
        play.channel = MadeUp(generator, len(cells), problem.constraints)
    return play


class MadeUp:
    """A channel that simulates nothing: f and g are normal, so that about half of the points are
    feasible in each constraint.
    """

    def __init__(self, generator: np.random.Generator, replicates: int, constraints: int) -> None:
        self.generator = generator
        self.shape = replicates, 1 + constraints

    def before(self, t: int) -> None:
        """Nothing is shown."""

    def at(self, t: int, actions: Actions) -> Feedback:
        """Return values that have nothing to do with the actions."""
        values: Array = self.generator.normal(size=self.shape)
        return Feedback(f=values[:, 0], g=values[:, 1:])
