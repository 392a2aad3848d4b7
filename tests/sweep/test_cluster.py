"""The cluster launcher file, and joining a Ray cluster that runs on this machine's loopback."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

import cbobench
from cbobench.cli import main
from cbobench.sweep import ray_executor
from tests.conftest import ROOT
from tests.helpers import assert_same_rows
from tests.sweep.heads import free_port, head

PACKAGE = Path(cbobench.__file__).parent
LAUNCHER = yaml.safe_load((ROOT / "cluster.yaml").read_text())
AWS_NODE = {"InstanceType", "IamInstanceProfile", "InstanceMarketOptions", "BlockDeviceMappings", "ImageId", "KeyName"}


def schema():
    import ray

    return json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())


def test_the_launcher_file_fits_the_raw_schema():
    """The raw file, because Ray's own validation first fills in what is missing."""
    jsonschema.validate(LAUNCHER, schema())


@pytest.fixture(scope="module")
def prepared():
    """The file as Ray has it before it starts a machine: defaults filled in, validated, images looked up."""
    code = (
        "import json, sys, unittest.mock, yaml\n"
        "talks = unittest.mock.MagicMock(__version__='1.40')  # to AWS\n"
        "names = ['boto3', 'boto3.exceptions', 'boto3.resources', 'boto3.resources.base']\n"
        "names += ['botocore', 'botocore.client', 'botocore.config', 'botocore.exceptions']\n"
        "sys.modules.update(dict.fromkeys(names, talks))\n"
        "from ray.autoscaler._private.aws import config as aws\n"
        "from ray.autoscaler._private.util import prepare_config, validate_config\n"
        "config = prepare_config(yaml.safe_load(open(sys.argv[1])))\n"
        "validate_config(config)\n"
        "aws._check_ami(config)\n"
        "print(json.dumps([config, aws.DEFAULT_AMI_NAME, list(aws.DEFAULT_AMI.values())]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, ROOT / "cluster.yaml"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# What `python3` is on Ubuntu, which stays so while a release lives.
PYTHON_OF_UBUNTU = {"18.04": (3, 6), "20.04": (3, 8), "22.04": (3, 10), "24.04": (3, 12)}


def test_every_machine_starts_from_an_image_whose_python_is_new_enough(prepared):
    config, default_name, defaults = prepared
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = tuple(map(int, re.fullmatch(r">=(\d+)\.(\d+)", project["requires-python"]).groups()))
    images = {node["node_config"]["ImageId"] for node in config["available_node_types"].values()}
    assert len(images) == 1, "head and workers need the same Python"
    (image,) = images
    release = re.search(r"[Uu]buntu.*?(\d\d\.\d\d)", default_name if image in defaults else image).group(1)
    assert PYTHON_OF_UBUNTU[release] >= needed
    classifiers = importlib.metadata.metadata("ray").get_all("Classifier")
    assert "Programming Language :: Python :: {}.{}".format(*PYTHON_OF_UBUNTU[release]) in classifiers
    assert image.startswith("resolve:ssm:/aws/service/canonical/"), "an id is of one region, and is withdrawn some day"
    assert config["auth"]["ssh_user"] == "ubuntu"
    for node in config["available_node_types"].values():
        (disk,) = node["node_config"]["BlockDeviceMappings"]
        assert disk["DeviceName"] == "/dev/sda1", "where the root of Canonical's images is"
        assert disk["Ebs"]["VolumeSize"] >= 40


@pytest.mark.parametrize("kind", ["head", "worker"])
def test_pip_and_ray_of_the_environment_are_the_ones_that_run(prepared, tmp_path, kind):
    """The commands in Ray's order and in its shell, on a machine of stubs, twice (as `ray up` of a running cluster)."""
    config, *_ = prepared
    from ray.autoscaler._private.command_runner import _with_interactive

    stubs, home = tmp_path / "system", tmp_path / "home"
    stubs.mkdir()
    home.mkdir()
    program = f'#!/bin/sh\necho "$0 ${{RAY_AUTH_MODE-}} $*" >> {tmp_path}/log\n'
    for name in ("pip", "ray", "cloud-init", "sudo"):
        (stubs / name).write_text(program)
    venv = f'mkdir -p "$3/bin" && cp {stubs}/pip {stubs}/ray "$3/bin"'
    (stubs / "python3").write_text(f'#!/bin/sh\n[ "$1 $2" = "-m venv" ] || exit 1\n{venv}\n')
    for stub in stubs.iterdir():
        stub.chmod(0o755)
    (home / ".bash_profile").write_text(f"export PATH={stubs}:$PATH\n")
    (home / ".bashrc").write_text("case $- in *i*) ;; *) return ;; esac\n")
    for command in 2 * (config[f"{kind}_setup_commands"] + config[f"{kind}_start_ray_commands"]):
        words = _with_interactive(command.replace("/home/ubuntu", str(home)))
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "RAY_HEAD_IP": "10.0.0.1"}
        done = subprocess.run(" ".join(words), shell=True, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
    calls = [line for line in (tmp_path / "log").read_text().splitlines() if "/sudo " not in line]
    calls = [line.replace(str(home), "~") for line in calls if "/cloud-init " not in line]
    assert all(line.startswith(("~/venv/bin/pip ", "~/venv/bin/ray ")) for line in calls), calls
    assert any(line.startswith("~/venv/bin/pip ") and "~/cbobench" in line for line in calls)
    assert sum(line.startswith("~/venv/bin/ray token start ") for line in calls) == 2
    assert (home / ".bashrc").read_text().count("export PATH") == 1


def test_what_rays_validator_does_not_look_at():
    """Keys of node_config are passed to AWS unseen; a misspelt one would launch on-demand machines."""
    types = LAUNCHER["available_node_types"]
    assert LAUNCHER["head_node_type"] in types
    for node in types.values():
        assert set(node["node_config"]) <= AWS_NODE
    assert types["worker"]["node_config"]["InstanceMarketOptions"] == {"MarketType": "spot"}
    assert types["worker"]["min_workers"] == 0 < types["worker"]["max_workers"] <= LAUNCHER["max_workers"]
    starts = " ".join(LAUNCHER["head_start_ray_commands"] + LAUNCHER["worker_start_ray_commands"])
    assert starts.count("RAY_USAGE_STATS_ENABLED=0") == 2


@contextlib.contextmanager
def cluster(folder, **more):
    """A Ray cluster on 127.0.0.1; more are environment variables of its workers."""
    environment, port = os.environ | {"RAY_AUTH_MODE": "disabled"}, free_port()
    words = ["--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=2", "--object-store-memory=100000000"]
    with head(words, environment | more, folder / "head.log"):
        yield f"127.0.0.1:{port}", environment


MINE = """
import helper_of_mine
from cbobench.algorithms.references import Random


class X(Random):
    def ask(self, t):
        return helper_of_mine.same(super().ask(t))
"""


@pytest.mark.slow
def test_other_code_is_refused_or_sent(small_suite, tmp_path, command):
    """Of other code, and where a module of the user's is missing: one line; with --ship the same rows."""
    shutil.copytree(PACKAGE, tmp_path / "there" / "cbobench", ignore=shutil.ignore_patterns("__pycache__"))
    changed = tmp_path / "there" / "cbobench" / "gp" / "confidence.py"
    changed.write_text(changed.read_text().replace("scale * bound", "2 * scale * bound"))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "mine.py").write_text(MINE)
    (mine / "helper_of_mine.py").write_text("def same(x):\n    return x\n")
    suite = small_suite(extra="  - mine:X\n")
    path = {"PYTHONPATH": os.pathsep.join([str(mine), str(PACKAGE.parent)])}
    here = command("run", suite, "--out", tmp_path / "here", "--cpus", 0, env=os.environ | path)
    assert here.returncode == 0, here.stderr
    with cluster(tmp_path, PYTHONPATH=str(tmp_path / "there")) as (address, environment):
        words = ["run", suite, "--out", tmp_path / "run", "--address", address]
        plain = command(*words, env=environment | path, cwd=mine.parent)
        shipped = command(*words, "--ship", env=environment | path)
        drivers = sorted(path.name for path in (tmp_path / "run" / "drivers").iterdir())
    assert plain.returncode == 2, plain.stderr
    assert re.fullmatch(
        r"cbobench: nothing is played: 1 of 1 node \(\S+\): worker \S+ has other code for rkhs-1d / ckb-.*, the driver "
        r"has \w+; install the same on every machine, or send this machine's with --ship, then run again",
        plain.stderr.splitlines()[-1],
    ), plain.stderr
    assert shipped.returncode == 0, shipped.stderr
    assert drivers == []
    assert_same_rows(tmp_path / "here", tmp_path / "run")


