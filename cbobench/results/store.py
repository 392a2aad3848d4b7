"""Calls to a file system that may be away for a while: retries, errors, and atomic local files.

A call that reads or writes is retried with growing, jittered pauses for `CBOBENCH_STORE_PATIENCE`
seconds (300 by default). Final errors (no such file, no permission, a full disk) are raised at
once.
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
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from cbobench.errors import CbobenchError, Misuse, mask_secrets
from cbobench.processes import leave_fork

RETRY_VARIABLE = "CBOBENCH_STORE_PATIENCE"
DEFAULT_RETRY_SECONDS = 300.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 20.0  # seconds
REPORT_AFTER = 5.0  # seconds of waiting, after which the retries are reported
FINAL = (FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError, PermissionError)
FINAL_WORDS = (
    "ACCESS_DENIED",
    "NO_SUCH_BUCKET",
    "INVALID_ACCESS_KEY",
    "SIGNATURE_DOES_NOT_MATCH",
    "NOT FOUND",
)
# the object disappeared after it was opened
GONE_WORDS = ("NO_SUCH_KEY", "NOSUCHKEY", "NO SUCH OBJECT")
# of network file systems
TRANSIENT = {errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.EREMOTEIO}

JITTER = random.SystemRandom()  # independent of every seeded stream

T = TypeVar("T")


class StoreFailure(CbobenchError):
    """A run folder cannot be reached or written (exit code 1). Complete files stay."""


def retry_seconds() -> float:
    """Return the seconds for which a store may be away."""
    text = os.environ.get(RETRY_VARIABLE, "")
    try:
        seconds = float(text) if text else DEFAULT_RETRY_SECONDS
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise Misuse(f"{RETRY_VARIABLE} is {text!r}; it must be a number of seconds, at least 0")
    return seconds


def is_transient(error: OSError, remote: bool) -> bool:
    """Return whether a retry may succeed."""
    if isinstance(error, FINAL):
        return False
    if not remote:
        return error.errno in TRANSIENT
    return not any(word in str(error).upper() for word in FINAL_WORDS)


def retry(call: Callable[[], T], location: str, remote: bool) -> T:
    """Return the result of a call to a store, retried while its errors are transient.

    Raises:
        StoreFailure: the store stayed away for too long.
        FileNotFoundError: the object was removed meanwhile.
        OSError: an error that is not transient, unchanged.
    """
    deadline, pause, waited, reported = time.monotonic() + retry_seconds(), FIRST_PAUSE, 0.0, False
    while True:
        try:
            return call()
        except OSError as error:
            if remote and any(word in str(error).upper() for word in GONE_WORDS):
                raise FileNotFoundError(first_line(error)) from error
            if not is_transient(error, remote):
                raise
            left = deadline - time.monotonic()
            if left <= 0:
                raise store_failure("reach", location, error) from error
            if waited > REPORT_AFTER and not reported:
                reported = True
                print(
                    f"{location} does not answer ({first_line(error)}); trying for {left:.0f} s "
                    "more",
                    file=sys.stderr,
                )
        # Jitter: workers that wait for the same store do not all return at once.
        wait = min(left, pause * JITTER.uniform(0.5, 1.0))
        time.sleep(wait)
        waited, pause = waited + wait, min(LONGEST_PAUSE, 2 * pause)


def store_failure(action: str, location: str, error: BaseException) -> StoreFailure:
    """Return the error that says in one line what failed and what to do."""
    return StoreFailure(
        f"cannot {action} {location}: {first_line(error)}; when that is mended the same command "
        "resumes"
    )


@contextmanager
def writing(location: str) -> Iterator[None]:
    """Turn an `OSError` inside the block into a `StoreFailure`."""
    try:
        yield
    except OSError as error:
        raise store_failure("write to", location, error) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without secrets."""
    if isinstance(error, OSError) and error.strerror and error.errno in errno.errorcode:
        return mask_secrets(error.strerror.splitlines()[0])
    return mask_secrets(str(error).splitlines()[0]) if str(error) else type(error).__name__


@cache
def machine_id() -> str:
    """Return an id of this machine or container; equal ids mean that process ids are comparable."""
    host = re.sub(r"[^A-Za-z0-9-]+", "_", platform.node())[:40] or "host"
    # Hosts of one name may be containers: the boot and the namespace of process ids tell them
    # apart.
    marks = [host]
    with suppress(OSError):
        marks += [
            Path("/proc/sys/kernel/random/boot_id").read_text(),
            str(Path("/proc/self/ns/pid").stat().st_ino),
        ]
    return f"{host}-{hashlib.sha256(' '.join(marks).encode()).hexdigest()[:6]}"


