"""The instances and the feedback of simulators, and what is kept of their runs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array, Indices, Mask
from cbobench.problems.base import Actions, Channel, Drawn, Feedback
from cbobench.problems.channels import skip_failed
from cbobench.problems.instances import Generators, Settle
from cbobench.rng import Streams, generator
from cbobench.words import count_noun

CACHE = 2**15  # cached points per replicate
AT_ONCE = 2**12  # simulations per batch
Seeds = Sequence[np.random.SeedSequence]


@dataclass(frozen=True)
class SimulationResult:
    """What one run of a simulator gave.

    Attributes:
        values: f and every g_j, (1 + m,); NaN if it failed.
        reason: why it failed; "" if it did not.
        seconds: on the clock.
    """

    values: Array
    reason: str
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return one that did not fail as JSON, which keeps every bit."""
        return {"values": self.values.tolist(), "seconds": self.seconds}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> SimulationResult:
        """Return the result that `to_json` described."""
        return cls(np.array(content["values"], dtype=float), "", float(content["seconds"]))


class Store(Protocol):
    """Keeps the results of simulations that take long."""

    def get(self, key: str) -> SimulationResult | None: ...
    def put(self, key: str, result: SimulationResult) -> None: ...


def succeeded(values: Array) -> Mask:
    """Which runs have finite values only, given (..., 1 + m)."""
    return np.asarray(np.isfinite(values).all(axis=-1))


def place(actions: Actions, finite: bool) -> Array:
    """Points (..., d) of actions: themselves, or their indices as the only coordinate."""
    return np.asarray(actions[..., None] if finite else actions, dtype=float)


