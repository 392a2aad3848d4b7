"""Signals that end a sweep in order: what is published stays, and the same command resumes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from cbobench.play.failure import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; what Slurm, Kubernetes and spot machines send; a terminal that is closed."""
AGAIN = 1.0  # seconds after which another signal is no longer the same impatient keypress


class Interruption:
    """Signals become `Interrupted`; while a sweep closes down (`deaf`) they do nothing.

    Attributes:
        taken: when one was taken last, in seconds of a monotonic clock; None before.
    """

    def __init__(self) -> None:
        self.deaf = False
        self.taken: float | None = None
        self.previous: dict[int, Any] = {}

    def arm(self) -> None:
        """Take the signals. Not in the main thread they are left to whoever owns them."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # nohup: the sweep is to outlive its terminal
            handler = signal.signal(number, self._interrupt)
            self.previous.setdefault(number, handler)

    def disarm(self) -> None:
        """Give them back."""
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise `Interrupted` where a signal was taken, and what it raised was swallowed by a cell."""
        if self.taken is not None:
            raise Interrupted

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.deaf and (self.taken is None or now - self.taken > AGAIN):
            self.taken = now
            raise Interrupted


def ignore() -> None:
    """From here on signals do nothing in this process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Signals are taken within, and given back after."""
    interruption = Interruption()
    try:
        interruption.arm()
        yield interruption
    finally:
        interruption.disarm()
