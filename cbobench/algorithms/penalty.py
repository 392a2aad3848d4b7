"""Penalty methods of Shi & Eryilmaz (2022): an unconstrained bandit on f minus a price, the price
updated in epochs.

f and the penalty's ingredients are observed separately and share a covariance, so the posterior of
the inner target f - Σ_j κ_j Λ(g_j) is a combination of theirs: a new κ needs no refit, and earlier
data may be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Setting
from cbobench.algorithms.fitting import Task
from cbobench.algorithms.optimistic import Bound, OptimisticReward, read_bound
from cbobench.algorithms.score import PENDING, Pending
from cbobench.errors import Misuse
from cbobench.gp.beliefs import UCB, Belief, Explore, FunctionBelief, Thompson
from cbobench.gp.kernels import Array, Indices
from cbobench.params import param, state
from cbobench.problems.base import Actions, Feedback

LARGEST_EXPONENT = 500.0  # exp overflows at 709
SMALLEST = 1e-12  # a constraint this flat has no chord


@dataclass(kw_only=True)
class Penalised(OptimisticReward):
    """Base: IGP-UCB or GP-TS on f - Σ_j κ_j Λ(g_j); subclasses define Λ and the update of κ.

    Assumptions 3 and 5 require a bound on the inner target, |f - Σ_j κ_j Λ(g_j)|_k < B, for every
    κ. `B: composite` is
    |f|_k + Σ_j κ_j |Λ(g_j)|_k, which grows with κ; `norm`, `sup` and numbers do not, and are too small once κ grows.

    Differs from the paper:

    1. For a non-linear Λ no formula gives |Λ(g_j)|_k; we use the chord Λ(s)/s · G_j up to the
       largest s = |g_j|.
    2. λ is 1 + 2/T unless given, also where every epoch starts anew (the proof's 1 + 2/S; line 3 of
       the algorithms says "some positive constant").
    """  # noqa: E501

    needs = frozenset({"feedback at once"})
    late = True
    looks_back = False

    pending: Pending = param("ignore", PENDING, quiet=True)
    B: float | Literal["composite", "norm", "sup"] = param(  # type: ignore[assignment]  # one more word than the base's
        "composite",
        "bound B of the inner target: |f| + Σ κ |Λ(g)| in norms, or a constant read from f alone",
        above=0.0,
    )
    G: Bound = param(
        "norm",
        "bound G of each constraint in a composite B: norm, largest value, or a number",
        above=0.0,
    )
    inner: Literal["ucb", "ts"] = param("ucb", "inner bandit: IGP-UCB, or GP-TS (Remark 1)")

    price: Array = state()

    def strategies(self) -> tuple[Explore, ...]:
        if self.inner == "ucb":
            return (UCB(+1),)
        return (Thompson(),)

    def penalty(self, g: Array) -> Array:
        """Return Λ(g), elementwise."""
        raise NotImplementedError

    def linear(self) -> bool:
        """Return whether Λ(g) is g itself."""
        return False

    def set_bounds(self, setting: Setting) -> None:
        norm = setting.norm
        sup = setting.sup
        self.bound_f = np.zeros_like(norm[:, :1])
        self.bound_g = np.zeros_like(norm[:, 1:])
        # A stated width needs no bound, which may be unknown.
        if not self.reads():
            return
        choice: Bound = "norm" if self.B == "composite" else self.B
        self.bound_f = read_bound("B", choice, norm[:, :1], sup[:, :1])
        if self.B != "composite":
            return

        # The chord of Λ stands for |Λ(g_j)|_k, which no formula gives (difference 1).
        steep: Array | float = 1.0
        if not self.linear():
            steep = self.penalty(sup[:, 1:]) / np.maximum(sup[:, 1:], SMALLEST)
        self.bound_g = steep * read_bound("G", self.G, norm[:, 1:], sup[:, 1:])

    @property
    def bounds(self) -> Array:
        """Return B of the inner target under the current κ, (S, 1)."""
        if self.B != "composite":
            return self.bound_f
        return self.bound_f + (self.price * self.bound_g).sum(axis=1, keepdims=True)

    def noise_constants(self) -> Array:
        """Return R of the inner target for linear Λ: √(R_f² + Σ κ_j² R_j²), which is R √(1 + Σ κ²)
        for equal constants.

        ψ amplifies noise on g by an unknown factor: use it on noiseless constraints only, as the
        paper does.
        """
        if not self.linear():
            return super().noise_constants()
        if isinstance(self.R, str):
            noise = self.setting.noise
        else:
            noise = np.full_like(self.setting.noise, self.R)
        combined = noise[:, 0] ** 2 + (self.price**2 * noise[:, 1:] ** 2).sum(axis=1)
        return np.sqrt(combined)[:, None]

    def targets(self, feedback: Feedback) -> Array:
        return np.concatenate([feedback.f[:, None], self.penalty(feedback.g)], axis=1)

    def score(self, belief: Belief) -> Array:
        f = belief.f
        penalties = belief.constraint
        mean = f.mean - np.add.reduce(self.price[:, :, None] * penalties.mean, axis=1)
        deviation = f.deviation
        if self.fits:  # separate models, not one for the inner target
            of_g = (self.price[:, :, None] * penalties.deviation) ** 2
            deviation = np.sqrt(f.deviation**2 + of_g.sum(axis=1))
        inner = FunctionBelief(mean=mean, deviation=deviation, width=f.width, path=f.path)
        return self.explore_f(inner)

    def obstacle(self, task: Task) -> str:
        if self.inner == "ts":
            return "inner is ts, which samples the inner target from one kernel; allowed: ucb"
        return super().obstacle(task)

    def recommend(self, t: int) -> Actions | None:
        """Return None, the incumbent by observed values, if Λ(g) is modelled in place of g."""
        if self.linear():
            return super().recommend(t)
        return None

    @property
    def duals(self) -> Array:
        return self.price


@ALGORITHMS.register("fixed-penalty")
@dataclass(kw_only=True)
class FixedPenalty(Penalised):
    """A constant κ: by Proposition 1 it cannot give sublinear regret and violation on every
    problem.
    """

    source = "Shi & Eryilmaz (2022) Prop. 1"
    about = "unconstrained bandit on f − κΛ(g) with a constant κ, which cannot work"
    knows = ("kernel", "λ", "B", "G", "R", "T", "κ")

    kappa: float = param(1.0, "multiplier κ of every constraint", at_least=0.0)
    form: Literal["linear", "exponential"] = param(
        "linear", "Λ(g): g itself, or exp(g) - 1 for g > 0, else 0"
    )

    def start(self, setting: Setting) -> None:
        # Before the base starts, whose width reads the price.
        self.price = np.full((setting.replicates, setting.constraints), self.kappa)
        super().start(setting)

    def linear(self) -> bool:
        return self.form == "linear"

    def penalty(self, g: Array) -> Array:
        if self.linear():
            return g
        return psi(g, "exponential", 1.0, 1.0) - 1

    def events(self) -> int:
        # With Thompson sampling α is shared with the concentration of the sample.
        if self.inner == "ucb":
            return 1
        return 2


@dataclass(kw_only=True)
class Epochs(Penalised):
    """Base of both algorithms: L epochs of S rounds, κ updated after each from the mean of the
    observed g.

    Differs from the paper:

    1. Algorithms 2 and 3 average g over the epoch's S rounds, all of which they chose and observed.
       Here the mean is over the costs observed in the epoch, of rounds that the method chose. So
       the rounds of a suite's initial design do not count, and late costs count in the epoch in
       which they arrive. Without any, κ stays.
    2. Where epochs forget, recommendations do not.
    """

    knows = ("kernel", "λ", "B", "G", "R", "T")
    first_price: ClassVar[float]  # κ_1

    S: int = param(20, "rounds per epoch; T = L S, and a last epoch may be shorter", at_least=1)
    keep: bool = param(
        True, "keep the data of earlier epochs; the letter of the paper forgets them"
    )
    first: Literal["tie", "last", "best"] = param(
        "tie",
        "first action of an epoch that forgets: drawn, as all tie under a flat prior; the last "
        "one of that before; "
        "its best one by the observed inner target under the new κ",
        quiet=True,
    )

    played_in_epoch: list[tuple[Actions, Array]] = state()  # actions and targets

    def validate(self) -> None:
        if self.first != "tie" and self.keep:
            raise Misuse(
                f"first is {self.first}, which needs keep: false; with keep: true no epoch "
                "starts from a tie"
            )

    def start(self, setting: Setting) -> None:
        self.epochs = -(-setting.horizon // self.S)  # L
        self.played_in_epoch = []
        # Before the base starts, whose width reads the price.
        self.price = np.full((setting.replicates, setting.constraints), self.first_price)
        super().start(setting)

    def prepare(self) -> None:
        self.costs, self.summed = np.zeros((2, *self.price.shape))

    def update_price(self, mean: Array) -> Array:
        """The next κ from the epoch's mean of g, both (S, m)."""
        raise NotImplementedError

    def events(self) -> int:
        if self.inner == "ucb":
            return self.epochs
        return 2 * self.epochs

    def evidence_horizon(self, horizon: int) -> float | None:
        if self.keep or not self.linear():
            return None
        return horizon

    def begin_round(self, t: int) -> None:
        if t > 1 and (t - 1) % self.S == 0:
            # Without a cost in the epoch the sum is 0, and so is the mean.
            self.price = self.update_price(self.costs / np.maximum(self.summed, 1))
            self.costs, self.summed = np.zeros((2, *self.price.shape))
            if not self.keep:
                self.forget()
            # A composite bound grows with κ.
            self.set_width()

    def ask(self, t: int) -> Actions:
        actions = super().ask(t)
        if self.first == "tie" or t == 1 or (t - 1) % self.S != 0 or not self.played_in_epoch:
            return actions

        # Only the first action of an epoch that forgets is another one: there all actions tie.
        before = np.stack([played for played, _ in self.played_in_epoch])
        rounds = np.full(len(self.price), len(before) - 1)
        if self.first == "best":
            targets = np.stack([target for _, target in self.played_in_epoch])
            # An f that nobody knows is NaN, and never the best.
            values = targets[:, :, 0] - (self.price * targets[:, :, 1:]).sum(axis=2)
            rounds = np.where(np.isnan(values), -np.inf, values).argmax(axis=0)
        self.played_in_epoch = []
        self.chosen = before[rounds, np.arange(len(rounds))]
        return self._to_play()

    def learn(self, t: int, chosen: Belief, feedback: Feedback) -> None:
        self.costs += feedback.costs()
        self.summed += feedback.counts()
        if self.first != "tie":
            self.played_in_epoch.append((self.chosen, self.targets(feedback)))


