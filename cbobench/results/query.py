"""Queries of a run: the latest row of each cell, the state of every cell, and rows of rounds by
cell.

A run may have a million cells, so they are columns here, not objects.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.errors import DamagedRun
from cbobench.results.folder import REPAIR, SHARD, FileGone, TruncatedFile, retry_if_gone
from cbobench.results.manifest import NO_POSITION as NO_POSITION
from cbobench.results.manifest import Manifest, locate
from cbobench.results.reader import Reader
from cbobench.results.rounds import cell_codes
from cbobench.results.schema import schema
from cbobench.results.staleness import Freshness, Origin
from cbobench.suite.cells import Cell, Cells, PairCells, as_numbers
from cbobench.words import count_noun

COLUMNS = ["cell", "status", "error", "source", "libraries", "cpu", "arithmetic", "attempt"]


@dataclass(frozen=True, eq=False)
class PublishedCells:
    """The latest attempt of each published cell.

    Attributes:
        ids: (n,) as numbers, ascending.
        rows: (n,) their positions in the table.
        table: every row that was read, superseded ones included.
        task, origin: (rows of the table,) positions in `tasks` and `origins`.
        tasks: names of the files.
        origins: distinct origins.
        failed, attempt: (rows of the table,).
    """

    ids: NDArray[np.uint64]
    rows: NDArray[np.int64]
    table: pa.Table
    task: NDArray[np.int64]
    origin: NDArray[np.int64]
    tasks: list[str]
    origins: list[Origin]
    failed: NDArray[np.bool_]
    attempt: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, ids: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return (k,) the rows of cells, `NO_POSITION` for unpublished ones."""
        return locate(ids, self.ids, self.rows)

    def has_origin(
        self, rows: NDArray[np.int64], holds: Callable[[Origin], bool]
    ) -> NDArray[np.bool_]:
        """Return (k,) whether a condition holds for the origin of some rows."""
        matches = np.array([holds(origin) for origin in self.origins], dtype=bool)
        return matches[self.origin[rows]]

    def cpus(self, rows: NDArray[np.int64]) -> set[str]:
        """Return the known kinds of CPU that played some rows."""
        return {origin.cpu for origin in self._origins_of(rows) if origin.cpu is not None}

    def arithmetic(self, rows: NDArray[np.int64]) -> set[str]:
        """Return the known kinds of arithmetic that played some rows."""
        kinds = {origin.arithmetic for origin in self._origins_of(rows)}
        return {kind for kind in kinds if kind is not None}

    def _origins_of(self, rows: NDArray[np.int64]) -> list[Origin]:
        return [self.origins[i] for i in np.flatnonzero(np.bincount(self.origin[rows])).tolist()]

    def by_task(self, cells: Iterable[str]) -> dict[str, list[str]]:
        """Group published cells by the file that holds them."""
        cell_ids = list(cells)
        cells_by_task: dict[str, list[str]] = {}
        for cell, task in zip(
            cell_ids, self.task[self.find(as_numbers(cell_ids))].tolist(), strict=True
        ):
            cells_by_task.setdefault(self.tasks[task], []).append(cell)
        return cells_by_task


@retry_if_gone
def read_published(folder: Reader, columns: list[str] | None = COLUMNS) -> PublishedCells:
    """Read the latest row of every published cell; a cell that was played twice counts once.

    Cells are listed before rounds, and a task publishes its rounds first. So the rounds of every
    listed cell exist, whatever is published meanwhile. If files disappear because a shard replaces
    them (see `results.compact`), the folder is read again.

    Args:
        columns: to read, including `COLUMNS`; None for all.

    Raises:
        DamagedRun: a file of the run is truncated or foreign, or a task's rounds are missing.
    """
    names = folder.names("cells")
    rounds = folder.names("rounds")
    tables, replaced = _read_tables(folder, names, columns)
    tasks = [*tables]
    # Of tasks that published no cells, broken rounds are no damage: they are played and written
    # again.
    readable_rounds = _find_readable_rounds(folder, {*rounds} - replaced, {*names})
    # Arrow's own way to an empty table would import pandas.
    empty = pa.Table.from_batches([], schema("cells"))
    table = pa.concat_tables(tables.values()) if tables else empty
    task = np.repeat(np.arange(len(tasks)), [len(part) for part in tables.values()])
    ids, origin, origins, attempt, failed = _parse_columns(folder, table)
    lacks_rounds = (
        ~np.array([name in readable_rounds for name in tasks], dtype=bool)[task] & ~failed
    )
    # A cell's latest attempt comes last, and of equal attempts the row that was read first.
    order = np.lexsort((-np.arange(len(ids)), attempt, ids))
    order = order[~lacks_rounds[order]][::-1]
    published_ids, first = np.unique(ids[order], return_index=True)
    published = PublishedCells(
        published_ids, order[first], table, task, origin, tasks, origins, failed, attempt
    )
    for row in np.flatnonzero(lacks_rounds):
        published_row = published.find(ids[row : row + 1])[0]
        # Otherwise it is a late file of a call that died.
        if published_row == NO_POSITION or attempt[row] > attempt[published_row]:
            _refuse_bare(folder, tasks[task[row]])
    return published


