"""The progress of a run that others play, for `cbobench watch`. It reads the run folder alone and writes nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.errors import Misuse
from cbobench.report.compare import Comparison, tabulate
from cbobench.report.groups import Group, find_groups, group_by_arena, select_seeds
from cbobench.report.load import Run
from cbobench.report.selection import Selection
from cbobench.results.bundle import open_run
from cbobench.results.folder import RunFolder
from cbobench.results.lease import HEARTBEAT_SECONDS, Driver, Heartbeat, pair_id, read_heartbeats, read_players
from cbobench.results.manifest import CALLS, FILE, Manifest
from cbobench.results.query import NO_POSITION, FailureCounts, PublishedCells, read_published
from cbobench.results.store import machine_id

SILENT_SECONDS = 2.5 * HEARTBEAT_SECONDS  # a call is silent after so long without a heartbeat
CONFIRM_SECONDS = 1.5 * HEARTBEAT_SECONDS  # a call elsewhere is dead only after this time by our own clock
COMPARE_SHARE = 0.1  # the largest share of time that comparisons take


class CachedRunFolder(RunFolder):
    """A run folder whose published files are read once: they never change."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder.uri)
        # The base is frozen: it takes no attribute in the usual way.
        self.__dict__["cached"] = {}

    def read_file(self, kind: str, task: str, columns: list[str] | None = None) -> tuple[dict[str, Any], pa.Table]:
        key = kind, task, None if columns is None else tuple(columns)
        cached: dict[Any, Any] = self.__dict__["cached"]
        if key not in cached:
            cached[key] = super().read_file(kind, task, columns)
        return cached[key]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class PairState:
    """Cells of a pair and horizon: asked for, published, and handed out to workers; `rounds` are seed-rounds.

    `best_mean` and `best` are of the rewards of the `seen` cells that have observed a feasible point, as the calls that
    play report them: each cell's highest one observed so far; None where no call reports any.

    A cell that is played again is ok or failed as before until its new row is published; its rounds are yet to be done.
    """

    problem: str
    algorithm: str
    horizon: int
    expected: int
    ok: int
    failed: int
    playing: int
    rounds: int
    seen: int = 0
    best_mean: float | None = None
    best: float | None = None

    @property
    def total(self) -> int:
        """Seed-rounds of all its cells."""
        return self.expected * self.horizon


class DriverState(NamedTuple):
    """A call that has left its file: `alive`, `silent` (longer than it should be: stopped, or cut off) or `dead`."""

    heartbeat: Heartbeat
    state: str
    silence: float

    def __str__(self) -> str:
        who = str(self.heartbeat.driver)
        if self.state == "dead":
            return f"{who} stopped unexpectedly; its last heartbeat was {self.silence:.0f} s ago"
        if self.state == "silent":
            return f"{who} has sent no heartbeat for {self.silence:.0f} s; one is due every {HEARTBEAT_SECONDS:.0f} s"
        return who


@dataclass(frozen=True)
class View:
    """A run at a moment.

    Attributes:
        state: "complete"; "playing"; "silent" (the drivers send no heartbeat); or "idle" (cells are missing, and
            nobody plays).
        orphans: cells that are missing, and that nobody plays.
        rate: seed-rounds per second of all calls over the last minute, where they say it.
        left: seconds until the calls that play are done, and between which they lie; None where that is not known.
        failures: of what, the commonest first.
        comparison: over the seeds that are ok for all methods of their problem; None where there are none.
        seeds: of each problem and horizon, how many these are, of those asked for.
    """

    record: Manifest
    folder: RunFolder
    state: str
    pairs: list[PairState]
    drivers: list[DriverState]
    orphans: int
    rate: float | None
    left: tuple[float, float, float] | None
    failures: FailureCounts
    comparison: Comparison | None
    seeds: list[tuple[str, int, int, int]]

    def sum(self, name: str) -> int:
        """Over all pairs."""
        return sum(getattr(pair, name) for pair in self.pairs)


