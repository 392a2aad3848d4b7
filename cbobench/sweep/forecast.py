"""How far a sweep is, to the round, and how long the rest will take: for the bar, and for each sign of life.

Rounds that are left take what those of the same pair took: in tasks that ended in this call, else in earlier calls,
else in the tasks that are being played, else what was measured once of pairs like it (`sweep.costs`), else what shares
the names of problem and algorithm took. Each kind of evidence has a factor by which it may err; where there is none for
a pair that waits, the time is said to be unknown.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from cbobench.play.task import Crashed, Receipt, Task, TooLong
from cbobench.play.underway import EVERY, Listener
from cbobench.problems.base import Problem
from cbobench.results.drivers import Seeds, mark, ranges
from cbobench.suite.cells import Pair
from cbobench.sweep.blocks import Measured, Tasks, rounds_of
from cbobench.sweep.costs import Costs
from cbobench.sweep.raysweep import Lost

SURE, SINGLE, EARLIER, ALIKE = 1.15, 1.35, 1.6, 2.0  # factors: some tasks of a pair, one, earlier calls, others
FEW = 3  # tasks of a pair that make it sure
DEARER = 3.0  # by which later rounds of a task that is being played may be dearer than its first ones, at most
MINUTE = 60.0


class Left(NamedTuple):
    """Seconds that are left, and between which they lie."""

    seconds: float
    low: float
    high: float


@dataclass
class _Cost:
    """Seconds of so many seed-rounds, from so many tasks."""

    seconds: float = 0.0
    rounds: int = 0
    tasks: int = 0

    def add(self, seconds: float, rounds: int) -> None:
        self.seconds, self.rounds, self.tasks = self.seconds + seconds, self.rounds + rounds, self.tasks + 1

    @property
    def each(self) -> float:
        return self.seconds / self.rounds


@dataclass
class _Playing:
    """A task that was handed out.

    Attributes:
        began: about when its first round began, where it has told of one.
        rounds: that it has told of.
    """

    task: Task
    began: float | None = None
    rounds: int = 0

    def whole(self, now: float) -> float | None:
        """Seconds for all its rounds, if those to come take as long as those so far."""
        return None if self.began is None or not self.rounds else (now - self.began) * self.task.rounds / self.rounds


@dataclass
class _Some:
    """What of a pair is not over; `usual` seconds of a seed-round where pairs like it were measured once."""

    pair: Pair
    horizon: int
    rounds: int
    usual: float | None = None
    playing: dict[str, _Playing] = field(default_factory=dict)


class Forecast:
    """What of a sweep is over, and when the rest will be.

    Args:
        tasks: all of them.
        slots: how many are played at a time; None where that is not known (a cluster).
        measured: what cells of the run took before.
        driver: the call that plays.
        problems: the suite's prepared problems, by title: what those like them cost is looked up.
    """

    def __init__(
        self,
        tasks: Tasks,
        slots: int | None,
        measured: Iterable[Measured] = (),
        driver: str = "",
        problems: Mapping[str, Problem] = MappingProxyType({}),
    ) -> None:
        self.total, self.slots = rounds_of(tasks), slots
        self.some: dict[str, _Some] = {}
        for strip in tasks.strips:
            rest = self.some.setdefault(mark(strip.pair, strip.horizon), _Some(strip.pair, strip.horizon, 0))
            rest.rounds += len(strip) * strip.horizon
        self.again = _again(tasks)
        self.known: dict[str, _Cost] = {}
        self.earlier: dict[str, _Cost] = {}
        self.alike: dict[tuple[str, str], _Cost] = {}
        for pair, seconds, rounds in measured:
            self._learn(self.earlier, pair, seconds, rounds)
        costs = Costs()
        for rest in self.some.values():
            problem, cells = problems.get(rest.pair.problem.title), min(tasks.block, rest.rounds // rest.horizon)
            if problem is not None and rest.pair.title not in self.earlier:
                rest.usual = costs.per_round(rest.pair, problem, rest.horizon, cells)
        self.cells, self.began = 0, time.monotonic()
        self.over = 0
        self.past: deque[tuple[float, int]] = deque([(self.began, 0)])
        self.listener, self.lock = Listener(driver), threading.Lock()

    def given(self, task: Task) -> None:
        """A task is handed out."""
        with self.lock:
            self._rest(task).playing[task.name] = _Playing(task)

    def heard(self, task: Task, answer: Receipt | Crashed | TooLong | Lost | None) -> None:
        """It has come back: it is over, or is to be played again."""
        with self.lock:
            rest = self._rest(task)
            rest.playing.pop(task.name, None)
            if isinstance(answer, TooLong):
                self._learn(self.earlier, task.pair, answer.seconds, answer.rounds)
            if isinstance(answer, Receipt):
                rest.rounds -= task.rounds
                self.over += task.rounds
                self.cells += len(task.cells)
                if answer.seconds is not None and not answer.failed:
                    self._learn(self.known, task.pair, answer.seconds, task.rounds)

    def hold(self) -> None:
        """Nothing more is handed out: what waits is not left."""
        with self.lock:
            for rest in self.some.values():
                rest.rounds = sum(one.task.rounds for one in rest.playing.values())

    def rounds(self) -> int:
        """Seed-rounds that are over, of finished tasks and of those in play."""
        with self.lock:
            return self._rounds()

    def left(self) -> Left | None:
        """Seconds to the end; None where nothing is known of a pair that waits."""
        with self.lock:
            self._listen()
            return self._left(time.monotonic())

    def news(self) -> dict[str, Any]:
        """As a sign of life carries it: counts, what is played again, and of each pair in play cells and rounds."""
        with self.lock:
            rounds, now = self._rounds(), time.monotonic()
            left = self._left(now)
            playing = {
                key: [
                    sum(len(one.task.cells) for one in rest.playing.values()),
                    sum(one.rounds for one in rest.playing.values()),
                ]
                for key, rest in self.some.items()
                if rest.playing
            }
            since, before = self.past[0]
            return {
                "seconds": round(now - self.began, 1), "cells": self.cells, "rounds": rounds, "total": self.total,
                "rate": round((rounds - before) / max(now - since, 1e-3), 1),
                "left": None if left is None else [round(each, 1) for each in left], "playing": playing,
                "again": self.again,
            }  # fmt: skip

    def close(self) -> None:
        """Nobody tells any more."""
        self.listener.close()

    def _rest(self, task: Task) -> _Some:
        return self.some[mark(task.pair, task.horizon)]

    def _learn(self, where: dict[str, _Cost], pair: Pair, seconds: float, rounds: int) -> None:
        where.setdefault(pair.title, _Cost()).add(seconds, rounds)
        self.alike.setdefault((pair.problem.name, pair.algorithm.name), _Cost()).add(seconds, rounds)

    def _listen(self) -> None:
        news, now = self.listener.heard(), time.monotonic()
        for one in chain.from_iterable(rest.playing.values() for rest in self.some.values()) if news else ():
            if (rounds := news.get(one.task.name, 0)) > one.rounds:
                one.began = now - EVERY if one.began is None else one.began
                one.rounds = min(rounds, one.task.rounds)

    def _rounds(self) -> int:
        self._listen()
        rounds = self.over + sum(one.rounds for rest in self.some.values() for one in rest.playing.values())
        now = time.monotonic()
        if now - self.past[-1][0] > 1.0:
            self.past.append((now, rounds))
        while len(self.past) > 2 and now - self.past[1][0] > MINUTE:
            self.past.popleft()
        return rounds

    def _left(self, now: float) -> Left | None:
        work = [0.0, 0.0, 0.0]
        longest = [0.0, 0.0, 0.0]
        for rest in self.some.values():
            if not rest.rounds:
                continue
            each = self._each(rest, now)
            waiting = rest.rounds - sum(one.task.rounds for one in rest.playing.values())
            if each is None:
                return None
            for i, seconds in enumerate(each):
                work[i] += seconds * waiting
            for one in rest.playing.values():
                for i, seconds in enumerate(self._rest_of(one, each, now)):
                    work[i] += seconds
                    longest[i] = max(longest[i], seconds)
        slots = self.slots or self._busy(now)
        if slots is None:
            return None
        return Left(*(max(all_ / slots, last if self.slots else 0.0) for all_, last in zip(work, longest, strict=True)))

    def _each(self, rest: _Some, now: float) -> Left | None:
        """Seconds of a seed-round of a pair."""
        title, names = rest.pair.title, (rest.pair.problem.name, rest.pair.algorithm.name)
        if title in self.known:
            cost = self.known[title]
            return _within(cost.each, SURE if cost.tasks >= FEW else SINGLE)
        if title in self.earlier:
            return _within(self.earlier[title].each, EARLIER)
        told = [one for one in rest.playing.values() if one.began is not None and one.rounds]
        if told:
            rounds = sum(one.rounds for one in told)
            each = sum(now - (one.began or now) for one in told) / rounds
            return Left(each, each / SURE, each * _dearer(rounds / sum(one.task.rounds for one in told)))
        if rest.usual is not None:
            return _within(rest.usual, ALIKE)
        return _within(self.alike[names].each, ALIKE) if names in self.alike else None

    def _rest_of(self, one: _Playing, each: Left, now: float) -> Left:
        """Seconds that a task in play takes yet: by its own rounds so far, the more the further it is."""
        whole = one.whole(now)
        if whole is None or one.began is None:
            return Left(*(seconds * one.task.rounds for seconds in each))
        share, gone = one.rounds / one.task.rounds, now - one.began
        own = Left(whole, whole / SURE, gone + (whole - gone) * _dearer(share))
        mixed = (share * mine + (1 - share) * pair * one.task.rounds for mine, pair in zip(own, each, strict=True))
        return Left(*(max(seconds - gone, (1 - share) * whole / 2) for seconds in mixed))

    def _busy(self, now: float) -> float | None:
        """How many tasks were played at a time so far; None where too few have ended."""
        seconds = sum(cost.seconds for cost in self.known.values())
        return max(1.0, seconds / (now - self.began)) if seconds else None


def _again(tasks: Tasks) -> Seeds:
    """Cells that were played before: ranges of seeds [first, end) with how often, by a hash of pair and horizon."""
    found: Seeds = {}
    for strip, before in zip(tasks.strips, tasks.attempts, strict=True):
        for often in () if before is None else np.unique(before[before > 0]).tolist():
            some = ranges(np.asarray(strip.seeds)[before == often].tolist())
            found.setdefault(mark(strip.pair, strip.horizon), []).extend([*one, often] for one in some)
    return found


def _within(each: float, factor: float) -> Left:
    return Left(each, each / factor, each * factor)


def _dearer(share: float) -> float:
    """By what factor the rounds to come may be dearer than the first share of them, if that grows in a line."""
    return min(DEARER, max(SURE, 1 / max(share, 1e-9)))
