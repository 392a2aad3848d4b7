"""The contract of a problem: what is drawn per seed, what a learner may know, and what it is told each round.

Sign convention, once and for all: maximise f subject to g_j <= 0.

A problem is a keyword-only dataclass of parameters. `prepare` does the work that all seeds share (and reads files, on
the driver only); `draw` makes the instances of S seeds; `feedback` makes the noisy channel. Metrics use the noise-free
f and g of `Instances`, never what the learner was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import CellFailure
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.problems import reference
from cbobench.rng import Draws, Streams, standard_normal


@dataclass(frozen=True)
class Feedback:
    """What a learner is told after a round: noisy reward (S,) and constraint values (S, m)."""

    f: Array
    g: Array


class Channel(Protocol):
    """The noisy channel of S replicates; the noise of round t does not depend on what was played before."""

    def at(self, t: int, actions: NDArray[np.intp]) -> Feedback:
        """Feedback for the actions of round t; rounds are asked in order."""
        ...


@dataclass(frozen=True)
class Instances:
    """One draw of a problem per replicate.

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


class Problem:
    """Base of every problem. Subclasses are dataclasses registered with `@PROBLEMS.register("name")`.

    Class attributes:
        source: where the problem comes from, for tables.
        about: one line for tables.
    """

    name: ClassVar[str] = ""
    source: ClassVar[str] = ""
    about: ClassVar[str] = ""

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
    def actions(self) -> Finite:
        raise NotImplementedError

    @property
    def constraints(self) -> int:
        """m."""
        raise NotImplementedError

    def draw(self, generators: Sequence[np.random.Generator]) -> Instances:
        """The instances of S seeds; replicate s uses only generators[s]."""
        raise NotImplementedError

    def feedback(self, instances: Instances, streams: Streams) -> Channel:
        """The noisy channel, from the feedback streams of the cells."""
        raise NotImplementedError

    def known_instance(self) -> Instances | None:
        """The instance, where it is the same for every seed; lets errors be found before a sweep starts."""
        return None


class AdditiveGaussian:
    """Feedback f(x) + N(0, R_0^2) and g_j(x) + N(0, R_j^2), all independent.

    Args:
        functions: (S, 1 + m, n) noise-free values.
        deviation: (S, 1 + m) noise standard deviations.
        streams: feedback streams of the cells.
    """

    def __init__(self, functions: Array, deviation: Array, streams: Streams) -> None:
        self.values = np.ascontiguousarray(functions).reshape(-1)
        self.deviation = deviation
        replicates, p, n = functions.shape
        self.offsets = n * np.arange(replicates * p).reshape(replicates, p)
        self.draws = Draws(streams.role("noise"), standard_normal, (p,))

    def at(self, t: int, actions: NDArray[np.intp]) -> Feedback:
        observed = self.draws.at(t) * self.deviation
        observed += self.values.take(self.offsets + actions[:, None])
        return Feedback(observed[:, 0], observed[:, 1:])


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
