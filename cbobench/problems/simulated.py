"""The instances and the feedback of simulators, and what is known and kept of their runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array
from cbobench.problems.base import Actions, Channel, Drawn, Feedback
from cbobench.problems.channels import skip_failed
from cbobench.rng import Streams, generator

CACHE = 2**15  # cached points per replicate
AT_ONCE = 2**12  # simulations per batch
Runs = Callable[[Array, Sequence[np.random.Generator]], Array]
"""Observed (f, g_1, ..., g_m) in the units played, (k, 1 + m), at points (k, d), one generator
each.
"""
Seeds = Sequence[np.random.SeedSequence]


@dataclass(frozen=True)
class PilotFacts:
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


@dataclass(frozen=True)
class SimulationCounts:
    """How many simulations a simulator's pilot and plays take.

    Attributes:
        pilot: in all.
        of_round: of a seed-round and its metrics.
        recommended: at most, of a recommendation before the last round.
        end: at most, of the recommendation after it.
    """

    pilot: int
    of_round: int
    recommended: int
    end: int

    def beside_rounds(self, recorded: int) -> int:
        """At most, of the points that a cell with so many recorded rounds recommends."""
        return (recorded - 1) * self.recommended + self.end


@dataclass(frozen=True)
class SimulationResult:
    """What one run of a simulator gave.

    Attributes:
        values: f and every g_j, (1 + m,); NaN if it failed.
        reason: why it failed; "" if it did not.
        seconds: on the clock.
        drew: whether it drew random numbers, as far as that was looked at; it is not kept.
    """

    values: Array
    reason: str
    seconds: float
    drew: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, which keeps every bit; `values` is null if it failed."""
        values = None if self.reason else self.values.tolist()
        return {
            "values": values,
            "size": len(self.values),
            "reason": self.reason,
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> SimulationResult:
        """Return the simulation that `to_json` described."""
        values = content["values"]
        numbers = (
            np.full(int(content["size"]), np.nan)
            if values is None
            else np.array(values, dtype=np.float64)
        )
        return cls(numbers, str(content["reason"]), float(content["seconds"]))


class Store(Protocol):
    """Keeps the results of simulations that take long.

    Attributes:
        on_disk: whether it is quick.
        shared: whether workers share it at a time; only then are `begin` and the functions below it
            of use.
    """

    on_disk: bool
    shared: bool

    def get(self, key: str) -> SimulationResult | None: ...
    def put(self, key: str, result: SimulationResult) -> None: ...
    def begin(self, key: str) -> bool:
        """Whether a simulation is to be run here; False if it runs already, here or elsewhere."""

    def look(self, key: str) -> SimulationResult | None:
        """A result that may have been kept a moment ago."""

    def end(self, key: str) -> None:
        """A simulation that began here is over."""

    def wait(self, key: str, until: float) -> SimulationResult | None:
        """The result of one that runs elsewhere; None if it gave none, or not until that time
        (monotonic).
        """


class Stores(Protocol):
    """Keeps the simulations of several problems."""

    def of(self, problem: str) -> Store:
        """What keeps those of the problem of that name."""


# times what a simulation takes, after which one that runs elsewhere is no longer waited for ...
PATIENCE = 3.0
# ... but not before so many seconds: a busy machine may stop a process for that long
LEAST_WAIT = 3.0


Run = Callable[[list[int]], dict[int, SimulationResult]]
"""Runs simulations by their numbers, and keeps their results."""


def run_once(
    store: Store, keys: Mapping[int, str], run: Run, step: int, seconds: float
) -> dict[int, SimulationResult]:
    """Run simulations so that of all workers one runs each; return them by number.

    Those that run elsewhere are waited for last: nobody waits while it keeps others waiting, so
    that no two wait for each other. One that takes far too long elsewhere is run here, too.

    Args:
        keys: of the simulations, by number.
        step: how many run at a time.
        seconds: that one takes.
    """
    results: dict[int, SimulationResult] = {}
    elsewhere, numbers = list[int](), [*keys]
    for first in range(0, len(numbers), step):
        begun, running = _begin(store, keys, numbers[first : first + step])
        elsewhere += running
        results |= _run_begun(store, keys, run, begun)
    for i in elsewhere:
        results |= _wait_or_run(store, keys, run, i, max(LEAST_WAIT, PATIENCE * step * seconds))
    return results


def _begin(
    store: Store, keys: Mapping[int, str], numbers: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The numbers of those that begin here, and of those that run elsewhere."""
    begun, elsewhere = list[int](), list[int]()
    try:
        for i in numbers:
            (begun if store.begin(keys[i]) else elsewhere).append(i)
    except BaseException:
        for i in begun:  # others would wait for them
            store.end(keys[i])
        raise
    return begun, elsewhere


def _run_begun(
    store: Store, keys: Mapping[int, str], run: Run, begun: list[int]
) -> dict[int, SimulationResult]:
    try:
        # One that another worker has just ended is kept by now.
        stored = {i: result for i in begun if (result := store.look(keys[i])) is not None}
        return stored | run([i for i in begun if i not in stored])
    finally:
        for i in begun:
            store.end(keys[i])


def _wait_or_run(
    store: Store, keys: Mapping[int, str], run: Run, i: int, patience: float
) -> dict[int, SimulationResult]:
    until = monotonic() + patience
    while (result := store.wait(keys[i], until)) is None:
        if store.begin(keys[i]):
            return _run_begun(store, keys, run, [i])
        if monotonic() >= until:
            return run([i])
    return {i: result}


def succeeded(values: Array) -> NDArray[np.bool_]:
    """Which runs have finite values only, given (..., 1 + m)."""
    return np.asarray(np.isfinite(values).all(axis=-1))


def place(actions: Actions, finite: bool) -> Array:
    """Points (..., d) of actions: themselves, or their indices as the only coordinate."""
    return np.asarray(actions[..., None] if finite else actions, dtype=np.float64)


class SimulatedInstances(Drawn):
    """The instances of a simulator (see `Drawn`).

    Args:
        simulator: a prepared `Simulator`.
        scenarios: seeds of the simulations that metrics average, for each of S replicates; where it
            has no noise, one.

    Attributes:
        observed: whether metrics are of the observed values, instead of the means of simulations.
        remeasures: whether the actions recommended in the end are then simulated, for their means.
        finite: whether actions are indices of a finite set; each is then a point with its index as
            coordinate.
        point: the best known point, (d,), or None.
    """

    exact = False
    accuracy = np.inf
    seed_set = None

    def __init__(self, simulator: Any, scenarios: Sequence[Seeds]) -> None:
        facts, replicates = simulator.pilot_facts, len(scenarios)
        self.runs: Runs = simulator.runs
        self.scenarios, self.noisy, self.finite = (
            scenarios,
            simulator.noisy,
            simulator.inputs is not None,
        )
        # Without noise an observation is what metrics are of;
        # with noise it is where nothing else is simulated.
        self.observed = self.noisy and (not simulator.repeats or simulator.measure == "end")
        self.remeasures = self.observed and simulator.repeats > 0
        # What was observed is known at no cost, in whatever round it is recommended.
        self.ends_only = simulator.measures_ends_only and not self.observed
        of_functions = (facts.norm, facts.noise, facts.sup)
        self.norm, self.noise, self.sup = (np.tile(fact, (replicates, 1)) for fact in of_functions)
        self.slater = np.full(replicates, facts.slater)
        self.redraws: NDArray[np.intp] = np.zeros(replicates, dtype=np.intp)
        self.answers: dict[int, tuple[Array, Array]] = {}
        self.cache: list[dict[bytes, Array]] = [{} for _ in scenarios]
        self.settle: Callable[[Array], Array] = np.asarray
        self.units, self.failed = (float(facts.shift[0]), float(facts.divisor[0])), facts.failed
        # Regret is against a target, or against what the best known point gives to each replicate.
        zero, unit = self.units
        sign, target = simulator.sign, np.nan
        if simulator.target is not None:
            target = (sign * float(simulator.target) - zero) / unit
        self.f_star = np.full(replicates, target)
        self.point: Array | None = None if simulator.best_known is None else simulator.best_point
        if self.point is not None:
            values = self._simulate([(s, self.point) for s in range(replicates)])
            self.f_star = np.array([value[0] for value in values])

    @property
    def noiseless(self) -> NDArray[np.bool_]:
        # Two equal runs per point of a pilot prove no absence of noise: the class must say so.
        return np.full(len(self.noise), not self.noisy)

    def tell(self, t: int, points: Array, values: Array) -> None:
        """Stores observations of round t, values (S, 1 + m) at points (S, d), if metrics use
        them.
        """
        if self.observed or not self.noisy:
            self.answers[t] = points, values.copy()
            self.answers.pop(t - CACHE, None)
            for s, (x, value) in enumerate(zip(points, self.answers[t][1], strict=True)):
                self._keep(s, x, value)

    def _keep(self, s: int, x: Array, value: Array) -> None:
        if len(self.cache[s]) >= CACHE:
            # A dict keeps its order, so the first key is the oldest.
            self.cache[s].pop(next(iter(self.cache[s])))
        self.cache[s][x.tobytes()] = value

    def _simulate(self, requests: Sequence[tuple[int, Array]]) -> list[Array]:
        """The values (1 + m,) of replicates s at points (d,), a few simulations at a time.

        Means of the simulations that succeed; where fewer than half do, what a failed one counts
        as.
        """
        count = len(self.scenarios[0])
        step, result = max(1, AT_ONCE // count), list[Array]()
        for i in range(0, len(requests), step):
            batch = requests[i : i + step]
            gens = [np.random.default_rng(seed) for s, _ in batch for seed in self.scenarios[s]]
            observed = self.runs(np.repeat([x for _, x in batch], count, axis=0), gens).reshape(
                len(batch), count, -1
            )
            good = succeeded(observed)
            total = np.zeros_like(observed[:, 0])
            # one after the other: a mean must not depend on what else is asked for
            for k in range(count):
                total += np.where(good[:, k, None], observed[:, k], 0.0)
            for (s, x), value, n in zip(batch, total, good.sum(axis=1), strict=True):
                mean = value / n if 2 * n >= count else self.failed
                self._keep(s, x, mean)
                result.append(mean)
        return result

    def values(self, first: int, actions: Actions) -> Array:
        actions = place(actions, self.finite)
        rounds, replicates = actions.shape[:2]
        plays = [
            (i, s, np.ascontiguousarray(actions[i, s]))
            for i in range(rounds)
            for s in range(replicates)
        ]
        keys = {(s, x.tobytes()): (s, x) for _, s, x in plays}
        cached_values = {
            key: self.cache[key[0]][key[1]] for key in keys if key[1] in self.cache[key[0]]
        }
        if not self.observed:
            lacking = [key for key in keys if key not in cached_values]
            cached_values |= dict(
                zip(lacking, self._simulate([keys[key] for key in lacking]), strict=True)
            )
        played_values = np.full((rounds, replicates, self.norm.shape[1]), np.nan)
        for i, s, x in plays:
            points, values = (
                self.answers.get(first + i, (None, None)) if self.observed else (None, None)
            )
            if points is not None and values is not None and np.array_equal(points[s], x):
                played_values[i, s] = values[s]
            elif (s, x.tobytes()) in cached_values:
                played_values[i, s] = cached_values[s, x.tobytes()]
        return np.concatenate(
            [played_values[..., :1], self.settle(played_values[..., 1:])], axis=-1
        )

    def measure_again(self, actions: Actions) -> Array | None:
        if not self.remeasures:
            return None
        means = np.full(self.norm.shape, np.nan)
        mask = np.asarray(actions >= 0 if self.finite else np.isfinite(actions).all(axis=1))
        requests = [(s, x) for s, x in enumerate(place(actions, self.finite)) if mask[s]]
        for (s, _), value in zip(requests, self._simulate(requests), strict=True):
            means[s] = np.concatenate([value[:1], self.settle(value[1:])])
        return means

    def best(self, t: int) -> Actions:
        if self.point is None:
            raise CellFailure("no best point of this simulator is known; give best_known")
        if self.finite:
            return np.full(len(self.noise), int(self.point[0]))
        return np.tile(self.point, (len(self.noise), 1))

    def settled(self, settle: Callable[[Array], Array]) -> SimulatedInstances:
        clone = copy.copy(self)
        clone.settle = settle
        return clone


class SimulatedFeedback(Channel):
    """Feedback: one simulation per replicate and round, seeded by the cell's feedback stream and
    the round.

    Args:
        skip: whether nothing is told of a failed simulation; else it is told as what it counts as.

    Attributes:
        failed: simulations that failed so far, (S,).
    """

    def __init__(self, instances: SimulatedInstances, streams: Streams, skip: bool) -> None:
        self.instances, self.streams, self.skip = instances, streams, skip
        self.failed: NDArray[np.intp] = np.zeros(len(streams.scopes), dtype=np.intp)

    def at(self, t: int, actions: Array) -> Feedback:
        points = place(actions, self.instances.finite).copy()
        observed = self.instances.runs(
            points, [generator(*scope, "simulation", t) for scope in self.streams.scopes]
        )
        good = succeeded(observed)
        self.failed += ~good
        observed = np.where(good[:, None], observed, self.instances.failed)
        self.instances.tell(t, points, observed)
        return (
            skip_failed(t, observed, good)
            if self.skip
            else Feedback(observed[:, 0], observed[:, 1:])
        )
