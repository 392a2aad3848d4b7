"""SafeOpt (Sui et al. 2015) and SafeOpt-MC (Berkenkamp et al. 2016): safe maximisation by widest intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.safeset import Mask, SafeSet, interval
from cbobench.gp.beliefs import Belief
from cbobench.gp.kernels import Array
from cbobench.params import param, state

Indices = NDArray[np.intp]
AT_ONCE = 32  # candidates of which a look-ahead is computed together


@ALGORITHMS.register("safeopt")
@dataclass(kw_only=True)
class SafeOpt(SafeSet):
    """Plays the widest interval among possible maximisers and expanders of the safe set.

    Maximisers are the safe x with u_f(x) >= max_S l_f; the width of x is its widest interval, of f or of any g_j. The
    seed set is always safe. `metric` (and L) are those of the safe set:

    - `none`, as in the authors' library: x is safe when its upper bounds of every g_j are <= 0, from this round's
      intervals alone. A safe x that is wider than every maximiser is an expander if, for every constraint, one more
      observation at x, as good as l_j(x), would bring the upper bound at some unsafe point to 0; the widest counts.
    - `input`, `kernel`, as in the papers: intervals are intersected over time, the safe set grows along the Lipschitz
      condition, and x is an expander if l_j(x) + L d(x, x') <= 0 for some j and some x' that j does not allow yet.

    The library's β is 2; here it is the one shared by all methods compared. It divides widths by √k(x, x), the same for
    all functions here. Wide intervals are its aim: regret grows linearly until they are narrow.
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
        shape = (self.setting.replicates, 1, self.setting.finite.n)
        self.upper_f, self.lower_f = np.full(shape, np.inf), np.full(shape, -np.inf)

    def begin(self, t: int, belief: Belief) -> None:
        if self.lipschitz is None:
            self.lower, self.upper = interval(belief.constraint)
        else:
            self.intersect(belief.constraint)
        self.grow()
        self._bound_f(belief)
        best = np.where(self.safe, self.lower_f[:, 0], -np.inf).max(axis=1, keepdims=True)
        self.playable = self.safe & (self.upper_f[:, 0] >= best)
        self.widest = np.maximum(self.upper_f - self.lower_f, 0.0)[:, 0]
        if self.setting.constraints:
            self.widest = np.maximum(self.widest, (self.upper - self.lower).max(axis=1))
        if self.lipschitz is not None:
            self.playable |= self.safe & self.lipschitz.may_reach(self.lower)
            return
        for s in range(self.setting.replicates):
            expander = self._widest_expander(s, belief)
            if expander is not None:
                self.playable[s, expander] = True

    def _bound_f(self, belief: Belief) -> None:
        """The interval of f: this round's, or (with a metric) the intersection over time, restarted where empty."""
        low, high = (bound[:, None] for bound in interval(belief.f))
        if self.lipschitz is not None:
            upper, lower = np.minimum(self.upper_f, high), np.maximum(self.lower_f, low)
            empty = lower > upper
            high, low = np.where(empty, high, upper), np.where(empty, low, lower)
        self.upper_f, self.lower_f = high, low

    def _widest_expander(self, s: int, belief: Belief) -> int | None:
        """The widest safe point that is wider than every maximiser and expands the safe set of replicate s."""
        safe, width = self.safe[s], self.widest[s]
        outside = np.flatnonzero(~safe)
        if len(outside) == 0:
            return None
        enough = width > width[self.playable[s]].max()
        deviation = np.broadcast_to(belief.constraint.deviation[s], self.upper[s].shape)
        spread = np.concatenate([belief.f.deviation[s][None], deviation])
        enough &= (2 * spread > self.threshold).any(axis=0)
        candidates = np.flatnonzero(safe & enough)
        candidates = candidates[np.argsort(-width[candidates], kind="stable")]
        for first in range(0, len(candidates), AT_ONCE):
            some = candidates[first : first + AT_ONCE]
            expands = np.ones(len(some), dtype=bool)
            for j in range(self.setting.constraints):
                expands &= self._expands(s, j, some, outside, belief)
            if expands.any():
                return int(some[expands.argmax()])
        return None

    def _expands(self, s: int, j: int, some: Indices, outside: Indices, belief: Belief) -> Mask:
        """Whether observing l_j at each of q points would bring the upper bound of g_j at some point outside to 0."""
        g = belief.constraint
        columns = self.posterior.covariances(s, 1 + j, some)  # (q, n)
        deviation = np.broadcast_to(g.deviation[s], g.mean[s].shape)[j]
        total = self.posterior.noise_variance(s, 1 + j) + deviation[some] ** 2
        surprise = self.lower[s, j, some] - g.mean[s, j, some]
        mean = g.mean[s, j, outside] + columns[:, outside] * (surprise / total)[:, None]
        variance = deviation[outside] ** 2 - columns[:, outside] ** 2 / total[:, None]
        bound = mean + g.width[s, j, 0] * np.sqrt(np.maximum(variance, 0.0))
        return np.asarray((bound <= 0).any(axis=1))

    def score(self, belief: Belief) -> Array:
        return np.where(self.playable, self.widest, -np.inf)
