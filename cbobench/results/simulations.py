"""Results of simulations that took long, kept in `simulations/` of a run, so that no call is paid
for twice. Where several workers ask for one, one of them runs it, and the others wait (see
`cbobench.results.running`).

A cell that is played again meets the same points with the same random numbers, so what is kept is
what it would get. One small JSON file holds one simulation; its name is a hash of the problem's
code and parameters, point and random numbers. Results of other code are never used. A digest covers
name and content; a file whose digest is wrong, or which has none (older versions wrote none), is
simulated again.

Failures are not kept, because their cause may pass. Those of a pilot are: the units of the whole
run rest on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any

from cbobench.errors import DamagedRun, Misuse
from cbobench.problems.simulated import SimulationResult
from cbobench.results.folder import RunFolder
from cbobench.results.manifest import CHANGED, DIGEST, content_digest
from cbobench.results.reader import Reader
from cbobench.results.running import RunningSimulations
from cbobench.results.source import problem_hash
from cbobench.words import count_noun

SIMULATIONS_FOLDER = "simulations"
MOST = "simulations"
"""Key of a call in `run.json`: the most simulations that its cells can take, of slow simulators."""
KEYS = {"values", "size", "reason", "seconds"}
MOST_VALUES = 10**6  # of a simulation: f and every g_j
REFRESH = 5.0  # seconds after which it is looked again for what others have simulated


class SimulationStore:
    """The kept simulations of a run.

    Args:
        folder: the run; it need not exist yet.
        buffered: whether results wait in memory for `flush`: nothing is written while a sweep is
            planned, which runs pilots.

    Attributes:
        damaged: names of the files that were asked for and not used.
        on_disk: whether a result is written in milliseconds.
        shared: whether simulations run once where several workers ask for one: on a disk.
    """

    def __init__(self, folder: RunFolder, buffered: bool = False) -> None:
        self.folder, self.buffered = folder, buffered
        self.waiting: dict[str, dict[str, Any]] = {}
        self.damaged: list[str] = []
        self.problem = ""
        self.listed = 0.0
        self.on_disk, self.shared = folder.local, folder.local and not buffered
        self.running = RunningSimulations(Path(folder.path(SIMULATIONS_FOLDER)))

    @cached_property
    def names(self) -> set[str]:
        """The files that are there; looked up again after a result was kept, which is what takes
        long.
        """
        self.listed = monotonic()
        return {*self.folder.calls(SIMULATIONS_FOLDER)}

    def of(self, problem: str) -> SimulationStore:
        """This store, from now on for the simulations of a problem (its registered name)."""
        self.problem = problem
        return self

    def _name(self, key: str) -> str:
        return hashlib.sha256(f"{problem_hash(self.problem)} {key}".encode()).hexdigest()[:32]

    def get(self, key: str) -> SimulationResult | None:
        """Return a kept result. A damaged file counts as none, and is replaced."""
        name = self._name(key)
        if name in self.waiting:
            return SimulationResult.from_json(self.waiting[name])
        return self._read(name) if name in self.names else None

    def _read(self, name: str) -> SimulationResult | None:
        try:
            return read_simulation(self.folder, name)[0]
        except Misuse:  # removed meanwhile
            return None
        except DamagedRun:
            if name not in self.damaged:
                self.damaged.append(name)
            return None

    def begin(self, key: str) -> bool:
        """Whether a simulation is to be run here; False if it runs already, here or elsewhere (see
        `wait`).
        """
        return self.running.begin(self._name(key))

    def look(self, key: str) -> SimulationResult | None:
        """As `get`, for what may have been kept a moment ago."""
        return self._read(self._name(key))

    def end(self, key: str) -> None:
        """A simulation that began here is over, kept or not."""
        self.running.end(self._name(key))

    def wait(self, key: str, until: float) -> SimulationResult | None:
        """Wait for a simulation that runs elsewhere, at most until a time (monotonic); None if it
        gave nothing.
        """
        self.running.wait(self._name(key), until)
        return self.look(key)

    def describe_damage(self) -> list[str]:
        """Return a line on the files that are simulated again, or nothing."""
        if not self.damaged:
            return []
        count, first = (
            count_noun(len(self.damaged), "kept simulation"),
            f"{SIMULATIONS_FOLDER}/{self.damaged[0]}.json",
        )
        return [
            f"damaged, and simulated again: {count} (first {first}); cbobench verify names all "
            "that are damaged"
        ]

    def put(self, key: str, result: SimulationResult) -> None:
        """Keep a result, unless it is a failure of a play (see above)."""
        if result.reason and not self.buffered:
            return
        name, content = self._name(key), result.to_json()
        if self.buffered:
            self.waiting[name] = content
        else:
            write_simulation(self.folder, name, content)
        if monotonic() - self.listed > REFRESH:
            self.__dict__.pop("names", None)

    def flush(self, folder: RunFolder, failures: bool = True) -> None:
        """Write what waits into the run, once a call holds its lease; with or without failures."""
        for name, content in self.waiting.items():
            if failures or not content["reason"]:
                write_simulation(folder, name, content)
        self.waiting.clear()


class KeptSimulations:
    """How many simulations a run keeps, of the most that there can be.

    Args:
        folder: the run.
        calls: those of its record, which say the most (`MOST`).
    """

    def __init__(self, folder: Reader, calls: Iterable[Mapping[str, Any]]) -> None:
        self.folder = folder
        stated = [call.get(MOST) for call in calls]
        self.most = max((number for number in stated if type(number) is int), default=0)
        self.counted = 0
        self.count_again_at = 0.0

    @property
    def count(self) -> int:
        """How many are kept, as of some seconds ago; 0 of a run without simulations."""
        if self.most and monotonic() >= self.count_again_at:
            self.counted = len(self.folder.calls(SIMULATIONS_FOLDER))
            self.count_again_at = monotonic() + REFRESH
        return self.counted

    def __str__(self) -> str:
        return f"{self.count:,} of {count_noun(self.most, 'simulation')} kept"


def write_simulation(folder: RunFolder, name: str, content: dict[str, Any]) -> None:
    """Write the file of a simulation, with its digest."""
    folder.write_json(
        f"{SIMULATIONS_FOLDER}/{name}.json", content | {DIGEST: _digest(name, content)}
    )


def read_simulation(folder: RunFolder, name: str) -> tuple[SimulationResult | None, bool]:
    """Return a kept simulation, and whether its file is signed; None for a file of an older
    version, without a digest.

    Raises:
        Misuse: there is no such file.
        DamagedRun: it is not what was written.
    """
    file = f"{SIMULATIONS_FOLDER}/{name}.json"
    content = folder.read_json(file)
    try:
        # The digest first: what was changed may be of any size.
        if content.keys() != KEYS and (
            content.keys() != KEYS | {DIGEST} or content[DIGEST] != _digest(name, content)
        ):
            raise DamagedRun(f"{folder.path(file)} {CHANGED}")
        if type(content["size"]) is not int or not 0 < content["size"] <= MOST_VALUES:
            raise ValueError(f"size is {content['size']}")
        simulation = SimulationResult.from_json(content)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DamagedRun(f"{folder.path(file)} is not what cbobench writes") from error
    return (simulation, True) if DIGEST in content else (None, False)


def _digest(name: str, content: dict[str, Any]) -> str:
    return content_digest(content | {"name": name})
