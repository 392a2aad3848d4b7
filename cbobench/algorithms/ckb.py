"""Constrained kernelized bandits: primal-dual optimisation with any exploration (Zhou & Ji 2022,
Algorithm 1).

Called CBO in the preprint. Three explorations share one algorithm; slack (Section 4), several
constraints (footnote 1) and an unknown horizon (Remark 2) are options of all three. Two variants
have a virtual queue in place of the dual
variable: VQ-UCB, of the appendix, and SCGP-UCB, of the preprint, which is shown the constraint
before it acts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.optimistic import Optimistic, OptimisticReward, theory_window
from cbobench.algorithms.score import Pending
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.beliefs import (
    Belief,
    Explore,
    Parts,
    RandName,
    RandUCB,
    Thompson,
    Truncated,
    truncate,
)
from cbobench.gp.kernels import Array
from cbobench.params import param, state
from cbobench.problems.base import Fact, Feedback


@dataclass(kw_only=True)
class CKB(Optimistic):
    """Algorithm 1: x_t = argmax f̄_t - Σ_j φ_j ḡ_j, then φ_j ← Proj_[0, ρ](φ_j + (ḡ_j(x_t) + ε)/V),
    φ = 0 at first.

    f̄_t and ḡ_j are what the exploration strategies A_f and A_g estimate, truncated to [-B, B] and
    [-G, G]; subclasses choose the strategies. ρ = 4B/δ and V = G√T/ρ (Theorem 1), ε = 0 but for
    Section 4.

    Differs from the paper:

    1. With `anytime`, recommendations rest on the data of all epochs, under the λ of an endless
       one: the play alone begins anew.
    """

    source = "Zhou & Ji (2022) Alg. 1"
    knows: ClassVar[tuple[str, ...]] = ("kernel", "λ", "B", "G", "R", "δ (through ρ)", "T")

    capped = True

    slack: float = param(
        0.0,
        "slack ε in the dual step, at most δ/2 in the theory (Section 4)",
        at_least=0.0,
        varies=True,
    )
    delta: float | Literal["true"] = param(
        "true", "Slater margin δ: min(1, -min g), or a number", above=0.0, varies=True
    )
    rho: float | Literal["theory"] = param(
        "theory", "cap ρ of the dual variable; theory: 4B/δ", above=0.0, varies=True
    )
    V: float | Literal["theory"] = param(
        "theory", "inverse step of the dual update; theory: G√T/ρ", above=0.0, varies=True
    )
    anytime: bool = param(
        False,
        "horizon unknown: restart at t = 2, 4, 8, ... for twice as long (Remark 2); α is per epoch",
    )

    dual: Array = state()

    def reads(self) -> tuple[Fact, ...]:
        of_width: tuple[Fact, ...] = ("R",) if isinstance(self.beta, str) else ()
        # B and G also truncate estimates and set ρ and V, whatever the width.
        return "B", "G", "delta", *of_width

    def prepare(self) -> None:
        delta = self.setting.margin(self.delta)
        if isinstance(self.rho, str):
            # ρ = 4B/δ of Theorem 1; a stated ρ needs no margin.
            if not (delta > 0).all():
                raise CellFailure(
                    "δ is 0: no action satisfies the constraints strictly; give delta or rho"
                )
            self.cap = 4 * self.bound_f / delta[:, None]
        else:
            self.cap = np.full_like(self.bound_f, self.rho)

        # V divides by ρ, and the dual step by V.
        least = min(self.cap.min(), self.bound_g.min(initial=np.inf))
        if isinstance(self.V, str) and not least > 0:
            raise CellFailure("B or G is 0, so that V = G√T/ρ is no number; give V, or B and G")
        self._restart(1 if self.anytime else self.setting.horizon)

    def _restart(self, horizon: int) -> None:
        """φ_1 = 0 (line 1), and the step for a horizon."""
        self.dual = np.zeros((self.setting.replicates, self.setting.constraints))
        if isinstance(self.V, str):
            step = self.bound_g[..., 0] * np.sqrt(horizon) / self.cap
        else:
            step = np.asarray(self.V)
        self.inverse_step = np.broadcast_to(step, self.dual.shape)

    def evidence_horizon(self, horizon: int) -> float | None:
        # λ of an endless horizon: the data of all epochs recommend (difference 1).
        if self.anytime:
            return math.inf
        return None

    def begin_round(self, t: int) -> None:
        if self.anytime and t & (t - 1) == 0:  # t = 1, 2, 4, ...: an epoch of t rounds begins
            self.begin_schedule(t)
            self._restart(t)

    def parts(self, belief: Belief) -> Truncated:
        z = Truncated(self.explore_f(belief.f), self.bound_f)  # lines 3-4
        if self.box is None and not np.logical_or.reduce(self.dual, axis=None):
            return z  # all prices are 0, so g does not matter: the same bits for less work
        return z.minus(self.dual, self.explore_g(belief.constraint), self.bound_g)  # lines 3, 5, 6

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        # The price moves by the estimate at x_t, not by the cost observed there.
        g = truncate(self.explore_g(chosen.constraint), self.bound_g)[..., 0]
        step = (g + self.slack) / self.inverse_step
        self.dual = np.maximum(self.dual + step, 0.0)
        if self.capped:
            self.dual = np.minimum(self.dual, self.cap)  # line 8: Proj_[0, ρ]

    @property
    def duals(self) -> Array:
        return self.dual


@ALGORITHMS.register("ckb-ucb")
@dataclass(kw_only=True)
class CKBUCB(CKB):
    """CKB with UCB for the reward and LCB for the cost (Definition 1 (i), Theorem 1)."""

    about = "primal-dual, optimistic in reward and cost"


@ALGORITHMS.register("ckb-restart")
@dataclass(kw_only=True)
class CKBRestart(CKBUCB):
    """CKB-UCB that discards all data every W rounds, for functions that move; the dual variable
    carries over.

    Differs from the paper:

    1. The width is CKB-UCB's, with the information gain since the restart, so that W >= T is
       CKB-UCB to the bit; the form B + (R/√λ) √(2 ln(1/δ) + 2γ) of the paper is `beta:
       self-normalised` but for the count of events.
    """

    source = "Deng et al. (2022)"
    about = "CKB-UCB whose models restart every W rounds"
    knows = (*CKB.knows, "variation P_T (through W)")

    restart: int | Literal["theory"] = param(
        "theory", "W, rounds between restarts; theory: γ^(1/4) √(T/P_T)", at_least=1
    )

    def prepare(self) -> None:
        super().prepare()
        if self.restart == "theory":
            self.period = theory_window(self.setting, self.regulariser)
        else:
            self.period = self.restart

    def begin_round(self, t: int) -> None:
        super().begin_round(t)
        if t > 1 and (t - 1) % self.period == 0:
            # Functions have moved, so that old data mislead recommendations, too.
            self.forget(stale=True)


@ALGORITHMS.register("ckb-ts")
@dataclass(kw_only=True)
class CKBTS(CKB):
    """CKB with joint posterior samples of covariance β² k_t for f and for each g, independent of
    each other.
    """

    about = "primal-dual, Thompson sampling"

    def strategies(self) -> tuple[Explore, Explore]:
        return Thompson(), Thompson()


@ALGORITHMS.register("ckb-rand")
@dataclass(kw_only=True)
class CKBRand(CKB):
    """CKB with RandGP-UCB (Definition 2): μ + Z_t σ, one Z_t per round and function for all
    actions.

    The two discrete laws of Appendix C are shown there for the reward; for a cost they point the
    other way.
    """

    about = "primal-dual, one random width per round"

    law: RandName = param(
        "normal", "law of Z: N(0, β²), uniform on points of [0, 2β], or Gaussian on points"
    )
    points: int = param(20, "N, points of a discrete law", at_least=2)
    low: float = param(0.0, "L in units of β (discrete-gaussian)")
    high: float = param(2.0, "U in units of β (discrete-gaussian)")

    def validate(self) -> None:
        if self.low >= self.high:
            raise Misuse(f"low is {self.low} and high {self.high}; low must be below high")

    def strategies(self) -> tuple[Explore, Explore]:
        options = (self.points, self.low, self.high)
        return RandUCB(self.law, +1, *options), RandUCB(self.law, -1, *options)


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
    delta: float | Literal["true"] = param(
        "true", "Slater margin δ: min(1, -min g), or a number", above=0.0
    )

    queue: Array = state()

    def reads(self) -> tuple[Fact, ...]:
        return "B", "R", "delta"

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
        # The cases of Theorem 4.
        if self.case == 1:
            self.eps = 1 / root
            self.V = self.margin / 8 * root / self.bound_f
        else:
            self.eps = self.margin / (2 * root)
            self.V = self.margin**2 / 16 * root / self.bound_f

    def parts(self, belief: Belief) -> Parts:
        assert belief.shown is not None
        f = self.explore_f(belief.f)  # line 2
        cost = ((self.queue / self.V)[:, :, None] * belief.shown).sum(axis=1)
        smooth = np.maximum(f, -self.bound_f) - cost  # lines 3-5; truncation from above is the kink
        return Parts(smooth, (f - self.bound_f)[:, None], np.ones_like(self.bound_f))

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        # line 7; the cost observed is g_t(x_t)
        self.queue = np.maximum(self.queue + feedback.g + self.eps, 0.0)

    @property
    def duals(self) -> Array:
        return self.queue / self.V


@ALGORITHMS.register("vq-ucb")
@dataclass(kw_only=True)
class VQUCB(CKBUCB):
    """The Lyapunov-drift form of CKB-UCB: φ = Q/V with Q ← [Q + ḡ_t(x_t) + ε]⁺, not capped by ρ.

    V is CKB's (G√T/ρ with ρ = 4B/δ) unless given, and ε is CKB's slack; the appendix leaves both
    open.
    """

    capped = False

    source = "Zhou & Ji (2022) App. F Alg. 2"
    about = "CKB-UCB with an uncapped virtual queue"
