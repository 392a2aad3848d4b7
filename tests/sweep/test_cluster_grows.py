"""A cluster that grows with demand does grow: Ray's own autoscaler, over fake nodes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket

import pytest

from tests.sweep.heads import free_port, head

HEAD = "f" * 51 + "00000"  # Ray's fake nodes are counted from here
WAITING = '''
import os, time
from cbobench.algorithms.references import Random


class Waiting(Random):
    """Waits, without using a CPU, until so many are played at once, and fails where that never happens."""

    def ask(self, t):
        if t == 1:
            here, until = os.environ["WAITING"], time.monotonic() + 200
            open(f"{here}/{os.getpid()}-{time.time_ns()}", "x").close()
            while len(os.listdir(here)) < int(os.environ["WANTED"]):
                assert time.monotonic() < until, f"only {len(os.listdir(here))} are played at once"
                time.sleep(0.1)
        return super().ask(t)
'''


@contextlib.contextmanager
def growing(nodes, cpus, tmp_path, environment):
    """A Ray head without CPUs, whose autoscaler may add so many nodes of so many CPUs; ended by its id."""
    port = free_port()
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
    words = [f"--port={port}", "--num-cpus=0", "--object-store-memory=80000000"]
    words += [f"--autoscaling-config={tmp_path / 'growing.json'}"]
    more = {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD}
    with head(words, environment | more, tmp_path / "head.log"):
        yield address


@pytest.mark.long
def test_a_cluster_that_starts_without_cpus_grows_to_all_it_may_have(write_suite, tmp_path, command):
    """16 CPUs on four nodes that come one by one; the driver must ask for more than it is given."""
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "begun").mkdir()
    suite = write_suite("suite: s\nhorizon: 2\nseeds: 24\nproblems: [rkhs-1d]\nalgorithms: [waiting:Waiting]\n")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]), "WANTED": "16",
        "WAITING": str(tmp_path / "begun"), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16),
    }  # fmt: skip
    with growing(4, 4, tmp_path, environment) as address:
        done = command("run", suite, "--out", tmp_path / "run", "--address", address, "--block", 1, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "begun").iterdir())) == 24
