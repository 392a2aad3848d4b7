"""`--dry-run`: cells, tasks, time and disk, from some rounds of pairs really played (nothing is written).

What cells in the run folder took is taken from there. Of other pairs the first rounds are played, as the run would play
them: of one of each algorithm and problem, then of those that differ in parameters, as long as all take less than
`SAMPLE_SECONDS`; a large sweep is given more time, most of it to the pairs that make up most of its work. Where rounds
become dearer, that is carried on to the last one. Pairs that are not played have the mean of those of the same names.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.play.block import start, summaries
from cbobench.play.rows import recorded_rounds
from cbobench.play.task import Task
from cbobench.problems.base import Problem
from cbobench.results.compact import MANY
from cbobench.results.schema import footer, open_writer
from cbobench.suite.cells import Cell, Pair
from cbobench.sweep.pace import LONG, SHARED_ROUND
from cbobench.sweep.run import Plan
from cbobench.sweep.workers import usable_cpus
from cbobench.threads import single_thread
from cbobench.words import counted

SAMPLE_SECONDS = 2.0  # of CPU time, to sample pairs for the first time
SHORTEST, LONGEST = 0.02, 0.25  # of which one takes
SHARE, MOST = 0.05, 12.0  # of a sweep's time, and seconds at most, to sample some for longer
CELLS_OF_A_BOX = 10  # that are played of a block: more of them take hardly less each
AS_FAR = 3  # times the rounds that were played: no line through a few is followed further
FEW = 8  # rounds that are played at least
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


def estimate(todo: Plan, cpus: int | None) -> str:
    """Three lines for a reader. The time is measured on this machine, for this machine's CPUs (or `cpus`)."""
    tried, per_round, of = _samples(todo)
    size, seconds, per_task = 0.0, 0.0, {}
    for strip in todo.tasks.strips:
        per_cell, per_row = of[_names(strip.pair)]
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
    unknown = len(per_round) - tried
    some = f"; {tried} of {len(per_round)} pairs were tried" if unknown else ""
    files = len(todo.tasks) * (3 if todo.record.audit else 2)
    merged = ", merged when the run ends" if len(todo.tasks) > MANY else ""
    startup = f", plus about {STARTUP_SECONDS:.0f} s to start" if cpus != 0 and todo.tasks else ""
    return "\n".join(
        [
            f"{todo.suite.name}: {new} of {todo.cells} cells to play, in {counted(len(todo.tasks), 'task')}"
            f" -> {todo.folder}",
            f"time: about {_duration(wall)} on {workers} CPU(s){startup} ({_duration(seconds)} of work{some})",
            f"disk: about {_size(size)} in {counted(files, 'file')}{merged}",
        ]
    )


def _names(pair: Pair) -> tuple[str, str]:
    return pair.problem.name, pair.algorithm.name


def _wall(tasks: Iterable[tuple[float, int]], workers: int) -> float:
    """Seconds until the last of some tasks (seconds, CPUs) is over, if the longest begin first.

    Hours are cut (see `sweep.pace`).
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


def _samples(todo: Plan) -> tuple[int, dict[str, float], dict[tuple[str, str], Sample]]:
    """How many pairs are known, seconds per seed-round of every one to play, and what else those of some names take."""
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in todo.tasks.of_pairs():
        groups.setdefault(_names(task.pair), []).append(task)
    others = {names: _sample(todo, tasks[0]) for names, tasks in groups.items()}
    found = {pair.title: seconds / rounds for pair, seconds, rounds in todo.measured}
    turns = [(turn, task) for tasks in groups.values() for turn, task in zip(_spread(len(tasks)), tasks, strict=True)]
    asked = [(turn, task) for turn, task in sorted(turns, key=lambda one: one[0]) if task.pair.title not in found]
    share = min(LONGEST, max(SHORTEST, SAMPLE_SECONDS / max(1, len(asked))))
    began = time.process_time()
    for turn, task in asked:
        if turn == 0 or time.process_time() - began < SAMPLE_SECONDS:
            found[task.pair.title] = _per_round(todo, task, share)
    known = set(found)
    _fill(groups, found)
    work = {strip.pair.title: found[strip.pair.title] * len(strip) * strip.horizon for strip in todo.tasks.strips}
    total = sum(work.values())
    more = min(MOST, SHARE * total)
    for _, task in asked:
        title = task.pair.title
        if (seconds := more * work[title] / total) > (2 * share if title in known else share):
            found[title] = _per_round(todo, task, seconds)
            known.add(title)
    for title in {*found} - known:
        del found[title]
    _fill(groups, found)
    return sum(title in known for title in work), {title: found[title] for title in work}, others


def _spread(count: int) -> list[int]:
    """When each of some tasks in a row has its turn: the first, the middle, the quarters, and so on between them."""
    halvings = [sum(int(bit) / 2**k for k, bit in enumerate(f"{i:b}"[::-1], 1)) for i in range(count)]
    places = (np.array(halvings) * count).astype(int)
    order = [*dict.fromkeys([*places.tolist(), *range(count)])]
    return np.argsort(order).tolist() if count else []


def _fill(groups: dict[tuple[str, str], list[Task]], found: dict[str, float]) -> None:
    """Give what is not known the mean of what is, of the same names."""
    for tasks in groups.values():
        mean = float(np.mean([found[task.pair.title] for task in tasks if task.pair.title in found]))
        for task in tasks:
            found.setdefault(task.pair.title, mean)


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


def _sample(todo: Plan, task: Task) -> Sample:
    """What a pair takes beside its rounds."""
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
    with open_writer(sink, "rounds", footer("rounds", name, [], table.num_rows, 1)) as writer:
        writer.write_table(table)
    return int(sink.getvalue().size)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(number: float) -> str:
    return f"{number / 1e6:.0f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"
