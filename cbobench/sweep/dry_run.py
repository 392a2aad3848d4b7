"""`--dry-run`: cells, tasks, disk, and a time from rounds that are really played.

Nothing is written. Where the run folder has cells of a pair, their times count; of a slow
simulator, those of its pilot. Of the other pairs some rounds are played, early and late ones, until
the time is up. Late rounds are reached at little cost: the actions before them are random, and the
method learns from them as from a suite's initial design. A pair that was not tried gets the mean of
its algorithm.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from statistics import fmean
from typing import Literal

import numpy as np

from cbobench.errors import TimedOut
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.play.block import start
from cbobench.play.failure import reraise_interrupt
from cbobench.play.play import read_cpu_seconds
from cbobench.play.task import Task
from cbobench.play.watchdog import watch_play
from cbobench.problems.base import Actions, Problem
from cbobench.problems.simulator import Simulator
from cbobench.results.compact import MANY
from cbobench.results.source import import_libraries
from cbobench.suite.cells import Cell
from cbobench.suite.variants import INITIAL
from cbobench.sweep.blocks import count_ahead
from cbobench.sweep.executors import usable_cpus
from cbobench.sweep.plan import Plan
from cbobench.threads import single_thread
from cbobench.watcher import Watcher
from cbobench.words import count_noun, duration, part_of

BUDGET = 20.0  # seconds on the clock, for planning and all that is played, pilots included
MIN_BUDGET = 5.0  # of them, where planning took longer
PAIR_SECONDS, MIN_TRIAL = 3.0, 0.02  # for a pair, at most and at least
SHORTEST = 0.3  # seconds after which a play is broken off, at least
WINDOW, WINDOWS = 3, 50  # rounds that are played early and late: so many, or a share of the horizon
SEEDS_OF_A_BOX = 3  # that are played of a block: more of them take hardly less each
STUCK, INTERRUPTED = 3.0, 0.25  # times the longest round, and seconds: longer ones do not end
CELL_SECONDS = 0.002  # of a cell, beside its rounds
ROW_SECONDS = 2e-6  # of a recorded round: its metrics, to write it and to read it again
TASK_SECONDS = 0.012  # to publish its files, and to hand it out
STARTUP_SECONDS = 4.0  # imports, worker processes, the table
NUMBER_BYTES, METRIC_BYTES = 8, 30  # of a recorded round: each coordinate, f and g; all its metrics

Kind = Literal["tried", "extrapolated", "at least", "not tried"]
KINDS: dict[Kind, str] = {  # the surest first, with what is said of such pairs
    "tried": "",
    "extrapolated": "extrapolated from the rounds that the time allowed",
    "at least": "a lower bound, as a round took longer than the time allowed",
    "not tried": "not estimated, and not counted, as they could not be tried in time",
}


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a seed-round, the mean over all rounds of a pair, and how sure they are."""

    seconds: float
    kind: Kind = "tried"


def time_limit() -> float:
    """When a dry run that begins now must end, by `monotonic`: its pilots and its trials."""
    return time.monotonic() + BUDGET


