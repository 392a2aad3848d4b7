"""Rows of recorded rounds as Arrow tables: those of some cells, in order."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def only_of(table: pa.Table, cells: list[str]) -> pa.Table:
    """The rows of some cells."""
    codes = codes_of(table)
    kept = np.isin(codes.dictionary.to_numpy(zero_copy_only=False), cells)
    return table if kept.all() else table.filter(pa.array(kept[codes.indices.to_numpy()]))


def in_order(table: pa.Table, order: dict[str, int]) -> list[tuple[int, pa.Table]]:
    """The rows of a table by the cells' order and t, cut where cells of other tables may lie between."""
    ranks = positions(table, order)
    index = np.lexsort((table["t"].to_numpy(), ranks))
    table, ranks = table.take(pa.array(index)), ranks[index]
    cuts = np.flatnonzero(np.diff(ranks) > 1) + 1
    bounds = [0, *cuts.tolist(), len(ranks)]
    return [(int(ranks[a]), table.slice(a, b - a)) for a, b in itertools.pairwise(bounds) if b > a]


def positions(table: pa.Table, known: dict[str, int]) -> NDArray[np.int64]:
    """(rows,) what is known of the cells of some rows, -1 where that is nothing."""
    codes = codes_of(table)
    found = np.array([known.get(cell, -1) for cell in codes.dictionary.to_pylist()], dtype=np.int64)
    return found[codes.indices.to_numpy()]


def codes_of(table: pa.Table) -> pa.DictionaryArray:
    """The cells of a table, as codes into their ids."""
    column = table["cell"]
    if not pa.types.is_dictionary(column.type):
        return column.combine_chunks().dictionary_encode()
    return column.unify_dictionaries().combine_chunks()
