"""`--dry-run`: cells, tasks, time and disk, from some rounds of pairs really played (nothing is written).

What cells in the run folder took is taken from there; else what was measured once of pairs like these (`sweep.costs`).
Of other pairs the first rounds are played, as the run would play them: of one of each algorithm and problem, then of
those that differ in parameters, as long as all take less than `SAMPLE_SECONDS`; a large sweep is given more time, most
of it to the pairs that make up most of its work. Where rounds become dearer, that is carried on to the last one. Pairs
that are not played have the mean of those of the same names. What is too slow to be tried in `BUDGET` is unknown. What
a simulator takes on the clock is known from its pilot, which is cut short for it.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.play.block import start, summaries
from cbobench.play.rows import recorded_rounds
from cbobench.play.task import Task
from cbobench.problems.base import Problem
from cbobench.problems.simulator import LATEST, Simulator
from cbobench.results.compact import MANY
from cbobench.results.schema import TableWriter, make_footer
from cbobench.suite.cells import Cell, Pair
from cbobench.sweep.alarm import Late, within
from cbobench.sweep.blocks import LONG, SHARED_ROUND
from cbobench.sweep.costs import Costs
from cbobench.sweep.executors import usable_cpus
from cbobench.sweep.run import Plan
from cbobench.threads import single_thread
from cbobench.words import counted, part_of
from cbobench.words import duration as _duration

SAMPLE_SECONDS = 2.0  # of CPU time, to sample pairs for the first time
BUDGET = 20.0  # seconds on the clock, for all that is played, the pilots of simulators among it
REST = 5.0  # of them, where preparing took longer
EACH = 3.0  # and for a pair
SHORTEST, LONGEST = 0.02, 0.25  # of which one takes
SHARE, MOST = 0.05, 12.0  # of a sweep's time, and seconds at most, to sample some for longer
CELLS_OF_A_BOX = 10  # that are played of a block: more of them take hardly less each
AS_FAR = 3  # times the rounds that were played: no line through a few is followed further
FEW = 8  # rounds that are played at least
LEAST = 3  # where there is no time for more
SAMPLE_ROUNDS = {
    True: 200,
    False: 20,
}  # of finite sets and boxes: the size of a row, what a cell takes beside its rounds
TASK_SECONDS = 0.012  # to publish its files, and to hand it out
STARTUP_SECONDS = 2.0  # imports, worker processes, the table
SCHEDULED = 100_000  # tasks above which nobody waits for the last one


class Sample(NamedTuple):
    """What pairs take beside their rounds: seconds per cell; bytes per recorded row."""

    per_cell: float
    per_row: float


USUAL = Sample(0.002, 150.0)


@contextmanager
def in_time() -> Iterator[None]:
    """Within, what is planned and estimated ends `BUDGET` from now: pilots are cut short, and nothing more is tried."""
    before = LATEST.set(time.monotonic() + BUDGET)
    try:
        yield
    finally:
        LATEST.reset(before)


def estimate(todo: Plan, cpus: int | None, say: Callable[[str], None] = lambda text: None) -> str:
    """Three lines for a reader. The time is measured on this machine, for this machine's CPUs (or `cpus`).

    Args:
        say: told in a line what is begun that may take long.
    """
    tried, per_round, of = _samples(todo, say)
    pairs = {strip.pair.title for strip in todo.tasks.strips}
    size, seconds, per_task = 0.0, 0.0, dict.fromkeys(pairs, 0.0)
    for strip in todo.tasks.strips:
        per_cell, per_row = of[_names(strip.pair)]
        if strip.pair.title in per_round:
            per_task[strip.pair.title] = per_round[strip.pair.title] * strip.horizon + per_cell
        seconds += per_task[strip.pair.title] * len(strip)
        size += per_row * len(strip) * len(recorded_rounds(strip.horizon, todo.record.keep))
    seconds += TASK_SECONDS * len(todo.tasks)
    workers = max(1, cpus if cpus is not None else usable_cpus())
    wall = seconds / workers
    if len(todo.tasks) <= SCHEDULED:
        each = ((per_task[t.pair.title] * len(t.cells) + TASK_SECONDS, t.demand.cpus) for t in todo.tasks)
        wall = _wall(each, workers)
    new = todo.cells - todo.done
    unknown = len(pairs - per_round.keys())
    some = f"; {part_of(tried, len(pairs), 'pair')} known" if tried < len(pairs) - unknown else ""
    about = "about"
    if unknown:
        about, some = "more than", f"{some}; unknown for {counted(unknown, 'pair')}, not counted: too slow to be tried"
    files = len(todo.tasks) * (3 if todo.record.audit else 2)
    merged = ", merged when the run ends" if len(todo.tasks) > MANY else ""
    begin = STARTUP_SECONDS * (cpus != 0) + sum(_pilot(problem) for problem in todo.suite.problems.values())
    startup = f", plus about {_duration(begin)} to start" if begin and todo.tasks else ""
    return "\n".join(
        [
            f"{todo.suite.name}: {new:,} of {counted(todo.cells, 'cell')} to play, in "
            f"{counted(len(todo.tasks), 'task')} -> {todo.folder}",
            f"time: {about} {_duration(wall)} on {workers} CPU(s){startup} ({_duration(seconds)} of work{some})",
            f"disk: about {_size(size)} in {counted(files, 'file')}{merged}",
        ]
    )


def _pilot(problem: Problem) -> float:
    """Seconds that a simulator's pilot takes before a run begins."""
    return problem.known.seconds * problem.simulations[0] if isinstance(problem, Simulator) else 0.0


