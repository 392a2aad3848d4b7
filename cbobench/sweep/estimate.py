"""`--dry-run`: cells, tasks, disk, and a time from some rounds that are really played (nothing is written).

Takes the times of played cells from the run folder. Then plays the first rounds of one pair per algorithm, and of the
other pairs until the time is up (`BUDGET` seconds, pilots of simulators included). Extrapolates rounds that slow down.
A pair that was not played gets the mean of the pairs with the same names, or of the same algorithm; pairs that are too
slow to try are named as not estimated. The pilot of a simulator, which is cut short, tells how long its simulations
take.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from statistics import fmean

import numpy as np

from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.play.block import recorded_rounds, start
from cbobench.play.failure import TimedOut
from cbobench.play.task import Task
from cbobench.play.watchdog import watch_play
from cbobench.problems.base import Problem
from cbobench.problems.simulator import LATEST, Simulator
from cbobench.results.compact import MANY
from cbobench.results.source import import_libraries
from cbobench.suite.cells import Pair
from cbobench.sweep.blocks import RETURN_AFTER
from cbobench.sweep.executors import usable_cpus
from cbobench.sweep.run import Plan
from cbobench.threads import single_thread
from cbobench.words import count_noun, duration, part_of

BUDGET = 20.0  # seconds on the clock, for all that is played, the pilots of simulators among it
MIN_BUDGET = 5.0  # of them, where preparing took longer
PAIR_SECONDS = 3.0  # and for a pair
ALL_TRIALS = 6.0  # seconds for all pairs together, as far as each has `MIN_TRIAL`
MIN_TRIAL, MAX_TRIAL = 0.02, 0.25  # for one
CELLS_OF_A_BOX = 10  # that are played of a block: more of them take hardly less each
FIRST_ROUNDS = 8  # rounds that are played at least
MIN_ROUNDS = 3  # where there is no time for more
MOST_UNFINISHED = 3.0  # times the longest round: one that takes longer before it ends is of another kind
MAX_EXTRAPOLATION = 3  # times the rounds that were played: no line through a few is followed further
CELL_SECONDS = 0.002  # of a cell, beside its rounds
TASK_SECONDS = 0.012  # to publish its files, and to hand it out
STARTUP_SECONDS = 2.0  # imports, worker processes, the table
NUMBER_BYTES, METRIC_BYTES = 8.0, 30.0  # of a recorded round: of each coordinate, f and g; of all its metrics


@contextmanager
def in_time() -> Iterator[None]:
    """Limit planning and estimating to `BUDGET` seconds from now: pilots are cut short and trials end."""
    before = LATEST.set(time.monotonic() + BUDGET)
    try:
        yield
    finally:
        LATEST.reset(before)


def estimate(plan: Plan, cpus: int | None, say: Callable[[str], None] = lambda text: None) -> str:
    """Lines on cells, time, disk and simulations. Measures on this machine, for its CPUs (or `cpus`).

    Args:
        say: called with a line before a step that may take long.
    """
    per_round, tried = try_pairs(plan, say)
    unknown: dict[str, str] = {}  # the algorithms of pairs without a measurement, by pair
    size, work, longest = 0.0, TASK_SECONDS * len(plan.tasks), 0.0
    for cells in plan.tasks.by_pair:
        title, problem = cells.pair.title, plan.suite.problems[cells.pair.problem.title]
        if title not in per_round:
            unknown[title] = cells.pair.algorithm.label
        per_cell = per_round.get(title, 0.0) * cells.horizon + CELL_SECONDS
        work += per_cell * len(cells)
        longest = max(longest, min(RETURN_AFTER, per_cell * min(len(cells), plan.record.block)))
        numbers = 2 * (1 + problem.constraints) + (problem.actions.d if isinstance(problem.actions, Box) else 0)
        rows = len(cells) * len(recorded_rounds(cells.horizon, plan.record.keep))
        size += rows * (NUMBER_BYTES * numbers + METRIC_BYTES)
    workers = max(1, cpus if cpus is not None else usable_cpus())
    wide = max((demand.cpus for demand in plan.suite.demands.values()), default=1)
    wall = max(work / max(1, min(workers // wide, len(plan.tasks))), longest)
    pairs = len({cells.pair.title for cells in plan.tasks.by_pair})
    coverage = f"; {part_of(tried, pairs, 'pair')} known" if tried < pairs - len(unknown) else ""
    simulators = [problem for problem in plan.suite.problems.values() if isinstance(problem, Simulator)]
    begin = STARTUP_SECONDS * (cpus != 0) + sum(s.pilot_facts.seconds * s.simulations[0] for s in simulators)
    startup = f", plus about {duration(begin)} to start" if begin and plan.tasks else ""
    took = f"{'more than' if unknown else 'about'} {duration(wall)} on {workers} CPU(s){startup}"
    took = "not estimated" if unknown and len(unknown) == pairs else f"{took} ({duration(work)} of work{coverage})"
    counts = Counter(unknown.values()).items()
    names = ", ".join(f"{label} ({count_noun(count, 'pair')})" for label, count in counts)
    disk = f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"
    files = count_noun(len(plan.tasks) * (3 if plan.record.audit else 2), "file")
    return "\n".join(
        [
            f"{plan.suite.name}: {plan.cells - plan.done:,} of {count_noun(plan.cells, 'cell')} to play, in "
            f"{count_noun(len(plan.tasks), 'task')} -> {plan.folder}",
            f"time: {took}",
            *([f"not estimated, and not counted: {names}: too slow to be tried"] if names else []),
            f"disk: about {disk} in {files}{', merged when the run ends' if len(plan.tasks) > MANY else ''}",
            *_describe_simulations(plan),
        ]
    )


def _describe_simulations(plan: Plan) -> list[str]:
    """A line per simulator: how many simulations a cell and the sweep take, beside the pilot, and how long each."""
    horizons: dict[str, list[int]] = defaultdict(list)
    for cells in plan.tasks.by_pair:
        horizons[cells.pair.problem.title] += [cells.horizon] * len(cells)
    lines = []
    for title, of_cells in horizons.items():
        problem = plan.suite.problems[title]
        if isinstance(problem, Simulator):
            pilot, per_round, end = problem.simulations
            total, seconds = sum(of_cells) * per_round + len(of_cells) * end, problem.pilot_facts.seconds
            counts = f"{per_round} a round, {max(of_cells) * per_round + end:,} a cell, {total:,} in all"
            long = f"{duration(seconds)} each" if seconds >= 1 else f"{1000 * seconds:.1f} ms each"
            work = duration(total * seconds)
            lines.append(f"simulations of {title}: {counts}, {long}: {work} of work; and {pilot} of the pilot")
    if lines and plan.simulations is not None and (kept_count := len(plan.simulations.names)):
        count = count_noun(kept_count, "simulation")
        lines.append(f"{count} of a second or more kept in the run, not to be paid for again")
    return lines


def try_pairs(plan: Plan, say: Callable[[str], None] = lambda text: None) -> tuple[dict[str, float], int]:
    """Seconds of a seed-round by the title of a pair, and how many pairs were measured themselves."""
    deadline = min(max(LATEST.get(), time.monotonic() + MIN_BUDGET), time.monotonic() + BUDGET)
    known = {pair.title: seconds / rounds for pair, seconds, rounds in plan.measured}
    untried = []
    for task in plan.tasks.of_pairs():
        problem = plan.suite.problems[task.pair.problem.title]
        least = _simulation_seconds(problem)
        if least * MIN_ROUNDS * _cells_to_try(task, problem) > PAIR_SECONDS:
            known.setdefault(task.pair.title, least)  # nobody waits for what is known
        elif task.pair.title not in known:
            untried.append(task)
    first = {task.pair.algorithm.name: task for task in reversed(untried)}
    untried.sort(key=lambda task: first[task.pair.algorithm.name] is not task)
    if untried:
        left = deadline - time.monotonic()
        say(f"tries {count_noun(len(untried), 'pair')} of which nothing is known, for {left:.0f} s at most")
    share = min(MAX_TRIAL, max(MIN_TRIAL, ALL_TRIALS / max(1, len(untried))))
    slow: set[str] = set()  # algorithms that are not tried elsewhere: there would be no time for the others
    for task in untried:
        seconds = None if task.pair.algorithm.name in slow else _try_pair(plan, task, share, deadline)
        if seconds is None:
            slow.add(task.pair.algorithm.name)
        else:
            known = {cell.pair.title: seconds for cell in task.cells} | known
    pairs = {cells.pair.title: cells.pair for cells in plan.tasks.by_pair}
    similar: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for title in pairs.keys() & known.keys():
        for key in _names(pairs[title]):
            similar[key].append(known[title])
    means = {title: fmean(similar[key]) for title, p in pairs.items() for key in reversed(_names(p)) if key in similar}
    return means | known, len(pairs.keys() & known.keys())


def _names(pair: Pair) -> tuple[tuple[str, ...], ...]:
    """Keys that similar pairs share, the closest first."""
    return (pair.problem.name, pair.algorithm.name), (pair.algorithm.name,)


def _simulation_seconds(problem: Problem) -> float:
    """Wall time of a seed-round's simulations, a lower bound for the seed-round."""
    return problem.pilot_facts.seconds * problem.simulations[1] if isinstance(problem, Simulator) else 0.0


