"""Simulations that take long are kept: a sweep that goes on, or plays again, pays for none of them
twice.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.call import Call
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.problems import simulated, simulator
from cbobench.problems.data import Site
from cbobench.problems.simulated import SimulationResult
from cbobench.results import running, simulations
from cbobench.results.bundle import open_run
from cbobench.results.folder import RunFolder
from cbobench.results.simulations import SimulationStore
from cbobench.results.verify import verify
from cbobench.sweep.blocks import Pace, count_ahead
from cbobench.sweep.dry_run import estimate
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from cbobench.watcher import SILENT
from tests.conftest import ROOT
from tests.helpers import assert_same_rows

CODE = """
import signal
from dataclasses import dataclass
from cbobench.params import param
from cbobench.problems.simulator import Simulator

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
"""
SUITE = {
    "suite": "slow",
    "horizon": 6,
    "seeds": 2,
    "problems": [{"slow_sim:Slow": {"pilot": 16, "repeats": 2}}],
    "algorithms": ["random", "cei"],
}
CHEAP = SUITE | {"horizon": 3, "algorithms": ["random"]}


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
    """And what is neither is not: its pilot is kept with the run."""
    play(tmp_path / "run")
    counted.CALLS.clear()
    plan(Call(SUITE, out=tmp_path / "run", cpus=0))
    assert counted.CALLS == []
    higher_suite = SUITE | {
        "problems": [{"slow_sim:Slow": {"pilot": 16, "repeats": 2, "height": 9.0}}]
    }
    cbobench.run(higher_suite, out=tmp_path / "run", cpus=0)
    assert len(counted.CALLS) > 60
    counted.CALLS.clear()
    monkeypatch.setattr(simulations, "problem_hash", lambda problem: "edited")
    plan(Call(SUITE, out=tmp_path / "run", cpus=0))
    assert len(counted.CALLS) == 17


def flip(file):
    """One bit of a value, so that the file is as well formed as before."""
    content = file.read_bytes()
    at = content.rindex(b".") + 1  # its last number
    file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    json.loads(file.read_text())


def test_damaged_files_are_said_and_simulated_again(counted, tmp_path):
    """Of the pilot, and of cells; those that are no simulations at all, too."""
    cbobench.run(CHEAP, out=tmp_path / "whole", cpus=0)
    cbobench.run(CHEAP, out=tmp_path / "run", cpus=0)
    files = sorted((tmp_path / "run" / "simulations").iterdir())
    for file in files[3:]:
        flip(file)
    for content, file in zip(("", "{}", "[1]"), files, strict=False):
        file.write_text(content)
    for file in (tmp_path / "run" / "cells").iterdir():
        file.unlink()
    counted.CALLS.clear()
    notes = []
    cbobench.run(CHEAP, out=tmp_path / "run", cpus=0, on_note=notes.append)
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
    cbobench.run(CHEAP, out=run, cpus=0)
    folder = open_run(run)
    before = verify(folder)
    files = sorted((run / "simulations").iterdir())
    assert before.files == len(files) + len(list(run.glob("*/*.parquet"))) + 2
    assert (before.damaged, before.unsigned) == ([], 0)
    flip(files[0])
    files[1].write_bytes(files[2].read_bytes())
    old = json.loads(files[3].read_text())
    files[3].write_text(
        json.dumps({key: old[key] for key in ("values", "size", "reason", "seconds")})
    )
    condition = verify(folder)
    assert [damage.file for damage in condition.damaged] == [
        f"simulations/{file.name}" for file in files[:2]
    ]
    assert {damage.why for damage in condition.damaged} == {
        "is not what was written: something has changed it since"
    }
    assert condition.unsigned == 1
    assert main(["verify", str(run), "--repair"]) == 0
    assert capsys.readouterr().out.startswith(
        f"2 of {condition.files} files are damaged; 2 of 2 cells are whole"
    )
    assert verify(folder).damaged == []
    assert (run / "quarantine" / "simulations" / files[0].name).is_file()
    assert (run / "run.json").is_file()


def test_failures_are_called_again(counted, tmp_path):
    """Also those that took long: `--again failed` is of no use where what is kept fails again."""
    strict = CHEAP | {"problems": [{"slow_sim:Slow": {"pilot": 16, "on_failure": "fail"}}]}
    counted.SHARE[0] = 0.0
    todo = plan(Call(strict, out=tmp_path / "run", cpus=0))
    counted.SHARE[0] = 1.0
    assert execute(todo).failed == 2
    counted.SHARE[0] = 0.0
    played_again = cbobench.run(strict, out=tmp_path / "run", cpus=0, again=["failed"])
    assert (played_again.played, played_again.failed) == (2, 0)


def test_failures_of_the_pilot_are_kept(counted, tmp_path):
    """The units of the run rest on them, so that they must not change when it goes on."""
    counted.SHARE[0] = 0.2
    cbobench.run(CHEAP, out=tmp_path / "run", cpus=0)
    assert counted.FAILED
    counted.SHARE[0] = 0.0
    counted.CALLS.clear()
    plan(Call(CHEAP, out=tmp_path / "run", cpus=0))
    assert counted.CALLS == []


@pytest.mark.parametrize("page", ["runs", "own_problem", "suites"])
def test_pages_say_from_when_on_simulations_are_kept(page):
    """On a disk, and in a bucket, where it takes longer to write them."""
    text = " ".join((ROOT / "docs" / f"{page}.md").read_text().split())
    on_disk, in_bucket = (
        re.escape(f"{seconds:g} s") for seconds in (simulator.SLOW, simulator.SLOW_FOR_BUCKET)
    )
    assert (
        len(
            re.findall(
                rf"\b{on_disk} (?:or more|on) \(in a bucket (?:from )?{in_bucket} (?:or more|on)\)",
                text,
            )
        )
        == 1
    )


def test_short_runs_are_not_kept(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(simulator, "SLOW", 1e9)
    play(tmp_path / "run")
    assert not (tmp_path / "run" / "simulations").exists()


def test_a_worker_sees_what_others_have_simulated_since_it_began(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(simulations, "REFRESH", 0.0)
    monkeypatch.setattr(simulations, "problem_hash", lambda problem: "one")
    folder = open_run(tmp_path / "run")
    (tmp_path / "run").mkdir()
    first_store, second_store = SimulationStore(folder), SimulationStore(folder)
    result = SimulationResult(np.array([1.0, -1.0]), "", 2.0)
    assert second_store.get("a") is None
    first_store.put("a", result)
    assert second_store.get("a") is None, "no folder is read anew for every call"
    second_store.put("b", result)
    assert second_store.get("a").values.tolist() == [1.0, -1.0]


def test_slow_simulators_are_cut_for_all_workers(counted, tmp_path, monkeypatch):
    """Ten seeds in lock step save what Python costs, which is nothing beside a simulation of
    seconds.
    """
    monkeypatch.setattr("cbobench.sweep.plan.SLOW_SIMULATION", 1e9)
    assert [
        len(task.cells) for task in plan(Call(SUITE, out=tmp_path / "fast", seeds=6, cpus=12)).tasks
    ] == [6, 6]
    monkeypatch.setattr("cbobench.sweep.plan.SLOW_SIMULATION", 0.0)
    assert [
        len(task.cells) for task in plan(Call(SUITE, out=tmp_path / "slow", seeds=6, cpus=12)).tasks
    ] == [1] * 12
    assert [
        len(task.cells) for task in plan(Call(SUITE, out=tmp_path / "slow", seeds=6, cpus=2)).tasks
    ] == [6, 6]


def test_a_dry_run_says_what_is_kept(counted, tmp_path):
    todo = plan(Call(SUITE, out=tmp_path / "run", cpus=0))
    assert "kept" not in estimate(todo, 0, SILENT)
    play(tmp_path / "run")
    kept_count = len(list((tmp_path / "run" / "simulations").iterdir()))
    todo = plan(Call(SUITE, out=tmp_path / "run", cpus=0, horizon=8))
    assert f"{kept_count} simulations kept in the run" in estimate(todo, 0, SILENT)


def test_another_block_is_refused_in_words(counted, tmp_path):
    play(tmp_path / "run")
    second_plan = plan(Call(SUITE, out=tmp_path / "run", cpus=0, block=1))
    assert (
        "this run plays 2 seeds per task, as it began; for another --block, give a new --out"
        in second_plan.notes
    )
    assert (
        plan(Call(SUITE, out=tmp_path / "run", cpus=0, block=2)).notes
        == plan(Call(SUITE, out=tmp_path / "run", cpus=0)).notes
    )


QUIET = """
import os, time
from dataclasses import dataclass
from pathlib import Path
from cbobench.problems import simulator
from cbobench.problems.simulator import Simulator

