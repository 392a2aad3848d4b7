"""Pairs, cells and the grid of cells that a suite describes.

A cell is one (problem, algorithm, horizon, seed); its id is the hash of that, canonically written,
so it depends on no order, machine or worker count. Every part of cbobench names problems and
algorithms by the pair of a cell.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench import params
from cbobench.errors import show
from cbobench.problems.base import Problem
from cbobench.suite.settings import Demand
from cbobench.suite.values import parse_whole
from cbobench.suite.variants import Variant
from cbobench.suite.yamlio import MAX_CELLS, MAX_HORIZON, MAX_SEED


@dataclass(frozen=True)
class Pair:
    """A problem and the algorithm that plays it."""

    problem: Variant
    algorithm: Variant

    @cached_property
    def title(self) -> str:
        """Both titles, unique within a run: "rkhs-1d[h=0.25]/ckb-ucb"."""
        return f"{self.problem.title}/{self.algorithm.title}"

    @property
    def label(self) -> str:
        """Both labels, for messages."""
        return f"{self.problem.brief} / {self.algorithm.brief}"

    def spec(self, horizon: int, seed: int | str) -> str:
        """Return what identifies a cell, as canonical JSON."""
        parts = f'"algorithm":{self.algorithm.key},"horizon":{horizon}'
        return f'{{{parts},"problem":{self.problem.key},"seed":{seed}}}'

    @cached_property
    def key(self) -> tuple[str, str]:
        """Equal for pairs that play the same, whatever their spelling."""
        return self.problem.key, self.algorithm.key

    def matches(self, pattern: str | None) -> bool:
        """Return whether a glob with * and ? matches; brackets are literal, because titles hold
        them.

        Args:
            pattern: "problem/algorithm", or one of them, each by title, name or label; None matches
                all.
        """
        if pattern is None:
            return True
        glob = pattern.replace("[", "[[]")
        problem_names = self.problem.aliases
        algorithm_names = self.algorithm.aliases
        pair_names = map("/".join, itertools.product(problem_names, algorithm_names))
        return any(
            fnmatchcase(name, glob)
            for name in itertools.chain(problem_names, algorithm_names, pair_names)
        )


@dataclass(frozen=True)
class Cell:
    """The unit of result, resume and failure."""

    pair: Pair
    horizon: int
    seed: int

    @cached_property
    def id(self) -> str:
        """Sixteen hexadecimal digits, computed once."""
        return _digest(self.spec)

    @property
    def spec(self) -> str:
        """What identifies the cell, as canonical JSON."""
        return self.pair.spec(self.horizon, self.seed)

    def __str__(self) -> str:
        return f"{self.pair.label} seed {self.seed}"


def _digest(spec: str) -> str:
    return hashlib.sha256(spec.encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class PairCells:
    """Cells of one pair and horizon.

    Attributes:
        seeds: in order.
    """

    pair: Pair
    horizon: int
    seeds: Sequence[int] | NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.seeds)

    def cell(self, i: int) -> Cell:
        """Return one of them."""
        return Cell(self.pair, self.horizon, int(self.seeds[i]))

    @cached_property
    def ids(self) -> NDArray[np.uint64]:
        """(n,) the cells' ids as numbers (see `as_numbers`); their common part is hashed once."""
        head = hashlib.sha256(self.pair.spec(self.horizon, "")[:-1].encode())
        digests = []
        for seed in self.seeds:
            digest = head.copy()
            digest.update(b"%d}" % seed)
            digests.append(digest.digest()[:8])
        return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)

    def only(self, selection: NDArray[Any]) -> PairCells:
        """Return some of them, by indices or by a mask."""
        seeds = np.asarray(self.seeds, dtype=np.int64)[selection]
        part = replace(self, seeds=seeds)
        # Ids that were hashed already are not hashed again.
        if "ids" in self.__dict__:
            part.__dict__["ids"] = self.ids[selection]
        return part


@dataclass(frozen=True, eq=False)
class Cells(Sequence[Cell]):
    """Cells in order, each made on request, so that a million cells need only the memory of their
    seeds.

    Attributes:
        pair_cells: the cells of each pair.
    """

    by_pair: tuple[PairCells, ...] = ()

    @cached_property
    def _ends(self) -> list[int]:
        return list(itertools.accumulate(len(pair_cells) for pair_cells in self.by_pair))

    def __len__(self) -> int:
        if self.by_pair:
            return self._ends[-1]
        return 0

    def __getitem__(self, index: int) -> Cell:  # type: ignore[override]
        index = range(len(self))[index]
        pair_index = bisect_right(self._ends, index)
        pair_cells = self.by_pair[pair_index]
        return pair_cells.cell(index - self._ends[pair_index] + len(pair_cells))

    def __iter__(self) -> Iterator[Cell]:
        for pair_cells in self.by_pair:
            for i in range(len(pair_cells)):
                yield pair_cells.cell(i)

    @cached_property
    def ids(self) -> NDArray[np.uint64]:
        """(n,) their ids as numbers."""
        return np.concatenate(
            [np.empty(0, np.uint64), *(pair_cells.ids for pair_cells in self.by_pair)]
        )

    def hold_any(self, ids: NDArray[np.uint64]) -> bool:
        """Return whether any of some ids is theirs."""
        return len(ids) > 0 and bool(np.isin(ids, self.ids).any())


def as_numbers(ids: Sequence[str]) -> NDArray[np.uint64]:
    """Return (n,) ids of cells as numbers: sixteen hexadecimal digits are 64 bits. Raises
    `ValueError` otherwise.
    """
    if {*map(len, ids)} - {16}:
        raise ValueError("an id has sixteen digits")
    return np.frombuffer(bytes.fromhex("".join(ids)), ">u8").astype(np.uint64)


