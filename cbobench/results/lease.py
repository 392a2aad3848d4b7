"""Leases: which calls play which cells of a run, and the leftovers of killed calls.

Before its first cell, a call writes a lease file into `drivers/`. It renews the lease with a
heartbeat every few seconds, and removes the file at its end. Calls may share a folder if they play
different cells (jobs of an array, each with its `--only`). A call that would play cells under
another's lease is refused. A lease expires when its process has ended on
this machine, or when heartbeats stop elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from cbobench.errors import CbobenchError, DamagedRun, Misuse, show
from cbobench.results.folder import SHARD, RunFolder
from cbobench.results.manifest import FILE
from cbobench.results.query import NO_POSITION, read_published
from cbobench.results.schema import KINDS
from cbobench.results.store import StoreFailure, machine_id, process_start
from cbobench.suite.cells import Cells, Pair, as_numbers
from cbobench.suite.variants import canonical
from cbobench.suite.yamlio import MAX_SEED
from cbobench.watcher import SILENT, Watcher
from cbobench.words import count_noun

DRIVERS_FOLDER = "drivers"
HEARTBEAT_SECONDS = 10.0  # seconds between two heartbeats
JOIN_TIMEOUT = 10.0  # seconds that an ending call waits for a heartbeat in progress
EXPIRES_AFTER = 150.0  # seconds without a heartbeat after which a lease of another machine expires
LONGEST_TEXT = 1000  # characters of a text in a lease file
VISIBLE_WITHIN = 10.0  # seconds until another machine must see a new file
RUN_ENTRIES = {FILE, *KINDS, DRIVERS_FOLDER, "invocations", "simulations"}
"""What a run folder holds."""
TEMPORARY = re.compile(r"\..+\.([\w-]+)\.(\d+)\.\d+\.tmp")
"""Name of a file that is being written: on which machine, by which process."""

SeedRanges = dict[str, list[list[int]]]
"""Cells as ranges of seeds [first, end) by `pair_id`."""


@dataclass(frozen=True)
class Driver:
    """A playing call, as its lease file describes it."""

    id: str
    host: str
    pid: int
    machine: str
    born: str
    since: str
    holds: bool
    cells: SeedRanges

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (since {self.since})"

    def alive(self, silent_for: float | None) -> bool:
        """Return whether it may still play.

        Args:
            silent_for: seconds since its last heartbeat, by the clock of the folder; None if
                unknown.
        """
        if self.machine == machine_id():
            # Its process id may be in use again, by a process that started later.
            return process_start(self.pid) == self.born
        return silent_for is None or silent_for < EXPIRES_AFTER


def _read_leases(folder: RunFolder) -> list[tuple[Driver, int | None]]:
    """Every call with a lease file, in order, and when it was written, in nanoseconds by the clock
    of the folder; None if unknown.
    """
    leases = []
    for name, info in sorted(folder.listing(DRIVERS_FOLDER).items()):
        if not name.endswith(".json") or name[0] == ".":
            continue
        with suppress(DamagedRun, Misuse):  # removed meanwhile, or not ours
            content = folder.read_json(f"{DRIVERS_FOLDER}/{name}")
            driver = _parse_driver(content | {"id": name.removesuffix(".json")})
            if driver is not None:
                leases.append((driver, info.mtime_ns))
    return leases


def _parse_driver(content: dict[str, Any]) -> Driver | None:
    """What a lease file says of its call; None where something is not as calls write it."""
    try:
        driver = Driver(**{field.name: content[field.name] for field in fields(Driver)})
        texts = (driver.id, driver.host, driver.machine, driver.born, driver.since)
        began = datetime.fromisoformat(driver.since)
        ranges = [seeds for of_pair in driver.cells.values() for seeds in of_pair]
        are_whole = all(type(number) is int for number in (driver.pid, *chain(*ranges)))
        are_seeds = all(0 <= first < end <= MAX_SEED + 1 for first, end in ranges)
        are_texts = all(isinstance(text, str) and len(text) <= LONGEST_TEXT for text in texts)
        is_valid = are_texts and are_whole and are_seeds and 0 <= driver.pid <= MAX_SEED
        return driver if is_valid and began.tzinfo is not None else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def read_drivers(folder: RunFolder, clock: str | None = None) -> list[tuple[Driver, bool]]:
    """Return every call with a lease file, in order, and whether it may still play.

    Args:
        clock: a call whose lease was just written, to read the folder's clock.
    """
    leases = _read_leases(folder)
    # A lease just written has the time of the folder's clock; those of machines may differ.
    times = (written for driver, written in leases if driver.id == clock and written)
    folder_time = next(times, time.time_ns())
    return [
        (driver, driver.alive(written and (folder_time - written) / 1e9))
        for driver, written in leases
    ]


def read_players(folder: RunFolder) -> list[Driver]:
    """Return the calls that may play cells of a run now; one that merges its files holds none."""
    return [driver for driver, alive in read_drivers(folder) if alive and driver.cells]


def new_call_id() -> str:
    """Return a unique id of a call that sorts by time and fits a file name."""
    return (
        f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{machine_id()}-{os.getpid()}-{os.urandom(2).hex()}"
    )


class Lease:
    """The right to play some cells of a run, as a context manager.

    Args:
        folder: the run.
        cells: the cells that this call plays; empty for other work that calls should see.
        watcher: told of expired leases.

    Attributes:
        id: of this call.
        folder: the run, to play into.

    Raises:
        Misuse: another call plays some of the cells, or the folder cannot be written.
        StoreFailure: the folder cannot be written, for a lease without cells.
    """

    def __init__(self, folder: RunFolder, cells: Cells, watcher: Watcher = SILENT) -> None:
        self.id, self.watcher = new_call_id(), watcher
        self._unleased, self.folder = folder, replace(folder, driver=self.id)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        pid, ranges = os.getpid(), _seed_ranges_of(cells)
        self.driver = Driver(
            self.id, platform.node(), pid, machine_id(), process_start(pid), since, False, ranges
        )
        place = Path(folder.uri)
        self._created = [
            path for path in (place, *place.parents) if folder.local and not path.exists()
        ]
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        try:
            _write_lease(self._unleased, self.driver)
        except StoreFailure as error:
            if not self.driver.cells:
                raise
            raise Misuse(f"{str(error).partition(';')[0]}; give another --out") from error
        try:
            self._acquire()
        except BaseException:
            self.folder.remove(_file(self.id))
            raise
        _leases[self.id] = self
        return self

    def _acquire(self) -> None:
        """Acquire the cells once no earlier call asks for any of them.

        Each call writes its request before it reads the others', so that of two calls at least one
        sees the other.
        """
        while True:
            drivers = [
                (d, alive) for d, alive in read_drivers(self.folder, self.id) if d.id != self.id
            ]
            rivals = [
                (d, n)
                for d, alive in drivers
                if alive and (n := _count_common(d.cells, self.driver.cells))
            ]
            for driver, number in rivals:
                # Ids sort by time: of two calls that ask at once, the later one gives up.
                if driver.holds or driver.id < self.id:
                    count = sum(
                        end - first
                        for ranges in self.driver.cells.values()
                        for first, end in ranges
                    )
                    raise Misuse(
                        f"{number:,} of the {count_noun(count, 'cell')} to play in {self.folder} "
                        "are played by "
                        f"{driver} already; wait for it, or end it, or ask for other cells with "
                        "--only"
                    )
            if not rivals:
                break
            # a later call either sees this request and gives up, or holds its lease
            time.sleep(0.05)
        for driver, alive in drivers:
            if not alive:
                self.watcher.note(
                    f"{driver} stopped unexpectedly; what it has published stays, the rest is "
                    "played"
                )
                self.folder.remove(_file(driver.id))
        self.driver = replace(self.driver, holds=True)
        _write_lease(self._unleased, self.driver)
        self.renewed = time.monotonic()

    def send_heartbeat(self) -> None:
        """Renew the lease if it is due. A failed write is tried again later."""
        if time.monotonic() - self.renewed >= HEARTBEAT_SECONDS:
            self.renewed = time.monotonic()
            with suppress(CbobenchError):
                _write_lease(self.folder, self.driver)

    def start_heartbeat_thread(self) -> None:
        """Renew the lease from a thread, for work that neither calls `send_heartbeat` nor forks."""

        def live() -> None:
            while not self._ended.wait(HEARTBEAT_SECONDS):
                self.send_heartbeat()

        self._thread = threading.Thread(target=live, daemon=True)
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        _leases.pop(self.id, None)
        if self._thread is not None:
            self._thread.join(JOIN_TIMEOUT)  # otherwise its heartbeat would bring the file back
        with suppress(CbobenchError):  # the folder may be the reason for the exit
            self.folder.remove(_file(self.id))
        if self._created and kind is not None:
            with suppress(OSError):  # leaves no empty folders after an early failure
                Path(self.folder.path(DRIVERS_FOLDER)).rmdir()
                for directory in self._created:
                    directory.rmdir()


_leases: dict[str, Lease] = {}


def send_heartbeat(folder: RunFolder) -> None:
    """Renew the lease of the call that plays into a folder, if this process holds it."""
    if folder.driver in _leases:
        _leases[folder.driver].send_heartbeat()


def refuse_unshared_folder(folder: RunFolder) -> None:
    """Raise `StoreFailure` if this machine does not see the driver's lease: the folder of that name
    is another one here.
    """
    if not folder.driver or folder.driver in _visible_drivers:
        return
    deadline = time.monotonic() + VISIBLE_WITHIN
    while not folder.exists(_file(folder.driver)):
        if time.monotonic() > deadline:
            raise StoreFailure(
                f"{platform.node()} does not see the driver's folder {folder}: what it played "
                "there would be lost; "
                "give --out on a file system that all machines share, or in a bucket"
            )
        time.sleep(0.5)
    _visible_drivers.add(folder.driver)


_visible_drivers: set[str] = set()


def _file(name: str) -> str:
    return f"{DRIVERS_FOLDER}/{name}.json"


def _write_lease(folder: RunFolder, driver: Driver) -> None:
    folder.write_json(_file(driver.id), vars(driver))


def pair_id(pair: Pair, horizon: int) -> str:
    """Return sixteen digits that identify a pair and a horizon in a lease file."""
    return hashlib.sha256(canonical([*pair.key, horizon]).encode()).hexdigest()[:16]


def _seed_ranges_of(cells: Cells) -> SeedRanges:
    seeds_by_pair: dict[str, list[int]] = {}
    for pair_cells in cells.by_pair:
        key = pair_id(pair_cells.pair, pair_cells.horizon)
        seeds_by_pair.setdefault(key, []).extend(np.asarray(pair_cells.seeds).tolist())
    return {key: _seed_ranges(seeds) for key, seeds in seeds_by_pair.items()}


def _seed_ranges(seeds: list[int]) -> list[list[int]]:
    """Return seeds as ranges [first, end)."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and ranges[-1][1] == seed:
            ranges[-1][1] += 1
        else:
            ranges.append([seed, seed + 1])
    return ranges


