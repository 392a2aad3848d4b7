"""Programs that a cell starts end with their worker: when it is stopped, loses its driver, or ends its task."""

from __future__ import annotations

import os
import subprocess

import pytest

import cbobench
from cbobench.processes import find_programs
from cbobench.sweep.children import become_worker, spawn
from tests.processes import alive, assert_gone, kill, until

STARTED = 4  # a shell, two programs of its, and one in a session of its own


def serve(link):
    """A worker in the middle of a cell, which has started programs and waits for them."""
    become_worker(link)
    subprocess.Popen("sleep 1000 & sleep 1000; true", shell=True)
    subprocess.Popen(["sleep", "1000"], start_new_session=True).wait()


@pytest.fixture
def worker(forking):
    child = spawn("", serve)
    until(lambda: len(find_programs(child.pid)) == STARTED, lambda: "too few programs are started")
    pids = [child.pid, *find_programs(child.pid)]
    yield child, pids
    kill(pids)
    child.end()


ENDS = {
    "its driver ends it": lambda child: child.end(),
    "its driver dies": lambda child: child.link.close(),  # as the kernel does for a driver that is killed
    "it dies": lambda child: os.kill(child.pid, 9),
}


@pytest.mark.parametrize("how", ENDS)
def test_programs_end_with_their_worker(worker, how):
    """But for one in a session of its own where the worker dies: nothing ties it to that any more."""
    child, pids = worker
    assert alive(pids) == pids
    ENDS[how](child)
    if how == "it dies":
        child.end()
    most = how == "it dies"
    until(lambda: len(alive(pids)) <= most, lambda: f"{alive(pids)} are still there")


LEAVING = """
import subprocess
from pathlib import Path
from cbobench.algorithms.references import Random


class Leaving(Random):
    def start(self, setting):
        super().start(setting)
        subprocess.run("sleep 1000 & echo $! >> left", shell=True, check=True)
        if setting.streams.scopes[0][-1] == 1:
            Path("late").write_text(" ".join(str(pid) for pid in running(Path("left").read_text().split())))


def running(pids):
    return [pid for pid in pids if Path("/proc", pid).exists() and "Z" not in Path("/proc", pid, "stat").read_text()]
"""


def test_programs_end_with_the_task_that_started_them(tmp_path, monkeypatch, forking):
    """As those of a cell that timed out in the middle: the next cell does not share the machine with them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "leaving.py").write_text(LEAVING)
    suite = {"suite": "s", "horizon": 2, "seeds": 2, "problems": ["rkhs-1d"], "algorithms": ["leaving:Leaving"]}
    assert cbobench.run(suite, out="run", cpus=1, block=1, engine="processes").played == 2
    pids = [int(pid) for pid in (tmp_path / "left").read_text().split()]
    assert len(pids) == 2
    assert_gone(pids)
    assert (tmp_path / "late").read_text().split() == [str(pids[1])]
