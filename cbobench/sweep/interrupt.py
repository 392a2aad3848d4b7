"""Ctrl-C and SIGTERM end a sweep in order: what is published stays, and the same command resumes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interruption:
    """SIGINT and SIGTERM become KeyboardInterrupt, once; while a sweep closes down (`deaf`) they do nothing."""

    def __init__(self) -> None:
        self.deaf = False
        self.previous: dict[int, Any] = {}

    def arm(self) -> None:
        """Take the signals. Not in the main thread they are left to whoever owns them."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.signal(number, self._interrupt)
            self.previous.setdefault(number, handler)

    def disarm(self) -> None:
        """Give them back."""
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self.deaf:
            self.deaf = True
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Signals are taken within, and given back after."""
    interruption = Interruption()
    try:
        interruption.arm()
        yield interruption
    finally:
        interruption.disarm()
