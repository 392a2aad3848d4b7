"""Optimism in the constraint: a constrained (CONFIG), penalised (EPBO) or primal-dual (PDBO) step.

All three maximise the upper confidence bound of f where the lower confidence bounds of g allow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.optimistic import Optimistic
from cbobench.gp.beliefs import Belief
from cbobench.gp.box import Box
from cbobench.gp.kernels import Array
from cbobench.gp.maximise import WALL
from cbobench.gp.parts import Parts
from cbobench.gp.posteriors.contract import Mask
from cbobench.params import param, state
from cbobench.problems.base import Feedback

EMPTY = -1e-9  # the least Σ [LCB_g]⁺ that a polished point may show and still count as allowed


@ALGORITHMS.register("config")
@dataclass(kw_only=True)
class CONFIG(Optimistic):
    """CONFIG: argmax UCB_f over {x : LCB_{g_j}(x) <= 0 for all j}.

    An empty set means that the problem is declared infeasible (with probability 1 - α, rightly). The paper stops there;
    here it is recorded, and the round plays argmin Σ_j [LCB_{g_j}]⁺. With `stop_when_infeasible` it stops, as far as a
    bandit can: the action of the round before (in round 1 the argmin) is played to the end. On a box the set counts as
    empty when neither a candidate nor a polished point lies in it.
    """

    source = "Xu et al. (2023)"
    about = "constrained optimism; declares infeasibility"
    knows = ("kernel", "λ", "B", "G", "R", "T (through λ)")

    stop_when_infeasible: bool = param(False, "keep the last action from the declaration on; false: argmin Σ [LCB_g]⁺")

    declared: NDArray[np.bool_] = state()

    def prepare(self) -> None:
        self.declared = np.zeros(self.setting.replicates, dtype=bool)

    def begin(self, t: int, belief: Belief) -> None:
        highest = self.explore_g(belief.constraint).max(axis=1)
        self.empty = np.asarray(highest.min(axis=1) > 0)  # as far as the candidates go
        self.hidden = np.zeros_like(self.empty)  # whether only a polished point lies in the set

    def parts(self, belief: Belief) -> Parts:
        f, g = self.explore_f(belief.f), self.explore_g(belief.constraint)
        smooth = np.where(self.empty[:, None], 0.0, f)
        wall = np.where(self.hidden, WALL, np.inf)
        price = np.where(self.empty, 1.0, wall)[:, None].repeat(self.setting.constraints, axis=1)
        return Parts(smooth, g, price)

    def maximise(self, t: int, box: Box, also: Array | None) -> tuple[Array, Array]:
        """Where only a polished point lies in the set, the set is not empty: climb again, from that point, for f."""
        first, violation = super().maximise(t, box, also)
        self.hidden = self.empty & (violation >= EMPTY)
        if not self.hidden.any():
            return first, violation
        self.empty &= ~self.hidden
        second, reached = super().maximise(t, box, first if self.played else None)
        return np.where(self.hidden[:, None], second, first), np.where(self.hidden, reached, violation)

    def keeps(self) -> Mask | None:
        self.declared |= self.empty & (self.achieved < EMPTY)
        waiting = super().keeps()
        if not self.stop_when_infeasible:
            return waiting
        return self.declared if waiting is None else self.declared | waiting

    @property
    def declared_infeasible(self) -> NDArray[np.bool_]:
        return self.declared


@ALGORITHMS.register("epbo")
@dataclass(kw_only=True)
class EPBO(Optimistic):
    """EPBO: argmax UCB_f - ρ Σ_j [LCB_{g_j}]⁺, exact for a large enough ρ, which nobody knows."""

    source = "Lu & Paulson (2022)"
    about = "exact penalty over optimistic bounds"
    knows = ("kernel", "λ", "B", "G", "R", "ρ", "T (through λ)")

    rho: float = param(1.0, "penalty ρ", at_least=0.0)

    def parts(self, belief: Belief) -> Parts:
        price = np.full((self.setting.replicates, self.setting.constraints), self.rho)
        return Parts(self.explore_f(belief.f), self.explore_g(belief.constraint), price)


@ALGORITHMS.register("primal-dual-bo")
@dataclass(kw_only=True)
class PrimalDualBO(Optimistic):
    """PDBO: argmax UCB_f - Σ_j λ_j LCB_{g_j}; λ ← [λ + η (g + ε)]⁺ without an upper bound, unlike CKB.

    g in the dual step is LCB_g(x_t) (the paper's form), or the observed cost (the released code's form).
    """

    source = "Xu et al. (2023b)"
    about = "primal-dual over optimistic bounds, dual variable not truncated"
    knows = ("kernel", "λ", "B", "G", "R", "T")

    form: Literal["lcb", "observed"] = param("lcb", "what the dual step uses")
    eta: float | Literal["theory"] = param("theory", "dual step η; theory: 1/√T", above=0.0)
    eps: float = param(0.0, "tightening ε of the constraint in the dual step", at_least=0.0)
    start_dual: float = param(0.0, "first value of every dual variable", at_least=0.0)

    dual: Array = state()

    def prepare(self) -> None:
        self.dual = np.full((self.setting.replicates, self.setting.constraints), self.start_dual)
        self.step = 1 / np.sqrt(self.setting.horizon) if self.eta == "theory" else self.eta

    def score(self, belief: Belief) -> Array:
        g = self.explore_g(belief.constraint)
        return self.explore_f(belief.f) - (self.dual[:, :, None] * g).sum(axis=1)

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        g = feedback.costs() if self.form == "observed" else self.explore_g(chosen.constraint)[:, :, 0]
        self.dual = np.maximum(self.dual + self.step * (g + self.eps), 0.0)

    @property
    def duals(self) -> Array:
        return self.dual
