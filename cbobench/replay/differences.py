"""The first difference between what is published of a cell and what was played again."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbobench.metrics import METRICS
from cbobench.results.history import Record

NAMES = {
    "action": "the action",
    "x": "the action",
    "observed_f": "the observed f",
    "observed_g": "the observed g",
    "f": "f",
    "g": "g",
}
"""What a round holds, in the order in which it comes about."""
NOT_COMPARED = {
    *("cell", "problem", "algorithm", "seed", "horizon", "spec", "status", "error", "traceback"),
    *("seconds", "seconds_per_round", "peak_memory_mb", "host", "cpu", "arithmetic", "source", "libraries", "attempt"),
}
"""Columns of cells that say who played, when and how fast."""


def find_difference(published: Record, played: Record, absent: Set[str] = frozenset()) -> str:
    """Return the first difference of a cell that was played again, or "".

    Args:
        published, played: what is stored, and what the play gave.
        absent: columns of cells that the stored file does not have.
    """
    has_rounds = played.history is not None and published.history is not None
    if has_rounds and (text := _compare_rounds(published.history, played.history)):
        return text
    text = _compare_curves(published.curve, played.curve)
    if not text and published.improvements is not None:
        text = _compare_curves(published.improvements, played.curve)
    text = text or _compare_finals(published.final, played.final, absent)
    if published.digest in (None, played.digest):
        return f"the play is the same, but {text}" if text and published.digest is not None else text
    return text or "its actions, observations or recommendation, of which only the digest is stored"


def _compare_rounds(published: pa.Table, played: pa.Table) -> str:
    earliest: tuple[int, str] | None = None
    for name, noun in NAMES.items():
        old, new = to_array(published[name]), to_array(played[name])
        if old.shape != new.shape:
            return f"{noun} has the shape {new.shape[1:]}, published {old.shape[1:]}"
        apart = ~((old == new) | ((old != old) & (new != new)))
        rows = np.flatnonzero(apart.reshape(len(apart), -1).any(axis=1))
        if len(rows) and (earliest is None or rows[0] < earliest[0]):
            earliest = int(rows[0]), describe(noun, new[rows[0]], old[rows[0]])
    return "" if earliest is None else f"from round {published['t'][earliest[0]].as_py():,} on: {earliest[1]}"


def _compare_curves(published: pa.Table, played: pa.Table) -> str:
    """Return where metrics at some rounds differ first."""
    t, all_t = published["t"].to_numpy(), played["t"].to_numpy()
    at = np.searchsorted(all_t, t)
    if (at >= len(all_t)).any() or (all_t[at] != t).any():
        return "the recorded rounds are others"
    earliest: tuple[int, str] | None = None
    for name in METRICS:
        if name not in published.column_names or published[name].null_count == len(published):
            continue  # a metric that is newer than the file, or never known
        old, new = to_array(published[name]), to_array(played[name])[at]
        rows = np.flatnonzero(~((old == new) | ((old != old) & (new != new))))
        if len(rows) and (earliest is None or rows[0] < earliest[0]):
            earliest = int(rows[0]), describe(METRICS[name].symbol, new[rows[0]], old[rows[0]])
    return "" if earliest is None else f"of the stored rounds from round {t[earliest[0]]:,} on: {earliest[1]}"


def _compare_finals(published: dict[str, Any], played: dict[str, Any], absent: Set[str]) -> str:
    for name, old in published.items():
        if name in NOT_COMPARED or name in absent or name not in played:
            continue
        if not _is_same(old, new := played[name]):
            noun = METRICS[name].symbol if name in METRICS else name
            return f"in the end: {describe(noun, new, old)}"
    return ""


def _is_same(left: Any, right: Any) -> bool:
    return bool(left == right or (left != left and right != right))


def describe(noun: str, replayed: Any, published: Any) -> str:
    """Return "f is 1.0, published 1.5 (by 0.5)" for two values, numbers or arrays of them."""
    values = [
        value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in (replayed, published)
    ]
    text = f"{noun} is {values[0]}, published {values[1]}"
    if None in values:
        return text
    old, new = (np.asarray(value, dtype=np.float64) for value in (published, replayed))
    gap = np.abs(new - old).max(initial=0.0) if old.shape == new.shape else np.nan
    return text if np.isnan(gap) else f"{text} (by {gap:.3g})"


def to_array(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as numbers (rows,), or lists of equal length as (rows, k); NaN for null."""
    if pa.types.is_list(column.type):
        flat = np.asarray(pc.list_flatten(column).to_numpy(), dtype=np.float64)
        return flat.reshape(len(column), -1)
    if pa.types.is_integer(column.type):
        return np.asarray(pc.fill_null(column, -1).to_numpy())
    return np.asarray(column.to_numpy(), dtype=np.float64)
