"""Which simulations run now: a file in `simulations/` for each, so that no other worker begins it, too.

`.NAME.running` says which process runs it, and a thread renews it. It is taken over once that process has ended on this
machine, or has not renewed it for long elsewhere. Buckets have no such files: none can be made by one process alone.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cbobench.results.lease import EXPIRES_AFTER, HEARTBEAT_SECONDS
from cbobench.results.store import machine_id, process_start

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

    def begin(self, name: str) -> bool:
        """Whether this process runs a simulation from now on; False if one runs it already, be it this one."""
        path, content = self._path(name), json.dumps(self._me())
        self.folder.mkdir(exist_ok=True)
        for _ in range(2):  # again, where it was that of a process that has ended
            try:
                with path.open("x") as file:
                    file.write(content)
            except FileExistsError:
                if not self._take_away(path, lambda holder: _has_ended(holder)):
                    return False
            else:
                self._hold(name, path)
                return True
        return False

    def end(self, name: str) -> None:
        """Another process may run it."""
        path = self.held.pop(name, None)
        if path is not None:
            path.unlink(missing_ok=True)
        if not self.held and self.thread is not None:
            self.ended.set()
            self.thread.join()
            self.thread = None

    def wait(self, name: str, until: float) -> bool:
        """Wait while another process runs a simulation, at most until a time (monotonic); whether that has ended it."""
        path, seen, since = self._path(name), -1, time.monotonic()
        while time.monotonic() < until:
            try:
                renewed = path.stat().st_mtime_ns
            except FileNotFoundError:
                return True
            if renewed != seen:  # by our own clock: those of machines differ
                seen, since = renewed, time.monotonic()
            is_silent = time.monotonic() - since > EXPIRES_AFTER
            if self._take_away(path, lambda holder, is_silent=is_silent: _has_ended(holder, is_silent)):  # type: ignore[misc]
                return True
            time.sleep(POLL_SECONDS)
        return False

    def _me(self) -> dict[str, Any]:
        return {"machine": machine_id(), "pid": os.getpid(), "born": process_start(os.getpid())}

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

    def _take_away(self, path: Path, has_ended: Callable[[dict[str, Any]], bool]) -> bool:
        """Remove the file of a process that has ended; whether that was so."""
        holder = _read(path)
        if holder is None or not has_ended(holder):
            return False
        ours = path.with_name(f"{path.name}.{machine_id()}.{os.getpid()}.0.tmp")
        try:
            path.rename(ours)
        except FileNotFoundError:  # another process was faster
            return True
        if _read(ours) != holder:  # ... and has begun it meanwhile
            with suppress(FileExistsError):
                os.link(ours, path)
        ours.unlink(missing_ok=True)
        return True


def _read(path: Path) -> dict[str, Any] | None:
    """Who runs a simulation; None if that is not known, because the file is gone or about to be written."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _has_ended(holder: dict[str, Any], is_silent: bool = False) -> bool:
    if holder.get("machine") != machine_id():
        return is_silent
    return process_start(int(holder.get("pid", 0))) != holder.get("born")
