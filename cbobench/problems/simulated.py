"""One draw of a simulator per replicate, and what metrics are of where no formula gives values without noise.

Of a simulator without noise they are what it says. Of a noisy one they are means of `repeats` simulations at each
point, with streams of their own: replicate s meets the same scenarios at every point, so that points are compared under
equal luck (common random numbers). With `repeats: 0` they are the observed values themselves, noise and all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array
from cbobench.problems.base import Feedback, Shown
from cbobench.rng import Streams, generator

CACHE = 2**15  # points of which a replicate's values are remembered
AT_ONCE = 2**12  # simulations that are asked for together
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
    """

    shift: Array
    divisor: Array
    norm: Array
    noise: Array
    sup: Array
    slater: float
    share: float
    points: int
    seconds: float = 0.0


class Simulated:
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
    binds = None

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
        self.settle: Callable[[Array], Array] = _as_it_is
        self.units = float(known.shift[0]), float(known.divisor[0])
        self.reference = np.full(replicates, np.nan if target is None else target)
        if point is not None:
            self.reference = np.array([v[0] for v in self._simulate([(s, point) for s in range(replicates)])])

    def tell(self, t: int, points: Array, values: Array) -> None:
        """Keep what was observed in round t, values (S, 1 + m) at points (S, d), where metrics are of that."""
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
        """The values (1 + m,) of replicates s at points (d,), a few simulations at a time."""
        count = len(self.scenarios[0])
        step, result = max(1, AT_ONCE // count), list[Array]()
        for i in range(0, len(wanted), step):
            some = wanted[i : i + step]
            gens = [np.random.default_rng(seed) for s, _ in some for seed in self.scenarios[s]]
            found = self.runs(np.repeat([x for _, x in some], count, axis=0), gens).reshape(len(some), count, -1)
            total = np.zeros_like(found[:, 0])
            for k in range(count):  # one after the other: a mean must not depend on what else is asked for
                total += found[:, k]
            for (s, x), value in zip(some, total / count, strict=True):
                self._keep(s, x, value)
                result.append(value)
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

    def changes(self) -> tuple[tuple[int, Array], ...]:
        return ()

    def settled(self, settle: Callable[[Array], Array]) -> Simulated:
        made = copy.copy(self)
        made.settle = settle
        return made


def _as_it_is(g: Array) -> Array:
    return g


class Simulation:
    """Feedback: one simulation per replicate and round, seeded by the cell's feedback stream and the round."""

    def __init__(self, instances: Simulated, streams: Streams) -> None:
        self.instances, self.streams = instances, streams

    def before(self, t: int) -> Shown | None:
        return None

    def at(self, t: int, actions: Array) -> Feedback:
        points = np.array(actions, dtype=np.float64)
        told = self.instances.runs(points, [generator(*scope, "simulation", t) for scope in self.streams.scopes])
        self.instances.tell(t, points, told)
        return Feedback(told[:, 0], told[:, 1:])