def _simulated(problem: Problem) -> float:
    """Seconds on the clock that a seed-round takes at least: those of its simulations."""
    return problem.known.seconds * problem.simulations[1] if isinstance(problem, Simulator) else 0.0


def _names(pair: Pair) -> tuple[str, str]:
    return pair.problem.name, pair.algorithm.name


def _wall(tasks: Iterable[tuple[float, int]], workers: int) -> float:
    """Seconds until the last of some tasks (seconds, CPUs) is over, if the longest begin first.

    Hours are cut (see `sweep.blocks`).
    """
    times = sorted(((part, cpus) for seconds, cpus in tasks for part in _parts(seconds)), reverse=True)
    ends = [0.0] * workers
    for seconds, cpus in times:
        taken = [heapq.heappop(ends) for _ in range(min(cpus, workers))]
        for _ in taken:
            heapq.heappush(ends, taken[-1] + seconds)
    return max(ends)


def _parts(seconds: float) -> list[float]:
    count = int(seconds // LONG) + 1
    return [seconds / count] * count


def _samples(
    todo: Plan, say: Callable[[str], None] = lambda text: None
) -> tuple[int, dict[str, float], dict[tuple[str, str], Sample]]:
    """How many pairs are known, seconds per seed-round where they are, and what else those of some names take."""
    deadline = min(max(LATEST.get(), time.monotonic() + REST), time.monotonic() + BUDGET)
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in todo.tasks.of_pairs():
        groups.setdefault(_names(task.pair), []).append(task)
    found = {pair.title: seconds / rounds for pair, seconds, rounds in todo.measured}
    costs = Costs()
    simulated = {title: _simulated(problem) for title, problem in todo.suite.problems.items()}
    for task in (task for tasks in groups.values() for task in tasks if task.pair.title not in found):
        problem = todo.suite.problems[task.pair.problem.title]
        each = costs.per_round(task.pair, problem, task.horizon, len(task.cells))
        least = simulated[task.pair.problem.title]
        if each is None and least * LEAST * len(_some(task, problem)) > EACH:
            each = least  # nobody waits for what is known
        if each is not None:
            found[task.pair.title] = each
    turns = [(turn, task) for tasks in groups.values() for turn, task in zip(_spread(len(tasks)), tasks, strict=True)]
    turns.sort(key=lambda one: one[0])
    asked = [(turn, task) for turn, task in turns if task.pair.title not in found]
    first = {task.pair.algorithm.name: task for _, task in reversed(asked)}  # each method once, should time be short
    asked.sort(key=lambda one: first[one[1].pair.algorithm.name] is not one[1])
    if asked:
        left = deadline - time.monotonic()
        say(f"tries {counted(len(asked), 'pair')} of which nothing is known, for {left:.0f} s at most")
    share = min(LONGEST, max(SHORTEST, SAMPLE_SECONDS / max(1, len(asked))))
    began, slow = time.process_time(), set[str]()

    def tried(task: Task, seconds: float) -> bool:
        name = task.pair.algorithm.name
        each = None if name in slow else _measure_pair(todo, task, seconds, deadline)
        if each is not None:
            found[task.pair.title] = each
        elif task.pair.title not in found:
            slow.add(name)  # nor is it tried elsewhere: there would be no time for the others
        return each is not None

    for turn, task in asked:
        if turn == 0 or time.process_time() - began < SAMPLE_SECONDS:
            tried(task, share)
    known = set(found)
    _fill(groups, found)
    work = {s.pair.title: found.get(s.pair.title, 0.0) * len(s) * s.horizon for s in todo.tasks.strips}
    total = sum(work.values())
    more = min(MOST, SHARE * total)
    for _, task in asked:
        title = task.pair.title
        seconds = more * work[title] / max(total, 1e-9)
        if seconds > (2 * share if title in known else share) and tried(task, seconds):
            known.add(title)
    for title in {*found} - known:
        del found[title]
    _fill(groups, found)
    for task in (task for tasks in groups.values() for task in tasks if task.pair.title in found):
        found[task.pair.title] = max(found[task.pair.title], simulated[task.pair.problem.title])
    slow_ones = {names for names, tasks in groups.items() if simulated[tasks[0].pair.problem.title] > EACH / 100}
    others = {
        names: USUAL if names in slow_ones else _sample(todo, tasks[0], min(EACH, deadline - time.monotonic()))
        for names, tasks in groups.items()
    }
    return sum(title in known for title in work), {title: found[title] for title in work if title in found}, others


def _measure_pair(todo: Plan, task: Task, seconds: float, deadline: float) -> float | None:
    """Seconds per seed-round of a task; None where it is too slow to be tried, or cannot be played."""
    left = deadline - time.monotonic()
    try:
        with within(min(left, max(EACH, 2 * seconds))):
            return _per_round(todo, task, seconds) if left > 0 else None
    except (Late, Exception):  # what cannot be played is told of when it is
        return None


def _spread(count: int) -> list[int]:
    """When each of some tasks in a row has its turn: the first, the middle, the quarters, and so on between them."""
    halvings = [sum(int(bit) / 2**k for k, bit in enumerate(f"{i:b}"[::-1], 1)) for i in range(count)]
    places = (np.array(halvings) * count).astype(int)
    order = [*dict.fromkeys([*places.tolist(), *range(count)])]
    return np.argsort(order).tolist() if count else []


def _fill(groups: dict[tuple[str, str], list[Task]], found: dict[str, float]) -> None:
    """Give what is not known the mean of what is, of the same names; else of the same algorithm."""
    of: dict[str, list[float]] = {}
    for (_, algorithm), tasks in groups.items():
        of.setdefault(algorithm, []).extend(found[task.pair.title] for task in tasks if task.pair.title in found)
    for (_, algorithm), tasks in groups.items():
        some = [found[task.pair.title] for task in tasks if task.pair.title in found] or of[algorithm]
        for task in tasks if some else ():
            found.setdefault(task.pair.title, float(np.mean(some)))


class _Enough(Exception):
    """Ends a play."""


def _some(task: Task, problem: Problem) -> tuple[Cell, ...]:
    """Cells that stand for a task's."""
    return task.cells if isinstance(problem.actions, Finite) else task.cells[:CELLS_OF_A_BOX]


def _per_round(todo: Plan, task: Task, seconds: float) -> float:
    """Seconds per seed-round of a task, from its first rounds: about so many seconds of them."""
    problem = todo.suite.problems[task.pair.problem.title]
    finite, cells = isinstance(problem.actions, Finite), _some(task, problem)
    play, _ = start(problem, cells, task.horizon, todo.record.keep)
    at: list[float] = []

    def watch(t: int) -> None:
        at.append(time.thread_time())
        if len(at) > FEW and at[-1] - at[0] > seconds:
            raise _Enough

    play.watch = watch
    try:
        with single_thread():
            for _ in play:
                pass
        whole = play.seconds
    except _Enough:
        whole = _carried_on(np.diff(at), task.horizon)
    except Late:
        rounds = np.diff(at)[len(play.initial) :]  # those of a design cost nothing
        if len(rounds) < LEAST:
            raise
        whole = _carried_on(rounds, task.horizon)
    each, shared = whole / (task.horizon * len(cells)), SHARED_ROUND[finite]
    if len(cells) == len(task.cells):
        return each
    return max(0.0, each - shared / len(cells)) + shared / len(task.cells)


def _carried_on(rounds: Array, horizon: int) -> float:
    """Seconds that `horizon` rounds take, of which the first took (n,) `rounds`.

    Where these became slower, and that by no accident, later ones do, in a line; where faster, they are as the last.
    """
    n = len(rounds)
    level = float(rounds[n // 2 :].mean())
    if n >= 2 * FEW:
        some = np.array_split(np.arange(n // 2, n), FEW)  # a beginning is its own: delays that fill, models that settle
        x = np.array([part.mean() for part in some])
        y = np.array([rounds[part].mean() for part in some])
        line, rest, *_ = np.polyfit(x, y, 1, full=True)
        error = float(np.sqrt(rest.sum() / (FEW - 2) / ((x - x.mean()) ** 2).sum()))
        if line[0] > 2 * error:
            level = float(y.mean() + (line[0] - 2 * error) * (min((n + horizon) / 2, AS_FAR * n) - x.mean()))
        elif line[0] < -3 * error:
            level = float(y[-1])
    return float(rounds.sum()) + (horizon - n) * level


def _sample(todo: Plan, task: Task, seconds: float) -> Sample:
    """What a pair takes beside its rounds, where that is known in so many seconds."""
    try:
        with within(seconds):
            return _sampled(todo, task) if seconds > 0 else USUAL
    except (Late, Exception):
        return USUAL


def _sampled(todo: Plan, task: Task) -> Sample:
    problem = todo.suite.problems[task.pair.problem.title]
    cells = _some(task, problem)
    horizon = min(task.horizon, SAMPLE_ROUNDS[isinstance(problem.actions, Finite)])
    began = time.thread_time()
    play, rows = start(problem, cells, horizon, None)
    with single_thread():
        for chunk in play:
            rows.add(chunk)
        summaries(play)
    fixed = max(0.0, time.thread_time() - began - play.seconds)
    table = rows.table()
    size = [_bytes(task.name, some) for some in (table, table.slice(0, 0))]
    return Sample(fixed / len(cells), (size[0] - size[1]) / table.num_rows)


def _bytes(name: str, table: pa.Table) -> int:
    """Of a file with some rounds."""
    sink = pa.BufferOutputStream()
    with TableWriter(sink, "rounds", make_footer("rounds", name, [], table.num_rows, 1)) as writer:
        writer.write_table(table)
    return int(sink.getvalue().size)


def _size(number: float) -> str:
    return f"{number / 1e6:.0f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"
