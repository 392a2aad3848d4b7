"""Hard-constraint methods that start from a safe seed set.

SGP-UCB (Amani et al. 2020), StageOpt (Sui et al. 2018), SafeOpt (Sui et al. 2015) and SafeOpt-MC
(Berkenkamp et al. 2016) play an action only if a confidence bound says that it is feasible, or if
it is in the seed set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.optimistic import Optimistic
from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.beliefs import Belief, FunctionBelief
from cbobench.gp.kernels import AT_ONCE, Array, Indices, Mask
from cbobench.params import param, state
from cbobench.problems.base import Problem

LOOK_AHEAD = 32  # candidates per batch of look-aheads
# of β: by more than rounding moves a bound after a look-ahead, whose deviation is a root of what is
# left of a variance
OFF = 1e-4


@dataclass(kw_only=True)
class SafeSet(Optimistic):
    """A safe set that starts as the seed set and grows by the intervals of g.

    With a metric, intervals are intersected over time, starting with u <= 0 on the seed set; an
    interval that becomes empty, because the width was too small, restarts from the current one. A
    point x' is safe if for each constraint some safe x has u(x) + L d(x, x') <= 0. The metric is
    Euclidean (`input`), d_k(x, x') = √(k(x,x) + k(x',x') - 2k(x,x')) (`kernel`, for data without
    coordinates), or absent (`none`): then x is safe if u(x) <= 0.
    """

    knows = (
        "kernel",
        "λ",
        "B",
        "G",
        "R",
        "T",
        "safe seed set",
        "Lipschitz constant (unless metric: none)",
    )
    needs = frozenset({"a finite action set", "a safe seed set"})

    metric: Literal["none", "input", "kernel"] = param(
        "none", "metric of the Lipschitz condition on g"
    )
    L: float | Literal["theory"] = param(
        "theory",
        "Lipschitz constant; theory: |g|_k in the kernel metric, |g|_k max d_k/d in the input "
        "metric",
        above=0.0,
    )

    safe: Mask = state()

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.metric == "input" and "coordinates" not in problem.offers():
            raise Misuse(
                "metric is 'input', but the actions have no coordinates; allowed here: kernel, none"
            )
        if self.metric != "none" and isinstance(problem.actions, Finite):
            problem.actions.check_pairs(f"metric: {self.metric}", "take metric: none")

    def prepare(self) -> None:
        setting = self.setting
        shape = (setting.replicates, setting.constraints, setting.finite.n)
        # The seed set is known to be safe before anything is observed.
        self.upper = np.where(setting.safe_seed[:, None], 0.0, np.full(shape, np.inf))
        self.lower = np.full(shape, -np.inf)
        self.safe = setting.safe_seed.copy()
        self.lipschitz = None if self.metric == "none" else Lipschitz(*self._condition(), self.safe)

    def _condition(self) -> tuple[Array, Array]:
        """Return the metric (n, n) and the constants L (S, m) with |g_j(x) - g_j(x')| <= L_j d(x,
        x').

        The theory's L needs the RKHS norm of g, whatever G means: the largest |g| bounds no slope.
        """
        actions = self.setting.finite
        bound = self.setting.norm[:, 1:]
        if self.metric == "input":
            # |g|_k bounds slopes in the kernel metric; the steepest ratio of metrics converts them.
            assert actions.input_metric is not None
            metric = actions.input_metric
            bound = bound * actions.steepness
        else:
            metric = actions.kernel_metric
        if self.L == "theory":
            return metric, bound
        return metric, np.full_like(bound, self.L)

    def grow(self) -> None:
        """Add the points that the intervals certify."""
        if self.lipschitz is None:
            self.safe = surely_feasible(self.upper, self.setting.safe_seed)
        else:
            self.safe = self.lipschitz.grow(self.safe, self.upper)


class Lipschitz:
    """Safe sets that grow along a Lipschitz condition.

    The plain rule compares all pairs of actions every round. A safe x can certify a new point only
    if u(x) plus L times its distance to the nearest uncertified point is <= 0. So that distance is
    kept, and pairs are compared only in replicates where this test says that the set grows: at most
    n times in a run.

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
        """Compute L_j times the distance to the nearest point that constraint j does not certify
        yet.
        """
        # Rows of the metric in slices, which bounds memory.
        step = max(1, AT_ONCE // len(self.metric))
        for j, certified in enumerate(self.certified[s]):
            for i in range(0, len(self.metric), step):
                nearest = np.where(certified, np.inf, self.metric[i : i + step]).min(axis=1)
                self.to_uncertified[s, j, i : i + step] = self.constants[s, j] * nearest

    def grow(self, safe: Mask, upper: Array) -> Mask:
        """Compute S_t from S_{t-1}: one step of certification."""
        reaches = (upper + self.to_uncertified <= 0) & safe[:, None]
        growing = np.flatnonzero(reaches.any(axis=(1, 2)))
        if len(growing) == 0:
            return safe
        safe = safe.copy()
        for s in growing.tolist():
            for j, x in np.argwhere(reaches[s]).tolist():
                # What was certified stays so, though a later width may be larger.
                self.certified[s, j] |= upper[s, j, x] + self.constants[s, j] * self.metric[x] <= 0
            self._measure(s)
            safe[s] = self.certified[s].all(axis=0)
        return safe

    def may_reach(self, lower: Array) -> Mask:
        """Return the points whose lower bound allows that they certify a new point, (S, n)."""
        return np.asarray((lower + self.to_uncertified <= 0).any(axis=1))


def interval(function: FunctionBelief) -> tuple[Array, Array]:
    """Return Q_t: lower and upper confidence bounds, the shape of `function.mean`."""
    bonus = function.width * function.deviation
    return function.mean - bonus, function.mean + bonus


def intersect(lower: Array, upper: Array, low: Array, high: Array) -> None:
    """Compute C_t = C_{t-1} ∩ Q_t in place, restarting from Q_t = [low, high] where the
    intersection is empty.
    """
    np.minimum(upper, high, out=upper)
    np.maximum(lower, low, out=lower)
    empty = lower > upper
    upper[empty] = high[empty]
    lower[empty] = low[empty]


def surely_feasible(upper: Array, safe_seed: Mask) -> Mask:
    """Return the actions (S, n) whose upper bounds (S, m, n) of every constraint are <= 0, and the
    seed set.
    """
    return np.logical_and.reduce(upper <= 0, axis=1) | safe_seed


@ALGORITHMS.register("sgp-ucb")
@dataclass(kw_only=True)
class SGPUCB(Optimistic):
    """SGP-UCB: T' rounds uniformly on the seed set, then GP-UCB on {x : UCB_g(x) <= 0} and the seed
    set.

    Differs from the paper:

    1. In theory T' depends on an unknown safety gap and an unknown eigenvalue; the default is
    ⌈T^(2/3)⌉.
    2. The width is the one shared by all methods compared; the paper has a Bayesian one.
    """

    source = "Amani et al. (2020)"
    about = "safe: seed exploration, then UCB on the surely feasible set"
    knows = ("kernel", "λ", "B", "G", "R", "T", "safe seed set")
    needs = frozenset({"a finite action set", "a safe seed set"})

    seed_rounds: int | float | Literal["T^(2/3)"] = param(
        "T^(2/3)",
        "T', rounds on the seed set: a number, a share of T below 1, or ⌈T^(2/3)⌉ (ours)",
        at_least=0,
    )

    safe: Mask = state()

    def prepare(self) -> None:
        self.last_seed_round = whole_rounds(self.seed_rounds, self.setting.horizon)
        self.safe = self.setting.safe_seed

    def begin(self, t: int, belief: Belief) -> None:
        self.on_seed_set = t <= self.last_seed_round

    def score(self, belief: Belief) -> Array:
        if self.on_seed_set:
            # a tie on the seed set: broken uniformly
            return np.where(self.setting.safe_seed, 0.0, -np.inf)
        # The bound is of this round, so the set may also shrink.
        self.safe = surely_feasible(interval(belief.constraint)[1], self.setting.safe_seed)
        return np.where(self.safe, self.explore_f(belief.f), -np.inf)


@ALGORITHMS.register("stageopt")
@dataclass(kw_only=True)
class StageOpt(SafeSet):
    """StageOpt: expand the safe set by its widest expanders for T0 rounds, then GP-UCB on it.

    Confidence intervals are intersected over time, starting with u <= 0 on the seed set; an
    interval that becomes empty (the width was too small) starts again from the current one. A point
    x' is safe when for each constraint some safe x has u(x) + L d(x, x') <= 0, and x is an expander
    when for some constraint l(x) + L d(x, x') <= 0 at some x' that this constraint does not allow
    yet (with one constraint: that is not yet safe).

    The metric is Euclidean (`input`), d_k(x, x') = √(k(x,x) + k(x',x') - 2k(x,x')) (`kernel`, for
    data without coordinates), or there is none (`none`).

    Differs from the paper:

    1. Without a metric x is safe when u(x) <= 0. As nothing tells which safe points expand, all of
       them count as expanders while some other point may still be safe (our reading).
    2. T0 is ⌈T^(2/3)⌉ by default.
    """

    source = "Sui et al. (2018)"
    about = "safe: expand the safe set, then UCB on it"

    expand_rounds: int | float | Literal["T^(2/3)"] = param(
        "T^(2/3)",
        "T0, rounds of expansion: a number, a share of T below 1, or ⌈T^(2/3)⌉ (ours)",
        at_least=0,
    )
    eps: float = param(
        0.0, "stop expanding when no expander's interval is wider than this", at_least=0.0
    )

    def prepare(self) -> None:
        super().prepare()
        self.last_expansion = whole_rounds(self.expand_rounds, self.setting.horizon)
        self.expanding = np.ones(self.setting.replicates, dtype=bool)

    def begin(self, t: int, belief: Belief) -> None:
        intersect(self.lower, self.upper, *interval(belief.constraint))
        self.grow()

        # Expansion ends with its rounds, or earlier where no expander is wide.
        if t > self.last_expansion:
            self.expanding[:] = False
        if self.expanding.any():
            expanders = self._expanders()
            widths = (self.upper - self.lower).max(axis=1, initial=-np.inf)
            self.widest = np.where(expanders, widths, -np.inf)
            self.expanding &= self.widest.max(axis=1) > self.eps

    def score(self, belief: Belief) -> Array:
        score = np.where(self.safe, self.explore_f(belief.f), -np.inf)
        if self.expanding.any():
            return np.where(self.expanding[:, None], self.widest, score)
        return score

    def _expanders(self) -> Mask:
        """G_t, (S, n)."""
        if self.lipschitz is not None:
            return self.safe & self.lipschitz.may_reach(self.lower)
        # Without a metric all safe points expand while another may be safe (difference 1).
        may_be_safe = (self.lower <= 0).all(axis=1) & ~self.safe
        return self.safe & may_be_safe.any(axis=1, keepdims=True)


def whole_rounds(value: float | int | str, horizon: int) -> int:
    """Return a number of rounds: given whole, as a share of T (below 1), or as the word "T^(2/3)".

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


@ALGORITHMS.register("safeopt")
@dataclass(kw_only=True)
class SafeOpt(SafeSet):
    """Plays the widest interval among possible maximisers and expanders of the safe set.

    Maximisers are the safe x with u_f(x) >= max_S l_f; the width of x is its widest interval, of f
    or of any g_j. The seed set is always safe. `metric` (and L) are those of the safe set:

    - `none`, as in the authors' library: x is safe when its upper bounds of every g_j are <= 0,
      from this round's intervals alone. A safe x that is wider than every maximiser is an expander
      if, for every constraint, one more observation at x, as good as l_j(x), would bring the upper
      bound at some unsafe point to 0; the widest counts.
    - `input`, `kernel`, as in the papers: intervals are intersected over time, the safe set grows
      along the Lipschitz condition, and x is an expander if l_j(x) + L d(x, x') <= 0 for some j and
      some x' that j does not allow yet.

    Wide intervals are its aim: regret grows linearly until they are narrow.

    Differs from the authors' library:

    1. β is the one shared by all methods compared; the library's is 2.
    2. Widths are not divided by √k(x, x), which is the same for all functions here.
    """

    source = "Sui et al. (2015); Berkenkamp et al. (2016)"
    about = "safe: widest interval among possible maximisers and expanders"
    cost = "O(nr + r²), with a look-ahead at most O(n²r)"

    threshold: float = param(
        0.0, "an expander has an interval wider than this, in units of β (none only)", at_least=0.0
    )

    playable: Mask = state()

    def prepare(self) -> None:
        super().prepare()
        shape = (self.setting.replicates, self.setting.finite.n)
        self.upper_f = np.full(shape, np.inf)
        self.lower_f = np.full(shape, -np.inf)

    def begin(self, t: int, belief: Belief) -> None:
        # The library looks at this round's intervals alone, the papers at all rounds'.
        if self.lipschitz is None:
            self.lower_f, self.upper_f = interval(belief.f)
            self.lower, self.upper = interval(belief.constraint)
        else:
            intersect(self.lower_f, self.upper_f, *interval(belief.f))
            intersect(self.lower, self.upper, *interval(belief.constraint))
        self.grow()

        # Possible maximisers: safe points that may be better than the best lower bound.
        best = np.where(self.safe, self.lower_f, -np.inf).max(axis=1, keepdims=True)
        self.playable = self.safe & (self.upper_f >= best)
        self.widest = np.maximum(self.upper_f - self.lower_f, 0.0)
        if self.setting.constraints:
            self.widest = np.maximum(self.widest, (self.upper - self.lower).max(axis=1))
        if self.lipschitz is not None:
            self.playable |= self.safe & self.lipschitz.may_reach(self.lower)
            return

        # A look-ahead costs most, so it is left to replicates where one may succeed.
        wide = self._wide(belief)
        reach = self._within_reach(wide, belief)
        hopeful = np.logical_or.reduce(reach, axis=2).all(axis=1)
        for s in (hopeful & np.logical_or.reduce(wide, axis=1)).nonzero()[0].tolist():
            expander = self._widest_expander(s, wide[s].nonzero()[0], reach[s], belief)
            if expander is not None:
                self.playable[s, expander] = True

    def _wide(self, belief: Belief) -> Mask:
        """Return the safe points, (S, n), that are wider than every maximiser and the threshold;
        none where all points are safe.
        """
        # A narrower expander is never played, and needs no look-ahead.
        widest = np.maximum.reduce(
            np.where(self.playable, self.widest, -np.inf), axis=1, keepdims=True
        )
        above = 2 * belief.f.deviation > self.threshold
        above |= np.logical_or.reduce(2 * belief.constraint.deviation > self.threshold, axis=1)
        above &= self.safe & (self.widest > widest)
        # Where all points are safe there is nothing to expand to.
        above &= ~np.logical_and.reduce(self.safe, axis=1, keepdims=True)
        return above

    def _within_reach(self, wide: Mask, belief: Belief) -> Mask:
        """Return the unsafe points, (S, m, n), whose upper bound of g_j an observation at a wide
        point may bring to 0.

        An observation l_j at a point of variance s² and correlation ρ makes the bound μ + βσ √(1 -
        ρ²q) - βσ ρq with q = s²/(λ + s²). That is least for ρ = 1 and the largest q.
        """
        g = belief.constraint
        m = self.setting.constraints
        # The largest variance and correlation 1, so that nothing within reach is missed.
        variance = np.where(wide[:, None], g.deviation, 0.0).max(axis=2, keepdims=True) ** 2
        noise = [
            [self.posterior.noise_variance(s, 1 + j) for j in range(m)] for s in range(len(wide))
        ]
        q = variance / (variance + np.array(noise)[:, :, None])
        least = g.mean + g.width * (g.deviation * (np.sqrt(1 - q) - q) - OFF)
        return (least <= 0) & ~self.safe[:, None]

    def _widest_expander(
        self, s: int, candidates: Indices, reach: Mask, belief: Belief
    ) -> int | None:
        """Return the widest of some points that expands the safe set of replicate s.

        Args:
            reach: the points that may become safe, (m, n).
        """
        outside = [mask.nonzero()[0] for mask in reach]
        width = self.widest[s]
        # Widest first, so that the first one that expands is the answer; of equal ones the lowest
        # index.
        candidates = candidates[(-width[candidates]).argsort(kind="stable")]
        for first in range(0, candidates.size, LOOK_AHEAD):
            batch = candidates[first : first + LOOK_AHEAD]
            if self.setting.constraints:
                expands = self._expands(s, 0, batch, outside[0], belief)
            else:
                expands = batch >= 0
            for j in range(1, self.setting.constraints):
                expands &= self._expands(s, j, batch, outside[j], belief)
            best = int(expands.argmax())
            if expands[best]:
                return int(batch[best])
        return None

    def _expands(self, s: int, j: int, points: Indices, outside: Indices, belief: Belief) -> Mask:
        """Return whether observing l_j at each of q points would lower the upper bound of g_j at
        some outside point to 0.
        """
        g = belief.constraint
        columns = self.posterior.covariances(s, 1 + j, points)[:, outside]
        # Functions may share a deviation, (S, 1, n).
        deviation = g.deviation[s, min(j, g.deviation.shape[1] - 1)]
        mean = g.mean[s, j]

        # One more observation changes means and variances at rank one.
        total = self.posterior.noise_variance(s, 1 + j) + deviation[points] ** 2
        surprise = self.lower[s, j, points] - mean[points]
        bound = mean[outside] + columns * (surprise / total)[:, None]
        variance = deviation[outside] ** 2 - columns**2 / total[:, None]
        bound += g.width[s, j, 0] * np.sqrt(np.maximum(variance, 0.0))
        return np.logical_or.reduce(bound <= 0, axis=1)

    def score(self, belief: Belief) -> Array:
        return np.where(self.playable, self.widest, -np.inf)
