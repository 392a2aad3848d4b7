"""The first difference between what is published of a cell and its play here, or what its recorded
actions determine.

Recorded actions determine observations, f and g, metrics and finals, whatever the method computes.
The problem at hand
is asked at them: f, g, and the observations, whose noise has a stream of its own. Metrics are
computed from the published f and g, once these are the problem's, because a last bit decides
whether a point on the boundary is feasible.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbobench.algorithms.base import NONE
from cbobench.errors import CellFailure, DamagedRun, show
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.metrics import METRICS, Rounds
from cbobench.play.block import summaries
from cbobench.play.play import Chunk, Play
from cbobench.problems.base import Actions
from cbobench.results.export import find_improvements, select_fixed_rounds
from cbobench.results.history import HISTORY, Record, digest_of
from cbobench.results.rounds import equal_or_nan
from cbobench.results.schema import FITTED, RECOMMENDATION_RULE, RECOMMENDED, RULE
from cbobench.suite.cells import Cell

# of the largest |f| or |g_j| of a cell: a problem's values that agree so far are the same
CLOSE = 1e-9
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
    *(
        "seconds",
        "seconds_per_round",
        "peak_memory_mb",
        "host",
        "cpu",
        "arithmetic",
        "source",
        "libraries",
        "attempt",
    ),
}
"""Columns of cells that name the cell, which is looked at first, or say who played, when and how
fast.
"""
OF_RECOMMENDATION = {*RECOMMENDED, *(name for name in METRICS if name.startswith("recommended_"))}
"""Columns that no action and no observation depends on."""
OF_CONSTRAINTS = {
    "g",
    "observed_g",
    "recommended_g",
    "recommended_violation",
    "violation",
    "violation_hard",
}
OF_PROBLEM = ("binds", "redraws", "failed_evaluations", "feasibility_tolerance")
"""Columns of cells that the problem and the actions determine."""
RECOMMENDED_METRICS = sorted(OF_RECOMMENDATION & {*METRICS})


class Scales(NamedTuple):
    """By how much numbers may differ that depend on f, or on the constraint values; by 0, they are
    equal.
    """

    f: float = 0.0
    g: float = 0.0

    def width(self, name: str, t: Any) -> Any:
        """Return by how much a column may differ after round t: sums grow with t, and counts are
        equal.
        """
        metric = METRICS.get(name)
        if metric is not None and metric.is_count:
            return 0.0
        scale = self.g if name in OF_CONSTRAINTS else self.f
        return scale * (t if metric is not None and metric.cumulative else 1)


EXACT = Scales()


def find_difference(
    cell: Cell,
    published: Record,
    played: Record,
    absent: Set[str] = frozenset(),
    scales: Scales = EXACT,
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
    metrics = METRICS.keys() - OF_RECOMMENDATION - absent
    text = _compare_curves(published, played, metrics, scales) or _compare_improvements(
        published, played, scales
    )
    names = published.final.keys() - NOT_COMPARED - OF_RECOMMENDATION - {RULE} - absent
    if published.final.get(FITTED) is None:  # played before it was recorded
        names -= {FITTED}
    text = text or _compare_finals(published, played, names, scales)
    if published.digest is None or played.history is None or scales != EXACT:
        return text  # a published history has its digest, or it is not read
    # The digest covers the recommendation, too, which may be of an older rule: it is compared for
    # itself.
    if digest_of(cell.id, played.history, published.final) == published.digest:
        return f"the play is the same, but {text}" if text else ""
    return text or "its actions, observations or recommendation, of which only the digest is stored"


def find_other_recommendation(
    published: Record, played: Record, absent: Set[str] = frozenset()
) -> str:
    """Return the first difference in what a cell recommends, or ""."""
    names = OF_RECOMMENDATION - absent
    return _compare_curves(published, played, names, EXACT) or _compare_finals(
        published, played, names, EXACT
    )


def find_false_recommendation(
    published: Record, played: Record, absent: Set[str], scales: Scales
) -> str:
    """Return where the values of a cell's final recommendation are not those of the recommended
    action, or "".
    """
    names = OF_RECOMMENDATION - absent
    text = _compare_finals(published, played, names, scales)
    for name in (
        () if text or not len(published.curve) else sorted(names & {*published.curve.column_names})
    ):
        last = published.curve[name][-1].as_py()
        if not _is_same(last, published.final[name], 0.0):
            return (
                "in the last stored round: "
                f"{describe(METRICS[name].symbol, published.final[name], last)}"
            )
    return text


def find_unstored(published: Record, played: Record, absent: Set[str]) -> frozenset[str]:
    """Return the columns of which nothing is stored, and the play gives something."""
    names = absent & published.final.keys() - NOT_COMPARED - {RULE, FITTED}
    return frozenset(name for name in names if played.final.get(name) is not None)


def is_of_older_rule(final: dict[str, Any]) -> bool:
    """Return whether a cell says that its recommendations were made by an older rule than
    today's.
    """
    rule = final.get(RULE)
    return rule is None or rule < RECOMMENDATION_RULE


def _compare_names(cell: Cell, published: Record) -> str:
    """Return where the rows of a cell say that they are of another one."""
    rule = published.final.get(RULE)
    if rule is not None and rule > RECOMMENDATION_RULE:
        return f"{RULE} is {rule}; this cbobench knows {RECOMMENDATION_RULE}"
    names: dict[str, Any] = {"seed": cell.seed, "horizon": cell.horizon}
    # In a run folder, titles are spelt as when they were played
    if published.improvements is not None:
        names |= {"problem": cell.pair.problem.title, "algorithm": cell.pair.algorithm.title}
    for name, value in names.items():
        values = {published.final[name]}
        for table in (published.curve, published.improvements):
            if table is not None and name in table.column_names:
                values |= {*table[name].to_pylist()}
        if values != {value}:
            return (
                f"its rows have the {name} {show(next(iter(values - {value})))}, its record "
                f"{show(value)}"
            )
    return ""


def _compare_rounds(published: pa.Table, played: pa.Table, scales: Scales) -> str:
    if len(published) != len(played):
        return f"it has {len(played):,} recorded rounds, published {len(published):,}"
    columns = []
    for name, noun in NAMES.items():
        old, new = to_array(published[name]), to_array(played[name])
        if old.shape != new.shape:
            return f"{noun} has the shape {new.shape[1:]}, published {old.shape[1:]}"
        columns.append(
            (noun, old, new, 0.0 if name in ("t", "action", "x") else scales.width(name, 1))
        )
    row, text = _find_earliest(columns)
    return f"from round {played['t'][row].as_py():,} on: {text}" if text else ""


def _compare_curves(published: Record, played: Record, names: Set[str], scales: Scales) -> str:
    """Return where some metrics of the stored rounds differ first, or that the stored rounds are
    others.
    """
    t, stored_t = played.curve["t"].to_numpy(), published.curve["t"].to_numpy()
    # A bundle says itself which rounds it keeps; the digest is of all of them.
    rows = (
        np.isin(t, select_fixed_rounds(t, stored_t.tolist()))
        if published.improvements is not None
        else np.ones(len(t), dtype=bool)
    )
    if not np.array_equal(t[rows], stored_t):
        return (
            f"the stored rounds are others: {len(stored_t):,}, and not the {int(rows.sum()):,} "
            "of the play"
        )
    names = names & {*published.curve.column_names, *played.curve.column_names}
    columns = [
        (
            metric.symbol,
            to_array(published.curve[name]),
            to_array(played.curve[name])[rows],
            scales.width(name, stored_t),
        )
        for name, metric in METRICS.items()
        if name in names
    ]
    return _describe_earliest(columns, stored_t)


def _compare_improvements(published: Record, played: Record, scales: Scales) -> str:
    """Return how the rounds differ in which simple regret fell, all of them."""
    if published.improvements is None:
        return ""
    name = "simple_regret"
    zeros = np.zeros(len(played.curve), dtype=np.int64)
    expected = find_improvements(
        pa.table({"row": zeros, "t": played.curve["t"], name: played.curve[name]})
    )
    stored = published.improvements.sort_by("t")
    t, stored_t = expected["t"].to_numpy(), stored["t"].to_numpy()
    if not np.array_equal(t, stored_t):
        first = min({*t.tolist()} ^ {*stored_t.tolist()}, default=1)
        return (
            f"simple regret falls in {len(t):,} rounds, published {len(stored_t):,}; the first "
            f"other is {first:,}"
        )
    values = to_array(stored[name]), to_array(expected[name])
    return _describe_earliest([(METRICS[name].symbol, *values, scales.width(name, t))], t)


Column = tuple[str, NDArray[Any], NDArray[Any], Any]
"""A noun, published and played values (rows, ...), and by how much they may differ."""


def _find_earliest(columns: Sequence[Column]) -> tuple[int, str]:
    """Return the first row in which columns differ, and how; or any row and ""."""
    earliest = 0, ""
    for noun, old, new, width in columns:
        is_apart = _are_apart(old, new, width)
        rows = np.flatnonzero(is_apart.any(axis=tuple(range(1, is_apart.ndim))))
        if len(rows) and (not earliest[1] or rows[0] < earliest[0]):
            earliest = int(rows[0]), describe(noun, new[rows[0]], old[rows[0]])
    return earliest


def _describe_earliest(columns: Sequence[Column], t: NDArray[np.int64]) -> str:
    """Return in which of the stored rounds (rows,) columns differ first, and how, or ""."""
    row, text = _find_earliest(columns)
    return f"of the stored rounds from round {t[row]:,} on: {text}" if text else ""


def _compare_finals(published: Record, played: Record, names: Set[str], scales: Scales) -> str:
    """Return where some final values differ, the first in the order of the columns, or ""."""
    names = names & played.final.keys()
    for name, old in published.final.items():
        if name in names:
            new = played.final[name]
            if not _is_same(old, new, scales.width(name, published.final["horizon"])):
                noun = METRICS[name].symbol if name in METRICS else name
                return f"in the end: {describe(noun, new, old)}"
    return ""


def _is_same(left: Any, right: Any, width: float) -> bool:
    if equal_or_nan(left, right):
        return True
    if not width or not isinstance(left, float | list) or not isinstance(right, float | list):
        return False
    old, new = (np.asarray(value, dtype=np.float64) for value in (left, right))
    return old.shape == new.shape and not _are_apart(old, new, width).any()


def _are_apart(old: NDArray[Any], new: NDArray[Any], width: Any) -> NDArray[np.bool_]:
    equal = (old == new) | ((old != old) & (new != new))
    return ~(equal | (np.abs(new - old) <= width)) if np.any(width) else ~equal


def describe(noun: str, replayed: Any, published: Any) -> str:
    """Return "f is 1.0, published 1.5 (by 0.5)" for two values, numbers or arrays of them."""
    values = [
        value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for value in (replayed, published)
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


def recompute(
    published: Record, play: Play, chunks: Sequence[Chunk], observed: tuple[Array, Array]
) -> tuple[Record, Scales]:
    """Return what the actions of a cell determine, as a record, and by how much the published
    numbers may differ.

    Args:
        published: with a history.
        play: over; one cell, which played the recorded actions.
        chunks: of it.
        observed: what the problem answered, f (T,) and g (T, m), in the units of tables.
    """
    history = published.history
    assert history is not None, "only cells with a history are asked"
    f, g, f_star, f_plus = (
        np.concatenate([getattr(chunk.metrics, name)[:, 0] for chunk in chunks])
        for name in ("f", "g", "f_star", "f_plus")
    )
    # Metrics follow from the published f and g: those of the problem here may differ in a last bit.
    own_f, own_g = to_array(history["f"]), to_array(history["g"])
    if own_g.shape != g.shape:
        raise CellFailure(f"its history has g of the shape {own_g.shape}, the problem {g.shape}")
    if not play.instances.changes():
        # The references are compared as such; what is computed from the published ones is the same
        # to the last bit.
        f_star, f_plus = (
            stars if published.final[name] is None else np.full_like(stars, published.final[name])
            for name, stars in (("f_star", f_star), ("f_plus", f_plus))
        )
    # Of recommendations only the last one is published with its value.
    recommended = np.full((len(f), 1, 1 + g.shape[1]), np.nan)
    recommended[-1, 0] = _published_value(published.final, g.shape[1])
    violated = np.asarray((own_g > 0).any(axis=1))
    rounds = Rounds(
        1,
        own_f[:, None],
        own_g[:, None],
        f_star[:, None],
        f_plus[:, None],
        violated[:, None],
        recommended,
        play.metrics.moving,
        play.instances.accuracy == np.inf,
    )
    values = {name: metric.running()(rounds)[:, 0] for name, metric in METRICS.items()}
    # Final values as a play writes them, as far as the actions determine them.
    summary = summaries(play)[0]
    final: dict[str, Any] = {name: _none_if_nan(column[-1]) for name, column in values.items()}
    final |= {
        "f_star": summary["f_star"],
        "f_plus": summary["f_plus"],
        **{name: summary[name] for name in OF_PROBLEM},
    }
    final |= {"status": "ok", "error": None}
    feasible_rounds = np.flatnonzero(~violated)
    final |= {"first_feasible": int(feasible_rounds[0]) + 1 if len(feasible_rounds) else None}
    final |= {"longest_streak": _find_longest(violated)}
    final |= _value_recommendation(play, published.final)
    curve = {"t": np.arange(1, len(f) + 1)} | {
        name: pa.array(column) for name, column in values.items()
    }
    columns = {name: history[name] for name in HISTORY} | {"f": pa.array(f), "g": _as_lists(g)}
    columns |= {"observed_f": pa.array(observed[0]), "observed_g": _as_lists(observed[1])}
    played = Record(published.cell, None, pa.table(columns), pa.table(curve), None, final)
    # What is compared exactly elsewhere may differ here by a share of the largest value.
    known_stars = [summary[name] for name in ("f_star", "f_plus") if summary[name] is not None]
    sizes = [np.append(f, known_stars), g, *observed]
    largest = [float(np.abs(size[np.isfinite(size)]).max(initial=0.0)) for size in sizes]
    scales = Scales(
        CLOSE * max(largest[0], largest[2]),
        CLOSE * max(1, g.shape[1]) * max(largest[1], largest[3]),
    )
    return played, scales


def _published_value(final: dict[str, Any], constraints: int) -> Array | float:
    """Return (f, g_1, ..., g_m) of the published recommendation, or NaN."""
    f, g = final["recommended_f"], final["recommended_g"]
    if f is None or g is None:
        return np.nan
    if len(g) != constraints:
        raise CellFailure(f"recommended_g is {show(g)}; the problem has {constraints} constraints")
    return np.array([f, *g], dtype=np.float64)


def published_point(final: dict[str, Any]) -> Actions | None:
    """Return the action (1,) or the point (1, d) that a cell recommends in the end, or None."""
    action, x = final["recommended_action"], final["recommended_x"]
    if action is None and x is None:
        return None
    return np.array([action], dtype=np.intp) if x is None else np.array([x], dtype=np.float64)


def value_recommendation(play: Play, final: dict[str, Any]) -> tuple[dict[str, Any], Scales]:
    """Return what the published recommendation is worth after the last round, as columns, and their
    scales.

    Args:
        play: not begun; one cell.
        final: of the cell. Nothing comes back where its problem does not know f and g at any
            action.
    """
    columns = _value_recommendation(play, final)
    point = published_point(final)
    if point is None or not columns:
        return columns | dict.fromkeys((RECOMMENDED_METRICS if columns else ()), None), Scales()
    play.metrics.rounds = play.horizon - 1
    value = play.instances.values(play.horizon, point[None])
    chunk = play.metrics.add(point[None], value)
    columns |= {name: _none_if_nan(chunk.values[name][0, 0]) for name in RECOMMENDED_METRICS}
    f = [columns["recommended_f"], *chunk.f_star[0]]
    return columns, Scales(
        CLOSE * float(np.nanmax(np.abs(f))), CLOSE * float(np.abs(value[..., 1:]).sum())
    )


def _value_recommendation(play: Play, final: dict[str, Any]) -> dict[str, Any]:
    """Return the noise-free f and g of the published recommendation, as columns, where the problem
    knows them.
    """
    if not play.instances.exact:
        return {}
    point, allowed = published_point(final), play.problem.actions
    if point is None:
        return {"recommended_f": None, "recommended_g": None}
    if isinstance(allowed, Box):
        fits = (
            point.shape == (1, allowed.d)
            and ((point >= allowed.low) & (point <= allowed.high)).all()
        )
    else:
        fits = point.shape == (1,) and NONE < point[0] < allowed.n
    if not fits:
        raise CellFailure(f"{show(point[0].tolist())}, which it recommends, is no action")
    value = play.instances.values(play.horizon, point[None])[0, 0]
    return {
        "recommended_f": float(play.metrics.reported(value[0])),
        "recommended_g": value[1:].tolist(),
    }


def _find_longest(mask: NDArray[np.bool_]) -> int:
    """Return the number of rounds in a row in which something holds, at most."""
    rounds = np.arange(1, len(mask) + 1)
    return int((rounds - np.maximum.accumulate(np.where(mask, 0, rounds))).max())


def _none_if_nan(value: float) -> float | None:
    return None if value != value else float(value)


def _as_lists(values: Array) -> pa.Array:
    return pa.array(values.tolist(), pa.list_(pa.float64()))