def test_no_cluster_at_the_address(small_suite, tmp_path, capsys):
    assert main(["run", str(small_suite()), "--out", "none", "--address", f"127.0.0.1:{free_port()}"]) == 2
    assert "no Ray cluster answers at 127.0.0.1:" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_nodes_that_fall_silent_are_told_once_and_when_none_is(monkeypatch):
    a, b, firewalled = ("a", 1), ("b", 2), ("c", 3)
    there, said = {a, b}, []
    monkeypatch.setattr(ray_executor.NodeWatch, "_watch", lambda self: None)
    monkeypatch.setattr(ray_executor, "answers", lambda place: place in there)
    nodes = ray_executor.NodeWatch({a, b, firewalled}, said.append)
    looks = [({a, b}, 0), ({a}, 0), ({a, b}, 0), ({a}, 0), ({a}, 1), (set(), 1), ({a}, 1), ({a, b}, 2), ({a, b}, 2)]
    for there, count in looks:
        nodes.look()
        assert len(said) == count, (there, said)
    assert said == ["silent: 1 of 3 nodes (b); what plays there is waited for", "no node is silent any more"]
    there = {a}
    for nodes.places in ({a, b}, {a, b}, {a}):
        nodes.look()
    assert said[3:] == said[1:2], "one that Ray has given up is not silent any more"


def test_a_node_answers_where_something_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert ray_executor.answers(server.getsockname())
    assert not ray_executor.answers(("127.0.0.1", free_port()))
