"""Tasks on Ray: this machine's CPUs by default, a cluster with an address.

The driver keeps a bounded number of tasks in flight and holds receipts, never data. Ray's own retries are off,
because a lost node and a crashed worker can only be told apart without them (`crew` says what becomes of each).
"""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from cbobench.errors import CbobenchError, Misuse, show
from cbobench.play.failure import described
from cbobench.play.task import Crashed, Receipt, Task, carry_out_there, crashed
from cbobench.problems.base import Problem
from cbobench.registry import search_path
from cbobench.results.folder import RunFolder
from cbobench.results.store import first
from cbobench.suite.demand import ONE, Demand
from cbobench.sweep.meters import Meters
from cbobench.sweep.probe import ask
from cbobench.sweep.ship import Code, Settled, away
from cbobench.threads import pin_threads

IN_FLIGHT = 256  # whatever a cluster has today: Ray's autoscaler sees demand in tasks that wait
IN_FLIGHT_PER_CPU = 2
MAX_IN_FLIGHT = 10_000
LOOK = 1.0  # seconds between two looks at how large a cluster is
OBJECT_STORE = 256 * 2**20  # problems are small; results do not pass through it


@dataclass(frozen=True)
class Lost:
    """A task whose machine was lost: no fault of its own."""


def started() -> bool:
    """Whether this program has started Ray itself."""
    imported = sys.modules.get("ray")
    return imported is not None and bool(imported.is_initialized())


def _import_ray(address: str | None) -> Any:
    """Ray, told before it reads its settings: usage reporting is off, and tokens are used.

    A local one gets a token of its own: no other user of this machine can send it work, and nothing is written to the
    home folder. A cluster is joined with the token that is here, as a head asks for it that was started with it here.
    (Not where this process has imported Ray before.)
    """
    pin_threads()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # One notice per worker about a default that does not concern tasks on CPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ and (address is None or _has_token()):
        os.environ["RAY_AUTH_MODE"] = "token"
        if address is None:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
    import ray

    return ray


def _has_token() -> bool:
    """Whether there is a token for clusters, in the places where Ray looks."""
    given = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    try:
        return bool(given) or Path("~/.ray/auth_token").expanduser().is_file()
    except RuntimeError:  # no home folder is known
        return False


def private_folder() -> Path:
    """A folder that is for this user alone, and is removed once this process has ended, however it did.

    Ray's own are for everyone to write into. Unix sockets lie in it, whose paths have at most 107 bytes: Ray adds 68.
    """
    wanted = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="cbobench-", dir=wanted if len(wanted) <= 20 else "/tmp")
    # Its standard input ends with this process; Ray's daemons then take a moment to end, and write meanwhile.
    remove = 'cat; for i in $(seq 100); do rm -rf "$0"; sleep 0.1; [ -e "$0" ] || exit 0; done'
    end, _ = os.pipe()  # the other end is never closed
    nowhere = subprocess.DEVNULL
    subprocess.Popen(
        ["sh", "-c", remove, folder], stdin=end, stdout=nowhere, stderr=nowhere, start_new_session=True,
        cwd="/", env={"PATH": os.defpath},
    )  # fmt: skip
    os.close(end)
    return Path(folder)


def pickled(problem: Problem) -> bytes:
    """A problem for another process; by Ray's pickler where Python's does not do (functions within functions)."""
    try:
        return pickle.dumps(problem)
    except Exception:
        return bytes(_import_ray(None).cloudpickle.dumps(problem))


