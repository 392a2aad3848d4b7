"""An easy problem on a box, and settings on boxes, for the methods that think one run at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cbobench.algorithms.base import Setting
from cbobench.gp.box_actions import Box
from cbobench.params import param
from cbobench.problems.formulas.box import BoxProblem, Reference
from tests.helpers import make, prepare_class, setting

SIDE = np.linspace(0, 4, 9)
GRID = np.stack(np.meshgrid(SIDE, SIDE), axis=-1).reshape(-1, 2)
"""81 points of a square."""


@dataclass(kw_only=True)
class Bowl(BoxProblem):
    """f = -|x - (0.2, 1.2)|² and g = x_1 + x_2 - 1 on [-1, 1] x [0, 2].

    The bowl's bottom violates g by 0.4; the best feasible point is 0.2 lower on each axis, f* =
    -0.08.
    """

    low = (-1.0, 0.0)
    high = (1.0, 2.0)
    reference = Reference(
        (0.0, 1.0), -0.08, 2.0, 0.5, 1e-9, "closed form: projection onto the line"
    )

    noise_f: float = param(0.02, "standard deviation of the noise on f", at_least=0.0)
    noise_g: float = param(0.02, "standard deviation of the noise on g", at_least=0.0)

    def formula(self, x: np.ndarray) -> np.ndarray:
        f = -((x[..., 0] - 0.2) ** 2) - (x[..., 1] - 1.2) ** 2
        return np.stack([f, x[..., 0] + x[..., 1] - 1.0], axis=-1)


def bowl(**settings):
    return prepare_class(Bowl, **settings)


def on_box(d: int = 2, *, constraints: int = 1, horizon: int = 100) -> Setting:
    """The setting of one run on [0, 1]^d."""
    box = Box(np.zeros(d), np.ones(d), size=64)
    on_set = setting(np.eye(2), constraints=constraints, horizon=horizon)
    return replace(on_set, actions=box, seed_set=None, kernel_is_known=False)


def started(name: str, setting: Setting, **settings):
    """One run of an algorithm, begun."""
    run = make(name, **settings)
    run.setting = setting
    run.start_one(setting)
    return run