def _count_common(left: SeedRanges, right: SeedRanges) -> int:
    """Count the cells that two calls have in common."""
    pairs = ((a, b) for key in {*left} & {*right} for a in left[key] for b in right[key])
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in pairs)


def refuse_foreign_folder(folder: RunFolder) -> None:
    """Raise `Misuse` if a path without run.json is a non-empty folder or no folder."""
    if folder.exists(""):
        raise Misuse(f"{folder} is a file; give a folder for the run")
    # An unfinished run.json is of a call that was killed while it wrote it, or that is about to
    # publish it.
    entries = [name for name in folder.listing("") if not name.startswith(".run.json.")]
    foreign_entries = [name for name in entries if name not in RUN_ENTRIES]
    foreign_files = [
        name
        for kind in KINDS
        for name in folder.listing(kind)
        if not name.endswith((".parquet", ".tmp"))
    ]
    if foreign_entries or foreign_files:
        example = show(min(foreign_entries or foreign_files))
        raise Misuse(
            f"{folder} is not empty and not a run folder: it holds {example}; give another --out"
        )


def find_leftovers(folder: RunFolder, call: str) -> list[Path]:
    """Return temporary files without a writer: of ended processes of this machine, and of others if
    no other call plays.

    Args:
        call: the asking call, which has not begun or is over.
    """
    places = (
        [Path(folder.path(kind)) for kind in ("", *(RUN_ENTRIES - {FILE}))] if folder.local else []
    )
    dead, elsewhere = [], []
    for path in (path for place in places for path in place.glob(".*.tmp")):
        match = TEMPORARY.fullmatch(path.name)
        if match is None or match[1] != machine_id():
            elsewhere += [path] if path.parent.name in KINDS else []
        elif not process_start(int(match[2])):
            dead.append(path)
    # Leases are read after the files, because a call holds one from before its first file until
    # after its last.
    if elsewhere and not any(
        alive for driver, alive in read_drivers(folder, call) if driver.id != call
    ):
        dead += elsewhere
    return dead


