"""Problems of which only a simulator is known: observed f and g at a point, with noise or without, and no optimum.

See `cbobench.problems.simulated` for what metrics are then of.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any, ClassVar

import numpy as np

from cbobench.errors import CbobenchError, CellFailure, Misuse, one_line
from cbobench.gp.box import Box, sobol
from cbobench.gp.kernels import RIDGE, Array, StationaryName
from cbobench.params import param, state
from cbobench.problems.base import Ability, Channel, Drawn, Problem
from cbobench.problems.channels import DELAY, delayed
from cbobench.problems.simulated import Known, Simulated, Simulation
from cbobench.rng import Streams, generator
from cbobench.words import counted

LATEST: ContextVar[float] = ContextVar("LATEST", default=np.inf)
"""When, by `monotonic`, a pilot is to end before it is over: that of a dry run, with which nothing is played."""


@dataclass(kw_only=True)
class Simulator(Problem):
    """Base of simulators on a box. Subclasses give `low`, `high`, `m` and `simulate` (or `simulate_many`).

    Regret is against `target` (a reward that would do), or against the value at `best_known` (a feasible point), never
    against the best of a run; with neither there is no regret, and tables show the best feasible value instead.

    What learners may know (spread, noise, bounds on norms, margin) is estimated from a pilot of simulations that no
    method is told; it is run once, when a suite is read.

    Class attributes:
        low, high: corners of the box.
        m: how many constraints.
        noisy: whether two generators may give different values.
        target: the reward that regret is against, in the simulator's units, or None.
        best_known: the best feasible point that is known, or None.
    """

    low: ClassVar[tuple[float, ...]]
    high: ClassVar[tuple[float, ...]]
    m: ClassVar[int] = 1
    noisy: ClassVar[bool] = True
    target: ClassVar[float | None] = None
    best_known: ClassVar[tuple[float, ...] | None] = None

    repeats: int = param(10, "simulations per point whose mean metrics use; 0: the observed values", at_least=0)
    pilot: int = param(64, "simulations from which is estimated what learners may know", at_least=8, at_most=8192)
    scaled: bool = param(True, "shift f to mean 0, divide f and every g_j by their standard deviations in the pilot")
    kernel: StationaryName = param("matern52", "kernel of the learners' models, on the box scaled to the unit cube")
    lengthscale: float = param(0.3, "its lengthscale, in units of the sides", at_least=1e-4, at_most=1e4)
    candidates: int = param(
        1024, "points at which acquisition functions are first evaluated", at_least=16, at_most=65536
    )
    delay: float | None = param(None, DELAY, above=0, at_most=1e9, quiet=True)

    known: Known = state()

    @classmethod
    def facts(cls) -> dict[str, str]:
        actions = f"box, d = {len(cls.low)}"
        return {"actions": actions, "constraints": str(cls.m), "feasible": "not known", "best": "not known"}

    def simulate(self, x: Array, gen: np.random.Generator) -> Any:
        """One run at a point (d,): observed (f, g_1, ..., g_m); maximise f, feasible where every g_j <= 0.

        All randomness comes from `gen`.
        """
        raise self.lacks("simulate(self, x, gen)", "return [f, g_1, ..., g_m] observed at x (d,), noise drawn from gen")

    def simulate_many(self, x: Array, gens: Sequence[np.random.Generator]) -> Any:
        """Runs at points (k, d), one generator each: (k, 1 + m). A row must not depend on the others."""
        return [self.simulate(one, gen) for one, gen in zip(x, gens, strict=True)]

    def validate(self) -> None:
        self.check_corners()
        if self.target is not None and self.best_known is not None:
            raise Misuse(f"{type(self).__name__} has a target and a best_known; regret is against one of them")
        number = isinstance(self.target, int | float | np.number)
        if self.target is not None and not (number and np.isfinite(self.target)):
            raise Misuse(f"target is {self.target!r}; it must be a finite number, or None for no regret")
        if self.best_known is not None and not self._inside(np.asarray(self.best_known, dtype=np.float64)):
            raise Misuse(
                f"best_known is {self.best_known}, which is no point of the box from {self.low} to {self.high}"
            )

    def _inside(self, x: Array) -> bool:
        return x.shape == (len(self.low),) and bool(((x >= self.low) & (x <= self.high)).all())

    def observe(self, x: Array, gens: Sequence[np.random.Generator]) -> Array:
        """Checked runs at points (k, d), in the simulator's units, (k, 1 + m).

        Raises:
            CellFailure: the simulator failed, or gave something else.
        """
        where = f"{type(self).__name__}: simulate"
        try:
            found = np.asarray(self.simulate_many(x, gens), dtype=np.float64)
        except CbobenchError:
            raise
        except Exception as error:  # a user's simulator may raise anything
            raise CellFailure(f"{where} fails at x = {x[0].tolist()}: {one_line(error)}") from error
        if found.shape != (len(x), 1 + self.m):
            each = f"{found.shape[1:]}" if found.shape[:1] == (len(x),) else f"{found.shape} for {len(x)} points"
            raise CellFailure(f"{where} gives shape {each}; it must be ({1 + self.m},): f and m = {self.m} constraints")
        wrong = ~np.isfinite(found).all(axis=1)
        if wrong.any():
            i = int(wrong.argmax())
            fix = "values must be finite: of a run that fails, return a low f and a g_j above 0"
            raise CellFailure(f"{where} gives {found[i].tolist()} at x = {x[i].tolist()}; {fix}")
        return found

    def prepare(self, data: Any) -> None:
        """Runs the pilot, and holds the simulator against what it says of itself.

        Raises:
            Misuse: randomness that is not the generator's, noise where there should be none.
        """
        try:
            self.known = self._pilot()
        except CellFailure as error:
            raise Misuse(str(error)) from error
        if self.best_known is not None and monotonic() < LATEST.get():
            x = np.tile(np.array(self.best_known, dtype=np.float64), (max(1, self.repeats) if self.noisy else 1, 1))
            g = self.observe(x, [self._generator("best", i) for i in range(len(x))]).mean(axis=0)[1:]
            if (g > 0).any():
                j = int(g.argmax())
                there = f"the mean of {counted(len(x), 'simulation')} there has g_{j + 1} = {g[j]:.6g}"
                raise Misuse(f"best_known is not feasible: {there}; give a point where every g_j <= 0, or a target")

    def _generator(self, role: str, i: int) -> np.random.Generator:
        return generator("simulator", type(self).__qualname__, role, i)

    def _pilot(self) -> Known:
        points = self.box.scale(sobol(self.box.d, self.pilot_points))
        began = monotonic()
        again = self.observe(points[:1], [self._generator("pilot 0", 0)])
        seconds = monotonic() - began
        if (left := LATEST.get() - monotonic()) < 2 * len(points) * seconds:
            points = points[: max(2, int(left / (2 * seconds)))]
        began = monotonic()
        runs = [self.observe(points, [self._generator(f"pilot {k}", i) for i in range(len(points))]) for k in range(2)]
        seconds = (monotonic() - began) / (2 * len(points))
        if not np.array_equal(again[0], runs[0][0]):
            fix = "draw from the generator it is given, and from nothing else (np.random is shared by all)"
            raise Misuse(f"{type(self).__name__}: simulate gives other values for an equal generator; {fix}")
        if not self.noisy and not np.array_equal(runs[0], runs[1]):
            raise Misuse(
                f"{type(self).__name__}: noisy is False, but simulate depends on its generator; say noisy = True"
            )
        mean, apart = (runs[0] + runs[1]) / 2, runs[1] - runs[0]
        spread = mean.std(axis=0)
        shift, divisor = np.zeros(1 + self.m), np.ones(1 + self.m)
        if self.scaled:
            shift[0], divisor = mean[:, 0].mean(), np.where(spread > 0, spread, 1.0)
        noise = np.sqrt((apart**2).mean(axis=0) / 2) / divisor
        played = (mean - shift) / divisor
        kernel = self.box.kernel(sobol(self.box.d, len(points)), sobol(self.box.d, len(points)))
        ridge = np.maximum(RIDGE, noise**2 / 2)
        norm = np.empty(1 + self.m)
        for j, (values, least) in enumerate(zip(played.T, ridge, strict=True)):
            weights = np.linalg.solve(kernel + least * np.eye(len(kernel)), values)
            norm[j] = np.sqrt(max(0.0, float(weights @ kernel @ weights)))
        worst = played[:, 1:].max(axis=1, initial=-np.inf)
        slater = min(1.0, -float(worst.min()))
        sup = np.abs(played).max(axis=0)
        share = float((worst <= 0).mean())
        return Known(shift, divisor, norm, noise, sup, slater if slater > 0 else np.nan, share, len(points), seconds)

    @property
    def pilot_points(self) -> int:
        """How many points a whole pilot has: where there is noise, two simulations of each count."""
        return self.pilot // (2 if self.noisy else 1)

    @property
    def cut_short(self) -> bool:
        """Whether a dry run had no time for the whole pilot."""
        return self.known.points < self.pilot_points

    @property
    def simulations(self) -> tuple[int, int]:
        """How many a pilot makes, and how many a seed-round: its own, and those that its metrics average."""
        return 1 + 2 * self.pilot_points, 1 + self.repeats * self.noisy

    def note(self) -> str:
        known = self.known
        parts = [f"g in units of {', '.join(f'{v:.4g}' for v in known.divisor[1:])}"] * (self.scaled and self.m > 0)
        if self.target is not None:
            parts.append(f"regret is against the target {self.target:g}, simple regret 0 once it is reached")
        elif self.best_known is not None:
            parts.append("regret is against the best known point, simple regret 0 once it is reached")
        else:
            parts.append("no optimum is known, so there is no regret")
        if self.noisy:
            means = f"means of {counted(self.repeats, 'simulation')} at each point, of streams of their own"
            parts.append(f"metrics are of {means if self.repeats else 'observed values, with their noise'}")
        return "; ".join(parts)

    def offers(self) -> frozenset[Ability]:
        lacking = {"a known optimum"} if self.best_known is None else set()
        return super().offers() - lacking - ({"feedback at once"} if self.delay is not None else set())

    @cached_property
    def box(self) -> Box:
        low, high = (np.array(side, dtype=np.float64) for side in (self.low, self.high))
        return Box(low, high, self.kernel, self.lengthscale, self.candidates)

    @property
    def actions(self) -> Box:
        return self.box

    @property
    def constraints(self) -> int:
        return self.m

    def runs(self, x: Array, gens: Sequence[np.random.Generator]) -> Array:
        """`observe` in the units played."""
        return (self.observe(x, gens) - self.known.shift) / self.known.divisor

    def known_instance(self) -> Drawn:
        return self.draw([np.random.default_rng(0)])

    def draw(self, generators: Sequence[np.random.Generator]) -> Drawn:
        count = max(1, self.repeats) if self.noisy else 1
        scenarios = [gen.bit_generator.seed_seq.spawn(count) for gen in generators]  # type: ignore[attr-defined]
        point = None if self.best_known is None else np.array(self.best_known, dtype=np.float64)
        target = None if self.target is None else float((self.target - self.known.shift[0]) / self.known.divisor[0])
        observed = self.noisy and not self.repeats
        return Simulated(self.runs, self.known, scenarios, observed, point, target, self.noisy)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        assert isinstance(instances, Simulated)
        return delayed(Simulation(instances, streams), self.delay, streams, 1 + self.m)
