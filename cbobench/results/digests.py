"""What identifies a cell's play to the last bit: a digest of its rounds; and what a run or a bundle
holds of some cells.

The digest covers the recorded rounds in order: the round, the action (an index, or the point's
coordinates), and what was observed of f and every g_j; then the final recommendation. All are
little-endian 64-bit numbers; what was observed later, or never, is NaN. A bundle holds a digest per
cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbobench.errors import DamagedRun
from cbobench.results.query import PublishedCells
from cbobench.results.reader import Reader
from cbobench.results.rounds import rows_by_cell
from cbobench.suite.cells import as_numbers

PLAYED = ("t", "action", "x", "observed_f", "observed_g")
"""What a digest covers of a round."""
_LENGTH = 32  # hexadecimal digits of a digest


class Digests:
    """Digests of cells, from the row groups of their rounds in order; a cell may span several."""

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}
        self._last: dict[str, int] = {}

    def add(self, part: pa.Table) -> None:
        """Add a row group with the columns `PLAYED` and `cell`.

        Raises:
            DamagedRun: the rounds of a cell are not in order.
        """
        lengths = [_lengths(part[name]) for name in ("x", "observed_g")]
        shape = lengths[0] * (1 + int(lengths[1].max(initial=0))) + lengths[1]
        # a shard's row group may hold cells of several problems
        for value in np.unique(shape).tolist():
            alike = shape == value
            self._add_alike(part if alike.all() else part.filter(pa.array(alike)))

    def _add_alike(self, part: pa.Table) -> None:
        t, content = part["t"].to_numpy(), _as_bytes(part)
        for cell, rows in rows_by_cell(part).items():
            if (np.diff(t[rows], prepend=self._last.get(cell, 0)) <= 0).any():
                raise DamagedRun(
                    f"the rounds of the cell {cell} are in another order than they were played"
                )
            self._last[cell] = int(t[rows[-1]])
            self._hashes.setdefault(cell, hashlib.sha256()).update(content[rows].tobytes())

    def finish(self, cell: str, final: Mapping[str, Any]) -> str:
        """Return the digest of a cell, whose rounds were all added.

        Args:
            final: its row among the cells, with the columns of the recommendation.
        """
        digest = self._hashes.get(cell, hashlib.sha256()).copy()
        action, x = final["recommended_action"], final["recommended_x"]
        if action is not None:
            digest.update(np.array(action, dtype="<i8").tobytes())
        elif x is not None:
            digest.update(np.array(x, dtype="<f8").tobytes())
        return str(digest.hexdigest()[:_LENGTH])


def _lengths(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the lengths of lists, (rows,); 0 for null."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    return np.asarray(lengths.to_numpy(), dtype=np.int64)


def _as_bytes(part: pa.Table) -> NDArray[np.uint8]:
    """Return the bytes of the columns `PLAYED`, (rows, bytes), of rows whose lists have equal
    lengths.
    """
    rows = len(part)
    columns: list[NDArray[Any]] = [part["t"].to_numpy().astype("<i8")[:, None]]
    if part["action"].null_count == 0:
        columns.append(part["action"].to_numpy().astype("<i8")[:, None])
    for name in ("x", "observed_f", "observed_g"):
        column = pc.list_flatten(part[name]) if pa.types.is_list(part[name].type) else part[name]
        values = np.array(column.to_numpy(), dtype="<f8")
        values[np.isnan(values)] = np.nan  # one of the many bit patterns
        columns.append(values.reshape(rows, -1))
    parts = [
        np.ascontiguousarray(column).view(np.uint8).reshape(rows, -1)
        for column in columns
        if column.size
    ]
    return np.concatenate(parts, axis=1)


def digest_table(cells: pa.Table, digests: Digests) -> pa.Table:
    """Return the digest of every cell of a table of played cells."""
    finals = cells.select(["recommended_action", "recommended_x"]).to_pylist()
    ids = cells["cell"].to_pylist()
    texts = [digests.finish(cell, final) for cell, final in zip(ids, finals, strict=True)]
    return pa.table({"cell": pa.array(ids, pa.string()), "digest": pa.array(texts, pa.string())})


def digest_of(cell: str, rounds: pa.Table, final: Mapping[str, Any]) -> str:
    """Return the digest of a cell's rounds and of the recommendation in a row of the cells."""
    digests = Digests()
    digests.add(rounds)
    return digests.finish(cell, final)


