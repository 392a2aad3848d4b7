"""Constrained online convex optimisation with bandit feedback, after Cao & Liu (2019): a
primal-dual gradient method.

We had no copy of the paper: the structure follows citations of it, and step sizes and constants are
ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import OneRun, Setting
from cbobench.errors import Misuse
from cbobench.gp.kernels import Array
from cbobench.gp.posteriors.choice import Kind
from cbobench.gp.single import Cube, RunningScale
from cbobench.params import param, state
from cbobench.problems.base import Problem

RADIUS = 0.5  # of the largest ball in the unit cube


@ALGORITHMS.register("bandit-oco")
@dataclass(kw_only=True)
class BanditOCO(OneRun):
    """Saddle-point steps on L(x, λ) = -f(x) + λ.g(x) - θ|λ|²/2 with gradients from function values.

    With u uniform on the unit sphere, the estimates are d/(2δ) (h(x + δu) - h(x - δu)) u from two
    rounds, or (d/δ) h(x + δu) u from one. Every evaluation is a round: regret and violation accrue
    at the perturbed points. Then

        x <- Proj(x - α (∇F + Σ_j λ_j ∇g_j)),   λ <- [(1 - μθ) λ + μ g]^+,

    on the cube (1 - ξ)X, ξ = δ/r, shrunk about its centre, so that no query leaves the box. g is
    what was observed (the mean of both observations, with two points). A last round without a
    partner is played and makes no step.

    Recorded duals are in units of f per unit of g_j. A local method: neither f nor g need be convex
    here.

    Differs from what is cited of the paper:

    1. Inputs live in the unit cube; a finite set is played at the nearest action, with δ at least
       the spacing of its actions, and the estimates take no notice of the rounding.
    2. Values are divided by the running range of what was observed (f) and by the running largest
       absolute value (g_j).
    3. Step sizes and constants are ours.
    """

    source = "Cao & Liu (2019)"
    about = (
        "constrained OCO with bandit feedback: primal-dual gradient steps from one or two "
        "function values"
    )
    knows = ("T",)
    needs = frozenset({"coordinates", "feedback at once"})
    cost = "O(d); finite O(nd)"

    points: Literal[1, 2] = param(2, "rounds per gradient estimate")
    c: float = param(1.0, "factor c of the steps α and μ", above=0.0)
    alpha: float | Literal["theory"] = param(
        "theory",
        "primal step α in the unit cube; theory: c T^(-1/2), with one point c T^(-3/4)",
        above=0.0,
    )
    mu: float | Literal["theory"] = param(
        "theory", "dual step μ; theory: read like alpha", at_least=0.0
    )
    delta: float | Literal["theory"] = param(
        "theory",
        "exploration radius δ in the unit cube; theory: delta_scale T^(-1/4), right under noise",
        above=0.0,
    )
    delta_scale: float = param(0.2, "factor of that radius", above=0.0)
    theta: float | Literal["theory"] = param(
        "theory", "regularisation θ of the dual; theory (ours): α", at_least=0.0
    )
    clip: float = param(
        3.0, "largest norm of the gradient of L in x; it is scaled down to that", above=0.0
    )
    scale: float | Literal["observed"] = param(
        "observed", "what values are divided by: their running ranges, or a number", above=0.0
    )
    subtract_mean: bool = param(
        True,
        "one point: subtract the mean of earlier rounds from h, which leaves the estimate unbiased",
    )

    x: Array = state()
    dual: Array = state()

    def validate(self) -> None:
        if self.delta != "theory" and self.delta > RADIUS:
            raise Misuse(
                f"delta is {self.delta}; allowed: at most {RADIUS}, the radius of a ball in the "
                "unit cube"
            )

    def posterior_kind(self, problem: Problem) -> Kind:
        return "none"

    def start_one(self, setting: Setting) -> None:
        m = setting.constraints
        T = setting.horizon
        self.cube = Cube(setting.actions)
        # Gradients from one point have a larger variance, so steps are smaller.
        exponent = -1 / 2 if self.points == 2 else -3 / 4
        order = self.c * T**exponent
        self.primal_step = order if self.alpha == "theory" else self.alpha
        self.dual_step = order if self.mu == "theory" else self.mu
        self.shrink = self.primal_step if self.theta == "theory" else self.theta
        radius = self.delta_scale * T ** (-1 / 4) if self.delta == "theory" else self.delta
        # A radius below the spacing of a finite set may play one action as both x + δu and x - δu.
        self.radius = min(max(radius, self.cube.spacing), RADIUS)

        # Queries are a radius away from x, and must not leave the cube.
        uniform = setting.streams.role("start")[0].random(self.cube.d)
        self.x = self.radius + (1 - 2 * self.radius) * uniform
        self.directions = setting.streams.role("directions")[0]
        self.dual = np.zeros(m)
        self.ranges = RunningScale(1, 1 + m, enabled=False)
        self.total = np.zeros(1 + m)
        self.rounds = 0
        self.first: Array | None = None  # values at x + δu, while x - δu is still to be played

    def ask_one(self, t: int) -> Any:
        if self.first is None:
            # A normal vector divided by its length is uniform on the sphere.
            normal = self.directions.standard_normal(self.cube.d)
            self.u = normal / np.sqrt((normal**2).sum())
            return self.cube.action(self.x + self.radius * self.u)
        return self.cube.action(self.x - self.radius * self.u)

    def tell_one(self, t: int, action: Any, f: float, g: Array) -> None:
        # The method minimises, so f enters with its sign turned.
        values = np.concatenate([[-f], g])
        self.ranges.add(values[None])
        if self.points == 1:
            if self.subtract_mean:
                baseline = self.total / max(self.rounds, 1)
            else:
                baseline = np.zeros_like(values)
            self._step((values - baseline) / self.radius, values[1:])
        elif self.first is None:
            self.first = values
        else:
            self._step((self.first - values) / (2 * self.radius), (self.first + values)[1:] / 2)
            self.first = None

        # After the step: a baseline of earlier rounds alone leaves the estimate unbiased.
        self.total += values
        self.rounds += 1

    def observe_one(self, t: int, action: Any, f: float, g: Array) -> None:
        """Update the ranges only: a point that it did not choose gives no gradient."""
        self.ranges.add(np.concatenate([[-f], g])[None])

    def _divisors(self) -> Array:
        """Return the scales of f and each g_j, (1 + m,); 1 before the first observation."""
        if self.scale != "observed":
            return np.full(len(self.total), float(self.scale))
        # Only differences of f count; of g also the distance from its limit 0.
        low = self.ranges.low[0]
        high = self.ranges.high[0]
        size = np.maximum(np.abs(low), np.abs(high))
        size[0] = high[0] - low[0]
        return np.where(size > 0, size, 1.0)

    def _step(self, slopes: Array, g: Array) -> None:
        """Step in x and in λ, both from the old pair; slopes (1 + m,) are along u, for h = (-f,
        g_1, ..., g_m).
        """
        divisors = self._divisors()
        scaled = slopes / divisors
        gradient = self.cube.d * (scaled[0] + (self.dual * scaled[1:]).sum()) * self.u
        norm = np.sqrt((gradient**2).sum())
        if norm > self.clip:
            gradient *= self.clip / norm
        # ξ/2 = δ on each side
        self.x = np.clip(self.x - self.primal_step * gradient, self.radius, 1 - self.radius)
        regularised = (1 - self.dual_step * self.shrink) * self.dual
        self.dual = np.maximum(regularised + self.dual_step * g / divisors[1:], 0.0)

    def dual_one(self) -> Array:
        # Back from divided values: f per unit of g_j.
        divisors = self._divisors()
        return self.dual * divisors[0] / divisors[1:]
