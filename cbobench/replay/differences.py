"""The first difference between what is published of a cell and its play here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa

from cbobench.errors import show
from cbobench.metrics import METRICS
from cbobench.results.bundle import IMPROVED
from cbobench.results.digests import Record, digest_of
from cbobench.results.export import find_improvements
from cbobench.results.rounds import equal_or_nan
from cbobench.results.schema import FITTED, RECOMMENDATION_RULE, RECOMMENDED, RULE

NOT_COMPARED = {
    *("cell", "problem", "algorithm", "spec", "traceback"),
    *("seconds", "seconds_per_round", "peak_memory_mb"),
    *("host", "cpu", "arithmetic", "source", "libraries", "attempt", RULE),
}
"""Columns of cells that name the cell, or say who played, when, how fast and by which rule."""
OF_RECOMMENDATION = {
    FITTED,
    *RECOMMENDED,
    *(name for name in METRICS if name.startswith("recommended_")),
}
"""Columns that no action and no observation depends on, as far as another rule makes them or leaves
them out.
"""


def is_of_other_rule(final: dict[str, Any]) -> bool:
    """Return whether another rule than today's made the recommendations of a cell."""
    return bool(final.get(RULE) != RECOMMENDATION_RULE)


def find_difference(cell: str, published: Record, played: Record) -> str:
    """Return the first difference of a cell, or "".

    Recommendations are compared where today's rule made them.

    Args:
        cell: its id.
    """
    names = played.final.keys() & published.final.keys() - NOT_COMPARED
    if is_of_other_rule(published.final):
        names -= OF_RECOMMENDATION
    text = (
        _compare_curves(published, played, names & METRICS.keys())
        or _compare_improvements(published, played)
        or _compare_finals(published.final, played.final, names)
    )
    # The published recommendation is a part of the published digest, whatever rule made it.
    if digest_of(cell, played.curve, published.final) != published.digest:
        return text or "its actions, observations or recommendation, of which a digest is stored"
    return f"the play is the same, but {text}" if text else ""


def _compare_curves(published: Record, played: Record, names: Collection[str]) -> str:
    """Return in which of the stored rounds metrics differ first, and how, or ""."""
    t, played_t = (record.curve["t"].to_numpy() for record in (published, played))
    # which rounds a bundle keeps is its author's affair; the last one is always among them
    is_stored = np.isin(played_t, [*t, played_t[-1]])
    if not np.array_equal(played_t[is_stored], t):
        return "its stored rounds are others"
    first, text = len(t), ""
    for name in (name for name in METRICS if name in names):
        old = published.curve[name].to_numpy()
        new = played.curve[name].to_numpy()[is_stored]
        is_same = (old == new) | (np.isnan(old) & np.isnan(new))
        row = int(np.argmin(is_same)) if not is_same.all() else first
        if row < first:
            first = row
            difference = describe(METRICS[name].symbol, float(new[row]), float(old[row]))
            text = f"of the stored rounds from round {t[row]:,} on: {difference}"
    return text


def _compare_improvements(published: Record, played: Record) -> str:
    """Return the first round in which simple regret falls to another value, or in one play alone,
    or "".
    """
    if published.improvements is None:
        return ""
    steps = played.curve.select(["t", IMPROVED])
    of_one_cell = pa.array(np.zeros(len(steps), dtype=np.int64))
    expected = _list_improvements(find_improvements(steps.append_column("row", of_one_cell)))
    stored = _list_improvements(published.improvements)
    for t in sorted(stored.keys() | expected.keys()):
        if stored.get(t) != expected.get(t):
            difference = describe(METRICS[IMPROVED].symbol, expected.get(t), stored.get(t))
            return f"improvements from round {t:,} on: {difference}"
    return ""


def _list_improvements(table: pa.Table) -> dict[int, float]:
    return dict(zip(table["t"].to_pylist(), table[IMPROVED].to_pylist(), strict=True))


def _compare_finals(old: dict[str, Any], new: dict[str, Any], names: Collection[str]) -> str:
    """Return where final values differ, the first in the order of the columns, or ""."""
    for name, value in old.items():
        if name in names and not equal_or_nan(value, new[name]):
            noun = METRICS[name].symbol if name in METRICS else name
            return f"in the end: {describe(noun, new[name], value)}"
    return ""


def describe(noun: str, played: object, published: object) -> str:
    """Return "f is 1.0, published 1.5 (by 0.5)"."""
    text = f"{noun} is {show(played)}, published {show(published)}"
    if isinstance(played, float) and isinstance(published, float):
        text += f" (by {abs(played - published):.3g})"
    return text
