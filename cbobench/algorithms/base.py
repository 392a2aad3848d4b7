"""The contract of an algorithm, batched over S replicates.

    start(setting)            once
    ask(t) -> actions         every round, t = 1, 2, ..., T
    tell(t, actions, feedback)

An algorithm sees its own past feedback and what `Setting` says a learner may know; never f or g. Most derive
`score.ScoreAlgorithm`; one that thinks one run at a time derives `OneRun`.
"""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.params import state
from cbobench.problems.base import Feedback, Instances
from cbobench.rng import Streams

Actions = NDArray[np.intp]


@dataclass(frozen=True)
class Setting:
    """What a learner is given for S replicates in lock step.

    Attributes:
        actions: the action set.
        constraints: m.
        horizon: T.
        norm, sup: bounds on RKHS norms and on absolute values of (f, g_1, ..., g_m), (S, 1 + m).
        noise: sub-Gaussian constants R of the observations, (S, 1 + m).
        slater: delta, (S,).
        seed_set: mask of actions known to be safe, (S, n).
        streams: the algorithm's own randomness.
    """

    actions: Finite
    constraints: int
    horizon: int
    norm: Array
    sup: Array
    noise: Array
    slater: Array
    seed_set: NDArray[np.bool_]
    streams: Streams

    @classmethod
    def of(cls, actions: Finite, instances: Instances, horizon: int, streams: Streams) -> Setting:
        """The setting of drawn instances."""
        i = instances
        return cls(actions, i.constraints, horizon, i.norm, i.sup, i.noise, i.slater, i.seed_set, streams)

    @property
    def replicates(self) -> int:
        return len(self.norm)

    def only(self, replicate: int) -> Setting:
        """The setting of one replicate (S = 1)."""
        one = slice(replicate, replicate + 1)
        names = ("norm", "sup", "noise", "slater", "seed_set")
        return replace(self, **{n: getattr(self, n)[one] for n in names}, streams=self.streams.only(replicate))


class Algorithm:
    """Base of every algorithm. Subclasses are keyword-only dataclasses registered with `@ALGORITHMS.register("name")`.

    Class attributes:
        source: the paper, for tables.
        about: one line for tables.
        knows: what it must be told, in the words of the papers (B, G, R, lambda, kernel, safe seed, ...).
        reference: whether it is no learner but a yardstick, which gets to `look` at f and g.
    """

    name: ClassVar[str] = ""
    source: ClassVar[str] = ""
    about: ClassVar[str] = ""
    knows: ClassVar[tuple[str, ...]] = ()
    reference: ClassVar[bool] = False

    def check(self, actions: Finite, constraints: int) -> None:
        """Refuse a problem this algorithm cannot serve, before anything runs. Raises `Misuse`."""

    def look(self, instances: Instances) -> None:
        """See the drawn instances; called before `start`, for a reference only."""

    def start(self, setting: Setting) -> None:
        raise NotImplementedError

    def ask(self, t: int) -> Actions:
        """The actions of round t, (S,)."""
        raise NotImplementedError

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        """Feedback of round t."""

    @property
    def duals(self) -> Array | None:
        """The dual variables after the last round, (S, m), for algorithms that have them."""
        return None


@dataclass(kw_only=True)
class OneRun(Algorithm):
    """Base of an algorithm that thinks one run at a time: it is copied per replicate and looped.

    Subclasses write `start_one`, `ask_one` and `tell_one`; arrays there have no replicate axis. Slower, and easier.
    """

    setting: Setting = state()

    def start_one(self, setting: Setting) -> None:
        """Begin a run; every array of `setting` has a leading axis of length 1."""
        raise NotImplementedError

    def ask_one(self, t: int) -> int:
        raise NotImplementedError

    def tell_one(self, t: int, action: int, f: float, g: Array) -> None:
        """Feedback of the run: reward and constraint values (m,)."""

    def dual_one(self) -> Array | None:
        """Dual variables (m,), for algorithms that have them."""
        return None

    def start(self, setting: Setting) -> None:
        self.runs = [copy.deepcopy(self) for _ in range(setting.replicates)]
        for s, run in enumerate(self.runs):
            run.setting = setting.only(s)
            run.start_one(run.setting)

    def ask(self, t: int) -> Actions:
        return np.array([operator.index(run.ask_one(t)) for run in self.runs], dtype=np.intp)

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        for s, run in enumerate(self.runs):
            run.tell_one(t, int(actions[s]), float(feedback.f[s]), feedback.g[s])

    @property
    def duals(self) -> Array | None:
        each: list[Any] = [run.dual_one() for run in self.runs]
        return None if any(d is None for d in each) else np.stack(each)
