"""What a method's models are, its parameter `kernel`.

    auto    the problem's kernel where it is the problem (`Problem.kernel_is_known`): functions drawn from its space, or
            readings whose covariance it is. Everywhere else it is a stand-in, so models are fitted; the problem's still
            serves where fitted models cannot (`find_obstacle`). The default
    given   the problem's kernel, with its lengthscale, for f and every g_j; λ is the method's. The theory is of this
    fit     a Matérn-5/2 kernel with a lengthscale for every input, an amplitude, a noise variance and a centre for
            each of f, g_1, ..., g_m, by maximum a posteriori from the observations (see
            `cbobench.gp.fit`)
    fit on boxes  `fit` on a box, `given` on a finite set

With fitted models every seed has models of its own, and whatever theorems say of λ, β, B, G and γ
is a heuristic: B and G are norms under the problem's kernel, γ is the gain under the kernel of the
moment. The noise variance is fitted where λ is `theory`, which then serves β alone, or `scaled`;
with `lam: true`, or a number, it is that, and the rest is fitted. Of a simulator nobody knows R, so `lam: true` is
refused there. Fitted models are for boxes, and
for finite sets with coordinates; feedback must arrive at once.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cbobench.algorithms.base import OneRun, Setting
from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import Array, Mask
from cbobench.gp.mixed_actions import Mixed
from cbobench.gp.posteriors.choice import Kind
from cbobench.gp.single import Noise, RunData
from cbobench.params import param
from cbobench.problems.base import Problem

Task = Problem | Setting
KernelChoice = Literal["auto", "given", "fit", "fit on boxes"]
KERNEL = "the models' kernel: the problem's (given), fitted (fit), or what is known of it (auto)"

MOST = 2048  # largest number of actions for sample paths of fitted models, O(n³) per round


def is_fitted(kernel: KernelChoice, task: Task, obstacle: str) -> bool:
    """Return whether models are fitted.

    Args:
        task: the problem, or what a learner is given of it.
        obstacle: why they cannot be, of which `auto` takes note; "" if they can.
    """
    if kernel == "auto":
        return not (task.kernel_is_known or obstacle)
    return kernel == "fit" or (kernel == "fit on boxes" and isinstance(task.actions, Box))


Bilog = bool | Literal["by evidence"]
"""Whether a constraint g is modelled as its bilog, sign(g) ln(1 + |g|) (`gp.fit.bilog`); by
evidence: where fitted models find it likelier (ours).

The bilog tames heavy tails, which a GP would take for roughness. It also bends what was smooth: of
a sum of ten inputs it leaves a model that sees no slope. No rule serves all functions, so the
densities of both models decide, function by function, at each fit.
"""


def undecided_functions(option: Bilog, constraints: int) -> Mask | None:
    """Return the functions (1 + m,) of which fitted models may take the bilog: the constraints, or
    None for none.
    """
    if option == "by evidence":
        return np.arange(1 + constraints) > 0
    return None


def noise_of_exact(setting: Setting) -> Array:
    """Return the noise variances (S, 1 + m) that fitted models take as given: 0 of what is observed
    without noise beside functions that have some, NaN of what is fitted.
    """
    exact: Mask = setting.exact
    is_mixed = exact.any(axis=1, keepdims=True) & ~exact.all(axis=1, keepdims=True)
    return np.where(exact & is_mixed, 0.0, np.nan)


def find_obstacle(task: Task, joint: bool = False) -> str:
    """Return why no kernel can be fitted, and what is allowed; "" if one can.

    Args:
        joint: whether sample paths over all actions are drawn.
    """
    actions = task.actions
    # A fitted kernel has a lengthscale for every coordinate.
    if isinstance(actions, Finite) and actions.points is None:
        return "the actions have no coordinates to fit a kernel of; allowed: given"
    # Several evaluations under way are told whole, in order; a problem's own delays are not.
    if isinstance(task, Setting):
        delays = task.delayed and task.parallel == 1
    else:
        delays = "feedback at once" not in task.offers()
    if delays:
        return "feedback is delayed, which fitted models do not take; allowed: given"

    # A joint sample factors the covariance of all actions, which each fit changes.
    count = actions.n if isinstance(actions, Finite) else actions.size
    if joint and isinstance(actions, Mixed):
        return "sample paths are drawn over a finite set"
    if joint and count > MOST:
        return f"sample paths of {count:,} actions take O(n³); allowed: {MOST:,}, or given"
    return ""


def check_noise(lam: float | str, problem: Problem) -> None:
    """Raise `Misuse` if λ is to be R², and nobody knows R."""
    if lam == "true" and "R" in problem.unknown:
        raise Misuse(
            "lam is true, which is R², and R of this problem is not known; give lam: NUMBER, or "
            "leave it out"
        )


def check_fit(kernel: KernelChoice, problem: Problem, obstacle: str) -> None:
    """Raise `Misuse` if a kernel is to be fitted that cannot be, or one is given of inputs of
    several kinds.
    """
    fitted = is_fitted(kernel, problem, obstacle)
    if isinstance(problem.actions, Mixed) and (obstacle or not fitted):
        why = obstacle.partition("; allowed")[0] or "kernel is given"
        fix = "" if obstacle else "kernel: fit, or "
        raise Misuse(
            f"{why}, but inputs of several kinds are played with fitted models; allowed: {fix}"
            "configurations: 2048 of the problem, a sample of them"
        )
    if obstacle and fitted:
        raise Misuse(f"kernel is fit, but {obstacle}")


@dataclass(kw_only=True)
class ModelledRun(OneRun):
    """Base of methods for one run at a time with models of f and every g_j."""

    needs = frozenset({"coordinates", "feedback at once"})
    takes_untold = True

    kernel: KernelChoice = param("auto", KERNEL)
    lam: Noise = param(
        "scaled",
        "noise variance; scaled (ours): 0.01 of each model's squared amplitude, or fitted; "
        "theory: 1 + 2/T; true: R²",
        above=0.0,
    )
    scaled: bool = param(
        True, "centre and amplitude of the models from the running range; else 0 and 1"
    )

    def check(self, problem: Problem) -> None:
        check_fit(self.kernel, problem, find_obstacle(problem))
        check_noise(self.lam, problem)

    def posterior_kind(self, problem: Problem) -> Kind:
        return "observations"

    def measured_in(self, data: RunData) -> Array | None:
        """Return exact values of g_j at actions of a finite set, (1, m, n), NaN where unknown; None
        on a box.
        """
        actions = self.setting.actions
        if not isinstance(actions, Finite):
            return None
        measured = np.full((1, self.setting.constraints, actions.n), np.nan)
        is_exact = self.setting.exact[0, 1:, None]
        measured[0, :, data.played] = np.where(is_exact, data.observed[1:], np.nan).T
        return measured
