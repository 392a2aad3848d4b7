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
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from cbobench.errors import CbobenchError, CellFailure, Misuse
from cbobench.problems.base import Problem
from cbobench.sweep.grid import split
from cbobench.sweep.store import RunFolder
from cbobench.sweep.task import Order, Receipt, carry_out, failed_row, write_cells
from cbobench.sweep.threads import pin_threads

IN_FLIGHT_PER_CPU = 2
MAX_IN_FLIGHT = 1000
CRASHES_OF_A_CELL = 3
LOST_NODES_PER_TASK = 20
OBJECT_STORE = 256 * 2**20  # problems are small; results do not pass through it


def start_ray(cpus: int | None, address: str | None) -> Any:
    """Start Ray on this machine, or join a cluster.

    Usage reporting is off. A local Ray gets a token of its own, so that no other user of this machine can send it
    work, and nothing is written to the home folder.

    Raises:
        Misuse: no cluster answers at the address.
    """
    pin_threads()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # One notice per worker about a default that does not concern tasks on CPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address is None and "RAY_AUTH_MODE" not in os.environ:
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
    return ray


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
    """Plays orders on Ray and yields their receipts as they come.

    Args:
        problems: the suite's problems, by index.
        folder: the run.
        cpus: CPUs to use on this machine, None for all; ignored with an address.
        address: of a Ray cluster, or None.
    """

    def __init__(self, problems: Sequence[Problem], folder: RunFolder, cpus: int | None, address: str | None) -> None:
        self.folder = folder
        self.ray = start_ray(cpus, address)
        self.problems = [self.ray.put(problem) for problem in problems]
        self.remote = self.ray.remote(carry_out).options(max_retries=0, num_cpus=1)
        self.pending: dict[Any, Order] = {}
        self.crashes: dict[str, int] = {}
        self.lost_nodes = 0

    def play(self, orders: Sequence[Order]) -> Iterator[Receipt]:
        """Receipts of all orders, as they come; `stop` ends what is in flight."""
        waiting = deque(orders)
        allowed_losses = LOST_NODES_PER_TASK * max(1, len(orders))
        while waiting or self.pending:
            window = min(MAX_IN_FLIGHT, max(2, IN_FLIGHT_PER_CPU * int(self.ray.cluster_resources().get("CPU", 1))))
            while waiting and len(self.pending) < window:
                self._submit(waiting.popleft())
            ready, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=5, fetch_local=False)
            for reference in ready:
                order = self.pending.pop(reference)
                receipt = self._receive(reference, order, waiting)
                if self.lost_nodes > allowed_losses:
                    raise CbobenchError(f"{self.lost_nodes} tasks lost their node; run again when the cluster is well")
                if receipt is not None:
                    yield receipt

    def _submit(self, order: Order) -> None:
        self.pending[self.remote.remote(self.problems[order.task.problem], order, self.folder)] = order

    def _receive(self, reference: Any, order: Order, waiting: deque[Order]) -> Receipt | None:
        errors = self.ray.exceptions
        try:
            receipt: Receipt = self.ray.get(reference)
            return receipt
        except errors.NodeDiedError:
            self.lost_nodes += 1
            waiting.appendleft(order)
            return None
        except (errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
            return self._crashed(order, error, waiting)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None) or error
            raise CbobenchError(f"task {order.task.name} could not be carried out: {_line(cause)}") from error

    def _crashed(self, order: Order, error: BaseException, waiting: deque[Order]) -> Receipt | None:
        if len(order.task.cells) > 1:
            waiting.extendleft(
                reversed([Order(t, order.problem_name, order.keep, order.source) for t in split(order.task)])
            )
            return None
        name = order.task.name
        self.crashes[name] = self.crashes.get(name, 0) + 1
        if self.crashes[name] < CRASHES_OF_A_CELL:
            waiting.appendleft(order)
            return None
        kind = "ran out of memory" if "OutOfMemory" in type(error).__name__ else "crashed its worker"
        failure = CellFailure(f"the cell {kind} {CRASHES_OF_A_CELL} times")
        row = failed_row(order.task.cells[0], order, failure)
        write_cells(self.folder, order.task, [row])
        text = f"{row['problem']} / {row['algorithm']} seed {row['seed']}: {failure}"
        return Receipt(name, 0, 1, order.task.rounds, (text,))

    def stop(self) -> None:
        """Leave Ray, which ends the workers of a driver that leaves; cancelling a task as it ends would abort us."""
        self.ray.shutdown()
        self.folder.forget([order.task.name for order in self.pending.values()])
        self.pending.clear()


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[-1] if text else ''}"
