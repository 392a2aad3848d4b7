"""Merges the small files of a large run into few, when the run ends.

A shard holds the rows of several tasks of one horizon, about a million rounds, in the
same kinds of files as a task: `rounds/shard-<hash>` and `cells/...`.

Only the holder of the lock merges. A shard is published whole, its cells last, and read back; only
then are the merged files removed, their cells first. So at every moment each cell is in its task's
file, in a shard, or in both, and counts once (`results.query`). What a killed merge leaves, the
next one and `results.lock` remove. Rows of superseded attempts are dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from cbobench.errors import CbobenchError, DamagedRun
from cbobench.results.folder import SHARD, RunFolder
from cbobench.results.query import COLUMNS, read_published
from cbobench.results.schema import TableWriter, make_footer, rounds_schema, schema
from cbobench.suite.cells import as_words
from cbobench.watcher import Watcher
from cbobench.words import count_noun

ROWS = 1_000_000  # recorded rounds per shard
CELLS = 50_000  # cells per shard, if few rounds are recorded
ROW_GROUP = 250_000  # rows: small row groups read as slowly as small files
MANY = 100  # small files beyond which a run is compacted automatically
KINDS = ("rounds", "cells")  # in order of publication
# what stands for the footer of rounds where no cell of a task was played to its end
NO_ROUNDS: dict[str, Any] = {"rows": 0, "cells": [], "complete": True}


@dataclass
class _SourceFile:
    """A file to merge, smaller than half a shard, and the ids of its latest cells.

    Attributes:
        complete: whether its sums over rewards are derived.
    """

    task: str
    cells: list[str]
    ok_cells: list[str]
    rows: int
    complete: bool


@dataclass
class _Shard:
    """The files that become one shard."""

    members: list[_SourceFile] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        rows = sum(m.rows for m in self.members)
        cells = sum(len(m.cells) for m in self.members)
        return rows >= ROWS or cells >= CELLS


def finish(folder: RunFolder, watcher: Watcher) -> None:
    """Clear up once all is played, for the holder of the lock: remove what is of no cell, and merge
    the files of a large run. A failure to merge is noted and leaves the run as it is.
    """
    remove_orphans(folder)
    try:
        before, after = compact(folder, above=MANY)
    except CbobenchError as error:
        watcher.note(f"its files were not merged ({error}); the run is whole without that")
    else:
        if after < before:
            watcher.note(f"merged {count_noun(before, 'file')} of cells into {after:,}")


def remove_orphans(folder: RunFolder) -> None:
    """Remove rounds without cells: their worker was killed in between.

    Only once all is played: a worker outlives a driver that is killed for a moment, in which it may
    publish the cells.
    """
    folder.remove_tasks({*folder.names("rounds")} - {*folder.names("cells")})


def compact(folder: RunFolder, above: int = 1) -> tuple[int, int]:
    """Merge the small files of a run, for the holder of its lock.

    Args:
        above: do nothing unless there are more small files.

    Returns:
        The number of files of cells before and after.

    Raises:
        DamagedRun: a file is not whole.
        StoreFailure: the run cannot be written.
    """
    before = folder.names("cells")
    if len(before) > above:
        shards = _plan_shards(folder)
        if sum(len(shard.members) for shard in shards) > above:
            for shard in shards:
                _merge(folder, shard)
    return len(before), len(folder.names("cells"))


def _plan_shards(folder: RunFolder) -> list[_Shard]:
    """Group the small files by shard, and remove those whose cells were all played again. A single
    file stays as it is.
    """
    # A file of which no row is the latest of a cell would only be read in vain.
    published = read_published(folder, [*COLUMNS, "horizon"])
    counting = np.unique(published.task[published.rows]).tolist()
    superseded = {*published.tasks} - {published.tasks[i] for i in counting}
    folder.remove_tasks(task.name for task in superseded)

    # The table holds the files one after the other, so that its sorted rows are cut where one ends.
    horizon = np.array(published.table["horizon"].to_pylist(), dtype=np.int64)
    latest_rows = np.sort(published.rows)
    ids = dict(zip(published.rows.tolist(), as_words(published.ids), strict=True))
    cuts = np.searchsorted(published.task[latest_rows], np.arange(1, len(published.tasks)))

    open_shards: dict[int, _Shard] = {}
    shards: list[_Shard] = []
    names = [task.name for task in published.tasks]
    rows_by_task = zip(names, np.split(latest_rows, cuts), strict=True)
    for task, rows in sorted(rows_by_task, key=itemgetter(0)):
        cells = [ids[row] for row in rows.tolist()]
        ok_cells = [ids[row] for row in rows[~published.failed[rows]].tolist()]
        footer = folder.footer("rounds", task) if ok_cells else NO_ROUNDS
        # Half a shard is large enough as it is; a file without cells was removed above.
        if footer["rows"] >= ROWS // 2 or len(cells) >= CELLS // 2 or not cells:
            continue
        of_task = int(horizon[rows[0]])
        shard = open_shards.setdefault(of_task, _Shard())
        # All cells of a file have as many rounds, as tasks and shards are of one horizon.
        count = footer["rows"] * len(ok_cells) // max(1, len(footer["cells"]))
        shard.members.append(
            _SourceFile(
                task=task, cells=cells, ok_cells=ok_cells, rows=count, complete=footer["complete"]
            )
        )
        if shard.is_full:
            shards.append(open_shards.pop(of_task))
    return [shard for shard in (*shards, *open_shards.values()) if len(shard.members) > 1]


def _merge(folder: RunFolder, shard: _Shard) -> None:
    """Publish a shard, read it back, and remove the merged files."""
    names = [member.task for member in shard.members]
    # Named by its members: a merge that is begun anew writes over what a killed one has left.
    name = SHARD + hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    cell_ids = [cell for member in shard.members for cell in member.cells]
    ok_cells = [cell for member in shard.members for cell in member.ok_cells]
    cells = {"rounds": ok_cells, "cells": cell_ids}
    rows = {"rounds": sum(member.rows for member in shard.members), "cells": len(cell_ids)}

    # Cells come last: whoever reads them meanwhile finds their rounds.
    for kind in KINDS:
        metadata = make_footer(kind, name, cells[kind], rows[kind])
        complete = all(member.complete for member in shard.members)
        columns = rounds_schema(complete) if kind == "rounds" else schema(kind)
        cells_of = attrgetter("ok_cells" if kind == "rounds" else "cells")
        # A task whose cells all failed may have no file of rounds.
        parts = (
            part.cast(schema(kind))  # cells are read as codes, and written as text
            for member in shard.members
            if cells_of(member)
            for part in folder.row_groups(kind, member.task, cells=cells_of(member))
        )
        folder.publish(
            f"{kind}/{name}.parquet", partial(_write, columns, metadata, parts, rows[kind])
        )

    for kind in KINDS:
        # Read back before the merged files go: an upload that broke off must not cost them.
        folder.footer(kind, name)
    folder.remove_tasks(names)


def _write(
    columns: pa.Schema,
    metadata: dict[bytes, bytes],
    parts: Iterator[pa.Table],
    expected: int,
    sink: Any,
) -> None:
    """Write the parts of a shard. Nothing is published if this raises."""
    written = 0
    with TableWriter(sink, columns, metadata) as writer:
        # A part without rows gives the columns where no other part comes.
        waiting = [columns.empty_table()]
        for part in parts:
            waiting.append(part.select(columns.names))
            written += len(part)
            if sum(map(len, waiting)) >= ROW_GROUP:
                writer.write_table(pa.concat_tables(waiting).combine_chunks())
                waiting = waiting[:1]
        if len(waiting) > 1 or not written:
            writer.write_table(pa.concat_tables(waiting).combine_chunks())
    if written != expected:
        raise DamagedRun(
            f"{count_noun(written, 'row')} merged, {expected:,} expected; nothing was changed"
        )