@ALGORITHMS.register("penalty-noiseless")
@dataclass(kw_only=True)
class PenaltyNoiseless(Epochs):
    """GP-UCB with noiseless constraints: target f - Σ κ_j (ψ(g_j) - 1), κ_j ← κ_j ψ(mean of g_j
    over the epoch), κ = 1.

    ψ(x) is 1 for x <= 0, and exp(c x) or (c x + 1)^n beyond. Multipliers only grow.

    Differs from the paper:

    1. κ is capped against overflow, of which the paper warns. How often that was in force is
       recorded (`cap_hits`): a capped κ is no longer the paper's method.
    """

    source = "Shi & Eryilmaz (2022) Alg. 2"
    about = "epochs of GP-UCB on f − κ(ψ(g) − 1), κ grows by ψ of the mean violation"
    first_price = 1.0

    psi: Literal["exponential", "power"] = param("exponential", "ψ: exp(c x), or (c x + 1)^n")
    c: float = param(1.0, "c of ψ", above=0.0)
    n: float = param(2.0, "n of the power ψ", at_least=1.0)
    cap: float = param(1e6, "largest κ (ours: a guard against overflow)", at_least=1.0)

    def penalty(self, g: Array) -> Array:
        return psi(g, self.psi, self.c, self.n) - 1

    def prepare(self) -> None:
        super().prepare()
        self.capped = np.zeros(self.setting.replicates, dtype=np.intp)

    def update_price(self, mean: Array) -> Array:
        price = self.price * psi(mean, self.psi, self.c, self.n)
        self.capped += (price > self.cap).any(axis=1)
        return np.minimum(price, self.cap)

    @property
    def cap_hits(self) -> Indices:
        return self.capped


