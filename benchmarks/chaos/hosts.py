"""Two hosts on one machine, in network namespaces with addresses of their own, and a link between
them that can be cut.

Head and driver are on the first, a worker on the second; all see the same files, as on a shared
file system. It takes the right to make namespaces (root).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.commands import secure_ray

PORT = 6379
RAY = [
    sys.executable,
    "-m",
    "ray.scripts.scripts",
    "start",
    "--block",
    "--num-cpus=1",
    "--object-store-memory=80000000",
]


class NoRight(Exception):
    """This user, or this machine, cannot make network namespaces."""


def ip(words: str) -> None:
    """Run a command of `ip`."""
    subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True)


class Hosts:
    """The two hosts and their Ray cluster.

    Args:
        environment: of its processes.
        log: a file for what Ray says.

    Raises:
        NoRight: no network namespaces here.
    """

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.names = [f"cbo{os.getpid()}{word}" for word in ("a", "b")]
        self.addresses = [f"10.213.77.{number}" for number in (1, 2)]
        self.address = f"{self.addresses[0]}:{PORT}"
        self.environment = environment | secure_ray()
        self.daemons: list[subprocess.Popen[str]] = []
        try:
            self._wire()
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            self.close()
            raise NoRight(getattr(error, "stderr", "") or str(error)) from error
        temporary = f"--temp-dir={tempfile.mkdtemp()}"
        parts = (
            ["--head", f"--port={PORT}", "--include-dashboard=false", temporary],
            [f"--address={self.address}"],
        )
        for number, part in enumerate(parts):
            words = [
                *self.there(number),
                *RAY,
                *part,
                f"--node-ip-address={self.addresses[number]}",
            ]
            with log.open("a") as errors:
                daemon = subprocess.Popen(
                    words,
                    env=self.environment,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
            self.daemons.append(daemon)
            assert daemon.stdout is not None
            if not any("Ray runtime started" in line for line in daemon.stdout):
                self.close()
                raise RuntimeError(f"Ray did not start on host {number}: see {log}")

    def _wire(self) -> None:
        for name in self.names:
            ip(f"netns add {name}")
            ip(f"-n {name} link set lo up")
        first, second = self.names
        ip(f"link add to-b netns {first} type veth peer name to-a netns {second}")
        for name, device, address in zip(self.names, ("to-b", "to-a"), self.addresses, strict=True):
            ip(f"-n {name} address add {address}/24 dev {device}")
            ip(f"-n {name} link set {device} up")
            # Ray looks for its address by the way out
            ip(f"-n {name} route add default dev {device}")

    def there(self, number: int) -> list[str]:
        """Words that run a command on a host, under a host name of its own."""
        name = self.names[number]
        return [
            "ip",
            "netns",
            "exec",
            name,
            "unshare",
            "--uts",
            "sh",
            "-c",
            f'hostname {name}; exec "$@"',
            "sh",
        ]

    def cut(self, seconds: float) -> None:
        """No packet passes between the hosts for a while."""
        for state, wait in (("down", seconds), ("up", 0.0)):
            ip(f"-n {self.names[1]} link set to-a {state}")
            time.sleep(wait)

    def processes(self) -> list[int]:
        """All that runs on the two hosts."""
        found = []
        for name in self.names:
            listed = subprocess.run(
                ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
            )
            found += [int(pid) for pid in listed.stdout.split()]
        return found

    def close(self) -> None:
        """End all that runs there, and the hosts."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for daemon in self.daemons:
            daemon.wait()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
