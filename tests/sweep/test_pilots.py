"""The pilot of a simulator: how many simulations it makes, where they run, what is said of it, and what is kept."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.play.failure import Interrupted
from cbobench.problems import pilot, simulator
from cbobench.problems.data import DataFolder
from cbobench.problems.simulator import Simulator
from cbobench.results.bundle import open_run
from cbobench.results.verify import verify
from cbobench.sweep import executors
from cbobench.sweep.interrupt import interruptible
from cbobench.sweep.preparation import ProcessPool, pilots_on
from cbobench.sweep.run import plan


@dataclass(kw_only=True)
class Exact(Simulator):
    """A slope without noise, which counts its calls in this process and in files."""

    source = "a test"
    about = "a slope"
    low, high = (0.0, 0.0), (1.0, 3.0)
    noisy = False
    calls: ClassVar[list[tuple[float, ...]]] = []
    stop = 0

    def simulate(self, x, gen):
        self.calls.append(tuple(x))
        if len(self.calls) == self.stop:
            signal.raise_signal(signal.SIGINT)
        return [np.sin(3 * x[0]) + x[1], x[0] - 0.5]


class Noisy(Exact):
    noisy = True

    def simulate(self, x, gen):
        return [x[0] + gen.normal(), x[1] - 0.5 + 0.1 * gen.normal()]


class Crashing(Noisy):
    def simulate(self, x, gen):
        if x[0] > 0.9:
            os._exit(1)
        return super().simulate(x, gen)


class Drawing(Exact):
    """It draws, and uses nothing of it."""

    def simulate(self, x, gen):
        return [super().simulate(x, gen)[0] + 0.0 * gen.normal(), x[0] - 0.5]


class Impure(Exact):
    def simulate(self, x, gen):
        return [x[0] + np.random.normal(), x[0] - 0.5]  # noqa: NPY002 - what it must not do


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Exact, "calls", [])
    monkeypatch.setattr(executors, "can_fork", lambda: True)


def prepared(cls, say=lambda text: None, **settings):
    made = cls(**settings)
    made.prepare(DataFolder(say=say))
    return made


def test_without_noise_each_point_is_simulated_once():
    task = prepared(Exact)
    assert len(Exact.calls) == len({*Exact.calls}) == 64
    assert task.pilot_facts.points == task.simulations[0] == 64


def test_without_noise_what_is_known_is_what_two_equal_runs_say(monkeypatch):
    """The numbers that were played before, when each point was simulated twice."""
    once = prepared(Exact).pilot_facts
    monkeypatch.setattr(Exact, "noisy", True)
    twice = prepared(Exact, pilot=128).pilot_facts
    for name in ("shift", "divisor", "norm", "noise", "sup", "slater", "share", "points", "failed"):
        np.testing.assert_array_equal(getattr(once, name), getattr(twice, name), err_msg=name)


def test_one_that_draws_is_looked_at_twice():
    prepared(Drawing)
    assert len(Exact.calls) == 66
    with pytest.raises(Misuse, match="other values for an equal generator"):
        prepared(Impure)


@pytest.mark.parametrize("cls", [Exact, Noisy])
def test_workers_give_the_same_pilot(monkeypatch, cls):
    here = prepared(cls)
    Exact.calls.clear()
    monkeypatch.setattr(pilot, "LONG_PILOT", 0.0)
    said = []
    with pilots_on(2):
        there = prepared(cls, said.append)
    assert len(Exact.calls) == (cls is Exact), "but the first"
    for name in ("shift", "divisor", "norm", "noise", "sup", "slater", "share", "points", "failed"):
        np.testing.assert_array_equal(getattr(here.pilot_facts, name), getattr(there.pilot_facts, name), err_msg=name)
    assert said[0].startswith(f"{cls.__name__}: a pilot of 64 simulations on 2 workers, about ")


def test_workers_are_not_started_for_a_short_pilot(monkeypatch):
    monkeypatch.setattr(ProcessPool, "run", lambda *args: pytest.fail("a worker is started"))
    with pilots_on(2):
        prepared(Exact)


def test_a_simulation_that_ends_its_worker_has_failed(monkeypatch):
    monkeypatch.setattr(pilot, "LONG_PILOT", 0.0)
    with pilots_on(2):
        task = prepared(Crashing)
    assert task.pilot_facts.failures.endswith("of 64 pilot simulations failed")
    with pilots_on(2), pytest.raises(Misuse, match=r"Crashing: simulate crashed its worker at x = \[0\.9"):
        prepared(Crashing, on_failure="fail")


class Hours(Exact):
    """Each simulation takes a minute of a clock."""

    now = 0.0

    def simulate(self, x, gen):
        type(self).now += 60.0
        return super().simulate(x, gen)


def test_a_long_pilot_says_how_long_the_rest_takes(monkeypatch):
    monkeypatch.setattr(Hours, "now", 0.0)
    monkeypatch.setattr(simulator, "monotonic", lambda: Hours.now)
    said = []
    prepared(Hours, said.append)
    assert said[0] == "Hours: a pilot of 64 simulations, about 63 min"
    assert said[1] == "Hours: 2 of 64 pilot simulations made, about 62 min left"
    assert len(said) == 63


SUITE = {"suite": "s", "horizon": 3, "seeds": 1, "algorithms": ["random"], "problems": [f"{__name__}:Exact"]}


def test_an_interrupted_pilot_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    monkeypatch.setattr(Exact, "stop", 40)
    with interruptible(), pytest.raises(Interrupted):
        cbobench.run(SUITE, out="run", cpus=0)
    assert len(list((tmp_path / "run" / "simulations").iterdir())) == 39
    Exact.calls.clear()
    monkeypatch.setattr(Exact, "stop", 0)
    plan(SUITE, out="run", cpus=0)
    assert len(Exact.calls) == 64 - 39
    assert cbobench.run(SUITE, out="run", cpus=0).played == 1
    assert verify(open_run("run")).damaged == []


def test_an_interrupted_pilot_is_not_kept_in_a_folder_of_another_kind(monkeypatch, tmp_path):
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    monkeypatch.setattr(Exact, "stop", 40)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.tex").touch()
    with interruptible(), pytest.raises(Interrupted):
        plan(SUITE, out="thesis", cpus=0)
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["a.tex"]


def test_show_makes_no_pilot(capsys):
    assert main(["show", f"{__name__}:Exact"]) == 0
    assert "posterior: " in capsys.readouterr().out
    assert Exact.calls == []
