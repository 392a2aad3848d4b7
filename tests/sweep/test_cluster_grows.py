"""A cluster that grows with demand does grow: Ray's own autoscaler, over fake nodes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.sweep.test_cluster import below

HEAD = "f" * 51 + "00000"  # Ray's fake nodes are counted from here
SLEEPY = '''
import os, time
from cbobench.algorithms.references import Random


class Sleepy(Random):
    """Takes a while without using a CPU, and says when."""

    def ask(self, t):
        if t == 1:
            began = time.time()
            time.sleep(float(os.environ["SLEEPY"]))
            with open(os.environ["SLEEPY_LOG"], "a") as log:
                log.write(f"{began} {time.time()}\\n")
        return super().ask(t)
'''


@contextlib.contextmanager
def growing(nodes, cpus, tmp_path, environment):
    """A Ray head without CPUs, whose autoscaler may add so many nodes of so many CPUs; ended by its id."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; tells this machine's own address
        address = f"{probe.getsockname()[0]}:{port}"
    config = {
        "cluster_name": "growing", "max_workers": nodes, "upscaling_speed": 100.0, "idle_timeout_minutes": 60,
        "provider": {"type": "fake_multinode", "gcs_address": address, "head_node_id": HEAD, "launch_multiple": True,
                     # They share one address, and nothing is set up on them.
                     "use_node_id_as_ip": True, "disable_node_updaters": True, "disable_launch_config_check": True},
        "available_node_types": {
            "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            "worker": {"resources": {"CPU": cpus, "object_store_memory": 80 * 2**20}, "node_config": {},
                       "min_workers": 0, "max_workers": nodes},
        },
        "head_node_type": "ray.head.default", "auth": {}, "docker": {}, "file_mounts": {}, "cluster_synced_files": [],
        "file_mounts_sync_continuously": False, "rsync_exclude": [], "rsync_filter": [], "initialization_commands": [],
        "setup_commands": [], "head_setup_commands": [], "worker_setup_commands": [], "head_start_ray_commands": [],
        "worker_start_ray_commands": [],
    }  # fmt: skip
    (tmp_path / "growing.json").write_text(json.dumps(config))
    words = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", f"--port={port}"]
    words += ["--num-cpus=0", "--include-dashboard=false", "--object-store-memory=80000000"]
    words += [f"--autoscaling-config={tmp_path / 'growing.json'}"]
    more = {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD}
    with (tmp_path / "head.log").open("w") as log:
        head = subprocess.Popen(words, env=environment | more, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while "Ray runtime started" not in (tmp_path / "head.log").read_text():
            assert time.monotonic() < deadline, (tmp_path / "head.log").read_text()
            time.sleep(0.1)
        yield address
    finally:
        for pid in (*below(head.pid), head.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        head.wait(30)


def most_at_once(log):
    """How many cells were played at the same time."""
    spans = [tuple(map(float, line.split())) for line in log.read_text().splitlines()]
    return len(spans), max(sum(began <= moment < ended for began, ended in spans) for moment, _ in spans)


@pytest.mark.slow
def test_a_cluster_that_starts_without_cpus_grows_to_all_it_may_have(write_suite, tmp_path, command):
    """16 CPUs on four nodes that come one by one; the driver must ask for more than it is given."""
    (tmp_path / "sleepy.py").write_text(SLEEPY)
    suite = write_suite("suite: s\nhorizon: 2\nseeds: 48\nproblems: [rkhs-1d]\nalgorithms: [sleepy:Sleepy]\n")
    log = tmp_path / "spans"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]), "SLEEPY": "6",
        "SLEEPY_LOG": str(log), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_USAGE_STATS_ENABLED": "0",
    }  # fmt: skip
    with growing(4, 4, tmp_path, environment) as address:
        done = command("run", suite, "--out", tmp_path / "run", "--address", address, "--block", 1, env=environment)
    assert done.returncode == 0, done.stderr
    assert most_at_once(log) == (48, 16)
