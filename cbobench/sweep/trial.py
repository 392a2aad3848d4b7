"""What the rounds of a pair cost, from some that are really played: at the beginning, at T/16, at T/4 and at T.

A round costs the more the more rounds were before it (factors, fits of models), so that the first ones say little. So
the rounds between are given to the method as a history: random actions, from which it learns as from a suite's initial
design (`Algorithm.observe`). That is timed as it is; what it costs to choose an action, in the rounds that are played,
is carried from one of these places to the next. One seed is played so far. Of the block, which shares what a round
costs Python, the beginning is played, up to T/4.

What is not played in time is extrapolated. A round that does not end in time is a lower bound of all that follow.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cbobench.errors import reraise_stop
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import Array
from cbobench.play.block import start
from cbobench.play.failure import TimedOut
from cbobench.play.history import Rounds, give_history
from cbobench.play.play import read_cpu_seconds
from cbobench.play.task import Task
from cbobench.play.watchdog import watch_play
from cbobench.problems.base import Problem
from cbobench.problems.simulator import Simulator
from cbobench.results.source import import_libraries
from cbobench.suite.cells import Cell
from cbobench.sweep.blocks import SHARED_ROUND
from cbobench.threads import single_thread

PAIR_SECONDS = 3.0  # on the clock, for a pair
CELLS_OF_A_BOX = 10  # that are played of a block: more of them take hardly less each
PLACES = (16, 4, 1)  # parts of the horizon at whose ends rounds are played, beside the first ones
WINDOW, WINDOWS_PER_HORIZON = 3, 50  # rounds that are played at each: so many, or a share of a long horizon
SHORTEST = 0.3  # seconds on the clock, for a pair, at least
BUSY = 1.5  # seconds on the clock for one of CPU time, where there are other pairs
FURTHER_SEED = 0.03  # of a block of a finite set, in units of the first one, where there was no time to try it
OF_ONE_SEED = 0.6  # of the time of a pair, at most; the rest is that of its block
MOST_UNFINISHED = 3.0  # times the longest round: one that takes longer before it ends is of another kind
INTERRUPTED = 0.25  # seconds that a round may be interrupted by others, on a busy machine
DEAREST = 10  # one in so many rounds is left out where a block is compared with a seed
MAX_EXTRAPOLATION = 3  # times the rounds that were played: no curve through a few is followed further
FEWEST_OF_A_LINE = 5  # rounds
STEEPEST_MODEL = 3.0  # power of t by which a round may cost more at the next place
STEEPEST = 1.5  # power of t by which the cost of a round may grow where it is extrapolated
LEAST = 1e-9  # seconds of a round, where logarithms are taken

Kind = Literal["tried", "extrapolated", "at least"]
KINDS: tuple[Kind, ...] = ("tried", "extrapolated", "at least")  # the surest first


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a seed-round, the mean over all rounds of a pair.

    Attributes:
        kind: whether they were tried up to the last round, or extrapolated from earlier ones; or a lower bound.
    """

    seconds: float
    kind: Kind = "tried"


