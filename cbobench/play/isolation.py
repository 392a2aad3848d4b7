"""Restores the state of the process after each play, so that no cell's code affects the next cell.

Algorithms and problems are the user's code, and many cells share a worker. Restored are
floating-point rules, warnings, the working directory, the environment, signal handlers, standard
streams and global random generators. The global generators of Python and NumPy start each play from
a stream named by its cells.
"""

from __future__ import annotations

import io
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cbobench.rng import Part, generator

QUIET = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
CAPTURED_BYTES = 100  # bytes of printed output
HANDLED = tuple(
    getattr(signal, f"SIG{name}")
    for name in ("INT", "TERM", "HUP", "ALRM", "USR1", "USR2", "CHLD", "PIPE")
)


@contextmanager
def isolate_play(*name: Part) -> Iterator[None]:
    """Seed the global generators from the stream of that name, and restore the process afterwards.

    Threads and memory are not restored (see `cbobench.threads.has_lingering_threads`).
    """
    before = [(put_back, look()) for look, put_back in _STATE]
    with np.errstate(), warnings.catch_warnings():
        seed = generator(*name, "global")
        _set_generator(np.random.MT19937(int(seed.integers(2**32))))
        random.seed(int(seed.integers(2**32)))
        try:
            yield
        finally:
            for put_back, value in before:
                with suppress(OSError, ValueError):  # the folder has been removed
                    put_back(value)


@contextmanager
def default_warnings() -> Iterator[None]:
    """Use Python's and NumPy's default rules for warnings and floating-point errors inside the
    block.
    """
    with (
        np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        for category in QUIET:
            warnings.simplefilter("ignore", category)
        yield


class CapturedOutput(io.BufferedIOBase):
    """Discards printed output except its first bytes."""

    name = "<captured>"

    def __init__(self) -> None:
        self.beginning = b""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def write(self, data: Any) -> int:
        self.beginning += bytes(data[: CAPTURED_BYTES - len(self.beginning)])
        return len(data)

    def close(self) -> None:
        """Stay open: code that kept a stream of an earlier play may still write to it."""

    def line(self) -> str:
        """Return the first printed line, or ""."""
        lines = self.beginning.decode(errors="replace").strip().splitlines()
        return lines[0] if lines else ""


@contextmanager
def captured_output() -> Iterator[CapturedOutput]:
    """Capture what Python prints inside the block; a worker on another machine shows nothing."""
    captured = CapturedOutput()
    streams = [
        io.TextIOWrapper(captured, "utf-8", "backslashreplace", write_through=True)
        for _ in range(2)
    ]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        yield captured


def _folder() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:  # removed
        return None


def _set_folder(folder: str | None) -> None:
    if folder is not None:
        os.chdir(folder)


def _set_environment(values: dict[str, str]) -> None:
    if dict(os.environ) != values:
        for name in [name for name in os.environ if name not in values]:
            del os.environ[name]
        os.environ.update(values)


def _handlers() -> dict[signal.Signals, Any]:
    """Return the handlers that Python knows, if this thread may set them again."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    return {number: handler for number, handler in handlers.items() if handler is not None}


def _set_handlers(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def _streams() -> tuple[Any, Any, Any]:
    return sys.stdin, sys.stdout, sys.stderr


def _set_streams(streams: tuple[Any, Any, Any]) -> None:
    sys.stdin, sys.stdout, sys.stderr = streams


def _generator() -> Any:
    return np.random.get_bit_generator()  # type: ignore[attr-defined]


def _set_generator(bits: Any) -> None:
    np.random.set_bit_generator(bits)  # type: ignore[attr-defined]


_STATE: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
    (_handlers, _set_handlers),
    (_streams, _set_streams),
    (_folder, _set_folder),
    (lambda: dict(os.environ), _set_environment),
    (random.getstate, random.setstate),
    (_generator, _set_generator),
]
"""Pairs of a reader before a play and a setter after it."""
