"""What a driver and the processes that it starts say to each other: a class per message, by which
it is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cbobench.errors import CbobenchError
from cbobench.play.company import Company
from cbobench.play.task import Receipt, Task, WorkerCrashed
from cbobench.play.watchdog import ReturnedTask
from cbobench.results.folder import RunFolder
from cbobench.suite.settings import Demand
from cbobench.sweep.cluster import Code


class Report(NamedTuple):
    """How far a task is that is played.

    Attributes:
        rounds: seed-rounds.
        stamp: another one in each report: who says the same again is there.
    """

    rounds: int = 0
    stamp: int = 0


Answer = Receipt | WorkerCrashed | ReturnedTask


class Refused(NamedTuple):
    """What was asked for cannot be done: the driver raises the error."""

    error: CbobenchError


# To a worker process, and from it.


class Play(NamedTuple):
    """A task to play, of the problem of that title, which comes pickled the first time (else
    None).
    """

    title: str
    problem: bytes | None
    task: Task
    folder: RunFolder


class Progress(NamedTuple):
    """How many seed-rounds of its task a worker has played; it says so first as it begins."""

    rounds: int


class Played(NamedTuple):
    """What became of a task."""

    answer: Answer


# To the process of Ray, and from it.


class Join(NamedTuple):
    """Start or join Ray; see `RayExecutor`, but the problems are pickled."""

    problems: Mapping[str, bytes]
    folder: RunFolder
    cpus: int | None
    address: str | None
    code: Code | None


class Submit(NamedTuple):
    """Begin a task of that name, pickled, of the problem of that title."""

    name: str
    title: str
    demand: Demand
    company: Company
    task: bytes


class Cancel(NamedTuple):
    """End the task of that name, wherever it is."""

    name: str


class Leave(NamedTuple):
    """End Ray, or leave the cluster."""


class Slots(NamedTuple):
    """How many CPUs Ray has now."""

    cpus: int


class Board(NamedTuple):
    """The last reports on the tasks that are played, by name."""

    reports: Mapping[str, Report]


class Ended(NamedTuple):
    """What became of the task of that name."""

    name: str
    answer: Answer
