"""What methods that grow a safe set from a seed set share: intervals, certificates, a Lipschitz condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms.optimistic import Optimistic
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.beliefs import FunctionBelief
from cbobench.gp.kernels import AT_ONCE, Array
from cbobench.params import param, state
from cbobench.problems.base import Problem

Mask = NDArray[np.bool_]


@dataclass(kw_only=True)
class SafeSet(Optimistic):
    """A safe set that starts as the seed set and grows by what the intervals of g certify.

    With a metric, intervals are intersected over time, starting with u <= 0 on the seed set (one that becomes empty,
    the width being too small, starts again from the current one), and a point x' is safe when for each constraint some
    safe x has u(x) + L d(x, x') <= 0. The metric is Euclidean (`input`), d_k(x, x') = √(k(x,x) + k(x',x') - 2k(x,x'))
    (`kernel`, for data without coordinates), or there is none (`none`): then x is safe when u(x) <= 0.
    """

    knows = ("kernel", "λ", "B", "G", "R", "T", "safe seed set", "Lipschitz constant (unless metric: none)")
    needs = frozenset({"a finite action set", "a safe seed set"})

    metric: Literal["none", "input", "kernel"] = param("none", "metric of the Lipschitz condition on g")
    L: float | Literal["theory", "slope"] = param(
        "theory",
        "Lipschitz constant; theory: |g|_k in the kernel metric, |g|_k max d_k/d in the input metric; slope: the least",
        above=0.0,
    )

    safe: Mask = state()

    def validate(self) -> None:
        if self.L == "slope" and self.metric == "none":
            raise Misuse("L is 'slope', but metric is none; allowed with a slope: input, kernel")

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.metric == "input" and "coordinates" not in problem.offers():
            raise Misuse("metric is 'input', but the actions have no coordinates; allowed here: kernel, none")
        if self.metric != "none" and isinstance(problem.actions, Finite):
            problem.actions.check_pairs(f"metric: {self.metric}", "take metric: none")

    def prepare(self) -> None:
        setting = self.setting
        shape = (setting.replicates, setting.constraints, setting.finite.n)
        self.upper = np.where(setting.safe_seed[:, None], 0.0, np.full(shape, np.inf))
        self.lower = np.full(shape, -np.inf)
        self.safe = setting.safe_seed.copy()
        self.lipschitz = None if self.metric == "none" else Lipschitz(*self._condition(), self.safe)

    def _condition(self) -> tuple[Array, Array]:
        """The metric (n, n) and the constants L (S, m) with |g_j(x) - g_j(x')| <= L_j d(x, x').

        The theory's L needs the RKHS norm of g, whatever G is read as: the largest |g| bounds no slope. `slope` is the
        least valid constant, max |g(x) - g(x')| / d(x, x') over all pairs, which nobody knows before playing: it shows
        how much a method could gain by a better estimate of L.
        """
        actions, bound = self.setting.finite, self.setting.norm[:, 1:]
        if self.metric == "input":
            assert actions.input_metric is not None
            metric, bound = actions.input_metric, bound * actions.steepness
        else:
            metric = actions.kernel_metric
        if self.L == "slope":
            if self.setting.slopes is None:
                raise CellFailure("L is 'slope', but this problem does not say how steep g is; give theory or a number")
            return metric, self.setting.slopes(metric)[:, 1:]
        return metric, bound if self.L == "theory" else np.full_like(bound, self.L)

    @property
    def certified(self) -> Mask:
        return self.safe

    def grow(self) -> None:
        """The safe set that the intervals certify."""
        if self.lipschitz is None:
            self.safe = surely_feasible(self.upper, self.setting.safe_seed)
        else:
            self.safe = self.lipschitz.grow(self.safe, self.upper)

    def intersect(self, g: FunctionBelief) -> None:
        """C_t = C_{t-1} ∩ Q_t, starting again from Q_t where the intersection is empty."""
        low, high = interval(g)
        np.minimum(self.upper, high, out=self.upper)
        np.maximum(self.lower, low, out=self.lower)
        empty = self.lower > self.upper
        if empty.any():
            self.upper[empty], self.lower[empty] = high[empty], low[empty]


class Lipschitz:
    """Safe sets that grow along a Lipschitz condition.

    The plain rule compares all pairs of actions every round. A safe x can certify something new only if u(x) plus L
    times its distance to the nearest uncertified point is <= 0, so that distance is kept, and pairs are compared
    only in the replicates where the test says that the set grows: at most n times in a run.

    Args:
        metric: d(x, x'), (n, n).
        constants: L_j, (S, m).
        seed_set: certified from the start, (S, n).
    """

    def __init__(self, metric: Array, constants: Array, seed_set: Mask) -> None:
        self.metric = metric
        self.constants = constants
        self.certified = np.repeat(seed_set[:, None], constants.shape[1], axis=1)  # (S, m, n)
        self.to_uncertified = np.empty(self.certified.shape)
        for s in range(len(seed_set)):
            self._measure(s)

    def _measure(self, s: int) -> None:
        """L_j times the distance to the nearest point that constraint j does not certify yet."""
        step = max(1, AT_ONCE // len(self.metric))
        for j, certified in enumerate(self.certified[s]):
            for i in range(0, len(self.metric), step):
                nearest = np.where(certified, np.inf, self.metric[i : i + step]).min(axis=1)
                self.to_uncertified[s, j, i : i + step] = self.constants[s, j] * nearest

    def grow(self, safe: Mask, upper: Array) -> Mask:
        """S_t from S_{t-1}: one step of certification."""
        reaches = (upper + self.to_uncertified <= 0) & safe[:, None]
        growing = np.flatnonzero(reaches.any(axis=(1, 2)))
        if len(growing) == 0:
            return safe
        safe = safe.copy()
        for s in growing.tolist():
            for j, x in np.argwhere(reaches[s]).tolist():
                self.certified[s, j] |= upper[s, j, x] + self.constants[s, j] * self.metric[x] <= 0
            self._measure(s)
            safe[s] = self.certified[s].all(axis=0)
        return safe

    def may_reach(self, lower: Array) -> Mask:
        """Points whose lower bound leaves it possible that they certify something new, (S, n)."""
        return np.asarray((lower + self.to_uncertified <= 0).any(axis=1))


def interval(function: FunctionBelief) -> tuple[Array, Array]:
    """Q_t: lower and upper confidence bounds, the shape of `function.mean`."""
    bonus = function.width * function.deviation
    return function.mean - bonus, function.mean + bonus


def surely_feasible(upper: Array, safe_seed: Mask) -> Mask:
    """Actions (S, n) whose upper bounds (S, m, n) of every constraint are <= 0, and those of the seed set."""
    return (upper <= 0).all(axis=1) | safe_seed
