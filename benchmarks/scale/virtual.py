"""A million cells through the real plan and scheduler, on virtual machines that are lost and
workers that crash.

    make scale [ARGS="--cells 1000000 --cpus 1 100 10000 --seconds 10 --lost 2000 --crashes 1e-4"]

`plan`, `Scheduler` and `RayClient` are those of a sweep; only Ray is a stub that plays nothing, in
virtual time. The driver's own work counts in it as it is measured here, and so does what Ray's
process was measured to take for a task's way there and back, 0.6 ms (`benchmarks.scale.cluster`).
Each size runs in a process of its own, whose largest memory is told. Columns:

- `tasks`, `again`: tasks of the plan, and how many more were played because a machine was lost or a
  worker crashed;
- `plan`: seconds of this CPU; `driver`: the same for handing out, and `MB` the most memory of both;
- `cells/s`: how many cells the driver could hand out per second of its own time, with and without
  Ray's;
- `efficiency`: virtual CPU time of the tasks that were done, of what the machines had from the
  first task to the last.
"""

from __future__ import annotations

import heapq
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.commands import make_parser
from cbobench.play.task import Receipt, Task
from cbobench.problems.base import Problem
from cbobench.results.folder import RunFolder
from cbobench.suite.call import Call
from cbobench.sweep.plan import plan
from cbobench.sweep.ray_executor import Ended, Join, RayClient, RayExecutor, Submit
from cbobench.sweep.scheduler import Scheduler

TASK = 0.6e-3  # seconds of the driver per task
MACHINE = 50  # CPUs
GONE = 60.0  # seconds until a lost machine is replaced
CHUNKS = 50  # tasks per CPU at least: the last ones leave CPUs idle
HEAD = "   CPUs block     tasks  again  plan s  driver s    MB   cells/s  with Ray  efficiency"


class WorkerCrashedError(Exception):
    """As Ray's."""


class _Never(Exception):
    """What this stub does not raise."""


class VirtualFuture(Future[Any]):
    """What becomes of a task, and Ray's reference to it."""

    def future(self) -> VirtualFuture:
        """As Ray's references."""
        return self


