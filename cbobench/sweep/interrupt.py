"""Signals that end a sweep in order: what is published stays, and the same command resumes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from cbobench.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; what Slurm, Kubernetes and spot machines send; a terminal that is closed."""
REPEAT_SECONDS = 1.0  # a signal within these seconds counts as a repetition of the one before


class Interruption:
    """The handler of signals: they raise `Interrupted`; while a sweep closes down (`ignoring`) they
    do nothing.

    Attributes:
        received_at: monotonic time of the last signal; None before the first.
    """

    def __init__(self) -> None:
        self.ignoring = False
        self.received_at: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        current_time = time.monotonic()
        if not self.ignoring and (
            self.received_at is None or current_time - self.received_at > REPEAT_SECONDS
        ):
            self.received_at = current_time
            raise Interrupted

    def check(self) -> None:
        """Raise `Interrupted` if a cell swallowed the exception of an earlier signal."""
        if self.received_at is not None:
            raise Interrupted


Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None

_taken: dict[signal.Signals, tuple[Handler, Handler]] = {}
"""Signals that this process has taken for a sweep: its handler, and the one before."""


def _take(number: signal.Signals, handler: Handler) -> None:
    """Set a handler. A program that is started has the default again, and a fork the one before."""
    _, before = _taken.get(number, (None, signal.getsignal(number)))
    _taken[number] = handler, before
    signal.signal(number, handler)


_masks: dict[int, set[int | signal.Signals]] = {}
"""Masked signals of the threads that fork now."""


def _hold_signals() -> None:
    _masks[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop(threading.get_ident()))


def _give_back_signals() -> None:
    """Let the forks of the user's code end as everywhere else: a pool ends its workers by
    SIGTERM.
    """
    for number, (handler, before) in _taken.items():
        if signal.getsignal(number) is handler and before is not None:
            signal.signal(number, before)
    _taken.clear()
    _release_signals()


# A fork forgets what its handler has been told before it begins, so until then a signal waits.
os.register_at_fork(
    before=_hold_signals, after_in_parent=_release_signals, after_in_child=_give_back_signals
)


def disregard_signals() -> None:
    """Let the signals do nothing in this process: its parent gets them as well, and ends it.

    They are not ignored, as programs that are started here would inherit that. Forks of the user's
    code begin with the
    defaults: a handler that the driver's program has set would keep a pool from ending its workers.
    """
    for number in SIGNALS:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        _taken[number] = _do_nothing, default
        signal.signal(number, _do_nothing)
        signal.siginterrupt(number, False)  # calls of the user's libraries go on
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def ignore() -> None:
    """Ignore the signals in this process, which is about to end: handlers of Python's go before it
    does.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Handle a signal."""


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Handle signals within, and restore the handlers afterwards; does nothing outside the main
    thread. A block within such a block has its handler, which knows a repetition of a signal.
    """
    current = signal.getsignal(signal.SIGTERM)
    interruption = current if isinstance(current, Interruption) else Interruption()
    before: dict[signal.Signals, Handler] = {}
    taken_before = dict(_taken)
    report = sys.unraisablehook

    def report_others(ignored: sys.UnraisableHookArgs) -> None:
        # Python cannot raise in a finaliser or a weakref's callback; `check` raises as soon as it
        # can. What a signal cut short, a message half read, say, may not be able to close.
        if interruption.received_at is None:
            report(ignored)

    sys.unraisablehook = report_others
    try:
        for number in SIGNALS if threading.current_thread() is threading.main_thread() else ():
            handler = signal.getsignal(number)
            if number == signal.SIGHUP and handler == signal.SIG_IGN:
                continue  # nohup: the sweep is to outlive its terminal
            before[number] = handler
            _take(number, interruption)
        yield interruption
    finally:
        interruption.ignoring = False
        if interruption.received_at is not None:
            gc.collect()  # as long as nobody hears of what was cut short
        sys.unraisablehook = report
        for number, handler in before.items():
            if handler is not None:  # one that Python does not know
                signal.signal(number, handler)
        _taken.clear()
        _taken.update(taken_before)
