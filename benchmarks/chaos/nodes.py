"""A Ray cluster of three nodes on this machine, in a process of its own that loses and adds nodes
when told.

    python -m benchmarks.chaos.nodes    # prints its address; reads "lose N", "add" and "quit" from standard input

Ray says much when nodes are lost; this keeps it out of the sweep's own messages.
"""  # noqa: E501

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commands import secure_ray

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}


class Nodes:
    """The cluster as the one who plays it sees it."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.environment = environment | secure_ray()
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.chaos.nodes"],
                env=self.environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self.address = self.hear()

    def hear(self) -> str:
        """The next answer; Ray may print in between."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("> "):
                return line[2:].strip()
        raise RuntimeError("the cluster has ended")

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        self.hear()

    def lose_one(self, generator: np.random.Generator) -> None:
        """A node dies, with all its workers, and another one comes."""
        self.tell(f"lose {generator.integers(2)}")
        self.tell("add")

    def workers(self) -> list[int]:
        """Processes of all nodes that play a task right now."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                titled = (place / "cmdline").read_bytes().startswith(b"ray::play_task_on_worker")
                if titled and f":{self.address.rpartition(':')[2]}".encode() in self.line_of(place):
                    found.append(int(place.name))
            except (OSError, ValueError):
                continue
        return found

    @staticmethod
    def line_of(place: Path) -> bytes:
        """The command line of the raylet above a worker, which names the cluster."""
        parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        return (place.parent / str(parent) / "cmdline").read_bytes()

    def close(self) -> None:
        try:
            self.process.communicate("quit\n", timeout=30)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()


def main() -> None:
    from ray.cluster_utils import Cluster

    def say(text: str) -> None:
        print(f"> {text}", flush=True)

    cluster: Any = Cluster(initialize_head=True, head_node_args=NODE)
    others = [cluster.add_node(**NODE) for _ in range(2)]
    say(cluster.address)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "quit":
            break
        if word == "lose":
            cluster.remove_node(others.pop(int(number) % len(others)), allow_graceful=False)
        else:
            others.append(cluster.add_node(**NODE))
        say("done")
    cluster.shutdown()


if __name__ == "__main__":
    main()
