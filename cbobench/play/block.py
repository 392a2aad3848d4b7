"""A block of cells: its start, its rounds as Arrow tables, and a row per finished cell."""

from __future__ import annotations

import copy
import resource
import sys
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import NONE
from cbobench.metrics import METRICS
from cbobench.play.play import Chunk, Play, PlayOptions, draw_instances
from cbobench.problems.base import Drawn, Instances, Problem
from cbobench.results.schema import FITTED, RECOMMENDATION_RULE, RULE, rounds_schema
from cbobench.suite.variants import INITIAL, PARALLEL, canonical

MOST_KEPT = 2**24  # bytes of instances that are kept for the next block

if TYPE_CHECKING:
    from cbobench.suite.cells import Cell, Pair


def start(
    problem: Problem,
    cells: Sequence[Cell],
    horizon: int,
    keep: int | None,
) -> tuple[Play, RoundRows]:
    """Start some cells of a problem and an algorithm. Return the play and the collector of its
    rounds.

    Their parameters may differ where the algorithm lets them vary within a block (`params.param`).

    Args:
        horizon: rounds to play.
        keep: number of recorded rounds, None for all.
    """
    pair = cells[0].pair
    # One object plays all cells: parameters that vary are arrays over them.
    algorithm = params.build_block(
        ALGORITHMS.get(pair.algorithm.name), [cell.pair.algorithm.settings for cell in cells]
    )
    seeds = [cell.seed for cell in cells]

    rows = RoundRows(cells, horizon, keep)
    names = (pair.problem.name, pair.algorithm.name)
    instances = _draw_once(problem, names[0], seeds)
    first, parallel = (pair.algorithm.values.get(key) for key in (INITIAL, PARALLEL))
    # A recommendation counts where its round is recorded.
    options = PlayOptions(
        recommend_after=rows.recorded.tolist(),
        initial=first,
        parallel=parallel,
        instances=instances,
    )
    play = Play(problem, names[0], algorithm, names[1], seeds, horizon, options)
    return play, rows


_last_drawn: tuple[Problem, str, list[int], Instances] | None = None


def _draw_once(problem: Problem, name: str, seeds: list[int]) -> Drawn:
    """Return the instances of some seeds, the last ones again where they are the same: all
    algorithms play them.

    What is kept is never played, because an algorithm may change the arrays that it is given.
    """
    global _last_drawn
    if _last_drawn is not None and _last_drawn[0] is problem and _last_drawn[1:3] == (name, seeds):
        return copy.deepcopy(_last_drawn[3])
    drawn = draw_instances(problem, name, seeds)
    if type(drawn) is Instances and drawn.functions.nbytes <= MOST_KEPT:
        drawn.stars(1, 1)  # computed once, too
        _last_drawn = problem, name, seeds, copy.deepcopy(drawn)
    return drawn


def block_key(pair: Pair) -> tuple[Hashable, ...]:
    """Return what pairs must have in common to play in one block, beside the horizon (see
    `params.shared_values`).
    """
    algorithm = pair.algorithm
    shared = params.shared_values(ALGORITHMS.get(algorithm.name), algorithm.settings)
    played = {key: algorithm.values.get(key) for key in (INITIAL, PARALLEL)}
    return pair.problem.title, algorithm.name, canonical([shared, played])


def summaries(play: Play) -> list[dict[str, Any]]:
    """Return a row for every cell of a finished play, by column of the cells table."""
    metrics = play.metrics
    instances = play.instances
    replicates = play.setting.replicates
    # Cells advance together, so that each has an equal share of the time.
    seconds = play.seconds / replicates
    recommended = _describe_recommendations(play)
    # macOS counts bytes where others count kilobytes
    unit = 2**20 if sys.platform == "darwin" else 2**10
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    f_star, f_plus = metrics.stars

    # Arrays become lists column by column, as blocks of short horizons have a thousand cells.
    numbers = {name: metrics.final[name] for name in METRICS} | {"f_star": f_star, "f_plus": f_plus}
    columns: dict[str, list[Any]] = {name: _none_if_nan(values) for name, values in numbers.items()}
    others = {
        "longest_streak": metrics.longest_streak,
        "redraws": np.broadcast_to(instances.redraws, replicates),
        "positive_dual": play.positive_dual,
        "binds": instances.binds,
        "cap_hits": play.algorithm.cap_hits,
        "failed_fits": play.algorithm.failed_fits,
        # of channels that measure configurations or simulate
        "failed_evaluations": getattr(play.channel, "failed", None),
    }
    for name, values in others.items():
        # not every problem and method has it
        columns[name] = [None] * replicates if values is None else values.tolist()

    declared = play.algorithm.declared_infeasible
    result = []
    for s, cell_values in enumerate(zip(*columns.values(), strict=True)):
        row: dict[str, Any] = dict(zip(columns, cell_values, strict=True))
        # 0 where no round was feasible
        first = int(metrics.first_feasible[s]) or None
        row |= {
            "status": "ok",
            "first_feasible": first,
            "infeasibility_declared": declared is not None and bool(declared[s]),
            FITTED: play.algorithm.fits,
            **recommended[s],
            RULE: RECOMMENDATION_RULE,
            "feasibility_tolerance": float(play.problem.feasibility_tolerance),
            "seconds": seconds,
            "seconds_per_round": seconds / play.horizon,
            "peak_memory_mb": memory,
        }
        result.append(row)
    return result


