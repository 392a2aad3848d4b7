"""The contract of a problem: what is drawn per seed, what a learner may know, and what it is told each round.

Sign convention, once and for all: maximise f subject to g_j <= 0.

A problem is a keyword-only dataclass of parameters. `prepare` does the work that all seeds share (and reads files, on
the driver only); `draw` makes the instances of S seeds; `feedback` makes the noisy channel. Metrics use the noise-free
f and g of `Instances`, never what the learner was told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.box import Box
from cbobench.gp.kernels import Array
from cbobench.problems import reference
from cbobench.rng import Streams

Actions = NDArray[Any]
"""One action per replicate: indices (S,) of a finite set, or points (S, d) of a box."""

Ability = Literal[
    "a finite action set", "coordinates", "a safe seed set", "full information of the constraints", "feedback at once"
]


@dataclass(frozen=True)
class Arrivals:
    """Delayed observations that reach learners in one round, k of them, sorted by replicate, round and function.

    Attributes:
        replicate, round: whose, and of which round's action, (k,).
        function: 0 for f, j for g_j, (k,).
        value: (k,).
    """

    replicate: NDArray[np.intp]
    round: NDArray[np.intp]
    function: NDArray[np.intp]
    value: Array


@dataclass(frozen=True)
class Feedback:
    """What a learner is told after a round: noisy reward (S,) and constraint values (S, m) of the round's action.

    With delayed feedback f and g are NaN, and `arrivals` holds what reaches the learner in this round instead.
    """

    f: Array
    g: Array
    arrivals: Arrivals | None = None

    def costs(self, rectified: bool = False) -> Array:
        """Sum of the constraint values, or of their positive parts, that are told in this round, (S, m)."""
        if self.arrivals is None:
            return np.maximum(self.g, 0.0) if rectified else self.g
        total, a = np.zeros_like(self.g), self.arrivals
        of_g = a.function > 0
        value = np.maximum(a.value, 0.0) if rectified else a.value
        np.add.at(total, (a.replicate[of_g], a.function[of_g] - 1), value[of_g])
        return total


Shown = Callable[[Array | None], Array]
"""g_t, shown before acting: its values (S, m, n) at all actions (`None`), or (S, m, k) at points (S, k, d) of a box."""


class Channel(Protocol):
    """The noisy channel of S replicates; the noise of round t does not depend on what was played before."""

    def before(self, t: int) -> Shown | None:
        """What is shown before the actions of round t are chosen: g_t under full information, else nothing."""
        ...

    def at(self, t: int, actions: Actions) -> Feedback:
        """Feedback for the actions of round t; rounds are asked in order."""
        ...


class Drawn(Protocol):
    """One draw of a problem per replicate, whatever its action set.

    Attributes:
        norm: bounds on RKHS norms of (f, g_1, ..., g_m), (S, 1 + m).
        noise: sub-Gaussian constants R of the observations of (f, g_1, ..., g_m), (S, 1 + m).
        sup: largest absolute values of (f, g_1, ..., g_m), (S, 1 + m).
        slater: delta = min(1, -min_x max_j g_j), (S,).
        seed_set: mask of the actions a safe method may start from, (S, n), all of them feasible; None: there is none.
        redraws: how many infeasible draws were thrown away, (S,).
        accuracy: by how much a feasible action may beat the stored optimum, (relative to 1 + |f*|).
    """

    @property
    def norm(self) -> Array: ...

    @property
    def noise(self) -> Array: ...

    @property
    def redraws(self) -> NDArray[np.intp]: ...

    @property
    def accuracy(self) -> float: ...

    @property
    def sup(self) -> Array: ...

    @property
    def slater(self) -> Array: ...

    @property
    def seed_set(self) -> NDArray[np.bool_] | None: ...

    def values(self, first: int, actions: Actions) -> Array:
        """Noise-free (f, g_1, ..., g_m) of rounds `first`, ..., (rounds, S, 1 + m), for actions (rounds, S[, d])."""
        ...

    def stars(self, first: int, rounds: int) -> tuple[Array, Array]:
        """Reward of the best feasible action and of the best randomised policy (NaN where unknown), (rounds, S)."""
        ...

    def best(self, t: int) -> Actions:
        """The best feasible action of round t, (S,) or (S, d)."""
        ...

    def changes(self) -> tuple[tuple[int, Array], ...]:
        """Rounds t after which the functions move, with the norms (S, 1 + m) of the moves; empty if they never do."""
        ...


@dataclass(frozen=True)
class Instances:
    """One draw per replicate of a problem on a finite action set, which stays as it is (see `Drawn`).

    Attributes:
        f: noise-free reward, (S, n).
        g: noise-free constraints, (S, m, n).
        norm: bounds on RKHS norms of (f, g_1, ..., g_m), (S, 1 + m).
        noise: sub-Gaussian constants R of the observations of (f, g_1, ..., g_m), (S, 1 + m).
        seed_set: mask of the actions a safe method may start from, (S, n); all of them feasible.
        redraws: how many infeasible draws were thrown away, (S,).
    """

    f: Array
    g: Array
    norm: Array
    noise: Array
    seed_set: NDArray[np.bool_]
    redraws: NDArray[np.intp]
    accuracy: float = 0.0

    @property
    def replicates(self) -> int:
        return len(self.f)

    @property
    def constraints(self) -> int:
        return self.g.shape[1]

    @cached_property
    def functions(self) -> Array:
        """f and g stacked, (S, 1 + m, n)."""
        return np.concatenate([self.f[:, None], self.g], axis=1)

    @cached_property
    def sup(self) -> Array:
        """Largest absolute values of (f, g_1, ..., g_m), (S, 1 + m)."""
        return np.abs(self.functions).max(axis=2)

    @cached_property
    def optimum(self) -> NDArray[np.intp]:
        """Best feasible action, (S,)."""
        return reference.best_feasible(self.f, self.g)

    @cached_property
    def f_star(self) -> Array:
        """Reward of the best feasible action, (S,)."""
        return np.take_along_axis(self.f, self.optimum[:, None], axis=1)[:, 0]

    @cached_property
    def f_plus(self) -> Array:
        """Value of the best randomised policy, (S,); at least `f_star`."""
        return reference.best_policy_value(self.f, self.g)

    @cached_property
    def slater(self) -> Array:
        """delta = min(1, -min_x max_j g_j), (S,)."""
        return reference.slater_margin(self.g)

    @cached_property
    def _flat(self) -> tuple[Array, NDArray[np.intp]]:
        replicates, p, n = self.functions.shape
        return self.functions.reshape(-1), n * np.arange(replicates * p).reshape(replicates, p)

    def values(self, first: int, actions: NDArray[np.intp]) -> Array:
        flat, offsets = self._flat
        return flat.take(offsets + actions[..., None])

    def stars(self, first: int, rounds: int) -> tuple[Array, Array]:
        shape = (rounds, self.replicates)
        return np.broadcast_to(self.f_star, shape), np.broadcast_to(self.f_plus, shape)

    def best(self, t: int) -> NDArray[np.intp]:
        return self.optimum

    def changes(self) -> tuple[tuple[int, Array], ...]:
        return ()


class Problem:
    """Base of every problem. Subclasses are dataclasses registered with `@PROBLEMS.register("name")`.

    Class attributes:
        source: where the problem comes from, for tables.
        about: one line for tables.
    """

    name: ClassVar[str] = ""
    source: ClassVar[str] = ""
    about: ClassVar[str] = ""
    feasibility_tolerance: ClassVar[float] = 0.0

    @classmethod
    def facts(cls) -> dict[str, str]:
        """In words, for tables, with default parameters: action set, number of constraints, feasible share and f*."""
        return {"actions": "finite", "constraints": "1", "feasible": "varies", "best": "varies"}

    def offers(self) -> frozenset[Ability]:
        """What an algorithm may count on; what it needs beyond that makes it refuse the problem."""
        finite = isinstance(self.actions, Finite)
        found: set[Ability] = {"feedback at once"}
        if finite:
            found |= {"a finite action set", "a safe seed set"}
        if not isinstance(self.actions, Finite) or self.actions.points is not None:
            found.add("coordinates")
        return frozenset(found)

    def prepare(self, data: Any) -> None:
        """Work shared by all seeds; called once, on the driver, before anything is played.

        Args:
            data: a `cbobench.problems.data.DataFolder`, where original data sets are looked for.

        Raises:
            Misuse: missing or unreadable data, or no feasible action whatever the seed.
        """

    def identity(self) -> dict[str, Any]:
        """What fixes the problem beyond its parameters (hashes of files it read); enters a cell's id."""
        return {}

    @property
    def actions(self) -> Finite | Box:
        raise NotImplementedError

    @property
    def constraints(self) -> int:
        """m."""
        raise NotImplementedError

    def draw(self, generators: Sequence[np.random.Generator]) -> Drawn:
        """The instances of S seeds; replicate s uses only generators[s]."""
        raise NotImplementedError

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        """The noisy channel, from the feedback streams of the cells."""
        raise NotImplementedError

    def known_instance(self) -> Drawn | None:
        """The instance, where it is the same for every seed; lets errors be found before a sweep starts."""
        return None


def choose_seed_set(g: Array, size: int, generators: Sequence[np.random.Generator]) -> NDArray[np.bool_]:
    """`size` feasible actions per replicate, uniformly at random (all of them where there are fewer), (S, n).

    The draw comes from a child of each generator, so that it does not depend on how much the instance used.

    Random rather than safest: where g = h - f the safest actions are the best ones, which would hand a safe
    method the answer.
    """
    mask = np.zeros((len(g), g.shape[2]), dtype=bool)
    for s, gen in enumerate(generators):
        feasible = np.flatnonzero((g[s] <= 0).all(axis=0))
        if len(feasible) == 0:
            raise CellFailure("no feasible action to start from")
        mask[s, gen.spawn(1)[0].permutation(feasible)[:size]] = True
    return mask
