"""How a grid is cut into tasks: blocks of seeds, their order, how many fit into memory, and pieces
by measured time.

Blocks are cut at fixed seeds and ordered seed-first, so that a stopped sweep is balanced and a
resumed one makes the same tasks again. The bits of a cell do not depend on its block, so that a
task may be cut whenever it is handed out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.posteriors import choice
from cbobench.play.block import block_key
from cbobench.play.task import Task
from cbobench.problems.base import Problem
from cbobench.results.query import NO_POSITION, PublishedCells
from cbobench.results.source import libraries, refuse_edits, source_hash
from cbobench.results.staleness import Freshness
from cbobench.suite.cells import Cell, Cells, Grid, Pair, PairCells, Suite
from cbobench.suite.prepare import memory_of
from cbobench.suite.settings import ONE, Demand, refuse_excess

MAX_BLOCK = 100  # 10 % faster per seed-round than 50 on finite sets
MAX_BLOCK_OF_BOXES = 50
MIN_BLOCK = 10
# seed-rounds of a block, which may have more than MAX_BLOCK seeds for them ...
BLOCK_ROUNDS = 10_000
MOST_SEEDS = 1000  # ... up to so many: beside tiny cells, what a task costs itself is much
# bytes that the posteriors of one block may hold, with half of what they share
BLOCK_MEMORY = 2**29
CELL_MEMORY = 2**32  # and those of one cell

TASK_SECONDS = 30.0  # of work per task: what a lost machine takes with it
MIN_PIECE_SECONDS = 1.0  # of a piece at the end of a sweep
# pieces per worker into which what is left would be cut, so that the last ones end together
PIECES_PER_WORKER = 2
# seconds that a task of unknown pace may take; a longer one is returned soon (see `Task`)
RETURN_AFTER = 300.0
# Seeds in lock step share what a round costs Python, whatever their number: on finite sets a round
# of 100 seeds takes twice as long as one of a single seed. Pieces are no smaller than that they
# cost so many times as much CPU time.
# seconds per round, measured on finite sets and on boxes
SHARED_ROUND = {True: 8e-5, False: 1.5e-3}
MAX_COST_RATIO = 1.25


Measured = tuple[Pair, float, int]  # seconds that its cells took in all, and their seed-rounds


def block_size(
    pairs: int, seeds: int, cpus: int, least: int = MIN_BLOCK, horizon: int = BLOCK_ROUNDS
) -> int:
    """Seeds per task: as many as 100 (they share Python's cost per call), fewer where workers would
    stand idle.

    Args:
        least: seeds that are worth a task, although workers stand idle; 1 where rounds are slow by
            themselves.
        horizon: T; if it is short, more seeds share a task.
    """
    even_share = math.ceil(pairs * seeds / max(1, cpus))
    largest = max(MAX_BLOCK, min(MOST_SEEDS, BLOCK_ROUNDS // horizon))
    return max(1, min(largest, max(least, even_share), seeds))


def memory_limit(suite: Suite, cpus: int | None) -> int:
    """How many seeds fit into a block.

    Args:
        cpus: of this machine, None where a cluster plays.

    Raises:
        Misuse: one cell alone would need more than `CELL_MEMORY`, or what is wanted more than this
            machine has.
    """
    if cpus is not None:
        refuse_excess(suite.demands, cpus, machine_memory())
    horizon = suite.grid.horizon
    fitting = [
        MOST_SEEDS if isinstance(p.actions, Finite) else MAX_BLOCK_OF_BOXES
        for p in suite.problems.values()
    ]
    recorded = horizon if suite.keep is None else min(horizon, suite.keep)
    for pair in suite.grid.pairs:
        problem = suite.problems[pair.problem.title]
        needed = memory_of(pair, problem, horizon) + 16 * recorded
        if needed > CELL_MEMORY:
            size = f"{needed / 1e9:.0f} GB per cell at T = {horizon:,}"
            if 16 * recorded > needed // 2:
                raise Misuse(
                    f"{pair.label} would need {size} to record all rounds; set record: {{rounds: "
                    "1000}"
                )
            remedy = "fewer actions" if isinstance(problem.actions, Finite) else "set grid"
            raise Misuse(
                f"{pair.label} would need {size}; allowed: {CELL_MEMORY / 1e9:.0f}; lower the "
                f"horizon, or {remedy}"
            )
        shared = choice.shared_memory(problem.actions)
        total = needed + shared
        if cpus is not None and total > machine_memory():
            size = f"{total / 1e9:.1f} GB; this machine has {machine_memory() / 1e9:.1f}"
            raise Misuse(
                f"{pair.label} would need {size}; lower the horizon, or play on a larger machine"
            )
        fitting.append(max(1, (BLOCK_MEMORY - min(shared, BLOCK_MEMORY // 2)) // max(1, needed)))
    return min(fitting)


def machine_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def cells_to_play(
    grid: Grid, published: PublishedCells, replay: Collection[str]
) -> tuple[list[PairCells], list[NDArray[np.int64]] | None, int]:
    """What of a grid is still to be played.

    Args:
        published: what is published.
        replay: "failed" and "stale" cells are played again.

    Returns:
        The cells by pair; (n,) how often those of each pair were played before, or None where
        nothing is published; how many of the others are stale.
    """
    if not len(published):
        return list(grid.cells.by_pair), None, 0
    freshness = Freshness()
    by_pair, attempts, stale = [], [], 0
    for pair_cells in grid.cells.by_pair:
        rows = published.find(pair_cells.ids)
        is_published = rows != NO_POSITION
        is_stale = is_published & published.has_origin(
            rows, partial(freshness.stale, pair_cells.pair)
        )
        is_replayed = (published.failed[rows] & ("failed" in replay)) | (
            is_stale & ("stale" in replay)
        )
        is_waiting = ~is_published | is_replayed
        stale += int((is_stale & ~is_waiting).sum())
        by_pair.append(pair_cells.only(is_waiting))
        attempts.append(np.where(is_published, published.attempt[rows], 0)[is_waiting])
    return by_pair, attempts, stale


def measure_cells(grid: Grid, published: PublishedCells) -> list[Measured]:
    """What the published cells of each pair took.

    Args:
        published: read with the column `seconds`.
    """
    result = []
    # Arrow's own conversion would import pandas
    of_rows = np.array(published.table["seconds"].to_pylist(), dtype=np.float64)
    for pair_cells in grid.cells.by_pair if len(published) else ():
        rows = published.find(pair_cells.ids)
        seconds = of_rows[rows[rows != NO_POSITION]]
        seconds = seconds[~np.isnan(seconds)]
        if len(seconds):
            result.append(
                (pair_cells.pair, sum(seconds.tolist()), len(seconds) * pair_cells.horizon)
            )
    return result


@dataclass(frozen=True)
class TaskRules:
    """What a suite asks of all its tasks.

    Attributes:
        keep: how many rounds are recorded, None for all.
        timeout: seconds that a cell may take, None where the suite does not say.
        demands: what a task takes of a machine, by the algorithm's title.
    """

    keep: int | None = None
    timeout: float | None = None
    demands: Mapping[str, Demand] = field(default_factory=dict)


class Tasks(Sequence[Task]):
    """Tasks that play some cells, each made when it is asked for: a million cells take the memory
    of their seeds.

    Args:
        by_pair: the cells to play, pair by pair.
        block: seeds per task.
        rules: of all tasks.
        attempts: (n,) how often each cell of a pair was played before; None: never.
        together: cells per task, where pairs may play in one block (see `block_key`); at least
            those of a pair.

    Attributes:
        by_pair: the pairs with cells, each in the order of play.
        attempts: of each pair, as given.
        sources: hash of the code by the names of problem and algorithm.
    """

    def __init__(
        self,
        by_pair: Iterable[PairCells],
        block: int,
        rules: TaskRules = TaskRules(),
        attempts: Iterable[NDArray[np.int64]] | None = None,
        together: int = 1,
    ) -> None:
        self.block, self.rules, self.together = block, rules, together
        self.by_pair: list[PairCells] = []
        self.attempts: list[NDArray[np.int64] | None] = []
        cuts: list[NDArray[np.int64]] = []
        groups: dict[Hashable, int] = {}
        listed = [pair_cells for pair_cells in by_pair if len(pair_cells)]
        earlier_attempts = (
            [None] * len(listed)
            if attempts is None
            else [counts for counts in attempts if len(counts)]
        )
        for pair_cells, played in zip(listed, earlier_attempts, strict=True):
            block_numbers = np.asarray(pair_cells.seeds, dtype=np.int64) // block
            order = np.argsort(block_numbers, kind="stable")
            first = np.flatnonzero(np.diff(block_numbers[order], prepend=-1))
            ends = np.append(first[1:], len(order))
            pair_index = np.full(len(first), len(self.by_pair))
            group = groups.setdefault(self._group_key(pair_cells), len(groups))
            groups_of_cuts = np.full_like(pair_index, group)
            cuts.append(
                np.stack([block_numbers[order][first], groups_of_cuts, pair_index, first, ends])
            )
            self.by_pair.append(pair_cells.only(order))
            self.attempts.append(None if played is None else played[order])
        sorted_cuts = np.concatenate(cuts, axis=1) if cuts else np.empty((5, 0), dtype=np.int64)
        # Blocks of seeds first, then groups, then pairs: a stopped sweep is balanced over the
        # pairs.
        sorted_cuts = sorted_cuts[:, np.lexsort((sorted_cuts[2], sorted_cuts[1], sorted_cuts[0]))]
        self._cuts = sorted_cuts[2:]
        self._starts = self._first_cuts(sorted_cuts)
        self.sources: dict[tuple[str, str], str] = {}
        for pair in (pair_cells.pair for pair_cells in self.by_pair):
            names = pair.problem.name, pair.algorithm.name
            if names not in self.sources:
                refuse_edits(*names)
                self.sources[names] = source_hash(*names)
        self.libraries = {algorithm: libraries(algorithm) for _, algorithm in self.sources}

    def _group_key(self, pair_cells: PairCells) -> Hashable:
        """What pairs have in common that may play in one block."""
        pair = pair_cells.pair
        if self.together == 1:
            return pair.title, pair_cells.horizon
        return (
            pair_cells.horizon,
            self.rules.demands.get(pair.algorithm.title, ONE),
            *block_key(pair),
        )

    def _first_cuts(self, cuts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where each task begins among the sorted cuts, and their number at the end."""
        sizes, starts, cells = cuts[4] - cuts[3], np.ones(cuts.shape[1] + 1, dtype=bool), 0
        starts[1:-1] = (np.diff(cuts[:2], axis=1) != 0).any(axis=0)
        # of an array: a list of a million is large
        for i, size in enumerate(sizes) if self.together > 1 else ():
            starts[i] |= cells + size > self.together
            cells = size if starts[i] else cells + size
        return np.flatnonzero(starts)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        return self._task(self._cuts[:, self._starts[index] : self._starts[index + 1]])

    def _task(self, cuts: NDArray[np.int64]) -> Task:
        cells: list[Cell] = []
        attempt = 1
        for pair_index, first, end in cuts.T.tolist():
            pair_cells, attempts = self.by_pair[pair_index], self.attempts[pair_index]
            cells += [pair_cells.cell(i) for i in range(first, end)]
            attempt = (
                attempt if attempts is None else max(attempt, 1 + int(attempts[first:end].max()))
            )
        pair = pair_cells.pair
        code_and_libraries = (
            self.sources[pair.problem.name, pair.algorithm.name],
            self.libraries[pair.algorithm.name],
        )
        demand = self.rules.demands.get(pair.algorithm.title, ONE)
        keep, timeout = self.rules.keep, self.rules.timeout
        return Task(tuple(cells), keep, *code_and_libraries, attempt, timeout, demand=demand)

    def of_pairs(self) -> list[Task]:
        """The tasks with the first cells of every pair, each once."""
        _, first = np.unique(self._cuts[0], return_index=True)
        return [
            self[i]
            for i in np.unique(np.searchsorted(self._starts, first, side="right") - 1).tolist()
        ]

    def without(self, published: PublishedCells) -> Tasks:
        """Those of the cells that are not published yet, at least not of this attempt."""
        by_pair, attempts = [], []
        for pair_cells, played in zip(self.by_pair, self.attempts, strict=True):
            rows = published.find(pair_cells.ids)
            before = np.zeros(len(pair_cells), dtype=np.int64) if played is None else played
            is_waiting = (rows == NO_POSITION) | (published.attempt[rows] <= before)
            by_pair.append(pair_cells.only(is_waiting))
            attempts.append(before[is_waiting])
        return Tasks(by_pair, self.block, self.rules, attempts, self.together)

    @property
    def rounds(self) -> int:
        """Seed-rounds of all tasks."""
        pair_index, first, end = self._cuts
        horizons = np.array([pair_cells.horizon for pair_cells in self.by_pair], dtype=np.int64)
        return int(((end - first) * horizons[pair_index]).sum())

    @property
    def cells(self) -> Cells:
        """Every cell of the plan."""
        return Cells(tuple(self.by_pair))


class Pace:
    """Seconds per seed-round of pairs, or else of what shares the names of their problem and
    algorithm.

    Args:
        problems: the suite's prepared problems, by title.
        measured: what cells that were published before took.
    """

    def __init__(self, problems: Mapping[str, Problem], measured: Iterable[Measured] = ()) -> None:
        self.finite = {
            title: isinstance(problem.actions, Finite) for title, problem in problems.items()
        }
        self.sums: dict[tuple[str, ...], list[float]] = {}
        for pair, seconds, rounds in measured:
            self._add(pair, seconds, rounds)

    def learn(self, task: Task, seconds: float, rounds: int) -> None:
        """Seconds that some seed-rounds of a task have taken."""
        shared = self._shared_seconds(task) * rounds / len(task.cells)
        self._add(task.pair, max(0.0, seconds - shared), rounds)

    def expected(self, task: Task) -> float | None:
        """Seconds that a task will take; None where nothing like it has ended."""
        per_round = self._seconds_per_round(task.pair)
        return (
            None
            if per_round is None
            else task.horizon * (self._shared_seconds(task) + per_round * len(task.cells))
        )

    def total(self, tasks: Tasks) -> float | None:
        """Seconds of work that all tasks take; None where of any pair nothing is known."""
        work = 0.0
        for pair_cells in tasks.by_pair:
            per_round = self._seconds_per_round(pair_cells.pair)
            if per_round is None:
                return None
            work += per_round * pair_cells.horizon * len(pair_cells)
        return work

    def pieces(self, task: Task, slots: int, waiting: int) -> list[Task]:
        """A task as it is to be played: whole, or in pieces of `TASK_SECONDS`, shorter ones when a
        sweep ends.

        Args:
            slots: how many tasks are played at a time.
            waiting: seed-rounds that are not yet handed out, this task's among them.
        """
        seconds, cells = self.expected(task), len(task.cells)
        if cells == 1:
            return [task]
        if seconds is None:
            return [replace(task, return_after=RETURN_AFTER)]
        piece_seconds = TASK_SECONDS
        if slots > 1:
            left = max(1.0, waiting / task.rounds) * seconds  # as if all were like this one
            piece_seconds = min(
                TASK_SECONDS, max(MIN_PIECE_SECONDS, left / (PIECES_PER_WORKER * slots))
            )
        count = max(
            1, min(math.ceil(seconds / piece_seconds), int(cells / self._least(task)), cells)
        )
        ends = [cells * i // count for i in range(count + 1)]
        return [replace(task, cells=task.cells[a:b], return_after=None) for a, b in pairwise(ends)]

    def _least(self, task: Task) -> float:
        """Cells of the smallest piece of a task that costs no more than `MAX_COST_RATIO` allows."""
        # A round of k cells takes s + k p seconds, of which s is shared: s / k + p per cell. In
        # pieces of k of n cells
        # a cell may take r times as much: s / k + p <= r (s / n + p), so k >= s / (r s / n + (r -
        # 1) p).
        per_round, shared = self._seconds_per_round(task.pair) or 0.0, self._shared_seconds(task)
        return shared / (
            MAX_COST_RATIO * shared / len(task.cells) + (MAX_COST_RATIO - 1) * per_round
        )

    def _add(self, pair: Pair, seconds: float, rounds: int) -> None:
        for key in _keys(pair):
            totals = self.sums.setdefault(key, [0.0, 0.0])
            totals[0] += seconds
            totals[1] += rounds

    def _seconds_per_round(self, pair: Pair) -> float | None:
        """Seconds of a seed-round without what its block shares; None where nothing like it has
        ended.
        """
        for key in _keys(pair):
            if key in self.sums:
                seconds, rounds = self.sums[key]
                return seconds / rounds
        return None

    def _shared_seconds(self, task: Task) -> float:
        return SHARED_ROUND[self.finite[task.pair.problem.title]]


def _keys(pair: Pair) -> tuple[tuple[str, ...], ...]:
    return pair.key, ("names", pair.problem.name, pair.algorithm.name)
