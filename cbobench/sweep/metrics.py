"""Metrics of cells, always from the noise-free f and g; cumulative and exact at every round.

Sums run over rounds one after the other (`cumsum`), so that cutting the horizon into chunks changes no bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.kernels import Array
from cbobench.problems.base import Instances

CUMULATIVE = ("regret", "regret_plus", "violation_hard", "violations", "reward")
METRICS = ("regret", "regret_plus", "violation", "violation_hard", "violations", "reward")


@dataclass(frozen=True)
class ChunkMetrics:
    """Metrics of consecutive rounds: `values[name]` is (rounds, S), cumulative from round 1; f and g are per round."""

    f: Array
    g: Array
    values: dict[str, Array]


class Metrics:
    """Accumulates the metrics of S cells.

    Args:
        instances: the drawn instances of the cells.
    """

    def __init__(self, instances: Instances) -> None:
        self.instances = instances
        replicates, p, n = instances.functions.shape
        self.flat = instances.functions.reshape(-1)
        self.offsets = n * np.arange(replicates * p).reshape(replicates, p)
        self.totals = {name: np.zeros(replicates) for name in CUMULATIVE}
        self.constraint_total = np.zeros((replicates, p - 1))
        self.final = {name: np.zeros(replicates) for name in METRICS}
        self.rounds = 0
        self.first_feasible = np.zeros(replicates, dtype=np.int64)  # 0: never yet
        self.streak = np.zeros(replicates, dtype=np.int64)
        self.longest_streak = np.zeros(replicates, dtype=np.int64)

    def add(self, actions: NDArray[np.intp]) -> ChunkMetrics:
        """Account for the next rounds, `actions` (rounds, S)."""
        played = self.flat.take(self.offsets + actions[:, :, None])  # (rounds, S, 1 + m)
        f, g = played[:, :, 0], played[:, :, 1:]
        excess = np.maximum(g, 0.0)
        violated = (g > 0).any(axis=2)
        steps = {
            "regret": self.instances.f_star - f,
            "regret_plus": self.instances.f_plus - f,
            "violation_hard": excess.sum(axis=2),
            "violations": violated.astype(np.float64),
            "reward": f,
        }
        values = {name: _continue(self.totals[name], step) for name, step in steps.items()}
        constraint_sums = _continue(self.constraint_total, g)
        values["violation"] = np.sqrt((np.maximum(constraint_sums, 0.0) ** 2).sum(axis=2))
        for name in CUMULATIVE:
            self.totals[name] = values[name][-1]
        self.constraint_total = constraint_sums[-1]
        self.final = {name: values[name][-1] for name in METRICS}
        self._streaks(violated)
        self.rounds += len(actions)
        return ChunkMetrics(f, g, values)

    def _streaks(self, violated: NDArray[np.bool_]) -> None:
        feasible = ~violated
        first = np.where(feasible.any(axis=0), feasible.argmax(axis=0) + 1 + self.rounds, 0)
        self.first_feasible = np.where(self.first_feasible > 0, self.first_feasible, first)
        rounds = np.arange(1, len(violated) + 1)[:, None]
        last_feasible = np.maximum.accumulate(np.where(feasible, rounds, 0), axis=0)
        running = rounds - last_feasible + np.where(last_feasible == 0, self.streak, 0)
        self.longest_streak = np.maximum(self.longest_streak, running.max(axis=0))
        self.streak = running[-1]


def _continue(total: Array, steps: Array) -> Array:
    """Running sums of `steps` along the first axis, from `total` on, added strictly one after the other."""
    return np.asarray(np.concatenate([total[None], steps]).cumsum(axis=0)[1:])
