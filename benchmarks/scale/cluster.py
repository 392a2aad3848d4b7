"""How busy a cluster is kept, and at what cost to the driver: 1, 2, 4 and 8 Ray nodes with one CPU
each on this host.

    python -m benchmarks.scale.cluster [--cpus 1 8 --seconds 0.5 --out FILE]

Everything is that of a sweep but the play: a task is one cell, which sleeps, so that two cores
suffice for eight nodes. The nodes talk to loopback alone and end with this script, however it ends.
Columns:

- `start`: seconds from the call until every CPU has played a first task;
- `busy`: share of the CPUs' time from then on that they slept; `whole`: the same from the call on;
- `lost`: ms of a CPU per task, beside the sleep; `cpu`: CPU ms of driver and process of Ray per
  task;
- `memory`: MB, the most of both together; `grew`: by how much after the start.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.commands import make_parser, secure_ray
from benchmarks.machine import ROOT, describe_machine, write_record
from cbobench.algorithms.references import Random
from cbobench.params import param
from cbobench.problems.base import Actions
from cbobench.suite.call import Call
from cbobench.sweep.engines import start_engine
from cbobench.sweep.interrupt import interruptible
from cbobench.sweep.plan import plan
from cbobench.sweep.scheduler import Scheduler
from cbobench.watcher import SILENT

MODULE = "benchmarks.scale.cluster"
MEETING_SECONDS = 300.0  # for which the first task of each CPU waits for the others


@dataclass(kw_only=True)
class Sleeping(Random):
    """Sleeps before a round, or waits there until so many do."""

    seconds: float = param(0.0, "of sleep")
    place: str = param("", "folder in which players meet")
    players: int = param(0, "how many meet")

    def ask(self, t: int) -> Actions:
        time.sleep(self.seconds)
        if self.players:
            (Path(self.place) / str(os.getpid())).touch()
            until = time.monotonic() + MEETING_SECONDS
            while len([*Path(self.place).iterdir()]) < self.players and time.monotonic() < until:
                time.sleep(0.01)
        return super().ask(t)


def usage(pid: int) -> tuple[float, float, float]:
    """CPU seconds, memory and most memory so far (MB) of a process."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    now, most = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), now, most


def drive(address: str, cpus: int, seconds: float, tasks: int) -> dict[str, float]:
    """Play tasks that sleep on the cluster at an address, and return what it took."""
    with tempfile.TemporaryDirectory() as folder, interruptible():
        (meeting := Path(folder) / "meeting").mkdir()
        meet = {"label": "meet", "place": str(meeting), "players": cpus}
        sleep = {"label": "sleep", "seconds": seconds}
        algorithms = [{f"{MODULE}:Sleeping": one} for one in (meet, sleep)]
        suite = {"suite": "cluster", "horizon": 1, "seeds": 1, "problems": ["rkhs-1d"]}
        first, todo = (
            plan(
                Call(
                    suite | {"algorithms": algorithms},
                    out=f"{folder}/run",
                    seeds=seeds,
                    only=only,
                    address=address,
                    block=1,
                )
            )
            for seeds, only in ((cpus, "meet"), (tasks, "sleep"))
        )
        began = time.monotonic()
        executor = start_engine(todo, SILENT)
        try:
            looks, pids = [], (os.getpid(), executor.child.pid)  # type: ignore[attr-defined]
            for some in (first, todo):
                scheduler = Scheduler(some, executor)
                if (
                    any(receipt.failed for receipt in scheduler.play())
                    or len([*meeting.iterdir()]) != cpus
                ):
                    raise RuntimeError(f"cells failed, or fewer than {cpus} CPUs played")
                looks.append((time.monotonic(), [usage(pid) for pid in pids]))
        finally:
            executor.close()
    (started, before), (ended, after) = looks
    slept, changes = seconds * tasks / cpus, list(zip(before, after, strict=True))
    return {
        "cpus": cpus,
        "sleep": seconds,
        "tasks": tasks,
        "start": started - began,
        "busy": slept / (ended - started),
        "whole": slept / (ended - began),
        "lost": 1e3 * (ended - started - slept) * cpus / tasks,
        "cpu": 1e3 * sum(b[0] - a[0] for a, b in changes) / tasks,
        "memory": sum(b[2] for _, b in changes),
        "grew": sum(b[2] - a[1] for a, b in changes),
    }


def main() -> None:
    """Print the figures as they come; write them as JSON."""
    options = make_parser(__doc__)
    options.add_argument("--cpus", type=int, nargs="+", default=[1, 2, 4, 8])
    options.add_argument(
        "--seconds", type=float, nargs="+", default=[0.5, 2.0], help="that a task sleeps"
    )
    options.add_argument("--length", type=float, default=30.0, help="seconds that the CPUs sleep")
    options.add_argument("--out", type=Path, help="the JSON file")
    # of the cluster; this process is then a driver
    options.add_argument("--address", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.address:
        (cpus,), (seconds,) = given.cpus, given.seconds
        print(
            json.dumps(
                drive(given.address, cpus, seconds, cpus * max(1, round(given.length / seconds)))
            )
        )
        return
    about, rows = describe_machine(), []
    # The names of sockets lie in the folder, and may not be long; daemons write into it for a
    # moment after their end.
    with (
        interruptible(),
        tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder,
    ):
        os.environ |= {
            "RAY_TMPDIR": folder,
            **secure_ray(),
            "OMP_NUM_THREADS": "1",
            # Ray then takes 127.0.0.1 as the address of this machine
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        }
        from ray.cluster_utils import Cluster

        for cpus in given.cpus:
            cluster: Any = Cluster()
            try:
                for _ in range(cpus):
                    cluster.add_node(
                        num_cpus=1, include_dashboard=False, object_store_memory=80 * 2**20
                    )
                for seconds in given.seconds:
                    words = ["--address", cluster.address, "--cpus", cpus, "--seconds", seconds]
                    words += ["--length", given.length]
                    driver = [sys.executable, "-m", MODULE, *map(str, words)]
                    rows.append(
                        json.loads(
                            subprocess.run(driver, check=True, stdout=subprocess.PIPE).stdout
                        )
                    )
                    print(
                        "".join(f"{name:>8}" for name in rows[-1]) + "\n" if len(rows) == 1 else "",
                        end="",
                    )
                    print("".join(f"{value:8.4g}" for value in rows[-1].values()), flush=True)
            finally:
                cluster.shutdown()
    out = given.out or ROOT / "build" / "bench" / f"cluster-{about['commit']}.json"
    write_record(out, about | {"rows": rows})
    print(f"written: {out}")


if __name__ == "__main__":
    main()
