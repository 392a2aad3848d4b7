"""cluster.yaml and the files in deploy/: a Kubernetes manifest, a Slurm script, as far as they can
be checked here.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.conftest import ROOT
from tests.helpers import assert_same_rows, long, play_here
from tests.processes import PATIENCE, until

DEPLOY = ROOT / "deploy"
SLURM = DEPLOY / "slurm.sh"


def job():
    return yaml.safe_load((DEPLOY / "rayjob.yaml").read_text())


def test_what_the_manifest_promises():
    spec = job()["spec"]
    cluster = spec["rayClusterSpec"]
    assert cluster["authOptions"]["mode"] == "token"
    assert spec["shutdownAfterJobFinishes"]
    assert spec["submissionMode"] == "K8sJobMode"
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (workers,) = cluster["workerGroupSpecs"]
    assert workers["minReplicas"] == 0 < workers["maxReplicas"]
    image = re.search(
        r"^FROM rayproject/ray:([\d.]+)-", (DEPLOY / "Dockerfile").read_text(), flags=re.M
    ).group(1)
    assert cluster["rayVersion"] == image
    assert [int(part) for part in image.split(".")[:2]] >= [2, 52], "tokens"
    command = spec["entrypoint"].split()
    assert command[:2] == ["cbobench", "run"]
    from cbobench.cli import make_parser

    options = make_parser().parse_args(command[1:])
    assert (options.address, options.out) == ("auto", "s3://BUCKET/RUN")


def ports(job_id):
    """The ports of each option of `ray start` in the Slurm script, for a job's number."""
    text = SLURM.read_text()
    base = 20000 + job_id % 100 * 120
    assert "base=$((20000 + SLURM_JOB_ID % 100 * 120))" in text
    offsets = {
        name: base + int(offset)
        for name, offset in re.findall(r"--([a-z-]*port)=\$\(\(base \+ (\d+)\)\)", text)
    }
    return offsets | {"port": base}


def test_no_port_of_a_slurm_job_is_used_twice():
    first_ports = ports(1)
    assert len(first_ports) == 10
    workers = range(first_ports.pop("min-worker-port"), first_ports.pop("max-worker-port") + 1)
    used = [*first_ports.values(), *workers]
    assert len(used) == len(set(used))
    every = [set(range(min(ports(j).values()), max(ports(j).values()) + 1)) for j in range(100)]
    assert len(set.union(*every)) == sum(map(len, every)), "jobs of near numbers on one machine"
    assert max(max(job_ports) for job_ports in every) < 32768, "the system gives those away"
    limit = int(re.search(r"workers_per_node=(\d+)", SLURM.read_text()).group(1))
    assert limit + 16 < len(workers), "Ray keeps some for drivers and workers that start"


