"""The files in deploy/: a Kubernetes manifest and a Slurm script, as far as they can be checked without either."""

from __future__ import annotations

import copy
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest
import yaml

import cbobench
from cbobench.errors import Misuse
from tests.conftest import ROOT
from tests.processes import PATIENCE, until
from tests.sweep.test_run import assert_same_rows

DEPLOY = ROOT / "deploy"
SLURM = DEPLOY / "slurm.sh"
POD = {
    "spec": {
        "serviceAccountName": str,
        "terminationGracePeriodSeconds": int,
        "nodeSelector": dict,
        "containers": [
            {
                "name": str,
                "image": str,
                "resources": {"requests": dict, "limits": dict},
                "ports": [{"containerPort": int, "name": str}],
            }
        ],
    }
}
# Fields of KubeRay's RayJob (its API reference, v1) and of pods that the manifest may use, with their types.
FIELDS = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str, "namespace": str, "labels": dict},
    "spec": {
        "entrypoint": str,
        "submissionMode": str,
        "backoffLimit": int,
        "activeDeadlineSeconds": int,
        "shutdownAfterJobFinishes": bool,
        "ttlSecondsAfterFinished": int,
        "rayClusterSpec": {
            "rayVersion": str,
            "authOptions": {"mode": str},
            "enableInTreeAutoscaling": bool,
            "autoscalerOptions": {"upscalingMode": str, "idleTimeoutSeconds": int},
            "headGroupSpec": {"rayStartParams": {"num-cpus": str, "dashboard-host": str}, "template": POD},
            "workerGroupSpecs": [
                {
                    "groupName": str,
                    "replicas": int,
                    "minReplicas": int,
                    "maxReplicas": int,
                    "rayStartParams": dict,
                    "template": POD,
                }
            ],
        },
    },
}


def job():
    return yaml.safe_load((DEPLOY / "rayjob.yaml").read_text())


def misfits(value, allowed, where="rayjob"):
    """What of a manifest is no field that we know, or of another type."""
    if isinstance(allowed, type):
        fits = isinstance(value, allowed) and not (allowed is int and isinstance(value, bool))
        return [] if fits else [f"{where} is {value!r}, not {allowed.__name__}"]
    if type(value) is not type(allowed):
        return [f"{where} is no {type(allowed).__name__}"]
    if isinstance(allowed, list):
        return [line for i, entry in enumerate(value) for line in misfits(entry, allowed[0], f"{where}[{i}]")]
    found = [f"{where}.{name} is no field" for name in value if name not in allowed]
    return found + [
        line for name in value if name in allowed for line in misfits(value[name], allowed[name], f"{where}.{name}")
    ]


