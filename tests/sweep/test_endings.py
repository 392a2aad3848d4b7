"""Whatever ends a sweep, its last line says so and names the command that resumes it; Ray's words
reach no one.
"""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
from functools import partial

import pytest

from cbobench.cli import main
from cbobench.play.task import Interrupted
from cbobench.report.load import Run
from cbobench.sweep.executors import ExecutorDied, InlineExecutor
from cbobench.sweep.interrupt import interruptible
from tests.conftest import cbobench_words
from tests.helpers import long_cases
from tests.processes import PATIENCE, assert_gone, below, program, until
from tests.sweep.helpers import FakeExecutor, environment_of, start_and_wait, write_slow


def assert_one_line_that_resumes(errors, code, out):
    """After the two lines that say what is played and by whom."""
    lines = errors.strip().splitlines()
    advice = [line for line in lines if "to go on: cbobench run " in line]
    assert len(advice) == 1, errors
    assert lines[-1] == advice[0]
    assert advice[0].startswith("stopped: " if code == 130 else "cbobench: Ray has ended (its ")
    assert len([line for line in lines if not line.startswith(("slow: ", "played "))]) == 1, errors
    assert not list(out.rglob("*.tmp"))
    assert 0 < len(Run(out).cells) < 24


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cpus", "players", "number"),
    [
        *long_cases((0, "as it comes", signal.SIGHUP)),
        (2, "as it comes", signal.SIGINT),
        *long_cases(
            (2, "ray", signal.SIGTERM),
            (0, "as it comes", signal.SIGTERM),
            (2, "fresh workers", signal.SIGTERM),
            (2, "ray", signal.SIGINT),
        ),
    ],
)
def test_a_signal_leaves_a_resumable_run_and_no_half_written_file(tmp_path, cpus, players, number):
    """Ctrl-C, a closed terminal, and what Slurm and Kubernetes send (Ray would replace the handler
    of SIGTERM).
    """
    driver = start_and_wait(write_slow(tmp_path), tmp_path / "cut", cpus, 2, players)
    children = below(driver.pid)
    driver.send_signal(number)
    _, errors = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 130, errors
    assert_one_line_that_resumes(errors, 130, tmp_path / "cut")
    assert_gone(children)


@pytest.mark.long  # its signal ends a sweep in test_failures, and another one a driver above
def test_a_terminal_that_is_gone(tmp_path):
    """Nothing can be said any more: the exit code is that of a sweep that was stopped, and no
    worker is left.
    """
    ours, theirs = pty.openpty()
    command = [
        *cbobench_words(),
        "run",
        str(write_slow(tmp_path)),
        "--out",
        "cut",
        "--cpus",
        "2",
        "--block",
        "1",
    ]
    slow = os.environ | {"DAWDLE": "0.2"}
    driver = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=slow
    )
    os.close(theirs)
    until(lambda: list(tmp_path.glob("cut/cells/*.parquet")), lambda: "no cell is played", driver)
    children = below(driver.pid)
    os.close(ours)
    driver.send_signal(signal.SIGHUP)
    assert driver.wait(PATIENCE) == 130
    assert_gone(children)


@pytest.mark.long  # a head that dies is told the same way below
def test_ray_that_dies(tmp_path):
    """Long before the rest could be played: Ray's death is noticed after some seconds."""
    driver = start_and_wait(write_slow(tmp_path), tmp_path / "cut", 2, 2, "ray")
    children = below(driver.pid)
    (raylet,) = [pid for pid in children if program(pid).endswith("/raylet")]
    os.kill(raylet, signal.SIGKILL)
    _, errors = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 1, errors
    assert_one_line_that_resumes(errors, 1, tmp_path / "cut")
    assert "its raylet died" in errors


class Dying(FakeExecutor):
    """A Ray that has played all but the last `left` tasks of what it was given, and dies before it
    says so.
    """

    def __init__(self, problems, folder, *rest_of_call, left=0):
        super().__init__(10**6)
        self.inline, self.left = InlineExecutor(problems, folder), left

    def collect(self, seconds):
        self.inline.pending += self.pending[: len(self.pending) - self.left]
        list(self.inline.collect(seconds))
        raise ExecutorDied("Ray at head:1 has ended (its raylet or its GCS died)")
        yield

    def cancel(self, task):
        self.pending.remove(task)
        raise ExecutorDied("Ray has ended")


@pytest.mark.parametrize("left", [0, 2])
def test_a_head_that_dies(small_suite, tmp_path, capsys, monkeypatch, left):
    """Nothing is wrong where all cells are there; else the command that resumes does not name what
    is dead.
    """
    monkeypatch.setattr("cbobench.sweep.engines.RayExecutor", partial(Dying, left=left))
    arguments = ["run", str(small_suite()), "--out", str(tmp_path / "r"), "--block", "2"]
    code = main([*arguments, "--address", "head:1", "--ship"])
    errors = capsys.readouterr().err
    assert len(Run(tmp_path / "r").cells) == 12 - 2 * left
    if not left:
        assert code == 0, errors
        assert "has ended" not in errors
        return
    assert code == 1, errors
    command = shlex.join(["cbobench", *arguments])
    assert errors.splitlines()[-1] == (
        "cbobench: Ray at head:1 has ended (its raylet or its GCS died); what is published "
        "stays, to go on: "
        f"{command} (on this machine; on a cluster that is up, add its --address)"
    )


def test_a_signal_while_a_sweep_is_planned(write_suite, tmp_path):
    (tmp_path / "slowly.py").write_text(
        "import time\nfrom cbobench.algorithms.references import Random\nprint('here', "
        "flush=True)\ntime.sleep(30)\n"
    )
    suite = write_suite(
        "suite: s\nhorizon: 5\nseeds: 1\nproblems: [rkhs-1d]\nalgorithms: [slowly:Random]\n"
    )
    environment = environment_of(tmp_path)
    start = [*cbobench_words(), "run", str(suite), "--out", "no"]
    driver = subprocess.Popen(
        start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert driver.stderr.readline() == "here\n"
    driver.send_signal(signal.SIGTERM)
    _, errors = driver.communicate(timeout=PATIENCE)
    command = shlex.join(["cbobench", *start[start.index("run") :]])
    assert (driver.returncode, errors) == (
        130,
        f"stopped: nothing more is played; to go on: {command}\n",
    )
    assert not (tmp_path / "no").exists()


def test_a_signal_in_a_finaliser_is_no_traceback_and_ends_the_sweep(capsys):
    class Finalised:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    with interruptible() as interruption:
        Finalised()
        with pytest.raises(Interrupted):
            interruption.check()
    assert capsys.readouterr().err == ""
