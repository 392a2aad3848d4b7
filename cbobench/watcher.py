"""Who is told what happens while a suite is planned and played."""

from __future__ import annotations

from typing import Any


class Watcher:
    """Hears nothing; what listens derives it and takes what it wants to hear.

    What it raises ends the sweep, as a fault of the sweep's own would.
    """

    def note(self, text: str) -> None:
        """Hear one line: who plays, what takes long, what is overdue or lost."""

    def began(self, counter: Any) -> None:
        """Hear that the first task is about to begin; a `RoundCounter` counts what is played."""

    def played(self, receipt: Any) -> None:
        """Hear that a task is over, by its `Receipt`."""


SILENT = Watcher()
