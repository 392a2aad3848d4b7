"""Who plays the tasks of a sweep, and what becomes of a task that does not come back.

On this machine worker processes begin at once. Where they would be at it for more than a minute yet, Ray starts
meanwhile and takes over, a worker at a time: at no moment are there more tasks in play than CPUs were asked for. A
cluster, or a Ray that the program has started itself, plays all.

A task that loses its node is queued again; one that crashes its worker, runs out of memory or hangs is cut in two until
the cell at fault is alone. That cell fails: after three crashes, or two hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from math import inf
from typing import Protocol

from cbobench.errors import CbobenchError, CellFailure, Misuse, show
from cbobench.play.task import (
    Crashed,
    Receipt,
    Task,
    TooLong,
    carry_out,
    failed_row,
    publish_cells,
    published_receipt,
)
from cbobench.problems.base import Problem
from cbobench.results.drivers import beat, mark
from cbobench.results.folder import RunFolder
from cbobench.sweep.blocks import Measured, Queue, Tasks, machine_memory, rounds_of
from cbobench.sweep.overdue import Overdue
from cbobench.sweep.pace import Pace
from cbobench.sweep.rayhost import Ended, RayHost
from cbobench.sweep.raysweep import Lost, RaySweep, started
from cbobench.sweep.ship import code
from cbobench.sweep.workers import Workers, usable_cpus
from cbobench.words import counted

CRASHES_OF_A_CELL = 3
HANGS_OF_A_CELL = 2  # a process that was suspended may seem to hang, once
LOST_NODES_PER_TASK = 20
BURST = 10.0  # seconds in which lost tasks are told of once: a machine has many
PATIENCE = 3.0  # seconds of play before the rest is estimated
RAY_PAYS = 60.0  # seconds of play left above which Ray is started: it takes several of two CPUs
LAST, LAST_PER_SLOT = 64, 4  # waiting tasks of which the longest is handed out first
SHORT, LONG = 0.1, 2.0  # seconds to wait for a task, where there is something else to look after, and where not


Answer = Receipt | Crashed | TooLong | Lost


class Players(Protocol):
    """What plays tasks: worker processes, Ray, or this process."""

    @property
    def pending(self) -> Collection[Task]: ...
    def room(self) -> int: ...
    def give(self, task: Task) -> None: ...
    def take(self, seconds: float) -> Iterable[tuple[Task, Answer]]: ...
    def recall(self, task: Task) -> None: ...
    def stop(self) -> None: ...


class Here:
    """Plays in this process, one task at a time."""

    def __init__(self, problems: Mapping[str, Problem], folder: RunFolder) -> None:
        self.problems, self.folder = problems, folder
        self.pending: list[Task] = []

    def room(self) -> int:
        return 1 - len(self.pending)

    def give(self, task: Task) -> None:
        self.pending.append(task)

    def take(self, seconds: float) -> Iterator[tuple[Task, Receipt | Crashed | TooLong]]:
        """Play what was given."""
        for task in self.pending:
            yield task, carry_out(self.problems[task.pair.problem.title], task, self.folder)
        self.pending.clear()

    def recall(self, task: Task) -> None:
        """Nothing is under way between two calls."""

    def stop(self) -> None:
        """Nothing is left behind, even where a signal came while a half-written file was removed."""
        self.folder.forget([task.name for task in self.pending])


def on_ray_alone(address: str | None) -> bool:
    """Whether Ray plays from the beginning."""
    return address is not None


class Crew:
    """Hands out tasks and yields their receipts as they come.

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        tasks: to play.
        cpus: how many at a time on this machine, None for all its CPUs; 0 to play in this process.
        address: of a Ray cluster, instead.
        note: told in one line who plays, and what is overdue.
        ship: whether this machine's code is sent to the cluster.
        measured: what cells of the run took before.
    """

    def __init__(
        self,
        problems: Mapping[str, Problem],
        folder: RunFolder,
        tasks: Tasks,
        cpus: int | None = None,
        address: str | None = None,
        note: Callable[[str], None] = lambda text: None,
        ship: bool = False,
        measured: Iterable[Measured] = (),
    ) -> None:
        self.problems, self.folder, self.note = problems, folder, note
        self.pace = Pace(problems, measured)
        self.waiting = Queue(tasks)
        self.rounds, self.given = rounds_of(tasks), 0
        self.allowed_losses = LOST_NODES_PER_TASK * max(1, len(tasks))
        self.crashes: dict[str, int] = {}
        self.cpus = cpus or usable_cpus()
        self.workers: Workers | None = None
        self.starting: RayHost | None = None
        self.ray: Players | None = None
        self.refused = self.printed = False
        self.told = -BURST
        self.machines = address is not None or started()  # whether there may be others than this one
        self.overdue = Overdue(folder, note)
        if ship and address is None:
            raise Misuse("--ship sends this machine's code to a cluster; give its --address, too")
        if cpus == 0:
            self.ray = Here(problems, folder)
            note("played by this process")
        elif started():
            self.ray = RaySweep(problems, folder, cpus, address, code(tasks.sources, False), note)
            note("played on Ray")
        elif on_ray_alone(address):
            wanted = None if address is None else code(tasks.sources, ship)
            self.ray = self.starting = RayHost(problems, folder, cpus, address, wanted, note)
            try:
                self.starting.wait()
            except BaseException:
                self.starting.stop()
                raise
            note("played on Ray")
        else:
            self.workers = Workers(problems, folder, min(self.cpus, len(tasks)))
            note(f"played by {counted(self.workers.size, 'worker process')}")

    def play(self) -> Iterator[Receipt]:
        """Receipts of all tasks, as they come; `stop` ends what is in play.

        Raises:
            CbobenchError: a worker has other code, cannot write, or cannot start; too many nodes were lost; Ray died
                before all was published.
        """
        try:
            yield from self._play()
        except Ended:
            yield from self._published()
            if self.waiting or any(player.pending for player in self._players()):
                raise

    def _play(self) -> Iterator[Receipt]:
        self.began = time.monotonic()
        while self.waiting or any(player.pending for player in self._players()):
            self._call_ray()
            beat(self.folder)
            for player in self._players():
                while self.waiting and self._room(player) > 0:
                    task = self._next()
                    if not self._fits(player, task):
                        self.waiting.appendleft(task)
                        break
                    self.given += task.rounds
                    self.overdue.given(task)
                    player.give(task)
            for player in self._players():
                for task, answer in player.take(LONG if self.workers is None else SHORT):
                    self.overdue.heard(task, answer)
                    receipt = self._settle(task, answer)
                    if receipt is not None:
                        yield receipt
            for player in self._players():
                for task, receipt in self.overdue.look(player.pending):
                    player.recall(task)
                    if receipt is None:
                        self.given -= task.rounds
                        self.waiting.appendleft(task)
                    else:
                        yield receipt

    def _published(self) -> Iterator[Receipt]:
        """Receipts of tasks in play whose cells are there, though who played them has gone before it said so."""
        there = self.folder.published()
        for player in self._players():
            for task in [task for task in player.pending if task.name in there]:
                with suppress(Ended):
                    player.recall(task)
                yield published_receipt(self.folder, task)

    def playing(self) -> dict[str, list[int]]:
        """Cells that are handed out, by a hash of pair and horizon: [count, seed-rounds that are over]."""
        found: dict[str, list[int]] = {}
        for task in [task for player in self._players() for task in [*player.pending]]:
            found.setdefault(mark(task.pair, task.horizon), [0, 0])[0] += len(task.cells)
        return found

    def hold(self) -> bool:
        """Hand out nothing more than what has begun; whether something is left."""
        left = len(self.waiting) > 0
        self.waiting = Queue(())
        return left

    def stop(self) -> None:
        """End what is in play; wait for a Ray that is starting."""
        for player in {id(one): one for one in (self.workers, self.starting, self.ray) if one is not None}.values():
            player.stop()

    def _players(self) -> list[Players]:
        return [player for player in (self.ray, self.workers) if player is not None]

    def _room(self, player: Players) -> int:
        """How many tasks a player may be given; while there are two of them, as many as CPUs."""
        if len(self._players()) == 1 or player is self.workers:
            return player.room()
        return self.cpus - sum(len(some.pending) for some in self._players())

    def _next(self) -> Task:
        """What is played next, of a size that suits; when little is left, what takes longest goes first."""
        slots = sum(len(player.pending) + max(0, player.room()) for player in self._players())
        if len(self.waiting) <= min(LAST, LAST_PER_SLOT * slots):
            task = self.waiting.longest(lambda task: self.pace.expected(task) or inf)
        else:
            task = self.waiting.popleft()
        task, *others = self.pace.pieces(task, slots, self.rounds - self.given)
        self.waiting.extendleft(reversed(others))
        return task

    def _fits(self, player: Players, task: Task) -> bool:
        """Whether this machine has left what a task wants; Ray alone looks to that itself."""
        if player is not self.workers and len(self._players()) == 1:
            return True
        demands = [other.demand for some in self._players() for other in some.pending]
        cpus, memory = (sum(getattr(one, what) for one in demands) for what in ("cpus", "memory"))
        return not demands or task.demand.fits(self.cpus - cpus, machine_memory() - memory)

    def _call_ray(self) -> None:
        """Start Ray where it pays, and let it take over when it is there."""
        if self.workers is None:
            return
        if self.ray is not None:
            if not self.workers.pending:
                self.workers = None
        elif not self.refused:
            try:
                if self.starting is None and self._left() > RAY_PAYS:
                    self.starting = RayHost(self.problems, self.folder, self.cpus, None)
                elif self.starting is not None and self.waiting and self.starting.ready():
                    self.workers.retire()
                    self.ray = self.starting
                    self.note("played on Ray from here on")
            except CbobenchError as error:
                self.refused = True
                self.note(f"Ray did not start ({error}); the workers play on")

    def _left(self) -> float:
        """Seconds that the waiting tasks will take at least, if their rounds take as long as those given so far."""
        elapsed = time.monotonic() - self.began
        return elapsed * (self.rounds - self.given) / max(1, self.given) if elapsed >= PATIENCE else 0.0

    def _settle(self, task: Task, answer: Answer) -> Receipt | None:
        """A receipt, if the task is over; else it waits again, whole or in two halves."""
        if isinstance(answer, Receipt):
            if answer.seconds is not None:
                self.pace.learn(task, answer.seconds, answer.rounds)
            if answer.printed and not self.printed:
                self.printed = True
                began = f"{task.pair.label} began with {show(answer.printed)}"
                self.note(f"what cells print is shown only with --cpus 0; {began}")
            return answer
        self.given -= task.rounds
        if isinstance(answer, TooLong):
            self.pace.learn(task, answer.seconds, answer.rounds)
            self.waiting.appendleft(task)
            return None
        if isinstance(answer, Lost):
            self.allowed_losses -= 1
            if self.allowed_losses < 0:
                raise CbobenchError("too many tasks lost their node; run again when the cluster is well")
            self.waiting.appendleft(task)
            if self.machines and time.monotonic() - self.told >= BURST:
                self.told = time.monotonic()
                self.note(f"a machine was lost that played {task.name}; its tasks are queued again")
            return None
        if len(task.cells) > 1:
            self.waiting.extendleft(reversed(task.halves()))
            return None
        self.crashes[task.name] = self.crashes.get(task.name, 0) + 1
        if self.crashes[task.name] < (HANGS_OF_A_CELL if answer.hung else CRASHES_OF_A_CELL):
            self.waiting.append(task)  # what killed it, a lack of memory, say, may have passed by then
            return None
        how = answer.how if answer.hung else f"the cell {answer.how} {CRASHES_OF_A_CELL} times"
        return publish_cells(self.folder, task, [failed_row(task.cells[0], task, CellFailure(how), answer.trace)])
