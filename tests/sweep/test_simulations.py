"""Simulations that take long are kept: a sweep that goes on, plays again, or plays another method
pays for none of them twice.
"""

from __future__ import annotations

import json
import pickle
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.problems.simulators import simulator
from cbobench.problems.simulators.kept import SimulationResult
from cbobench.results import simulations
from cbobench.results.folder import RunFolder, open_run
from cbobench.results.simulations import SimulationStore
from cbobench.results.verify import verify
from cbobench.suite.call import Call
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from tests.helpers import assert_same_rows, long, play_here

CODE = """
import signal
from dataclasses import dataclass
from cbobench.params import param
from cbobench.problems.simulators.simulator import Simulator

CALLS = []
FAILED = []
STOP = [0]
SHARE = [0.1]  # of the runs that fail

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
        if gen.random() < SHARE[0]:
            FAILED.append(tuple(x))
            raise ArithmeticError("diverged")
        f = self.height - (x[0] - 1) ** 2 - (x[1] - 2) ** 2
        return [f + 0.1 * gen.normal(), x[0] + x[1] - 2.5]


class Best(Slow):
    best_known = (0.5, 1.0)
"""
SUITE = {
    "suite": "slow",
    "horizon": 6,
    "seeds": 2,
    "problems": [{"slow_sim:Slow": {"repeats": 2}}],
    "algorithms": ["random", "cei"],
}
CHEAP = SUITE | {"horizon": 3, "algorithms": ["random"]}


