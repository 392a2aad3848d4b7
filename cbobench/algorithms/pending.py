"""What a method does about plays whose feedback is still under way: `pending` of every algorithm that is a score.

    ignore       learns from what has arrived, each value at the action that caused it; what is pending does not count
    variance     as `ignore`, but a play shrinks variances (and enters γ) when it is made: pending plays stand in the
                 model with its own mean for a value (Desautels et al. 2014), see `gp.posteriors.pending`
    credit-now   as a method that does not know of delays: whatever arrives in a round counts as an observation of the
                 action that this round plays
    block        plays on only when all that it models of its last new play is known, and repeats the action until then

With credit-now, f and every g_j are credited apart. Where several values of a function arrive in one round, each is an
observation of the round's action, in the order of the rounds that caused them; where none arrives, the round teaches
nothing. Dual variables that move by observed costs add what arrives, in every mode.

Where a suite keeps several evaluations under way (`parallel`), f and every g_j of a round arrive together, one round
after the other; models then are those without delays, fitted ones too, whose pending plays stand in a copy of them.

With block, the values of the repeated plays are learned as they arrive, at the action they belong to. A method's own
state (a dual variable, a safe set) moves in every round, whether the action is new or not. Forgetting all data (a
restart) ends the wait, as what it waits for would be thrown away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbobench.problems.base import Arrivals

Pending = Literal["ignore", "variance", "credit-now", "block"]
PENDING = "plays whose delayed feedback is under way: see algorithms/pending.py"


def credited(arrivals: Arrivals, t: int) -> Arrivals:
    """What arrives in round t, as observations of round t's action."""
    return replace(arrivals, round=np.full_like(arrivals.round, t))


class Wait:
    """For which replicates the last new play is not known yet.

    Args:
        replicates: S.
        functions: how many functions, from f on, a play must reveal.
    """

    def __init__(self, replicates: int, functions: int) -> None:
        self.missing = np.zeros((replicates, functions), dtype=bool)
        self.round = np.zeros(replicates, dtype=np.intp)

    @property
    def open(self) -> NDArray[np.bool_]:
        """Who waits, (S,)."""
        return np.asarray(self.missing.any(axis=1))

    def end(self) -> None:
        """Wait for nothing."""
        self.missing[:] = False

    def hear(self, t: int, arrivals: Arrivals) -> None:
        """Round t was played, by those who do not wait anew, and this arrived."""
        fresh = ~self.open
        self.round[fresh], self.missing[fresh] = t, True
        a = arrivals
        known = (a.function < self.missing.shape[1]) & (a.round == self.round[a.replicate])
        self.missing[a.replicate[known], a.function[known]] = False
