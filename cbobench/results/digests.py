"""What identifies a cell's play to the last bit: a digest of its rounds.

It covers the recorded rounds in order: the round, the action (an index, or the point's
coordinates), and what was observed of f and every g_j; then the final recommendation. All are
little-endian 64-bit numbers; what was observed later, or never, is NaN. A cell's row holds it, so
that a bundle, which has not all of its rounds, says what was played.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbobench.errors import DamagedRun
from cbobench.results.rounds import rows_by_cell

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
        action, x = (final.get(f"recommended_{name}") for name in ("action", "x"))
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


def digest_of(cell: str, rounds: pa.Table, final: Mapping[str, Any]) -> str:
    """Return the digest of a cell's rounds and of the recommendation in a row of the cells."""
    digests = Digests()
    digests.add(rounds)
    return digests.finish(cell, final)