def test_the_slurm_script_is_bash_that_ray_understands():
    subprocess.run(["bash", "-n", SLURM], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", SLURM], check=True)
    from ray.scripts.scripts import start

    ray_options = {option for parameter in start.params for option in parameter.opts}
    text = SLURM.read_text()
    of_ray = set(re.findall(r"--[a-z-]*(?:port|agent)[a-z-]*(?==)", text))
    of_ray |= {
        "--head",
        "--block",
        "--node-ip-address",
        "--num-cpus",
        "--include-dashboard",
        "--temp-dir",
        "--address",
    }
    assert all(option in text for option in of_ray)
    assert of_ray <= ray_options
    commands = re.sub(r"(?m)(^|\s)#.*$", "", text)
    assert "ray stop" not in commands
    assert "symmetric" not in commands


def test_every_command_of_the_page_is_one():
    """Those of cbobench, wherever they stand in a line, and the options of Ray's, are known to the
    programs.
    """
    from ray.scripts import scripts

    from cbobench.cli import make_parser

    text = (ROOT / "docs" / "clusters.md").read_text()
    lines = "\n".join(
        re.findall(r"```\n(.*?)```", text, flags=re.S) + re.findall(r"`([^`\n]*)`", text)
    )
    ours = re.findall(r"cbobench (?:run|status|compare) [^'#\n]*", lines)
    for line in ours:
        make_parser().parse_args(shlex.split(line)[1:])
    rays = re.findall(r"^ray (start|up|down|exec) ([^'#\n]*)", lines, flags=re.M)
    for name, arguments in rays:
        ray_options = {
            option for parameter in scripts.cli.commands[name].params for option in parameter.opts
        }
        assert {
            word.split("=")[0] for word in arguments.split() if word.startswith("--")
        } <= ray_options, arguments
    assert (len(ours), len(rays)) >= (8, 3)
    assert all((ROOT / name).is_file() for name in re.findall(r"deploy/[a-z.]+", lines))


def write_stubs(folder, stubs):
    """Programs of a few lines of bash, by name."""
    folder.mkdir(parents=True)
    for name, text in stubs.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_the_recipe_for_kubernetes_returns_however_the_job_ends(tmp_path, end):
    """With a kubectl that says Running twice; one that waits for another word never returns."""
    page = re.search(
        r"kubectl apply.*\n(.*)\nkubectl delete", (ROOT / "docs" / "clusters.md").read_text()
    ).group(1)
    assert f"#   {page}\n" in (DEPLOY / "rayjob.yaml").read_text()
    stand_in = f"""[ "$*" = "get rayjob/cbobench -o jsonpath={{.status.jobDeploymentStatus}}" ] || exit 3
        echo . >> {tmp_path}/asked
        if [ "$(wc -l < {tmp_path}/asked)" -gt 2 ]; then echo {end}; else echo Running; fi"""  # noqa: E501
    write_stubs(
        tmp_path / "bin", {"kubectl": stand_in, "sleep": f"[ -e {tmp_path}/asked ] || kill $PPID"}
    )
    environment = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", page], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{end}\n"), done.stderr


def test_an_image_gets_what_the_package_is_built_from_and_nothing_that_git_ignores():
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    lines = [
        line
        for line in (ROOT / ".gitignore").read_text().splitlines()
        if not line.startswith(("#", "/"))
    ]
    assert {f"**/{line.rstrip('/')}" for line in lines} | {"**/.git"} <= set(patterns)
    assert all(re.fullmatch(r"#.*|\*\*/[^/]+", line) for line in patterns), (
        "anything else is not looked at below"
    )
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    left_out = [
        path
        for path in tracked
        for name in path.split("/")
        if any(fnmatch(name, line[3:]) for line in patterns)
    ]
    assert left_out == []


# One machine plays every node; options of srun are those with = and --overlap.
SRUN = (
    'while [ "${1#--}" != "$1" ]; do case $1 in --nodelist=*) export NODE=${1#*=};; esac; shift; '
    'done; exec "$@"'
)
STUBS = {
    "srun": SRUN,
    "hostname": "echo 127.0.0.1",
    "scontrol": 'if [ "$1" = show ]; then echo node1; else echo "$@" >> requeued; fi',
    "ray": f'exec {sys.executable} -m ray.scripts.scripts "$@"',
    "python3": f'exec {sys.executable} "$@"',
    "cbobench": f'exec {sys.executable} -m cbobench "$@"',
    "activate": "",
}


LISTEN = "import signal, socket; held = socket.create_server(('', {port})); signal.pause()"


