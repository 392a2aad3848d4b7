"""Who plays a run: a small file per call in `drivers/`, there from its first cell to its last.

Calls share a folder as long as they play different cells (the jobs of an array, each with its `--only`). A call that
would play what another one is playing is refused, and told who that is. What a dead call has left is recognised, by
its process on the same machine, elsewhere by the age of its file, and taken away. With each sign of life a call says
how far it is.
"""

from __future__ import annotations

import hashlib
import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from cbobench.errors import CbobenchError, DamagedRun, Misuse
from cbobench.results.folder import RunFolder
from cbobench.results.store import StoreFailure, born, machine
from cbobench.suite.cells import Cells, Pair
from cbobench.suite.variants import canonical
from cbobench.words import counted

FOLDER = "drivers"
BEAT = 10.0  # seconds between two signs of life
SOON = 1.0  # seconds until the first one
LEAVING = 10.0  # seconds for which a call that ends waits for a sign of life that is being written
SILENCE = 150.0  # seconds after which a call on another machine is taken for dead
NEWS = "news"  # where its file says how far it is
UNSEEN = 10.0  # seconds that a worker's machine may need to see a file that is new on another

Seeds = dict[str, list[list[int]]]
"""Cells as ranges of seeds [first, end) by a hash of pair and horizon."""


@dataclass(frozen=True)
class Driver:
    """A call that plays, as its file says."""

    id: str
    host: str
    pid: int
    machine: str
    born: str
    since: str
    holds: bool
    cells: Seeds

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (since {self.since})"

    def alive(self, heard: float | None) -> bool:
        """Whether it may still play.

        Args:
            heard: seconds since its last sign of life, by the clock of the folder; None if that is not known.
        """
        if self.machine == machine():
            return born(self.pid) == self.born
        return heard is None or heard < SILENCE


