"""`--dry-run`: cells, tasks, disk, and a time from some rounds that are really played (nothing is written).

Takes the times of played cells from the run folder. Then plays the first rounds of one pair per algorithm, and of the
other pairs until the time is up (`BUDGET` seconds, pilots of simulators included). Extrapolates rounds that slow down.
A pair that was not played gets the mean of the pairs with the same names, or of the same algorithm; pairs that are too
slow to try are named as not estimated. The pilot of a simulator, which is cut short, tells how long its simulations
take.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.play.block import recorded_rounds, start
from cbobench.play.task import Task
from cbobench.problems.base import Problem
from cbobench.problems.simulator import LATEST, Simulator
from cbobench.results.compact import MANY
from cbobench.results.schema import TableWriter, make_footer
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
ROW_BYTES = 150.0  # of a recorded round, where it is not known


class Trial(NamedTuple):
    """A measurement of a pair: seconds per seed-round, bytes per recorded row."""

    per_round: float
    per_row: float = ROW_BYTES


class TimeIsUp(BaseException):
    """A trial took too long. No Exception, so that no method catches it as an error of its own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeIsUp` after some seconds of wall time; does nothing outside the main thread."""

    def raise_time_is_up(number: int, frame: object) -> None:
        raise TimeIsUp

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, raise_time_is_up)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
    trials, tried = try_pairs(plan, say)
    pairs = {pair_cells.pair.title for pair_cells in plan.tasks.by_pair}
    rows, work, longest = 0.0, TASK_SECONDS * len(plan.tasks), 0.0
    for pair_cells in plan.tasks.by_pair:
        trial = trials.get(pair_cells.pair.title, Trial(0.0))
        per_cell = trial.per_round * pair_cells.horizon + CELL_SECONDS
        work += per_cell * len(pair_cells)
        longest = max(longest, min(RETURN_AFTER, per_cell * min(len(pair_cells), plan.record.block)))
        rows += trial.per_row * len(pair_cells) * len(recorded_rounds(pair_cells.horizon, plan.record.keep))
    workers = max(1, cpus if cpus is not None else usable_cpus())
    wide = max((demand.cpus for demand in plan.suite.demands.values()), default=1)
    wall = max(work / max(1, min(workers // wide, len(plan.tasks))), longest)
    new, unknown = plan.cells - plan.done, len(pairs - trials.keys())
    coverage = f"; {part_of(tried, len(pairs), 'pair')} known" if tried < len(pairs) - unknown else ""
    files = len(plan.tasks) * (3 if plan.record.audit else 2)
    merged = ", merged when the run ends" if len(plan.tasks) > MANY else ""
    begin = STARTUP_SECONDS * (cpus != 0) + sum(_pilot_seconds(problem) for problem in plan.suite.problems.values())
    startup = f", plus about {duration(begin)} to start" if begin and plan.tasks else ""
    took = f"{'more than' if unknown else 'about'} {duration(wall)} on {workers} CPU(s){startup}"
    took = f"{took} ({duration(work)} of work{coverage})" if not unknown or unknown < len(pairs) else "not estimated"
    size = f"{rows / 1e6:.0f} MB" if rows < 1e9 else f"{rows / 1e9:.1f} GB"
    return "\n".join(
        [
            f"{plan.suite.name}: {new:,} of {count_noun(plan.cells, 'cell')} to play, in "
            f"{count_noun(len(plan.tasks), 'task')} -> {plan.folder}",
            f"time: {took}",
            *_name_unknown(plan, trials),
            f"disk: about {size} in {count_noun(files, 'file')}{merged}",
            *_describe_simulations(plan),
        ]
    )


def _name_unknown(plan: Plan, trials: Mapping[str, Trial]) -> list[str]:
    """A line that names the algorithms of pairs without a measurement, with how many pairs of each; none without."""
    unknown = {p.pair.title: p.pair.algorithm.label for p in plan.tasks.by_pair if p.pair.title not in trials}
    counts = Counter(unknown.values()).items()
    names = ", ".join(f"{label} ({count_noun(count, 'pair')})" for label, count in counts)
    return [f"not estimated, and not counted: {names}: too slow to be tried"] if names else []


def _describe_simulations(plan: Plan) -> list[str]:
    """A line per simulator: how many simulations a cell and the sweep take, beside the pilot, and how long each."""
    cells: dict[str, list[int]] = defaultdict(list)
    for pair_cells in plan.tasks.by_pair:
        cells[pair_cells.pair.problem.title] += [pair_cells.horizon] * len(pair_cells)
    lines = []
    for title, horizons in cells.items():
        problem = plan.suite.problems[title]
        if isinstance(problem, Simulator):
            pilot, per_round, end = problem.simulations
            total, seconds = sum(horizons) * per_round + len(horizons) * end, problem.pilot_facts.seconds
            counts = f"{per_round} a round, {max(horizons) * per_round + end:,} a cell, {total:,} in all"
            long = f"{duration(seconds)} each" if seconds >= 1 else f"{1000 * seconds:.1f} ms each"
            work = duration(total * seconds)
            lines.append(f"simulations of {title}: {counts}, {long}: {work} of work; and {pilot} of the pilot")
    if lines and plan.simulations is not None and (kept_count := len(plan.simulations.names)):
        count = count_noun(kept_count, "simulation")
        lines.append(f"{count} of a second or more kept in the run, not to be paid for again")
    return lines


def _pilot_seconds(problem: Problem) -> float:
    """Seconds of a simulator's pilot, which precedes the run."""
    return problem.pilot_facts.seconds * problem.simulations[0] if isinstance(problem, Simulator) else 0.0


def _simulation_seconds(problem: Problem) -> float:
    """Wall time of a seed-round's simulations, a lower bound for the seed-round."""
    return problem.pilot_facts.seconds * problem.simulations[1] if isinstance(problem, Simulator) else 0.0


def try_pairs(plan: Plan, say: Callable[[str], None] = lambda text: None) -> tuple[dict[str, Trial], int]:
    """Measurements by the title of a pair, and how many pairs were measured themselves."""
    deadline = min(max(LATEST.get(), time.monotonic() + MIN_BUDGET), time.monotonic() + BUDGET)
    trials = {pair.title: Trial(seconds / rounds) for pair, seconds, rounds in plan.measured}
    tasks = [task for task in plan.tasks.of_pairs() if task.pair.title not in trials]
    slow: set[str] = set()  # algorithms that are not tried elsewhere: there would be no time for the others
    for task in tasks:
        problem = plan.suite.problems[task.pair.problem.title]
        least = _simulation_seconds(problem)
        if least * MIN_ROUNDS * _cells_to_try(task, problem) > PAIR_SECONDS:
            trials[task.pair.title] = Trial(least)  # nobody waits for what is known
    untried = [task for task in tasks if task.pair.title not in trials]
    first = {task.pair.algorithm.name: task for task in reversed(untried)}
    untried.sort(key=lambda task: first[task.pair.algorithm.name] is not task)
    if untried:
        left = deadline - time.monotonic()
        say(f"tries {count_noun(len(untried), 'pair')} of which nothing is known, for {left:.0f} s at most")
    share = min(MAX_TRIAL, max(MIN_TRIAL, ALL_TRIALS / max(1, len(untried))))
    for task in untried:
        trial = None if task.pair.algorithm.name in slow else _try_pair(plan, task, share, deadline)
        if trial is None:
            slow.add(task.pair.algorithm.name)
        else:
            least = _simulation_seconds(plan.suite.problems[task.pair.problem.title])
            trial = trial._replace(per_round=max(least, trial.per_round))
            trials = {cell.pair.title: trial for cell in task.cells} | trials
    trials_by_names: dict[tuple[str, ...], list[Trial]] = defaultdict(list)
    by_pair = plan.tasks.by_pair
    for pair_cells in by_pair:
        if pair_cells.pair.title in trials:
            for key in _names(pair_cells.pair):
                trials_by_names[key].append(trials[pair_cells.pair.title])
    measured_count = len({pair_cells.pair.title for pair_cells in by_pair if pair_cells.pair.title in trials})
    for pair_cells in by_pair:
        similar = next((trials_by_names[key] for key in _names(pair_cells.pair) if key in trials_by_names), None)
        if similar is not None:
            trials.setdefault(pair_cells.pair.title, Trial(*np.mean(similar, axis=0).tolist()))
    return trials, measured_count


def _names(pair: Pair) -> tuple[tuple[str, ...], ...]:
    """Keys that similar pairs share, the closest first."""
    return (pair.problem.name, pair.algorithm.name), (pair.algorithm.name,)


def _cells_to_try(task: Task, problem: Problem) -> int:
    return len(task.cells) if isinstance(problem.actions, Finite) else min(CELLS_OF_A_BOX, len(task.cells))


def _try_pair(plan: Plan, task: Task, seconds: float, deadline: float) -> Trial | None:
    """Play the first rounds of a task for about some seconds; None if that takes too long, or fails."""
    problem = plan.suite.problems[task.pair.problem.title]
    cells = task.cells[: _cells_to_try(task, problem)]
    times: list[float] = []
    latest = 0.0  # when the round that is played began, on the clock
    try:
        import_libraries(task.pair.algorithm.name)  # takes seconds that are no round's, and must not be broken off
        limit, rounds = min(PAIR_SECONDS, deadline - time.monotonic()), min(FIRST_ROUNDS, task.horizon)

        def watch(t: int) -> None:
            nonlocal latest
            times.append(time.thread_time())
            latest = time.monotonic()

        with time_limit(limit), single_thread():
            while limit > 0:
                play, rows = start(problem, cells, rounds, None)
                times.clear()
                play.watch = watch
                for chunk in play:
                    rows.add(chunk)
                times.append(time.thread_time())
                if rounds == task.horizon or times[-1] - times[0] > seconds / 4:
                    per_row = _row_bytes(task.name, rows.table())
                    return Trial(_extrapolate(np.diff(times), task.horizon) / (task.horizon * len(cells)), per_row)
                rounds = min(4 * rounds, task.horizon)
    except TimeIsUp:
        work = _extrapolate_broken_off(np.diff(times), time.monotonic() - latest, task.horizon)
        return None if work is None else Trial(work / (task.horizon * len(cells)))
    except Exception:  # what cannot be played is told of when it is
        return None
    return None


def _extrapolate(rounds: Array, horizon: int) -> float:
    """Seconds of `horizon` rounds, given the (n,) seconds of the first ones.

    If the rounds grow slower significantly, the line is extrapolated. If they grow faster, the last level stays.
    """
    n = len(rounds)
    level = float(rounds[n // 2 :].mean())
    if n >= 2 * FIRST_ROUNDS:
        # Only the later half: at the beginning delays fill and models settle.
        windows = np.array_split(np.arange(n // 2, n), FIRST_ROUNDS)
        x = np.array([part.mean() for part in windows])
        y = np.array([rounds[part].mean() for part in windows])
        line, residuals, *_ = np.polyfit(x, y, 1, full=True)
        error = float(np.sqrt(residuals.sum() / (FIRST_ROUNDS - 2) / ((x - x.mean()) ** 2).sum()))
        if line[0] > 2 * error:
            level = float(y.mean() + (line[0] - 2 * error) * (min((n + horizon) / 2, MAX_EXTRAPOLATION * n) - x.mean()))
        elif line[0] < -3 * error:
            level = float(y[-1])
    return float(rounds.sum()) + (horizon - n) * level


def _extrapolate_broken_off(rounds: Array, unfinished: float, horizon: int) -> float | None:
    """As `_extrapolate`, of a trial that ran out of time; None if its rounds do not say what the later ones take.

    Many methods begin with rounds that cost nothing, before they fit a model: only the later half of the time counts.

    Args:
        unfinished: seconds of the round that was broken off.
    """
    if len(rounds) < MIN_ROUNDS or unfinished > MOST_UNFINISHED * rounds.max():
        return None
    later = rounds[int(np.searchsorted(np.cumsum(rounds), rounds.sum() / 2)) :]
    return float(rounds.sum() + (horizon - len(rounds)) * later.mean())


def _row_bytes(name: str, table: pa.Table) -> float:
    """Bytes of a recorded row, from a file with some rounds and one with none."""
    sizes = []
    for rows in (table, table.slice(0, 0)):
        sink = pa.BufferOutputStream()
        with TableWriter(sink, rows.schema, make_footer("rounds", name, [], rows.num_rows, 1)) as writer:
            writer.write_table(rows)
        sizes.append(int(sink.getvalue().size))
    return (sizes[0] - sizes[1]) / max(1, table.num_rows)