def _read_tables(
    folder: Reader, names: list[str], columns: list[str] | None
) -> tuple[dict[str, pa.Table], set[str]]:
    """Return the rows of cells by task, and the names of the tasks that shards have replaced."""
    replaced: set[str] = set()
    tables: dict[str, pa.Table] = {}
    # Shards come first: their footers name the files that need not be read.
    for name in sorted(names, key=lambda name: (not name.startswith(SHARD), name)):
        if name not in replaced:
            footer, tables[name] = folder.read_file("cells", name, columns)
            replaced.update(footer.get("replaces", ()))
    return tables, replaced


def _find_readable_rounds(folder: Reader, rounds: set[str], published_tasks: set[str]) -> set[str]:
    """Return the tasks with whole files of rounds. Raises `TruncatedFile` if those of a published
    task are broken.
    """
    readable = set()
    for name in sorted(rounds):
        try:
            folder.footer("rounds", name)
            readable.add(name)
        except TruncatedFile:
            if name in published_tasks:
                raise
    return readable


def _parse_columns(
    folder: Reader, table: pa.Table
) -> tuple[
    NDArray[np.uint64], NDArray[np.int64], list[Origin], NDArray[np.int64], NDArray[np.bool_]
]:
    """Return ids, positions of origins, origins, attempts, and whether they failed, of the rows of
    cells.

    Raises:
        DamagedRun: they are not what cbobench writes.
    """
    origins: dict[Origin, int] = {}
    try:
        ids = as_numbers(table["cell"].to_pylist())
        row_origins = map(Origin, *(table[name].to_pylist() for name in Origin._fields))
        origin = np.array(
            [origins.setdefault(key, len(origins)) for key in row_origins], dtype=np.int64
        )
        if any(key.source is None or key.libraries is None for key in origins):
            raise ValueError("a cell without the code that played it")
        # Arrow's own conversion would import pandas
        attempt = np.array(table["attempt"].to_pylist(), dtype=np.int64)
        failed = np.array([state != "ok" for state in table["status"].to_pylist()], dtype=bool)
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise DamagedRun(
            f"{folder.path('cells')} holds rows that cbobench did not write; {REPAIR}"
        ) from error
    return ids, origin, [*origins], attempt, failed


def _refuse_bare(folder: Reader, task: str) -> None:
    """Raise `DamagedRun` for a task without rounds, or `FileGone` if its cells have disappeared,
    too.
    """
    if not folder.exists(f"cells/{task}.parquet"):
        raise FileGone(f"cells/{task}.parquet is missing")
    raise DamagedRun(
        f"{folder.path('rounds')}/{task}.parquet is missing, its cells are there; restore it, "
        "or, when nothing "
        f"writes to the run: {REPAIR}"
    )


@dataclass
class Status:
    """Cells of a run by state.

    Attributes:
        stale: done cells played by code that has changed since; of a bundle none are known.
        unchecked: done cells of a run folder whose code cannot be imported here.
        other_libraries: done cells played with other libraries than this machine's.
        cpus, arithmetic: known kinds of CPU, and of arithmetic, that played done cells.
        published: what the states were found by.
    """

    done: Cells
    failed: list[tuple[Cell, str]]
    cpus: set[str]
    arithmetic: set[str]
    stale: Cells
    missing: Cells
    unchecked: Cells
    other_libraries: Cells
    published: PublishedCells

    def counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in ("done", "failed", "stale", "missing")}


