"""The identity of what is played: a pair, a cell, and the grid of cells that a suite asks for.

A cell is one (problem, algorithm, horizon, seed); its id is the hash of that, canonically written, so it depends on no
order, machine or worker count. Every part of cbobench names problems and algorithms by the pair of a cell.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from cbobench.errors import show
from cbobench.problems.base import Problem
from cbobench.suite.limits import MAX_CELLS, MAX_HORIZON, MAX_SEED
from cbobench.suite.variants import Variant


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
        """Both titles, for messages."""
        return f"{self.problem.title} / {self.algorithm.title}"

    def spec(self, horizon: int, seed: int | str) -> str:
        """What fixes a cell, as canonical JSON."""
        return f'{{"algorithm":{self.algorithm.key},"horizon":{horizon},"problem":{self.problem.key},"seed":{seed}}}'

    @cached_property
    def key(self) -> tuple[str, str]:
        """Equal for pairs that play the same, however they are spelt."""
        return self.problem.key, self.algorithm.key

    def matches(self, pattern: str | None) -> bool:
        """Whether a glob with * and ? matches the pair or one of its two; brackets are themselves, as titles hold them.

        Args:
            pattern: "problem/algorithm", or one of them, each by title, name or label; None matches all.
        """
        if pattern is None:
            return True
        regex = re.compile("".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern), re.DOTALL)
        p, a = self.problem.words, self.algorithm.words
        words = itertools.chain(p, a, (f"{mine}/{other}" for mine, other in itertools.product(p, a)))
        return any(regex.fullmatch(word) for word in words)


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
        """What fixes the cell, as canonical JSON."""
        return self.pair.spec(self.horizon, self.seed)

    def __str__(self) -> str:
        return f"{self.pair.label} seed {self.seed}"


def _digest(spec: str) -> str:
    return hashlib.sha256(spec.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Grid:
    """A resolved grid: everything needed to name its cells, without prepared problems or code.

    Attributes:
        problems, algorithms: in the order of the suite.
        horizon: T.
        seeds: in order.
        pairs: those that are played, problem by problem.
        command: the command line behind it.
    """

    problems: tuple[Variant, ...]
    algorithms: tuple[Variant, ...]
    horizon: int
    seeds: tuple[int, ...]
    pairs: tuple[Pair, ...]
    command: tuple[str, ...] = ()

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, pair by pair and by seeds within; made when first asked for."""
        return tuple(self._cells())

    def _cells(self) -> Iterator[Cell]:
        for pair in self.pairs:
            for seed in self.seeds:
                yield Cell(pair, self.horizon, seed)

    def covers(self, other: Grid) -> bool:
        """Whether every cell of the other grid is one of this grid's, whatever its problems are called."""
        mine = {pair.key for pair in self.pairs}
        same = self.horizon == other.horizon and set(other.seeds) <= set(self.seeds)
        return same and all(pair.key in mine for pair in other.pairs)

    def to_json(self) -> dict[str, Any]:
        """As `run.json` holds it; pairs by titles."""
        return {
            "problems": [asdict(v) for v in self.problems],
            "algorithms": [asdict(v) for v in self.algorithms],
            "horizon": self.horizon,
            "seeds": list(self.seeds),
            "pairs": [[pair.problem.title, pair.algorithm.title] for pair in self.pairs],
            "command": list(self.command),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Grid:
        """A grid from what `to_json` wrote, whoever may have edited it since.

        Raises:
            KeyError, TypeError, ValueError, RecursionError, Misuse: it is not what `to_json` writes.
        """
        problems = {v.title: v for v in map(_variant, content["problems"])}
        algorithms = {v.title: v for v in map(_variant, content["algorithms"])}
        horizon, seeds, command = (content[name] for name in ("horizon", "seeds", "command"))
        if type(horizon) is not int or not 0 < horizon <= MAX_HORIZON:
            raise ValueError(f"horizon is {show(horizon)}")
        whole = all(type(seed) is int and 0 <= seed <= MAX_SEED for seed in seeds)
        if not whole or not 0 < len({*seeds}) == len(seeds):
            raise ValueError(f"seeds is {show(seeds)}")
        if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
            raise ValueError(f"command is {show(command)}")
        pairs = tuple(Pair(problems[p], algorithms[a]) for p, a in content["pairs"])
        if not 0 < len(pairs) * len(seeds) <= MAX_CELLS:
            raise ValueError(f"{len(pairs)} pairs x {len(seeds)} seeds")
        return cls(tuple(problems.values()), tuple(algorithms.values()), horizon, tuple(seeds), pairs, tuple(command))


def _variant(content: dict[str, Any]) -> Variant:
    """A problem or an algorithm of a stored grid."""
    made = Variant(**content)
    kinds = {"name": str, "label": str, "given": dict, "values": dict, "settings": dict}
    for name, kind in kinds.items():
        if not isinstance(getattr(made, name), kind):
            raise ValueError(f"{name} is {show(getattr(made, name))}")
    made.key, made.title  # noqa: B018 - raise where a value is no JSON
    return made


@dataclass(frozen=True)
class Suite:
    """A validated suite: a grid, and what it takes to play it.

    Attributes:
        name, about: for readers.
        keep: how many rounds are kept (spread evenly), or None for all.
        grid: what is asked for.
        problems: the prepared problems by title.
        audit: whether the theory is audited beside the play, which it does not change.
        timeout: seconds that a cell may take, None where the suite does not say.
    """

    name: str
    about: str
    keep: int | None
    grid: Grid
    problems: dict[str, Problem]
    audit: bool = False
    timeout: float | None = None
