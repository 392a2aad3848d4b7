"""Problems given by a simulator: f and g observed at a point, with or without noise, and no known optimum.

Metrics are of what the simulator says where it has no noise. Of a noisy one they are means of `repeats` simulations at
each point, with streams of their own: replicate s meets the same scenarios at every point, so that points are compared
under equal luck (common random numbers). With `repeats: 0` they are the observed values themselves, noise and all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from time import monotonic
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CbobenchError, CellFailure, Misuse, one_line
from cbobench.gp.box import Box, sobol
from cbobench.gp.kernels import RIDGE, Array, StationaryName
from cbobench.params import param, state
from cbobench.problems.base import Ability, Channel, Drawn, Feedback, Problem, Shown
from cbobench.problems.channels import DELAY, add_delays, skip_failed
from cbobench.problems.failures import ABOUT, FailureRule
from cbobench.rng import Streams, generator
from cbobench.words import count_noun

CACHE = 2**15  # cached points per replicate
AT_ONCE = 2**12  # simulations per batch
RETRIES = 2**31  # spawn keys of retries begin here, beyond those of scenarios
Runs = Callable[[Array, Sequence[np.random.Generator]], Array]
"""Observed (f, g_1, ..., g_m) in the units played, (k, 1 + m), at points (k, d), one generator each."""
Seeds = Sequence[np.random.SeedSequence]


@dataclass(frozen=True)
class Known:
    """What learners may be told of a simulator, in the units played.

    Attributes:
        shift, divisor: units played = (simulated - shift) / divisor, (1 + m,).
        norm, noise, sup: of (f, g_1, ..., g_m), (1 + m,).
        slater: the largest margin seen, NaN where no feasible point was.
        share: share of the pilot's points that were feasible.
        points: how many there were.
        seconds: that a simulation took, on the clock.
        failed: what a failed simulation counts as, (1 + m,).
        failures: simulations of the pilot that failed, in words; "" if none did.
    """

    shift: Array
    divisor: Array
    norm: Array
    noise: Array
    sup: Array
    slater: float
    share: float
    points: int
    seconds: float
    failed: Array
    failures: str


class Simulated(Drawn):
    """The instances of a simulator (see `Drawn`).

    Args:
        runs: the simulator in the units played.
        known: of it.
        scenarios: seeds of the simulations that metrics average, for each of S replicates; where it has no noise, one.
        observed: whether metrics are of the observed values instead.
        point: the best known point, (d,), or None: regret is against its value.
        target: else regret is against this reward; None: there is no regret.
    """

    exact = False
    accuracy = np.inf
    seed_set = None

    def __init__(
        self, runs: Runs, known: Known, scenarios: Sequence[Seeds], observed: bool, point: Array | None,
        target: float | None, noisy: bool,
    ) -> None:  # fmt: skip
        replicates, one = len(scenarios), (len(scenarios), 1)
        self.runs, self.scenarios, self.observed, self.point = runs, scenarios, observed, point
        self.keeps = observed or not noisy
        self.norm, self.noise, self.sup = (np.tile(fact, one) for fact in (known.norm, known.noise, known.sup))
        self.slater = np.full(replicates, known.slater)
        self.redraws: NDArray[np.intp] = np.zeros(replicates, dtype=np.intp)
        self.told: dict[int, tuple[Array, Array]] = {}
        self.seen: list[dict[bytes, Array]] = [{} for _ in scenarios]
        self.settle: Callable[[Array], Array] = np.asarray
        self.units, self.failed = (float(known.shift[0]), float(known.divisor[0])), known.failed
        self.reference = np.full(replicates, np.nan if target is None else target)
        if point is not None:
            self.reference = np.array([v[0] for v in self._simulate([(s, point) for s in range(replicates)])])

    def tell(self, t: int, points: Array, values: Array) -> None:
        """Stores observations of round t, values (S, 1 + m) at points (S, d), if metrics use them."""
        if self.keeps:
            self.told[t] = points, values.copy()
            self.told.pop(t - CACHE, None)
            for s, (x, value) in enumerate(zip(points, self.told[t][1], strict=True)):
                self._keep(s, x, value)

    def _keep(self, s: int, x: Array, value: Array) -> None:
        if len(self.seen[s]) >= CACHE:
            self.seen[s].pop(next(iter(self.seen[s])))
        self.seen[s][x.tobytes()] = value

    def _simulate(self, wanted: Sequence[tuple[int, Array]]) -> list[Array]:
        """The values (1 + m,) of replicates s at points (d,), a few simulations at a time.

        Means of the simulations that succeed; where fewer than half do, what a failed one counts as.
        """
        count = len(self.scenarios[0])
        step, result = max(1, AT_ONCE // count), list[Array]()
        for i in range(0, len(wanted), step):
            some = wanted[i : i + step]
            gens = [np.random.default_rng(seed) for s, _ in some for seed in self.scenarios[s]]
            found = self.runs(np.repeat([x for _, x in some], count, axis=0), gens).reshape(len(some), count, -1)
            good = _succeeded(found)
            total = np.zeros_like(found[:, 0])
            for k in range(count):  # one after the other: a mean must not depend on what else is asked for
                total += np.where(good[:, k, None], found[:, k], 0.0)
            for (s, x), value, n in zip(some, total, good.sum(axis=1), strict=True):
                mean = value / n if 2 * n >= count else self.failed
                self._keep(s, x, mean)
                result.append(mean)
        return result

    def values(self, first: int, actions: Array) -> Array:
        rounds, replicates = actions.shape[:2]
        each = [(i, s, np.ascontiguousarray(actions[i, s])) for i in range(rounds) for s in range(replicates)]
        keys = {(s, x.tobytes()): (s, x) for _, s, x in each}
        known = {key: self.seen[key[0]][key[1]] for key in keys if key[1] in self.seen[key[0]]}
        if not self.observed:
            lacking = [key for key in keys if key not in known]
            known |= dict(zip(lacking, self._simulate([keys[key] for key in lacking]), strict=True))
        found = np.full((rounds, replicates, self.norm.shape[1]), np.nan)
        for i, s, x in each:
            points, values = self.told.get(first + i, (None, None)) if self.observed else (None, None)
            if points is not None and values is not None and np.array_equal(points[s], x):
                found[i, s] = values[s]
            elif (s, x.tobytes()) in known:
                found[i, s] = known[s, x.tobytes()]
        return np.concatenate([found[..., :1], self.settle(found[..., 1:])], axis=-1)

    def stars(self, first: int, rounds: int) -> tuple[Array, Array]:
        shape = (rounds, len(self.reference))
        return np.broadcast_to(self.reference, shape), np.full(shape, np.nan)

    def best(self, t: int) -> Array:
        if self.point is None:
            raise CellFailure("no best point of this simulator is known; give best_known")
        return np.tile(self.point, (len(self.reference), 1))

    def settled(self, settle: Callable[[Array], Array]) -> Simulated:
        made = copy.copy(self)
        made.settle = settle
        return made


class Simulation:
    """Feedback: one simulation per replicate and round, seeded by the cell's feedback stream and the round.

    Args:
        skip: whether nothing is told of a failed simulation; else it is told as what it counts as.

    Attributes:
        failed: simulations that failed so far, (S,).
    """

    def __init__(self, instances: Simulated, streams: Streams, skip: bool) -> None:
        self.instances, self.streams, self.skip = instances, streams, skip
        self.failed: NDArray[np.intp] = np.zeros(len(streams.scopes), dtype=np.intp)

    def before(self, t: int) -> Shown | None:
        return None

    def at(self, t: int, actions: Array) -> Feedback:
        points = np.array(actions, dtype=np.float64)
        told = self.instances.runs(points, [generator(*scope, "simulation", t) for scope in self.streams.scopes])
        good = _succeeded(told)
        self.failed += ~good
        told = np.where(good[:, None], told, self.instances.failed)
        self.instances.tell(t, points, told)
        return skip_failed(t, told, good) if self.skip else Feedback(told[:, 0], told[:, 1:])


LATEST: ContextVar[float] = ContextVar("LATEST", default=np.inf)
"""Deadline of a dry run's pilot, by `monotonic`."""


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
    seed_independent = True

    repeats: int = param(10, "simulations per point whose mean metrics use; 0: the observed values", at_least=0)
    pilot: int = param(64, "simulations from which is estimated what learners may know", at_least=8, at_most=8192)
    scaled: bool = param(True, "shift f to mean 0, divide f and every g_j by their standard deviations in the pilot")
    kernel: StationaryName = param("matern52", "kernel of the learners' models, on the box scaled to the unit cube")
    lengthscale: float = param(0.3, "its lengthscale, in units of the sides", at_least=1e-4, at_most=1e4)
    candidates: int = param(
        1024, "points at which acquisition functions are first evaluated", at_least=16, at_most=65536
    )
    delay: float | None = param(None, DELAY, above=0, at_most=1e9, quiet=True)
    on_failure: Literal["infeasible", "skip", "fail"] | dict[str, Any] = param("infeasible", ABOUT, quiet=True)

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
        if self.failure.then == "skip" and self.delay is not None:
            raise Misuse("on_failure is skip, and feedback has a delay; leave one of them out")
        if self.target is not None and self.best_known is not None:
            raise Misuse(f"{type(self).__name__} has a target and a best_known; regret is against one of them")
        if self.target is not None and not (isinstance(self.target, int | float | np.number) and isfinite(self.target)):
            raise Misuse(f"target is {self.target!r}; it must be a finite number, or None for no regret")
        if self.best_known is not None:
            x = np.asarray(self.best_known, dtype=np.float64)
            if x.shape != (len(self.low),) or (x < self.low).any() or (x > self.high).any():
                box = f"the box from {self.low} to {self.high}"
                raise Misuse(f"best_known is {self.best_known}, which is no point of {box}")

    @cached_property
    def failure(self) -> FailureRule:
        """What becomes of a simulation that fails."""
        return FailureRule.of(self.on_failure, self.m)

    def observe(self, x: Array, gens: Sequence[np.random.Generator]) -> Array:
        """Checked runs at points (k, d), in the simulator's units, (k, 1 + m); NaN where a run failed, retries spent.

        Raises:
            CellFailure: a result of another shape; a failed run where `on_failure` is fail.
        """
        found, reason = self._observe(x, gens)
        if reason and self.failure.then == "fail":
            raise CellFailure(f"{reason}; on_failure: infeasible goes on after a run that fails")
        return found

    def _observe(self, x: Array, gens: Sequence[np.random.Generator]) -> tuple[Array, str]:
        """As `observe`, with the first reason of the runs that failed in the end ("" if none did)."""
        found, reason = self._attempt(x, gens)
        for retry in range(self.failure.retries):
            left = np.flatnonzero(~_succeeded(found)).tolist()
            if len(left) == 0:
                break
            found[left], reason = self._attempt(x[left], [_other_numbers(gens[i], retry) for i in left])
        return found, reason

    def _attempt(self, x: Array, gens: Sequence[np.random.Generator]) -> tuple[Array, str]:
        """One run per point: values, NaN where it failed, and the first reason."""
        batched = type(self).simulate_many is not Simulator.simulate_many
        reason = f"{type(self).__name__}: simulate "
        try:
            if len(x) == 1 or batched:
                found = self._run_batch(x, copy.deepcopy(gens))
                wrong = ~_succeeded(found)
                i = int(wrong.argmax())
                reason += f"gives {found[i].tolist()} at x = {x[i].tolist()}"
                return np.where(wrong[:, None], np.nan, found), reason if wrong.any() else ""
        except CbobenchError:
            raise
        except Exception as error:  # a user's simulator may raise anything
            if len(x) == 1:
                return np.full((1, 1 + self.m), np.nan), f"{reason}fails at x = {x[0].tolist()}: {one_line(error)}"
        each = [self._attempt(x[i : i + 1], gens[i : i + 1]) for i in range(len(x))]  # one takes no others with it
        return np.concatenate([values for values, _ in each]), next((why for _, why in each if why), "")

    def _run_batch(self, x: Array, gens: Sequence[np.random.Generator]) -> Array:
        found = np.asarray(self.simulate_many(x, gens), dtype=np.float64)
        if found.shape != (len(x), 1 + self.m):
            each = f"{found.shape[1:]}" if found.shape[:1] == (len(x),) else f"{found.shape} for {len(x)} points"
            raise CellFailure(
                f"{type(self).__name__}: simulate gives shape {each}; it must be ({1 + self.m},): f and m = {self.m} "
                "constraints"
            )
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
            seen = self.observe(x, [self._generator("best", i) for i in range(len(x))])
            seen = seen[_succeeded(seen)]
            if 2 * len(seen) < len(x):
                raise Misuse(f"best_known: {len(x) - len(seen)} of {count_noun(len(x), 'simulation')} there fail")
            g = seen.mean(axis=0)[1:]
            if (g > 0).any():
                j = int(g.argmax())
                there = f"the mean of {count_noun(len(x), 'simulation')} there has g_{j + 1} = {g[j]:.6g}"
                raise Misuse(f"best_known is not feasible: {there}; give a point where every g_j <= 0, or a target")

    def _generator(self, role: str, i: int) -> np.random.Generator:
        return generator("simulator", type(self).__qualname__, role, i)

    def _pilot(self) -> Known:
        points = self.box.scale(sobol(self.box.d, self.pilot_points))
        began = monotonic()
        again, _ = self._observe(points[:1], [self._generator("pilot 0", 0)])
        seconds = monotonic() - began
        if (left := LATEST.get() - monotonic()) < 2 * len(points) * seconds:
            points = points[: max(2, int(left / (2 * seconds)))]
        began = monotonic()
        both = [self._observe(points, [self._generator(f"pilot {k}", i) for i in range(len(points))]) for k in range(2)]
        runs = [run for run, _ in both]
        seconds = (monotonic() - began) / (2 * len(points))
        good = _succeeded(runs[0]) & _succeeded(runs[1])
        failed = sum(int((~_succeeded(run)).sum()) for run in runs)
        if failed and (self.failure.then == "fail" or 2 * good.sum() < len(points)):
            first = next(reason for _, reason in both if reason)
            fix = "; on_failure: infeasible goes on after some that fail" * (self.failure.then == "fail")
            raise Misuse(f"{failed} of {2 * len(points)} pilot simulations fail; the first: {first}{fix}")
        if good[0] and np.isfinite(again).all() and not np.array_equal(again[0], runs[0][0]):
            fix = "draw from the generator it is given, and from nothing else (np.random is shared by all)"
            raise Misuse(f"{type(self).__name__}: simulate gives other values for an equal generator; {fix}")
        runs = [run[good] for run in runs]
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
        unit = sobol(self.box.d, len(points))[good]
        kernel = self.box.kernel(unit, unit)
        ridge = np.maximum(RIDGE, noise**2 / 2)
        norm = np.empty(1 + self.m)
        for j, (values, least) in enumerate(zip(played.T, ridge, strict=True)):
            weights = np.linalg.solve(kernel + least * np.eye(len(kernel)), values)
            norm[j] = np.sqrt(max(0.0, float(weights @ kernel @ weights)))
        worst = played[:, 1:].max(axis=1, initial=-np.inf)
        slater = min(1.0, -float(worst.min()))
        sup = np.abs(played).max(axis=0)
        share = float((worst <= 0).mean())
        counts_as = (self.failure.values_of(np.concatenate(runs)) - shift) / divisor
        told = f"{failed} of {2 * len(points)} pilot simulations failed" if failed else ""
        return Known(
            shift, divisor, norm, noise, sup, slater if slater > 0 else np.nan, share, len(points), seconds, counts_as,
            told,
        )  # fmt: skip

    @property
    def pilot_points(self) -> int:
        """Number of points of a full pilot, which simulates a noisy problem twice per point."""
        return self.pilot // (2 if self.noisy else 1)

    @property
    def cut_short(self) -> bool:
        """Whether a dry run ended the pilot early."""
        return self.known.points < self.pilot_points

    @property
    def simulations(self) -> tuple[int, int]:
        """Number of simulations of a pilot, and of a seed-round with its metrics."""
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
            means = f"means of {count_noun(self.repeats, 'simulation')} at each point, of streams of their own"
            parts.append(f"metrics are of {means if self.repeats else 'observed values, with their noise'}")
        if known.failures:
            parts.append(known.failures)
        return "; ".join(parts)

    def offers(self) -> frozenset[Ability]:
        lacking = {"a known optimum"} if self.best_known is None else set()
        late = self.delay is not None or self.failure.then == "skip"
        return super().offers() - lacking - ({"feedback at once"} if late else set())

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

    def draw(self, generators: Sequence[np.random.Generator]) -> Drawn:
        count = max(1, self.repeats) if self.noisy else 1
        scenarios = [gen.bit_generator.seed_seq.spawn(count) for gen in generators]  # type: ignore[attr-defined]
        point = None if self.best_known is None else np.array(self.best_known, dtype=np.float64)
        target = None if self.target is None else float((self.target - self.known.shift[0]) / self.known.divisor[0])
        observed = self.noisy and not self.repeats
        return Simulated(self.runs, self.known, scenarios, observed, point, target, self.noisy)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        assert isinstance(instances, Simulated)
        return add_delays(Simulation(instances, streams, self.failure.then == "skip"), self.delay, streams, 1 + self.m)


def _succeeded(values: Array) -> NDArray[np.bool_]:
    """Which runs have finite values only, given (..., 1 + m)."""
    return np.asarray(np.isfinite(values).all(axis=-1))


def _other_numbers(gen: np.random.Generator, retry: int) -> np.random.Generator:
    """A generator for a retry, fixed by the first one's seed and not by what was drawn from it."""
    seed: np.random.SeedSequence = gen.bit_generator.seed_seq  # type: ignore[attr-defined, assignment]
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, RETRIES + retry)))