def as_words(ids: NDArray[np.uint64]) -> list[str]:
    """Return ids of cells as texts, from their numbers."""
    return [f"{number:016x}" for number in ids.tolist()]


NO_POSITION = -1


def locate(
    ids: NDArray[np.uint64], sorted_ids: NDArray[np.uint64], positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return (k,) the position of each of some ids, of which (n,) are known and sorted;
    `NO_POSITION` for unknown ids.

    Args:
        sorted_ids: (n,) the known ids, ascending.
        positions: (n,) of the known ids.
    """
    if not len(sorted_ids):
        return np.full(len(ids), NO_POSITION)
    at = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.where(sorted_ids[at] == ids, positions[at], NO_POSITION)


@dataclass(frozen=True)
class Grid:
    """A resolved grid: everything needed to name its cells, without prepared problems or code.

    Attributes:
        problems, algorithms: in the order of the suite.
        horizon: T.
        seeds: in order.
        pairs: those that are played, problem by problem.
        command: the command line behind it.
        unplayable: pairs that cannot be played and are left out, with reasons.
    """

    problems: tuple[Variant, ...]
    algorithms: tuple[Variant, ...]
    horizon: int
    seeds: tuple[int, ...]
    pairs: tuple[Pair, ...]
    command: tuple[str, ...] = ()
    unplayable: tuple[tuple[Pair, str], ...] = ()

    @cached_property
    def cells(self) -> Cells:
        """Every cell, sorted by pair, then seed."""
        return Cells(tuple(PairCells(pair, self.horizon, self.seeds) for pair in self.pairs))

    @property
    def named(self) -> list[Pair]:
        """Every pair that it names, played or left out."""
        return [*self.pairs, *(pair for pair, _ in self.unplayable)]

    def covers(self, grid: Grid) -> bool:
        """Return whether this grid holds every cell of another, whatever their spelling."""
        keys = {pair.key for pair in self.pairs}
        same = self.horizon == grid.horizon and set(grid.seeds) <= set(self.seeds)
        return same and all(pair.key in keys for pair in grid.pairs)

    def to_json(self) -> dict[str, Any]:
        """Return its form in `run.json`; pairs by titles."""
        content = {
            "problems": [asdict(v) for v in self.problems],
            "algorithms": [asdict(v) for v in self.algorithms],
            "horizon": self.horizon,
            "seeds": list(self.seeds),
            "pairs": [[pair.problem.title, pair.algorithm.title] for pair in self.pairs],
            "command": list(self.command),
        }
        left_out = [
            [pair.problem.title, pair.algorithm.title, why] for pair, why in self.unplayable
        ]
        return content | ({"unplayable": left_out} if left_out else {})

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Grid:
        """Return a grid from the result of `to_json`, which may have been edited since.

        Raises:
            KeyError, TypeError, ValueError, RecursionError, Misuse: it is not a result of
            `to_json`.
        """
        problems = {v.title: v for v in map(_variant, content["problems"])}
        algorithms = {v.title: v for v in map(_variant, content["algorithms"])}
        horizon, seeds, command = (content[name] for name in ("horizon", "seeds", "command"))
        parse_whole("horizon", horizon, 1, MAX_HORIZON)
        are_numbers = all(type(seed) is int and 0 <= seed <= MAX_SEED for seed in seeds)
        if not are_numbers or not 0 < len({*seeds}) == len(seeds):
            raise ValueError(f"seeds is {show(seeds)}")
        if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
            raise ValueError(f"command is {show(command)}")
        pairs = tuple(Pair(problems[p], algorithms[a]) for p, a in content["pairs"])
        if not 0 < len(pairs) * len(seeds) <= MAX_CELLS:
            raise ValueError(f"{len(pairs)} pairs x {len(seeds)} seeds")
        left_out = [
            (Pair(problems[p], algorithms[a]), str(why))
            for p, a, why in content.get("unplayable", ())
        ]
        variants = tuple(problems.values()), tuple(algorithms.values())
        return cls(*variants, horizon, tuple(seeds), pairs, tuple(command), tuple(left_out))


def _variant(content: dict[str, Any]) -> Variant:
    """Return a problem or an algorithm of a stored grid."""
    variant = Variant(**content)
    params.resolve(Variant, content)  # refuses values of other types
    pairs = variant.inputs or []
    if not all(len(entry) == 2 and isinstance(entry[0], str) for entry in pairs):
        raise ValueError(f"inputs is {show(variant.inputs)}")
    objective = variant.objective or ["", 0.0, 1.0]
    is_typed = [*map(type, objective)] == [str, float, float]
    if not is_typed or not all(map(math.isfinite, objective[1:])):
        raise ValueError(f"objective is {show(variant.objective)}")
    variant.key, variant.title  # noqa: B018 - raise where a value is no JSON
    # no reader may take it for the method or problem of that name
    if variant.borrows_name:
        return replace(variant, label=f"{variant.label} ({variant.title})")
    return variant


@dataclass(frozen=True)
class Suite:
    """A validated suite: a grid, and everything needed to play it.

    Attributes:
        name, about: for readers.
        keep: number of recorded rounds (spread evenly), or None for all.
        grid: the requested cells.
        problems: the prepared problems by title.
        timeout: seconds per cell, None if the suite sets none.
        demands: what a task needs, by the algorithm's title, if that is more than a CPU.
        floor: below which differences count as ties, None where nothing is said.
    """

    name: str
    about: str
    keep: int | None
    grid: Grid
    problems: dict[str, Problem]
    timeout: float | None = None
    demands: Mapping[str, Demand] = field(default_factory=dict)
    floor: float | None = None
