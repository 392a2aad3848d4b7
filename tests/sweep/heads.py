"""Heads of Ray clusters of this machine, in process groups of their own; `ray stop` would end every
Ray here.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.processes import below, kill, until

NODE = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
START = [*NODE, "--head", "--include-dashboard=false"]


def free_port() -> int:
    """One that no one listens on: another head may still be leaving."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextlib.contextmanager
def head(
    options: list[str], environment: dict[str, str], log: Path, start: list[str] = START
) -> Iterator[None]:
    """A head that has started, or a `NODE` that has joined one.

    Args:
        words: options of `ray start`.
        environment: of its processes.
        log: a file for what it says.
    """
    variables = {"RAY_USAGE_STATS_ENABLED": "0"}
    with log.open("w") as to:
        process = subprocess.Popen(
            [*start, *options],
            env=environment | variables,
            stdout=to,
            stderr=to,
            start_new_session=True,
        )
    try:
        until(lambda: "Ray runtime started" in log.read_text(), log.read_text, process)
        yield
    finally:
        daemons = below(process.pid)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)  # it drains for up to 30 seconds, and would then end its daemons
        kill([process.pid, *daemons])
        process.wait(30)