def process_start(pid: int) -> str:
    """Return when a process of this machine started, or "" for none or a zombie.

    Without /proc all that is known is whether there is one.
    """
    try:
        # The program's name, in parentheses, may hold spaces: fields are counted behind it.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        try:
            os.kill(pid, 0)
        except (OSError, OverflowError) as error:  # another user's is there, too
            return "not known" if isinstance(error, PermissionError) else ""
        return "not known"
    return "" if state in "ZX" else fields[18]


class _PatientFile(io.FileIO):
    """A new local file whose writes are retried. A write that fails has written nothing."""

    def __init__(self, path: Path, location: str) -> None:
        self.location = location
        super().__init__(path, "w")

    def write(self, data: Any) -> int:
        return retry(partial(super().write, data), self.location, False)


class AtomicFile(io.BufferedWriter):
    """A local file that is published whole or not at all. It has a temporary name until `publish`.

    Its errors are the store's, not those of the cell whose rounds are written. A fork that comes to
    write it ends: both processes would write into one file.

    Args:
        target: the file's path.
        location: the run folder, for messages.

    Raises:
        StoreFailure: by every method that writes.
    """

    def __init__(self, target: Path, location: str) -> None:
        self.target, self.location, self.origin, self.checksum = target, location, os.getpid(), 0
        self.temporary = (
            target.parent / f".{target.name}.{machine_id()}.{os.getpid()}.{time.monotonic_ns()}.tmp"
        )

    def open(self) -> None:
        """Create the file. The caller discards it after any exception: a signal may come before the
        next line.
        """
        with writing(self.location):
            super().__init__(
                retry(lambda: _PatientFile(self.temporary, self.location), self.location, False)
            )

    def write(self, data: Any) -> int:
        leave_fork(self.origin)
        with writing(self.location):
            self.checksum = zlib.crc32(data, self.checksum)
            return super().write(data)

    def publish(self) -> None:
        """Rename the file to its final name."""
        leave_fork(self.origin)
        with writing(self.location):
            self.flush()
            self._bring_to_disk()
            written, stored = self.tell(), os.fstat(self.fileno())
            if stored.st_size != written:
                raise OSError(f"{stored.st_size} of {written} bytes were stored")
            self._close()
            retry(lambda: self._rename(stored), self.location, False)

    def _bring_to_disk(self) -> None:
        """Return when the disk has all that was written.

        A flush that fails may drop what it had to write, and the next one then succeeds without it:
        the file is read again, compared with what was written, and written again before it is
        flushed again.

        Raises:
            OSError: something that was written is lost.
        """
        failed: list[OSError] = []

        def flush() -> None:
            if failed:
                content = self.temporary.read_bytes()
                if zlib.crc32(content) != self.checksum:
                    raise OSError(f"the disk lost what was written: {failed[-1].strerror}")
                self.seek(0)
                super(AtomicFile, self).write(content)
                self.flush()
            try:
                os.fsync(self.fileno())
            except OSError as error:
                failed.append(error)
                raise

        retry(flush, self.location, False)

    def _close(self) -> None:
        """Close the file, which is on disk and must not be closed twice."""
        try:
            self.close()
        except OSError as error:
            if not is_transient(error, False):
                raise

    def _rename(self, stored: os.stat_result) -> None:
        try:
            self.temporary.replace(self.target)
        except FileNotFoundError:  # done before, perhaps, by a call whose answer a network lost
            if not os.path.samestat(self.target.stat(), stored):
                raise

    def discard(self) -> None:
        """Remove the file if it is not published."""
        leave_fork(self.origin)
        with suppress(OSError, ValueError):  # not opened
            self.close()
        with suppress(OSError):
            self.temporary.unlink()


class RetryingReader(io.RawIOBase):
    """A remote file whose reads are retried while the store is away.

    Args:
        source: the open file.
        location: its address.
    """

    def __init__(self, source: Any, location: str) -> None:
        self.source, self.location, self.position = source, location, 0
        self.length: int = retry(source.size, location, True)

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
        count = left if size is None or size < 0 else min(size, left)

        def call() -> bytes:
            chunk = bytes(self.source.read_at(count, self.position))
            if len(chunk) < count:
                raise OSError(f"{len(chunk)} of {count} bytes came")
            return chunk

        chunk = retry(call, self.location, True)
        self.position += len(chunk)
        return chunk
