"""Joining a Ray cluster of this machine: on its loopback, with nodes of several kinds, or growing
with demand.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
from pathlib import Path

import pytest

import cbobench
from cbobench import arithmetic
from cbobench.arithmetic import BEYOND, PORTABLE, reason_against
from cbobench.cli import main
from tests.helpers import assert_same_rows
from tests.sweep.heads import NODE, free_port, head

PACKAGE = Path(cbobench.__file__).parent


@contextlib.contextmanager
def cluster(folder, **variables):
    """A Ray cluster on 127.0.0.1; more are environment variables of its workers."""
    environment, port = os.environ | {"RAY_AUTH_MODE": "disabled"}, free_port()
    options = [
        "--node-ip-address=127.0.0.1",
        f"--port={port}",
        "--num-cpus=2",
        "--object-store-memory=100000000",
    ]
    with head(options, environment | variables, folder / "head.log"):
        yield f"127.0.0.1:{port}", environment


MINE = """
import helper_of_mine
from cbobench.algorithms.references import Random


class X(Random):
    def ask(self, t):
        return helper_of_mine.same(super().ask(t))
"""


@pytest.mark.long  # test_faults has what workers say
def test_other_code_is_refused_or_sent(small_suite, tmp_path, command):
    """Of other code, and where a module of the user's is missing: one line; with --ship the same
    rows.
    """
    shutil.copytree(
        PACKAGE, tmp_path / "there" / "cbobench", ignore=shutil.ignore_patterns("__pycache__")
    )
    changed = tmp_path / "there" / "cbobench" / "gp" / "confidence.py"
    changed.write_text(changed.read_text().replace("scale * bound", "2 * scale * bound"))
    module_folder = tmp_path / "modules"
    module_folder.mkdir()
    (module_folder / "mine.py").write_text(MINE)
    (module_folder / "helper_of_mine.py").write_text("def same(x):\n    return x\n")
    suite = small_suite(extra="  - mine:X\n")
    path = {"PYTHONPATH": os.pathsep.join([str(module_folder), str(PACKAGE.parent)])}
    done_here = command(
        "run", suite, "--out", tmp_path / "here", "--cpus", 0, env=os.environ | path
    )
    assert done_here.returncode == 0, done_here.stderr
    with cluster(tmp_path, PYTHONPATH=str(tmp_path / "there")) as (address, environment):
        arguments = ["run", suite, "--out", tmp_path / "run", "--address", address]
        plain = command(*arguments, env=environment | path, cwd=module_folder.parent)
        shipped = command(*arguments, "--ship", env=environment | path)
    assert plain.returncode == 1, plain.stderr
    assert re.match(
        r"cbobench: worker \S+ has other code for rkhs-1d.* / ckb-.*, the driver has [\w-]+; "
        r"install the same on every machine, or send this machine's with --ship, then run again; "
        r"other code is in cbobench.gp.confidence; what is published stays",
        plain.stderr.splitlines()[-1],
    ), plain.stderr
    assert shipped.returncode == 0, shipped.stderr
    assert_same_rows(tmp_path / "here", tmp_path / "run")


def test_no_cluster_at_the_address(small_suite, tmp_path, capsys):
    assert (
        main(["run", str(small_suite()), "--out", "none", "--address", f"127.0.0.1:{free_port()}"])
        == 2
    )
    assert "no Ray cluster answers at 127.0.0.1:" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


SUITE = """\
suite: mixed
horizon: 12
seeds: 10
record: all
problems: [rkhs-1d, gramacy: {candidates: 64}]
algorithms: [ckb-ucb, gp-ts, scbo]
"""


@pytest.mark.long
@pytest.mark.skipif(bool(reason_against()), reason=f"plays natively: {reason_against()}")
def test_a_cluster_of_mixed_nodes_plays_the_same_bits(write_suite, tmp_path, command):
    suite, port = write_suite(SUITE), free_port()
    plain = {name: value for name, value in os.environ.items() if name != arithmetic.DISABLED}
    environment = plain | {"RAY_AUTH_MODE": "disabled"}
    common = ["--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=80000000"]
    hostile = environment | {arithmetic.KERNEL: "Sandybridge"}
    held = environment | {arithmetic.DISABLED: " ".join(("X86_V3", *BEYOND))}
    with (
        head([*common, f"--port={port}"], hostile, tmp_path / "head.log"),
        head([*common, f"--address=127.0.0.1:{port}"], held, tmp_path / "node.log", NODE),
    ):
        arguments = [
            "run",
            suite,
            "--out",
            tmp_path / "run",
            "--block",
            1,
            "--address",
            f"127.0.0.1:{port}",
        ]
        done = command(*arguments, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    done_here = command("run", suite, "--out", tmp_path / "here", "--cpus", 0, env=environment)
    assert done_here.returncode == 0, done_here.stderr
    kinds = {*cbobench.load_cells(tmp_path / "run")["arithmetic"]}
    assert kinds == {PORTABLE, "native: Haswell, X86_V2"}, "both have played"
    assert_same_rows(tmp_path / "run", tmp_path / "here")


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
'''  # noqa: E501


@contextlib.contextmanager
def growing(nodes, cpus, tmp_path, environment):
    """A Ray head without CPUs, whose autoscaler may add so many nodes of so many CPUs; ended by its
    id.
    """
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; tells this machine's own address
        address = f"{probe.getsockname()[0]}:{port}"
    config = {
        "cluster_name": "growing",
        "max_workers": nodes,
        "upscaling_speed": 100.0,
        "idle_timeout_minutes": 60,
        "provider": {
            "type": "fake_multinode",
            "gcs_address": address,
            "head_node_id": HEAD,
            "launch_multiple": True,
            # They share one address, and nothing is set up on them.
            "use_node_id_as_ip": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "available_node_types": {
            "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            "worker": {
                "resources": {"CPU": cpus, "object_store_memory": 80 * 2**20},
                "node_config": {},
                "min_workers": 0,
                "max_workers": nodes,
            },
        },
        "head_node_type": "ray.head.default",
        "auth": {},
        "docker": {},
        "file_mounts": {},
        "cluster_synced_files": [],
        "file_mounts_sync_continuously": False,
        "rsync_exclude": [],
        "rsync_filter": [],
        "initialization_commands": [],
        "setup_commands": [],
        "head_setup_commands": [],
        "worker_setup_commands": [],
        "head_start_ray_commands": [],
        "worker_start_ray_commands": [],
    }
    (tmp_path / "growing.json").write_text(json.dumps(config))
    options = [f"--port={port}", "--num-cpus=0", "--object-store-memory=80000000"]
    options += [f"--autoscaling-config={tmp_path / 'growing.json'}"]
    variables = {
        "RAY_FAKE_CLUSTER": "1",
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD,
    }
    with head(options, environment | variables, tmp_path / "head.log"):
        yield address


@pytest.mark.long
def test_a_cluster_that_starts_without_cpus_grows_to_all_it_may_have(
    write_suite, tmp_path, command
):
    """16 CPUs on four nodes that come one by one; the driver must ask for more than it is given."""
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "begun").mkdir()
    suite = write_suite(
        "suite: s\nhorizon: 2\nseeds: 24\nproblems: [rkhs-1d]\nalgorithms: [waiting:Waiting]\n"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        "WANTED": "16",
        "WAITING": str(tmp_path / "begun"),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
    }
    with growing(4, 4, tmp_path, environment) as address:
        done = command(
            "run",
            suite,
            "--out",
            tmp_path / "run",
            "--address",
            address,
            "--block",
            1,
            env=environment,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "begun").iterdir())) == 24
