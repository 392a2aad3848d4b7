"""How a grid is cut into tasks: blocks of seeds, their order, and how many seeds fit into memory.

Blocks are cut at fixed seeds and ordered seed-first, so that a stopped sweep is balanced and a resumed one makes the
same tasks again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.posteriors import choice
from cbobench.play.task import Task
from cbobench.results.source import libraries, refuse_edits, source_hash
from cbobench.suite.cells import Cell, Grid, Suite
from cbobench.suite.checks import memory_of

MAX_BLOCK = 100  # 10 % faster per seed-round than 50 on finite sets
MAX_BLOCK_OF_BOXES = 50
MIN_BLOCK = 10
BLOCK_MEMORY = 2**29  # bytes that the posteriors of one block may hold, with half of what they share
CELL_MEMORY = 2**32  # and those of one cell


def block_size(pairs: int, seeds: int, cpus: int) -> int:
    """Seeds per task: as many as 100 (they share Python's cost per call), fewer where workers would stand idle."""
    wanted = math.ceil(pairs * seeds / max(1, cpus))
    return max(1, min(MAX_BLOCK, max(MIN_BLOCK, wanted), seeds))


def memory_limit(suite: Suite, here: bool) -> int:
    """How many seeds fit into a block.

    Args:
        here: whether this machine plays, and not a cluster.

    Raises:
        Misuse: one cell alone would need more than `CELL_MEMORY`, or than this machine has.
    """
    horizon = suite.grid.horizon
    fitting = [MAX_BLOCK if isinstance(p.actions, Finite) else MAX_BLOCK_OF_BOXES for p in suite.problems.values()]
    recorded = horizon if suite.keep is None else min(horizon, suite.keep)
    for pair in suite.grid.pairs:
        problem = suite.problems[pair.problem.title]
        needed = memory_of(pair, problem, horizon) + 16 * recorded
        if needed > CELL_MEMORY:
            size = f"{needed / 1e9:.0f} GB per cell at T = {horizon:,}"
            if 16 * recorded > needed // 2:
                raise Misuse(f"{pair.label} would need {size} to record all rounds; set record: {{rounds: 1000}}")
            less = "fewer actions" if isinstance(problem.actions, Finite) else "set grid"
            raise Misuse(
                f"{pair.label} would need {size}; allowed: {CELL_MEMORY / 1e9:.0f}; lower the horizon, or {less}"
            )
        shared = choice.shared(problem.actions)
        whole = needed + shared
        if here and whole > machine_memory():
            size = f"{whole / 1e9:.1f} GB; this machine has {machine_memory() / 1e9:.1f}"
            raise Misuse(f"{pair.label} would need {size}; lower the horizon, or play on a larger machine")
        fitting.append(max(1, (BLOCK_MEMORY - min(shared, BLOCK_MEMORY // 2)) // max(1, needed)))
    return min(fitting)


def machine_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def tasks(
    grid: Grid,
    block: int,
    keep: int | None,
    done: Collection[str] = (),
    attempts: Mapping[str, int] | None = None,
    audit: bool = False,
    timeout: float | None = None,
) -> list[Task]:
    """The tasks that play every cell not in `done`.

    Args:
        block: seeds per task.
        keep: how many rounds are recorded, None for all.
        done: ids of cells that need not be played.
        attempts: how often each cell was played before, by id.
        audit: whether the theory is audited.
        timeout: seconds that a cell may take, None where the suite does not say.
    """
    played = attempts or {}
    order = {id(pair): position for position, pair in enumerate(grid.pairs)}
    blocks: dict[tuple[int, int], list[Cell]] = {}
    for cell in grid.cells:
        if cell.id not in done:
            blocks.setdefault((cell.seed // block, order[id(cell.pair)]), []).append(cell)
    result = []
    for _, members in sorted(blocks.items()):
        attempt = 1 + max(played.get(cell.id, 0) for cell in members)
        pair = members[0].pair
        names = pair.problem.name, pair.algorithm.name
        refuse_edits(*names)
        source = source_hash(*names)
        result.append(Task(pair, tuple(members), keep, source, libraries(), attempt, audit, timeout))
    return result
