"""Files of a run: what a store's failure is, and local files that appear whole or not at all."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cbobench.errors import CbobenchError, mask_secrets

ATTEMPTS = 20  # of a request to a bucket, in about four minutes
# of a network file system that is away
AWAY = {errno.ESTALE, errno.ETIMEDOUT, errno.EREMOTEIO, errno.EHOSTDOWN, errno.EHOSTUNREACH}
GONE_WORD = "NO_SUCH_KEY"  # the object disappeared after it was opened


class StoreFailure(CbobenchError):
    """A run folder cannot be reached or written (exit code 1). Complete files stay."""


def is_away(error: BaseException) -> bool:
    """Return whether a store does not answer, which tells nothing of the file that is read."""
    return isinstance(error, OSError) and (error.errno in AWAY or "AWS Error" in str(error))


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
    if str(error):
        return mask_secrets(str(error).splitlines()[0])
    return type(error).__name__


def leave_fork(origin: int) -> None:
    """End this process if it is a fork of the one that began, in which the user's code has
    returned.

    Both would go on with the same play and the same open file.

    Args:
        origin: id of the process that began.
    """
    if os.getpid() != origin:
        os._exit(0)


class AtomicFile(io.FileIO):
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
        self.target = target
        self.location = location
        self.origin = os.getpid()
        self.temporary = target.parent / f".{target.name}.{os.urandom(6).hex()}.tmp"

    def open(self) -> None:
        """Create the file. The caller discards it after any exception: a signal may come before the
        next line.
        """
        with writing(self.location):
            super().__init__(self.temporary, "w")

    def write(self, data: Any) -> int:
        leave_fork(self.origin)
        with writing(self.location):
            left = memoryview(data).cast("B")
            size = len(left)
            while left:  # a disk that fills up takes a part first
                left = left[super().write(left) :]
            return size

    def publish(self) -> None:
        """Rename the file to its final name once the disk has it."""
        leave_fork(self.origin)
        with writing(self.location):
            os.fsync(self.fileno())
            self.close()
            self.temporary.replace(self.target)

    def discard(self) -> None:
        """Remove the file if it is not published."""
        leave_fork(self.origin)
        with suppress(OSError, ValueError):  # not opened
            self.close()
        with suppress(OSError):
            self.temporary.unlink()
