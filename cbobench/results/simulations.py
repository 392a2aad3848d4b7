"""Results of simulations that took long, kept in `simulations/` of a run, so that no call is paid
for twice: neither by a cell that is played again, nor by another method that comes to the same
point with the same random numbers.

One small JSON file holds one simulation; its name is a hash of the problem's code and parameters,
point and random numbers. Results of other code are never used. A digest covers name and content; a
file whose digest is wrong is simulated again. Failures are not kept, because their cause may pass.
"""

from __future__ import annotations

import hashlib
from time import monotonic
from typing import Any

from cbobench.errors import DamagedRun, Misuse
from cbobench.problems.simulators.kept import SimulationResult
from cbobench.results.folder import RunFolder
from cbobench.results.manifest import CHANGED
from cbobench.results.source import source_hash
from cbobench.suite.variants import DIGEST, content_digest
from cbobench.words import count_noun

SIMULATIONS_FOLDER = "simulations"
REFRESH = 5.0  # seconds after which it is looked again for what others have simulated


class SimulationStore:
    """The kept simulations of a problem in a run.

    Args:
        folder: the run.
        problem: registered name of the problem.

    Attributes:
        damaged: names of the files that were asked for and not used.
    """

    def __init__(self, folder: RunFolder, problem: str) -> None:
        self.folder = folder
        self.problem = problem
        self.damaged: list[str] = []
        self.names: set[str] = set()
        self.list_again_at = 0.0

    def get(self, key: str) -> SimulationResult | None:
        """Return a kept result. A damaged file counts as none, and is replaced."""
        name = self._name(key)
        if not self._is_kept(name):
            return None
        try:
            return read_simulation(self.folder, name)
        except Misuse:  # removed meanwhile
            return None
        except DamagedRun:
            if name not in self.damaged:
                self.damaged.append(name)
            return None

    def put(self, key: str, result: SimulationResult) -> None:
        """Keep a result, unless it is a failure."""
        if not result.reason:
            name = self._name(key)
            write_simulation(self.folder, name, result.to_json())
            self.names.add(name)

    def describe_damage(self) -> list[str]:
        """Return a line on the files that are simulated again, or nothing."""
        if not self.damaged:
            return []
        count = count_noun(len(self.damaged), "kept simulation")
        return [
            f"damaged, and simulated again: {count} (first {file_of(self.damaged[0])}); cbobench "
            "verify names all that are damaged"
        ]

    def _name(self, key: str) -> str:
        return hashlib.sha256(f"{source_hash(self.problem)} {key}".encode()).hexdigest()[:32]

    def _is_kept(self, name: str) -> bool:
        """Whether there is a file; of a bucket, which takes long to say, as of some seconds ago."""
        if self.folder.local:
            return self.folder.exists(file_of(name))
        # One listing answers for many files, and others simulate meanwhile.
        if monotonic() >= self.list_again_at:
            self.names = {*self.folder.names(SIMULATIONS_FOLDER, ".json")}
            self.list_again_at = monotonic() + REFRESH
        return name in self.names


def file_of(name: str) -> str:
    """Return the file of a simulation, in the run's folder."""
    return f"{SIMULATIONS_FOLDER}/{name}.json"


def write_simulation(folder: RunFolder, name: str, content: dict[str, Any]) -> None:
    """Write the file of a simulation, with its digest."""
    folder.write_json(file_of(name), content | {DIGEST: _digest(name, content)})


def read_simulation(folder: RunFolder, name: str) -> SimulationResult:
    """Return a kept simulation.

    Raises:
        Misuse: there is no such file.
        DamagedRun: it is not what was written.
    """
    content = folder.read_json(file_of(name))
    place = folder.path(file_of(name))
    try:
        if content[DIGEST] != _digest(name, content):
            raise DamagedRun(f"{place} {CHANGED}")
        return SimulationResult.from_json(content)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DamagedRun(f"{place} is not what cbobench writes") from error


def _digest(name: str, content: dict[str, Any]) -> str:
    return content_digest(content | {"name": name})