class SimulatedInstances(Drawn):
    """The instances of a simulator (see `Drawn`), of whose functions nobody knows a bound.

    Args:
        simulator: a `Simulator`.
        scenarios: seeds of the simulations that metrics average, for each of S replicates; where it
            has no noise, one.

    Attributes:
        observed: whether metrics are of the observed values, instead of the means of simulations.
        remeasures: whether the actions recommended in the end are then simulated, for their means.
        finite: whether actions are indices of a finite set; each is then a point with its index as
            coordinate.
        lowest: the lowest f that the rounds of a replicate have given, (S,); infinite before any.
    """

    exact = False
    accuracy = np.inf
    seed_set = None

    def __init__(self, simulator: Any, scenarios: Sequence[Seeds]) -> None:
        self.simulator = simulator
        self.scenarios = scenarios
        self.noisy = simulator.noisy
        self.finite = simulator.samples
        # Without noise an observation is what metrics are of;
        # with noise it is where nothing else is simulated.
        self.observed = self.noisy and (not simulator.repeats or simulator.measure == "end")
        self.remeasures = self.observed and simulator.repeats > 0
        # What was observed is known at no cost, in whatever round it is recommended.
        self.ends_only = simulator.measures_ends_only and not self.observed
        replicates = len(scenarios)
        shape = replicates, 1 + simulator.m
        self.norm = np.full(shape, np.inf)
        self.sup = np.full(shape, np.inf)
        self.noise = np.full(shape, np.inf if self.noisy else 0.0)
        self.slater = np.full(replicates, np.nan)
        self.answers: dict[int, tuple[Array, Array]] = {}
        self.cache: list[dict[bytes, Array]] = [{} for _ in scenarios]
        self.settle: Settle = np.asarray
        self.lowest = np.full(replicates, np.inf)
        self.reason = ""  # why the last run of a round that failed did

    @property
    def noiseless(self) -> Mask:
        # Equal runs prove no absence of noise: the class must say so.
        return np.full(len(self.noise), not self.noisy)

    @cached_property
    def f_star(self) -> Array:  # type: ignore[override]
        """The target, or what the best known point gives to each replicate, (S,); NaN without
        either.
        """
        replicates = range(len(self.scenarios))
        if self.simulator.best_known is not None:
            point = self.simulator.best_point
            return np.array(
                [value[0] for value in self._simulate([(s, point) for s in replicates])]
            )
        # A target has the objective's sign, and f is minus an objective that is minimised.
        reward = np.nan
        if self.simulator.target is not None:
            reward = self.simulator.sign * self.simulator.target
        return np.full(len(replicates), reward)

    def run(self, points: Array, gens: Generators) -> tuple[Array, str]:
        """Return (f, g_1, ..., g_m) in the units played, (k, 1 + m), at points (k, d), and why the
        first that failed did (see `Simulator.observe`).
        """
        values, reason = self.simulator.observe(points, gens)
        return values / self.simulator.divisor, reason

    def take(self, t: int, points: Array, observed: Array, reason: str) -> Array:
        """Return observations (S, 1 + m) of round t at points (S, d) as they are told, a failed one
        as what it counts as; store them where metrics are of them.
        """
        good = succeeded(observed)
        np.minimum(self.lowest, np.where(good, observed[:, 0], np.inf), out=self.lowest)
        self.reason = reason or self.reason
        told = np.where(good[:, None], observed, self.counts_as())
        if self.observed or not self.noisy:
            self.answers[t] = points, told
            # A play may last for many rounds: old answers go, as old points of the cache do.
            self.answers.pop(t - CACHE, None)
            for s, (x, value) in enumerate(zip(points, told, strict=True)):
                self._keep(s, x, value)
        return told.copy()

    def counts_as(self) -> Array:
        """Return what a failed run counts as, (S, 1 + m): the lowest f of its replicate so far, NaN
        before there is one, and a unit of each g_j; or what `on_failure` states.
        """
        divisor = self.simulator.divisor
        values = np.tile(divisor, (len(self.lowest), 1))
        values[:, 0] = np.where(np.isinf(self.lowest), np.nan, self.lowest)
        return self.simulator.failure.with_stated(values) / divisor

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
        step = max(1, AT_ONCE // count)
        result = list[Array]()
        counts_as = self.counts_as()
        for i in range(0, len(requests), step):
            batch = requests[i : i + step]
            gens = [np.random.default_rng(seed) for s, _ in batch for seed in self.scenarios[s]]
            points = np.repeat([x for _, x in batch], count, axis=0)
            observed = self.run(points, gens)[0].reshape(len(batch), count, -1)
            good = succeeded(observed)
            total = np.zeros_like(observed[:, 0])
            # one after the other: a mean must not depend on what else is asked for
            for k in range(count):
                total += np.where(good[:, k, None], observed[:, k], 0.0)
            for (s, x), value, n in zip(batch, total, good.sum(axis=1), strict=True):
                mean = value / n if 2 * n >= count else counts_as[s]
                self._keep(s, x, mean)
                result.append(mean)
        return result

    def values(self, first: int, actions: Actions) -> Array:
        points = place(actions, self.finite)
        plays = list(np.ndindex(points.shape[:2]))
        # An action that several rounds play is simulated once.
        requests = {(s, points[i, s].tobytes()): (s, points[i, s]) for i, s in plays}
        known = {(s, x): self.cache[s][x] for s, x in requests if x in self.cache[s]}
        if not self.observed:
            lacking = [key for key in requests if key not in known]
            means = self._simulate([requests[key] for key in lacking])
            known |= dict(zip(lacking, means, strict=True))

        result = np.full((*points.shape[:2], self.norm.shape[1]), np.nan)
        for i, s in plays:
            result[i, s] = known.get((s, points[i, s].tobytes()), np.nan)
            # What was observed in the round itself comes first.
            answer = self.answers.get(first + i) if self.observed else None
            if answer is not None and np.array_equal(answer[0][s], points[i, s]):
                result[i, s] = answer[1][s]
        return self._complete(result)

    def _complete(self, values: Array) -> Array:
        """Return values (..., S, 1 + m) with settled constraints, and with the lowest f of its
        replicate for a run that failed before any had succeeded.

        Raises:
            CellFailure: none has, so that nothing is known of f.
        """
        f = values[..., 0]
        g = values[..., 1:]
        lacking = np.isnan(f) & np.isfinite(g).all(axis=-1)
        if (lacking & np.isinf(self.lowest)).any():
            raise CellFailure(f"every simulation failed; the last: {self.reason}")
        f = np.where(lacking, self.lowest, f)
        return np.concatenate([f[..., None], self.settle(g)], axis=-1)

    def measure_again(self, actions: Actions) -> Array | None:
        if not self.remeasures:
            return None
        means = np.full(self.norm.shape, np.nan)
        mask = np.asarray(actions >= 0 if self.finite else np.isfinite(actions).all(axis=1))
        requests = [(s, x) for s, x in enumerate(place(actions, self.finite)) if mask[s]]
        for (s, _), value in zip(requests, self._simulate(requests), strict=True):
            means[s] = value
        return self._complete(means)

    def best(self, t: int) -> Actions:
        if self.simulator.best_known is None:
            raise CellFailure("no best point of this simulator is known; give best_known")
        point = self.simulator.best_point
        replicates = len(self.noise)
        if self.finite:
            return np.full(replicates, int(point[0]))
        return np.tile(point, (replicates, 1))

    def settled(self, settle: Settle) -> SimulatedInstances:
        # Shallow: both answer from the same cache, which holds values as they were observed.
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
        self.instances = instances
        self.streams = streams
        self.skip = skip
        self.failed: Indices = np.zeros(len(streams.scopes), dtype=np.intp)

    def at(self, t: int, actions: Array) -> Feedback:
        if t == 1:  # not after all rounds, which a wrong one would cost
            check_best_known(self.instances.simulator)
        points = place(actions, self.instances.finite).copy()
        gens = [generator(*scope, "simulation", t) for scope in self.streams.scopes]
        observed, reason = self.instances.run(points, gens)
        good = succeeded(observed)
        self.failed += ~good
        told = self.instances.take(t, points, observed, reason)
        if self.skip:
            return skip_failed(t, told, good)
        return Feedback(told[:, 0], told[:, 1:], lacks_f=bool(np.isnan(told[:, 0]).any()))


def check_best_known(simulator: Any) -> None:
    """Simulate the best known point of a simulator, if there is one, as often as metrics do.

    Raises:
        CellFailure: it is not feasible, or most simulations there fail.
    """
    if simulator.best_known is None:
        return

    # Without noise another simulation would give the same.
    count = max(1, simulator.repeats) if simulator.noisy else 1
    name = type(simulator).__qualname__
    gens = [generator("simulator", name, "best", i) for i in range(count)]
    values, _ = simulator.observe(np.tile(simulator.best_point, (count, 1)), gens)
    values = values[succeeded(values)]
    if 2 * len(values) < count:
        raise CellFailure(
            f"best_known: {count - len(values)} of {count_noun(count, 'simulation')} there fail"
        )
    g = values.mean(axis=0)[1:]
    if (g > 0).any():
        j = int(g.argmax())
        value = f"g_{j + 1} = {g[j]:.6g}"
        if simulator.rules:
            rule = simulator.rules[1 + j]
            value = f"{rule.column} = {rule.bound + rule.sign * g[j]:.6g} ({rule.requirement})"
        raise CellFailure(
            f"best_known is not feasible: the mean of {count_noun(count, 'simulation')} there has "
            f"{value}; give a point where every g_j <= 0, or a target"
        )