def find_orphans(folder: RunFolder) -> list[str]:
    """Return tasks with rounds and without cells: their worker died in between, or is about to
    publish the cells.
    """
    return sorted({*folder.names("rounds")} - {*folder.names("cells")})


def remove_leftovers(folder: RunFolder, call: str, over: bool = False) -> int:
    """Remove leftovers of killed calls; return the number of files.

    Rounds without cells are removed once each of their cells is published by another task with the
    same or a later attempt, because a late writer's cells then do not count (see `read_published`).
    Duplicate tasks stay: each cell counts once, the call that played one looks for it at its end,
    and only a shard redirects readers. A merge (`results.compact`) merges the duplicates.

    Args:
        call: the asking call.
        over: whether everything of this call is published; rounds are only removed then.
    """
    removed = 0
    for path in find_leftovers(folder, call):
        with suppress(OSError):  # the next call tries again
            path.unlink()
            removed += 1
    orphans = [task for task in find_orphans(folder) if not task.startswith(SHARD)] if over else []
    if not orphans:
        return removed
    with suppress(DamagedRun):  # `verify` names damaged files
        published = read_published(folder)
        for task in orphans:
            footer = folder.footer("rounds", task)
            rows = published.find(as_numbers(footer["cells"]))
            if (rows != NO_POSITION).all() and (
                published.attempt[rows] >= footer.get("attempt", 0)
            ).all():
                folder.remove(f"rounds/{task}.parquet")
                removed += 1
    return removed
