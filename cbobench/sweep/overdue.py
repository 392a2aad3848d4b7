"""Tasks of which nothing has been heard for long: an answer may be lost though the results are there, or a task itself.

A worker ends by itself what hangs (`cbobench.play.watch`), so that this is about what lies between it and the driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

from cbobench.errors import CbobenchError
from cbobench.play.task import Crashed, Receipt, Task, TooLong, published_receipt
from cbobench.results.folder import RunFolder
from cbobench.sweep.raysweep import Lost

QUIET = 60.0  # seconds without any answer after which the store is looked at
LOOK = 30.0  # and seconds between two looks; an answer that was published before the last one is lost
UNUSUAL = 20.0  # times the longest of its pair's tasks so far, after which a task is queued again ...
PATIENCE = 900.0  # ... but not before so many seconds
ASLEEP = 60.0  # seconds between two calls, after which this process itself was suspended
SAY = 600.0  # seconds without any answer that the user is told of, and then twice as many


class Overdue:
    """Who has been heard of, and when.

    Args:
        folder: the run.
        note: told in one line what is overdue.
    """

    def __init__(self, folder: RunFolder, note: Callable[[str], None]) -> None:
        self.folder, self.note = folder, note
        self.last = self.looked = self.called = time.monotonic()
        self.since: dict[str, float] = {}
        self.longest: dict[tuple[str, str], float] = {}
        self.published: set[str] = set()
        self.say = SAY

    def given(self, task: Task) -> None:
        """A task is handed out."""
        self.since[task.name] = time.monotonic()

    def heard(self, task: Task, answer: Receipt | Crashed | TooLong | Lost) -> None:
        """An answer has come."""
        self.last, self.say = time.monotonic(), SAY
        self.since.pop(task.name, None)
        if isinstance(answer, Receipt) and answer.seconds is not None:
            key = task.pair.key
            self.longest[key] = max(self.longest.get(key, 0.0), answer.seconds)

    def look(self, pending: Collection[Task]) -> Iterator[tuple[Task, Receipt | None]]:
        """After long silence, pending tasks that need not be waited for: with a receipt, or to be queued again."""
        now = time.monotonic()
        if (slept := now - self.called) > ASLEEP:
            self.last += slept
            self.since = {name: at + slept for name, at in self.since.items()}
        self.called = now
        if not pending or now - self.last < QUIET or now - self.looked < LOOK:
            return
        self.looked = now
        minutes = f"{(now - self.last) / 60:.0f} min"
        try:
            there = self.folder.published()
        except (OSError, CbobenchError):  # the store does not answer either
            there = set()
        late = []
        for task in list(pending):
            if task.name in there & self.published:
                self.note(f"{task.name} is done, though its worker's answer was lost")
                yield task, published_receipt(self.folder, task)
            elif task.name not in there and self._unusual(task, now):
                late.append(task)
        self.published = there
        if late:
            self.note(f"no answer for {minutes} from {_some(late)}; queued again")
            yield from ((task, None) for task in late)
        elif now - self.last >= self.say:
            self.say *= 2
            self.note(f"no answer for {minutes}; in play: {_some(list(pending))}")

    def _unusual(self, task: Task, now: float) -> bool:
        """Whether a task has had far more time, since the last answer of all, than its pair's tasks have taken."""
        longest = self.longest.get(task.pair.key)
        silent = now - max(self.last, self.since.get(task.name, now))
        return longest is not None and silent > max(PATIENCE, UNUSUAL * longest)


def _some(tasks: list[Task]) -> str:
    shown = ", ".join(task.name for task in tasks[:3])
    return shown if len(tasks) <= 3 else f"{shown} and {len(tasks) - 3} more"
