"""Hard-constraint methods that start from a safe seed set: StageOpt (Sui et al. 2018) and SGP-UCB (Amani et al. 2020).

Both play an action only if a confidence bound says that it is feasible, or if it is in the seed set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.errors import Misuse
from cbobench.gp.beliefs import Belief, FunctionBelief
from cbobench.gp.kernels import Array
from cbobench.params import param, state
from cbobench.problems.base import Problem

Mask = NDArray[np.bool_]


@ALGORITHMS.register("sgp-ucb")
@dataclass(kw_only=True)
class SGPUCB(ScoreAlgorithm):
    """SGP-UCB: T' rounds uniformly on the seed set, then GP-UCB on {x : UCB_g(x) <= 0} and the seed set.

    T' depends in theory on a safety gap and an eigenvalue that nobody knows; the default ⌈T^(2/3)⌉ is ours. The width
    is the one shared by all methods compared, where the paper has a Bayesian one.
    """

    source = "Amani et al. (2020)"
    about = "safe: seed exploration, then UCB on the surely feasible set"
    knows = ("kernel", "λ", "B", "G", "R", "T", "safe seed set")
    needs = frozenset({"a finite action set", "a safe seed set"})

    seed_rounds: int | float | Literal["T^(2/3)"] = param(
        "T^(2/3)", "T', rounds on the seed set: a number, a share of T below 1, or ⌈T^(2/3)⌉ (ours)", at_least=0
    )

    def prepare(self) -> None:
        self.last_seed_round = whole_rounds(self.seed_rounds, self.setting.horizon)

    def begin(self, t: int, belief: Belief) -> None:
        self.on_seed_set = t <= self.last_seed_round

    def score(self, belief: Belief) -> Array:
        seed = self.setting.seeds
        if self.on_seed_set:
            return np.where(seed, 0.0, -np.inf)  # a tie on the seed set: broken uniformly
        surely_feasible = (upper(belief.constraint) <= 0).all(axis=1)
        return np.where(surely_feasible | seed, self.explore_f(belief.f), -np.inf)


@ALGORITHMS.register("stageopt")
@dataclass(kw_only=True)
class StageOpt(ScoreAlgorithm):
    """StageOpt: expand the safe set by its widest expanders for T0 rounds, then GP-UCB on it.

    Confidence intervals are intersected over time, starting with u <= 0 on the seed set; an interval that becomes empty
    (the width was too small) starts again from the current one. A point x' is safe when for each constraint some safe
    x has u(x) + L d(x, x') <= 0, and x is an expander when for some constraint l(x) + L d(x, x') <= 0 at some x' that
    this constraint does not allow yet (with one constraint: that is not yet safe).

    The metric is Euclidean (`input`), d_k(x, x') = √(k(x,x) + k(x',x') - 2k(x,x')) (`kernel`, for data without
    coordinates), or there is none (`none`): then x is safe when u(x) <= 0, and as nothing tells which safe points
    expand, all of them count as expanders while some other point may still be safe (our reading).
    """

    source = "Sui et al. (2018)"
    about = "safe: expand the safe set, then UCB on it"
    knows = ("kernel", "λ", "B", "G", "R", "T", "safe seed set", "Lipschitz constant (unless metric: none)")
    needs = frozenset({"a finite action set", "a safe seed set"})

    metric: Literal["none", "input", "kernel"] = param("none", "metric of the Lipschitz condition on g")
    L: float | Literal["theory"] = param(
        "theory",
        "Lipschitz constant; theory: |g|_k in the kernel metric, |g|_k max d_k/d in the input metric",
        above=0.0,
    )
    expand_rounds: int | float | Literal["T^(2/3)"] = param(
        "T^(2/3)", "T0, rounds of expansion: a number, a share of T below 1, or ⌈T^(2/3)⌉ (ours)", at_least=0
    )
    eps: float = param(0.0, "stop expanding when no expander's interval is wider than this", at_least=0.0)

    safe: Mask = state()

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.metric == "input" and "coordinates" not in problem.offers():
            raise Misuse("metric is 'input', but the actions have no coordinates; allowed here: kernel, none")

    def prepare(self) -> None:
        setting = self.setting
        shape = (setting.replicates, setting.constraints, setting.finite.n)
        self.last_expansion = whole_rounds(self.expand_rounds, setting.horizon)
        self.expanding = np.ones(setting.replicates, dtype=bool)
        self.upper = np.where(setting.seeds[:, None], 0.0, np.full(shape, np.inf))
        self.lower = np.full(shape, -np.inf)
        self.safe = setting.seeds.copy()
        self.lipschitz = None if self.metric == "none" else Lipschitz(*self._condition(), self.safe)

    def _condition(self) -> tuple[Array, Array]:
        """The metric (n, n) and the constants L (S, m) with |g_j(x) - g_j(x')| <= L_j d(x, x').

        The theory's L needs the RKHS norm of g, whatever G is read as: the largest |g| bounds no slope.
        """
        actions, bound = self.setting.finite, self.setting.norm[:, 1:]
        metric = actions.kernel_metric
        if self.metric == "input":
            assert actions.input_metric is not None
            apart = actions.input_metric > 0
            bound = bound * (metric[apart] / actions.input_metric[apart]).max()
            metric = actions.input_metric
        return metric, bound if self.L == "theory" else np.full_like(bound, self.L)

    def begin(self, t: int, belief: Belief) -> None:
        self._intersect(belief.constraint)
        if self.lipschitz is None:
            self.safe = (self.upper <= 0).all(axis=1) | self.setting.seeds
        else:
            self.safe = self.lipschitz.grow(self.safe, self.upper)
        if t > self.last_expansion:
            self.expanding[:] = False
        if self.expanding.any():
            expanders = self._expanders()
            self.widest = np.where(expanders, (self.upper - self.lower).max(axis=1), -np.inf)
            self.expanding &= self.widest.max(axis=1) > self.eps

    def score(self, belief: Belief) -> Array:
        score = np.where(self.safe, self.explore_f(belief.f), -np.inf)
        return np.where(self.expanding[:, None], self.widest, score) if self.expanding.any() else score

    def _intersect(self, g: FunctionBelief) -> None:
        """C_t = C_{t-1} ∩ Q_t, starting again from Q_t where the intersection is empty."""
        bonus = g.width * g.deviation
        low, high = g.mean - bonus, g.mean + bonus
        np.minimum(self.upper, high, out=self.upper)
        np.maximum(self.lower, low, out=self.lower)
        empty = self.lower > self.upper
        if empty.any():
            self.upper[empty], self.lower[empty] = high[empty], low[empty]

    def _expanders(self) -> Mask:
        """G_t, (S, n)."""
        if self.lipschitz is not None:
            return self.safe & self.lipschitz.may_reach(self.lower)
        may_be_safe: Mask = (self.lower <= 0).all(axis=1) & ~self.safe
        return self.safe & may_be_safe.any(axis=1, keepdims=True)


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
        open_only = np.where(self.certified[s][:, None, :], np.inf, self.metric)
        self.to_uncertified[s] = self.constants[s][:, None] * open_only.min(axis=2)

    def grow(self, safe: Mask, upper: Array) -> Mask:
        """S_t from S_{t-1}: one step of certification."""
        reaches = (upper + self.to_uncertified <= 0) & safe[:, None]
        growing = np.flatnonzero(reaches.any(axis=(1, 2)))
        if len(growing) == 0:
            return safe
        safe = safe.copy()
        for s in growing.tolist():
            reach = upper[s][:, :, None] + self.constants[s][:, None, None] * self.metric
            bound = np.where(safe[s][:, None], reach, np.inf)
            self.certified[s] |= (bound <= 0).any(axis=1)
            self._measure(s)
            safe[s] = self.certified[s].all(axis=0)
        return safe

    def may_reach(self, lower: Array) -> Mask:
        """Points whose lower bound leaves it possible that they certify something new, (S, n)."""
        return np.asarray((lower + self.to_uncertified <= 0).any(axis=1))


def upper(g: FunctionBelief) -> Array:
    """Upper confidence bounds of the constraints, (S, m, n)."""
    return g.mean + g.width * g.deviation


def whole_rounds(value: float | int | str, horizon: int) -> int:
    """A number of rounds: given whole, as a share of T (below 1), or as the word "T^(2/3)".

    Raises:
        Misuse: a number above 1 that is not whole.
    """
    if isinstance(value, str):
        return math.ceil(horizon ** (2 / 3))
    if value < 1:
        return math.ceil(value * horizon)
    if value != int(value):
        raise Misuse(f"{value} rounds; give a whole number, or a share of the horizon below 1")
    return int(value)
