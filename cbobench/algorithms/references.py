"""References that are not methods: the best feasible action every round, and a uniformly random one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Actions, Algorithm, Setting
from cbobench.params import state
from cbobench.problems.base import Instances
from cbobench.rng import Draws, uniform


@ALGORITHMS.register("oracle")
@dataclass(kw_only=True)
class Oracle(Algorithm):
    """Plays the best feasible action: regret and violations are zero in every round."""

    source = "reference"
    about = "plays the best feasible action"
    knows = ("f and g",)
    reference = True

    optimum: Actions = state()

    def look(self, instances: Instances) -> None:
        self.optimum = instances.optimum

    def start(self, setting: Setting) -> None:
        """Nothing to set up."""

    def ask(self, t: int) -> Actions:
        return self.optimum


@ALGORITHMS.register("random")
@dataclass(kw_only=True)
class Random(Algorithm):
    """Plays a uniformly random action."""

    source = "reference"
    about = "plays uniformly at random"

    setting: Setting = state()

    def start(self, setting: Setting) -> None:
        self.setting = setting
        self.draws = Draws(setting.streams.role("actions"), uniform)

    def ask(self, t: int) -> Actions:
        return np.asarray(self.draws.at(t) * self.setting.actions.n, dtype=np.intp)
