"""The first difference between what is published of a cell and its play here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cbobench.errors import show
from cbobench.metrics import METRICS
from cbobench.results.export import find_improvements
from cbobench.results.query import PublishedCells
from cbobench.results.rounds import digest_of, equal_or_nan, rows_by_cell
from cbobench.results.schema import FITTED, IMPROVED, RECOMMENDATION_RULE, RECOMMENDED, RULE, schema
from cbobench.suite.cells import as_numbers

NOT_COMPARED = {
    *("cell", "problem", "algorithm", "spec", "traceback"),
    *("seconds", "seconds_per_round", "peak_memory_mb"),
    *("host", "cpu", "arithmetic", "source", "libraries", "attempt", "digest", RULE),
}
"""Columns that name the cell, or say who played, when, how fast and by which rule."""
OF_RECOMMENDATION = {
    FITTED,
    *RECOMMENDED,
    *(name for name in METRICS if name.startswith("recommended_")),
}
"""Columns that no action and no observation depends on, as far as another rule makes them or leaves
them out.
"""


@dataclass(frozen=True)
class Record:
    """What a run or a bundle holds of a cell's play.

    Attributes:
        final: its row among the cells.
        rounds: those that are stored, by t.
        improvements: rounds with their simple regret, by t; all in which it fell, at least.
    """

    final: dict[str, Any]
    rounds: pa.Table
    improvements: pa.Table


def drop_unknown(table: pa.Table) -> pa.Table:
    """Leave out the columns that no cell has: they are undefined, or whoever played did not know
    them, such as a metric of today.
    """
    return table.select([n for n in table.column_names if table[n].null_count < len(table)])


def read_records(published: PublishedCells, cells: Sequence[str]) -> dict[str, Record]:
    """Return what is published of some cells that were played to their end."""
    # long columns of text can be filtered, not taken
    is_drawn = np.zeros(len(published.table), dtype=bool)
    is_drawn[published.find(as_numbers(list(cells)))] = True
    drawn = drop_unknown(published.table).filter(pa.array(is_drawn)).to_pylist()
    final_of = {final["cell"]: final for final in drawn}
    records = {}
    for task, task_cells in published.by_task(cells).items():
        rounds = _split(pa.concat_tables(task.rounds(cells=task_cells)))
        improvements = _split(pa.concat_tables(task.improvements(task_cells)))
        for cell in task_cells:
            records[cell] = Record(
                final=final_of[cell],
                rounds=rounds.get(cell, schema("rounds").empty_table()),
                improvements=improvements.get(cell, schema("improvements").empty_table()),
            )
    return records


def _split(table: pa.Table) -> dict[str, pa.Table]:
    """Return the rows of each cell, by t."""
    return {cell: table.take(rows).sort_by("t") for cell, rows in rows_by_cell(table).items()}


def is_of_other_rule(final: Mapping[str, Any]) -> bool:
    """Return whether another rule than today's made the recommendations of a cell."""
    return bool(final.get(RULE) != RECOMMENDATION_RULE)


def find_difference(cell: str, published: Record, played: Record) -> str:
    """Return the first difference of a cell, or "".

    Recommendations are compared where today's rule made them.

    Args:
        cell: its id.
    """
    left_out = NOT_COMPARED
    if is_of_other_rule(published.final):
        left_out = NOT_COMPARED | OF_RECOMMENDATION
    text = (
        _compare_rounds(published, played.rounds, left_out)
        or _compare_improvements(published.improvements, played.improvements)
        or _compare_finals(published.final, played.final, left_out)
    )
    # The published recommendation is a part of the published digest, whatever rule made it.
    if digest_of(cell, played.rounds, published.final) != published.final["digest"]:
        return text or "its actions, observations or recommendation, of which a digest is stored"
    if text:
        return f"the play is the same, but {text}"
    return ""


def _compare_rounds(record: Record, played: pa.Table, left_out: Collection[str]) -> str:
    """Return in which of the stored rounds a value differs first, and how, or ""."""
    published = record.rounds
    t = published["t"].to_pylist()
    played_t = played["t"].to_pylist()
    # which rounds a bundle keeps is its author's affair; the last one is always among them
    played = played.filter(pa.array(np.isin(played_t, [*t, played_t[-1]])))
    if played["t"].to_pylist() != t:
        return "its stored rounds are others"
    # A bundle may have left out what is no metric, and a metric that its cells have not, either.
    kept_metrics = METRICS.keys() & record.final.keys()
    names = [
        name
        for name in published.column_names
        if name not in left_out
        and (name in kept_metrics or published[name].null_count < len(t))
        and not published[name].equals(played[name])
    ]
    old_rows = published.select(names).to_pylist()
    new_rows = played.select(names).to_pylist()
    for row, old, new in zip(t, old_rows, new_rows, strict=True):
        for name in names:
            if repr(old[name]) != repr(new[name]):  # NaN is equal to NaN, in lists, too
                difference = _describe(name, new[name], old[name])
                return f"of the stored rounds from round {row:,} on: {difference}"
    return ""


def _compare_improvements(published: pa.Table, played: pa.Table) -> str:
    """Return the first round in which simple regret falls to another value, or in one play alone,
    or "".
    """
    stored = _list_improvements(published)
    expected = _list_improvements(played)
    for t in sorted(stored.keys() | expected.keys()):
        if stored.get(t) != expected.get(t):
            difference = _describe(IMPROVED, expected.get(t), stored.get(t))
            return f"improvements from round {t:,} on: {difference}"
    return ""


def _list_improvements(table: pa.Table) -> dict[int, float]:
    of_one_cell = pa.array(np.zeros(len(table), dtype=np.int64))
    steps = find_improvements(table.append_column("row", of_one_cell))
    return dict(zip(steps["t"].to_pylist(), steps[IMPROVED].to_pylist(), strict=True))


def _compare_finals(old: dict[str, Any], new: dict[str, Any], left_out: Collection[str]) -> str:
    """Return where final values differ, the first in the order of the columns, or ""."""
    for name, value in old.items():
        if name not in left_out and not equal_or_nan(value, new.get(name)):
            return f"in the end: {_describe(name, new.get(name), value)}"
    return ""


def _describe(name: str, played: object, published: object) -> str:
    """Return "f is 1.0, published 1.5 (by 0.5)"."""
    symbol = METRICS[name].symbol if name in METRICS else name
    text = f"{symbol} is {show(played)}, published {show(published)}"
    if isinstance(played, float) and isinstance(published, float):
        text += f" (by {abs(played - published):.3g})"
    return text