def import_anew(folder, monkeypatch, name, code):
    """A module of a user's in the current folder, whose simulations all count as long."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    (folder / f"{name}.py").write_text(code)
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    return __import__(name)


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """The module of the simulator, whose runs all count as long."""
    return import_anew(tmp_path, monkeypatch, "slow_sim", CODE)


def play(out, **options):
    return play_here(SUITE, out, **options)


def test_a_stopped_sweep_repeats_no_run(counted, tmp_path):
    play(tmp_path / "whole")
    every, failed = len(counted.CALLS), len(counted.FAILED)
    counted.CALLS.clear()
    counted.FAILED.clear()
    counted.STOP[0] = every - 7
    assert play(tmp_path / "run").stopped
    assert len(cbobench.load_cells(tmp_path / "run")) < 4
    counted.STOP[0] = 0
    play(tmp_path / "run")
    repeated = len(counted.FAILED) - failed
    assert len(counted.CALLS) == every + 1 + repeated, (
        "only the run that was interrupted, and failures, are again"
    )
    assert_same_rows(tmp_path / "whole", tmp_path / "run")


def test_longer_sweeps_go_on_from_what_is_kept(counted, tmp_path):
    play(tmp_path / "run")
    counted.CALLS.clear()
    play(tmp_path / "run", horizon=8)
    play(tmp_path / "alone", horizon=8)
    assert_same_rows_of = [
        cbobench.load_rounds(tmp_path / name, horizon=8) for name in ("run", "alone")
    ]
    pd.testing.assert_frame_equal(*assert_same_rows_of)


def test_other_code_and_parameters_are_simulated_anew(counted, tmp_path, monkeypatch):
    """And what is neither is not."""
    play(tmp_path / "run")
    every = len(counted.CALLS) - len(counted.FAILED)
    shutil.rmtree(tmp_path / "run" / "cells")
    counted.CALLS.clear()
    counted.FAILED.clear()
    play(tmp_path / "run")
    assert len(counted.CALLS) == len(counted.FAILED), "failures alone"
    higher = SUITE | {"problems": [{"slow_sim:Slow": {"repeats": 2, "height": 9.0}}]}
    play_here(higher, tmp_path / "run")
    assert len(counted.CALLS) > every / 2
    shutil.rmtree(tmp_path / "run" / "cells")
    counted.CALLS.clear()
    counted.FAILED.clear()
    monkeypatch.setattr(simulations, "source_hash", lambda problem: "edited")
    play(tmp_path / "run")
    assert len(counted.CALLS) - len(counted.FAILED) == every


def flip(file):
    """One bit of a value, so that the file is as well formed as before."""
    content = file.read_bytes()
    at = content.rindex(b".") + 1  # its last number
    file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    json.loads(file.read_text())


def test_damaged_files_are_said_and_simulated_again(counted, tmp_path):
    """Those that are no simulations at all, too."""
    play_here(CHEAP, tmp_path / "whole")
    play_here(CHEAP, tmp_path / "run")
    files = sorted((tmp_path / "run" / "simulations").iterdir())
    for file in files[3:]:
        flip(file)
    for content, file in zip(("", "{}", "[1]"), files, strict=False):
        file.write_text(content)
    shutil.rmtree(tmp_path / "run" / "cells")
    counted.CALLS.clear()
    notes = []
    play_here(CHEAP, tmp_path / "run", on_note=notes.append)
    assert_same_rows(tmp_path / "whole", tmp_path / "run")
    assert len(counted.CALLS) >= len(files)
    damage_notes = [note for note in notes if note.startswith("damaged, and simulated again: ")]
    assert sum(int(note.split()[4]) for note in damage_notes) >= len(files) - 3
    assert all(
        "(first simulations/" in note and "cbobench verify names all" in note
        for note in damage_notes
    )


def test_verify_counts_and_names_damaged_simulations(counted, tmp_path, capsys):
    run = tmp_path / "run"
    play_here(CHEAP, run)
    folder = open_run(run)
    before = verify(folder)
    files = sorted((run / "simulations").iterdir())
    assert before.files == len(files) + len(list(run.glob("*/*.parquet"))) + 1
    assert before.damaged == []
    flip(files[0])
    files[1].write_bytes(files[2].read_bytes())
    condition = verify(folder)
    assert [damage.file for damage in condition.damaged] == [
        f"simulations/{file.name}" for file in files[:2]
    ]
    assert {damage.why for damage in condition.damaged} == {
        "is not what was written: something has changed it since"
    }
    assert main(["verify", str(run)]) == 1
    assert capsys.readouterr().out.startswith(
        f"2 of {condition.files} files are damaged; 2 of 2 cells are whole"
    )
    assert play_here(CHEAP, run, again="damaged").played == 0
    assert verify(folder).damaged == []


def test_failures_are_called_again(counted, tmp_path):
    """Also those that took long: `--again failed` is of no use where what is kept fails again."""
    strict = CHEAP | {"problems": [{"slow_sim:Slow": {"on_failure": "fail"}}]}
    counted.SHARE[0] = 1.0
    assert execute(plan(Call(strict, out=tmp_path / "run", cpus=0))).failed == 2
    counted.SHARE[0] = 0.0
    played_again = play_here(strict, tmp_path / "run", again=["failed"])
    assert (played_again.played, played_again.failed) == (2, 0)


def test_a_plan_simulates_nothing(counted, tmp_path):
    """Nor does one whose methods lack a library, or are not told what they read."""
    plan(Call(SUITE, out=tmp_path / "run", cpus=0))
    for method, why in (("ckb-ucb", "give B: NUMBER"), ("stageopt", "a safe seed set")):
        with pytest.raises(Misuse, match=why):
            plan(Call(SUITE | {"algorithms": ["cei", method]}, out=tmp_path / "run", cpus=0))
    best = f"{counted.__name__}:Best"
    plan(Call(SUITE | {"problems": [best]}, out=tmp_path / "run", cpus=0))
    assert main(["show", "slow_sim:Slow"]) == 0
    assert counted.CALLS == []
    assert not (tmp_path / "run").exists()


def test_short_runs_are_not_kept(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(simulator, "SLOW", 1e9)
    play(tmp_path / "run")
    assert not (tmp_path / "run" / "simulations").exists()


def test_a_worker_sees_what_others_have_simulated_since_it_began(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(simulations, "source_hash", lambda problem: "one")
    (tmp_path / "run").mkdir()
    first, second = (SimulationStore(open_run(tmp_path / "run"), "p") for _ in range(2))
    assert second.get("a") is None
    first.put("a", SimulationResult(np.array([1.0, -1.0]), "", 2.0))
    assert second.get("a").values.tolist() == [1.0, -1.0]
    first.put("failed", SimulationResult(np.array([np.nan, np.nan]), "diverged", 2.0))
    assert second.get("failed") is None


def test_cells_of_a_simulator_are_cut_for_all_workers(counted, tmp_path):
    """Ten seeds in lock step save what Python costs, which is little beside a simulation."""

    def sizes(cpus, suite=SUITE):
        todo = plan(Call(suite, out=tmp_path / f"{cpus}", seeds=6, cpus=cpus))
        return [len(task.cells) for task in todo.tasks]

    assert sizes(12) == [1] * 12
    assert sizes(2) == [6, 6]
    assert sizes(12, SUITE | {"problems": ["rkhs-1d"]}) == [6, 6], "negative control"


QUIET = """
import os, time
from dataclasses import dataclass
from pathlib import Path
from cbobench.problems.simulators import simulator
from cbobench.problems.simulators.simulator import Simulator

simulator.SLOW = 0.0  # in workers, too, which may be fresh interpreters; the fixture restores it here
PLACE = Path("calls")
PLACE.mkdir(exist_ok=True)

@dataclass(kw_only=True)
class Quiet(Simulator):
    source = "a test"
    about = "a bowl without noise, each of whose runs leaves a file"
    low, high = (0.0, 0.0), (2.0, 4.0)
    noisy = False

    def simulate(self, x, gen):
        (PLACE / f"{os.getpid()}-{time.monotonic_ns()}").write_text(repr(tuple(x)))
        return [-((x[0] - 1) ** 2) - (x[1] - 2) ** 2, x[0] + x[1] - 2.5]


