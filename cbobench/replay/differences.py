"""The first difference between what is published of a cell and what its play, or its history, gives here."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbobench.errors import DamagedRun, show
from cbobench.metrics import METRICS
from cbobench.results.export import find_improvements, select_fixed_rounds
from cbobench.results.history import Record, digest_of
from cbobench.results.schema import RECOMMENDATION_RULE, RECOMMENDED, RULE
from cbobench.suite.cells import Cell

CLOSE = 1e-9  # of the largest |f| or |g_j| of a cell: a problem's values that agree so far are the same
NAMES = {
    "t": "the round",
    "action": "the action",
    "x": "the action",
    "observed_f": "the observed f",
    "observed_g": "the observed g",
    "f": "f",
    "g": "g",
}
"""What a round holds, in the order in which it comes about."""
NOT_COMPARED = {
    *("cell", "problem", "algorithm", "seed", "horizon", "spec", "traceback"),
    *("seconds", "seconds_per_round", "peak_memory_mb", "host", "cpu", "arithmetic", "source", "libraries", "attempt"),
}
"""Columns of cells that name the cell, which is looked at first, or say who played, when and how fast."""
OF_RECOMMENDATION = {*RECOMMENDED, *(name for name in METRICS if name.startswith("recommended_"))}
"""Columns that no action and no observation depends on."""
OF_CONSTRAINTS = {"g", "observed_g", "recommended_g", "recommended_violation", "violation", "violation_hard"}


class Scales(NamedTuple):
    """By how much numbers may differ that depend on f, or on the constraint values; by 0, they are equal."""

    f: float = 0.0
    g: float = 0.0

    def width(self, name: str, t: Any) -> Any:
        """Return by how much a column may differ after round t: sums grow with t, and counts are equal."""
        metric = METRICS.get(name)
        if metric is not None and metric.is_count:
            return 0.0
        scale = self.g if name in OF_CONSTRAINTS else self.f
        return scale * (t if metric is not None and metric.cumulative else 1)


EXACT = Scales()


def find_difference(
    cell: Cell, published: Record, played: Record, absent: Set[str] = frozenset(), scales: Scales = EXACT
) -> str:
    """Return the first difference of a cell but in its recommendations, or "".

    Args:
        cell: as the run's record names it.
        published: what is stored.
        played: what the play gave; or its recorded actions, of what they determine.
        absent: columns of cells of which the stored file holds nothing.
        scales: by how much numbers may differ.
    """
    text = _compare_names(cell, published)
    if not text and played.history is not None and published.history is not None:
        text = _compare_rounds(published.history, played.history, scales)
    if text:
        return text
    text = _compare_curves(published, played, absent, scales) or _compare_improvements(published, played, scales)
    text = text or _compare_finals(published, played, {*absent, *OF_RECOMMENDATION, RULE}, scales)
    if published.digest is None or played.history is None or scales != EXACT:
        return text  # a published history has its digest, or it is not read
    # The digest covers the recommendation, too, which may be of an older rule: it is compared for itself.
    if digest_of(cell.id, played.history, published.final) == published.digest:
        return f"the play is the same, but {text}" if text else ""
    return text or "its actions, observations or recommendation, of which only the digest is stored"


def find_other_recommendation(published: Record, played: Record, absent: Set[str] = frozenset()) -> str:
    """Return the first difference in what a cell recommends, or ""."""
    text = _compare_curves(published, played, absent, EXACT, OF_RECOMMENDATION)
    return text or _compare_finals(published, played, absent | ({*published.final} - OF_RECOMMENDATION), EXACT)


def find_false_recommendation(published: Record, played: Record, absent: Set[str], scales: Scales) -> str:
    """Return where the values of a cell's final recommendation are not those of the recommended action, or ""."""
    text = _compare_finals(published, played, absent | ({*published.final} - OF_RECOMMENDATION), scales)
    for name in () if text or not len(published.curve) else sorted(OF_RECOMMENDATION & {*published.curve.column_names}):
        last = published.curve[name][-1].as_py()
        if name not in absent and not _is_same(last, published.final[name], 0.0):
            return f"in the last stored round: {describe(METRICS[name].symbol, published.final[name], last)}"
    return text


