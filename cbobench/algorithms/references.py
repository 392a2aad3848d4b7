"""References that are not methods: the best feasible action every round, and a uniformly random one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm, Setting
from cbobench.gp.box import Box
from cbobench.gp.posteriors.choice import Kind
from cbobench.params import state
from cbobench.problems.base import Actions, Drawn
from cbobench.rng import Draws, uniform


@ALGORITHMS.register("oracle")
@dataclass(kw_only=True)
class Oracle(Algorithm):
    """Plays the best feasible action: regret and violations are zero in every round."""

    source = "reference"
    about = "plays the best feasible action"
    knows = ("f and g",)
    needs = frozenset({"a known optimum"})
    reference = True

    def posterior_kind(self) -> Kind:
        return "none"

    instances: Drawn = state()

    def look(self, instances: Drawn) -> None:
        self.instances = instances

    def start(self, setting: Setting) -> None:
        """Nothing to set up."""

    def ask(self, t: int) -> Actions:
        return self.instances.best(t)

    def recommend(self, t: int) -> Actions:
        return self.instances.best(t)


@ALGORITHMS.register("random")
@dataclass(kw_only=True)
class Random(Algorithm):
    """Plays a uniformly random action."""

    source = "reference"
    about = "plays uniformly at random"

    setting: Setting = state()

    def posterior_kind(self) -> Kind:
        return "none"

    def start(self, setting: Setting) -> None:
        self.setting = setting
        box = isinstance(setting.actions, Box)
        self.draws = Draws(setting.streams.role("actions"), uniform, (setting.actions.d,) if box else ())

    def ask(self, t: int) -> Actions:
        actions = self.setting.actions
        if isinstance(actions, Box):
            return actions.scale(self.draws.at(t))
        return np.asarray(self.draws.at(t) * actions.n, dtype=np.intp)
