"""`--dry-run`: cells, tasks, disk, and a time that may be off by a factor of two.

Nothing is written, and nothing is simulated. Where the run folder has cells of a pair, their times
count. Of every other pair two short pieces are played: at round 1, and near T after as many rounds
of made-up data, from which the method learns as from a suite's initial design. The mean of both
stands for every round. A pair that there is no time to try gets the mean of its algorithm.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import numpy as np

from cbobench.errors import TimedOut
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.play.block import start
from cbobench.play.failure import reraise_interrupt
from cbobench.play.play import Play, read_cpu_seconds
from cbobench.play.task import Task
from cbobench.play.watchdog import watch_play
from cbobench.problems.base import Actions, Feedback, Problem
from cbobench.problems.simulator import Simulator
from cbobench.results.compact import MANY
from cbobench.results.manifest import count_recorded
from cbobench.results.source import import_libraries
from cbobench.suite.cells import Cell
from cbobench.suite.variants import INITIAL
from cbobench.sweep.executors import usable_cpus
from cbobench.sweep.plan import Plan
from cbobench.threads import single_thread
from cbobench.watcher import Watcher
from cbobench.words import count_noun, duration, part_of

BUDGET = 20.0  # seconds on the clock for all that is played
PAIR_SECONDS, MIN_PAIR_SECONDS = 4.0, 0.1  # for a pair, at most and at least
PIECE = 5  # rounds of a piece
LONGEST_HISTORY = 990  # rounds of made-up data of a simulator, whose metrics are never computed
CELL_SECONDS = 0.002  # of a cell, beside its rounds
ROW_SECONDS = 2e-6  # of a recorded round: its metrics, to write it and to read it again
TASK_SECONDS = 0.012  # to publish its files, and to hand it out
STARTUP_SECONDS = 4.0  # imports, worker processes, the table
NUMBER_BYTES, METRIC_BYTES = 8, 30  # of a recorded round: each coordinate, f and g; all its metrics

Kind = Literal["tried", "at least", "not tried"]
KINDS: dict[Kind, str] = {  # the surest first, with what is said of such pairs
    "tried": "",
    "at least": "a lower bound, as there was no time for late rounds",
    "not tried": "not estimated, and not counted, as they could not be tried in time",
}


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a seed-round, the mean over all rounds of a pair, and how sure they are."""

    seconds: float
    kind: Kind = "tried"


def estimate(plan: Plan, cpus: int | None, watcher: Watcher) -> str:
    """Return lines on cells, time and disk, as measured here for the CPUs here (or `cpus`).

    Args:
        watcher: told of a step that may take long.
    """
    costs, tried = try_pairs(plan, watcher)
    labels: dict[Kind, list[str]] = {kind: [] for kind in KINDS}  # of the algorithm of each pair
    for pair_cells in plan.tasks.by_pair:
        cost = costs.get(pair_cells.pair.title, Cost(0.0, "not tried"))
        labels[cost.kind].append(pair_cells.pair.algorithm.label)
    lines = [
        f"{plan.suite.name}: {plan.cells - plan.done:,} of {count_noun(plan.cells, 'cell')} to play"
        f", in {count_noun(len(plan.tasks), 'task')} -> {plan.folder}",
        f"time: {_describe_time(plan, costs, tried, cpus)}",
    ]
    for kind, meaning in KINDS.items():
        counts = Counter(labels[kind]).items()
        names = ", ".join(f"{label} ({count_noun(count, 'pair')})" for label, count in counts)
        if meaning and names:
            lines.append(f"{meaning}: {names}")
    measured = {pair.title for pair, _, _ in plan.measured}
    simulates = [
        pair_cells.pair.title not in measured
        and plan.suite.problems[pair_cells.pair.problem.title].simulates
        for pair_cells in plan.tasks.by_pair
    ]
    if any(simulates):
        lines.append("not counted: what simulations take, which is known once cells are done")
    lines.append(_describe_disk(plan))
    return "\n".join(lines)