def find_unstored(published: Record, played: Record, absent: Set[str]) -> frozenset[str]:
    """Return the columns of which nothing is stored, and the play gives something."""
    names = {name for name in absent & {*published.final} if played.final.get(name) is not None}
    return frozenset(names - NOT_COMPARED - {RULE})


def is_of_older_rule(final: dict[str, Any]) -> bool:
    """Return whether a cell says that its recommendations were made by an older rule than today's."""
    rule = final.get(RULE)
    return rule is None or rule < RECOMMENDATION_RULE


def _compare_names(cell: Cell, published: Record) -> str:
    """Return where the rows of a cell say that they are of another one."""
    names: dict[str, Any] = {"seed": cell.seed, "horizon": cell.horizon}
    rule = published.final.get(RULE)
    if rule is not None and rule > RECOMMENDATION_RULE:
        return f"{RULE} is {rule}; this cbobench knows {RECOMMENDATION_RULE}"
    is_bundle = published.improvements is not None
    # Those in a run folder are spelt as when they were played.
    names |= {"problem": cell.pair.problem.title, "algorithm": cell.pair.algorithm.title} if is_bundle else {}
    for name, value in names.items():
        values = {published.final[name]}
        for table in (published.curve, published.improvements):
            if table is not None and name in table.column_names:
                values |= {*table[name].to_pylist()}
        if values != {value}:
            other = next(iter(values - {value}))
            return f"its rows have the {name} {show(other)}, its record {show(value)}"
    return ""


def _compare_rounds(published: pa.Table, played: pa.Table, scales: Scales) -> str:
    if len(published) != len(played):
        return f"it has {len(played):,} recorded rounds, published {len(published):,}"
    earliest: tuple[int, str] | None = None
    for name, noun in NAMES.items():
        old, new = to_array(published[name]), to_array(played[name])
        if old.shape != new.shape:
            return f"{noun} has the shape {new.shape[1:]}, published {old.shape[1:]}"
        width = 0.0 if name in ("t", "action", "x") else scales.width(name, 1)
        rows = np.flatnonzero(_are_apart(old, new, width).reshape(len(old), -1).any(axis=1))
        if len(rows) and (earliest is None or rows[0] < earliest[0]):
            earliest = int(rows[0]), describe(noun, new[rows[0]], old[rows[0]])
    return "" if earliest is None else f"from round {played['t'][earliest[0]].as_py():,} on: {earliest[1]}"


def _compare_curves(
    published: Record, played: Record, absent: Set[str], scales: Scales, names: Set[str] | None = None
) -> str:
    """Return where the metrics of the stored rounds differ first, or that the stored rounds are others.

    Args:
        names: of the metrics; those that do not depend on recommendations by default.
    """
    t, stored_t = played.curve["t"].to_numpy(), published.curve["t"].to_numpy()
    kept = np.isin(t, select_fixed_rounds(t)) if published.improvements is not None else np.ones(len(t), dtype=bool)
    if not np.array_equal(t[kept], stored_t):
        return f"the stored rounds are others: {len(stored_t):,}, and not the {int(kept.sum()):,} of the play"
    earliest: tuple[int, str] | None = None
    for name in METRICS:
        is_asked = name not in OF_RECOMMENDATION if names is None else name in names
        if not is_asked or name in absent or not {name} <= {*published.curve.column_names, *played.curve.column_names}:
            continue
        old, new = to_array(published.curve[name]), to_array(played.curve[name])[kept]
        rows = np.flatnonzero(_are_apart(old, new, scales.width(name, stored_t)))
        if len(rows) and (earliest is None or rows[0] < earliest[0]):
            earliest = int(rows[0]), describe(METRICS[name].symbol, new[rows[0]], old[rows[0]])
    return "" if earliest is None else f"of the stored rounds from round {stored_t[earliest[0]]:,} on: {earliest[1]}"


