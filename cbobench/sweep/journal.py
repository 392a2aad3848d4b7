"""What happened during a run, a line of JSON per event: `log/<start>-<host>-<process>.jsonl` in the run folder.

`started` (or `resumed`), `played` (a task, and the seconds it took), `failed` (a cell), `note` (who plays, what is
overdue or lost) and `ended`, each with `time` (UTC) and `seconds` since the start. For people and for programs;
nothing here reads it, and a log that cannot be written stops no sweep.
"""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbobench.errors import CbobenchError

if TYPE_CHECKING:
    from cbobench.play.task import Receipt
    from cbobench.sweep.run import Outcome, Plan

LINES = 20_000  # per call; after them only the end is written
UPLOAD = 60.0  # seconds between two uploads, where files cannot grow


class Journal:
    """Writes the log of one call.

    Args:
        plan: what it plays. Nothing is written before something has happened: a call that is refused leaves no log.
    """

    def __init__(self, plan: Plan) -> None:
        self.folder = plan.folder
        self.began, self.uploaded = time.monotonic(), time.monotonic()
        self.lines: list[str] = []
        self.written = 0
        self.name = f"log/{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{platform.node()}-{os.getpid()}.jsonl"
        self._add("resumed" if plan.done else "started", cells=plan.cells, done=plan.done, tasks=len(plan.tasks))

    def record_receipt(self, receipt: Receipt) -> None:
        """Write that a task was played, and which of its cells failed."""
        counts = {"ok": receipt.ok, "failed": receipt.failed, "rounds": receipt.rounds}
        self._add("played", task=receipt.task, **counts, took=receipt.seconds and round(receipt.seconds, 3))
        for error in receipt.errors:
            self._add("failed", cell=error)
        self._write()

    def record_note(self, text: str) -> None:
        """Write a note, once a task was played."""
        self._add("note", text=text)
        if self.written:
            self._write()

    def record_end(self, outcome: Outcome) -> None:
        """Write how the call ended."""
        counts = {"played": outcome.played, "failed": outcome.failed, "absent": len(outcome.absent)}
        self._add("ended", **counts, stopped=outcome.stopped)
        if outcome.tasks:
            self._write(over=True)

    def _add(self, event: str, **fields: Any) -> None:
        if self.written + len(self.lines) >= LINES and event != "ended":
            return
        seconds = round(time.monotonic() - self.began, 3)
        content = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, "seconds": seconds}
        self.lines.append(json.dumps(content | fields) + "\n")

    def _write(self, over: bool = False) -> None:
        with suppress(OSError, CbobenchError):
            if self.folder.local:
                path = Path(self.folder.path(self.name))
                path.parent.mkdir(exist_ok=True)
                with path.open("a") as file:
                    file.writelines(self.lines)
                self.written += len(self.lines)
                self.lines.clear()
            elif over or time.monotonic() - self.uploaded > UPLOAD:
                text = "".join(self.lines).encode()
                self.folder.publish(self.name, lambda sink: sink.write(text))
                self.uploaded = time.monotonic()
