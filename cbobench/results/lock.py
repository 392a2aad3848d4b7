"""The lock of a run folder: one call plays into it at a time, and clears up after one that was
killed.

On a disk, also one that machines share, it is a file that the system locks for as long as the
process lives. In a bucket it is an object that the call renews, and that expires. Either holds a
line on who plays.
"""

from __future__ import annotations

import fcntl
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from pyarrow.fs import FileType

from cbobench.errors import CbobenchError, Misuse, printable, show
from cbobench.results.folder import RunFolder
from cbobench.results.manifest import FILE
from cbobench.results.schema import KINDS
from cbobench.results.store import StoreFailure, first_line
from cbobench.watcher import SILENT, Watcher

LOCK = "lock"
LOCK_SECONDS = 1.0  # to wait for the lock on a disk: `status` has it for a moment
# seconds that a call in a bucket waits for others that ask, and of its object there
ASK_SECONDS = 2.0
RENEW_SECONDS = 10.0
EXPIRES_AFTER = 60.0  # several renewals may fail before a call counts as killed
VISIBLE_WITHIN = 10.0  # seconds until another machine must see a new file
RUN_ENTRIES = {FILE, LOCK, *KINDS, "simulations"}
"""What a run folder holds."""


def find_player(folder: RunFolder) -> str:
    """Return who plays into a run now, as "process P on HOST since T"; "" for nobody."""
    if _is_locked(folder):
        return _read(folder)
    return ""


@contextmanager
def hold(folder: RunFolder, watcher: Watcher = SILENT) -> Iterator[RunFolder]:
    """Hold the lock of a run inside the block; gives the folder to play into.

    What a killed call has left half-written is removed first.

    Raises:
        Misuse: another call holds it; the folder cannot be written, or its file system has no
            locks.
    """
    now = datetime.now(UTC).isoformat()
    player = f"process {os.getpid()} on {platform.node()} since {now}"
    hold_lock = _hold_file if folder.local else _hold_object
    with hold_lock(folder, player):
        if removed := _remove_unfinished(folder):
            watcher.note(f"removed {removed} unfinished files of a call that was killed")
        yield replace(folder, driver=player)


@contextmanager
def _hold_file(folder: RunFolder, player: str) -> Iterator[None]:
    # takes longer to load than a small run to plan
    from filelock import FileLock, Timeout

    path = Path(folder.path(LOCK))
    made = [place for place in path.parents if not place.exists()]
    # a soft lock, which is a file alone, would outlive a process that is killed
    lock = FileLock(path, timeout=LOCK_SECONDS, fallback_to_soft=False, thread_local=False)
    try:
        lock.acquire()
        path.write_text(player)
    except Timeout:
        raise _refusal(folder, _read(folder)) from None
    except OSError as error:
        raise Misuse(f"cannot lock {folder}: {first_line(error)}; give another --out") from error
    try:
        yield
    finally:
        with suppress(OSError):
            if [*path.parent.iterdir()] == [path]:  # what fails before it plays leaves no folder
                path.unlink()
                for place in made:
                    place.rmdir()
        lock.release()


@contextmanager
def _hold_object(folder: RunFolder, player: str) -> Iterator[None]:
    """Hold the lock of a run in a bucket, where the last of several that ask at once has it.

    Who asks has seen no object less than `ASK_SECONDS` before it writes its own, and looks again
    so much later: whoever overwrites that has done so by then. Who was slower waits until a call
    that plays would have renewed its object, and asks again.
    """
    ended = threading.Event()

    def write() -> None:
        folder.publish(LOCK, lambda sink: sink.write(player.encode()))

    def renew() -> None:
        while not ended.wait(RENEW_SECONDS):
            with suppress(CbobenchError):  # it is tried again
                write()

    # A slow write may have come after the look of another that asks: it proves nothing.
    is_slow = True
    seen = _find_lock(folder)
    while is_slow:
        began = time.monotonic()
        # A call that plays renews its object; that of a killed one expires.
        while (other := find_player(folder)) not in ("", player):
            if _find_lock(folder) != seen:
                raise _refusal(folder, other)
            time.sleep(ASK_SECONDS)
            began = time.monotonic()
        try:
            write()
        except StoreFailure as error:
            raise Misuse(f"{str(error).partition(';')[0]}; give another --out") from error
        is_slow = time.monotonic() - began > ASK_SECONDS
        time.sleep(ASK_SECONDS)
        if is_slow:
            time.sleep(RENEW_SECONDS)

    # Of several that asked at once the last has written over what the others wrote.
    if (other := _read(folder)) != player:
        raise _refusal(folder, other)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # else it might write the object once more
        with suppress(CbobenchError):
            folder.remove(LOCK)


def _refusal(folder: RunFolder, player: str) -> Misuse:
    who = f" ({printable(player)})" if player else ""
    return Misuse(
        f"{folder} is being played by another call{who}; wait for it, end it, or give another --out"
    )


def _read(folder: RunFolder) -> str:
    with suppress(FileNotFoundError):
        if folder.exists(LOCK):  # of what somebody else has put there, a pipe would never end
            with folder.fs.open_input_stream(folder.path(LOCK)) as stream:
                return stream.read().decode(errors="replace")
    return ""


def _find_lock(folder: RunFolder) -> int | None:
    """Return when the lock's file was written, in nanoseconds; None if there is none."""
    info = folder.listing("").get(LOCK)
    if info is None or info.type != FileType.File:
        return None
    return int(info.mtime_ns)


def _is_locked(folder: RunFolder) -> bool:
    written = _find_lock(folder)
    if written is None:
        return False
    if not folder.local:
        return time.time() - written / 1e9 < EXPIRES_AFTER
    # As a reader, who may not write.
    with Path(folder.path(LOCK)).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@cache
def refuse_unshared_folder(folder: RunFolder) -> None:
    """Raise `StoreFailure` if this machine does not see the driver's lock: the folder of that name
    is another one here. A bucket is the same one everywhere.
    """
    deadline = time.monotonic() + VISIBLE_WITHIN
    while folder.driver and folder.local and folder.driver != _read(folder):
        if time.monotonic() > deadline:
            raise StoreFailure(
                f"{platform.node()} does not see the driver's folder {folder}: what it played "
                "there would be lost; "
                "give --out on a file system that all machines share, or in a bucket"
            )
        time.sleep(0.5)


def refuse_foreign_folder(folder: RunFolder) -> None:
    """Raise `Misuse` if a path without run.json is a non-empty folder or no folder."""
    if folder.exists(""):
        raise Misuse(f"{folder} is a file; give a folder for the run")
    # An unfinished run.json is of a call that was killed while it wrote it.
    names = [name for name in folder.listing("") if not name.startswith(".run.json.")]
    foreign = {*names} - RUN_ENTRIES or {
        name
        for kind in KINDS
        for name in folder.listing(kind)
        if not name.endswith((".parquet", ".tmp"))
    }
    if foreign:
        raise Misuse(
            f"{folder} is not empty and not a run folder: it holds {show(min(foreign))}; give "
            "another --out"
        )


def _remove_unfinished(folder: RunFolder) -> int:
    """Remove every file under a temporary name, which has no writer; return their number."""
    if not folder.local:
        return 0  # an upload that was not finished leaves no object
    places = [Path(folder.path(kind)) for kind in ("", *RUN_ENTRIES)]
    paths = [path for place in places for path in place.glob(".*.tmp")]
    for path in paths:
        with suppress(OSError):  # the next call tries again
            path.unlink()
    return len(paths)
