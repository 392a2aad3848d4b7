"""Columns of frames that files do not hold as such: labels, inputs by their names, entries of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.errors import unknown

LABELS = {"label": "algorithm", "algorithm_label": "algorithm", "problem_label": "problem"}
MOST_COLUMNS = 60  # columns that an error lists: a reader cannot guess the names of a frame
VECTORS = ("x", "g", "observed_g", "dual")


def to_column(values: Sequence[Any]) -> pd.Series:
    """Values of an input as a column; None is one of them, and no missing value."""
    return pd.Series(values, dtype=object if None in values else None)


def read_input(frame: pd.DataFrame, by_problem: Mapping[str, tuple[int, Any]]) -> pd.Series:
    """An input's values in rows with `problem`, `action` and `x`; empty on problems that do not have it."""
    parts = []
    for title, (position, values) in by_problem.items():
        rows = frame[frame["problem"] == title]
        if isinstance(values, list):
            chosen = to_column(values).take(rows["action"].to_numpy(dtype=np.intp))
            parts.append(pd.Series(chosen.to_numpy(), index=rows.index))
        else:
            parts.append(pd.Series([x[position] for x in rows["x"]], index=rows.index, dtype=np.float64))
    return pd.concat(parts).reindex(frame.index)


def find_source_column(name: str, names: list[str]) -> str:
    """The column of the files, `names`, that a wanted one is made of.

    Raises:
        Misuse: there is no such column.
    """
    vector, _, position = name.rpartition("_")
    held = [vector for vector in VECTORS if vector in names]
    if vector in held and position.isdecimal() and int(position) > 0:
        return vector
    if name not in (*names, *LABELS):
        raise unknown("column", name, [*names, *LABELS, *(f"{vector}_1" for vector in held)], most=MOST_COLUMNS)
    return LABELS.get(name, name)


def extract_entries(table: pa.Table, columns: Iterable[str]) -> pa.Table:
    """The table with the entries that were asked for (`g_1`: the first of g), without vectors that were not."""
    columns = list(columns)
    for name in columns:
        if name not in table.column_names and name not in LABELS:
            vector, _, position = name.rpartition("_")
            table = table.append_column(name, pa.array(_extract_entry(table[vector], int(position) - 1)))
    return table.drop_columns([v for v in VECTORS if v in table.column_names and v not in columns])


def _extract_entry(column: pa.ChunkedArray, k: int) -> NDArray[np.float64]:
    """Entry k of every list, NaN where there is none."""
    parts = []
    for chunk in column.chunks:
        offsets, values = chunk.offsets.to_numpy(), chunk.values.to_numpy(zero_copy_only=False)
        held = (np.diff(offsets) > k) & chunk.is_valid().to_numpy(zero_copy_only=False)
        entries = np.full(len(chunk), np.nan)
        entries[held] = values[offsets[:-1][held] + k]
        parts.append(entries)
    return np.concatenate(parts) if parts else np.empty(0)
