"""A play whose method is given the actions of most rounds, and timed in those that it plays: for `--dry-run`.

Late rounds are reached so at less cost, as to learn is cheaper than to choose.
"""

from __future__ import annotations

import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import inf
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cbobench.algorithms.base import Algorithm, Setting
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.play.failure import TimedOut
from cbobench.play.play import CHUNK, Play, read_cpu_seconds
from cbobench.problems.base import Actions, Feedback

FIRST_ROUNDS = 8  # rounds that are played at least, unless most of the time was that of one
NEAR = 0.2  # sides of a box: how far around an action others are drawn


def give_history(play: Play, chosen: AbstractSet[int], until: int, seconds: float) -> History:
    """Let the algorithm of a play that has not begun choose in some rounds only; arguments as of `History`."""
    play.recommendations.rounds &= chosen
    history = History(play, chosen, until, seconds)
    play.algorithm = cast(Algorithm, history)
    return history


@dataclass(frozen=True)
class Rounds:
    """What the first rounds of a block cost.

    Attributes:
        begun: seconds before the first round.
        chosen: whether the method chose the actions of a round, (n,).
        designed: whether the suite's design did, (n,).
        choosing: seconds in which it chose and recommended, (n,).
        rest: the other seconds of the rounds, (n,).
        unfinished: seconds, on the clock, of a round that had to be broken off.
    """

    begun: float
    chosen: NDArray[np.bool_]
    designed: NDArray[np.bool_]
    choosing: Array
    rest: Array
    unfinished: float = 0.0

    def __len__(self) -> int:
        return len(self.rest)

    def first(self, n: int) -> Rounds:
        """The first n rounds."""
        cut = {name: getattr(self, name)[:n] for name in ("chosen", "designed", "choosing", "rest")}
        return replace(self, **cut, unfinished=0.0)


class History:
    """Stands in a play for its algorithm, which it gives the actions of all rounds but some, and whose time it takes.

    Args:
        play: what it is put into.
        chosen: the rounds in which the algorithm chooses.
        until: the last round.
        seconds: after which the play ends, unless most of them were those of one round.
    """

    def __init__(self, play: Play, chosen: AbstractSet[int], until: int, seconds: float) -> None:
        self.algorithm, self.actions, self.seeds = play.algorithm, play.setting.actions, play.setting.replicates
        self.chosen, self.until, self.seconds = chosen, until, seconds
        self.generator = np.random.default_rng(0)
        self.choosing: list[float] = []  # seconds of every round
        self.whole: list[float] = []
        self.took, self.longest, self.begun = 0.0, 0.0, 0.0
        self.designed: set[int] = set()  # rounds of the suite's own design
        self.own: Actions | None = None  # what it chose last
        self._mark()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.algorithm, name)

    def _mark(self) -> None:
        self.mark, self.clock = read_cpu_seconds(), time.monotonic()

    def start(self, setting: Setting) -> None:
        self.algorithm.start(setting)
        self.begun = read_cpu_seconds() - self.mark
        self._mark()

    def ask(self, t: int) -> Actions:
        if t > self.until or (t > FIRST_ROUNDS and self.took > self.seconds and 2 * self.longest < self.took):
            self.clock = inf  # no round is broken off
            raise TimedOut
        if t % CHUNK == 1:  # what was computed of the last chunk is no round's
            self._mark()
        before = read_cpu_seconds()
        if t in self.chosen:
            actions = self.own = self.algorithm.ask(t)
        else:
            actions = self._draw(t)
        self.choosing.append(read_cpu_seconds() - before)
        return actions

    def _draw(self, t: int) -> Actions:
        """Actions of a history: at random, and every other time near the one that the method chose last."""
        last = self.own if t % 2 == 0 else None
        if isinstance(self.actions, Finite):
            return self.generator.integers(self.actions.n, size=self.seeds) if last is None else last
        units = self.generator.random((self.seeds, self.actions.d))
        if last is not None:
            units = np.clip(self.actions.unit(last) + NEAR * (units - 0.5), 0.0, 1.0)
        return self.actions.scale(units)

    def tell(self, t: int, actions: Actions, feedback: Feedback) -> None:
        (self.algorithm.tell if t in self.chosen else self.algorithm.observe)(t, actions, feedback)
        self.whole.append(0.0)
        self._end_round()

    def observe(self, t: int, actions: Actions, feedback: Feedback) -> None:
        """A round of the suite's own design costs what it does, and nothing more in the run."""
        self.designed.add(t)
        self.choosing.append(0.0)
        self.algorithm.observe(t, actions, feedback)
        self.whole.append(0.0)
        self._end_round()

    def recommend(self, t: int) -> Actions | None:
        before = read_cpu_seconds()
        answer = self.algorithm.recommend(t)
        self.choosing[-1] += read_cpu_seconds() - before
        self._end_round()
        return answer

    def _end_round(self) -> None:
        took = read_cpu_seconds() - self.mark
        self.whole[-1] += took
        self.took += took
        self.longest = max(self.longest, self.whole[-1])
        self._mark()

    def rounds(self) -> Rounds:
        """What the rounds cost that have ended."""
        n = len(self.whole)
        choosing, whole = np.array(self.choosing[:n]), np.array(self.whole)
        designed = np.array([t in self.designed for t in range(1, n + 1)], dtype=bool)
        chosen = np.array([t in self.chosen for t in range(1, n + 1)], dtype=bool) & ~designed
        unfinished = max(0.0, time.monotonic() - self.clock)
        return Rounds(self.begun, chosen, designed, choosing, np.maximum(whole - choosing, 0.0), unfinished)
