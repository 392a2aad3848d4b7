"""The base of problems that are known once their files are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbobench.gp.actions import Finite
from cbobench.params import state
from cbobench.problems.base import Channel, Drawn, Inputs, Objective, Problem
from cbobench.rng import Streams


@dataclass(kw_only=True)
class FromFiles(Problem):
    """Base of a problem that is played as another one.

    Attributes:
        played: that one, which `prepare` makes.
        by_name: see `Problem.describe_inputs`; None: as `played` says.
    """

    seed_independent = True

    played: Problem = state()
    by_name: Inputs | None = state()

    @property
    def actions(self) -> Finite:
        actions = self.played.actions
        assert isinstance(actions, Finite)
        return actions

    @property
    def constraints(self) -> int:
        return self.played.constraints

    @property
    def kernel_is_known(self) -> bool:  # type: ignore[override]
        return self.played.kernel_is_known

    def draw(self, generators: Sequence[np.random.Generator]) -> Drawn:
        return self.played.draw(generators)

    def feedback(self, instances: Drawn, streams: Streams) -> Channel:
        return self.played.feedback(instances, streams)

    def describe_inputs(self) -> Inputs | None:
        return super().describe_inputs() if self.by_name is None else self.by_name

    def describe_objective(self) -> Objective:
        return self.played.describe_objective()

    def measured_in(self) -> tuple[Sequence[Any], Any, Any] | None:
        return self.played.measured_in()

    def note(self) -> str:
        return self.played.note()
