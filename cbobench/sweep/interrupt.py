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
    """The handler of signals: they raise `Interrupted`; while a sweep closes down (`ignoring`) they do nothing.

    Attributes:
        taken: when one was taken last, in seconds of a monotonic clock; None before.
    """

    def __init__(self) -> None:
        self.ignoring = False
        self.taken: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.ignoring and (self.taken is None or now - self.taken > AGAIN):
            self.taken = now
            raise Interrupted

    def check(self) -> None:
        """Raise `Interrupted` where a signal was taken, and what it raised was swallowed by a cell."""
        if self.taken is not None:
            raise Interrupted


def ignore() -> None:
    """From here on signals do nothing in this process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Signals are taken within, and given back after; not in the main thread they are left to whoever owns them."""
    interruption = Interruption()
    before: dict[signal.Signals, Any] = {}
    try:
        for number in SIGNALS if threading.current_thread() is threading.main_thread() else ():
            handler = signal.getsignal(number)
            if number == signal.SIGHUP and handler == signal.SIG_IGN:
                continue  # nohup: the sweep is to outlive its terminal
            before[number] = handler
            signal.signal(number, interruption)
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