def _describe_time(plan: Plan, costs: Mapping[str, Cost], tried: int, cpus: int | None) -> str:
    """Return how long a plan takes, in words."""
    pairs = [pair_cells.pair for pair_cells in plan.tasks.by_pair]
    if pairs and not costs:
        return "not estimated"
    work = _seconds_of_work(plan, costs)
    # Tasks of several CPUs leave fewer workers, and no more are busy than there are tasks.
    workers = usable_cpus() if cpus is None else max(1, cpus)
    widest = max((demand.cpus for demand in plan.suite.demands.values()), default=1)
    busy = max(1, min(workers // widest, len(plan.tasks)))
    is_bound = len(costs) < len(pairs) or any(cost.kind == "at least" for cost in costs.values())
    about = "more than" if is_bound else "about"
    startup = ""
    if plan.tasks and cpus != 0:
        startup = f", plus about {duration(STARTUP_SECONDS)} to start"
    known = ""
    if tried < len(costs):
        known = f"; {part_of(tried, len(pairs), 'pair')} known"
    return (
        f"{about} {duration(work / busy)} on {workers:,} CPU(s){startup} ({duration(work)} of "
        f"work{known}); it may take twice that, or half"
    )


def _seconds_of_work(plan: Plan, costs: Mapping[str, Cost]) -> float:
    """Return the CPU seconds of all cells: a sum over pairs, as a plan may have a million cells."""
    work = TASK_SECONDS * len(plan.tasks)
    for pair_cells in plan.tasks.by_pair:
        cost = costs.get(pair_cells.pair.title, Cost(0.0))
        recorded = count_recorded(pair_cells.horizon, plan.record.keep)
        of_rounds = cost.seconds * pair_cells.horizon
        work += len(pair_cells) * (of_rounds + CELL_SECONDS + ROW_SECONDS * recorded)
    return work


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
    merged = ", merged when the run ends" if len(plan.tasks) > MANY else ""
    return f"disk: about {disk} in {count_noun(2 * len(plan.tasks), 'file')}{merged}"


def try_pairs(plan: Plan, watcher: Watcher) -> tuple[dict[str, Cost], int]:
    """Return what a seed-round costs, by the title of a pair, and how many pairs are known
    themselves.
    """
    problems = plan.suite.problems
    pairs = {pair_cells.pair.title: pair_cells.pair for pair_cells in plan.tasks.by_pair}
    costs = {pair.title: Cost(seconds / rounds) for pair, seconds, rounds in plan.measured}
    # Each trial gets an even share of the time that is left: quick ones leave some to the others.
    untried = [task for task in plan.tasks.of_pairs() if task.pair.title not in costs]
    if untried:
        tries = f"tries {count_noun(len(untried), 'pair')} of which nothing is known"
        watcher.note(f"{tries}, for {BUDGET:.0f} s at most")
    deadline = time.monotonic() + BUDGET
    for i, task in enumerate(untried):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        share = min(PAIR_SECONDS, max(MIN_PAIR_SECONDS, left / (len(untried) - i)))
        cost = try_task(problems[task.pair.problem.title], task, plan.record.keep, share)
        if cost is not None:
            costs = {cell.pair.title: cost for cell in task.cells} | costs
    # The others get the mean of their algorithm's pairs, as sure as the least sure of these.
    tried = pairs.keys() & costs.keys()
    for title in pairs.keys() - tried:
        name = pairs[title].algorithm.name
        similar = [costs[other] for other in tried if pairs[other].algorithm.name == name]
        if similar:
            least_sure = max((cost.kind for cost in similar), key=[*KINDS].index)
            costs[title] = Cost(fmean(cost.seconds for cost in similar), least_sure)
    return {title: costs[title] for title in pairs if title in costs}, len(tried)


def try_task(problem: Problem, task: Task, keep: int | None, seconds: float) -> Cost | None:
    """Return what a seed-round of a task costs, from two short pieces of it that may take some
    seconds on the clock; None if it cannot be played.
    """
    with suppress(Exception):  # which is told of when it is played
        import_libraries(task.pair.algorithm.name)  # takes seconds that are no round's
    # On a finite set a block shares what a round costs; on a box a seed costs what it does alone.
    cells = task.cells if isinstance(problem.actions, Finite) else task.cells[:1]
    initial = task.pair.algorithm.values.get(INITIAL, {})
    designed = sum(n for n in initial.values() if isinstance(n, int))
    last = task.horizon - PIECE - 1
    if isinstance(problem, Simulator):
        last = min(last, LONGEST_HISTORY)
    early = _try_piece(Piece(problem, cells, keep, designed, designed, seconds / 2))
    if early is None:
        return None
    late = _try_piece(Piece(problem, cells, keep, designed, max(designed, last), seconds / 2))
    chosen = max(0, task.horizon - designed) / task.horizon  # share of the rounds
    kind: Kind = "tried" if late is not None else "at least"
    round_seconds = early if late is None else (early + late) / 2
    return Cost(chosen * round_seconds / len(cells), kind)


def _try_piece(piece: Piece) -> float | None:
    """Return the CPU seconds of a round; None where no whole round was played in time, or the
    method fails.
    """
    try:
        return piece.play()
    except BaseException as error:  # a user's algorithm may raise any error
        reraise_interrupt(error)
        return None


@dataclass
class Piece:
    """A short piece of a play, after rounds of made-up data.

    Attributes:
        problem, cells, keep: as of `play.block.start`.
        designed: rounds of the suite's initial design.
        history: rounds before the piece, those of the design among them.
        seconds: on the clock, after which it is broken off.
    """

    problem: Problem
    cells: Sequence[Cell]
    keep: int | None
    designed: int
    history: int
    seconds: float

    def play(self) -> float | None:
        """Play it, and return the CPU seconds of a round: to choose, and to learn."""
        marks: list[float] = []
        deadline = time.monotonic() + self.seconds

        def observe(t: int) -> None:
            """The actions of round t are chosen."""
            if t > self.history:
                marks.append(read_cpu_seconds())
            if len(marks) > PIECE or time.monotonic() > deadline:
                raise TimedOut

        horizon = self.cells[0].horizon
        # The observer ends a play between rounds, the watchdog one whose round does not end.
        with suppress(TimedOut), watch_play(self.seconds, 1, horizon, None), single_thread():
            for _ in self._begin(horizon).chunks([observe]):
                pass
        if len(marks) < 2:
            return None
        return (marks[-1] - marks[0]) / (len(marks) - 1)

    def _begin(self, horizon: int) -> Play:
        """Start the play; what a simulator would say is made up."""
        generator = np.random.default_rng(0)
        size = self.history - self.designed, len(self.cells)
        allowed = self.problem.actions
        actions: Actions
        if isinstance(allowed, Finite):
            actions = generator.integers(allowed.n, size=size)
        else:
            actions = allowed.scale(generator.random((*size, allowed.d)))
        play, _ = start(self.problem, self.cells, horizon, self.keep, list(actions))
        if isinstance(self.problem, Simulator):
            play.channel = MadeUp(generator, len(self.cells), self.problem.constraints)
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