def test_the_manifest_uses_fields_that_there_are():
    assert misfits(job(), FIELDS) == []
    for break_it in (
        lambda j: j["spec"].update(shutdownAfterJobFinish=True),
        lambda j: j["spec"].update(backoffLimit="1"),
        lambda j: j["spec"]["rayClusterSpec"]["workerGroupSpecs"][0].update(maxReplica=3),
        lambda j: j["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"].update({"num-cpus": 0}),
        lambda j: (
            j["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0].pop("name")
            and j["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0].update(nam="x")
        ),
    ):
        wrong = copy.deepcopy(job())
        break_it(wrong)
        assert len(misfits(wrong, FIELDS)) == 1


def test_what_the_manifest_promises():
    spec = job()["spec"]
    cluster = spec["rayClusterSpec"]
    assert cluster["authOptions"]["mode"] == "token"
    assert spec["shutdownAfterJobFinishes"]
    assert spec["submissionMode"] == "K8sJobMode"
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (workers,) = cluster["workerGroupSpecs"]
    assert workers["minReplicas"] == 0 < workers["maxReplicas"]
    image = re.search(r"^FROM rayproject/ray:([\d.]+)-", (DEPLOY / "Dockerfile").read_text(), flags=re.M).group(1)
    assert cluster["rayVersion"] == image
    assert [int(part) for part in image.split(".")[:2]] >= [2, 52], "tokens"
    words = spec["entrypoint"].split()
    assert words[:2] == ["cbobench", "run"]
    from cbobench.cli import parser

    options = parser().parse_args(words[1:])
    assert (options.address, options.out) == ("auto", "s3://BUCKET/RUN")


def ports(job_id):
    """The ports of each option of `ray start` in the Slurm script, for a job's number."""
    text = SLURM.read_text()
    base = 20000 + job_id % 100 * 120
    assert "base=$((20000 + SLURM_JOB_ID % 100 * 120))" in text
    found = {name: base + int(offset) for name, offset in re.findall(r"--([a-z-]*port)=\$\(\(base \+ (\d+)\)\)", text)}
    return found | {"port": base}


def test_no_port_of_a_slurm_job_is_used_twice():
    mine = ports(1)
    assert len(mine) == 10
    workers = range(mine.pop("min-worker-port"), mine.pop("max-worker-port") + 1)
    used = [*mine.values(), *workers]
    assert len(used) == len(set(used))
    every = [set(range(min(ports(j).values()), max(ports(j).values()) + 1)) for j in range(100)]
    assert len(set.union(*every)) == sum(map(len, every)), "jobs of near numbers on one machine"
    assert max(max(some) for some in every) < 32768, "the system gives those away"
    limit = int(re.search(r"workers_per_node=(\d+)", SLURM.read_text()).group(1))
    assert limit + 16 < len(workers), "Ray keeps some for drivers and workers that start"


def test_the_slurm_script_is_bash_that_ray_understands():
    subprocess.run(["bash", "-n", SLURM], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", SLURM], check=True)
    from ray.scripts.scripts import start

    known = {option for parameter in start.params for option in parameter.opts}
    text = SLURM.read_text()
    of_ray = set(re.findall(r"--[a-z-]*(?:port|agent)[a-z-]*(?==)", text))
    of_ray |= {"--head", "--block", "--node-ip-address", "--num-cpus", "--include-dashboard", "--temp-dir", "--address"}
    assert all(option in text for option in of_ray)
    assert of_ray <= known
    commands = re.sub(r"(?m)(^|\s)#.*$", "", text)
    assert "ray stop" not in commands
    assert "symmetric" not in commands


def commands():
    """The commands of docs/clusters.md, without comments."""
    text = (ROOT / "docs" / "clusters.md").read_text()
    blocks = re.findall(r"```\n(.*?)```", text, flags=re.S)
    inline = re.findall(r"`((?:cbobench|ray|sbatch|kubectl) [a-z][^`]*)`", text)
    return [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()] + inline


def options(command, words, line):
    """Those of a command line are the command's."""
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known, line


def test_every_command_of_the_page_is_one():
    """Parsed by the programs themselves; what runs elsewhere (ray exec) is a command of its own."""
    from ray.scripts import scripts

    from cbobench.cli import parser

    seen = set()
    for line in filter(None, commands()):
        program, *words = shlex.split(line)
        if line.startswith("ray exec"):
            for inner in words[2:]:
                parser().parse_args(shlex.split(inner)[1:])
            words = words[:2]
        if "--" in words:
            parser().parse_args(words[words.index("--") + 2 :])
            words = words[: words.index("--")]
        if program == "cbobench":
            parser().parse_args(words)
        elif program == "ray" and words[0] == "job":
            assert words[1] in ("submit", "logs", "stop"), line
            if "job" not in scripts.cli.commands:
                continue  # Ray has them with ray[default] only
            options(scripts.cli.commands["job"].commands[words[1]], words[2:], line)
        elif program == "ray":
            options(scripts.cli.commands[words[0]], words[1:], line)
        elif program in ("kubectl", "sbatch"):
            files = [word for word in words if word.startswith("deploy/")]
            assert all((ROOT / name).is_file() for name in files), line
        else:
            assert program in ("export", "pip", "tail"), line
        seen.add(program)
    assert seen >= {"cbobench", "ray", "kubectl", "sbatch"}
    with pytest.raises(Misuse):
        parser().parse_args(["run", "SUITE", "--adress", "auto"])


STUBS = {
    # One machine plays every node; options of srun are those with = and --overlap.
    "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
    "hostname": "echo 127.0.0.1",
    "scontrol": 'if [ "$1" = show ]; then echo node1; else echo "$@" >> requeued; fi',
    "ray": f'exec {sys.executable} -m ray.scripts.scripts "$@"',
    "cbobench": f'exec {sys.executable} -m cbobench "$@"',
    "activate": "",
}


@pytest.mark.slow
def test_the_slurm_script_plays_stops_in_time_and_resumes(small_suite, tmp_path):
    """With stubs for Slurm's commands: TERM stops it in order and queues it again; then it plays what is missing."""
    suite = small_suite(horizon=1500, seeds=8)
    cbobench.run(suite, out=tmp_path / "here", cpus=0)
    venv = tmp_path / "venv" / "bin"
    venv.mkdir(parents=True)
    for name, text in STUBS.items():
        (venv / name).write_text(f"#!/bin/bash\n{text}\n")
        (venv / name).chmod(0o755)
    number = 7 + os.getpid() % 90
    environment = os.environ | {
        "PATH": f"{venv}:{os.environ['PATH']}", "CBOBENCH_VENV": str(venv.parent), "SLURM_JOB_ID": str(number),
        "SLURM_CPUS_PER_TASK": "2", "SLURM_JOB_NODELIST": "node1",
    }  # fmt: skip
    words = ["bash", str(SLURM), str(suite), "--out", str(tmp_path / "there"), "--block", "1"]

    def start():
        with (tmp_path / "log").open("w") as log:
            return subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=log, stderr=log)

    batch = start()
    until(lambda: len(list(tmp_path.glob("there/cells/*.parquet"))) >= 2, (tmp_path / "log").read_text, batch)
    batch.send_signal(signal.SIGTERM)
    assert batch.wait(PATIENCE) == 130, (tmp_path / "log").read_text()
    assert "to go on: cbobench run " in (tmp_path / "log").read_text()
    assert (tmp_path / "requeued").read_text() == f"requeue {number}\n"
    again = start()
    assert again.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
    assert_same_rows(tmp_path / "here", tmp_path / "there")
    shutil.rmtree(f"/tmp/ray-{number}", ignore_errors=True)
