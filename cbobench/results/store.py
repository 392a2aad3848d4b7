"""Stores that are away for a while: what to do with a call that fails, and what a reader or a writer then sees.

A call is repeated with growing, jittered pauses for as long as `CBOBENCH_STORE_PATIENCE` says (seconds; 300 by
default). What no waiting mends (no such file, no permission, a full disk) is raised at once.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import platform
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from cbobench.errors import CbobenchError, Misuse, masked

PATIENCE = "CBOBENCH_STORE_PATIENCE"
DEFAULT_PATIENCE = 300.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 20.0  # seconds
SAID_AFTER = 5.0  # seconds of pauses
FINAL = (FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError, PermissionError)
FINAL_WORDS = ("ACCESS_DENIED", "NO_SUCH_BUCKET", "INVALID_ACCESS_KEY", "SIGNATURE_DOES_NOT_MATCH", "NOT FOUND")
GONE_WORDS = ("NO_SUCH_KEY", "NOSUCHKEY", "NO SUCH OBJECT")  # of an object that was there when it was opened
PASSING = {errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.EREMOTEIO}  # of network file systems

JITTER = random.SystemRandom()  # no stream of anybody's moves with it

T = TypeVar("T")


class StoreFailure(CbobenchError):
    """A run folder cannot be reached, or cannot be written (exit code 1). What is complete in it stays."""


def patience() -> float:
    """Seconds for which a store may be away."""
    given = os.environ.get(PATIENCE, "")
    try:
        seconds = float(given) if given else DEFAULT_PATIENCE
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise Misuse(f"{PATIENCE} is {given!r}; it must be a number of seconds, at least 0")
    return seconds


def passes(error: OSError, remote: bool) -> bool:
    """Whether an error may go away by itself."""
    if isinstance(error, FINAL):
        return False
    if not remote:
        return error.errno in PASSING
    return not any(word in str(error).upper() for word in FINAL_WORDS)


def patient(call: Callable[[], T], where: str, remote: bool) -> T:
    """The answer of a call to a store, which is repeated while it fails in passing.

    Raises:
        StoreFailure: the store stayed away for too long. FileNotFoundError: an object that was removed meanwhile.
        OSError: what else does not pass, as it came.
    """
    deadline, pause, waited, said = time.monotonic() + patience(), FIRST_PAUSE, 0.0, False
    while True:
        try:
            return call()
        except OSError as error:
            if remote and any(word in str(error).upper() for word in GONE_WORDS):
                raise FileNotFoundError(first(error)) from error
            if not passes(error, remote):
                raise
            left = deadline - time.monotonic()
            if left <= 0:
                raise failure("reach", where, error) from error
            if waited > SAID_AFTER and not said:
                said = True
                print(f"{where} does not answer ({first(error)}); trying for {left:.0f} s more", file=sys.stderr)
        wait = min(left, pause * JITTER.uniform(0.5, 1.0))
        time.sleep(wait)
        waited, pause = waited + wait, min(LONGEST_PAUSE, 2 * pause)


def failure(what: str, where: str, error: BaseException) -> StoreFailure:
    """One line on what cannot be done any more, and what to do."""
    return StoreFailure(f"cannot {what} {where}: {first(error)}; when that is mended the same command resumes")


def first(error: BaseException) -> str:
    """The first line of what an error says, without secrets."""
    if isinstance(error, OSError) and error.strerror and error.errno in errno.errorcode:
        return masked(error.strerror.splitlines()[0])
    return masked(str(error).splitlines()[0]) if str(error) else type(error).__name__


@cache
def machine() -> str:
    """Names this machine, as far as process ids mean the same (containers have their own)."""
    host = re.sub(r"[^A-Za-z0-9-]+", "_", platform.node())[:40] or "host"
    marks = [host]
    with suppress(OSError):
        marks += [Path("/proc/sys/kernel/random/boot_id").read_text(), str(Path("/proc/self/ns/pid").stat().st_ino)]
    return f"{host}-{hashlib.sha256(' '.join(marks).encode()).hexdigest()[:6]}"


def born(pid: int) -> str:
    """When a process of this machine started, "" if there is none (or only what its parent has yet to collect)."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]


class Sink(io.BufferedWriter):
    """A local file that is published whole or not at all, under a temporary name until then.

    Its errors are the store's, and not of the cell whose rounds are written.

    Args:
        target: the file's path.
        where: the run folder, for messages.

    Raises:
        StoreFailure: by every method that writes.
    """

    def __init__(self, target: Path, where: str) -> None:
        self.target, self.where = target, where
        self.temporary = target.parent / f".{target.name}.{machine()}.{os.getpid()}.{time.monotonic_ns()}.tmp"

    def open(self) -> None:
        """Make the file; who calls this discards it, whatever is raised: a signal may come before the next line."""
        with written(self.where):
            super().__init__(io.FileIO(self.temporary, "w"))

    def write(self, data: Any) -> int:
        with written(self.where):
            return super().write(data)

    def publish(self) -> None:
        """Put the file where it belongs."""
        with written(self.where):
            self.flush()
            os.fsync(self.fileno())
            self.close()
            self.temporary.replace(self.target)

    def discard(self) -> None:
        """Leave nothing."""
        with suppress(OSError, ValueError):  # it was not opened
            self.close()
        with suppress(OSError):
            self.temporary.unlink()


@contextmanager
def written(where: str) -> Iterator[None]:
    """What is raised within is a failure to write."""
    try:
        yield
    except OSError as error:
        raise failure("write to", where, error) from error


class Steady(io.RawIOBase):
    """A remote file whose reads are repeated while the store is away.

    Args:
        source: the open file.
        where: its address.
    """

    def __init__(self, source: Any, where: str) -> None:
        self.source, self.where, self.position = source, where, 0
        self.length: int = patient(source.size, where, True)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset + (0, self.position, self.length)[whence]
        return self.position

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self.length - self.position)
        wanted = left if size is None or size < 0 else min(size, left)

        def call() -> bytes:
            found = bytes(self.source.read_at(wanted, self.position))
            if len(found) < wanted:
                raise OSError(f"{len(found)} of {wanted} bytes came")
            return found

        found = patient(call, self.where, True)
        self.position += len(found)
        return found