def read_status(folder: Reader) -> tuple[Manifest, Status]:
    """Return the state of every requested cell, from the folder alone."""
    manifest = Manifest.read(folder).of_latest_suite
    published, freshness = read_published(folder), Freshness(folder.is_reduced)
    by_pair: dict[str, list[PairCells]] = {
        name: [] for name in ("done", "stale", "missing", "unchecked", "other_libraries")
    }
    failures: list[tuple[Cell, str]] = []
    cpus: set[str] = set()
    arithmetic: set[str] = set()
    # A pair at a time, as arrays: code and libraries are compared once for each pair and origin.
    for pair_cells in manifest.cells.by_pair:
        rows = published.find(pair_cells.ids)
        is_published = rows != NO_POSITION
        failed = is_published & published.failed[rows] if len(published) else is_published
        is_done = is_published & ~failed
        states = {"missing": ~is_published, "done": is_done}
        if is_done.any():
            states["stale"] = is_done & published.has_origin(
                rows, partial(freshness.stale, pair_cells.pair)
            )
            states["unchecked"] = is_done & freshness.unknown(pair_cells.pair)
            states["other_libraries"] = is_done & published.has_origin(
                rows, freshness.other_libraries
            )
            cpus |= published.cpus(rows[is_done])
            arithmetic |= published.arithmetic(rows[is_done])
        for name, mask in states.items():
            if mask.any():
                by_pair[name].append(pair_cells if mask.all() else pair_cells.only(mask))
        failures += [
            (pair_cells.cell(i), published.table["error"][rows[i]].as_py() or "")
            for i in np.flatnonzero(failed).tolist()
        ]
    cells = {name: Cells(tuple(parts)) for name, parts in by_pair.items()}
    status = Status(failed=failures, cpus=cpus, arithmetic=arithmetic, published=published, **cells)
    return manifest, status


def count_rounds_since(
    folder: Reader, manifest: Manifest, published: PublishedCells, since: float
) -> int:
    """Return the seed-rounds of the cells that were published after a time.

    Args:
        since: in seconds, by the clock of the folder.
    """
    listing = folder.listing("cells")
    written = [listing.get(f"{task}.parquet") for task in published.tasks]
    is_recent = np.array(
        [info is not None and (info.mtime_ns or 0) / 1e9 > since for info in written], dtype=bool
    )
    rounds = 0
    for pair_cells in manifest.cells.by_pair:
        rows = published.find(pair_cells.ids)
        tasks = published.task[rows[rows != NO_POSITION]]
        rounds += pair_cells.horizon * int(is_recent[tasks].sum())
    return rounds


SHOWN = 5
LONGEST = 80
_CELL = re.compile(r".*? seed \d+: (?:round \d+: )*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class FailureCounts:
    """Counts errors by kind, ignoring the cell, the round and other numbers, so that thousands of
    equal failures are one line.
    """

    def __init__(self, errors: Iterable[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        for error in errors:
            self.add(error)

    def add(self, error: str) -> None:
        """Count a line such as "rkhs-1d / random seed 3: round 7: ValueError: no"."""
        kind = _NUMBER.sub("#", _CELL.sub("", error, count=1))
        self.counts[kind] += 1
        self.first.setdefault(kind, error)

    @property
    def total(self) -> int:
        return self.counts.total()

    def __str__(self) -> str:
        """Return the total and the commonest kinds: "12 failed: 10 x ValueError: no, 2 x timed
        out".
        """
        kinds = []
        for kind, count in self.counts.most_common(SHOWN):
            text = _CELL.sub("", self.first[kind], count=1)
            text = text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
            kinds.append(f"{count:,} x {text}")
        remaining = len(self.counts) - len(kinds)
        remainder = [count_noun(remaining, "other kind")] if remaining else []
        return f"{self.total:,} failed: {', '.join([*kinds, *remainder])}"

    def examples(self) -> list[str]:
        """Return the first failure of each of the commonest kinds."""
        return [self.first[kind] for kind, _ in self.counts.most_common(SHOWN)]


def sort_by_cell(table: pa.Table, order: dict[str, int]) -> list[tuple[int, pa.Table]]:
    """Yield the rows of a table sorted by the cells' order and t, split where other tasks' cells
    may lie between.
    """
    ranks = cell_positions(table, order)
    index = np.lexsort((table["t"].to_numpy(), ranks))
    table, ranks = table.take(pa.array(index)), ranks[index]
    cuts = np.flatnonzero(np.diff(ranks) > 1) + 1
    bounds = [0, *cuts.tolist(), len(ranks)]
    return [(int(ranks[a]), table.slice(a, b - a)) for a, b in itertools.pairwise(bounds) if b > a]


def cell_positions(table: pa.Table, positions: dict[str, int]) -> NDArray[np.int64]:
    """Return (rows,) the positions of the rows' cells, `NO_POSITION` for unknown cells."""
    codes = cell_codes(table)
    position_by_code = np.array(
        [positions.get(cell, NO_POSITION) for cell in codes.dictionary.to_pylist()], dtype=np.int64
    )
    return position_by_code[codes.indices.to_numpy()]