class Noisy(Quiet):
    noisy = True

    def simulate(self, x, gen):
        f, g = super().simulate(x, gen)
        return [f + gen.normal(), g]


class Aimed(Quiet):
    target = 0.0

    def simulate(self, x, gen):
        return [super().simulate(x, gen)[0], 1.0 + x[0]]
"""  # noqa: E501


@pytest.fixture
def quiet(tmp_path, monkeypatch):
    """What every run of the simulators has left."""
    import_anew(tmp_path, monkeypatch, "quiet_sim", QUIET)
    return lambda: [file.read_text() for file in (tmp_path / "calls").iterdir()]


def with_quiet(name="Quiet", **changes):
    return SUITE | {"problems": [f"quiet_sim:{name}"]} | changes


@pytest.mark.parametrize("name", ["Noisy", *long("Quiet")])
def test_another_methods_simulations_are_not_made_again(quiet, name):
    """Eight common first points, in two seeds: three of four methods find them kept. Of a noisy
    simulator, too, as they meet the same random numbers there.
    """
    problem = {f"quiet_sim:{name}": {"repeats": 0}}
    methods = ["cei", "scbo", "random", "sobol"]
    suite = with_quiet(problems=[problem], initial={"sobol": 8}, horizon=11, algorithms=methods)
    play_here(suite, "four")
    assert len(quiet()) == 88 - 48
    assert len(cbobench.load_rounds("four")) == 88


def test_a_kept_simulation_answers_equal_points_of_a_block(quiet, tmp_path):
    problem = __import__("quiet_sim").Quiet()
    x = np.array([[1.0, 2.0], [0.5, 1.0], [1.0, 2.0]])
    gens = [np.random.default_rng(i) for i in range(3)]
    (tmp_path / "run").mkdir()
    with problem.kept_in(SimulationStore(RunFolder(str(tmp_path / "run")), "quiet_sim:Quiet")):
        observations, _ = problem.observe(x, gens)
        sent = pickle.loads(pickle.dumps(problem))  # noqa: S301 - what has just been pickled
    assert len(quiet()) == 2
    assert observations[0].tolist() == observations[2].tolist() != observations[1].tolist()
    assert sent._store is problem._store is None, "a worker has its own"


def test_simulations_in_all_are_rounds_and_a_point_per_cell_at_most(quiet):
    """Without noise no point is simulated twice, and none that is recommended before the end."""
    suite = with_quiet(horizon=12, seeds=3, algorithms=["cei", "scbo", "random"])
    todo = plan(Call(suite, out="three", cpus=0))
    execute(todo)
    rows = cbobench.load_rounds("three")
    assert len(quiet()) == len({*quiet()}) <= len(rows) + len(cbobench.load_cells("three"))
    assert rows["recommended_violation"].notna().equals(rows["t"] == 12)


@pytest.mark.parametrize(("measure", "most"), [("always", 24), ("end", 2)])
def test_where_there_is_a_regret_every_recommended_point_is_simulated_unless_only_in_the_end(
    quiet, measure, most
):
    """Here nothing is feasible: else a method recommends the best point that it has measured."""
    problem = {"quiet_sim:Aimed": {"measure": measure}}
    suite = with_quiet(horizon=12, problems=[problem], algorithms=["cei"])
    todo = plan(Call(suite, out="aimed", cpus=0))
    execute(todo)
    rows = cbobench.load_rounds("aimed")
    is_known = rows["recommended_violation"].notna()
    assert is_known.all() if measure == "always" else is_known.equals(rows["t"] == 12)
    played = {tuple(x) for x in rows["x"]}
    assert len(quiet()) - len(played) <= most
    assert (len(quiet()) - len(played) > 2) == (measure == "always")


def test_noise_takes_repeats_of_every_point(quiet):
    problem = {"quiet_sim:Noisy": {"repeats": 4}}
    todo = plan(Call(with_quiet(problems=[problem], algorithms=["random"]), out="n", cpus=0))
    execute(todo)
    assert len(quiet()) == 2 * 6 * 5, "an incumbent was played"


def test_seconds_of_cells_are_those_of_their_simulations(quiet, tmp_path, monkeypatch):
    """On the clock, whether they were kept or made, so that estimates rest on what they take."""
    clock = iter(range(10**6))
    monkeypatch.setattr(simulator, "monotonic", lambda: 10.0 * next(clock))
    for name in ("first", "again"):
        play_here(with_quiet(algorithms=["random"]), "run")
        seconds = cbobench.load_cells("run")["seconds"]
        assert seconds.tolist() == [6 * 10.0] * 2, name
        shutil.rmtree(tmp_path / "run" / "cells")
    assert len(quiet()) == 12
