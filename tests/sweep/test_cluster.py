"""Joining a Ray cluster that runs on this machine's loopback."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
from pathlib import Path

import pytest

import cbobench
from cbobench.cli import main
from cbobench.sweep import ray_executor
from tests.helpers import assert_same_rows
from tests.sweep.heads import free_port, head

PACKAGE = Path(cbobench.__file__).parent


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


@pytest.mark.long  # test_code_sent has what the driver and its workers say
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
        r"has [\w-]+; install the same on every machine, or send this machine's with --ship, then run again",
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
    monkeypatch.setattr(ray_executor, "is_reachable", lambda place: place in there)
    nodes = ray_executor.NodeWatch({a, b, firewalled}, said.append)
    looks = [({a, b}, 0), ({a}, 0), ({a, b}, 0), ({a}, 0), ({a}, 1), (set(), 1), ({a}, 1), ({a, b}, 2), ({a, b}, 2)]
    for there, count in looks:
        nodes.check()
        assert len(said) == count, (there, said)
    assert said == ["silent: 1 of 3 nodes (b); what plays there is waited for", "no node is silent any more"]
    there = {a}
    for nodes.places in ({a, b}, {a, b}, {a}):
        nodes.check()
    assert said[2:] == [
        "silent: 1 of 2 nodes (b); what plays there is waited for",
        "given up: 1 of 2 nodes (b); what played there is queued again",
    ], "a dead node does not speak again"
    nodes.check()
    assert len(said) == 4


def test_a_node_answers_where_something_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert ray_executor.is_reachable(server.getsockname())
    assert not ray_executor.is_reachable(("127.0.0.1", free_port()))
