"""How a grid is cut into tasks, and how many cells of a task are handed out at a time.

A task holds cells of a pair, or of pairs that may play in lock step, as many as memory allows and
no worker idles for. When its turn comes, what takes about a minute is handed out of it. Tasks are
ordered seed-first, so that a stopped sweep is balanced. The bits of a cell do not depend on its
task.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.posteriors import choice
from cbobench.play.block import block_key
from cbobench.play.isolation import find_company
from cbobench.play.task import Task
from cbobench.results.query import NO_POSITION, PublishedCells
from cbobench.results.source import Freshness, libraries, refuse_edits, source_hash
from cbobench.suite.cells import Cells, Grid, Pair, PairCells, Suite
from cbobench.suite.prepare import memory_of
from cbobench.suite.settings import ONE, Demand, refuse_excess

# of a task; on finite sets 100 are 10 % faster than 50
MOST_CELLS = 100
MOST_ON_BOXES = 50
# seed-rounds of a task, which may have more cells for them, up to so many: beside tiny cells, what
# a task costs itself is much
SHORT_ROUNDS = 10_000
MOST_SHORT_CELLS = 1000
FEWEST_CELLS = 10  # that are worth a task, although workers idle
# bytes that the posteriors of one block may hold, with half of what they share
BLOCK_MEMORY = 2**29
CELL_MEMORY = 2**32  # and those of one cell


Measured = tuple[Pair, float, int]  # seconds that its cells took in all, and their seed-rounds


def most_cells(suite: Suite, workers: int, cpus: int | None) -> int:
    """How many cells a task may have.

    Args:
        workers: that should not idle.
        cpus: of this machine, None where a cluster plays.

    Raises:
        Misuse: one cell alone would need more than `CELL_MEMORY`, or what is wanted more than this
            machine has.
    """
    if cpus is not None:
        refuse_excess(suite.demands, cpus, machine_memory())
    horizon = suite.grid.horizon
    # Beside a simulation little else counts that cells in lock step share.
    fewest = 1 if any(problem.simulates for problem in suite.problems.values()) else FEWEST_CELLS
    most = max(MOST_CELLS, min(MOST_SHORT_CELLS, SHORT_ROUNDS // horizon))
    most = min(most, max(fewest, math.ceil(len(suite.grid.cells) / workers)))
    for pair in suite.grid.pairs:
        problem = suite.problems[pair.problem.title]
        is_finite = isinstance(problem.actions, Finite)
        recorded = 16 * (horizon if suite.keep is None else min(horizon, suite.keep))
        needed = memory_of(pair, problem, horizon) + recorded
        shared = choice.shared_memory(problem.actions)
        if needed > CELL_MEMORY:
            raise Misuse(
                f"{pair.label} would need {needed / 1e9:.0f} GB per cell at T = {horizon:,}; "
                f"allowed: {CELL_MEMORY / 1e9:.0f}; lower the horizon, or set record: "
                "{rounds: 1000}, or take fewer actions (on a box: set grid)"
            )
        if cpus is not None and needed + shared > machine_memory():
            raise Misuse(
                f"{pair.label} would need {(needed + shared) / 1e9:.1f} GB; this machine has "
                f"{machine_memory() / 1e9:.1f}; lower the horizon, or play on a larger machine"
            )
        fitting = (BLOCK_MEMORY - min(shared, BLOCK_MEMORY // 2)) // max(1, needed)
        most = min(most, max(1, fitting), most if is_finite else MOST_ON_BOXES)
    return most


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
    # In a new folder no code need be compared.
    if not len(published):
        return list(grid.cells.by_pair), None, 0
    freshness = Freshness()
    by_pair = []
    attempts = []
    stale = 0
    for pair_cells in grid.cells.by_pair:
        # An unpublished cell has the row -1: what the last row says of it is not used.
        rows = published.find(pair_cells.ids)
        is_published = rows != NO_POSITION
        is_stale = is_published & published.has_origin(
            rows, partial(freshness.stale, pair_cells.pair)
        )
        is_replayed = (published.failed[rows] & ("failed" in replay)) | (
            is_stale & ("stale" in replay)
        )
        is_waiting = ~is_published | is_replayed

        # Stale cells that stay are only counted, for a note.
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


class Tasks:
    """Tasks that play some cells, each made when it is asked for: a million cells take the memory
    of their order.

    Args:
        by_pair: the cells to play, pair by pair.
        most: cells of a task.
        rules: of all tasks.
        attempts: (n,) how often each cell of a pair was played before; None: never.

    Attributes:
        by_pair: the pairs with cells.
        sources: hash of the code by the names of problem and algorithm.
        companies: whose code else each of these imports.
    """

    def __init__(
        self,
        by_pair: Iterable[PairCells],
        most: int,
        rules: TaskRules = TaskRules(),
        attempts: Sequence[NDArray[np.int64]] | None = None,
    ) -> None:
        self.most = most
        self.rules = rules
        self.by_pair = [pair_cells for pair_cells in by_pair if len(pair_cells)]
        self.attempts = None if attempts is None else np.concatenate([NO_ATTEMPTS, *attempts])
        sizes = [len(pair_cells) for pair_cells in self.by_pair]
        self._ends = np.cumsum(sizes, dtype=np.int64)
        groups: dict[Hashable, int] = {}
        keys = [groups.setdefault(self._group_key(cells), len(groups)) for cells in self.by_pair]
        # The first cells of all pairs come first, and of these those that may play in one block.
        key = np.concatenate([NO_ATTEMPTS, *(np.arange(size) // most for size in sizes)])
        key = key * len(groups) + np.repeat(np.array(keys, dtype=np.int64), sizes)
        self._order = np.argsort(key, kind="stable")
        first = np.flatnonzero(np.diff(key[self._order], prepend=-1))
        ends = np.append(first, len(key))[1:]
        starts = [np.arange(a, b, most) for a, b in zip(first, ends, strict=True)]
        self._starts = np.concatenate([*starts, [len(key)]]).astype(np.int64)
        self.sources: dict[tuple[str, str], str] = {}
        for pair in (pair_cells.pair for pair_cells in self.by_pair):
            names = pair.problem.name, pair.algorithm.name
            if names not in self.sources:
                refuse_edits(*names)
                self.sources[names] = source_hash(*names)
        self.companies = {find_company(*names) for names in self.sources}
        self.libraries = {algorithm: libraries(algorithm) for _, algorithm in self.sources}

    def _group_key(self, pair_cells: PairCells) -> Hashable:
        """What pairs have in common that may play in one block."""
        pair = pair_cells.pair
        demand = self.rules.demands.get(pair.algorithm.title, ONE)
        return pair_cells.horizon, demand, *block_key(pair)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __iter__(self) -> Iterator[Task]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int) -> Task:
        rows = self._order[self._starts[index] : self._starts[index + 1]]
        pairs = np.searchsorted(self._ends, rows, side="right")
        places = (rows - self._ends[pairs]).tolist()  # from the end of the pair's cells
        cells = [
            self.by_pair[pair].cell(place)
            for pair, place in zip(pairs.tolist(), places, strict=True)
        ]
        pair = cells[0].pair
        return Task(
            cells=tuple(cells),
            keep=self.rules.keep,
            source=self.sources[pair.problem.name, pair.algorithm.name],
            libraries=self.libraries[pair.algorithm.name],
            attempt=1 if self.attempts is None else 1 + int(self.attempts[rows].max()),
            timeout=self.rules.timeout,
            demand=self.rules.demands.get(pair.algorithm.title, ONE),
        )

    def without(self, published: PublishedCells) -> Tasks:
        """Those of the cells that are not published yet, at least not of this attempt."""
        ends = self._ends[:-1]
        played = np.zeros(len(self._order), np.int64) if self.attempts is None else self.attempts
        by_pair = []
        attempts = []
        for pair_cells, before in zip(self.by_pair, np.split(played, ends), strict=True):
            rows = published.find(pair_cells.ids)
            is_waiting = (rows == NO_POSITION) | (published.attempt[rows] <= before)
            by_pair.append(pair_cells.only(is_waiting))
            attempts.append(before[is_waiting])
        return Tasks(by_pair, self.most, self.rules, attempts)

    @property
    def rounds(self) -> int:
        """Seed-rounds of all tasks."""
        return sum(len(pair_cells) * pair_cells.horizon for pair_cells in self.by_pair)

    @property
    def cells(self) -> Cells:
        """Every cell of the plan."""
        return Cells(tuple(self.by_pair))


NO_ATTEMPTS = np.empty(0, dtype=np.int64)
