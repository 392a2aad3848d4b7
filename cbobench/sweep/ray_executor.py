"""The executor on Ray: all CPUs of this machine, or a cluster with an address.

Ray runs in a process of its own (`serve_ray`). It ends the program that joined it when its raylet
dies, takes the program's signal handlers, and prints what it likes; there it has no terminal, no
signal reaches it, and the driver (`RayExecutor`) sees a socket that closes.

A task passes through that process pickled, and what all tasks share is sent once. Nothing is
polled: Ray's futures put themselves into the queue that the driver's messages come in, so that a
process that waits costs no CPU time.

The number of tasks in flight is bounded, and the driver holds receipts, never data. A task whose
machine or worker is lost Ray plays once more by itself; what then follows the scheduler decides.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from cbobench.errors import CbobenchError, Misuse
from cbobench.play.isolation import Company
from cbobench.play.task import Receipt, Task, WorkerCrashed, describe_error, play_task_on_worker
from cbobench.play.watchdog import Heartbeat, ReturnedTask
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.suite.settings import Demand
from cbobench.sweep.children import become_worker, spawn
from cbobench.sweep.executors import (
    Answer,
    ExecutorDied,
    Refused,
    Report,
    pickle_problem,
    unpickle_problem,
)
from cbobench.sweep.interrupt import disregard_signals
from cbobench.sweep.programs import adopt_orphans, close_sockets_in_forks, end_programs
from cbobench.sweep.ray_start import Code, prepare_worker, start_ray

IN_FLIGHT = 256  # at least, on a cluster: Ray's autoscaler sees demand in tasks that wait
IN_FLIGHT_PER_CPU = 2
MAX_IN_FLIGHT = 10_000
RETRIES = 1  # by Ray itself, of a task whose machine or worker was lost
# seconds between two looks at how large a cluster is, and whether its head is alive
CHECK_SECONDS = 2.0
SHUTDOWN_SECONDS = 3.0  # seconds in which Ray shuts down
# where rounds are written, and how long the head is waited for
BOARD = b"cbobench"
BOARD_SECONDS = 1.0
COMPANY = "CBOBENCH_COMPANY"  # a variable that nobody reads: it sets workers apart


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


class RayExecutor:
    """Runs tasks on a Ray that another process starts or joins; ready when it is made.

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        cpus: CPUs to use on this machine, or of a Ray that the program has started; None for all.
        address: of a Ray cluster, or None.
        code: what must run there, None on this machine.

    Raises:
        CbobenchError: why Ray did not start, or cannot be joined.
    """

    def __init__(
        self,
        problems: Mapping[str, Problem],
        folder: RunFolder,
        cpus: int | None,
        address: str | None,
        code: Code | None = None,
    ) -> None:
        self.folder = folder
        self.cpus = cpus
        self.address = address
        self.flight: dict[str, Task] = {}
        self.board: Mapping[str, Report] = {}
        self.slots = 0
        # A Ray that the program has imported has read its settings.
        self.child = spawn(f"{__name__}:serve_ray", serve_ray, fresh="ray" in sys.modules)
        try:
            pickled = {title: pickle_problem(problem) for title, problem in problems.items()}
            self._send(Join(problems=pickled, folder=folder, cpus=cpus, address=address, code=code))
            while not self.slots:  # on a cluster that may take a minute
                if self.child.link.poll(1.0):
                    self._handle(self._receive())
        except BaseException:
            self.close()
            raise

    @property
    def pending(self) -> Collection[Task]:
        return self.flight.values()

    @property
    def reports(self) -> dict[str, Report]:
        return {name: report for name, report in self.board.items() if name in self.flight}

    def room(self) -> int:
        return in_flight(self.slots, self.cpus, self.address) - len(self.flight)

    def accepts(self, task: Task) -> bool:
        """Ray itself finds a node for it."""
        return True

    def submit(self, task: Task) -> None:
        self.flight[task.name] = task
        title = task.pair.problem.title
        self._send(
            Submit(
                name=task.name,
                title=title,
                demand=task.demand,
                company=task.company,
                task=pickle.dumps(task),
            )
        )

    def collect(self, seconds: float) -> Iterator[tuple[Task, Answer]]:
        while self.child.link.poll(seconds):
            message = self._receive()
            if not isinstance(message, Ended):
                self._handle(message)
            elif (task := self.flight.pop(message.name, None)) is not None:
                if isinstance(message.answer, WorkerCrashed):
                    self.folder.remove_temporary([task.name])
                yield task, message.answer
            seconds = 0.0

    def cancel(self, task: Task) -> None:
        if self.flight.pop(task.name, None) is not None:
            self._send(Cancel(task.name))

    def close(self) -> None:
        """End Ray, once it has started, and what it runs; a cluster that was joined is left."""
        with suppress(ExecutorDied):
            self._send(Leave())
            deadline = time.monotonic() + SHUTDOWN_SECONDS
            while (left := deadline - time.monotonic()) > 0 and self.child.link.poll(left):
                self._receive()
        self.child.end()
        if self.address is None:
            self.folder.remove_temporary([task.name for task in self.pending])
        self.flight.clear()

    def _handle(self, message: Refused | Board | Slots) -> None:
        match message:
            case Refused(error):
                raise error
            case Board(reports):
                self.board = reports
            case Slots(cpus):
                self.slots = cpus

    def _send(self, message: Join | Submit | Cancel | Leave) -> None:
        try:
            self.child.link.send(message)
        except OSError:
            raise self._died() from None

    def _receive(self) -> Any:
        try:
            return self.child.link.recv()
        except (EOFError, OSError):
            raise self._died() from None

    def _died(self) -> ExecutorDied:
        location = "on this machine" if self.address is None else f"at {self.address}"
        return ExecutorDied(f"Ray {location} has ended (its raylet or its GCS died)")


def in_flight(slots: int, cpus: int | None, address: str | None) -> int:
    """How many tasks may be in flight, on a Ray that has CPUs for `slots` of them now."""
    if address is None:
        return IN_FLIGHT_PER_CPU * slots
    return cpus or min(MAX_IN_FLIGHT, max(IN_FLIGHT, IN_FLIGHT_PER_CPU * slots))


def serve_ray(link: Any) -> None:
    """The life of the process of Ray: pass on what the driver and Ray have for each other until one
    of them goes.
    """
    inbox = become_worker(link)
    join: Join = inbox.get()
    try:
        ray = start_ray(join.cpus, join.address, join.code)
        adopt_orphans()
        client = RayClient(ray, join, inbox)
        disregard_signals()  # once more: Ray takes SIGTERM for itself
        cpus = client.cpus()
        link.send(Slots(cpus))
    except BaseException as error:
        link.send(
            Refused(
                error
                if isinstance(error, CbobenchError)
                else CbobenchError(describe_error(error)[0])
            )
        )
        os._exit(1)
    try:
        _pass_on(client, link, inbox, cpus)
    except CbobenchError as error:
        link.send(Refused(error))
    except BaseException as error:
        link.send(Refused(ExecutorDied(f"Ray has ended ({describe_error(error)[0]})")))
    finally:
        os._exit(0)


def _pass_on(client: RayClient, link: Any, inbox: SimpleQueue[Any], cpus: int) -> None:
    checked_at = time.monotonic()
    while True:
        with suppress(Empty):
            match inbox.get(timeout=CHECK_SECONDS):
                case Leave():
                    client.close()
                    return
                case Submit() as task:
                    client.submit(*task)
                case Cancel(name):
                    client.cancel(name)
                case Future() as future if future in client.flight:
                    link.send(client.collect(future))
        if time.monotonic() - checked_at > CHECK_SECONDS:
            if dead := client.dead():
                raise ExecutorDied(f"Ray has ended (its {' and '.join(dead)} died)")
            link.send(Board(client.rounds.read()))
            checked_at = time.monotonic()
            before = cpus
            cpus = client.cpus()
            if cpus != before:
                link.send(Slots(cpus))


class RayClient:
    """Submits tasks to Ray and collects them, in the process of Ray.

    Args:
        ray: started, or joined.
        join: the driver's first message.
        inbox: takes, in any thread, the future of each task that has ended, for `collect`.

    Attributes:
        is_local: whether Ray runs on this machine alone.
        flight: names of tasks by their futures.
    """

    def __init__(self, ray: Any, join: Join, inbox: SimpleQueue[Any]) -> None:
        self.ray = ray
        self.folder = join.folder
        self.is_local = join.address is None
        self.inbox = inbox
        self.flight: dict[Future[Any], str] = {}
        folder = join.folder
        place = str(Path.cwd()) if self.is_local else None
        folders = () if join.code is None else join.code.folders
        self.rounds = rounds = RoundBoard()

        def play(problem: bytes, task: bytes) -> Receipt | ReturnedTask:
            return play_on_ray(problem, task, folders, place, folder, rounds)

        self.problems = {title: ray.put(problem) for title, problem in join.problems.items()}
        self.remotes: dict[tuple[Demand, Company], Any] = {}
        self.remote = ray.remote(play)
        self.remote_once = ray.remote(max_calls=1)(play)

    def dead(self) -> list[str]:
        """Which of the processes that Ray cannot do without have died, of those started here.

        Ray itself notices after up to a minute.
        """
        node = getattr(self.ray._private.worker, "_global_node", None)
        processes: list[tuple[str, Any]] = getattr(node, "dead_processes", list)()
        return [kind for kind, _ in processes if kind in ("raylet", "gcs_server")]

    def cpus(self) -> int:
        """How many CPUs there are now, at least 1."""
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        return max(1, int(sum(node["Resources"].get("CPU", 0) for node in alive)))

    def submit(self, name: str, problem: str, demand: Demand, company: Company, task: Any) -> None:
        """Begin a task of that name, which plays the problem of that title; it goes to the worker
        as it is given.
        """
        key = demand, company
        if key not in self.remotes:
            self.remotes[key] = self._remote_for(demand, company)
        future = self.remotes[key].remote(self.problems[problem], task).future()
        self.flight[future] = name
        future.add_done_callback(self.inbox.put)

    def _remote_for(self, demand: Demand, company: Company) -> Any:
        """Runs tasks of a demand, in workers that play nobody else's: a user's code in one that
        ends with its task; Ray keeps workers of other environments apart.

        Raises:
            Misuse: no machine has so much, and none is to be started (a cluster of a head without
                CPUs starts some).
        """
        machines = [
            node["Resources"]
            for node in self.ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU")
        ]
        sizes = [(resources["CPU"], resources.get("memory", inf)) for resources in machines]
        if not self.is_local and sizes and not any(demand.fits(*size) for size in sizes):
            raise Misuse(
                f"a task wants {demand}; no machine of the cluster has so much: lower the "
                "suite's resources"
            )
        # Of this machine's memory Ray counts what is free as it starts; the plan has looked at all
        # of it.
        options: dict[str, Any] = {"max_retries": RETRIES, "num_cpus": demand.cpus}
        options["memory"] = None if self.is_local else demand.memory or None
        if company.libraries:
            options["runtime_env"] = {"env_vars": {COMPANY: ",".join(sorted(company.libraries))}}
        return (self.remote_once if company.users else self.remote).options(**options)

    def collect(self, future: Future[Any]) -> Ended:
        """Return the name of a task that has ended, and its answer, or in words how it lost its
        worker.
        """
        errors = self.ray.exceptions
        name = self.flight.pop(future)
        try:
            return Ended(name, future.result())
        except (errors.NodeDiedError, errors.ObjectLostError):
            return Ended(name, WorkerCrashed("lost its machine"))
        except errors.OutOfMemoryError:
            return Ended(name, WorkerCrashed("ran out of memory"))
        except errors.WorkerCrashedError:
            return Ended(name, WorkerCrashed("crashed its worker"))
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, CbobenchError):
                raise cause from error
            lines = str(cause).strip().splitlines()  # after a traceback
            text = f"{type(cause).__name__}: {lines[-1] if lines else describe_error(cause)[0]}"
            raise CbobenchError(f"task {name} could not be carried out: {text}") from error

    def cancel(self, name: str) -> None:
        for future in [future for future, task_name in self.flight.items() if task_name == name]:
            del self.flight[future]
            self.rounds.clear(name)  # its next worker has said nothing yet
            self.ray.cancel(future.object_ref, force=True)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Leave Ray, which ends the workers of a driver that leaves; cancelling a task as it ends
        would abort us.
        """
        self.rounds.clear()
        self.ray.shutdown()
        # Ray ends its workers, and not what they have started in sessions of their own
        if self.is_local:
            end_programs()
        self.folder.remove_temporary([*self.flight.values()])


