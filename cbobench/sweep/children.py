"""Processes that this one starts and talks to through a socket, by a fork or as fresh interpreters.

A child leads a session of its own, so that signals to its parent's process group do not reach it,
and disregards those that do. It ends when its parent's end of the socket closes, however the parent
ended. With it end the programs that the user's code has started there.
"""

from __future__ import annotations

import importlib
import os
import signal
import socket
import struct
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
from typing import Any, NoReturn

from cbobench.arithmetic import is_as_requested
from cbobench.registry import fresh_interpreter
from cbobench.sweep.interrupt import SIGNALS, disregard_signals
from cbobench.sweep.programs import end_session
from cbobench.threads import THREAD_VARIABLES

FORK_SAFE = {"jemalloc_bg_thd"}  # Arrow's allocator, which starts its thread again in a fork
BOOT = "from cbobench.sweep.children import begin; begin(sys.argv[1], int(sys.argv[2]))"
MESSAGE_SECONDS = 60  # that a child may take for the rest of a message


@dataclass
class Child:
    """A child process as its parent sees it."""

    pid: int
    process: subprocess.Popen[bytes] | None
    link: Any

    def end(self) -> int | None:
        """Kill it, if it has not ended, and all that it has started; returns its exit code, or
        minus the number of the signal that ended it.
        """
        end_session(self.pid)
        self.link.close()
        _open_links.discard(self.link)
        if self.process is not None:
            return self.process.wait()
        with suppress(ChildProcessError):  # a program of the user's may wait for all its children
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return None


def describe_end(code: int | None) -> str:
    """How a worker ended, in words, from its exit code."""
    if code == -signal.SIGKILL:
        return "had its worker killed (SIGKILL: did the machine run out of memory?)"
    if code is not None and code < 0:
        return f"crashed its worker ({signal.Signals(-code).name})"
    return "crashed its worker"


def end_worker() -> NoReturn:
    """End this process and the programs that it has started: its driver is gone."""
    try:
        end_session(os.getpid())
    finally:
        os._exit(1)


_open_links: set[Any] = set()
"""Links of this process, to its children and to its parent."""


def _close_links() -> None:
    """Close the copies that a fork has, the user's too: they would hide from either end that the
    other has ended.
    """
    while _open_links:
        _open_links.pop().close()


os.register_at_fork(after_in_child=_close_links)


def spawn(name: str, serve: Callable[[Any], None], fresh: bool = False) -> Child:
    """Start a process that serves this one through a socket.

    Args:
        name: of the function that serves in a fresh interpreter, as "module:function"; it gets the
            link.
        serve: the one that serves in a fork.
        fresh: whether it must be a fresh interpreter.
    """
    ours, theirs = Pipe()
    _open_links.add(ours)
    # A child that is stopped in the middle of a message must not stop this process, too.
    with socket.socket(fileno=os.dup(ours.fileno())) as link:
        for side in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            link.setsockopt(socket.SOL_SOCKET, side, struct.pack("ll", MESSAGE_SECONDS, 0))
    with theirs:
        # A fork keeps the arithmetic with which this process has imported NumPy.
        if not fresh and can_fork() and is_as_requested():
            return Child(_fork(theirs, serve), None, ours)
        process = subprocess.Popen(
            fresh_interpreter(BOOT, name, str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=2,
            env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"),
        )
        return Child(process.pid, process, ours)


def _fork(theirs: Any, serve: Callable[[Any], None]) -> int:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # none, or closed
            stream.flush()
    # none may unwind the driver's stack in the child
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        with warnings.catch_warnings():
            # Python 3.12 counts the threads of FORK_SAFE, too
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os.dup2(2, 1)  # standard output is the table's
                sys.stdout = sys.stderr
                serve(theirs)
            finally:
                os._exit(1)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def can_fork() -> bool:
    """Whether this process has no thread that a fork would cut off."""
    threads = []
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # a thread that has just ended
            threads.append(name.read_text().strip())
    return len([name for name in threads if name not in FORK_SAFE]) == 1


def begin(name: str, descriptor: int) -> None:
    """Serve in a fresh interpreter until the process ends."""
    os.set_inheritable(descriptor, False)
    module, _, function = name.partition(":")
    getattr(importlib.import_module(module), function)(Connection(descriptor))


def become_worker(link: Any) -> SimpleQueue[Any]:
    """Disregard signals, discard output, and end with the driver; returns a queue of the driver's
    messages.
    """
    _open_links.add(link)
    disregard_signals()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):  # the output of cells would bury the driver's messages
        os.dup2(nowhere, descriptor)
    inbox: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(link, inbox), daemon=True).start()
    return inbox


def _listen(link: Any, inbox: SimpleQueue[Any]) -> None:
    while True:
        try:
            inbox.put(link.recv())
        except BaseException:
            end_worker()