def _describe_recommendations(play: Play) -> list[dict[str, Any]]:
    """Return what each cell recommends in the end, by column; nothing if it recommends no
    action.
    """
    assert play.recommendations.last is not None, "it is asked after the last round"
    actions, values = play.recommendations.last
    place = "recommended_x" if actions.ndim == 2 else "recommended_action"
    f = play.metrics.reported(values[:, 0])
    result = []
    for action, reward, g in zip(actions, f, values[:, 1:], strict=True):
        none = np.isnan(action).all() if actions.ndim == 2 else action == NONE
        row = {place: action.tolist()}
        # A recommendation that is not evaluated has no noise-free values.
        if not np.isnan(reward):
            row |= {"recommended_f": float(reward), "recommended_g": g.tolist()}
        result.append({} if none else row)
    return result


def _none_if_nan(values: NDArray[Any]) -> list[float | None]:
    """Return numbers, with None for NaN (R₊ on boxes)."""
    return [None if value != value else value for value in values.astype(float).tolist()]


def recorded_rounds(horizon: int, keep: int | None) -> NDArray[np.int64]:
    """Return the recorded rounds: all, or `keep` evenly spread ones that include the last."""
    if keep is None or horizon <= keep:
        return np.arange(1, horizon + 1)
    # i T / keep in integers, rounded up
    return np.array([-(-i * horizon // keep) for i in range(1, keep + 1)])


class RoundRows:
    """Collects the recorded rounds of S cells and returns them as tables, cell by cell.

    Args:
        cells: the S cells.
        horizon: T.
        keep: number of recorded rounds, None for all.
    """

    FLUSH = 250_000  # rows per row group: small row groups read as slowly as small files

    def __init__(self, cells: Sequence[Cell], horizon: int, keep: int | None) -> None:
        self.cells = list(cells)
        self.recorded = recorded_rounds(horizon, keep)
        self.pending: list[dict[str, NDArray[np.generic]]] = []
        self.waiting = 0
        self.written = 0
        self.schema = rounds_schema(complete=len(self.recorded) == horizon)

    @property
    def expected(self) -> int:
        """Total number of rows."""
        return len(self.cells) * len(self.recorded)

    def add(self, chunk: Chunk) -> None:
        """Add the recorded rounds of a chunk."""
        last = chunk.first + len(chunk.actions) - 1
        rounds = self.recorded[(self.recorded >= chunk.first) & (self.recorded <= last)]
        if len(rounds) == 0:
            return
        rows = rounds - chunk.first
        place = "action" if chunk.actions.ndim == 2 else "x"
        part: dict[str, NDArray[np.generic]] = {
            "t": rounds,
            place: chunk.actions[rows],
            "observed_f": chunk.observed_f[rows],
            "observed_g": chunk.observed_g[rows],
            "f": chunk.metrics.f[rows],
            "g": chunk.metrics.g[rows],
            "f_star": chunk.metrics.f_star[rows],
            "f_plus": chunk.metrics.f_plus[rows],
        }
        part |= {
            name: chunk.metrics.values[name][rows] for name in METRICS if name in self.schema.names
        }
        if chunk.duals is not None:
            part["dual"] = chunk.duals[rows]
        self.pending.append(part)
        self.waiting += len(rounds) * len(self.cells)

    @property
    def full(self) -> bool:
        return self.waiting >= self.FLUSH

    def table(self) -> pa.Table:
        """Return the pending rows as a table, sorted by cell and round, and clear them."""
        self.written += self.waiting
        parts = self.pending
        self.pending = []
        self.waiting = 0
        if not parts:
            return self.schema.empty_table()

        # Rounds were added round by round, and are stored cell by cell.
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        rounds = len(joined["t"])
        replicates = len(self.cells)
        columns: dict[str, pa.Array] = {"t": pa.array(np.tile(joined["t"], replicates))}
        for name, values in joined.items():
            if name == "t":
                continue
            by_cell = np.ascontiguousarray(values.swapaxes(0, 1))
            nullable = name not in METRICS or METRICS[name].nullable  # observed later, or unknown
            if values.ndim == 3:
                columns[name] = _lists(by_cell)
            else:
                columns[name] = pa.array(by_cell.reshape(-1), from_pandas=nullable)

        # Texts go by codes, so that each is converted once and not for every row.
        cell_index = np.repeat(np.arange(replicates, dtype=np.int32), rounds)
        for name, texts in _names(self.cells).items():
            columns[name] = pa.DictionaryArray.from_arrays(cell_index, pa.array(texts)).cast(
                pa.string()
            )
        columns["seed"] = pa.array(np.array([cell.seed for cell in self.cells])[cell_index])

        # What this problem or method does not have is null.
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
    """Convert (S, rounds, m) to S * rounds lists of m numbers."""
    length = values.shape[2]
    rows = values.shape[0] * values.shape[1]
    if length:
        offsets = np.arange(0, (rows + 1) * length, length, dtype=np.int32)
    else:
        offsets = np.zeros(rows + 1, np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(values.reshape(-1), from_pandas=True)
    )
