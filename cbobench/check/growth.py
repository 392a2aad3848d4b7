"""Law: a round takes longer and longer, beyond a linear growth, only where `cost` says so."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cbobench.check.methods import SEEDS
from cbobench.check.shared import seeded
from cbobench.check.trial import Broken, Finding, Trial
from cbobench.play.play import Play

ROUNDS = 400
SECONDS = 8.0  # of CPU, after which fewer rounds must do
FEWEST = 64
WINDOW = 15
STEEP = 1.4  # the exponent of t from which growth is more than linear, noise of a busy machine aside
TRIFLE = 1e-4  # seconds: what a round may gain without being looked at
DECLARED = re.compile(r"[tkc]\s*(?:²|³|\^|\*\*)")


class _Enough(Exception):
    """The play is long enough."""


def grows_as_it_says(trial: Trial) -> Iterator[Finding]:
    """A round in the end takes at most linearly longer than one at a quarter of it, unless `cost` says so."""
    if DECLARED.search(trial.cls.cost):
        return
    seconds = _seconds(trial)
    late, early = len(seconds), len(seconds) // 4
    if late < FEWEST:
        what = f"on {trial.place}, {late} rounds of one seed took {SECONDS:g} s"
        yield Finding(what, f"its growth cannot be seen in so few; say it in cost, such as {trial.cls.__name__}.cost")
        return
    first, last = (float(np.median(seconds[end - WINDOW : end])) for end in (early, late))
    exponent = np.log(last / first) / np.log(late / early)
    if exponent > STEEP and last - first > TRIFLE:
        times = f"{1e3 * first:.2g} ms in round {early} and {1e3 * last:.2g} ms in round {late}"
        what = f"on {trial.place}, a round takes {times}, about t^{exponent:.1f}, where cost says {trial.cls.cost}"
        yield Finding(what, 'update what each round adds instead of beginning anew, or say so: cost = "O(t²)"')


def _seconds(trial: Trial) -> list[float]:
    """CPU seconds of every round of one seed, of `ROUNDS` or as many as there is time for."""
    long = replace(trial, horizon=ROUNDS)
    algorithm = long.algorithm()
    play = Play(long.problem, long.place, algorithm, long.name, SEEDS[:1], long.horizon)
    found: list[float] = []
    ask, tell = algorithm.ask, algorithm.tell

    def timed_ask(t: int) -> Any:
        if sum(found) > SECONDS:
            raise _Enough
        began = time.thread_time()
        chosen = ask(t)
        found.append(time.thread_time() - began)
        return chosen

    def timed_tell(*told: Any) -> None:
        began = time.thread_time()
        tell(*told)
        found[-1] += time.thread_time() - began

    algorithm.ask, algorithm.tell = timed_ask, timed_tell
    with seeded(1):
        try:
            list(play)
        except _Enough:
            pass
        except Exception as error:  # a user's class may raise anything
            raise Broken(f"{error} (of {ROUNDS} rounds)") from error
    return found
