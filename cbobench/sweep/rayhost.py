"""Ray in a process of its own, so that whatever becomes of it the driver lives to say so.

Ray takes a program's signal handlers, prints what it likes, and ends the program when its raylet has died. Here it has
no terminal, no signal reaches it, and the driver sees a socket that closes.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty
from typing import Any

from cbobench.errors import CbobenchError
from cbobench.play.failure import described
from cbobench.play.task import Crashed, Receipt, Task
from cbobench.problems.base import Problem
from cbobench.results.drivers import beat
from cbobench.results.folder import RunFolder
from cbobench.sweep.probe import SHOWN
from cbobench.sweep.raysweep import Lost, RaySweep, pickled
from cbobench.sweep.ship import Code
from cbobench.sweep.spawn import ignore_signals, inbox, silence, spawn
from cbobench.words import counted

PATIENCE = 0.02  # seconds for which the process listens to Ray alone
LOOK = 2.0  # seconds between two looks at how large a cluster is, and whether it is well
LEAVING = 20.0  # seconds in which Ray shuts down
SILENT = 5.0  # seconds for which a node may take to answer; it is called twice
CALLS = 32  # at once


class Ended(CbobenchError):
    """What plays has ended, and not by our doing; what is published stays."""


class RayHost:
    """Plays tasks on a Ray that is started, or joined, by another process.

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        cpus: CPUs to use on this machine, None for all; ignored with an address.
        address: of a Ray cluster, or None.
        code: what must play there, None on this machine.
        note: told in one line of nodes that were not asked.
    """

    def __init__(
        self,
        problems: Mapping[str, Problem],
        folder: RunFolder,
        cpus: int | None,
        address: str | None,
        code: Code | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.folder, self.address, self.note = folder, address, note
        self.flight: dict[str, Task] = {}
        self.window: int | None = None
        # A Ray that the program has imported has read its settings.
        self.child = spawn(f"{__name__}:serve", serve, fresh="ray" in sys.modules)
        self._send(({title: pickled(problem) for title, problem in problems.items()}, folder, cpus, address, code))

    @property
    def pending(self) -> Collection[Task]:
        """What Ray holds."""
        return self.flight.values()

    def ready(self, seconds: float = 0.0) -> bool:
        """Whether Ray has started, waiting up to some seconds for that.

        Raises:
            CbobenchError: why it did not.
        """
        while self.window is None and self.child.link.poll(seconds):
            self._heard(self._receive())
        return self.window is not None

    def wait(self) -> None:
        """Until Ray has started, with signs of life: on a cluster that may take a minute; raises as `ready` does."""
        while not self.ready(1.0):
            beat(self.folder)

    def room(self) -> int:
        """How many more tasks may be in flight."""
        return 0 if self.window is None else self.window - len(self.flight)

    def give(self, task: Task) -> None:
        """Hand over a task."""
        self.flight[task.name] = task
        self._send(task)

    def take(self, seconds: float) -> Iterator[tuple[Task, Receipt | Crashed | Lost]]:
        """Tasks that ended, waiting up to some seconds for one.

        Raises:
            CbobenchError: a worker refused its task. Ended: Ray has died.
        """
        while self.child.link.poll(seconds):
            message = self._receive()
            if isinstance(message, tuple):
                name, answer = message
                task = self.flight.pop(name, None)
                if task is not None:
                    yield task, answer
            else:
                self._heard(message)
            seconds = 0.0

    def recall(self, task: Task) -> None:
        """End a task, wherever it is."""
        if self.flight.pop(task.name, None) is not None:
            self._send(task.name)

    def stop(self) -> None:
        """End Ray, once it has started, and what it plays; a cluster that was joined is left."""
        with suppress(Ended):
            self._send(None)
            deadline = time.monotonic() + LEAVING
            while (left := deadline - time.monotonic()) > 0 and self.child.link.poll(left):
                self._receive()
        self.child.end()
        if self.address is None:
            self.folder.forget([task.name for task in self.pending])
        self.flight.clear()

    def _heard(self, message: Any) -> None:
        if isinstance(message, CbobenchError):
            raise message
        if isinstance(message, str):
            self.note(message)
        else:
            self.window = message

    def _send(self, message: Any) -> None:
        try:
            self.child.link.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended() from None

    def _receive(self) -> Any:
        try:
            return self.child.link.recv()
        except (EOFError, ConnectionResetError):
            raise self._ended() from None

    def _ended(self) -> Ended:
        where = "on this machine" if self.address is None else f"at {self.address}"
        return Ended(f"Ray {where} has ended (its raylet or its GCS died)")


def serve(link: Any) -> None:
    """Start Ray, and pass on what the driver and Ray have for each other until one of them goes."""
    ignore_signals()
    silence()
    messages, lock = inbox(link), threading.Lock()

    def send(message: Any) -> None:
        with lock:
            link.send(message)

    sent, folder, cpus, address, code = messages.get()
    try:
        sweep = RaySweep(_unpickled(sent), folder, cpus, address, code, send)
        ignore_signals()  # once more: Ray takes SIGTERM for itself
        if address is None and cpus is not None:
            sweep.warm(cpus)
        send(sweep.window())
        nodes = None if address is None else Nodes(sweep.places(), send)
    except BaseException as error:
        send(error if isinstance(error, CbobenchError) else CbobenchError(described(error)[0]))
        os._exit(1)
    try:
        _pass_on(sweep, send, messages, nodes)
    except BaseException as error:
        send(error if isinstance(error, CbobenchError) else Ended(f"Ray has ended ({described(error)[0]})"))
    finally:
        os._exit(0)


def _unpickled(problems: Mapping[str, bytes]) -> dict[str, Problem]:
    return {title: pickle.loads(problem) for title, problem in problems.items()}  # noqa: S301 - from our own driver


class Nodes:
    """Says when nodes of a cluster fall silent, and when none is any more: Ray says nothing, and waits for long.

    Looks from a thread of its own, as calls to Ray hang where its head is what cannot be reached. A node that never
    answered us, from behind a firewall, say, is not missed.

    Args:
        places: host and port of the nodes, to be kept up to date.
        tell: told in one line.
    """

    def __init__(self, places: set[tuple[str, int]], tell: Callable[[str], None]) -> None:
        self.places, self.tell = places, tell
        self.heard: set[tuple[str, int]] = set()
        self.missed: set[tuple[str, int]] = set()
        self.said = False
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(LOOK)

    def look(self) -> None:
        """Call every node; one that does not answer twice in a row is silent."""
        places = self.places
        with ThreadPoolExecutor(CALLS) as pool:
            there = {place for place, well in zip(places, pool.map(answers, places), strict=True) if well}
        self.heard |= there
        before, self.missed = self.missed, (self.heard & places) - there
        silent = before & self.missed
        if silent and not self.said:
            hosts = sorted({host for host, _ in silent})
            named = ", ".join(hosts[:SHOWN]) + (", …" if len(hosts) > SHOWN else "")
            count = f"{len(silent)} of {counted(len(places), 'node')}"
            self.tell(f"silent: {count} ({named}); what plays there is waited for")
        elif self.said and not self.missed:
            self.tell("no node is silent any more")
        self.said = bool(silent or (self.said and self.missed))


def answers(place: tuple[str, int]) -> bool:
    """Whether a node can be reached."""
    try:
        socket.create_connection(place, timeout=SILENT).close()
    except OSError:
        return False
    return True


def _pass_on(sweep: RaySweep, send: Callable[[Any], None], messages: Any, nodes: Nodes | None) -> None:
    looked, known = time.monotonic(), sweep.window()
    tasks: dict[str, Task] = {}
    while True:
        with suppress(Empty):
            message = messages.get(timeout=None if not sweep.flight else 0.0001)
            while True:
                if message is None:
                    sweep.stop()
                    return
                if isinstance(message, Task):
                    tasks[message.name] = message
                    sweep.give(message)
                elif message in tasks:
                    sweep.recall(tasks.pop(message))
                message = messages.get_nowait()
        for task, answer in sweep.take(PATIENCE):
            tasks.pop(task.name, None)
            send((task.name, answer))
        if time.monotonic() - looked > LOOK:
            if dead := sweep.dead():
                raise Ended(f"Ray has ended (its {' and '.join(dead)} died)")
            looked, now = time.monotonic(), sweep.window()
            if now != known:
                send(now)
                known = now
            if nodes is not None:
                nodes.places = sweep.places()
