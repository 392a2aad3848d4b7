"""Processes that tests start: looked for, waited for, and ended with the test that started them,
however it ends.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

# in the environment of every process that a test starts, with the test's own word
MARK = "CBOBENCH_STARTED_BY"
NUMBERS = itertools.count()
PATIENCE = 900.0  # seconds that a machine which is slow and busy may take for what takes a second


def stats() -> dict[int, tuple[int, str]]:
    """Parent and state of every process; one that ends meanwhile is not there."""
    processes = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            processes[int(stat.parent.name)] = int(parent), state
    return processes


def below(pid: int) -> list[int]:
    """Processes that a process has started, and those that they have started."""
    parents, descendants = stats(), [pid]
    for parent in descendants:
        descendants += [child for child, (its, _) in parents.items() if its == parent]
    return descendants[1:]


def program(pid: int) -> str:
    """What a process runs, as it was called; nothing where it has ended."""
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")[0].decode()
    return ""


def alive(pids: Iterable[int]) -> list[int]:
    """Those that run; one that nobody has waited for yet does not."""
    states = stats()
    return [pid for pid in pids if states.get(pid, (0, "Z"))[1] not in "ZX"]


def assert_gone(pids: Iterable[int]) -> None:
    pids = list(pids)
    until(
        lambda: not alive(pids),
        lambda: f"{[(pid, program(pid)) for pid in alive(pids)]} are still there",
    )


def until(
    met: Callable[[], Any], why: Callable[[], str], driver: subprocess.Popen[str] | None = None
) -> None:
    """Wait until something is met, while a driver, where one is given, must run on."""
    deadline = time.monotonic() + PATIENCE
    while not met():
        assert driver is None or driver.poll() is None or met(), (
            f"ended with {driver.returncode}: {why()}"
        )
        assert time.monotonic() < deadline, why()
        time.sleep(0.02)


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def marked(word: str) -> list[int]:
    """Processes with a test's word in their environment, also those whose parent has ended."""
    pids, variable = [], f"{MARK}={word}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if variable in environ.read_bytes().split(b"\0"):
                pids.append(int(environ.parent.name))
    return pids


@contextlib.contextmanager
def ended_with_the_test(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever is started in here is ended, waited for, and its pipes are closed: a later test
    would meet it.

    What this process has forked itself, not through `subprocess`, is left to those who forked it.
    """
    word, started = f"{os.getpid()}-{next(NUMBERS)}-{time.time_ns()}", []

    class Kept(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    with patch.context() as inner:
        inner.setenv(MARK, word)
        inner.setattr(subprocess, "Popen", Kept)
        try:
            yield
        finally:
            if started:
                _end(word, started)


def _end(word: str, started: list[subprocess.Popen[Any]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        kill(child.pid for child in started if child.poll() is None)
        ours = {pid for pid, (parent, _) in stats().items() if parent == os.getpid()}
        left = [pid for pid in marked(word) if pid not in ours]
        kill(left)
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.02)  # it may have started another one just before
    for child in started:
        child.wait(PATIENCE)
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
