"""What a call of `cbobench.run` chooses: which part of a suite, where its cells are played, and when that stops."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

from cbobench.errors import Misuse
from cbobench.play.task import Receipt

Again = Literal["failed", "stale"]


@dataclass(frozen=True)
class SuiteOptions:
    """What is played.

    Attributes:
        suite: a file, the name of a shipped suite, or what would be in the file, as a mapping.
        out: run folder (path or URI); `runs/<suite>` by default.
        seeds, horizon: how many seeds and rounds, at least 1, in place of the suite's.
        only: a glob over "problem/algorithm".
        data: folder with the original data sets.
        block: seeds per task, at least 1; chosen when a run begins and kept for its life.
        again: "failed", "stale" or both: also play cells that failed, or that other code played.
        imports: whether import paths in the suite are allowed.
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


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where tasks are played.

    Attributes:
        cpus: how many workers on this machine, at least 0 (None: one per CPU that this process may use; 0: none, this
            process plays).
        address: of a Ray cluster, instead of this machine.
        engine: "ray", "processes" or "inline"; None: worker processes where there are few tasks, else Ray.
    """

    cpus: int | None = None
    address: str | None = None
    engine: str | None = None


@dataclass(frozen=True, kw_only=True)
class StopOptions:
    """How it is played and when it stops.

    Attributes:
        ship: send the cluster this machine's cbobench, and the modules of the user's that the suite names.
        fail_fast: stop at the first failed cell.
        budget: begin no further task once those that ended have taken so much CPU time, such as "2cpuh".
        on_receipt, on_note: called with each receipt, and with one line on who plays, or what is lost or overdue.
    """

    ship: bool = False
    fail_fast: bool = False
    budget: str | None = None
    on_receipt: Callable[[Receipt], None] = lambda receipt: None
    on_note: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class RunOptions(StopOptions, EngineOptions, SuiteOptions):
    """What a call of `cbobench.run` chooses."""


UNITS = {"cpus": 1.0, "cpumin": 60.0, "cpuh": 3600.0}
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)(cpus|cpumin|cpuh)")


class Budget:
    """What may be spent, and what was: seconds that tasks took on their CPUs, as their receipts say.

    Args:
        text: such as "2cpuh"; None for no limit.

    Raises:
        Misuse: something else.
    """

    def __init__(self, text: str | None) -> None:
        match = _BUDGET.fullmatch(text) if isinstance(text, str) else None
        if text is not None and (match is None or float(match[1]) == 0):
            raise Misuse(f"budget is {text!r}; give a number above 0 with its unit: {', '.join(UNITS)} (as in 2cpuh)")
        self.limit = math.inf if match is None else float(match[1]) * UNITS[match[2]]
        self.spent = 0.0

    def over(self, receipt: Receipt) -> bool:
        """Account for a task; whether no further one may begin."""
        self.spent += receipt.seconds or 0.0
        return self.spent >= self.limit
