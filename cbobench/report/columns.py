"""Columns of recorded rounds that the files do not have: entries of vectors, and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.errors import unknown

LABELS = {"label": "algorithm", "problem_label": "problem"}
VECTORS = ("x", "g", "observed_g", "dual")


def source(name: str, names: list[str]) -> str:
    """The column of the files, `names`, that a wanted one is made of.

    Raises:
        Misuse: there is no such column.
    """
    vector, _, position = name.rpartition("_")
    held = [vector for vector in VECTORS if vector in names]
    if vector in held and position.isdecimal() and int(position) > 0:
        return vector
    if name not in (*names, *LABELS):
        raise unknown("column", name, [*names, *LABELS, *(f"{vector}_1" for vector in held)])
    return LABELS.get(name, name)


def entries(table: pa.Table, columns: Iterable[str]) -> pa.Table:
    """The table with the entries that were asked for (`g_1`: the first of g), without vectors that were not."""
    columns = list(columns)
    for name in columns:
        if name not in table.column_names and name not in LABELS:
            vector, _, position = name.rpartition("_")
            table = table.append_column(name, pa.array(_entry(table[vector], int(position) - 1)))
    return table.drop_columns([v for v in VECTORS if v in table.column_names and v not in columns])


def _entry(column: pa.ChunkedArray, k: int) -> NDArray[np.float64]:
    """Entry k of every list, NaN where there is none."""
    parts = []
    for chunk in column.chunks:
        offsets, values = chunk.offsets.to_numpy(), chunk.values.to_numpy(zero_copy_only=False)
        held = (np.diff(offsets) > k) & chunk.is_valid().to_numpy(zero_copy_only=False)
        found = np.full(len(chunk), np.nan)
        found[held] = values[offsets[:-1][held] + k]
        parts.append(found)
    return np.concatenate(parts) if parts else np.empty(0)


def labelled(frame: pd.DataFrame, columns: Iterable[str], labels: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """The frame with the labels that were asked for.

    Args:
        labels: of "problem" and "algorithm", by title.
    """
    for name in columns:
        if name in LABELS:
            frame[name] = frame[LABELS[name]].map(labels[LABELS[name]])
    return frame
