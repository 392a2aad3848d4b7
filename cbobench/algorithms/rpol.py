"""Rectified pessimistic-optimistic learning (Guo, Zhu & Liu 2022), which bounds the violation
without compensation.

Three learning strategies share one framework (Section 3): GP-UCB (Section 4), censored GP-UCB for
delayed feedback (Section 5, Appendix C) and sliding-window GP-UCB for functions that move (Section
6, Appendix D).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Setting
from cbobench.algorithms.fitting import KernelChoice, Task, check_fit
from cbobench.algorithms.optimistic import Optimistic, theory_window
from cbobench.algorithms.score import Pending
from cbobench.errors import CellFailure
from cbobench.gp.beliefs import Belief, Parts
from cbobench.gp.confidence import WidthForm, greedy_gain
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.interface import Posterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.params import param, state
from cbobench.problems.base import Fact, Feedback, Problem

NOT_LATE = (
    "the model holds plays under way, of which no covariance is known before the values are; "
    "allowed: given"
)


@dataclass(kw_only=True)
class RPOL(Optimistic):
    """The framework: x_t = argmax f̂_t - Σ_j Q_j [ǧ_j]⁺, Q_{t+1} = max(Q_t + c_t⁺, √t), Q_1 = 1
    (eqs. 11, 12).

    f̂ is the upper and ǧ the lower confidence bound. Under delays, the costs revealed in a round
    are added.

    Differs from the paper:

    1. The paper has one constraint; with several, each has its own Q.
    """

    source = "Guo, Zhu & Liu (2022) Sec. 4"
    knows: ClassVar[tuple[str, ...]] = ("kernel", "λ", "B", "G", "R", "T (through λ)")
    looks_back = False

    floor: float = param(1.0, "factor on √t, the least penalty η_t", at_least=0.0)

    penalty: Array = state()

    def prepare(self) -> None:
        self.penalty = np.ones((self.setting.replicates, self.setting.constraints))

    def parts(self, belief: Belief) -> Parts:
        return Parts(self.explore_f(belief.f), self.explore_g(belief.constraint), self.penalty)

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        self.penalty = np.maximum(
            self.penalty + feedback.costs(rectified=True), self.floor * np.sqrt(t)
        )

    @property
    def duals(self) -> Array:
        return self.penalty


@ALGORITHMS.register("rpol-ucb")
@dataclass(kw_only=True)
class RPOLUCB(RPOL):
    """RPOL with improved GP-UCB/LCB: β = B + R √(2(γ + 1 + ln(2/p))) with p = α."""

    about = "rectified penalty with a rising floor, optimistic in reward and cost"


@ALGORITHMS.register("rpol-censored")
@dataclass(kw_only=True)
class RPOLCensored(RPOL):
    """RPOL with censored GP-UCB: the kernel matrix holds every played action, and missing
    observations count as 0.

    v_t = B_r Σ_{s=t-m}^{t-1} σ_t(x_s) + β_t with B_r = B + R √(2 ln T), β_t = B + (R + B_r) √(2(γ_t
    + 1 + ln(4/p))). An observation that takes longer than m rounds never enters the model; its cost
    still enters Q when it arrives.

    Differs from the paper:

    1. Feedback revealed in round t = s + d counts from decision t + 1 on, in the model as in Q,
       because the algorithm's feedback step follows its decision. The indicator d <= min(m, t - s)
       of Section 5, taken literally, puts it into the model of decision t already, before it is
       revealed, although its cost is in Q_{t+1} there too.
    """

    source = "Guo, Zhu & Liu (2022) Sec. 5, App. C"
    about = "RPOL for delayed feedback: variances know what was played, means what has arrived"
    knows = ("kernel", "λ", "B", "G", "R", "T", "delay cut-off m")
    pending: ClassVar[Pending] = "ignore"  # type: ignore[misc]

    cutoff: int = param(25, "m, rounds after which feedback is ignored", at_least=0)
    lag: float = param(
        1.0, "factor on B_r Σ σ_t(x_s), the width for what is under way", at_least=0.0
    )

    def check_late(self, problem: Problem) -> None:
        super().check_late(problem)
        check_fit(self.kernel, problem, NOT_LATE)

    def obstacle(self, task: Task) -> str:
        late = isinstance(task, Setting) and task.parallel > 1
        if late:
            return NOT_LATE
        return super().obstacle(task)

    def make_posterior(self, functions: int) -> Posterior:
        # one covariance under delays too: it holds all played actions
        return self.cheapest(functions)

    def reads(self) -> tuple[Fact, ...]:
        return "B", "R", "G"  # also where the width is stated, for what is under way

    def noise_constants(self) -> Array:
        # A missing observation counts as 0, an error as large as the observation itself.
        return super().noise_constants() + self._observation_bound()

    def _observation_bound(self) -> Array:
        """Return B_r of every function, (S, p): an observation exceeds it with probability at most
        2/T.
        """
        return self.bounds + super().noise_constants() * np.sqrt(2 * np.log(self.setting.horizon))

    def events(self) -> int:
        # 4 with one constraint, as in ln(4/p).
        return 2 * self.posterior.functions

    def round_width(self, t: int) -> Array:
        widths = super().round_width(t)
        if self.lag == 0 or not self.history or self.cutoff == 0:
            return widths

        # All plays of the last m rounds count, as v_t has it, whether they have arrived or not.
        recent = np.stack(self.history[-self.cutoff :], axis=1)  # (S, m) or (S, m, d)
        under_way = np.sqrt(self.posterior.at(recent)[1]).sum(axis=-1).reshape(len(widths), -1)
        return widths + self.lag * self.beta_scale * self._observation_bound() * under_way

    def condition(self, t: int, feedback: Feedback) -> None:
        self.history.append(self.chosen)
        # Without delays nothing is missing, and the model is that of RPOL.
        if feedback.arrivals is None:
            self.informed[:] = True
            self.posterior.update(self.chosen, self.told_values(feedback))
            return
        # A play enters at once with the value 0, so that variances count it; values are revealed as
        # they arrive.
        self.posterior.update(self.chosen, np.zeros((len(self.chosen), self.posterior.functions)))
        a = feedback.arrivals
        columns = (a.replicate.tolist(), a.round.tolist(), a.function.tolist(), a.value)
        for s, played_round, j, value in zip(*columns, strict=True):
            if t - played_round <= self.cutoff:
                self.informed[s] = True
                self.posterior.reveal(
                    s, played_round, self.history[played_round - 1][s], j, float(value)
                )


@ALGORITHMS.register("rpol-sw")
@dataclass(kw_only=True)
class RPOLSW(RPOL):
    """RPOL with sliding-window GP-UCB: f̂ = μ + βσ + Γ and ǧ = μ - βσ - Γ over the last W
    observations.

    β_t = B + (R/√λ) √(2γ + 2 ln(2T/p)) with γ of the window, and Γ_t = C Σ_window |f_s - f_{s+1}|_k
    with C = √(2W(1+λ)γ_T)/λ: from the true variation (`oracle`), from a given sum over any window
    (a number), or left out. γ_T is the greedy bound, whatever `gain` says of the γ in β: by
    definition the largest gain of any T actions.

    Differs from the paper:

    1. The algorithm of Appendix D keeps the rounds t - W, ..., t for decision t + 1, which are W +
       1; the text and the proof, whose sums have W terms, count W. `inclusive` decides. Γ sums the
       moves since the oldest kept round.
    """

    source = "Guo, Zhu & Liu (2022) Sec. 6, App. D"
    about = "RPOL on a sliding window, for functions that move"
    knows = ("kernel", "λ", "B", "G", "R", "T", "variation P_T (through W and Γ)")
    cost = "O(nW + W²); rough box O(MW + W²)"
    needs = frozenset({"feedback at once"})
    pending: ClassVar[Pending] = "ignore"  # type: ignore[misc]
    kernel: ClassVar[KernelChoice] = "given"  # type: ignore[misc]

    window: int | Literal["theory"] = param(
        "theory", "W, observations kept; theory: γ^(1/4) √(T/P_T)", at_least=1
    )
    inclusive: bool = param(
        True, "keep W + 1 observations, as the algorithm is written; false: W, as in its proof"
    )
    variation: float | Literal["oracle", "none"] = param(
        "oracle",
        "norm of the functions' moves within a window, in Γ: the true one, a number, or none",
        at_least=0.0,
    )

    def make_posterior(self, functions: int) -> Posterior:
        setting = self.setting
        if self.window == "theory":
            size = theory_window(setting, self.lam_for(setting.horizon))
        else:
            size = self.window
        self.size = min(size, setting.horizon)  # W
        # W + 1 as the algorithm is written, W as in its proof (difference 1).
        self.slots = min(self.size + self.inclusive, setting.horizon)
        return ObservationPosterior(setting.actions, 1.0, setting.replicates, functions, self.slots)

    def prepare(self) -> None:
        super().prepare()
        if self.variation == "oracle" and not all(
            np.isfinite(norms).all() for _, norms in self.setting.changes
        ):
            raise CellFailure(
                "variation reads norms of the functions' moves, but one is infinite; use none or "
                "a number"
            )

        # C scales moves, so that without a variation no gain is needed.
        lam = self.regulariser
        horizon = self.setting.horizon
        if self.variation != "none":
            gain = greedy_gain(self.setting.actions, lam, horizon)[-1]
        else:
            gain = 0.0
        self.constant = np.sqrt(2 * self.size * (1 + lam) * gain) / lam  # C

    def width_form(self) -> float | WidthForm:
        if isinstance(self.beta, str):
            return "self-normalised"
        return self.beta

    def events(self) -> int:
        # 2T with one constraint, as in ln(2T/p).
        return int(self.posterior.functions * self.setting.horizon)

    @property
    def remembered(self) -> int:
        return min(self.played, self.slots)

    def begin(self, t: int, belief: Belief) -> None:
        """Γ_t of every function, (S, 1 + m)."""
        moves = np.zeros((self.setting.replicates, 1 + self.setting.constraints))
        if self.variation == "oracle":
            for last_round, norms in self.setting.changes:
                # A move counts while an observation from before it is kept.
                if max(1, t - self.slots) <= last_round < t:
                    moves += norms
        elif self.variation != "none":
            moves += float(self.variation)
        self.drift = self.constant * moves

    def parts(self, belief: Belief) -> Parts:
        f = self.explore_f(belief.f) + self.drift[:, :1]
        g = self.explore_g(belief.constraint) - self.drift[:, 1:, None]
        return Parts(f, g, self.penalty)