def start_ray(cpus: int | None, address: str | None, code: Code | None = None) -> tuple[Any, bool]:
    """Start Ray on this machine, or join a cluster, or the Ray that this program has started already.

    Returns:
        Ray, and whether it is ours to shut down.

    Raises:
        Misuse: no cluster answers at the address, or the program is on another one.
    """
    if started():
        if address is not None:
            raise Misuse(f"this program has started Ray already; leave address {address!r} out, or call ray.shutdown()")
        return sys.modules["ray"], False
    if address is not None:
        _probe(address)
    ray, folder = _import_ray(address), private_folder()
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        # Workers inherit it, and find what the driver finds: a user's module may lie beside the suite.
        os.environ["PYTHONPATH"] = os.pathsep.join(search_path())
        options |= {"address": "local", "num_cpus": cpus, "include_dashboard": False}
        options |= {"object_store_memory": OBJECT_STORE, "_temp_dir": str(folder / "ray")}
    else:
        options["address"] = address
    try:
        with away(folder, code, options), _said(folder / "said"):
            ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        where = address or "this machine"
        if (
            "Unauthenticated" in (folder / "said").read_text(errors="replace")
            or type(error).__name__ == "AuthenticationError"
        ):
            here = "there is none here" if not _has_token() else "the one here is another"
            if os.environ.get("RAY_AUTH_MODE", "token") != "token":
                here = f"RAY_AUTH_MODE is {show(os.environ['RAY_AUTH_MODE'])} here"
            raise Misuse(
                f"Ray at {where} asks for a token, and {here}; copy ~/.ray/auth_token from its head, or set "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to what they are there"
            ) from error
        raise Misuse(f"cannot start on Ray at {where}: {first(error)}; is the cluster up?") from error
    return ray, True


