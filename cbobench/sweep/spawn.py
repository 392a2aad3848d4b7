"""Processes that serve a driver through one socket each.

A process that has no other threads is forked, which takes milliseconds; another one (a notebook's) starts fresh
interpreters. Such a process ends when its driver's end of the socket closes, however the driver went; signals that are
meant for the driver do not reach it, or do nothing.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from cbobench.registry import fresh_interpreter
from cbobench.sweep.interrupt import SIGNALS, ignore
from cbobench.threads import THREAD_VARIABLES

FORK_SAFE = {"jemalloc_bg_thd"}  # Arrow's allocator, which starts its thread again in a fork
BOOT = "from cbobench.sweep.spawn import begin; begin(sys.argv[1], int(sys.argv[2]))"


@dataclass
class Child:
    """A process as its driver sees it."""

    pid: int
    process: subprocess.Popen[bytes] | None
    link: Any

    def end(self) -> int | None:
        """End it, if it has not ended; how it ended: its exit code, or minus the number of the signal."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.link.close()
        _open.discard(self.link)
        if self.process is not None:
            return self.process.wait()
        with suppress(ChildProcessError):  # a program of the user's may wait for all its children
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return None


_open: set[Any] = set()
"""Links of this process, which a fork must not hold: it would keep what is behind them alive."""


def spawn(name: str, here: Callable[[Any], None], fresh: bool = False) -> Child:
    """Start a process that serves.

    Args:
        name: of the function that serves in a fresh interpreter, as "module:function"; it gets the link.
        here: the one that serves in a fork.
        fresh: whether it must be a fresh interpreter.
    """
    mine, theirs = Pipe()
    _open.add(mine)
    with theirs:
        if not fresh and _alone():
            return Child(_fork(theirs, here), None, mine)
        process = subprocess.Popen(
            fresh_interpreter(BOOT, name, str(theirs.fileno())), pass_fds=[theirs.fileno()], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=2, env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"),
        )  # fmt: skip
        return Child(process.pid, process, mine)


def _fork(theirs: Any, here: Callable[[Any], None]) -> int:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # none, or closed
            stream.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # none may unwind the driver's stack in the child
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 counts the threads of FORK_SAFE, too
            pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os.dup2(2, 1)  # standard output is the table's
                sys.stdout = sys.stderr
                for link in _open:
                    link.close()
                here(theirs)
            finally:
                os._exit(1)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _alone() -> bool:
    """Whether this process has no thread that a fork would cut off."""
    threads = []
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # a thread that has just ended
            threads.append(name.read_text().strip())
    return len([name for name in threads if name not in FORK_SAFE]) == 1


def begin(name: str, descriptor: int) -> None:
    """The whole life of a process in a fresh interpreter."""
    os.set_inheritable(descriptor, False)
    module, _, function = name.partition(":")
    getattr(importlib.import_module(module), function)(Connection(descriptor))


def ignore_signals() -> None:
    """Leave signals to the driver, which is told, too, and ends this process."""
    ignore()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def silence() -> None:
    """From here on nothing that this process writes is shown."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


def inbox(link: Any) -> SimpleQueue[Any]:
    """What the driver sends; this process ends when the driver has gone, whatever it is at."""
    messages: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(link, messages), daemon=True).start()
    return messages


def _listen(link: Any, messages: SimpleQueue[Any]) -> None:
    while True:
        try:
            messages.put(link.recv())
        except BaseException:
            os._exit(1)
