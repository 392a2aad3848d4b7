"""What a user chooses of a run: which part of a suite is played, where its cells are played, and
when that stops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from cbobench.errors import Misuse, show, unknown
from cbobench.suite.values import parse_amount, parse_whole
from cbobench.suite.yamlio import MAX_CELLS, MAX_CPUS, MAX_HORIZON, MAX_SEEDS

Again = Literal["failed", "stale", "damaged"]
ENGINES = ("ray", "processes", "inline")
UNITS = {"cpus": 1.0, "cpumin": 60.0, "cpuh": 3600.0}


@dataclass(frozen=True)
class Call:
    """A call of `run`, checked where it is made; `command` is its command line, for the record.

    Attributes:
        suite: a file, the name of a shipped suite, or what would be in the file, as a mapping.
        out: run folder (path or URI); `runs/<suite>` by default.
        seeds, horizon: how many seeds and rounds, at least 1, in place of the suite's.
        only: a glob over "problem/algorithm".
        data: folder with the original data sets.
        block: cells per task at most, at least 1; None: chosen.
        again: "failed", "stale", "damaged" or several: also play cells that failed, that other code
            played, or whose files are damaged.
        imports: whether import paths in the suite are allowed.
        cpus: how many workers on this machine, at least 0 (None: one per CPU that this process may
            use; 0: none, this process plays).
        address: of a Ray cluster, instead of this machine.
        engine: "ray", "processes" or "inline"; None: worker processes where there are few tasks,
            else Ray.
        ship: send the cluster this machine's cbobench, and the modules of the user's that the suite
            names.
        fail_fast: stop at the first failed cell.
        budget: begin no further task once those that ended have taken so much CPU time, such as
            "2cpuh".

    Raises:
        Misuse: a value of another kind or out of its range, or choices that exclude each other.
    """

    suite: str | Path | Mapping[str, Any]
    _: KW_ONLY
    out: str | Path | None = None
    seeds: int | None = None
    horizon: int | None = None
    only: str | None = None
    data: Path | None = None
    block: int | None = None
    again: Sequence[Again] = ()
    imports: bool = True
    cpus: int | None = None
    address: str | None = None
    engine: str | None = None
    ship: bool = False
    fail_fast: bool = False
    budget: str | None = None
    command: Sequence[str] = ()

    def __post_init__(self) -> None:
        most = {"seeds": MAX_SEEDS, "horizon": MAX_HORIZON, "cpus": MAX_CPUS, "block": MAX_CELLS}
        for name, limit in most.items():
            count = getattr(self, name)
            if count is not None:
                parse_whole(name, count, 0 if name == "cpus" else 1, limit)
        self._check_engine()
        for word in self.kinds_again:
            if word not in get_args(Again):
                raise unknown("kind of cell to play again", word, get_args(Again))
        parse_budget(self.budget)
        if not isinstance(self.suite, str | Path | Mapping):
            raise Misuse(
                f"{show(self.suite)} is no suite; give a file, the name of a shipped suite, or a "
                "mapping"
            )

    @property
    def kinds_again(self) -> tuple[str, ...]:
        """The kinds of cells to play again, of which `again` may name a single one."""
        if isinstance(self.again, str):
            return (self.again,)
        return tuple(self.again)

    @property
    def plays_inline(self) -> bool:
        """Whether this process plays."""
        return self.cpus == 0 or self.engine == "inline"

    @property
    def budget_seconds(self) -> float:
        """The budget in seconds of CPU time, infinite without one."""
        return parse_budget(self.budget)

    def _check_engine(self) -> None:
        if self.engine not in (None, *ENGINES):
            raise unknown("engine", self.engine, ENGINES)
        if self.cpus == 0 and self.address is not None:
            raise Misuse("--cpus 0 plays in this process, --address on a cluster; give one of them")
        if self.cpus == 0 and self.engine in ("ray", "processes"):
            raise Misuse(
                f"--cpus 0 plays in this process, --engine {self.engine} does not; give one of them"
            )
        if self.address is not None and self.engine in ("processes", "inline"):
            raise Misuse(
                f"--engine {self.engine} plays on this machine, --address on a cluster; give one "
                "of them"
            )
        if self.ship and self.address is None:
            raise Misuse("--ship sends this machine's code to a cluster; give its --address, too")


def parse_budget(text: str | None) -> float:
    """Return the seconds of a budget, such as "2cpuh"; infinity for None.

    Raises:
        Misuse: something else.
    """
    if text is None:
        return math.inf
    return parse_amount("budget", text, UNITS, "2cpuh")