def new_id() -> str:
    """Of a call: sorted by time, unique, fit for a file name."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{machine()}-{os.getpid()}-{os.urandom(2).hex()}"


def drivers(folder: RunFolder, clock: str | None = None) -> list[tuple[Driver, bool]]:
    """Every call that has left its file, in order, and whether it may still play.

    Args:
        clock: a file of `drivers/` that was written just now, whose time is the folder's.
    """
    found = signs(folder)
    now = next((one.written for one in found if one.driver.id == clock and one.written), time.time_ns())
    return [(one.driver, one.driver.alive(one.written and (now - one.written) / 1e9)) for one in found]


class Sign(NamedTuple):
    """The latest sign of life of a call.

    Attributes:
        driver: the call.
        written: when, in nanoseconds by the clock of the folder; None where that is not known.
        news: how far it is, of a call that plays (see `sweep.forecast`); empty before it begins.
    """

    driver: Driver
    written: int | None
    news: dict[str, Any]


def signs(folder: RunFolder) -> list[Sign]:
    """What every call that has left its file last said, in order."""
    listed = {name: info for name, info in folder.listing(FOLDER).items() if name.endswith(".json") and name[0] != "."}
    found = []
    for name, info in sorted(listed.items()):
        with suppress(DamagedRun, Misuse, KeyError):  # gone meanwhile, or nobody's
            content = folder.read_json(f"{FOLDER}/{name}") | {"id": name.removesuffix(".json")}
            driver = Driver(**{field.name: content[field.name] for field in fields(Driver)})
            news = content.get(NEWS)
            found.append(Sign(driver, info.mtime_ns, news if isinstance(news, dict) else {}))
    return found


class Claim:
    """Some cells of a run, from `with` to its end.

    Args:
        folder: the run.
        cells: what this call plays; none where it does something else that others should see.
        note: told in one line of calls that died.

    Attributes:
        id: of this call.
        there: the folder to play into.

    Raises:
        Misuse: another call plays some of them, or the folder cannot be written. StoreFailure: the same, of no cells.
    """

    def __init__(self, folder: RunFolder, cells: Cells, note: Callable[[str], None] = lambda text: None) -> None:
        self.id, self.note = new_id(), note
        self.folder, self.there = folder, replace(folder, driver=self.id)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        self.mine = Driver(
            self.id, platform.node(), os.getpid(), machine(), born(os.getpid()), since, False, _seeds(cells)
        )
        place = Path(folder.uri)
        self._new = [one for one in (place, *place.parents) if folder.local and not one.exists()]
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._news: Callable[[], dict[str, Any]] = dict

    def __enter__(self) -> Self:
        try:
            _write(self.folder, self.mine)
        except StoreFailure as error:
            if not self.mine.cells:
                raise
            raise Misuse(f"{str(error).partition(';')[0]}; give another --out") from error
        try:
            self._take()
        except BaseException:
            self.folder.remove(_file(self.id))
            raise
        _beats[self.id] = self
        return self

    def _take(self) -> None:
        """Hold the cells, once nobody who asks for some of them was first.

        Each call writes that it asks before it looks who else does: of two, one at least sees the other.
        """
        while True:
            others = [(d, alive) for d, alive in drivers(self.folder, self.id) if d.id != self.id]
            rivals = [(d, n) for d, alive in others if alive and (n := _common(d.cells, self.mine.cells))]
            for driver, number in rivals:
                if driver.holds or driver.id < self.id:
                    count = sum(end - first for ranges in self.mine.cells.values() for first, end in ranges)
                    raise Misuse(
                        f"{number:,} of the {counted(count, 'cell')} to play in {self.folder} are played by {driver} "
                        "already; wait for it, or end it, or ask for other cells with --only"
                    )
            if not rivals:
                break
            time.sleep(0.05)  # who asked after us either sees us, and goes, or holds
        for driver, alive in others:
            if not alive:
                self.note(f"{driver} ended without a word; what it has published stays, the rest is played")
                self.folder.remove(_file(driver.id))
        self.mine = replace(self.mine, holds=True)
        _write(self.folder, self.mine)
        self.heard = time.monotonic()

    def tells(self, news: Callable[[], dict[str, Any]]) -> None:
        """Say with each sign of life how far this call is, for the first time soon."""
        self._news, self.heard = news, time.monotonic() - BEAT + SOON

    def beat(self) -> None:
        """Give a sign of life, if it is time for one. A folder that cannot be written now is tried again later."""
        if time.monotonic() - self.heard >= BEAT:
            self.heard = time.monotonic()
            with suppress(CbobenchError):
                _write(self.there, self.mine, self._news())

    def beat_by_itself(self) -> None:
        """Give signs of life from a thread of its own, where nobody calls `beat` (and nobody forks)."""

        def live() -> None:
            while not self._over.wait(BEAT):
                self.beat()

        self._thread = threading.Thread(target=live, daemon=True)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        _beats.pop(self.id, None)
        if self._thread is not None:
            self._thread.join(LEAVING)  # else what it writes brings the file back
        with suppress(CbobenchError):  # the folder may be why we leave
            self.folder.remove(_file(self.id))
        if self._new and kind is not None:
            with suppress(OSError):  # a call that came to nothing leaves nothing
                Path(self.folder.path(FOLDER)).rmdir()
                for made in self._new:
                    made.rmdir()


_beats: dict[str, Claim] = {}


def beat(folder: RunFolder) -> None:
    """A sign of life of the call that plays into a folder, if it is of this process."""
    if folder.driver in _beats:
        _beats[folder.driver].beat()


def refuse_unshared(folder: RunFolder) -> None:
    """Raises `StoreFailure` where the driver's file is not seen: the folder of that name here is another one."""
    if not folder.driver or folder.driver in _seen:
        return
    deadline = time.monotonic() + UNSEEN
    while not folder.exists(_file(folder.driver)):
        if time.monotonic() > deadline:
            raise StoreFailure(
                f"{platform.node()} does not see the driver's folder {folder}: what it played there would be lost; "
                "give --out on a file system that all machines share, or in a bucket"
            )
        time.sleep(0.5)
    _seen.add(folder.driver)


_seen: set[str] = set()


def _file(name: str) -> str:
    return f"{FOLDER}/{name}.json"


def _write(folder: RunFolder, driver: Driver, news: dict[str, Any] | None = None) -> None:
    folder.write_json(_file(driver.id), {**driver.__dict__, NEWS: news or {}})


def mark(pair: Pair, horizon: int) -> str:
    """What stands for the cells of a pair and a horizon in a call's file."""
    return hashlib.sha256(canonical([*pair.key, horizon]).encode()).hexdigest()[:16]


def _seeds(cells: Cells) -> Seeds:
    found: dict[str, list[int]] = {}
    for strip in cells.strips:
        found.setdefault(mark(strip.pair, strip.horizon), []).extend(np.asarray(strip.seeds).tolist())
    return {key: ranges(seeds) for key, seeds in found.items()}


def ranges(seeds: list[int]) -> list[list[int]]:
    """Seeds as [first, end) of those that follow on each other."""
    found: list[list[int]] = []
    for seed in sorted(seeds):
        if found and found[-1][1] == seed:
            found[-1][1] += 1
        else:
            found.append([seed, seed + 1])
    return found


def _common(one: Seeds, other: Seeds) -> int:
    """How many cells two have in common."""
    pairs = ((a, b) for key in {*one} & {*other} for a in one[key] for b in other[key])
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in pairs)
