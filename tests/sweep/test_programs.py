"""Programs that a cell starts end with their worker: when it is stopped, loses its driver, or ends its task."""

from __future__ import annotations

import os
import subprocess

import pytest

import cbobench
from cbobench.processes import Programs, find_programs
from cbobench.sweep import executors
from cbobench.sweep.executors import become_worker, spawn
from tests.processes import alive, assert_gone, kill, until

STARTED = 4  # a shell, two programs of its, and one in a session of its own


def serve(link):
    """A worker in the middle of a cell, which has started programs and waits for them."""
    become_worker(link)
    subprocess.Popen("sleep 1000 & sleep 1000; true", shell=True)
    subprocess.Popen(["sleep", "1000"], start_new_session=True).wait()


@pytest.fixture(autouse=True)
def _workers_are_forked(monkeypatch):
    monkeypatch.setattr(executors, "can_fork", lambda: True)


@pytest.fixture
def worker():
    child = spawn("", serve)
    until(lambda: len(find_programs(child.pid)) == STARTED, lambda: "too few programs are started")
    pids = [child.pid, *find_programs(child.pid)]
    yield child, pids
    kill(pids)
    child.end()


def test_programs_end_with_their_worker(worker):
    child, pids = worker
    assert alive(pids) == pids
    child.end()
    assert_gone(pids)


def test_programs_end_with_a_worker_whose_driver_dies(worker):
    child, pids = worker
    child.link.close()  # as the kernel does for a driver that is killed
    assert_gone(pids)


def test_programs_end_with_a_worker_that_dies(worker):
    """But for one in a session of its own, which nothing ties to it any more."""
    child, pids = worker
    os.kill(child.pid, 9)
    child.end()
    until(lambda: len(alive(pids)) <= 1, lambda: f"{alive(pids)} are still there")


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


def test_programs_end_with_the_task_that_started_them(tmp_path, monkeypatch):
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


def test_to_ask_for_programs_reads_little_where_none_was_started(monkeypatch):
    programs = Programs()
    monkeypatch.setattr("cbobench.processes.find_programs", lambda leader: pytest.fail("all processes are read"))
    monkeypatch.setattr("cbobench.processes._has_children", lambda: False)
    assert programs.left() == []
    monkeypatch.undo()
    child = subprocess.Popen(["sleep", "1000"])
    assert child.pid in programs.left()
    child.kill()
    child.wait()
    assert child.pid not in programs.left()
