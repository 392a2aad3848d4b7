"""`--dry-run` says what a sweep takes: of algorithms whose cost is known, and of cells that were
played.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from cbobench.algorithms.references import Random
from cbobench.params import param
from cbobench.play import play as plays
from cbobench.play.block import start
from cbobench.problems.simulators.simulator import Simulator
from cbobench.suite.call import Call
from cbobench.sweep import dry_run
from cbobench.sweep.plan import plan
from cbobench.watcher import SILENT

ROUND = 20e-6  # seconds of a seed-round at the beginning, on a clock that nothing else moves
spent = [0.0]


@pytest.fixture
def own_clock(monkeypatch):
    clock = dict.fromkeys(("thread_time", "process_time", "monotonic"), lambda: spent[0])
    for module in (dry_run, plays):
        monkeypatch.setattr(module, "time", SimpleNamespace(**clock))


@dataclass(kw_only=True)
class Growing(Random):
    """Takes time for each seed: more in every round."""

    growth: float = param(0.01, "dearer per round", at_least=0.0)

    def ask(self, t):
        spent[0] += ROUND * self.setting.replicates * (1 + self.growth * t)
        return super().ask(t)


def truth(todo, growth):
    horizon = todo.suite.grid.horizon
    return ROUND * todo.cells * (horizon + growth * horizon * (horizon + 1) / 2)


def work(todo, monkeypatch):
    """Seconds of work that it says, of rounds alone."""
    for name in ("CELL_SECONDS", "ROW_SECONDS", "TASK_SECONDS"):
        monkeypatch.setattr(dry_run, name, 0.0)
    durations = []
    monkeypatch.setattr(dry_run, "duration", lambda seconds: durations.append(seconds) or "")
    dry_run.estimate(todo, 2, SILENT)
    return durations[-1]


def growing(write_suite, tmp_path, growth, horizon=2000, **options):
    text = f"suite: t\nhorizon: {horizon}\nseeds: 10\nproblems: [rkhs-1d]\nalgorithms:\n"
    text += f"  - 'tests.sweep.test_dry_run:Growing': {{growth: {{sweep: {growth}}}}}\n"
    return plan(Call(write_suite(text), out=tmp_path / "r", cpus=0, **options))


@pytest.mark.usefixtures("own_clock")
@pytest.mark.parametrize("growth", [pytest.param(0.0, marks=pytest.mark.long), 0.01])
def test_a_cost_that_grows_is_carried_on(write_suite, tmp_path, monkeypatch, growth):
    todo = growing(write_suite, tmp_path, [growth], horizon=2000 if growth else 1000)
    expected = truth(todo, growth)
    assert expected / 1.1 < work(todo, monkeypatch) < 1.1 * expected
    if growth:
        assert truth(todo, 0.0) < expected / 5, "negative control: what it takes at the beginning"


@pytest.mark.usefixtures("own_clock")
def test_pairs_are_tried_as_far_as_there_is_time(write_suite, tmp_path, monkeypatch):
    todo = growing(write_suite, tmp_path, [0.0, 0.3, 0.001, 0.002], horizon=200)
    costs = dry_run.try_pairs(todo, SILENT)
    expected = [ROUND * (1 + growth * 100) for growth in (0.0, 0.3, 0.001, 0.002)]
    seconds = [costs[pair_cells.pair.title].seconds for pair_cells in todo.tasks.by_pair]
    assert seconds == pytest.approx(expected, rel=0.1)
    monkeypatch.setattr(dry_run, "try_task", lambda *words: costs.popitem()[1] if costs else None)
    costs = {"b": dry_run.Cost(1.0), "a": dry_run.Cost(3.0)}
    estimated = dry_run.try_pairs(todo, SILENT).values()
    assert sorted(cost.seconds for cost in estimated) == [1.0, 2.0, 2.0, 3.0], (
        "the others: the mean"
    )


@dataclass(kw_only=True)
class Slow(Random):
    """Takes an hour for its first round."""

    def ask(self, t):
        try:
            time.sleep(3600)
        except Exception:  # as methods do that call a library
            return super().ask(t)
        return super().ask(t)


def test_a_slow_method_does_not_hold_it_up(write_suite, tmp_path, monkeypatch):
    monkeypatch.setattr(dry_run, "BUDGET", 1.0)
    text = "suite: t\nhorizon: 50\nseeds: 2\nproblems: [rkhs-1d, {rkhs-1d: {h: 0.3}}]\n"
    text += "algorithms: ['tests.sweep.test_dry_run:Slow', random]\n"
    todo = plan(Call(write_suite(text), out=tmp_path / "r", cpus=0))
    lines = dry_run.estimate(todo, 2, SILENT)
    assert "time: more than " in lines
    assert f"not tried, or only in the first rounds, for want of time: {__name__}:Slow\n" in lines


@dataclass(kw_only=True)
class Refusing(Random):
    """Cannot be played."""

    def ask(self, t):
        raise ValueError


def test_what_cannot_be_tried_is_named_and_not_0_s(write_suite, tmp_path):
    text = (
        "suite: t\nhorizon: 50\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: "
        "['tests.sweep.test_dry_run:Refusing']\n"
    )
    lines = dry_run.estimate(plan(Call(write_suite(text), out=tmp_path / "s", cpus=0)), 2, SILENT)
    assert "time: not estimated\n" in lines
    assert f": {__name__}:Refusing\n" in lines


def cost_of(todo, seconds):
    return dry_run.try_task(*todo.suite.problems.values(), todo.tasks[0], None, seconds)


@dataclass(kw_only=True)
class Fitting(Random):
    """Costs as much as it has observations, and ten times that whenever it fits a model."""

    shared: bool = param(False, "whether a block costs no more than a seed")

    def tell(self, t, actions, feedback):
        seeds = 1 if self.shared else self.setting.replicates
        spent[0] += ROUND / 10 * t * seeds * (10 if t % 7 == 0 else 1)
        super().tell(t, actions, feedback)


@pytest.mark.usefixtures("own_clock")
@pytest.mark.parametrize("shared", [False, True])
def test_rounds_follow_made_up_data_and_blocks_share(write_suite, tmp_path, shared):
    text = "suite: t\nhorizon: 400\nseeds: 8\nproblems: [rkhs-1d]\n"
    text += f"algorithms: ['tests.sweep.test_dry_run:Fitting': {{shared: {str(shared).lower()}}}]\n"
    todo = plan(Call(write_suite(text), out=tmp_path / "r", cpus=0))
    cost, before = cost_of(todo, np.inf), spent[0]
    play, _ = start(*todo.suite.problems.values(), todo.tasks[0].cells, 400, None)
    for _ in play:
        pass
    truth = spent[0] - before
    assert truth / 2 < cost.seconds * 8 * 400 < truth * 2


@pytest.mark.usefixtures("own_clock")
def test_a_suite_with_a_design_of_its_own_chooses_nothing_in_it(write_suite, tmp_path):
    text = "suite: t\nhorizon: 60\nseeds: 1\nproblems: [{rkhs: {n: 100}}]\ninitial: {sobol: 20}\n"
    text += "algorithms: ['tests.sweep.test_dry_run:Growing': {growth: 0.0}]\n"
    cost = cost_of(plan(Call(write_suite(text), out=tmp_path / "r", cpus=0)), np.inf)
    assert (cost.is_bound, cost.seconds * 60) == (False, pytest.approx(ROUND * 40, rel=0.1))


simulated = []


@dataclass(kw_only=True)
class Oven(Simulator):
    """A simulator that keeps what it simulates."""

    source = "ours"
    about = "an oven"
    low = (0.0,)
    high = (1.0,)

    def simulate(self, x, gen):
        simulated.append(x)
        noise = 0.1 * gen.standard_normal(2)
        return [np.sin(3 * x[0]) + noise[0], x[0] - 0.5 + noise[1]]


def test_nothing_is_simulated(write_suite, tmp_path):
    text = "suite: t\nhorizon: 30\nseeds: 2\nproblems: ['tests.sweep.test_dry_run:Oven']\n"
    todo = plan(Call(write_suite(text + "algorithms: [cei]\n"), out=tmp_path / "r", cpus=0))
    simulated.clear()
    assert not cost_of(todo, 20.0).is_bound
    assert simulated == []
