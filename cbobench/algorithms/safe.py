"""Hard-constraint methods that start from a safe seed set: StageOpt (Sui et al. 2018) and SGP-UCB (Amani et al. 2020).

Both play an action only if a confidence bound says that it is feasible, or if it is in the seed set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.optimistic import Optimistic
from cbobench.algorithms.safeset import Mask, SafeSet, interval, surely_feasible
from cbobench.errors import Misuse
from cbobench.gp.beliefs import Belief
from cbobench.gp.kernels import Array
from cbobench.params import param, state


@ALGORITHMS.register("sgp-ucb")
@dataclass(kw_only=True)
class SGPUCB(Optimistic):
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

    safe: Mask = state()

    def prepare(self) -> None:
        self.last_seed_round = whole_rounds(self.seed_rounds, self.setting.horizon)
        self.safe = self.setting.safe_seed

    def begin(self, t: int, belief: Belief) -> None:
        self.on_seed_set = t <= self.last_seed_round

    def score(self, belief: Belief) -> Array:
        if self.on_seed_set:
            return np.where(self.setting.safe_seed, 0.0, -np.inf)  # a tie on the seed set: broken uniformly
        self.safe = surely_feasible(interval(belief.constraint)[1], self.setting.safe_seed)
        return np.where(self.safe, self.explore_f(belief.f), -np.inf)

    @property
    def certified(self) -> Mask:
        return self.safe


@ALGORITHMS.register("stageopt")
@dataclass(kw_only=True)
class StageOpt(SafeSet):
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

    expand_rounds: int | float | Literal["T^(2/3)"] = param(
        "T^(2/3)", "T0, rounds of expansion: a number, a share of T below 1, or ⌈T^(2/3)⌉ (ours)", at_least=0
    )
    eps: float = param(0.0, "stop expanding when no expander's interval is wider than this", at_least=0.0)

    def prepare(self) -> None:
        super().prepare()
        self.last_expansion = whole_rounds(self.expand_rounds, self.setting.horizon)
        self.expanding = np.ones(self.setting.replicates, dtype=bool)

    def begin(self, t: int, belief: Belief) -> None:
        self.intersect(belief.constraint)
        self.grow()
        if t > self.last_expansion:
            self.expanding[:] = False
        if self.expanding.any():
            expanders = self._expanders()
            self.widest = np.where(expanders, (self.upper - self.lower).max(axis=1), -np.inf)
            self.expanding &= self.widest.max(axis=1) > self.eps

    def score(self, belief: Belief) -> Array:
        score = np.where(self.safe, self.explore_f(belief.f), -np.inf)
        return np.where(self.expanding[:, None], self.widest, score) if self.expanding.any() else score

    def _expanders(self) -> Mask:
        """G_t, (S, n)."""
        if self.lipschitz is not None:
            return self.safe & self.lipschitz.may_reach(self.lower)
        may_be_safe: Mask = (self.lower <= 0).all(axis=1) & ~self.safe
        return self.safe & may_be_safe.any(axis=1, keepdims=True)


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
