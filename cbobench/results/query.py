"""The latest row of each published cell, and where its rounds are.

A run may have a million cells, so they are columns here, not objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.errors import DamagedRun
from cbobench.results.folder import REPAIR, SHARD, FileGone, RunFolder, TruncatedFile, retry_if_gone
from cbobench.results.rounds import cell_codes
from cbobench.results.schema import IMPROVED, schema
from cbobench.results.source import Origin
from cbobench.suite.cells import NO_POSITION as NO_POSITION
from cbobench.suite.cells import as_numbers, locate

COLUMNS = ["cell", "status", "error", "source", "libraries", "cpu", "arithmetic", "attempt"]


class PublishedTask(NamedTuple):
    """The files of a task, or of several that were merged."""

    folder: RunFolder
    name: str

    def rounds(
        self, columns: list[str] | None = None, cells: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rounds of some cells, or of all (see `RunFolder.row_groups`)."""
        yield from self.folder.row_groups("rounds", self.name, columns, cells)

    def improvements(self, cells: Sequence[str]) -> Iterator[pa.Table]:
        """Yield rounds of some cells with their simple regret: all in which it falls, at least."""
        kind = "improvements" if self.folder.is_thinned else "rounds"
        yield from self.folder.row_groups(kind, self.name, ["cell", "t", IMPROVED], cells)


@dataclass(frozen=True, eq=False)
class PublishedCells:
    """The latest attempt of each published cell, of a run or of several.

    Attributes:
        ids: (n,) as numbers, ascending.
        rows: (n,) their positions in the table.
        table: every row that was read, superseded ones included.
        task, origin: (rows of the table,) positions in `tasks` and `origins`.
        tasks: where the cells' rounds are.
        origins: distinct origins.
        failed, attempt: (rows of the table,).
    """

    ids: NDArray[np.uint64]
    rows: NDArray[np.int64]
    table: pa.Table
    task: NDArray[np.int64]
    origin: NDArray[np.int64]
    tasks: list[PublishedTask]
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

    def list_origins(self, rows: NDArray[np.int64]) -> list[Origin]:
        """Return the distinct origins of some rows."""
        return [self.origins[i] for i in np.flatnonzero(np.bincount(self.origin[rows])).tolist()]

    def by_task(self, cells: Iterable[str]) -> dict[PublishedTask, list[str]]:
        """Group published cells by the files that hold them."""
        cell_ids = list(cells)
        cells_by_task: dict[PublishedTask, list[str]] = {}
        for cell, task in zip(
            cell_ids, self.task[self.find(as_numbers(cell_ids))].tolist(), strict=True
        ):
            cells_by_task.setdefault(self.tasks[task], []).append(cell)
        return cells_by_task


@retry_if_gone
def read_published(
    folder: RunFolder, columns: list[str] | None = COLUMNS, without: Collection[str] = ()
) -> PublishedCells:
    """Read the latest row of every published cell; a cell that was played twice counts once.

    Cells are listed before rounds, and a task publishes its rounds first. So the rounds of every
    listed cell exist, whatever is published meanwhile. If files disappear because they are merged
    (see `results.compact`), the folder is read again.

    Args:
        columns: to read, including `COLUMNS`; None for all.
        without: tasks that are left out, because their files are damaged.

    Raises:
        DamagedRun: a file of the run is truncated or foreign, or a task's rounds are missing.
    """
    names = [name for name in folder.names("cells") if name not in without]
    # What a killed merge leaves is in a shard, too, which counts.
    names.sort(key=lambda name: not name.startswith(SHARD))
    with_rounds = {*folder.names("rounds")} - {*without}
    # What is broken is told of before anything is computed from the others.
    for name in sorted(with_rounds):
        try:
            folder.footer("rounds", name)
        except TruncatedFile:  # of a task that published no cells, it is played again
            if name in names:
                raise

    tables = [folder.read("cells", name, columns) for name in names]
    # Arrow's own way to an empty table would import pandas.
    empty = pa.Table.from_batches([], schema("cells"))
    table = pa.concat_tables(tables or [empty])
    task = np.repeat(np.arange(len(names)), [len(part) for part in tables])
    try:
        ids, origin, origins, attempt, failed = _parse_columns(table)
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise DamagedRun(
            f"{folder.path('cells')} holds rows that cbobench did not write; {REPAIR}"
        ) from error

    lacks_rounds = ~np.array([name in with_rounds for name in names], dtype=bool)[task] & ~failed
    # A cell's latest attempt comes last, and of equal attempts the row that was read first.
    order = np.lexsort((-np.arange(len(ids)), attempt, ids))
    order = order[~lacks_rounds[order]][::-1]
    published_ids, first = np.unique(ids[order], return_index=True)
    rows = order[first]

    for row in np.flatnonzero(lacks_rounds):
        published_row = locate(ids[row : row + 1], published_ids, rows)[0]
        is_late = published_row != NO_POSITION and attempt[row] <= attempt[published_row]
        if is_late:  # a file of a call that died
            continue
        name = names[task[row]]
        # Files that a merge has removed meanwhile are no damage: the folder is read again.
        if not folder.exists(f"cells/{name}.parquet"):
            raise FileGone(f"cells/{name}.parquet is missing")
        raise DamagedRun(
            f"{folder.path(f'rounds/{name}.parquet')} is missing, its cells are there; restore it, "
            f"or: {REPAIR}"
        )
    return PublishedCells(
        ids=published_ids,
        rows=rows,
        table=table,
        task=task,
        origin=origin,
        tasks=[PublishedTask(folder, name) for name in names],
        origins=origins,
        failed=failed,
        attempt=attempt,
    )


def _parse_columns(
    table: pa.Table,
) -> tuple[
    NDArray[np.uint64], NDArray[np.int64], list[Origin], NDArray[np.int64], NDArray[np.bool_]
]:
    """Return ids, positions of origins, origins, attempts, and whether they failed, of the rows of
    cells.

    Raises:
        ValueError, TypeError, ArrowException: they are not what cbobench writes.
    """
    origins: dict[Origin, int] = {}
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
    return ids, origin, [*origins], attempt, failed


def cell_positions(table: pa.Table, positions: dict[str, int]) -> NDArray[np.int64]:
    """Return (rows,) the positions of the rows' cells, `NO_POSITION` for unknown cells."""
    codes = cell_codes(table)
    position_by_code = np.array(
        [positions.get(cell, NO_POSITION) for cell in codes.dictionary.to_pylist()], dtype=np.int64
    )
    return position_by_code[codes.indices.to_numpy()]
