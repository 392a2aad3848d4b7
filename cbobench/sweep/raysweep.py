"""Tasks on Ray: this machine's CPUs by default, a cluster with an address.

The driver keeps a bounded number of tasks in flight and holds receipts, never data. Ray's own retries are off,
because a lost node and a crashed worker can only be told apart without them: a task that loses its node is queued
again; one that crashes its worker (or runs out of memory) is cut in two until the cell at fault is alone, and that
cell fails after three tries.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cbobench.errors import CbobenchError, CellFailure, Misuse
from cbobench.play.task import Receipt, Task, carry_out_there, failed_row, publish_cells
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.threads import pin_threads

IN_FLIGHT = 256  # whatever a cluster has today: Ray's autoscaler sees demand in tasks that wait
IN_FLIGHT_PER_CPU = 2
MAX_IN_FLIGHT = 10_000
CRASHES_OF_A_CELL = 3
LOST_NODES_PER_TASK = 20
OBJECT_STORE = 256 * 2**20  # problems are small; results do not pass through it


def start_ray(cpus: int | None, address: str | None) -> tuple[Any, bool]:
    """Start Ray on this machine, or join a cluster, or the Ray that this program has started already.

    Usage reporting is off. A local Ray gets a token of its own, so that no other user of this machine can send it
    work, and nothing is written to the home folder. (Not where the program has imported Ray before: Ray reads its
    settings when it is imported.)

    Returns:
        Ray, and whether it is ours to shut down.

    Raises:
        Misuse: no cluster answers at the address, or the program is on another one.
    """
    imported = sys.modules.get("ray")
    if imported is not None and imported.is_initialized():
        if address is not None:
            raise Misuse(f"this program has started Ray already; leave address {address!r} out, or call ray.shutdown()")
        return imported, False
    pin_threads()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # One notice per worker about a default that does not concern tasks on CPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address is None and imported is None and "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
    if address is not None:
        _probe(address)
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options |= {"address": "local", "num_cpus": cpus, "include_dashboard": False}
        options |= {"object_store_memory": OBJECT_STORE}
    else:
        options["address"] = address
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise Misuse(f"cannot start on Ray at {address or 'this machine'}: {reason}; is the cluster up?") from error
    return ray, True


def _probe(address: str) -> None:
    """Refuse an address that nothing listens at: Ray would end this process after a minute of trying."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return  # "auto" and "local" are Ray's own words
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise Misuse(f"no Ray cluster answers at {address} ({error}); start one, or leave --address out") from error


class RaySweep:
    """Plays tasks on Ray and yields their receipts as they come.

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        cpus: CPUs to use on this machine, None for all; ignored with an address.
        address: of a Ray cluster, or None.
    """

    def __init__(
        self, problems: Mapping[str, Problem], folder: RunFolder, cpus: int | None, address: str | None
    ) -> None:
        self.folder = folder
        self.ray, self.ours = start_ray(cpus, address)
        self.cpus = None if self.ours else cpus  # our own Ray has no more CPUs than that
        self.problems = {title: self.ray.put(problem) for title, problem in problems.items()}
        self.remote = self.ray.remote(carry_out_there).options(max_retries=0, num_cpus=1)
        self.pending: dict[Any, Task] = {}
        self.crashes: dict[str, int] = {}
        self.lost_nodes = 0

    def play(self, tasks: Sequence[Task]) -> Iterator[Receipt]:
        """Receipts of all tasks, as they come; `stop` ends what is in flight."""
        waiting = deque(tasks)
        allowed_losses = LOST_NODES_PER_TASK * max(1, len(tasks))
        while waiting or self.pending:
            while waiting and len(self.pending) < self._window():
                self._submit(waiting.popleft())
            ready, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=5, fetch_local=False)
            for reference in ready:
                task = self.pending.pop(reference)
                receipt = self._receive(reference, task, waiting)
                if self.lost_nodes > allowed_losses:
                    raise CbobenchError(f"{self.lost_nodes} tasks lost their node; run again when the cluster is well")
                if receipt is not None:
                    yield receipt

    def _window(self) -> int:
        """How many tasks may be in flight; as many as CPUs were asked for on a Ray that is not ours."""
        now = int(self.ray.cluster_resources().get("CPU", 1))
        return self.cpus or min(MAX_IN_FLIGHT, max(IN_FLIGHT, IN_FLIGHT_PER_CPU * now))

    def _submit(self, task: Task) -> None:
        self.pending[self.remote.remote(self.problems[task.pair.problem.title], task, self.folder)] = task

    def _receive(self, reference: Any, task: Task, waiting: deque[Task]) -> Receipt | None:
        errors = self.ray.exceptions
        try:
            receipt: Receipt = self.ray.get(reference)
            return receipt
        except errors.NodeDiedError:
            self.lost_nodes += 1
            waiting.appendleft(task)
            return None
        except (errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
            return self._crashed(task, error, waiting)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, CbobenchError):
                raise cause from error
            raise CbobenchError(f"task {task.name} could not be carried out: {_line(cause)}") from error

    def _crashed(self, task: Task, error: BaseException, waiting: deque[Task]) -> Receipt | None:
        if len(task.cells) > 1:
            waiting.extendleft(reversed(task.halves()))
            return None
        name = task.name
        self.crashes[name] = self.crashes.get(name, 0) + 1
        if self.crashes[name] < CRASHES_OF_A_CELL:
            waiting.appendleft(task)
            return None
        kind = "ran out of memory" if "OutOfMemory" in type(error).__name__ else "crashed its worker"
        failure = CellFailure(f"the cell {kind} {CRASHES_OF_A_CELL} times")
        return publish_cells(self.folder, task, [failed_row(task.cells[0], task, failure)])

    def stop(self) -> None:
        """Leave Ray, which ends the workers of a driver that leaves; cancelling a task as it ends would abort us.

        A Ray that is not ours stays up, and what is in flight there ends by itself.
        """
        if self.ours:
            self.ray.shutdown()
            self.folder.forget([task.name for task in self.pending.values()])
        self.pending.clear()


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[-1] if text else ''}"
