"""The cells of a block: how they begin, and what is known of each when they are played."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.metrics import METRICS
from cbobench.play.play import Play
from cbobench.play.rows import RoundRows
from cbobench.problems.base import Problem
from cbobench.suite.variants import INITIAL, PARALLEL

if TYPE_CHECKING:
    from cbobench.suite.cells import Cell


def start(problem: Problem, cells: Sequence[Cell], horizon: int, keep: int | None) -> tuple[Play, RoundRows]:
    """A fresh play of some cells of a pair, and what collects its rounds.

    Args:
        horizon: rounds to play.
        keep: how many rounds are recorded, None for all.
    """
    pair = cells[0].pair
    algorithm = params.build(ALGORITHMS.get(pair.algorithm.name), pair.algorithm.settings)
    seeds = [cell.seed for cell in cells]
    rows = RoundRows(cells, horizon, keep)
    names = (pair.problem.name, pair.algorithm.name)
    first, parallel = (pair.algorithm.values.get(key) for key in (INITIAL, PARALLEL))
    play = Play(problem, names[0], algorithm, names[1], seeds, horizon, rows.kept.tolist(), first, parallel)
    return play, rows


def summaries(play: Play) -> list[dict[str, Any]]:
    """What is known of every cell of a finished play, in the columns of the cells table."""
    metrics, instances, replicates = play.metrics, play.instances, play.setting.replicates
    seconds = play.seconds / replicates
    declared, hits = play.algorithm.declared_infeasible, play.algorithm.cap_hits
    positive, binds = play.positive_dual, instances.binds
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = []
    for s in range(replicates):
        row: dict[str, Any] = {name: _known(metrics.final[name][s]) for name in METRICS}
        first = int(metrics.first_feasible[s])
        row |= {
            "status": "ok",
            "f_star": _known(metrics.stars[0, s]),
            "f_plus": _known(metrics.stars[1, s]),
            "first_feasible": first if first > 0 else None,
            "longest_streak": int(metrics.longest_streak[s]),
            "positive_dual": None if positive is None else float(positive[s]),
            "binds": None if binds is None else bool(binds[s]),
            "infeasibility_declared": declared is not None and bool(declared[s]),
            "cap_hits": None if hits is None else int(hits[s]),
            "redraws": int(instances.redraws[s]),
            "feasibility_tolerance": float(play.problem.feasibility_tolerance),
            "seconds": seconds,
            "seconds_per_round": seconds / play.horizon,
            "peak_memory_mb": memory,
        }
        result.append(row)
    return result


def _known(value: float) -> float | None:
    """A number, or nothing where it is not known (R₊ on boxes)."""
    return None if np.isnan(value) else float(value)
