"""Programs that a cell starts end with their worker, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from cbobench.sweep.children import become_worker, spawn
from cbobench.sweep.programs import find_programs
from tests.conftest import cbobench_words
from tests.helpers import long
from tests.processes import PATIENCE, alive, assert_gone, below, kill, until

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
    # as the kernel does for a driver that is killed
    "its driver dies": lambda child: child.link.close(),
    "it dies": lambda child: os.kill(child.pid, 9),
}


@pytest.mark.parametrize("how", ENDS)
def test_programs_end_with_their_worker(worker, how):
    """But for one in a session of its own where the worker dies: nothing ties it to that any
    more.
    """
    child, pids = worker
    assert alive(pids) == pids
    ENDS[how](child)
    if how == "it dies":
        child.end()
    most = how == "it dies"
    until(lambda: len(alive(pids)) <= most, lambda: f"{alive(pids)} are still there")


DETACHING = """
import subprocess, time
from pathlib import Path
from cbobench.algorithms.references import Random


class Detaching(Random):
    def start(self, setting):
        super().start(setting)
        if setting.streams.scopes[0][-1] > 0:  # at least one cell is played
            for command in ("sleep 1000", "sleep 1000 & sleep 1000"):
                started = subprocess.Popen(["sh", "-c", f"echo $$ >> begun; {command}"], start_new_session=True)
            detached = subprocess.Popen(["setsid", "-f", "sh", "-c", "echo $$ >> begun; exec sleep 1000"])
            detached.wait()
            time.sleep(1000)
"""  # noqa: E501


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, *long(signal.SIGINT, signal.SIGTERM)])
def test_with_ray_programs_in_sessions_of_their_own_end_with_the_sweep(tmp_path, number):
    """Ray ends its workers alone; what they leave would be nobody's."""
    (tmp_path / "detaching.py").write_text(DETACHING)
    (tmp_path / "mine.yaml").write_text(
        "suite: s\nhorizon: 2\nseeds: 4\nproblems: [rkhs-1d]\nalgorithms: ['detaching:Detaching']\n"
    )
    command = [*cbobench_words("ray"), "run", "mine.yaml", "--cpus", "2", "--block", "1"]
    driver = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    begun = tmp_path / "begun"
    until(
        lambda: begun.exists() and len(begun.read_text().split()) >= 6,
        lambda: "no program is started",
        driver,
    )
    programs = [int(pid) for pid in begun.read_text().split()]
    programs += [pid for program in programs for pid in below(program)]
    assert len(alive(programs)) >= 6
    driver.send_signal(number)
    assert driver.wait(PATIENCE) == (-9 if number == signal.SIGKILL else 130)
    assert_gone(programs)
