"""What goes on beside a play: its process is heard of each second, and a play is interrupted at its
time limit.

`TimedOut` is raised in the play, so that its traceback shows the place. A play that cannot be
interrupted (a loop in C, a cell that catches everything) the driver ends with its process.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from types import FrameType

from cbobench.errors import TimedOut
from cbobench.play.play import Observer, Play

REPORT_SECONDS = 1.0  # between two reports of the rounds played
TRIAL = 10.0  # seconds after which the duration of a task is predicted (see `watch_speed`)
SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGALRM)  # unused by other code


Count = Callable[[int], None]
"""Takes the seed-rounds played so far."""


def _tell_nobody(rounds: int) -> None:
    """Take a report."""


class Heartbeat:
    """Reports at once and then each second, in a thread, and interrupts what takes too long.

    Only what runs in the main thread can be interrupted.

    Args:
        report: takes the seed-rounds played, in the thread.
        seconds: after which the block is interrupted.
    """

    def __init__(self, report: Count = _tell_nobody, seconds: float = inf) -> None:
        self.report = report
        self.allowed = self.left = seconds
        self.play: Play | None = None
        self.played = 0  # seed-rounds of other cells before
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._is_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Heartbeat:
        if self._is_main:
            self._before = signal.signal(SIGNAL, self._interrupt)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.rest()
        self._ended.set()
        self._thread.join()
        if self._is_main:
            signal.signal(SIGNAL, self._before)

    def begin(self, seconds: float, played: int) -> None:
        """Allow so many seconds from now on for a play, which comes as `play` once it is made."""
        self.play = None
        self.played = played
        self.allowed = self.left = seconds

    def rest(self) -> None:
        """Interrupt nothing any more: the play is over, and a store may take its time."""
        self.left = inf

    def _beat(self) -> None:
        last = time.monotonic()
        while True:
            play = self.play
            # the present round is not over
            cells = 0 if play is None else max(0, play.round - 1) * play.setting.replicates
            self.report(self.played + cells)
            # It wakes in time for the limit, and rests a little where the signal does not help.
            if self._ended.wait(min(REPORT_SECONDS, max(self.left, REPORT_SECONDS / 10))):
                return
            current_time = time.monotonic()
            # a process that was suspended has played nothing meanwhile
            self.left -= min(current_time - last, 2 * REPORT_SECONDS)
            last = current_time
            # To the main thread, which plays: there alone a signal ends a wait.
            if self.left < 0 and self._is_main:
                signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        # the play may be over by the time the signal arrives
        if self.left < 0:
            self.rest()
            raise TimedOut(f"timed out after {self.allowed:.0f} s")


@dataclass(frozen=True)
class ReturnedTask:
    """A task that is returned to be cut: the seconds and seed-rounds played so far."""

    seconds: float
    rounds: int


class TaskReturned(Exception):
    """Ends a play with an answer."""

    def __init__(self, answer: ReturnedTask) -> None:
        super().__init__(str(answer))
        self.answer = answer


def watch_speed(allowed: float, horizon: int, cells: int) -> Observer:
    """Return what measures a play once, early, and ends it (`TaskReturned`) if it is too slow.

    A task of hours would be lost whole with its machine. The few seconds played here are discarded.

    Args:
        allowed: seconds.
        horizon, cells: rounds of the play, and its cells.
    """
    began = time.monotonic()
    measure_at = began + TRIAL

    def observe(t: int) -> None:
        nonlocal measure_at
        current_time = time.monotonic()
        if current_time > measure_at:
            measure_at = inf  # measured only once: later, more would be lost
            if (current_time - began) * horizon > allowed * t:
                raise TaskReturned(ReturnedTask(current_time - began, t * cells))

    return observe
