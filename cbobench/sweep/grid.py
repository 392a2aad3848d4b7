"""From a suite to cells and tasks.

A cell is one (problem, algorithm, horizon, seed); its id is the hash of that, canonically written, so it depends on no
order, machine or worker count. A task is a block of missing cells that share problem and algorithm. Blocks are cut at
fixed seeds and ordered seed-first, so that a stopped sweep is balanced and a resumed one makes the same tasks again.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cbobench.sweep.variants import Suite, Variant, canonical

MAX_BLOCK = 50
MIN_BLOCK = 10


@dataclass(frozen=True)
class Cell:
    """The unit of result, resume and failure."""

    id: str
    problem: str
    algorithm: str
    seed: int
    horizon: int
    spec: str


@dataclass(frozen=True)
class Task:
    """A block of cells for one worker.

    Attributes:
        name: file name of its results, fixed by its cells and attempt.
        problem: index into the suite's problems.
        algorithm: variant to build.
        cells: in the order of their seeds.
        attempt: 1, or more where cells are played again.
    """

    name: str
    problem: int
    algorithm: Variant
    cells: tuple[Cell, ...]
    attempt: int = 1

    @property
    def horizon(self) -> int:
        return self.cells[0].horizon

    @property
    def seeds(self) -> list[int]:
        return [cell.seed for cell in self.cells]

    @property
    def rounds(self) -> int:
        """Seed-rounds to play."""
        return len(self.cells) * self.horizon


def cell(problem: Variant, algorithm: Variant, horizon: int, seed: int) -> Cell:
    """The cell of a grid point."""
    spec = canonical(
        {
            "problem": {"name": problem.name, "values": problem.values},
            "algorithm": {"name": algorithm.name, "values": algorithm.values},
            "horizon": horizon,
            "seed": seed,
        }
    )
    digest = hashlib.sha256(spec.encode()).hexdigest()[:16]
    return Cell(digest, problem.title, algorithm.title, seed, horizon, spec)


def cells(suite: Suite, only: str | None = None) -> list[list[Cell]]:
    """All cells, one list per (problem, algorithm) in the suite's order.

    Args:
        only: keep pairs whose "problem/algorithm" titles or names match this glob.
    """
    return [
        [cell(problem, algorithm, suite.horizon, seed) for seed in suite.seeds]
        for problem, _ in suite.problems
        for algorithm in suite.algorithms
        if only is None or _matches(problem, algorithm, only)
    ]


def _matches(problem: Variant, algorithm: Variant, pattern: str) -> bool:
    """Glob with * and ?; other characters are themselves, because titles hold brackets."""
    regex = re.compile("".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern))
    names = [problem.title, algorithm.title, problem.name, algorithm.name, problem.label, algorithm.label]
    return any(regex.fullmatch(name) for name in [*names, f"{problem.title}/{algorithm.title}"])


def block_size(groups: int, seeds: int, cpus: int) -> int:
    """Seeds per task: as many as 50 (they share Python's cost per call), fewer where workers would stand idle."""
    wanted = math.ceil(groups * seeds / max(1, cpus))
    return max(1, min(MAX_BLOCK, max(MIN_BLOCK, wanted), seeds))


def tasks(
    suite: Suite,
    block: int,
    done: Collection[str],
    attempts: Mapping[str, int] | None = None,
    only: str | None = None,
) -> list[Task]:
    """The tasks that play every cell not in `done`.

    Args:
        block: seeds per task.
        done: ids of cells that need not be played.
        attempts: how often each cell was played before.
    """
    played = attempts or {}
    index = {variant.title: i for i, (variant, _) in enumerate(suite.problems)}
    variants = {variant.title: variant for variant in suite.algorithms}
    blocks: dict[tuple[int, int], list[Cell]] = {}
    for order, group in enumerate(cells(suite, only)):
        for one in group:
            if one.id not in done:
                blocks.setdefault((one.seed // block, order), []).append(one)
    result = []
    for _, members in sorted(blocks.items()):
        attempt = 1 + max(played.get(one.id, 0) for one in members)
        first = members[0]
        result.append(
            Task(_name(members, attempt), index[first.problem], variants[first.algorithm], tuple(members), attempt)
        )
    return result


def _name(members: list[Cell], attempt: int) -> str:
    first = members[0]
    digest = hashlib.sha256(canonical([attempt, *[one.id for one in members]]).encode()).hexdigest()[:12]
    words = [re.sub(r"[^\w-]+", "_", part.split("[")[0]).lstrip("_")[:60] for part in (first.problem, first.algorithm)]
    return f"{words[0]}.{words[1]}.{first.seed}-{members[-1].seed}.{digest}"


def split(task: Task) -> list[Task]:
    """The two halves of a task."""
    middle = len(task.cells) // 2
    halves = [list(task.cells[:middle]), list(task.cells[middle:])]
    return [Task(_name(half, task.attempt), task.problem, task.algorithm, tuple(half), task.attempt) for half in halves]