@dataclass
class Live:
    """Looks at a run again and again; reads what is new.

    Args:
        location: path or URI of the run folder.

    Attributes:
        uncertain: whether a call of the last look may be dead; a look `CONFIRM_SECONDS` later decides it.

    Raises:
        Misuse: not a run folder, or a bundle. DamagedRun: a truncated or foreign file in it, or another schema.
    """

    location: Any
    uncertain: bool = field(default=False, init=False)
    _stamp: Any = None
    _heartbeats: dict[str, tuple[int | None, float, float]] = field(default_factory=dict)
    _compared: tuple[Comparison | None, list[tuple[str, int, int, int]]] = field(default_factory=lambda: (None, []))
    _attempts: int = 0  # a cell that is played again changes the numbers
    _next_comparison: float = 0.0

    def __post_init__(self) -> None:
        self.folder = CachedRunFolder(_open_folder(self.location))
        try:
            self.record = Manifest.read(self.folder)
        except Misuse as error:
            raise Misuse(f"{error}; while a run is being planned, nothing is there yet") from error

    def look(self) -> View:
        """The run as it is now."""
        drivers = self._read_drivers(read_heartbeats(self.folder))  # before the cells: who has ended has published them
        self._read_record()
        published = read_published(self.folder, None)
        pairs, orphans = self._count_pairs(published, [c for c in drivers if c.state != "dead"])
        missing = sum(pair.expected - pair.ok - pair.failed for pair in pairs)
        holding = [c for c in drivers if c.heartbeat.driver.cells and c.state != "dead"]
        alive = [c.heartbeat.progress for c in holding if c.state == "alive"]
        state = "playing" if alive else "silent" if holding else "idle" if missing else "complete"
        return View(
            self.record,
            self.folder,
            state,
            pairs,
            drivers,
            orphans,
            _sum_rates(alive),
            _find_time_left(holding),
            self._tally_failures(published),
            *self._compare(published, state),
        )

    def _read_record(self) -> None:
        """Read `run.json` again where it has changed."""
        info = self.folder.listing("").get(FILE)
        stamp = self.folder.calls(CALLS), None if info is None else (info.mtime_ns, info.size)
        if stamp != self._stamp:
            self.record, self._stamp = Manifest.read(self.folder), stamp

    def _read_drivers(self, heartbeats: list[Heartbeat]) -> list[DriverState]:
        """The calls with a lease: alive by process on this machine, elsewhere by the time since the last heartbeat.

        The folder's clock differs from ours. So the first look alone trusts it; later ones time the changes by our own
        clock. The folder's clock alone never makes a call dead.
        """
        clock, drivers, self.uncertain = time.monotonic(), [], False
        for heartbeat in heartbeats:
            driver = heartbeat.driver
            written, since, first_look = self._heartbeats.get(driver.id, (-1, clock, clock))
            if written == -1:
                since = clock - max(0.0, (time.time_ns() - (heartbeat.written or time.time_ns())) / 1e9)
            elif written != heartbeat.written:
                since = clock
            self._heartbeats[driver.id] = heartbeat.written, since, first_look
            silence = clock - since
            state = "silent" if silence >= SILENT_SECONDS else "alive"
            if not driver.alive(silence):
                uncertain = driver.machine != machine_id() and clock - first_look < CONFIRM_SECONDS
                self.uncertain, state = self.uncertain or uncertain, "silent" if uncertain else "dead"
            drivers.append(DriverState(heartbeat, state, silence))
        return drivers

    def _count_pairs(self, published: PublishedCells, drivers: list[DriverState]) -> tuple[list[PairState], int]:
        labels = self.record.labels("problems"), self.record.labels("algorithms")
        cells_by_pair: dict[str, list[Any]] = {}
        for pair_cells in self.record.cells.by_pair:  # of one pair there are several where several grids ask for it
            cells_by_pair.setdefault(pair_id(pair_cells.pair, pair_cells.horizon), []).append(pair_cells)
        states, orphans = [], 0
        for key, by_pair in cells_by_pair.items():
            pair, horizon = by_pair[-1].pair, by_pair[-1].horizon
            ids = np.concatenate([pair_cells.ids for pair_cells in by_pair])
            rows, is_published, failed = _find_published(published, ids)
            seeds = np.concatenate([np.asarray(pair_cells.seeds, dtype=np.int64) for pair_cells in by_pair])
            held, due, playing, rounds = np.zeros(len(seeds), dtype=bool), ~is_published, 0, 0
            best = _join_best([driver.heartbeat.progress.get("best", {}).get(key) for driver in drivers])
            for driver in drivers:
                for first, end in driver.heartbeat.driver.cells.get(key, ()):
                    held |= (seeds >= first) & (seeds < end)
                for first, end, attempts in driver.heartbeat.progress.get("again", {}).get(key, ()):
                    # A cell that is played again is due until an attempt after those that were there is published.
                    due |= is_published & (seeds >= first) & (seeds < end) & (published.attempt[rows] <= attempts)
                reported = driver.heartbeat.progress.get("playing", {}).get(key, (0, 0))
                playing, rounds = playing + reported[0], rounds + reported[1]
            orphans += int((~is_published & ~held).sum())
            open_count = int(due.sum())  # what has come meanwhile is in both
            playing, rounds = min(playing, open_count), min(rounds, open_count * horizon)
            names = labels[0][pair.problem.title], labels[1][pair.algorithm.title]
            counts = len(seeds), int((is_published & ~failed).sum()), int(failed.sum()), playing
            states.append(
                PairState(
                    *names, horizon, *counts, (len(seeds) - open_count) * horizon + rounds, best[0], best[1], best[2]
                )
            )
        return states, orphans

    def _tally_failures(self, published: PublishedCells) -> FailureCounts:
        tally = FailureCounts()
        for pair_cells in self.record.cells.by_pair if published.failed.any() else ():
            rows, _, failed = _find_published(published, pair_cells.ids)
            for seed, row in zip(np.asarray(pair_cells.seeds)[failed].tolist(), rows[failed].tolist(), strict=True):
                tally.add(f"{pair_cells.pair.label} seed {seed}: {published.table['error'][row].as_py()}")
        return tally

    def _select_complete(self, published: PublishedCells) -> tuple[list[tuple[str, int, int, int]], Selection | None]:
        """Seeds that are ok for every method of a problem, and a selection of their cells at the latest horizon."""
        run = Run.__new__(Run)  # what is published is not read again
        run.folder, run.played, run.record, run.full_record = self.folder, published, self.record, self.record
        seeds, latest = [], dict[str, list[Group]]()
        for groups in group_by_arena(find_groups(run)):
            complete = frozenset.intersection(*(frozenset(group.seeds.tolist()) for group in groups))
            expected = frozenset[int]().union(*(group.expected_seeds for group in groups))
            first = groups[0]
            seeds.append((first.problem_label, first.horizon, len(complete), len(expected)))
            known = latest.get(first.problem)
            if complete and (known is None or known[0].horizon < first.horizon):
                latest[first.problem] = [select_seeds(group, complete) for group in groups]
        if not latest:
            return seeds, None
        selection = Selection(run)
        compared = [group for groups in latest.values() for group in groups]
        # Only the complete seeds are looked at, whatever else the run holds.
        selection.__dict__.update(every_group=compared, groups=compared)
        return seeds, selection

    def _compare(
        self, published: PublishedCells, state: str
    ) -> tuple[Comparison | None, list[tuple[str, int, int, int]]]:
        """The comparison and its seeds: again where more seeds are complete, and not too often."""
        started = time.monotonic()
        if started >= self._next_comparison or state != "playing":
            seeds, selection = self._select_complete(published)
            if seeds != self._compared[1] or self._attempts != published.attempt.sum():
                self._compared = None if selection is None else tabulate(selection), seeds
                self._attempts = int(published.attempt.sum())
            # However long a comparison takes, the pause after it keeps to the share of the time.
            self._next_comparison = time.monotonic() + (time.monotonic() - started) / COMPARE_SHARE
        return self._compared


