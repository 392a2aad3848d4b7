"""Ends a play that hangs or takes too long: a thread checks whether rounds pass.

First `TimedOut` is raised in the play, so that its traceback says where it was. Where code cannot be interrupted (a
loop in C, a cell that catches everything) the process ends, and writes its stacks to a file.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import FrameType
from typing import IO

from cbobench.play.failure import TimedOut
from cbobench.play.play import Play
from cbobench.results.folder import RunFolder

STALL = 600.0  # seconds without a round that are never too long, where the suite says no `timeout`
SLOWER = 20.0  # how many times the longest round so far a round may take
GRACE = 10.0  # seconds until what is not interrupted is ended
TICK = 5.0
TRIAL = 10.0  # seconds after which a task that may be given back says how long it will take
SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGALRM)  # one that no one else uses


class Watchdog:
    """A watchdog over the play of some cells.

    Args:
        timeout: seconds that a cell may take, None where none was given.
        cells, horizon: how many cells are played in lock step, and for how many rounds.
        report: open, for the stacks of a process that has to end; None where it is not ours to end.
    """

    def __init__(
        self,
        timeout: float | None,
        cells: int,
        horizon: int,
        report: IO[str] | None,
    ) -> None:
        self.timeout, self.report = timeout, report
        self.whole = float("inf") if timeout is None else timeout * cells
        self.stall = STALL if timeout is None else timeout * max(1.0, cells / horizon)
        self.grace = min(GRACE, max(1.0, self.stall))
        self.play: Play | None = None
        self.late = 0.0  # seconds after which the signal was sent
        self.stalled = self.played = 0.0  # seconds since the last round, and in all
        self.seen = -1
        self.live = True
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watchdog:
        self._before = signal.signal(SIGNAL, self._interrupt)
        self._arm()
        self._thread.start()
        return self

    def rest(self) -> None:
        """The play is over: what is left is the store's, which may take its time."""
        self.live = False
        self._over.set()
        self._thread.join()
        if self.report is not None:
            faulthandler.cancel_dump_traceback_later()

    def __exit__(self, *raised: object) -> None:
        self.rest()
        signal.signal(SIGNAL, self._before)

    def _arm(self) -> None:
        """Let the process end some time after the play should have been interrupted, even if no Python runs by then."""
        if self.report is not None:
            left = max(0.0, min(self.stall - self.stalled, self.whole - self.played))
            with suppress(OSError):  # the null device has no length
                self.report.seek(0)
                self.report.truncate()
            self.report.write(f"{left + self.grace:.0f}\n")  # faulthandler writes the stacks below it
            self.report.flush()
            faulthandler.dump_traceback_later(left + self.grace, exit=True, file=self.report)

    def _look(self) -> None:
        main, told = threading.main_thread().ident, -self.grace
        assert main is not None
        tick, last = min(TICK, self.stall / 8), time.monotonic()
        while not self._over.wait(tick):
            now = time.monotonic()
            passed, last = min(now - last, 2 * tick), now  # a process that was suspended has not hung
            self.stalled, self.played = self.stalled + passed, self.played + passed
            here = -1 if self.play is None else self.play.round
            if here != self.seen:
                if self.timeout is None:
                    self.stall = max(self.stall, SLOWER * self.stalled)
                self.seen, self.stalled = here, 0.0
                self._arm()
            late = self.stalled > self.stall or self.played > self.whole
            if late and self.played - told > self.grace / 2:
                self.late, told = self.stalled if self.stalled > self.stall else self.played, self.played
                with suppress(ProcessLookupError):
                    signal.pthread_kill(main, SIGNAL)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.live and self.late:
            raise TimedOut(f"timed out after {self.late:.0f} s")


class NoWatchdog:
    """Replaces the watchdog outside the main thread, where signals cannot be handled."""

    play: Play | None = None

    def rest(self) -> None:
        """Nothing to end."""


@contextmanager
def watch_play(timeout: float | None, cells: int, horizon: int, report: Path | None) -> Iterator[Watchdog | NoWatchdog]:
    """A watchdog over what is played within.

    Args:
        report: a file for the stacks; not there after a play that ended by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield NoWatchdog()
        return
    with ExitStack() as stack:
        file = None
        if report is not None:
            try:
                report.parent.mkdir(exist_ok=True)
                _remove(report)
                file = stack.enter_context(report.open("x"))  # and no link that someone else has laid there
                stack.callback(_remove, report)
            except OSError:  # the process can still end, without last words
                file = stack.enter_context(Path(os.devnull).open("w"))
        yield stack.enter_context(Watchdog(timeout, cells, horizon, file))


def _remove(report: Path) -> None:
    with suppress(OSError):
        report.unlink()


def stacks_path(folder: RunFolder, task: str) -> Path:
    """Where a worker writes the stacks of what hangs, for a driver that shares the run's folder or its machine."""
    if folder.local:
        return Path(folder.path(f"cells/.{task}.parquet.hung.tmp"))
    return Path(tempfile.gettempdir()) / f"{task}.hung.tmp"


def read_stacks(folder: RunFolder, task: str) -> str:
    """Seconds, and stacks, of a task whose process had to end; nothing of one that died of something else."""
    path, text = stacks_path(folder, task), ""
    with suppress(OSError):
        text = path.read_text(errors="replace")
        path.unlink()
    return text if len(text.splitlines()) > 1 else ""


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


def watch_speed(play: Play, allowed: float | None) -> None:
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
