"""How many simulations a run takes of one simulator, at most, and how long they take: said before
any is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cbobench.problems import simulator
from cbobench.problems.simulator import Simulator
from cbobench.words import count_noun, duration


class CellRounds(NamedTuple):
    """Rounds of a cell.

    Attributes:
        horizon: T.
        keep: how many are recorded at most, None for all.
        from_pilot: the first ones, which are points of the pilot.
    """

    horizon: int
    keep: int | None
    from_pilot: int

    @property
    def recorded(self) -> int:
        """How many are recorded."""
        return self.horizon if self.keep is None else min(self.keep, self.horizon)


@dataclass(frozen=True)
class SimulationTotals:
    """Simulations of a run, at most.

    Attributes:
        pilot: of the pilot.
        of_round: of a seed-round and its metrics.
        rounds: of all rounds that are no points of the pilot.
        recommended: of points that were recommended and not played.
        ends: the same with `measure: end`.
        from_pilot: first rounds of every cell that are the pilot's and not simulated again.
        each: seconds that one takes, None if that is not known.
    """

    pilot: int
    of_round: int
    rounds: int
    recommended: int
    ends: int
    from_pilot: int
    each: float | None

    @property
    def most(self) -> int:
        """All of them."""
        return self.pilot + self.rounds + self.recommended

    def describe(self, title: str, workers: int = 1) -> str:
        """A line on the simulations of a problem, by its title, and their time."""
        parts = [f"{self.rounds:,} of the rounds ({self.of_round} each)"]
        if self.recommended:
            fewer = f" ({self.ends:,} with `measure: end`)" if self.ends < self.recommended else ""
            parts.append(
                f"up to {self.recommended:,} of points that are recommended and were not "
                f"played{fewer}"
            )
        first = count_noun(self.from_pilot, "round")
        reused = (
            f", which are the first {first} of every cell and not made again"
            if self.from_pilot
            else ""
        )
        parts.append(f"{self.pilot:,} of the pilot{reused}")
        time = ""
        if self.each is not None:
            each = f"{duration(self.each)}" if self.each >= 1 else f"{1000 * self.each:.1f} ms"
            on_workers = (
                f", {duration(self.most * self.each / workers)} on {workers} workers"
                if workers > 1
                else ""
            )
            time = f"; {each} each: {duration(self.most * self.each)} of work{on_workers}"
        else:
            time = (
                "; how long one takes is known once the pilot has begun, or before if the class "
                "says `takes`"
            )
        return f"simulations of {title}: at most {self.most:,}: {', '.join(parts)}{time}"


def count_simulations(
    problem: Simulator, cells: Mapping[CellRounds, int], each: float | None
) -> SimulationTotals:
    """Return the simulations of some cells of a problem, which need not be prepared.

    Args:
        cells: how many there are of each kind.
        each: seconds that a simulation takes, None if that is not known.
    """
    counts = problem.simulations
    # What is kept of the pilot answers these rounds, where the random numbers do not matter.
    is_kept = not problem.noisy and (each is None or each >= simulator.SLOW)
    return SimulationTotals(
        counts.pilot,
        counts.of_round,
        sum(n * (cell.horizon - cell.from_pilot * is_kept) for cell, n in cells.items())
        * counts.of_round,
        sum(n * counts.beside_rounds(cell.recorded) for cell, n in cells.items()),
        counts.end * sum(cells.values()),
        max(cell.from_pilot for cell in cells) * is_kept,
        each,
    )