def find_beginners(location: Any) -> list[Driver]:
    """Return the calls that are about to play into a folder that has no record of a run yet.

    A call says who it is before it starts its workers, and writes the record afterwards: on a cluster, minutes later.

    Raises:
        Misuse: a bundle.
    """
    folder = _open_folder(location)
    return [] if Manifest.exists(folder) else read_players(folder)


def _open_folder(location: Any) -> RunFolder:
    return open_run(location).refuse_bundle("nobody plays a bundle; its state: cbobench status")


def _find_published(
    published: PublishedCells, ids: NDArray[np.uint64]
) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
    """(n,) rows of cells, whether they are published, and whether they failed."""
    rows = published.find(ids)
    is_published = rows != NO_POSITION
    return rows, is_published, is_published & published.failed[rows] if len(published) else is_published


def _join_best(reports: list[list[float] | None]) -> tuple[int, float | None, float | None]:
    """Count, mean and best of what several calls have seen of a pair."""
    known = [report for report in reports if report]
    count = int(sum(report[0] for report in known))
    if not count:
        return 0, None, None
    return count, sum(report[0] * report[1] for report in known) / count, max(report[2] for report in known)


def _sum_rates(alive: list[dict[str, Any]]) -> float | None:
    """Seed-rounds per second of all calls; None unless each of them reports its rate."""
    rates: list[Any] = [progress.get("rate") for progress in alive]
    return None if None in rates or not rates else float(sum(rates))


def _find_time_left(holding: list[DriverState]) -> tuple[float, float, float] | None:
    """When the last call will be done, as heartbeats report it; None unless each of them does."""
    ends: list[list[float]] = []
    for driver in holding:
        progress = driver.heartbeat.progress
        if driver.state != "alive" or progress.get("left") is None:
            return None
        if "total" not in progress or progress["total"] != progress.get("rounds"):  # else it only merges files
            ends.append([max(0.0, float(end) - driver.silence) for end in progress["left"]])
    return tuple(max(column) for column in zip(*ends, strict=True)) if ends else None  # type: ignore[return-value]