@contextmanager
def _said(file: Path) -> Iterator[None]:
    """Keep what Ray's libraries write to standard error: why a head refuses is said nowhere else."""
    before = os.dup(2)
    with file.open("wb") as to:
        os.dup2(to.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


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
    """Plays tasks on Ray.

    Args:
        problems: the suite's prepared problems, by title.
        folder: the run.
        cpus: CPUs to use on this machine, None for all; ignored with an address.
        address: of a Ray cluster, or None.
        code: what must play there, None on this machine.
        note: told in one line of nodes that were not asked.

    Raises:
        Misuse: no Ray at the address, or a node of it has other code or another folder.
    """

    looked, size = -LOOK, 1  # when, and how many CPUs there were

    def __init__(
        self,
        problems: Mapping[str, Problem],
        folder: RunFolder,
        cpus: int | None,
        address: str | None,
        code: Code | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.folder, self.here = folder, address is None
        self.flight: dict[Any, Task] = {}
        self.ray, self.ours = start_ray(cpus, address, code)
        if code is not None:
            try:
                ask(self.ray, folder, code, note)
            except BaseException:
                self.stop()
                raise
        self.cpus = None if self.ours else cpus  # our own Ray has no more CPUs than that
        place = str(Path.cwd()) if self.here and self.ours else None
        folders = () if code is None else code.folders
        self.problems = {title: self.ray.put(Settled(problem, folders, place)) for title, problem in problems.items()}
        self.remote = self.ray.remote(carry_out_there).options(max_retries=0, num_cpus=1)
        from ray.util import metrics

        self.meters = Meters(metrics, folder.uri)

    def warm(self, cpus: int) -> None:
        """Let workers import what every task needs, before they are given one."""
        import_pandas = self.ray.remote(_import_pandas).options(num_cpus=1)
        self.ray.get([import_pandas.remote() for _ in range(cpus)])

    @property
    def pending(self) -> Collection[Task]:
        """What Ray holds."""
        return self.flight.values()

    def dead(self) -> list[str]:
        """Which of the processes that Ray cannot do without have died, of those started here.

        Ray itself notices after up to a minute.
        """
        node = getattr(self.ray._private.worker, "_global_node", None)
        found: list[tuple[str, Any]] = getattr(node, "dead_processes", list)()
        return [kind for kind, _ in found if kind in ("raylet", "gcs_server")]

    def places(self) -> set[tuple[str, int]]:
        """Host and port of every node that Ray counts as alive."""
        return {(node["NodeManagerAddress"], node["NodeManagerPort"]) for node in self.ray.nodes() if node["Alive"]}

    def window(self) -> int:
        """How many tasks may be in flight; as many as CPUs were asked for on a Ray that is not ours."""
        if self.cpus:
            return self.cpus
        if time.monotonic() - self.looked > LOOK:  # it is a call to another process
            self.looked, self.size = time.monotonic(), int(self.ray.cluster_resources().get("CPU", 1))
        return min(MAX_IN_FLIGHT, max(IN_FLIGHT, IN_FLIGHT_PER_CPU * self.size))

    def room(self) -> int:
        """How many more tasks may be in flight."""
        return self.window() - len(self.flight)

    def give(self, task: Task) -> None:
        """Hand over a task."""
        remote = self.remote if task.demand == ONE else self._remote_for(task.demand)
        self.flight[remote.remote(self.problems[task.pair.problem.title], task, self.folder)] = task
        self.meters.in_flight(len(self.flight))

    def _remote_for(self, wanted: Demand) -> Any:
        """What plays tasks that want more than a CPU.

        Raises:
            Misuse: no machine has so much, and none is to be started (a cluster of a head without CPUs starts some).
        """
        machines = [node["Resources"] for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        sizes = [(some["CPU"], some.get("memory", inf)) for some in machines]
        if not self.here and sizes and not any(wanted.fits(*size) for size in sizes):
            raise Misuse(f"a task wants {wanted}; no machine of the cluster has so much: lower the suite's resources")
        # Of this machine's memory Ray counts what is free as it starts; the plan has looked at all of it.
        memory = None if self.here else wanted.memory or None
        return self.remote.options(max_retries=0, num_cpus=wanted.cpus, memory=memory)

    def take(self, seconds: float) -> Iterator[tuple[Task, Receipt | Crashed | Lost]]:
        """Tasks that ended, waiting up to some seconds for one.

        Raises:
            CbobenchError: a worker refused its task.
        """
        errors = self.ray.exceptions
        if not self.flight:
            return
        flight = list(self.flight)
        ready, _ = self.ray.wait(flight, num_returns=1, timeout=seconds, fetch_local=False)
        if ready:  # a look at thousands takes milliseconds: all that have ended are taken at once
            ready, _ = self.ray.wait(flight, num_returns=len(flight), timeout=0, fetch_local=False)
        for reference in ready:
            task = self.flight.pop(reference)
            self.meters.in_flight(len(self.flight))
            try:
                answer: Receipt | Crashed = self.ray.get(reference)
                if isinstance(answer, Receipt):
                    self.meters.played(answer)
                yield task, answer
            except (errors.NodeDiedError, errors.ObjectLostError):
                yield task, Lost()
            except (errors.OutOfMemoryError, errors.WorkerCrashedError) as error:
                memory = isinstance(error, errors.OutOfMemoryError)
                yield task, crashed(self.folder, task, "ran out of memory" if memory else "crashed its worker")
            except errors.RayTaskError as error:
                cause = getattr(error, "cause", None) or error
                if isinstance(cause, CbobenchError):
                    raise cause from error
                raise CbobenchError(f"task {task.name} could not be carried out: {_line(cause)}") from error

    def recall(self, task: Task) -> None:
        """End a task, wherever it is."""
        for reference in [reference for reference, its in self.flight.items() if its is task]:
            del self.flight[reference]
            self.ray.cancel(reference, force=True)

    def stop(self) -> None:
        """Leave Ray, which ends the workers of a driver that leaves; cancelling a task as it ends would abort us.

        A Ray that is not ours stays up, and what is in flight there ends by itself.
        """
        if self.ours:
            self.ray.shutdown()
            self.folder.forget([task.name for task in self.pending])
        self.flight.clear()


def _import_pandas() -> None:
    import pandas as pandas  # Arrow does when it makes its first table


def _line(error: BaseException) -> str:
    """What a task of Ray's raised: its text begins with a traceback."""
    text = described(error)[0] if not str(error).strip() else str(error).strip().splitlines()[-1]
    return f"{type(error).__name__}: {text}"
