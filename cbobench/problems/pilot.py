"""How far the pilot of a simulator is, on how many workers it runs, and whether its runs drew random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from cbobench.gp.kernels import RIDGE, Array
from cbobench.problems.base import Actions
from cbobench.problems.simulated import PilotFacts, SimulationResult
from cbobench.words import count_noun, duration

LONG_PILOT = 5.0  # seconds from which on a pilot is announced, and runs on all workers
REPORT_SECONDS = 30.0  # between two lines on how far a pilot is


class Pool(Protocol):
    """Runs simulations on several workers.

    Attributes:
        workers: how many.
    """

    workers: int

    def run(
        self, simulator: Any, x: Array, gens: Sequence[np.random.Generator]
    ) -> Iterator[tuple[int, SimulationResult]]:
        """Yield the number of each point (k, d) and its simulation, as they come.

        Raises:
            CbobenchError: a simulation whose result is of no use.
        """


POOL: ContextVar[Pool | None] = ContextVar("POOL", default=None)
"""Where long pilots run; None: in this process."""


class Meter:
    """Announces a pilot once one of its simulations must be made, and says from time to time how long the rest takes.

    Args:
        name: of the simulator.
        total: simulations of the pilot.
        seconds: that one takes.
        say: called with one line.
        pool: where they run, None for this process.
        count: how many have been made.

    Attributes:
        drew: whether a simulation drew random numbers (see `drawn_from`).
    """

    def __init__(
        self,
        name: str,
        total: int,
        seconds: float = 0.0,
        say: Callable[[str], None] = lambda text: None,
        pool: Pool | None = None,
        count: int = 0,
    ) -> None:
        self.name, self.total, self.count, self.say = name, total, count, say
        self.first, self.seconds = count, (total - count) * seconds
        self.pool = pool if self.seconds > LONG_PILOT else None
        self.began: float | None = None
        self.last_report, self.drew = 0.0, False

    def begin(self, timestamp: float) -> None:
        """Announce the pilot, if it is long and has not been announced; `timestamp` is monotonic time."""
        if self.began is not None:
            return
        self.began = self.last_report = timestamp
        if self.seconds > LONG_PILOT:
            workers = 1 if self.pool is None else min(self.pool.workers, self.total - self.count)
            on_workers = "" if workers == 1 else f" on {count_noun(workers, 'worker')}"
            wait = duration(self.seconds / workers)
            self.say(f"{self.name}: a pilot of {count_noun(self.total, 'simulation')}{on_workers}, about {wait}")

    def add(self, result: SimulationResult, timestamp: float) -> None:
        """Count a simulation."""
        self.count, self.drew = self.count + 1, self.drew or result.drew
        if self.began is not None and timestamp - self.last_report >= REPORT_SECONDS and self.count < self.total:
            self.last_report = timestamp
            left = (timestamp - self.began) / (self.count - self.first) * (self.total - self.count)
            self.say(f"{self.name}: {self.count} of {self.total} pilot simulations made, about {duration(left)} left")


METER: ContextVar[Meter | None] = ContextVar("METER", default=None)
"""Of the pilot that runs now."""


PILOT = "pilot"
"""Name of the initial design that is made of a pilot's points."""


def pilot_actions(simulator: Any, count: int) -> Actions:
    """The first points of a simulator's pilot as actions: (count, d), or (count,) indices; the same for every seed."""
    points: Array = simulator.pilot_design()[0][:count]
    return points if simulator.inputs is None else points[:, 0].astype(np.intp)


def drawn_from(gens: Sequence[np.random.Generator]) -> tuple[Any, ...]:
    """Return the states of some generators and of the global ones; equal states mean that none of them was used."""
    name, keys, place, *gauss_state = np.random.get_state()  # noqa: NPY002 - it is looked at
    states = [str(gen.bit_generator.state) for gen in gens]
    return states, random.getstate(), np.asarray(keys).tobytes(), name, place, gauss_state


def estimate_facts(
    runs: Sequence[Array],
    kernel: Array,
    is_scaled: bool,
    counts_as: Array,
    *,
    points: int,
    seconds: float,
    failures: str,
) -> PilotFacts:
    """What a pilot says of a simulator.

    Args:
        runs: two runs at each of its n points that succeeded, (n, 1 + m) each; without noise twice the same.
        kernel: of these points, (n, n).
        is_scaled: whether the units played are those of `Simulator.scaled`.
        counts_as: what a failed simulation counts as, in the simulator's units, (1 + m,).
        points, seconds, failures: as of `PilotFacts`.
    """
    mean, apart = (runs[0] + runs[1]) / 2, runs[1] - runs[0]
    spread = mean.std(axis=0)
    shift, divisor = np.zeros(mean.shape[1]), np.ones(mean.shape[1])
    if is_scaled:
        shift[0], divisor = mean[:, 0].mean(), np.where(spread > 0, spread, 1.0)
    noise = np.sqrt((apart**2).mean(axis=0) / 2) / divisor
    played = (mean - shift) / divisor
    ridge = np.maximum(RIDGE, noise**2 / 2)
    norm = np.empty(mean.shape[1])
    for j, (values, least) in enumerate(zip(played.T, ridge, strict=True)):
        weights = np.linalg.solve(kernel + least * np.eye(len(kernel)), values)
        norm[j] = np.sqrt(max(0.0, float(weights @ kernel @ weights)))
    worst = played[:, 1:].max(axis=1, initial=-np.inf)
    slater = min(1.0, -float(worst.min()))
    units_and_bounds = shift, divisor, norm, noise, np.abs(played).max(axis=0)
    return PilotFacts(
        *units_and_bounds,
        slater=slater if slater > 0 else np.nan,
        share=float((worst <= 0).mean()),
        points=points,
        seconds=seconds,
        failed=(counts_as - shift) / divisor,
        failures=failures,
    )