@dataclass(frozen=True)
class Record:
    """What a run or a bundle holds of a cell's play.

    Attributes:
        digest: of its rounds.
        curve: metrics at some rounds, by t; of a run folder with the columns `PLAYED` and all
            recorded rounds.
        improvements: the rounds in which simple regret fell, and its values; None for a run folder.
        final: its row among the cells.
    """

    digest: str
    curve: pa.Table
    improvements: pa.Table | None
    final: dict[str, Any]


def read_records(
    folder: Reader, published: PublishedCells, cells: Sequence[str]
) -> dict[str, Record]:
    """Return what a run folder or a bundle holds of some cells that were played to their end.

    Raises:
        DamagedRun: rounds are missing or in another order, or a digest is missing.
    """
    finals = {row["cell"]: row for row in _rows(published, cells)}
    if not folder.is_reduced:
        return _records_of_run(folder, published, finals)
    # A table of a bundle holds all cells: it is read once.
    curves, improvements, digests = (
        _by_cell(_concatenate(folder, kind, folder.names(kind), [*finals]))
        for kind in ("rounds", "improvements", "digests")
    )
    no_rounds, no_improvements = (
        folder.schema(kind).empty_table() for kind in ("rounds", "improvements")
    )
    records = {}
    for cell, final in finals.items():
        if cell not in digests:
            raise DamagedRun(
                f"{folder} is a damaged bundle (it lacks the digest of the cell {cell})"
            )
        records[cell] = Record(
            digest=digests[cell]["digest"][0].as_py(),
            curve=curves.get(cell, no_rounds).sort_by("t"),
            improvements=improvements.get(cell, no_improvements).sort_by("t"),
            final=final,
        )
    return records


def _records_of_run(
    folder: Reader, published: PublishedCells, finals: Mapping[str, dict[str, Any]]
) -> dict[str, Record]:
    digests, records = Digests(), {}
    for task, task_cells in published.by_task(finals).items():
        rounds = _concatenate(folder, "rounds", [task], task_cells)
        digests.add(rounds)
        for cell, table in _by_cell(rounds).items():
            final = finals[cell]
            records[cell] = Record(
                digest=digests.finish(cell, final), curve=table, improvements=None, final=final
            )
    return records


def _rows(published: PublishedCells, cells: Sequence[str]) -> list[dict[str, Any]]:
    rows = published.find(as_numbers(list(cells)))
    keep = np.zeros(len(published.table), dtype=bool)
    keep[rows] = True
    listed: list[dict[str, Any]] = published.table.filter(pa.array(keep)).to_pylist()
    latest = dict(zip(np.flatnonzero(keep).tolist(), listed, strict=True))
    return [latest[row] for row in rows.tolist()]


def _concatenate(folder: Reader, kind: str, tasks: Sequence[str], cells: Sequence[str]) -> pa.Table:
    parts = [part for task in tasks for part in folder.row_groups(kind, task, None, cells)]
    # Each file has a dictionary of its own for its cells: as plain text they can be joined.
    columns = folder.schema(kind)
    return pa.concat_tables([columns.empty_table(), *(part.cast(columns) for part in parts)])


def _by_cell(table: pa.Table) -> dict[str, pa.Table]:
    """Return the rows of each cell, in order."""
    return {cell: table.take(pa.array(rows)) for cell, rows in rows_by_cell(table).items()}
