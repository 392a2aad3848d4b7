"""What a worker answers of a task: it is over, it came to nothing, or it is given back as it would take too long."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

from cbobench.play.play import Play

TRIAL = 10.0  # seconds after which a task that may be given back says how long it will take


@dataclass(frozen=True)
class Receipt:
    """What the driver learns of a task: counts and one line per failure, never data.

    Attributes:
        seconds: how long it took, where known.
        printed: the first line of what it printed, where that was not shown.
    """

    task: str
    ok: int
    failed: int
    rounds: int
    errors: tuple[str, ...]
    seconds: float | None = None
    printed: str = ""


@dataclass(frozen=True)
class WorkerCrashed:
    """A task that came to nothing: its worker died while it played, or it took too long.

    Attributes:
        how: what its cell did, if there is but one.
        trace: stacks, where they are known.
        hung: whether it was ended for that.
    """

    how: str
    trace: str = ""
    hung: bool = False


@dataclass(frozen=True)
class TooLong:
    """A task that is given back, to be cut into pieces: so many seconds of it were played, and so many seed-rounds."""

    seconds: float
    rounds: int


class GivenBack(Exception):
    """Ends a play with an answer."""

    def __init__(self, answer: TooLong) -> None:
        super().__init__(str(answer))
        self.answer = answer


def try_out(play: Play, allowed: float | None) -> None:
    """Look once, soon, at how fast a play goes, and end it (`GivenBack`) if it would take more seconds than allowed.

    A task of hours would be lost whole with its machine; of these seconds nothing is kept, but they are few.

    Args:
        allowed: None for any.
    """
    if allowed is None:
        return
    began, before = time.monotonic(), play.watch
    look = began + TRIAL

    def watch(t: int) -> None:
        nonlocal look
        if before is not None:
            before(t)
        now = time.monotonic()
        if now > look:
            look = inf  # later on there would be more to lose
            if (now - began) * play.horizon > allowed * t:
                raise GivenBack(TooLong(now - began, t * play.setting.replicates))

    play.watch = watch
