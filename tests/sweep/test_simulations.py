"""Simulations that take long are kept: a sweep that goes on, or plays again, pays for none of them twice."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.problems import simulator
from cbobench.problems.simulated import Simulation
from cbobench.results import simulations
from cbobench.results.bundle import open_run
from cbobench.results.simulations import SimulationStore
from cbobench.sweep import run
from cbobench.sweep.estimate import estimate
from cbobench.sweep.run import plan
from tests.helpers import assert_same_rows

CODE = """
import signal
from dataclasses import dataclass
from cbobench.params import param
from cbobench.problems.simulator import Simulator

CALLS = []
STOP = [0]

@dataclass(kw_only=True)
class Slow(Simulator):
    source = "a test"
    about = "a bowl whose runs are counted"
    low, high = (0.0, 0.0), (2.0, 4.0)

    height: float = param(10.0, "f at the top")

    def simulate(self, x, gen):
        CALLS.append(tuple(x))
        if len(CALLS) == STOP[0]:
            signal.raise_signal(signal.SIGINT)
        if gen.random() < 0.1:
            raise ArithmeticError("diverged")
        f = self.height - (x[0] - 1) ** 2 - (x[1] - 2) ** 2
        return [f + 0.1 * gen.normal(), x[0] + x[1] - 2.5]
"""
SUITE = {
    "suite": "slow", "horizon": 6, "seeds": 2, "problems": [{"slow_sim:Slow": {"pilot": 16, "repeats": 2}}],
    "algorithms": ["random", "cei"],
}  # fmt: skip


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """The module of the simulator, whose runs all count as long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "slow_sim", raising=False)
    (tmp_path / "slow_sim.py").write_text(CODE)
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    return __import__("slow_sim")


def play(out, **options):
    return cbobench.run(SUITE, out=out, cpus=0, **options)


def test_a_stopped_sweep_repeats_no_run(counted, tmp_path):
    play(tmp_path / "whole")
    every = len(counted.CALLS)
    counted.CALLS.clear()
    counted.STOP[0] = every - 7
    assert play(tmp_path / "run").stopped
    assert len(cbobench.load_cells(tmp_path / "run")) < 4
    counted.STOP[0] = 0
    play(tmp_path / "run")
    assert len(counted.CALLS) == every + 1, "only the run that was interrupted is simulated again"
    assert_same_rows(tmp_path / "whole", tmp_path / "run")


def test_the_pilot_is_kept_with_the_run(counted, tmp_path):
    play(tmp_path / "run")
    counted.CALLS.clear()
    play(tmp_path / "run")
    assert counted.CALLS == []
    plan(SUITE, out=tmp_path / "other", cpus=0)
    assert len(counted.CALLS) == 17, "a pilot of 16 and one run again, for a run that holds none"
    assert not (tmp_path / "other").exists()


def test_longer_sweeps_go_on_from_what_is_kept(counted, tmp_path):
    play(tmp_path / "run")
    counted.CALLS.clear()
    play(tmp_path / "run", horizon=8)
    play(tmp_path / "alone", horizon=8)
    assert_same_rows_of = [cbobench.load_rounds(tmp_path / name, horizon=8) for name in ("run", "alone")]
    pd.testing.assert_frame_equal(*assert_same_rows_of)


def test_other_code_and_parameters_are_simulated_anew(counted, tmp_path, monkeypatch):
    play(tmp_path / "run")
    counted.CALLS.clear()
    other = SUITE | {"problems": [{"slow_sim:Slow": {"pilot": 16, "repeats": 2, "height": 9.0}}]}
    cbobench.run(other, out=tmp_path / "run", cpus=0)
    assert len(counted.CALLS) > 60
    counted.CALLS.clear()
    monkeypatch.setattr(simulations, "problem_hash", lambda problem: "edited")
    plan(SUITE, out=tmp_path / "run", cpus=0)
    assert len(counted.CALLS) == 17


def test_a_damaged_file_is_replaced(counted, tmp_path):
    play(tmp_path / "run")
    files = sorted((tmp_path / "run" / "simulations").iterdir())
    assert json.loads(files[0].read_text()).keys() == {"values", "size", "reason", "seconds"}
    for content, file in zip(("", "{}", "[1]"), files, strict=False):
        Path(file).write_text(content)
    counted.CALLS.clear()
    for file in (tmp_path / "run" / "cells").iterdir():
        file.unlink()
    play(tmp_path / "run")
    assert len(counted.CALLS) == 3


def test_randomness_of_its_own_is_found_although_runs_are_kept(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(counted.Slow, "simulate", lambda self, x, gen: [random.random(), 0.0])
    with pytest.raises(Misuse, match="other values for an equal generator"):
        play(tmp_path / "run")


def test_short_runs_are_not_kept(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(simulator, "SLOW", 1e9)
    play(tmp_path / "run")
    assert not (tmp_path / "run" / "simulations").exists()


def test_a_worker_sees_what_others_have_simulated_since_it_began(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(simulations, "REFRESH", 0.0)
    monkeypatch.setattr(simulations, "problem_hash", lambda problem: "one")
    folder = open_run(tmp_path / "run")
    (tmp_path / "run").mkdir()
    one, other = SimulationStore(folder), SimulationStore(folder)
    result = Simulation(np.array([1.0, -1.0]), "", 2.0)
    assert other.get("a") is None
    one.put("a", result)
    assert other.get("a") is None, "no folder is read anew for every call"
    other.put("b", result)
    assert other.get("a").values.tolist() == [1.0, -1.0]


def test_slow_simulators_are_cut_for_all_workers(counted, tmp_path, monkeypatch):
    """Ten seeds in lock step save what Python costs, which is nothing beside a simulation of seconds."""
    monkeypatch.setattr(run, "SLOW_SIMULATION", 1e9)
    assert [len(task.cells) for task in plan(SUITE, out=tmp_path / "fast", seeds=6, cpus=12).tasks] == [6, 6]
    monkeypatch.setattr(run, "SLOW_SIMULATION", 0.0)
    assert [len(task.cells) for task in plan(SUITE, out=tmp_path / "slow", seeds=6, cpus=12).tasks] == [1] * 12
    assert [len(task.cells) for task in plan(SUITE, out=tmp_path / "slow", seeds=6, cpus=2).tasks] == [6, 6]


def test_a_dry_run_says_what_is_kept(counted, tmp_path):
    todo = plan(SUITE, out=tmp_path / "run", cpus=0)
    assert "kept" not in estimate(todo, 0)
    play(tmp_path / "run")
    kept = len(list((tmp_path / "run" / "simulations").iterdir()))
    todo = plan(SUITE, out=tmp_path / "run", cpus=0, horizon=8)
    assert f"{kept} simulations of a second or more kept in the run" in estimate(todo, 0)


def test_another_block_is_refused_in_words(counted, tmp_path):
    play(tmp_path / "run")
    again = plan(SUITE, out=tmp_path / "run", cpus=0, block=1)
    assert "this run plays 2 seeds per task, as it began; for another --block, give a new --out" in again.notes
    assert plan(SUITE, out=tmp_path / "run", cpus=0, block=2).notes == plan(SUITE, out=tmp_path / "run", cpus=0).notes