def estimate(
    plan: Plan,
    cpus: int | None,
    watcher: Watcher,
    whose: str = "",
    deadline: float = inf,
) -> str:
    """Lines on cells, time, disk and simulations, as measured here for the CPUs here (or `cpus`).

    Args:
        watcher: told of a step that may take long.
        whose: words on whose CPUs they are, if not this machine's.
        deadline: see `time_limit`.
    """
    # Work and disk are sums over pairs, as a plan may have a million cells.
    costs, tried = try_pairs(plan, watcher, deadline)
    size, work = 0.0, TASK_SECONDS * len(plan.tasks)
    labels: dict[Kind, dict[str, str]] = {kind: {} for kind in KINDS}  # of algorithms, by pair
    for cells in plan.tasks.by_pair:
        pair, problem = cells.pair, plan.suite.problems[cells.pair.problem.title]
        cost = costs.get(pair.title, Cost(0.0, "not tried"))
        labels[cost.kind][pair.title] = pair.algorithm.label
        recorded = min(cells.horizon, plan.record.keep or cells.horizon)
        work += len(cells) * (cost.seconds * cells.horizon + CELL_SECONDS + ROW_SECONDS * recorded)
        coordinates = problem.actions.d if isinstance(problem.actions, Box) else 0
        numbers = 2 * (1 + problem.constraints) + coordinates
        size += len(cells) * recorded * (NUMBER_BYTES * numbers + METRIC_BYTES)

    # Tasks of several CPUs leave fewer workers, and no more are busy than there are tasks.
    workers = max(1, cpus if cpus is not None else usable_cpus())
    wide = max((demand.cpus for demand in plan.suite.demands.values()), default=1)
    wall = work / max(1, min(workers // wide, len(plan.tasks)))
    pairs, unknown = sum(map(len, labels.values())), len(labels["not tried"])
    coverage = f"; {part_of(tried, pairs, 'pair')} known" if tried < pairs - unknown else ""
    simulators = [p for p in plan.suite.problems.values() if isinstance(p, Simulator)]
    pilots = sum(s.pilot_facts.seconds * s.simulations.pilot for s in simulators)
    begin = pilots + STARTUP_SECONDS * (cpus != 0)
    startup = f", plus about {duration(begin)} to start" if begin and plan.tasks else ""
    about = "more than" if unknown or labels["at least"] else "about"
    took = f"{about} {duration(wall)} on {workers:,} CPU(s){whose}{startup}"
    took = f"{took} ({duration(work)} of work{coverage})"
    lines = [
        f"{plan.suite.name}: {plan.cells - plan.done:,} of {count_noun(plan.cells, 'cell')} to play"
        f", in {count_noun(len(plan.tasks), 'task')} -> {plan.folder}",
        f"time: {'not estimated' if unknown and unknown == pairs else took}",
    ]
    # Readers must know which pairs the time is least sure of.
    for kind, meaning in KINDS.items():
        counts = Counter(labels[kind].values()).items()
        names = ", ".join(f"{label} ({count_noun(count, 'pair')})" for label, count in counts)
        lines += [f"{meaning}: {names}"] if meaning and names else []
    disk = f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"
    files = count_noun(2 * len(plan.tasks), "file")
    merged = ", merged when the run ends" if len(plan.tasks) > MANY else ""
    lines.append(f"disk: about {disk} in {files}{merged}")
    totals = count_ahead(plan.tasks, plan.suite.problems)
    lines += [total.describe(title, workers) for title, total in totals.items()]
    if totals and (kept_count := len(plan.simulations.names)):
        kept_noun = count_noun(kept_count, "simulation")
        lines.append(f"{kept_noun} kept in the run, not to be paid for again")
    return "\n".join(lines)


def try_pairs(plan: Plan, watcher: Watcher, deadline: float) -> tuple[dict[str, Cost], int]:
    """What a seed-round costs, by the title of a pair, and how many pairs are known themselves."""
    began, problems = time.monotonic(), plan.suite.problems
    deadline = min(max(deadline, began + MIN_BUDGET), began + BUDGET)
    pairs = {cells.pair.title: cells.pair for cells in plan.tasks.by_pair}
    # Measured is CPU time: to wait for a simulation is none. Nobody waits for what is known.
    waits = {title: _simulation_seconds(problem) for title, problem in problems.items()}
    costs = {title: Cost(waits[pair.problem.title]) for title, pair in pairs.items()}
    costs = {title: cost for title, cost in costs.items() if WINDOW * cost.seconds > PAIR_SECONDS}
    for pair, seconds, rounds in plan.measured:
        costs[pair.title] = Cost(max(seconds / rounds, waits[pair.problem.title]))
    # Each trial gets an even share of the time that is left: quick ones leave some to the others.
    untried = [task for task in plan.tasks.of_pairs() if task.pair.title not in costs]
    if untried:
        tries = f"tries {count_noun(len(untried), 'pair')} of which nothing is known"
        watcher.note(f"{tries}, for {deadline - began:.0f} s at most")
    for i, task in enumerate(untried):
        left = deadline - time.monotonic()
        if i == 0 or left > 0:
            share = min(PAIR_SECONDS, max(MIN_TRIAL, left / (len(untried) - i)))
            problem = problems[task.pair.problem.title]
            if cost := try_task(problem, task, plan.record.keep, share):
                costs = {cell.pair.title: cost for cell in task.cells} | costs

    # The others get the mean of their algorithm's pairs, as sure as the least sure of these.
    tried = pairs.keys() & costs.keys()
    for title in pairs.keys() - tried:
        name = pairs[title].algorithm.name
        similar_costs = [costs[title] for title in tried if pairs[title].algorithm.name == name]
        if similar_costs:
            kind = max((cost.kind for cost in similar_costs), key=[*KINDS].index)
            costs[title] = Cost(fmean(cost.seconds for cost in similar_costs), kind)
    return costs, len(tried)


def _simulation_seconds(problem: Problem) -> float:
    """Wall time of the simulations of a seed-round."""
    return problem.round_seconds if isinstance(problem, Simulator) else 0.0


def try_task(problem: Problem, task: Task, keep: int | None, seconds: float) -> Cost | None:
    """What a seed-round of a task costs, from rounds played in some seconds; None if that fails."""
    with suppress(Exception):  # which is told of when it is played
        import_libraries(task.pair.algorithm.name)  # takes seconds that are no round's
    initial = task.pair.algorithm.values.get(INITIAL, {})
    designed, horizon = sum(n for n in initial.values() if isinstance(n, int)), task.horizon
    width, from_the_first = max(WINDOW, horizon // WINDOWS), [(designed, horizon)]
    windows = [(designed, designed + width), (horizon - width, horizon)]
    # The windows of a short horizon meet. To simulate a history costs what the play does.
    if horizon < designed + 2 * width or isinstance(problem, Simulator):
        windows = from_the_first
    block = task.cells if isinstance(problem.actions, Finite) else task.cells[:SEEDS_OF_A_BOX]
    end, cost = time.monotonic() + seconds, None
    # A block may be too slow to be tried, and a method may take no history of just any actions.
    for cells, places in ((block, windows), (block[:1], windows), (block[:1], from_the_first)):
        left = max(seconds / 2, end - time.monotonic())
        try:
            timed = time_windows(problem, cells, keep, places, left)
        except BaseException as error:  # a user's algorithm may raise any error
            reraise_interrupt(error)
            continue
        cost = carry_on(timed, horizon)
        per_seed = max(cost.seconds / len(cells), _simulation_seconds(problem))
        cost = replace(cost, seconds=per_seed)
        if cost.kind != "at least" or len(cells) == 1:
            break
    return cost


class Stopwatch:
    """Times the rounds of a play from the first actions on, and ends it.

    Args:
        history: rounds whose actions the method does not choose.
        until: the last round; earlier ones may be the last if they begin later than `end`.
    """

    def __init__(self, history: int, until: int, end: float) -> None:
        self.history, self.until, self.end = history, until, end
        self.clock, self.marks = time.monotonic(), [read_cpu_seconds()]

    def observe(self, t: int) -> None:
        """The actions of round t are chosen."""
        self.clock = time.monotonic()
        self.marks.append(read_cpu_seconds())
        if t >= self.until or (self.clock > self.end and t > WINDOW):
            raise TimedOut

    @property
    def seconds(self) -> Array:
        """CPU seconds of each round from the second one on, (n,): to learn, and to choose."""
        return np.diff(self.marks[1:])


def time_windows(
    problem: Problem,
    cells: Sequence[Cell],
    keep: int | None,
    windows: Sequence[tuple[int, int]],
    seconds: float,
) -> list[Stopwatch]:
    """Play some cells in windows of rounds (begin, end], as far as some seconds allow."""
    allowed, generator, horizon = problem.actions, np.random.default_rng(0), cells[0].horizon
    # The stopwatch ends a play between rounds, the watchdog one whose round does not end.
    limit, end = max(SHORTEST, 1.5 * seconds), time.monotonic() + seconds
    timed: list[Stopwatch] = []
    with suppress(TimedOut), watch_play(limit, 1, horizon, None), single_thread():
        for begin, until in windows:
            size = begin - windows[0][0], len(cells)
            actions: Actions
            if isinstance(allowed, Finite):
                actions = generator.integers(allowed.n, size=size)
            else:
                actions = allowed.scale(generator.random((*size, allowed.d)))
            timed.append(Stopwatch(begin, until, end))
            with suppress(TimedOut):
                play, _ = start(problem, cells, horizon, keep, list(actions))
                for _ in play.chunks([timed[-1].observe]):
                    pass
            if len(timed[-1].seconds) < until - 1:
                break
    return timed


def carry_on(timed: Sequence[Stopwatch], horizon: int) -> Cost:
    """Return what a round costs up to the horizon: to learn, and the mean cost of a choice."""
    longest = max(timed, key=lambda watch: len(watch.seconds))
    played, unfinished = 1 + len(longest.seconds), time.monotonic() - timed[-1].clock
    choosing = []
    for watch in timed:
        before, window = np.split(watch.seconds, [max(0, watch.history - 1)])
        # To learn takes what it does in the same rounds where they were given, or in those before.
        learning = before[-len(window) :] if watch is longest else longest.seconds[len(before) :]
        if len(window):
            learned = np.median(learning[: len(window)]) if len(learning) else 0.0
            choosing.append(max(0.0, float(np.median(window) - learned)))
    is_stuck = unfinished > max(STUCK * longest.seconds.max(initial=0.0), INTERRUPTED)
    if is_stuck or not choosing:
        choosing.append(unfinished)
    begun = min(watch.marks[len(watch.marks) > 1] - watch.marks[0] for watch in timed)
    unchosen = max(0, min(played, longest.history) - timed[0].history)
    total, left = float(longest.seconds.sum()) + unchosen * fmean(choosing), horizon - played
    if left <= 0:
        return Cost((begun + total) / horizon)
    if is_stuck or played == 1:
        return Cost((begun + total + left * unfinished) / horizon, "at least")
    return Cost((begun + total * (1 + left / (played - 1))) / horizon, "extrapolated")
