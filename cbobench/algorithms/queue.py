"""Virtual queues in the place of a dual variable: SCGP-UCB, shown the constraint before acting, and VQ-UCB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.ckb import CKBUCB
from cbobench.algorithms.optimistic import OptimisticReward
from cbobench.algorithms.pending import Pending
from cbobench.errors import CellFailure
from cbobench.gp.beliefs import Belief
from cbobench.gp.kernels import Array
from cbobench.gp.parts import Parts
from cbobench.params import param, state
from cbobench.problems.base import Feedback


@ALGORITHMS.register("scgp-ucb")
@dataclass(kw_only=True)
class SCGPUCB(OptimisticReward):
    """SCGP-UCB: x_t = argmax f̄_t - Q(t) g_t / V_t with a fresh sample g_t(.) seen before acting.

    Case 1 of Theorem 4: ε_t = 1/√t, V_t = δ√t/(8B); case 2: ε_t = δ/(2√t), V_t = δ²√t/(16B).
    """

    source = "CBO preprint Alg. 2"
    about = "virtual queue; sees a sample of the constraint function before acting"
    knows = ("kernel", "λ", "B", "R", "δ", "T (through λ)", "g_t before acting")
    needs = frozenset({"full information of the constraints", "feedback at once"})
    pending: ClassVar[Pending] = "ignore"  # type: ignore[misc]
    models_constraints = False
    looks_back = False

    case: Literal[1, 2] = param(1, "which ε_t and V_t of Theorem 4")
    delta: float | Literal["true"] = param("true", "Slater margin δ: min(1, -min g), or a number", above=0.0)

    queue: Array = state()

    def prepare(self) -> None:
        self.queue = np.zeros((self.setting.replicates, self.setting.constraints))  # Q(1) = 0
        margin = self.setting.margin(self.delta)
        if not (margin > 0).all():
            raise CellFailure("δ is 0: no action satisfies the constraints strictly; give delta")
        self.margin = margin[:, None]

    def events(self) -> int:
        return 2  # ln(2/α), as in Theorem 3

    def begin(self, t: int, belief: Belief) -> None:
        root = np.sqrt(t)
        self.eps = 1 / root if self.case == 1 else self.margin / (2 * root)
        self.V = (self.margin / 8 if self.case == 1 else self.margin**2 / 16) * root / self.bound_f

    def parts(self, belief: Belief) -> Parts:
        assert belief.shown is not None
        f = self.explore_f(belief.f)  # line 2
        cost = ((self.queue / self.V)[:, :, None] * belief.shown).sum(axis=1)
        smooth = np.maximum(f, -self.bound_f) - cost  # lines 3-5; truncation from above is the kink
        return Parts(smooth, (f - self.bound_f)[:, None], np.ones_like(self.bound_f))

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        self.queue = np.maximum(self.queue + feedback.g + self.eps, 0.0)  # line 7; the cost observed is g_t(x_t)

    @property
    def duals(self) -> Array:
        return np.asarray(self.queue / self.V)


@ALGORITHMS.register("vq-ucb")
@dataclass(kw_only=True)
class VQUCB(CKBUCB):
    """The Lyapunov-drift form of CKB-UCB: φ = Q/V with Q ← [Q + ḡ_t(x_t) + ε]⁺, not capped by ρ.

    V is CKB's (G√T/ρ with ρ = 4B/δ) unless given, and ε is CKB's slack; the appendix leaves both open.
    """

    capped = False

    source = "Zhou & Ji (2022) App. F Alg. 2"
    about = "CKB-UCB with an uncapped virtual queue"
