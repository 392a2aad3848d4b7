"""Results of simulations that took long, kept in `simulations/` of a run, so that no call is paid for twice.

A cell that is played again meets the same points with the same random numbers, so what is kept is what it would get.
One small JSON file holds one simulation; its name is a hash of the problem's code and parameters, point and random
numbers. Results of other code are never used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from time import monotonic
from typing import Any

from cbobench.errors import DamagedRun, Misuse
from cbobench.problems.simulated import STORE, Simulation
from cbobench.results.folder import RunFolder
from cbobench.results.source import problem_hash

FOLDER = "simulations"
REFRESH = 5.0  # seconds after which a worker looks for what others have simulated


class SimulationStore:
    """The kept simulations of a run.

    Args:
        folder: the run; it need not exist yet.
        buffered: whether results wait in memory for `flush`: nothing is written while a sweep is planned.
    """

    def __init__(self, folder: RunFolder, buffered: bool = False) -> None:
        self.folder, self.buffered = folder, buffered
        self.waiting: dict[str, dict[str, Any]] = {}
        self.problem = ""
        self.listed = 0.0

    @cached_property
    def names(self) -> set[str]:
        """The files that are there; looked up again after a result was kept, which is what takes long."""
        self.listed = monotonic()
        return {*self.folder.calls(FOLDER)}

    @contextmanager
    def of(self, problem: str) -> Iterator[None]:
        """Keep and replay the simulations of a problem (its registered name) that run inside the block."""
        self.problem = problem
        token = STORE.set(self)
        try:
            yield
        finally:
            STORE.reset(token)

    def _name(self, key: str) -> str:
        return hashlib.sha256(f"{problem_hash(self.problem)} {key}".encode()).hexdigest()[:32]

    def get(self, key: str) -> Simulation | None:
        """Return a kept result. A damaged file counts as none, and is replaced."""
        name = self._name(key)
        content = self.waiting.get(name)
        if content is None and name in self.names:
            try:
                content = self.folder.read_json(f"{FOLDER}/{name}.json")
            except (DamagedRun, Misuse):
                return None
        try:
            return None if content is None else Simulation.from_json(content)
        except (KeyError, TypeError, ValueError):
            return None

    def put(self, key: str, result: Simulation) -> None:
        """Keep a result."""
        self._write(self._name(key), result.to_json())
        if monotonic() - self.listed > REFRESH:
            self.__dict__.pop("names", None)

    def _write(self, name: str, content: dict[str, Any]) -> None:
        if self.buffered:
            self.waiting[name] = content
        else:
            self.folder.write_json(f"{FOLDER}/{name}.json", content)

    def flush(self, folder: RunFolder) -> None:
        """Write what waits into the run, once a call holds its lease."""
        for name, content in self.waiting.items():
            folder.write_json(f"{FOLDER}/{name}.json", content)
        self.waiting.clear()