class VirtualRay:
    """What `RayClient` needs of Ray, in virtual time.

    Args:
        cpus: of the cluster.
        seconds: per cell, give or take 20 %.
        lost: seconds that a machine lives, on average.
        crashes: share of the cells whose worker dies with them, always.
    """

    class exceptions:
        OutOfMemoryError = RayTaskError = ObjectLostError = NodeDiedError = _Never
        WorkerCrashedError = WorkerCrashedError

    def __init__(self, cpus: int, seconds: float, lost: float, crashes: float) -> None:
        self.cpus, self.seconds, self.crashes = cpus, seconds, crashes
        self.draws = np.random.default_rng(1)
        self.free = [(0.0, cpu) for cpu in range(cpus)]
        self.next_loss = (
            self.draws.exponential(lost, size=-(-cpus // MACHINE))
            if lost
            else np.full(cpus, np.inf)
        )
        self.lost = lost
        self.ends: list[tuple[float, int]] = []
        self.fates: dict[int, tuple[VirtualFuture, Task, str]] = {}
        self.now = self.useful = self.gone = self.last = 0.0
        self.submitted = 0
        self.mark = time.process_time()

    def _driver(self, calls: float = 0.0) -> None:
        """The driver's time passes: what it has computed since, and calls of Ray."""
        mark = time.process_time()
        self.now += mark - self.mark + calls
        self.mark = mark

    def nodes(self) -> list[dict[str, Any]]:
        """All CPUs, as those of one machine."""
        self._driver(TASK)
        return [{"Alive": True, "Resources": {"CPU": float(self.cpus)}}]

    def put(self, problem: Any) -> Any:
        """Keep a problem for the workers."""
        return problem

    def remote(self, *play: Any, **options: Any) -> Any:
        """As Ray's decorator of what is played."""
        begin = SimpleNamespace(remote=self.begin)
        remote = SimpleNamespace(options=lambda **options: begin)
        return remote if play else lambda play: remote

    def begin(self, problem: Any, task: Task) -> VirtualFuture:
        """Give a task to the CPU that is free first."""
        self._driver(TASK)
        future = VirtualFuture()
        self._play(future, task)
        return future

    def _play(self, future: VirtualFuture, task: Task) -> None:
        self.submitted += 1
        ready, cpu = heapq.heappop(self.free)
        start, machine = max(self.now, ready), cpu // MACHINE
        took = self.seconds * len(task.cells) * self.draws.uniform(0.8, 1.2)
        while self.next_loss[machine] + GONE <= start:
            self.gone += GONE * min(MACHINE, self.cpus)
            self.next_loss[machine] += GONE + self.draws.exponential(self.lost)
        loss = float(self.next_loss[machine])
        if loss <= start:
            start = loss + GONE
        end, fate = start + took, "done"
        if any(int(cell.id[:8], 16) < self.crashes * 2**32 for cell in task.cells):
            end, fate = start + took / 2, "crashed"
        if start < loss <= end:
            end, fate = loss, "lost"
        self.useful += took if fate == "done" else 0.0
        self.last = max(self.last, end)
        heapq.heappush(self.free, (end + (GONE if fate == "lost" else 0.0), cpu))
        heapq.heappush(self.ends, (end, self.submitted))
        self.fates[self.submitted] = future, task, fate

    def end_some(self, seconds: float) -> Iterator[VirtualFuture]:
        """Those that have ended; if none has, time passes until one does."""
        self._driver()
        if self.ends:
            self.now = max(self.now, min(self.ends[0][0], self.now + seconds))
        while self.ends and self.ends[0][0] <= self.now:
            future, task, fate = self.fates.pop(heapq.heappop(self.ends)[1])
            if fate == "lost":  # Ray itself plays it again
                self._play(future, task)
                continue
            if fate == "done":
                future.set_result(Receipt(task.name, len(task.cells), 0, task.rounds, ()))
            else:
                future.set_exception(WorkerCrashedError())
            yield future


class VirtualExecutor(RayExecutor):
    """The executor on such a Ray; it stands for the process of Ray, and for the link to it."""

    def __init__(self, ray: VirtualRay, folder: RunFolder, problems: Mapping[str, Problem]) -> None:
        self.folder, self.cpus, self.address, self.slots = folder, None, "virtual", ray.cpus
        self.flight, self.board = {}, {}
        self.child: Any = SimpleNamespace(link=self)
        inbox: Any = SimpleNamespace(put=lambda future: None)  # `poll` looks itself
        content: Any = problems
        self.client = RayClient(ray, Join(content, folder, None, "virtual", None), inbox)
        self.ended: deque[VirtualFuture] = deque()

    def send(self, message: Submit) -> None:
        """What the driver says; the task need not be unpickled where it is known."""
        task = self.flight[message.name]
        self.client.submit(message.name, message.title, message.demand, message.company, task)

    def poll(self, seconds: float) -> bool:
        """Whether a task has ended."""
        if not self.ended:
            self.ended.extend(self.client.ray.end_some(seconds))
        return bool(self.ended)

    def recv(self) -> Ended:
        """A task's name and answer."""
        return self.client.collect(self.ended.popleft())


def measure(cells: int, cpus: int, seconds: float, lost: float, crashes: float) -> str:
    """Plan and play on virtual CPUs; a line of the table."""
    algorithms = [{"ckb-ucb": {"V": float(v)}} for v in range(1, 101)]
    seeds = max(1, cells // len(algorithms))
    suite = {
        "suite": "scale",
        "horizon": 10,
        "seeds": seeds,
        "problems": ["rkhs-1d"],
        "algorithms": algorithms,
    }
    block = max(1, min(100, cells // (CHUNKS * cpus)))
    with tempfile.TemporaryDirectory() as place:
        began = time.process_time()
        todo = plan(Call(suite, out=Path(place) / "run", cpus=cpus, block=block))
        planned = time.process_time() - began
        ray = VirtualRay(cpus, seconds / block, lost, crashes)
        executor = VirtualExecutor(ray, todo.folder, todo.suite.problems)
        scheduler = Scheduler(todo, executor)
        began = time.process_time()
        done = failed = 0
        for receipt in scheduler.play():
            done, failed = done + receipt.ok, failed + receipt.failed
        driver = time.process_time() - began
    if done + failed != todo.cells:
        raise AssertionError(f"{done} cells were done and {failed} failed, of {todo.cells}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tasks, again = len(todo.tasks), ray.submitted - len(todo.tasks)
    with_ray = todo.cells / (driver + TASK * ray.submitted)
    efficiency = ray.useful / (cpus * ray.last - ray.gone)
    return (
        f"{cpus:>7,} {block:>5} {tasks:>9,} {again:>6,} {planned:>7.1f} {driver:>9.1f} "
        f"{memory:>5.0f}"
        f" {todo.cells / driver:>9,.0f} {with_ray:>9,.0f} {100 * efficiency:>9.1f} %"
    )


def main() -> None:
    """Print the table."""
    options = make_parser(__doc__)
    options.add_argument("--cells", type=int, default=1_000_000)
    options.add_argument("--cpus", type=int, nargs="+", default=[1, 100, 10_000])
    options.add_argument("--seconds", type=float, default=10.0, help="of a block")
    options.add_argument(
        "--lost",
        type=float,
        default=2000.0,
        help="seconds that a machine of 50 CPUs lives; 0: ever",
    )
    options.add_argument(
        "--crashes", type=float, default=1e-4, help="share of the cells that crash their worker"
    )
    given = options.parse_args()
    if len(given.cpus) == 1:
        print(
            measure(given.cells, given.cpus[0], given.seconds, given.lost, given.crashes),
            flush=True,
        )
        return
    print(HEAD, flush=True)
    # Of an option that is given twice the last one counts.
    call = [sys.executable, "-m", "benchmarks.scale.virtual", *sys.argv[1:], "--cpus"]
    for cpus in given.cpus:
        subprocess.run([*call, str(cpus)], check=True)


if __name__ == "__main__":
    main()
