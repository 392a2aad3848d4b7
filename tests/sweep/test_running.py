"""Files of simulations and of who runs them, which the disk does not take or give, or which hold
something else.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest

from cbobench.call import Call
from cbobench.errors import DamagedRun, Misuse
from cbobench.problems import simulated
from cbobench.problems.data import Site
from cbobench.results import running, store
from cbobench.results.folder import RunFolder
from cbobench.results.manifest import DIGEST
from cbobench.results.simulations import SimulationStore, read_simulation, write_simulation
from cbobench.results.store import StoreFailure, machine_id
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from tests.helpers import UNREADABLE, WRONG
from tests.suite.test_fuzz import places, replaced
from tests.sweep import test_simulations
from tests.sweep.test_simulations import SUITE, observe

quiet = test_simulations.quiet  # a fixture


def break_open(true_call, left, number):
    """As `true_call`, but that it fails for files that say who simulates, as often as is left."""

    def call(path, *args, **options):
        if left[0] and str(path).endswith(".running"):
            left[0] -= 1
            raise OSError(number, os.strerror(number), str(path))
        return true_call(path, *args, **options)

    return call


@pytest.fixture
def faulty(monkeypatch):
    """Let a call of the system fail some times for files that say who simulates; what is left to
    fail is returned.
    """
    monkeypatch.setenv(store.RETRY_VARIABLE, "5")
    monkeypatch.setattr(store, "FIRST_PAUSE", 0.001)

    def break_call(name, number, times=10**6):
        left, true_call, ours = [times], getattr(os, name), set()

        def call(path, *args, **options):
            if left[0] and (path in ours or ".running" in str(path)):
                left[0] -= 1
                raise OSError(number, os.strerror(number), str(path))
            return true_call(path, *args, **options)

        def open_file(path, *args, **options):
            file = true_open(path, *args, **options)
            if ".running" in str(path):
                ours.add(file)
            return file

        true_open = os.open
        monkeypatch.setattr(os, name, call)
        if name == "open":
            monkeypatch.setattr(io, "open", break_open(io.open, left, number))
        if name == "write":
            monkeypatch.setattr(os, "open", open_file)
        return left

    return break_call


@pytest.mark.parametrize("name", ["open", "write", "unlink", "utime", "stat"])
def test_a_disk_that_is_away_for_a_moment_costs_no_simulation(quiet, faulty, name):
    problem, run, calls = quiet
    left = faulty(name, errno.ESTALE, times=3)
    observe(problem, run, [*range(8)])
    assert len(calls()) == 8
    assert left[0] < 3 or name in ("utime", "stat"), "it was met"
    assert not [*run.glob("simulations/.*")]


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.ESTALE, errno.EDQUOT]
)
@pytest.mark.parametrize("name", ["open", "write"])
def test_a_disk_that_takes_no_file_is_no_failure_of_cells(quiet, faulty, monkeypatch, name, number):
    problem, run, calls = quiet
    suite = SUITE | {"horizon": 4, "seeds": 2, "problems": [{"quiet_sim:Quiet": {"pilot": 8}}]}
    todo = plan(Call(suite, out="full", cpus=0))
    before = len(calls())
    monkeypatch.setenv(store.RETRY_VARIABLE, "0.01")
    faulty(name, number)
    with pytest.raises(
        StoreFailure, match=r"full/simulations: .*; when that is mended the same command resumes"
    ):
        execute(todo)
    assert len(calls()) == before, "nothing was simulated for nothing"
    monkeypatch.undo()
    monkeypatch.chdir(run.parent)
    assert not [*Path("full").glob("simulations/.*.running")], (
        "a file that names nobody would be waited for"
    )
    assert not [*Path("full").glob("cells/*.parquet")], "no cell failed"
    outcome = execute(plan(Call(suite, out="full", cpus=0)))
    assert (outcome.played, outcome.failed) == (4, 0)


def test_a_file_that_cannot_be_removed_is_silent_soon(quiet, faulty, monkeypatch):
    problem, run, calls = quiet
    monkeypatch.setattr(running, "EXPIRES_AFTER", 0.0)
    monkeypatch.setattr(simulated, "LEAST_WAIT", 0.5)
    left = faulty("unlink", errno.EPERM)
    observe(problem, run, [*range(8)])
    observe(problem, run, [*range(8)])
    assert len(calls()) == 8, "kept, whether or not its file went"
    assert left[0] < 10**6


@pytest.mark.parametrize(
    "content", [*WRONG, *UNREADABLE.values(), "folder", "pipe", "device", "loop"], ids=str
)
def test_a_file_that_names_nobody_holds_no_simulation(quiet, monkeypatch, content):
    problem, run, calls = quiet
    monkeypatch.setattr(running, "EXPIRES_AFTER", 0.0)
    monkeypatch.setattr(simulated, "PATIENCE", 1e6)
    store_of_run = SimulationStore(RunFolder(str(run)))
    x, gen = np.array([[1.0, 2.0]]), np.random.default_rng(1)
    with problem.at(Site(store=store_of_run.of("quiet_sim:Quiet"))):
        file = (
            run / "simulations" / f".{store_of_run._name(problem._key(x[0], gen, False))}.running"
        )
        file.parent.mkdir(exist_ok=True)
        match content:
            case "folder":
                file.mkdir()
            case "pipe":
                os.mkfifo(file)
            case "device":
                file.symlink_to("/dev/zero")
            case "loop":
                file.symlink_to(file)
            case bytes():
                file.write_bytes(content)
            case _:
                file.write_text(
                    json.dumps({"machine": machine_id(), "pid": content, "born": content})
                )
        problem.observe(x, [gen])
    assert len(calls()) == 1
    assert not file.is_file()


def test_a_kept_simulation_of_any_content_is_whole_or_damaged(tmp_path):
    folder = RunFolder(str(tmp_path))
    good = {"values": [0.5, -1.0], "size": 2, "reason": "", "seconds": 1.5}
    write_simulation(folder, "kept", good)
    file = tmp_path / "simulations" / "kept.json"
    signed = json.loads(file.read_text())
    assert read_simulation(folder, "kept")[0].values.tolist() == good["values"]
    variants = [
        json.dumps(replaced(signed, place, wrong)).encode()
        for place in places(signed)
        for wrong in WRONG
    ]
    unsigned = [
        json.dumps(replaced(good, ("size",), size) | {"values": None}).encode()
        for size in (10**15, -1, True)
    ]
    for content in (*variants, *unsigned, *UNREADABLE.values()):
        file.write_bytes(content)
        with contextlib.suppress(DamagedRun):
            assert read_simulation(folder, "kept")[1] is (DIGEST in json.loads(content))
    file.unlink()
    for make in (file.mkdir, lambda: os.mkfifo(file), lambda: file.symlink_to(file)):
        make()
        with pytest.raises((Misuse, StoreFailure)):
            read_simulation(folder, "kept")
        file.rmdir() if file.is_dir() else file.unlink()
