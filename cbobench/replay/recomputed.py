"""What a cell's recorded actions determine, whatever its method computes: observations, f and g, metrics and finals.

The problem at hand is asked at the recorded actions: f, g, and the observations, whose noise has a stream of its own.
Metrics are computed from the published f and g, once these are the problem's, because a last bit decides whether a
point on the boundary is feasible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.algorithms.base import NONE
from cbobench.errors import CellFailure, show
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array
from cbobench.metrics import METRICS, Rounds
from cbobench.play.block import summaries
from cbobench.play.play import Chunk, Play
from cbobench.problems.base import Actions
from cbobench.replay.differences import CLOSE, OF_RECOMMENDATION, Scales, to_array
from cbobench.results.history import HISTORY, Record

OF_PROBLEM = ("binds", "redraws", "failed_evaluations", "feasibility_tolerance")
"""Columns of cells that the problem and the actions determine."""
RECOMMENDED_METRICS = sorted(OF_RECOMMENDATION & {*METRICS})


def recompute(
    published: Record, play: Play, chunks: Sequence[Chunk], observed: tuple[Array, Array]
) -> tuple[Record, Scales]:
    """Return what the actions of a cell determine, as a record, and by how much the published numbers may differ.

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
    own_f, own_g = to_array(history["f"]), to_array(history["g"])
    if own_g.shape != g.shape:
        raise CellFailure(f"its history has g of the shape {own_g.shape}, the problem {g.shape}")
    if not play.instances.changes():
        # The references are compared as such; what is computed from the published ones is the same to the last bit.
        f_star, f_plus = (
            stars if published.final[name] is None else np.full_like(stars, published.final[name])
            for name, stars in (("f_star", f_star), ("f_plus", f_plus))
        )
    recommended = np.full((len(f), 1, 1 + g.shape[1]), np.nan)
    value = _published_value(published.final, g.shape[1])
    if value is not None:
        recommended[-1, 0] = value
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
    summary = summaries(play)[0]
    final: dict[str, Any] = {name: _none_if_nan(column[-1]) for name, column in values.items()}
    final |= {"f_star": summary["f_star"], "f_plus": summary["f_plus"], **{name: summary[name] for name in OF_PROBLEM}}
    final |= {"status": "ok", "error": None}
    final |= {"first_feasible": _find_first(~violated), "longest_streak": _find_longest(violated)}
    final |= _value_recommendation(play, published.final)
    curve = {"t": np.arange(1, len(f) + 1)} | {name: pa.array(column) for name, column in values.items()}
    columns = {name: history[name] for name in HISTORY} | {"f": pa.array(f), "g": _as_lists(g)}
    columns |= {"observed_f": pa.array(observed[0]), "observed_g": _as_lists(observed[1])}
    played = Record(published.cell, None, pa.table(columns), pa.table(curve), None, final)
    sizes = [np.append(f, [*published_stars(summary)]), g, *observed]
    largest = [float(np.abs(size[np.isfinite(size)]).max(initial=0.0)) for size in sizes]
    scales = Scales(CLOSE * max(largest[0], largest[2]), CLOSE * max(1, g.shape[1]) * max(largest[1], largest[3]))
    return played, scales


def published_stars(summary: dict[str, Any]) -> list[float]:
    """Return the references of regret that are known."""
    return [summary[name] for name in ("f_star", "f_plus") if summary[name] is not None]


def _published_value(final: dict[str, Any], constraints: int) -> Array | None:
    """Return (f, g_1, ..., g_m) of the published recommendation, or None."""
    f, g = final["recommended_f"], final["recommended_g"]
    if f is None or g is None:
        return None
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
    """Return what the published recommendation is worth after the last round, as columns, and their scales.

    Args:
        play: not begun; one cell.
        final: of the cell. Nothing comes back where its problem does not know f and g at any action.
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
    return columns, Scales(CLOSE * float(np.nanmax(np.abs(f))), CLOSE * float(np.abs(value[..., 1:]).sum()))


def _value_recommendation(play: Play, final: dict[str, Any]) -> dict[str, Any]:
    """Return the noise-free f and g of the published recommendation, as columns, where the problem knows them."""
    if not play.instances.exact:
        return {}
    point, allowed = published_point(final), play.problem.actions
    if point is None:
        return {"recommended_f": None, "recommended_g": None}
    if isinstance(allowed, Box):
        fits = point.shape == (1, allowed.d) and ((point >= allowed.low) & (point <= allowed.high)).all()
    else:
        fits = point.shape == (1,) and NONE < point[0] < allowed.n
    if not fits:
        raise CellFailure(f"{show(point[0].tolist())}, which it recommends, is no action")
    value = play.instances.values(play.horizon, point[None])[0, 0]
    return {"recommended_f": float(play.metrics.reported(value[0])), "recommended_g": value[1:].tolist()}


def _find_first(mask: NDArray[np.bool_]) -> int | None:
    """Return the first round, from 1 on, in which something holds."""
    return int(mask.argmax()) + 1 if mask.any() else None


def _find_longest(mask: NDArray[np.bool_]) -> int:
    """Return the number of rounds in a row in which something holds, at most."""
    rounds = np.arange(1, len(mask) + 1)
    return int((rounds - np.maximum.accumulate(np.where(mask, 0, rounds))).max())


def _none_if_nan(value: float) -> float | None:
    return None if value != value else float(value)


def _as_lists(values: Array) -> pa.Array:
    return pa.array(values.tolist(), pa.list_(pa.float64()))