@pytest.fixture
def slurm_job(tmp_path):
    """Runs the script on three nodes of stubs: the addresses that `hostname` prints, and the nodes
    that Ray counts.

    Gives its end, and what was called, in order: `NODE ray ...`, `count`, `cbobench ...`.
    """

    def submit(resolved, other_nodes, counts, lost=""):
        number = 7 + os.getpid() % 90
        log, counted = tmp_path / "calls", tmp_path / "counted"
        counted.write_text("\n".join(map(str, counts)) + "\n")
        listen = LISTEN.format(port=ports(number)["port"])
        stubs = {
            "srun": SRUN,
            "scontrol": "printf '%s\\n' node1 node2 node3",
            "hostname": (
                f'case $1 in --ip-address) echo "{resolved}";; --all-ip-addresses) echo '
                f'"{other_nodes}";; esac'
            ),
            "ray": f"""[ "$NODE" != "{lost}" ] || echo $$ > {tmp_path}/lost
                echo "$NODE ray $*" >> {log}; [ "$NODE" != "{lost}" ] || exit 1
                [ "$2" = --head ] || exec tail -f /dev/null; exec {sys.executable} -c "{listen}" """,  # noqa: E501
            "python3": f"""case $2 in "import grpc") exit 1;; esac
                until [ "$(grep -c " ray start" {log})" = 3 ]; do /bin/sleep 0.01; done; echo count >> {log}
                head -n1 {counted}; [ "$(wc -l < {counted})" = 1 ] || sed -i 1d {counted}""",  # noqa: E501
            "cbobench": f'echo "cbobench $*" >> {log}',
            "sleep": f"""/bin/sleep 0.01; [ -e {tmp_path}/lost ] || exit 0
                while [ -e "/proc/$(cat {tmp_path}/lost)" ]; do /bin/sleep 0.01; done""",
            "activate": "",
        }
        write_stubs(tmp_path / "venv" / "bin", stubs)
        environment = os.environ | {
            "PATH": f"{tmp_path}/venv/bin:{os.environ['PATH']}",
            "CBOBENCH_VENV": str(tmp_path / "venv"),
            "SLURM_JOB_ID": str(number),
            "SLURM_CPUS_PER_TASK": "2",
            "SLURM_JOB_NODELIST": "node[1-3]",
        }
        command = ["bash", SLURM, "SUITE", "--out", tmp_path / "run"]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        return done, log.read_text().splitlines() if log.exists() else []

    return submit


# To the script 0.0.0.0 is an address like any other; here it is one at which a head of stubs can be
# reached.
@pytest.mark.parametrize(
    "resolved",
    [
        "127.0.1.1 ::1",
        *long("127.0.0.1", "::1 0.0.0.0"),
    ],
)
def test_a_slurm_job_has_its_nodes_join_no_loopback_address_and_plays_when_all_have(
    slurm_job, resolved
):
    done, calls = slurm_job(resolved, "0.0.0.0 fd00::2", [1, 2, 3])
    assert done.returncode == 0, done.stderr
    assert re.search(r"node1 ray start --head .*--node-ip-address=0\.0\.0\.0 ", "\n".join(calls))
    for node in ("node2", "node3"):
        assert any(re.match(rf"{node} ray start .*--address=0\.0\.0\.0:", line) for line in calls)
    assert [line.split()[0] for line in calls if " ray " not in line] == ["count"] * 3 + [
        "cbobench"
    ]
    assert "--address 0.0.0.0:" in calls[-1]


def test_a_slurm_job_whose_head_has_loopback_addresses_only_is_refused(slurm_job):
    done, calls = slurm_job("127.0.1.1", "fd00::2", [3])
    assert (done.returncode, calls) == (1, [])
    assert "node1 has no IPv4 address but loopback" in done.stderr


@pytest.mark.parametrize("lost", ["", "node3"])
def test_a_slurm_job_that_too_few_nodes_join_plays_nothing(slurm_job, lost):
    """None comes, or its `ray start` has ended: then nothing is waited for."""
    done, calls = slurm_job("0.0.0.0", "0.0.0.0", [1, 2], lost)
    assert done.returncode == 1
    assert re.search(r"[12] of 3 nodes" if lost else "2 of 3 nodes", done.stderr)
    assert not [line for line in calls if line.startswith("cbobench")]
    assert calls.count("count") <= (2 if lost else 60)


