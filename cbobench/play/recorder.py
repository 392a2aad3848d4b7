"""Records the metrics of S cells during the play, from the noise-free f and g."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array
from cbobench.metrics import METRICS, Rounds
from cbobench.problems.base import Actions, Drawn
from cbobench.problems.instances import PLAYED


@dataclass(frozen=True)
class ChunkMetrics:
    """Metrics of consecutive rounds: `values[name]` is (rounds, S), from round 1 on; the others are
    per round.
    """

    f: Array
    g: Array
    f_star: Array
    f_plus: Array
    values: dict[str, Array]


class Recorder:
    """Accumulates the metrics of S cells.

    Args:
        instances: the drawn instances of the cells.
        horizon: T, which decides whether functions move during the play; None counts all their
            moves.

    Attributes:
        final: every metric after the last round, (S,) each.
        first_feasible: the first feasible round, 0 before there is one, (S,).
        longest_streak: most violated rounds in a row, (S,).
    """

    def __init__(self, instances: Drawn, horizon: int | None = None) -> None:
        self.instances = instances
        self.moving = any(horizon is None or t < horizon for t, _ in instances.changes())
        replicates = len(instances.noise)
        self.running = {name: metric.running() for name, metric in METRICS.items()}
        self.final = {name: np.zeros(replicates) for name in METRICS}
        self.star_totals = np.zeros((2, replicates))
        self.rounds = 0
        self.first_feasible = np.zeros(replicates, dtype=np.int64)
        self.streak = np.zeros(replicates, dtype=np.int64)
        self.longest_streak = np.zeros(replicates, dtype=np.int64)

    def add(self, actions: Actions, recommended: Array | None = None) -> ChunkMetrics:
        """Add the next rounds.

        Args:
            actions: (rounds, S[, d]).
            recommended: as in `Rounds`; None if no recommendation was requested.

        Raises:
            CellFailure: a feasible action beats the stored optimum, so the optimum is wrong.
        """
        # What is refused here is the fault of the problem, whose optimum or functions are wrong.
        first = self.rounds + 1
        played = self.instances.values(first, actions)  # (rounds, S, 1 + m)
        if not np.isfinite(played).all():
            t, s, j = np.argwhere(~np.isfinite(played))[0]
            noun = "f" if j == 0 else f"g_{j}"
            fault = f"{noun} is {played[t, s, j]:g}"
            raise CellFailure(
                f"round {first + t}: {fault} at the action of replicate {s}; it must be finite"
            )

        f_star, f_plus = self.instances.stars(first, len(actions))
        f = played[:, :, 0]
        g = played[:, :, 1:]
        violated = np.asarray((g > 0).any(axis=2))
        accuracy = self.instances.accuracy
        # never where f_star is NaN
        impossible = ~violated & (f - f_star > accuracy * (1 + np.abs(f_star)) + 1e-12)
        if impossible.any():
            t, s = np.argwhere(impossible)[0]
            raise CellFailure(
                f"round {first + t}: a feasible action beats the stored optimum {f_star[t, s]:.10g}"
            )

        # Metrics of recommendations are NaN where none was asked for.
        if recommended is None:
            recommended = np.full_like(played, np.nan)

        # Rewards are played in units of order 1, and from here on in those of tables.
        f = self.reported(f)
        f_star = self.reported(f_star)
        f_plus = self.reported(f_plus)
        self.star_totals += [
            np.concatenate([np.zeros_like(s[:1]), s]).cumsum(axis=0)[-1] for s in (f_star, f_plus)
        ]
        if self.instances.units != PLAYED:
            recommended = np.concatenate(
                [self.reported(recommended[..., :1]), recommended[..., 1:]], axis=-1
            )
        rounds = Rounds(
            first=first,
            f=f,
            g=g,
            f_star=f_star,
            f_plus=f_plus,
            violated=violated,
            recommended=recommended,
            moving=self.moving,
            beatable=accuracy == np.inf,
        )

        # A metric of another shape would be broadcast without a word.
        values = {name: running(rounds) for name, running in self.running.items()}
        for name, after in values.items():
            if np.shape(after) != f.shape:
                raise CellFailure(
                    f"the metric {name} has shape {np.shape(after)}; it must be (rounds, S), "
                    f"here {f.shape}"
                )

        self.final = {name: after[-1] for name, after in values.items()}
        self._streaks(violated)
        self.rounds += len(actions)
        return ChunkMetrics(f=f, g=g, f_star=f_star, f_plus=f_plus, values=values)

    @property
    def stars(self) -> Array:
        """Rewards of the best feasible action and the best policy, (2, S); means over the rounds if
        they move.
        """
        if self.instances.changes():
            return self.star_totals / max(1, self.rounds)
        return np.stack([self.reported(star[0]) for star in self.instances.stars(1, 1)])

    def reported(self, f: Array) -> Array:
        """Convert rewards to the units of tables."""
        zero, unit = self.instances.units
        if (zero, unit) == PLAYED:
            return f
        return zero + unit * f

    def _streaks(self, violated: NDArray[np.bool_]) -> None:
        feasible = ~violated
        first = np.where(feasible.any(axis=0), feasible.argmax(axis=0) + 1 + self.rounds, 0)
        self.first_feasible = np.where(self.first_feasible > 0, self.first_feasible, first)
        rounds = np.arange(1, len(violated) + 1)[:, None]
        last_feasible = np.maximum.accumulate(np.where(feasible, rounds, 0), axis=0)
        # A streak that began in an earlier chunk goes on until the first feasible round.
        running = rounds - last_feasible + np.where(last_feasible == 0, self.streak, 0)
        self.longest_streak = np.maximum(self.longest_streak, running.max(axis=0))
        self.streak = running[-1]