def _compare_improvements(published: Record, played: Record, scales: Scales) -> str:
    """Return how the rounds differ in which simple regret fell, all of them."""
    if published.improvements is None:
        return ""
    name = "simple_regret"
    rows = pa.table({"row": np.zeros(len(played.curve), dtype=np.int64), **_columns(played.curve, ("t", name))})
    wanted, stored = find_improvements(rows), published.improvements.sort_by("t")
    t, stored_t = wanted["t"].to_numpy(), stored["t"].to_numpy()
    if not np.array_equal(t, stored_t):
        first = min({*t.tolist()} ^ {*stored_t.tolist()}, default=1)
        return f"simple regret falls in {len(t):,} rounds, published {len(stored_t):,}; the first other is {first:,}"
    old, new = to_array(stored[name]), to_array(wanted[name])
    apart = np.flatnonzero(_are_apart(old, new, scales.width(name, t)))
    if not len(apart):
        return ""
    first = int(apart[0])
    return f"of the stored rounds from round {t[first]:,} on: {describe(METRICS[name].symbol, new[first], old[first])}"


def _columns(table: pa.Table, names: tuple[str, ...]) -> dict[str, pa.ChunkedArray]:
    return {name: table[name] for name in names}


def _compare_finals(published: Record, played: Record, left_out: Set[str], scales: Scales) -> str:
    horizon = published.final["horizon"]
    for name, old in published.final.items():
        if name in NOT_COMPARED or name in left_out or name not in played.final:
            continue
        new = played.final[name]
        if not _is_same(old, new, scales.width(name, horizon)):
            noun = METRICS[name].symbol if name in METRICS else name
            return f"in the end: {describe(noun, new, old)}"
    return ""


def _is_same(left: Any, right: Any, width: float) -> bool:
    if left == right or (left != left and right != right):
        return True
    if not width or not isinstance(left, float | list) or not isinstance(right, float | list):
        return False
    one, other = (np.asarray(value, dtype=np.float64) for value in (left, right))
    return one.shape == other.shape and not _are_apart(one, other, width).any()


def _are_apart(old: NDArray[Any], new: NDArray[Any], width: Any) -> NDArray[np.bool_]:
    equal = (old == new) | ((old != old) & (new != new))
    return ~(equal | (np.abs(new - old) <= width)) if np.any(width) else ~equal


def describe(noun: str, replayed: Any, published: Any) -> str:
    """Return "f is 1.0, published 1.5 (by 0.5)" for two values, numbers or arrays of them."""
    values = [
        value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in (replayed, published)
    ]
    text = f"{noun} is {show(values[0])}, published {show(values[1])}"
    if None in values or not all(isinstance(value, int | float | list) for value in values):
        return text
    old, new = (np.asarray(value, dtype=np.float64) for value in (published, replayed))
    gap = np.abs(new - old).max(initial=0.0) if old.shape == new.shape else np.nan
    return text if np.isnan(gap) else f"{text} (by {gap:.3g})"


def to_array(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as numbers (rows,), or lists of equal length as (rows, k); NaN for null.

    Raises:
        DamagedRun: the lists have several lengths.
    """
    if pa.types.is_list(column.type):
        lengths = {*pc.unique(pc.fill_null(pc.list_value_length(column), 0)).to_pylist()}
        if len(lengths) > 1:
            raise DamagedRun("a history holds points or constraint values of several lengths")
        flat = np.asarray(pc.list_flatten(column).to_numpy(), dtype=np.float64)
        return flat.reshape(len(column), *lengths)
    if pa.types.is_integer(column.type):
        return np.asarray(pc.fill_null(column, -1).to_numpy())
    return np.asarray(column.to_numpy(), dtype=np.float64)