simulator.SLOW = 0.0  # in workers, too, which may be fresh interpreters; the fixture restores it here
PLACE = Path("calls")
KILL = Path("kill")
PLACE.mkdir(exist_ok=True)

@dataclass(kw_only=True)
class Quiet(Simulator):
    source = "a test"
    about = "a bowl without noise, each of whose runs leaves a file"
    low, high = (0.0, 0.0), (2.0, 4.0)
    noisy = False

    def simulate(self, x, gen):
        (PLACE / f"{os.getpid()}-{time.monotonic_ns()}").write_text(repr(tuple(x)))
        if KILL.exists():
            KILL.unlink()
            os._exit(1)
        time.sleep(0.02)
        return [-((x[0] - 1) ** 2) - (x[1] - 2) ** 2, x[0] + x[1] - 2.5]
"""  # noqa: E501


@pytest.fixture
def quiet(tmp_path, monkeypatch):
    """A prepared simulator without noise, the store of a run on a disk, and what every run of it
    has left.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "quiet_sim", raising=False)
    (tmp_path / "quiet_sim.py").write_text(QUIET)
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    suite = SUITE | {"problems": [{"quiet_sim:Quiet": {"pilot": 8}}]}
    (problem,) = plan(Call(suite, out=tmp_path / "run", cpus=0)).suite.problems.values()
    (tmp_path / "run").mkdir()

    def calls():
        return [file.read_text() for file in (tmp_path / "calls").iterdir()]

    for file in (tmp_path / "calls").iterdir():
        file.unlink()
    return problem, tmp_path / "run", calls