@pytest.mark.long
def test_the_slurm_script_plays_stops_in_time_and_resumes(small_suite, tmp_path):
    """With stubs for Slurm's commands: TERM stops it in order and queues it again; then it plays
    what is missing.
    """
    suite = small_suite(horizon=1500, seeds=8)
    play_here(suite, tmp_path / "here")
    venv = tmp_path / "venv" / "bin"
    write_stubs(venv, STUBS)
    number = 7 + os.getpid() % 90
    environment = os.environ | {
        "PATH": f"{venv}:{os.environ['PATH']}",
        "CBOBENCH_VENV": str(venv.parent),
        "SLURM_JOB_ID": str(number),
        "SLURM_CPUS_PER_TASK": "2",
        "SLURM_JOB_NODELIST": "node1",
    }
    command = ["bash", str(SLURM), str(suite), "--out", str(tmp_path / "there"), "--block", "1"]

    def start():
        with (tmp_path / "log").open("w") as log:
            return subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)

    batch = start()
    until(
        lambda: len(list(tmp_path.glob("there/cells/*.parquet"))) >= 2,
        (tmp_path / "log").read_text,
        batch,
    )
    batch.send_signal(signal.SIGTERM)
    assert batch.wait(PATIENCE) == 130, (tmp_path / "log").read_text()
    assert "to go on: cbobench run " in (tmp_path / "log").read_text()
    assert (tmp_path / "requeued").read_text() == f"requeue {number}\n"
    resumed = start()
    assert resumed.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
    assert_same_rows(tmp_path / "here", tmp_path / "there")


LAUNCHER = yaml.safe_load((ROOT / "cluster.yaml").read_text())


def schema():
    import ray

    return json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())


def test_the_launcher_file_fits_the_raw_schema():
    """The raw file, because Ray's own validation first fills in what is missing."""
    jsonschema.validate(LAUNCHER, schema())


@pytest.fixture(scope="module")
def prepared():
    """The file as Ray has it before it starts a machine: defaults filled in, validated, images
    looked up.
    """
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
        [sys.executable, "-c", code, ROOT / "cluster.yaml"],
        capture_output=True,
        text=True,
        timeout=120,
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
    release = re.search(
        r"[Uu]buntu.*?(\d\d\.\d\d)", default_name if image in defaults else image
    ).group(1)
    assert PYTHON_OF_UBUNTU[release] >= needed
    classifiers = importlib.metadata.metadata("ray").get_all("Classifier")
    assert (
        "Programming Language :: Python :: {}.{}".format(*PYTHON_OF_UBUNTU[release]) in classifiers
    )
    assert image.startswith("resolve:ssm:/aws/service/canonical/"), (
        "an id is of one region, and is withdrawn some day"
    )
    assert config["auth"]["ssh_user"] == "ubuntu"
    for node in config["available_node_types"].values():
        (disk,) = node["node_config"]["BlockDeviceMappings"]
        assert disk["DeviceName"] == "/dev/sda1", "where the root of Canonical's images is"
        assert disk["Ebs"]["VolumeSize"] >= 40


@pytest.mark.parametrize("kind", ["head", "worker"])
def test_pip_and_ray_of_the_environment_are_the_ones_that_run(prepared, tmp_path, kind):
    """The commands in Ray's order and in its shell, on a machine of stubs, twice (as `ray up` of a
    running cluster).
    """
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
        script = _with_interactive(command.replace("/home/ubuntu", str(home)))
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "RAY_HEAD_IP": "10.0.0.1"}
        done = subprocess.run(
            " ".join(script),
            shell=True,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (command, done.stderr)
    calls = [line for line in (tmp_path / "log").read_text().splitlines() if "/sudo " not in line]
    calls = [line.replace(str(home), "~") for line in calls if "/cloud-init " not in line]
    assert all(line.startswith(("~/venv/bin/pip ", "~/venv/bin/ray ")) for line in calls), calls
    assert any(line.startswith("~/venv/bin/pip ") and "~/cbobench" in line for line in calls)
    assert sum(line.startswith("~/venv/bin/ray token start ") for line in calls) == 2
    assert (home / ".bashrc").read_text().count("export PATH") == 1