def places(horizon: int) -> set[int]:
    """Return the rounds in which a method chooses its actions: the first ones, and the last ones of parts of T."""
    width = max(WINDOW, horizon // WINDOWS_PER_HORIZON)
    ends = [width, *(horizon // part for part in PLACES)]
    return {t for end in ends for t in range(max(1, end - width + 1), end + 1)}


class Trial:
    """A pair that is tried.

    Args:
        problem: prepared.
        task: the pair's first one.
        keep: rounds that are recorded of a cell, None for all.
        seconds: CPU time that it may take, and not much longer on the clock.
        deadline: on the clock, when it is broken off.
    """

    def __init__(self, problem: Problem, task: Task, keep: int | None, seconds: float, deadline: float) -> None:
        self.problem, self.task, self.keep = problem, task, keep
        self.seconds, self.horizon = seconds, task.horizon
        with suppress(Exception):  # which is told of when it is played
            import_libraries(task.pair.algorithm.name)  # takes seconds that are no round's, and must not be broken off
        # On a busy machine the clock goes faster than the CPU time, and other pairs have to be tried, too.
        self.deadline = min(deadline, time.monotonic() + min(PAIR_SECONDS, max(SHORTEST, BUSY * seconds)))
        # To simulate a history costs what the play does.
        self.places: Collection[int] = range(1, self.horizon + 1)
        if not isinstance(problem, Simulator):
            self.places = places(self.horizon)

    def cost(self) -> Cost | None:
        """What a seed-round of the task costs; None for what cannot be played, which is told of when it is."""
        before, cells = read_cpu_seconds(), self.task.cells
        share = OF_ONE_SEED if len(cells) > 1 else 1.0
        now = time.monotonic()
        limits = share * self.seconds, now + share * (self.deadline - now)
        try:
            try:
                one = self._play(cells[:1], self.horizon, *limits)
            except BaseException as error:  # it may not take a history of just any actions
                reraise_stop(error)
                self.places = range(1, self.horizon + 1)
                one = self._play(cells[:1], self.horizon, *limits)
            total, kind = carry_on(one, self.horizon)
            if len(one) and len(cells) > 1:
                total *= self._block_factor(one, self.seconds - (read_cpu_seconds() - before))
        except BaseException as error:
            reraise_stop(error)
            return None
        return Cost(total / self.horizon, kind)

    def _block_factor(self, one: Rounds, seconds: float) -> float:
        """How much a seed of the task's block costs, in units of what it costs alone."""
        seeds, until = len(self.task.cells), max(WINDOW, self.horizon // PLACES[1])
        part = one.first(until)
        finite = isinstance(self.problem.actions, Finite)
        played_seconds = part.begun + float((part.choosing + part.rest).sum())
        count = seeds if finite else int(min(seeds, CELLS_OF_A_BOX, seconds / max(LEAST, played_seconds)))
        # What seeds share where there is no time to try it.
        alone = float(costs(one).mean())
        per_seed = FURTHER_SEED if finite else 1 - min(1.0, SHARED_ROUND[finite] / max(LEAST, alone))
        if count > 1 and time.monotonic() < self.deadline:
            block = self._play(self.task.cells[:count], until, seconds, self.deadline)
            reached = min(len(part), len(block))
            if reached >= WINDOW:
                together, alone = (_typical_sum(costs(rounds.first(reached))) for rounds in (block, part))
                per_seed = max(0.0, together / max(LEAST, alone) - 1) / (count - 1)
        return float(1 + per_seed * (seeds - 1)) / seeds  # above 1 where a block leaves the cache

    def _play(self, cells: Sequence[Cell], until: int, seconds: float, deadline: float) -> Rounds:
        """Play some cells up to a round, for so many seconds of CPU time and up to a deadline on the clock."""
        limit, history = max(0.001, deadline - time.monotonic()), None
        with suppress(TimedOut), watch_play(limit, 1, self.horizon, None), single_thread():
            play, _ = start(self.problem, cells, self.horizon, self.keep)
            history = give_history(play, {*self.places}, until, seconds)
            for _ in play:
                pass
        none, nothing = np.zeros(0), np.zeros(0, dtype=bool)
        return Rounds(0.0, nothing, nothing, none, none, limit) if history is None else history.rounds()


def _typical_sum(seconds: Array) -> float:
    """Return the sum of the rounds' seconds but for the first one, which begins, and the dearest, interrupted ones."""
    typical = np.sort(seconds[1:] if len(seconds) > 1 else seconds)
    return float(typical[: len(typical) - len(typical) // DEAREST].sum())


def costs(rounds: Rounds, at_least: float = 0.0) -> Array:
    """Return the seconds of every round, (n,), if the method had chosen the actions of all.

    Args:
        at_least: seconds that it takes in the round after these.
    """
    whole = rounds.choosing + rounds.rest
    chosen = rounds.chosen
    if (chosen | rounds.designed).all() or not chosen.any():
        return whole
    edges = np.flatnonzero(np.diff(chosen.astype(int), prepend=0, append=0))
    middles, further = [], []
    for begin, end in edges.reshape(-1, 2):
        width = end - begin
        around = np.concatenate([rounds.rest[max(0, begin - width) : begin], rounds.rest[end : end + width]])
        own = np.concatenate([chosen[max(0, begin - width) : begin], chosen[end : end + width]])
        learning = float(np.median(around[~own])) if not own.all() else 0.0
        # To learn of an action of one's own may cost more; fits of models, which come now and then, cost the same.
        more = max(0.0, float(np.median(rounds.rest[begin:end])) - learning)
        middles.append((begin + end + 1) / 2)
        further.append(float(rounds.choosing[begin:end].mean()) + more)
    if at_least > 0:
        middles.append(len(whole) + 1.0)
        further.append(at_least)
    t = np.arange(1.0, len(whole) + 1)
    return np.where(
        chosen | rounds.designed, whole, rounds.rest + _interpolate(t, np.array(middles), np.maximum(further, LEAST))
    )


def _interpolate(t: Array, places: Array, seconds: Array) -> Array:
    """Return seconds at rounds t, given those at some places: powers of t, which is how models grow.

    What grows faster than any model does begins somewhere between two places; there, a line.
    """
    powers = np.exp(np.interp(np.log(t), np.log(places), np.log(seconds)))
    begins = seconds[1:] > seconds[:-1] * (places[1:] / places[:-1]) ** STEEPEST_MODEL
    after = np.clip(np.searchsorted(places, t), 1, max(1, len(places) - 1)) - 1
    return np.where(np.append(begins, False)[after], np.interp(t, places, seconds), powers)


def carry_on(rounds: Rounds, horizon: int) -> tuple[float, Kind]:
    """Return the seconds of `horizon` rounds, given what the first ones cost, and how sure they are.

    What was not played costs what the later half of the time did: many methods begin with rounds that cost nothing,
    before they fit a model. If that half grew, it goes on to grow as a power of t.
    """
    n, known = len(rounds), costs(rounds) if len(rounds) else np.zeros(0)
    if n == horizon:
        return rounds.begun + float(known.sum()), "tried"
    if n == 0 or rounds.unfinished > max(MOST_UNFINISHED * known.max(), INTERRUPTED):
        before = costs(rounds, rounds.unfinished) if n else known
        return rounds.begun + float(before.sum()) + (horizon - n) * rounds.unfinished, "at least"
    begin = min(int(np.searchsorted(np.cumsum(known), known.sum() / 2)), n - 1)
    begin = min(max(n // 2, begin), n - 1)
    later = known[begin:]
    level, middle, power = float(later.mean()), (begin + n + 1) / 2, 0.0
    if len(later) >= FEWEST_OF_A_LINE:
        # A line through the later rounds, as far as it surely rises; and the power of t that rises as much there.
        line, covariance = np.polyfit(np.arange(begin + 1, n + 1), later, 1, cov=True)
        slope = max(0.0, float(line[0] - 2 * np.sqrt(covariance[0, 0])))
        power = min(STEEPEST, slope * middle / max(LEAST, level))
    t = np.minimum(np.arange(n + 1, horizon + 1), MAX_EXTRAPOLATION * n)
    return rounds.begun + float(known.sum() + (level * (t / middle) ** power).sum()), "extrapolated"