def observe(problem, run, order, values=None):
    """One worker: simulations at the points of a grid, in an order, each with random numbers of its
    own.
    """
    x = np.stack([np.linspace(0, 2, 8), np.linspace(0, 4, 8)], axis=1)[order]
    with problem.at(Site(store=SimulationStore(RunFolder(str(run))).of("quiet_sim:Quiet"))):
        observations = [
            problem.observe(part, [np.random.default_rng(os.getpid()) for _ in part])
            for part in np.split(x, 4)
        ]
    if values is not None:
        values.put((order, np.concatenate(observations).tolist()))


def test_workers_that_ask_for_one_simulation_share_it(quiet):
    """Four of them, some in the reverse order: every point is simulated once, and none waits for
    ever.
    """
    problem, run, calls = quiet
    context = multiprocessing.get_context("fork")
    values, orders = (
        context.Queue(),
        [[*range(8)], [*range(7, -1, -1)], [*range(8)], [3, 3, 0, 7, 0, 7, 5, 5]],
    )
    workers = [
        context.Process(target=observe, args=(problem, run, order, values)) for order in orders
    ]
    for worker in workers:
        worker.start()
    reported = [values.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert len(calls()) == len({*calls()}) == 8
    by_point = {}
    for order, observations in reported:
        for i, value in zip(order, observations, strict=True):
            assert by_point.setdefault(i, value) == value
    assert not [*run.glob("simulations/.*")], "nobody runs one any more"


def test_what_a_worker_that_died_has_begun_is_simulated_by_another(quiet, tmp_path):
    problem, run, calls = quiet
    (tmp_path / "kill").touch()
    context = multiprocessing.get_context("fork")
    worker = context.Process(target=observe, args=(problem, run, [*range(8)]))
    worker.start()
    worker.join()
    assert (worker.exitcode, len(calls())) == (1, 1)
    assert len([*run.glob("simulations/.*.running")]) == 1
    observe(problem, run, [*range(8)])
    assert len(calls()) == 1 + 8, "the one that was not ended, again"
    assert not [*run.glob("simulations/.*")]


def test_one_that_takes_far_too_long_elsewhere_is_no_longer_waited_for(quiet, monkeypatch):
    problem, run, calls = quiet
    monkeypatch.setattr(simulated, "PATIENCE", 0.1)
    monkeypatch.setattr(simulated, "LEAST_WAIT", 0.0)
    store = SimulationStore(RunFolder(str(run)))
    x, gen = np.array([[1.0, 2.0]]), np.random.default_rng(1)
    with problem.at(Site(store=store.of("quiet_sim:Quiet"))):
        (name,) = (key for key in [problem._key(x[0], gen, False)])
        assert store.begin(name)
        assert not store.begin(name), "this process runs it already"
        problem.observe(x, [gen])
        store.end(name)
    assert len(calls()) == 1


def test_a_silent_machine_holds_no_simulation(quiet, monkeypatch):
    problem, run, calls = quiet
    monkeypatch.setattr(running, "EXPIRES_AFTER", 0.0)
    monkeypatch.setattr(simulated, "PATIENCE", 1e6)
    store = SimulationStore(RunFolder(str(run)))
    x, gen = np.array([[1.0, 2.0]]), np.random.default_rng(1)
    with problem.at(Site(store=store.of("quiet_sim:Quiet"))):
        name = store._name(problem._key(x[0], gen, False))
        file = run / "simulations" / f".{name}.running"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"machine": "elsewhere", "pid": 1, "born": "1"}))
        problem.observe(x, [gen])
    assert len(calls()) == 1
    assert not file.exists()