def _cells_to_try(task: Task, problem: Problem) -> int:
    return len(task.cells) if isinstance(problem.actions, Finite) else min(CELLS_OF_A_BOX, len(task.cells))


def _try_pair(plan: Plan, task: Task, seconds: float, deadline: float) -> float | None:
    """Seconds of a seed-round, from the first rounds of a task; None if they take too long, or fail.

    Args:
        seconds: after which the trial ends, unless most of them were those of one round.
        deadline: when it is broken off.
    """
    problem = plan.suite.problems[task.pair.problem.title]
    cells = task.cells[: _cells_to_try(task, problem)]
    times: list[tuple[float, float]] = []  # when a round began: CPU time, and on the clock

    def watch(t: int) -> None:
        times.append((time.thread_time(), time.monotonic()))
        took = times[-1][0] - times[0][0]
        if t > FIRST_ROUNDS and took > seconds and 2 * np.diff(times, axis=0)[:, 0].max() < took:
            raise TimedOut

    try:
        import_libraries(task.pair.algorithm.name)  # takes seconds that are no round's, and must not be broken off
        limit = max(0.001, min(PAIR_SECONDS, deadline - time.monotonic()))
        with suppress(TimedOut), watch_play(limit, 1, task.horizon, None), single_thread():
            play, _ = start(problem, cells, task.horizon, plan.record.keep)
            play.watch = watch
            for _ in play:
                pass
            times.append((time.thread_time(), time.monotonic()))
    except Exception:  # what cannot be played is told of when it is
        return None
    is_whole = len(times) > task.horizon
    if not is_whole and len(times) <= MIN_ROUNDS:
        return None
    rounds, unfinished = np.diff(times, axis=0)[:, 0], time.monotonic() - times[-1][1]
    if not is_whole and unfinished > MOST_UNFINISHED * rounds.max():
        return None
    per_round = _extrapolate(rounds, task.horizon) / (task.horizon * len(cells))
    return max(_simulation_seconds(problem), per_round)


def _extrapolate(rounds: Array, horizon: int) -> float:
    """Seconds of `horizon` rounds, given the (n,) seconds of the first ones.

    Many methods begin with rounds that cost nothing, before they fit a model: only the later half of the time counts.
    If the rounds of it grow slower significantly, the line is extrapolated.
    """
    n = len(rounds)
    begin = int(np.searchsorted(np.cumsum(rounds), rounds.sum() / 2))
    begin = min(max(n // 2, begin), n - 1)
    later = rounds[begin:]
    level = float(later.mean())
    if len(later) >= FIRST_ROUNDS:
        line, covariance = np.polyfit(np.arange(begin, n), later, 1, cov=True)
        slope = max(0.0, float(line[0] - 2 * np.sqrt(covariance[0, 0])))
        level += slope * (min((n + horizon) / 2, MAX_EXTRAPOLATION * n) - (begin + n - 1) / 2)
    return float(rounds.sum()) + (horizon - n) * level
