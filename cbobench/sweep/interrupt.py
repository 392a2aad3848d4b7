"""Signals that end a sweep in order: what is published stays, and the same command resumes."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from cbobench.play.failure import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; what Slurm, Kubernetes and spot machines send; a terminal that is closed."""
REPEAT_SECONDS = 1.0  # a signal within these seconds counts as a repetition of the one before


class Interruption:
    """The handler of signals: they raise `Interrupted`; while a sweep closes down (`ignoring`) they do nothing.

    Attributes:
        received_at: monotonic time of the last signal; None before the first.
    """

    def __init__(self) -> None:
        self.ignoring = False
        self.received_at: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        current_time = time.monotonic()
        if not self.ignoring and (self.received_at is None or current_time - self.received_at > REPEAT_SECONDS):
            self.received_at = current_time
            raise Interrupted

    def check(self) -> None:
        """Raise `Interrupted` if a cell swallowed the exception of an earlier signal."""
        if self.received_at is not None:
            raise Interrupted


def ignore() -> None:
    """Ignore the signals in this process from now on."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Handle signals within, and restore the handlers afterwards; does nothing outside the main thread."""
    interruption = Interruption()
    before: dict[signal.Signals, Any] = {}
    report = sys.unraisablehook

    def report_others(ignored: sys.UnraisableHookArgs) -> None:
        # Python cannot raise in a finaliser or a weakref's callback; `check` raises as soon as it can.
        if not issubclass(ignored.exc_type, Interrupted):
            report(ignored)

    sys.unraisablehook = report_others
    try:
        for number in SIGNALS if threading.current_thread() is threading.main_thread() else ():
            handler = signal.getsignal(number)
            if number == signal.SIGHUP and handler == signal.SIG_IGN:
                continue  # nohup: the sweep is to outlive its terminal
            before[number] = handler
            signal.signal(number, interruption)
        yield interruption
    finally:
        sys.unraisablehook = report
        for number, handler in before.items():
            signal.signal(number, handler)
