"""What a task of an algorithm takes of a machine, where a suite says so: `resources: {cpus: 2, memory: 8GB}`.

It is no part of what a cell is: a cell that was played with other resources is not played again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbobench.errors import Misuse, show, unknown

UNITS = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
_MEMORY = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(UNITS)})")
MAX_CPUS = 4096


@dataclass(frozen=True)
class Demand:
    """What a task takes.

    Attributes:
        cpus: whole CPUs.
        memory: bytes, 0 where nothing was said.
    """

    cpus: int = 1
    memory: int = 0

    def __str__(self) -> str:
        memory = f" and {self.memory / 1e9:g} GB" if self.memory else ""
        return f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}{memory}"

    def fits(self, cpus: float, memory: float) -> bool:
        """Whether there is as much."""
        return self.cpus <= cpus and self.memory <= memory


ONE = Demand()


def demand(given: Any, where: str) -> Demand:
    """The resources of a suite's entry; `ONE` where it has none.

    Raises:
        Misuse: something else than `{cpus: 2, memory: 8GB}`.
    """
    if given is None:
        return ONE
    if not isinstance(given, Mapping):
        raise Misuse(f"{where}resources is {show(given)}; allowed: {{cpus: a whole number, memory: as in 8GB}}")
    for key in given:
        if key not in ("cpus", "memory"):
            raise unknown("resource", key, ("cpus", "memory"), where=where)
    cpus, memory = given.get("cpus", 1), given.get("memory")
    if not isinstance(cpus, int) or isinstance(cpus, bool) or not 1 <= cpus <= MAX_CPUS:
        raise Misuse(f"{where}cpus is {show(cpus)}; it must be a whole number of at least 1, at most {MAX_CPUS}")
    match = _MEMORY.fullmatch(memory) if isinstance(memory, str) else None
    if memory is not None and (match is None or float(match[1]) == 0):
        units = ", ".join(UNITS)
        raise Misuse(f"{where}memory is {show(memory)}; give a number above 0 with its unit: {units} (as in 8GB)")
    return Demand(cpus, 0 if match is None else int(float(match[1]) * UNITS[match[2]]))


def refuse_excess(demands: Mapping[str, Demand], cpus: int, memory: int) -> None:
    """Raises `Misuse` for an algorithm (by its title) that wants more than a machine has."""
    for title, wanted in demands.items():
        if not wanted.fits(cpus, memory):
            raise Misuse(
                f"{title} wants {wanted} per task; this run has {Demand(cpus, memory)}: lower its resources, raise "
                "--cpus, or play on a larger machine"
            )
