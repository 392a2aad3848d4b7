"""How a grid is cut into tasks: blocks of seeds, their order, and how many seeds fit into memory.

Blocks are cut at fixed seeds and ordered seed-first, so that a stopped sweep is balanced and a resumed one makes the
same tasks again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from cbobench.errors import Misuse
from cbobench.gp.posteriors import choice
from cbobench.play.task import Task
from cbobench.results.source import libraries, refuse_edits, source_hash
from cbobench.suite.cells import Cell, Grid, Suite

MAX_BLOCK = 50
MIN_BLOCK = 10
BLOCK_MEMORY = 2**29  # bytes that the posteriors of one block may hold
CELL_MEMORY = 2**32  # and those of one cell


def block_size(pairs: int, seeds: int, cpus: int) -> int:
    """Seeds per task: as many as 50 (they share Python's cost per call), fewer where workers would stand idle."""
    wanted = math.ceil(pairs * seeds / max(1, cpus))
    return max(1, min(MAX_BLOCK, max(MIN_BLOCK, wanted), seeds))


def memory_limit(suite: Suite) -> int:
    """How many seeds fit into a block.

    Raises:
        Misuse: one cell alone would need more than `CELL_MEMORY`.
    """
    horizon, seeds = suite.grid.horizon, []
    for title, problem in suite.problems.items():
        apart = 1 if "feedback at once" in problem.offers() else 1 + problem.constraints
        needed = choice.memory(problem.actions, horizon, apart)
        if needed > CELL_MEMORY:
            size = f"{needed / 1e9:.0f} GB per cell at T = {horizon:,}"
            raise Misuse(f"{title} would need {size}; allowed: {CELL_MEMORY / 1e9:.0f}; lower the horizon, or set grid")
        seeds.append(max(1, BLOCK_MEMORY // needed))
    return min(seeds)


def tasks(
    grid: Grid,
    block: int,
    keep: int | None,
    done: Collection[str] = (),
    attempts: Mapping[str, int] | None = None,
) -> list[Task]:
    """The tasks that play every cell not in `done`.

    Args:
        block: seeds per task.
        keep: how many rounds are recorded, None for all.
        done: ids of cells that need not be played.
        attempts: how often each cell was played before, by id.
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
        result.append(Task(pair, tuple(members), keep, source, libraries(), attempt))
    return result
