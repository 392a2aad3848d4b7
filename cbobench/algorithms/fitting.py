"""What a method's models are, its parameter `kernel`.

    given   the problem's kernel, with its lengthscale, for f and every g_j; λ is the method's. The theory is of this
    fit     a Matérn-5/2 kernel with a lengthscale for every input, an amplitude, a noise variance and a centre for
            each of f, g_1, ..., g_m, by maximum a posteriori from the observations (see
            `cbobench.gp.fit`)
    fit on boxes  `fit` on a box, `given` on a finite set

With `fit` every seed has models of its own, and whatever theorems say of λ, β, B, G and γ is a
heuristic: B and G are norms under the problem's kernel, γ is the gain under the kernel of the
moment. The noise variance is fitted where λ is `theory`, which then serves β alone, or `scaled`;
with `lam: true`, or a number, it is that, and the rest is fitted. Fitted models are for boxes, and
for finite sets with coordinates; feedback must arrive at once.
"""  # noqa: E501

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.problems.base import Problem

KernelChoice = Literal["given", "fit"]
OnBoxes = Literal["given", "fit", "fit on boxes"]
"""For methods whose authors fit: on boxes, unless the suite says otherwise; on finite sets the
problem's kernel.
"""

MOST = 2048  # largest number of actions for sample paths of fitted models, O(n³) per round


def is_fitted(kernel: OnBoxes, actions: Finite | Box) -> bool:
    """Return whether the models of an action set are fitted."""
    return kernel == "fit" or (kernel == "fit on boxes" and isinstance(actions, Box))


Bilog = bool | Literal["by evidence"]
"""Whether a constraint g is modelled as its bilog, sign(g) ln(1 + |g|) (`gp.fit.bilog`); by
evidence: where fitted models find it likelier (ours).

The bilog tames heavy tails, which a GP would take for roughness. It also bends what was smooth: of
a sum of ten inputs it leaves a model that sees no slope. No rule serves all functions, so the
densities of both models decide, function by function, at each fit.
"""


def undecided_functions(option: Bilog, constraints: int) -> NDArray[np.bool_] | None:
    """Return the functions (1 + m,) of which fitted models may take the bilog: the constraints, or
    None for none.
    """
    return np.arange(1 + constraints) > 0 if option == "by evidence" else None


def check_fit(kernel: OnBoxes, problem: Problem, joint: bool = False) -> None:
    """Raise `Misuse` if a kernel is to be fitted that cannot be.

    Args:
        joint: whether sample paths over all actions are drawn.
    """
    actions = problem.actions
    if not is_fitted(kernel, actions):
        return
    if isinstance(actions, Finite) and actions.points is None:
        raise Misuse(
            "kernel is fit, but the actions have no coordinates to fit a kernel of; allowed: given"
        )
    if "feedback at once" not in problem.offers():
        raise Misuse(
            "kernel is fit, but feedback is delayed, which fitted models do not take; allowed: "
            "given"
        )
    count = actions.n if isinstance(actions, Finite) else actions.size
    if joint and count > MOST:
        raise Misuse(
            f"kernel is fit, but sample paths of {count:,} actions take O(n³); allowed: "
            f"{MOST:,}, or given"
        )