def play_on_ray(
    problem: bytes,
    task: bytes,
    folders: Collection[str],
    place: str | None,
    folder: RunFolder,
    rounds: RoundBoard,
) -> Receipt | ReturnedTask:
    """Play a task on a worker of Ray. The problem comes pickled, because its class may lie in one
    of the folders.
    """
    close_sockets_in_forks()
    prepare_worker(folders, place)
    sent_task: Task = pickle.loads(task)  # noqa: S301 - from our own driver
    sent_problem = unpickle_problem(problem)
    try:
        with Heartbeat(partial(rounds.write, sent_task.name)) as beat:
            return play_task_on_worker(sent_problem, sent_task, folder, beat)
    finally:
        rounds.clear(sent_task.name)
        if sent_task.company.users:
            end_programs()


class RoundBoard:
    """How far tasks are, by name, in the store of Ray's head; what cannot be written or read is
    left out.
    """

    def __init__(self) -> None:
        self.prefix = f"{os.urandom(8).hex()}/"

    def _key(self, name: str) -> bytes:
        return f"{self.prefix}{name}".encode()

    def write(self, name: str, rounds: int) -> None:
        """Say how far a task is, and that it runs now."""
        report = json.dumps([rounds, time.time_ns()]).encode()
        with suppress(Exception):
            _store().internal_kv_put(self._key(name), report, True, BOARD, timeout=BOARD_SECONDS)

    def clear(self, name: str = "") -> None:
        """Forget a task, or all."""
        with suppress(Exception):
            _store().internal_kv_del(self._key(name), not name, BOARD, timeout=BOARD_SECONDS)

    def read(self) -> dict[str, Report]:
        """How far the tasks are that are played; empty if the head does not answer."""
        with suppress(Exception):
            keys = _store().internal_kv_keys(self.prefix.encode(), BOARD, timeout=BOARD_SECONDS)
            values = _store().internal_kv_multi_get(keys, BOARD, timeout=BOARD_SECONDS)
            reports = {}
            for key, text in values.items():
                rounds, stamp = json.loads(text)
                name = key.decode().removeprefix(self.prefix)
                reports[name] = Report(int(rounds), int(stamp))
            return reports
        return {}


def _store() -> Any:
    from ray.experimental.internal_kv import internal_kv_get_gcs_client

    return internal_kv_get_gcs_client()  # type: ignore[no-untyped-call]
