"""Recorded rounds as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.metrics import METRICS
from cbobench.play.play import Chunk
from cbobench.results.schema import schema

if TYPE_CHECKING:
    from cbobench.suite.cells import Cell


def recorded_rounds(horizon: int, keep: int | None) -> NDArray[np.int64]:
    """The rounds that are kept: all, or `keep` spread evenly with the last one among them."""
    if keep is None or horizon <= keep:
        return np.arange(1, horizon + 1)
    return np.array([-(-i * horizon // keep) for i in range(1, keep + 1)])  # whole numbers: i T / keep, rounded up


class RoundRows:
    """Collects the recorded rounds of S cells and gives them as tables, cell by cell.

    Args:
        cells: the S cells.
        horizon: T.
        keep: how many rounds are recorded, None for all.
    """

    FLUSH = 250_000  # rows per row group: small row groups read as slowly as small files

    def __init__(self, cells: Sequence[Cell], horizon: int, keep: int | None) -> None:
        self.cells = list(cells)
        self.kept = recorded_rounds(horizon, keep)
        self.pending: list[dict[str, NDArray[np.generic]]] = []
        self.waiting = 0
        self.written = 0
        self.schema = schema("rounds")

    @property
    def expected(self) -> int:
        """Rows in all."""
        return len(self.cells) * len(self.kept)

    def add(self, chunk: Chunk) -> None:
        """Take the recorded rounds of a chunk."""
        last = chunk.first + len(chunk.actions) - 1
        wanted = self.kept[(self.kept >= chunk.first) & (self.kept <= last)]
        if len(wanted) == 0:
            return
        rows = wanted - chunk.first
        part: dict[str, NDArray[np.generic]] = {
            "t": wanted,
            "action" if chunk.actions.ndim == 2 else "x": chunk.actions[rows],
            "observed_f": chunk.observed_f[rows],
            "observed_g": chunk.observed_g[rows],
            "f": chunk.metrics.f[rows],
            "g": chunk.metrics.g[rows],
        }
        part |= {name: chunk.metrics.values[name][rows] for name in METRICS}
        if chunk.duals is not None:
            part["dual"] = chunk.duals[rows]
        self.pending.append(part)
        self.waiting += len(wanted) * len(self.cells)

    @property
    def full(self) -> bool:
        return self.waiting >= self.FLUSH

    def table(self) -> pa.Table:
        """The pending rows as a table, cell by cell and by rounds within; nothing is pending afterwards."""
        self.written += self.waiting
        parts, self.pending, self.waiting = self.pending, [], 0
        if not parts:
            return self.schema.empty_table()
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        rounds, replicates = len(joined["t"]), len(self.cells)
        columns: dict[str, pa.Array] = {"t": pa.array(np.tile(joined["t"], replicates))}
        for name, values in joined.items():
            if name == "t":
                continue
            by_cell = np.ascontiguousarray(values.swapaxes(0, 1))
            nullable = name == "observed_f" or (name in METRICS and METRICS[name].nullable)  # told later, or not known
            columns[name] = _lists(by_cell) if values.ndim == 3 else pa.array(by_cell.reshape(-1), from_pandas=nullable)
        which = np.repeat(np.arange(replicates, dtype=np.int32), rounds)
        for name, texts in _names(self.cells).items():
            columns[name] = pa.DictionaryArray.from_arrays(which, pa.array(texts)).cast(pa.string())
        columns["seed"] = pa.array(np.array([cell.seed for cell in self.cells])[which])
        for name in self.schema.names:
            if name not in columns:
                columns[name] = pa.nulls(rounds * replicates, self.schema.field(name).type)
        return pa.table([columns[name] for name in self.schema.names], schema=self.schema)


def _names(cells: Sequence[Cell]) -> dict[str, list[str]]:
    return {
        "cell": [cell.id for cell in cells],
        "problem": [cell.pair.problem.title for cell in cells],
        "algorithm": [cell.pair.algorithm.title for cell in cells],
    }


def _lists(values: NDArray[np.generic]) -> pa.ListArray:
    """(S, rounds, m) as S * rounds lists of m numbers."""
    length = values.shape[2]
    rows = values.shape[0] * values.shape[1]
    offsets = np.arange(0, (rows + 1) * length, length, dtype=np.int32) if length else np.zeros(rows + 1, np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.reshape(-1), from_pandas=True))