def test_simulations_in_all_are_rounds_pilot_and_a_point_per_cell_at_most(quiet):
    """Four workers, without noise: no point is simulated twice, and none that is recommended before
    the end.
    """
    _, _, calls = quiet
    suite = SUITE | {"horizon": 12, "seeds": 3, "algorithms": ["cei", "scbo", "random", "ckb-ucb"]}
    todo = plan(
        Call(suite | {"problems": [{"quiet_sim:Quiet": {"pilot": 64}}]}, out="four", cpus=4)
    )
    (totals,) = count_ahead(todo.tasks, todo.suite.problems).values()
    assert (totals.most, totals.rounds, totals.recommended, totals.pilot) == (220, 144, 12, 64)
    execute(todo)
    rows = cbobench.load_rounds("four")
    assert len(calls()) == len({*calls()}) <= len(rows) + 64 + len(cbobench.load_cells("four"))
    assert rows["recommended_violation"].notna().equals(rows["t"] == 12)


@pytest.mark.parametrize(("measure", "most"), [("always", 24), ("end", 2)])
def test_where_there_is_a_regret_every_recommended_point_is_simulated_unless_only_in_the_end(
    quiet, tmp_path, monkeypatch, measure, most
):
    """Here nothing is feasible: else a method recommends the best point that it has measured."""
    aimed = QUIET.replace("noisy = False", "noisy = False\n    target = 0.0").replace(
        "- 2.5]", "+ 0.1]"
    )
    (tmp_path / "aimed.py").write_text(aimed)
    monkeypatch.delitem(__import__("sys").modules, "aimed", raising=False)
    _, _, calls = quiet
    suite = SUITE | {"horizon": 12, "problems": [{"aimed:Quiet": {"pilot": 8, "measure": measure}}]}
    todo = plan(Call(suite | {"algorithms": ["cei"]}, out="aimed", cpus=0))
    (totals,) = count_ahead(todo.tasks, todo.suite.problems).values()
    description = totals.describe("aimed")
    assert f"up to {most} of points that are recommended and were not played" in description
    assert ("(2 with `measure: end`)" in description) == (measure == "always")
    execute(todo)
    rows = cbobench.load_rounds("aimed")
    is_known = rows["recommended_violation"].notna()
    assert is_known.all() if measure == "always" else is_known.equals(rows["t"] == 12)
    played = {tuple(x) for x in rows["x"]}
    assert len(calls()) - 8 - len(played) <= most
    assert (len(calls()) - 8 - len(played) > 2) == (measure == "always")


def test_equal_points_of_a_block_are_simulated_once_where_workers_share_nothing(quiet, monkeypatch):
    """As in a bucket."""
    problem, run, calls = quiet
    store = SimulationStore(RunFolder(str(run)))
    store.shared = False
    x = np.array([[1.0, 2.0], [0.5, 1.0], [1.0, 2.0]])
    with problem.at(Site(store=store.of("quiet_sim:Quiet"))):
        observations = problem.observe(x, [np.random.default_rng(i) for i in range(3)])
    assert len(calls()) == 2
    assert observations[0].tolist() == observations[2].tolist() != observations[1].tolist()


