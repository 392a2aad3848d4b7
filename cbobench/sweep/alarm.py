"""A limit on the clock for what may not let itself be asked: a method whose first round takes an hour."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Late(BaseException):
    """There is no more time; no method takes it for an error of its own."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises `Late` in what is done within, after so many seconds; none where signals cannot be taken."""

    def late(number: int, frame: object) -> None:
        raise Late

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
