"""Ends a play that hangs or takes too long. A thread checks whether rounds pass, and reports how
many have.

First `TimedOut` is raised in the play, so that its traceback shows the place. If code cannot be
interrupted (a loop in C, a cell that catches everything), the process writes its stacks to a file
and ends.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import FrameType
from typing import IO

from cbobench.play.failure import TimedOut
from cbobench.play.play import Observer, Play
from cbobench.processes import leave_fork
from cbobench.results.folder import RunFolder

STALL = 600.0  # seconds that a round may always take if the suite gives no `timeout`
SLOWER = 20.0  # a round may take this multiple of the longest one so far
GRACE = 10.0  # seconds from the signal to the end of the process
TICK = 5.0
REPORT_SECONDS = 1.0  # between two reports of the rounds played
# seconds that a worker may say nothing beyond those in which its watchdog ends it
SILENCE_MARGIN = 60.0
TRIAL = 10.0  # seconds after which the duration of a task is predicted (see `watch_speed`)
SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGALRM)  # unused by other code


Count = Callable[[int], None]
"""Takes the seed-rounds played so far."""


@contextmanager
def reporting(report: Count) -> Iterator[Count]:
    """Report at once and then each second, in a thread, while the block is carried out; gives what
    takes the count.

    Whoever waits for this process hears so that it runs, though no round may end for long.
    """
    latest = 0
    ended = threading.Event()

    def count(rounds: int) -> None:
        nonlocal latest
        latest = rounds

    def repeat() -> None:
        report(latest)
        while not ended.wait(REPORT_SECONDS):
            report(latest)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield count
    finally:
        ended.set()
        thread.join()


def _stall_seconds(timeout: float | None, cells: int, horizon: int) -> float:
    """Return the seconds that a round may always take."""
    return STALL if timeout is None else timeout * max(1.0, cells / horizon)


def allowed_silence(timeout: float | None, cells: int, horizon: int) -> float:
    """Return the seconds for which the worker of a task may report nothing: it would have ended
    itself before.

    Code in C may keep the reporting thread waiting for as long as a round may always take.
    """
    return _stall_seconds(timeout, cells, horizon) + GRACE + SILENCE_MARGIN


class Watchdog:
    """A watchdog over the play of some cells.

    Args:
        timeout: seconds per cell, None for the default rule.
        cells, horizon: number of cells in lock step, and of rounds.
        report: open file for the stacks of a process that has to end; None if this process must not
            end.
        count: called about once a second, in the thread, with the seed-rounds played.
    """

    def __init__(
        self,
        timeout: float | None,
        cells: int,
        horizon: int,
        report: IO[str] | None,
        count: Count | None = None,
    ) -> None:
        self.timeout, self.report, self.cells, self.count = timeout, report, cells, count
        self.allowed_seconds = float("inf") if timeout is None else timeout * cells
        self.stall = _stall_seconds(timeout, cells, horizon)
        self.grace = min(GRACE, max(1.0, self.stall))
        self.play: Play | None = None
        self.timed_out = 0.0  # seconds after which the signal was sent
        self.stalled = self.played = 0.0  # seconds since the last round, and since the start
        self.last_round = -1
        self.is_live = True
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watchdog:
        self._before = signal.signal(SIGNAL, self._interrupt)
        self._arm()
        self._thread.start()
        return self

    def follow(self, play: Play) -> None:
        """Watch the rounds of a play, which may begin long after the watchdog."""
        self.play = play

    def stop(self) -> None:
        """Stop watching once the play is over: publishing its files may take any time."""
        self.is_live = False
        self._ended.set()
        self._thread.join()
        if self.report is not None:
            faulthandler.cancel_dump_traceback_later()

    def __exit__(self, *raised: object) -> None:
        self.stop()
        signal.signal(SIGNAL, self._before)

    def _arm(self) -> None:
        """Schedule the end of the process some time after the interruption, even if no Python code
        runs by then.
        """
        if self.report is not None:
            left = max(0.0, min(self.stall - self.stalled, self.allowed_seconds - self.played))
            with suppress(OSError):  # the null device has no length
                self.report.seek(0)
                self.report.truncate()
            # faulthandler writes the stacks below it
            self.report.write(f"{left + self.grace:.0f}\n")
            self.report.flush()
            faulthandler.dump_traceback_later(left + self.grace, exit=True, file=self.report)

    def _watch(self) -> None:
        main, signalled = threading.main_thread().ident, -self.grace
        assert main is not None
        tick, last = min(TICK, self.stall / 8), time.monotonic()
        while not self._ended.wait(tick if self.count is None else min(tick, REPORT_SECONDS)):
            if self.count is not None and self.play is not None:
                self.count(max(0, self.play.round - 1) * self.cells)
            current_time = time.monotonic()
            if self.count is not None and current_time - last < tick:
                continue
            # a suspended process did not hang
            passed, last = min(current_time - last, 2 * tick), current_time
            self.stalled, self.played = self.stalled + passed, self.played + passed
            current_round = -1 if self.play is None else self.play.round
            if current_round != self.last_round:
                if self.timeout is None:
                    self.stall = max(self.stall, SLOWER * self.stalled)
                self.last_round, self.stalled = current_round, 0.0
                self._arm()
            # The signal is sent again after a while, because a cell may swallow the exception.
            stalls, signalled_before = (
                self.stalled > self.stall,
                self.played - signalled <= self.grace / 2,
            )
            if (stalls or self.played > self.allowed_seconds) and not signalled_before:
                self.timed_out, signalled = self.stalled if stalls else self.played, self.played
                with suppress(ProcessLookupError):
                    signal.pthread_kill(main, SIGNAL)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.is_live and self.timed_out:
            raise TimedOut(f"timed out after {self.timed_out:.0f} s")


class NoWatchdog:
    """Replaces the watchdog outside the main thread, which cannot handle signals."""

    def follow(self, play: Play) -> None:
        """Nothing to watch."""

    def stop(self) -> None:
        """Nothing to stop."""


@contextmanager
def watch_play(
    timeout: float | None,
    cells: int,
    horizon: int,
    report: Path | None,
    count: Count | None = None,
) -> Iterator[Watchdog | NoWatchdog]:
    """Watch the play inside the block.

    Args:
        report: a file for the stacks; removed after a play that ended by itself.
        count: as for `Watchdog`.
    """
    # Only the main thread handles signals.
    if threading.current_thread() is not threading.main_thread():
        yield NoWatchdog()
        return
    with ExitStack() as stack:
        file = None
        if report is not None:
            try:
                _remove(report)
                # "x" refuses a link that someone else has placed there
                file = stack.enter_context(report.open("x"))
                stack.callback(_remove, report)
            except OSError:  # the process can still end, without a report
                file = stack.enter_context(Path(os.devnull).open("w"))
        yield stack.enter_context(Watchdog(timeout, cells, horizon, file, count))


def _remove(report: Path) -> None:
    with suppress(OSError):
        report.unlink()


def stacks_path(folder: RunFolder, task: str) -> Path:
    """Return the path for a hanging worker's stacks, readable by a driver that shares the run's
    folder or, of a bucket, the machine.
    """
    if not folder.local:
        return Path(folder.scratch, task)
    cells = Path(folder.path("cells"))
    with suppress(OSError):  # the process can still end, without a report
        cells.mkdir(exist_ok=True)
    return cells / f".{task}.parquet.hung.tmp"


def read_stacks(folder: RunFolder, task: str) -> str:
    """Return seconds and stacks of a task whose process had to end; "" if it died of another
    cause.
    """
    path, text = stacks_path(folder, task), ""
    with suppress(OSError):
        if path.is_file():  # of what somebody else has put there, a pipe would never end
            text = path.read_text(errors="replace")
        path.unlink()
    return text if len(text.splitlines()) > 1 else ""


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


def watch_forks() -> Observer:
    """Return what ends forks that the code of a play has made, and that go on with the play."""
    origin = os.getpid()
    return lambda t: leave_fork(origin)
