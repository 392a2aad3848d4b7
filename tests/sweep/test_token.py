"""Who gets to a Ray: nobody who lacks the token of this process to one that we start; we to a head
with ours.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import cbobench
from tests.processes import until
from tests.sweep.heads import free_port, head

DRIVER = """
import os, subprocess, sys
from cbobench.sweep.ray_start import start_ray
ray = start_ray(1, None)
address = ray.get_runtime_context().gcs_address
import psutil  # which Ray brings
ray.get(ray.remote(lambda: None).remote())  # a worker listens, too
tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
listening = [c.laddr.ip for p in tree for c in p.net_connections("tcp") if c.status == "LISTEN"]
print(*sorted({ip.removeprefix("::ffff:") for ip in listening}), flush=True)
bare = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
words, to = [sys.executable, "-c", sys.argv[1], address], {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
tokens = ({"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 32}, dict(os.environ))
peers = [subprocess.Popen(words, env=bare | more, text=True, **to) for more in tokens]
for peer in peers:
    print(peer.communicate()[0].strip(), flush=True)
ray.shutdown()
"""  # noqa: E501
PEER = """
import sys
from ray.exceptions import AuthenticationError
from ray._raylet import GcsClient
try:
    GcsClient(address=sys.argv[1]).get_all_node_info()
    print("joined")
except AuthenticationError:
    print("refused")
"""


STARTED = """
from cbobench.sweep.ray_start import start_ray
ray = start_ray(1, None)
print(ray._private.worker._global_node.get_session_dir_path(), flush=True)
input()
ray.shutdown()
"""
JOINED = "import ray, sys\nfrom cbobench.cli import entry\nentry()"


def at_home(home):
    """An environment with a home folder, and without a word of Ray's tokens."""
    home.mkdir(exist_ok=True)
    return {
        name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")
    } | {"HOME": str(home)}


@pytest.mark.slow
def test_a_ray_listens_on_loopback_and_refuses_a_peer_without_its_token(tmp_path):
    """Without one, with a wrong one, and, as the control, with the right one; nothing is kept in
    the home folder, and other machines reach no port.

    It costs a Ray, and an interpreter that imports it for each of them.
    """
    environment = at_home(tmp_path / "home") | {"RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", DRIVER, PEER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout.split() == ["127.0.0.1", "refused", "refused", "joined"], done.stderr
    assert not list((tmp_path / "home").rglob("auth_token"))


@pytest.mark.long
@pytest.mark.parametrize("ends", ["kill", "in order"])
def test_the_folder_of_ray_is_for_this_user_alone_and_goes_with_it(tmp_path, ends):
    command = [sys.executable, "-c", STARTED]
    driver = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, umask=0o022
    )
    session = Path(driver.stdout.readline().strip())
    folder = next(path for path in session.parents if path.name.startswith("cbobench-"))
    assert (session / "sockets" / "plasma_store").exists()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    driver.kill() if ends == "kill" else driver.communicate("\n")
    until(lambda: not folder.exists(), lambda: f"{folder} is still there")


@pytest.fixture
def play(write_suite, tmp_path):
    """Plays two cells on the Ray at an address."""
    suite = write_suite(
        "suite: s\nhorizon: 5\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: [random]\n"
    )

    def played(address, out, environment, program=("-m", "cbobench")):
        command = [
            sys.executable,
            *program,
            "run",
            str(suite),
            "--out",
            str(tmp_path / out),
            "--address",
            address,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)

    return played


def started(environment, tmp_path):
    port = free_port()
    options = [
        "--node-ip-address=127.0.0.1",
        f"--port={port}",
        "--num-cpus=1",
        "--object-store-memory=100000000",
    ]
    return f"127.0.0.1:{port}", head(options, environment, tmp_path / "head.log")


@pytest.fixture
def homes(tmp_path):
    """Environments of a home with a token, and of one without."""
    files_at_home = at_home(tmp_path / "with"), at_home(tmp_path / "without")
    (tmp_path / "with" / ".ray").mkdir()
    (tmp_path / "with" / ".ray" / "auth_token").write_text("5f" * 16)
    return files_at_home


@pytest.mark.long  # test_run joins the Ray of its own process
@pytest.mark.parametrize("full", [False, True])
def test_a_head_is_joined_with_the_token_of_this_home(tmp_path, play, homes, full):
    """A head asks for a token where there is one as it starts."""
    with_token, without = homes
    refusals = [{"RAY_AUTH_TOKEN": "00" * 16}, {}, {"RAY_AUTH_MODE": "disabled"}]
    programs = {"plain": ("-m", "cbobench"), "imported": ("-c", JOINED)}
    asks_by_itself = [int(part) for part in version("ray").split(".")[:2]] >= [2, 59]
    address, asks = started(
        with_token | ({} if asks_by_itself else {"RAY_AUTH_MODE": "token"}), tmp_path
    )
    with asks:
        for out, program in [*programs.items()][: 2 if full else 1]:
            done = play(address, out, with_token, program)
            assert done.returncode == 0, done.stderr
            assert [*cbobench.load_cells(tmp_path / out)["status"]] == ["ok", "ok"]
        for variables in refusals[: 3 if full else 1]:
            done = play(address, "refused", without | variables)
            assert done.returncode == 2, done.stderr
            assert (
                f"Ray at {address} asks for another token than this machine's; copy ~/.ray/auth"
                in done.stderr
            )


@pytest.mark.long
def test_a_head_that_asks_for_no_token_is_joined_with_one_too(tmp_path, play, homes):
    address, asks_not = started(homes[1], tmp_path)
    with asks_not:
        for out, environment in zip(("open-with", "open"), homes, strict=True):
            done = play(address, out, environment)
            assert done.returncode == 0, done.stderr
