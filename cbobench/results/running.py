"""Which simulations run now: a file in `simulations/` for each, so that no other worker begins it,
too.

`.NAME.running` says which process runs it, and a thread renews it. It is taken over once that
process has ended on this machine, or has not renewed it for long. Buckets have no such files: none
can be made by one process alone.

Errors of the file system are the store's, not those of the cell that simulates (see
`cbobench.results.store`).
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from cbobench.results.lease import EXPIRES_AFTER, HEARTBEAT_SECONDS
from cbobench.results.store import FINAL, StoreFailure, machine_id, process_start, retry, writing

T = TypeVar("T")

POLL_SECONDS = 0.1  # between two looks at a simulation that another process runs


class RunningSimulations:
    """The simulations that this process runs, and those of others.

    Args:
        folder: where simulations are kept, on a disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: dict[str, Path] = {}
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    def _path(self, name: str) -> Path:
        return self.folder / f".{name}.running"

    def _ask(self, call: Callable[[], T]) -> T:
        """Return the result of a call to the disk, retried while it is away."""
        return retry(call, str(self.folder), False)

    def begin(self, name: str) -> bool:
        """Whether this process runs a simulation from now on; False if one runs it already, be it
        this one.

        Raises:
            StoreFailure: the disk does not take the file, or is away for too long.
        """
        path = self._path(name)
        with writing(str(self.folder)):
            self._ask(lambda: self.folder.mkdir(exist_ok=True))
            for _ in range(2):  # again, where it was that of a process that has ended
                if self._create(path):
                    self._hold(name, path)
                    return True
                if not self._take_away(path):
                    return False
        return False

    def _create(self, path: Path) -> bool:
        """Write the file that says that this process runs a simulation; False if there is one."""
        holder = {"machine": machine_id(), "pid": os.getpid(), "born": process_start(os.getpid())}
        content = json.dumps(holder).encode()
        try:
            file = self._ask(lambda: os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            return False
        try:
            self._ask(lambda: os.write(file, content))
        except BaseException:
            with suppress(OSError):  # otherwise nobody would know whose it is
                path.unlink()
            raise
        finally:
            with suppress(OSError):
                os.close(file)
        return True

    def end(self, name: str) -> None:
        """Another process may run it. What cannot be removed is silent from now on."""
        path = self.held.pop(name, None)
        if path is not None:
            with suppress(OSError, StoreFailure):
                self._ask(lambda: path.unlink(missing_ok=True))
        if not self.held and self.thread is not None:
            self.ended.set()
            self.thread.join()
            self.thread = None

    def wait(self, name: str, until: float) -> bool:
        """Wait while another process runs a simulation, at most until a time (monotonic); whether
        that has ended it.

        Raises:
            StoreFailure: the disk does not say it, or is away for too long.
        """
        path, last_renewed, since = self._path(name), -1, time.monotonic()
        while time.monotonic() < until:
            with writing(str(self.folder)):
                try:
                    renewed = self._ask(lambda: path.lstat().st_mtime_ns)
                except FileNotFoundError:
                    return True
                if renewed != last_renewed:  # by our own clock: those of machines differ
                    last_renewed, since = renewed, time.monotonic()
                is_silent = time.monotonic() - since > EXPIRES_AFTER
                if self._take_away(path, is_silent):
                    return True
            time.sleep(POLL_SECONDS)
        return False

    def _hold(self, name: str, path: Path) -> None:
        self.held[name] = path
        if self.thread is None:
            self.ended = threading.Event()
            self.thread = threading.Thread(target=self._renew, args=(self.ended,), daemon=True)
            self.thread.start()

    def _renew(self, ended: threading.Event) -> None:
        while not ended.wait(HEARTBEAT_SECONDS):
            for path in [*self.held.values()]:
                with suppress(OSError):
                    os.utime(path)

    def _take_away(self, path: Path, is_silent: bool = False) -> bool:
        """Remove the file of a process that has ended; whether that was so.

        Args:
            is_silent: whether the file was not renewed for long, so that its process counts as
                ended.
        """
        holder = self._ask(lambda: _read(path))
        has_ended = holder.get("machine") == machine_id() and process_start(
            holder["pid"]
        ) != holder.get("born")
        if not has_ended and not is_silent:
            return False
        ours = path.with_name(f"{path.name}.{machine_id()}.{os.getpid()}.0.tmp")
        try:
            self._ask(lambda: path.rename(ours))
        except FileNotFoundError:  # another process was faster
            return True
        # what stays is a leftover; at worst two run one simulation
        with suppress(OSError, StoreFailure):
            if self._ask(lambda: _read(ours)) != holder:  # ... and has begun it meanwhile
                self._ask(lambda: os.link(ours, path))
        with suppress(OSError, StoreFailure):
            self._ask(ours.unlink)
        return True


def _read(path: Path) -> dict[str, Any]:
    """Who runs a simulation; nobody where that is not known: the file is gone, about to be written,
    or not ours.

    Raises:
        OSError: the disk is away.
    """
    try:
        # Reading a pipe or a device would never end.
        content = json.loads(path.read_bytes()) if stat.S_ISREG(path.lstat().st_mode) else None
    except (*FINAL, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and type(content.get("pid")) is int else {}