@ALGORITHMS.register("penalty-noisy")
@dataclass(kw_only=True)
class PenaltyNoisy(Epochs):
    """GP-UCB with noisy constraints: target f - Σ κ_j g_j, noise R √(1 + Σ κ²), κ_j ← [κ_j + μ
    mean(g_j)]⁺, κ = 0.
    """

    source = "Shi & Eryilmaz (2022) Alg. 3"
    about = "epochs of GP-UCB on f − κg, κ moves by the mean of the observed costs"
    first_price = 0.0

    mu: float | Literal["theory"] = param(
        "theory", "step μ of the multipliers; theory: 1/√L", above=0.0
    )

    def linear(self) -> bool:
        return True

    def penalty(self, g: Array) -> Array:
        return g

    def update_price(self, mean: Array) -> Array:
        step = 1 / np.sqrt(self.epochs) if self.mu == "theory" else self.mu
        return np.maximum(self.price + step * mean, 0.0)

    def events(self) -> int:
        return 2 * super().events()


def psi(x: Array, form: str, c: float, n: float) -> Array:
    """ψ of Assumption 2: 1 for x <= 0, increasing and convex beyond, with ψ(x) ψ(y) >= ψ(x + y)
    (eqs. 9, 10).
    """
    # Both forms are 1 at 0, so cutting x there gives the flat part.
    inside = np.maximum(c * x, 0.0)
    if form == "exponential":
        return np.exp(np.minimum(inside, LARGEST_EXPONENT))
    return (inside + 1) ** n