def test_tasks_of_a_slow_simulator_are_cut_before_one_has_ended(quiet):
    """So that no worker waits for the longest in the end: what its simulations take is known from
    the pilot.
    """
    problem, _, _ = quiet
    problem.pilot_facts = replace(problem.pilot_facts, seconds=60.0)
    todo = plan(
        Call(
            SUITE | {"problems": [{"quiet_sim:Quiet": {"pilot": 8}}], "seeds": 4},
            out="cut",
            cpus=0,
            block=4,
        )
    )
    task, title = todo.tasks[0], todo.tasks[0].pair.problem.title
    pace = Pace({title: problem})
    assert pace.expected(task) == pytest.approx(4 * 6 * 60.0, rel=0.01)
    pieces = pace.pieces(task, 4, 10**6)
    assert [len(piece.cells) for piece in pieces] == [1, 1, 1, 1]
    assert pace.total(todo.tasks) == 2 * 4 * 6 * 60.0
    pace = Pace({title: problem}, [(task.pair, 0.1, 24)])
    assert pace.expected(task) == pytest.approx(4 * 6 * 60.0, rel=0.01), (
        "CPU time of cells is not what they took"
    )


def test_a_whole_run_without_noise_simulates_no_point_twice(quiet):
    """Nor one that is recommended, or was simulated by the pilot."""
    _, _, calls = quiet
    suite = SUITE | {"initial": {"sobol": 3}, "problems": [{"quiet_sim:Quiet": {"pilot": 8}}]}
    cbobench.run(suite, out="whole", cpus=0, block=1)
    rows = cbobench.load_rounds("whole")
    points = {tuple(x) for x in rows["x"]}
    assert len(points) < len(rows), "two methods share their initial designs"
    assert len(calls()) == len({*calls()}) >= len(points)


@pytest.mark.parametrize(
    "code",
    [
        "low, high = (0.0, 0.0), (2.0, 4.0)",
        "inputs = {'a': {'int': [0, 8]}, 'b': {'float': [0, 4]}}",
    ],
)
def test_a_design_of_the_pilot_needs_no_simulation(quiet, tmp_path, monkeypatch, code):
    """Of every method and seed the first rounds are the pilot's points, and the run simulates only
    the others.
    """
    edited = (
        QUIET.replace("low, high = (0.0, 0.0), (2.0, 4.0)", code)
        .replace("x[0]", "X(x)[0]")
        .replace("x[1]", "X(x)[1]")
    )
    edited = (
        edited.replace("tuple(x)", "tuple(X(x))")
        + "X = lambda x: tuple(x.values()) if isinstance(x, dict) else tuple(x)\n"
    )
    (tmp_path / "piloted.py").write_text(edited)
    monkeypatch.delitem(__import__("sys").modules, "piloted", raising=False)
    _, _, calls = quiet
    suite = SUITE | {
        "initial": {"pilot": 5},
        "problems": [{"piloted:Quiet": {"pilot": 8}}],
        "algorithms": ["random"],
    }
    todo = plan(Call(suite, out="piloted", cpus=0))
    assert len(calls()) == 8
    execute(todo)
    rows = cbobench.load_rounds("piloted")
    column = "x" if code.startswith("low") else "action"
    first = (
        rows[rows["t"] <= 5]
        .groupby("seed")[column]
        .apply(lambda values: [str(value) for value in values])
    )
    assert first[0] == first[1]
    assert len({*calls()}) == len(calls())
    later_points = rows[rows["t"] > 5][column].map(str)
    assert len(calls()) <= 8 + later_points.nunique(), "a recommended point was played"
    lines = estimate(plan(Call(suite, out="other", cpus=0)), 0, SILENT)
    assert "8 of the pilot, which are the first 5 rounds of every cell and not made again" in lines


def test_a_design_of_a_pilot_that_is_too_small_is_refused(counted):
    suite = SUITE | {"initial": {"pilot": 5}, "horizon": 9}
    with pytest.raises(
        Misuse, match=r"is \{pilot: 5\}, but it is no simulator.*; give \{sobol: 5\}"
    ):
        plan(Call(suite | {"problems": ["rkhs-1d"]}, cpus=0))
    with pytest.raises(Misuse, match="but its pilot has 4 points; give at most 4"):
        plan(
            Call(
                SUITE | {"initial": {"pilot": 5}, "problems": [{"slow_sim:Slow": {"pilot": 8}}]},
                cpus=0,
            )
        )
