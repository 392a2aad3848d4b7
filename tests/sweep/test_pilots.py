"""The pilot of a simulator: how many simulations it makes, where they run, what is said of it, and
what is kept.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections import Counter
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import yaml

import cbobench
from cbobench.call import Call
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.params import build
from cbobench.play.failure import Interrupted
from cbobench.problems import pilot, simulator
from cbobench.problems.data import Site
from cbobench.problems.simulator import Simulator
from cbobench.results.bundle import open_run
from cbobench.results.verify import verify
from cbobench.sweep import children, preparation
from cbobench.sweep.interrupt import interruptible
from cbobench.sweep.plan import plan
from cbobench.sweep.preparation import ProcessPool
from cbobench.watcher import SILENT
from tests.helpers import Listener


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


class Failing(Exact):
    def simulate(self, x, gen):
        values = super().simulate(x, gen)
        if x[0] > 0.75:
            raise ValueError("on purpose")
        return values


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
    for module in (children, preparation):
        monkeypatch.setattr(module, "can_fork", lambda: True)


def prepared(cls, workers=0, watcher=SILENT, pool=None, **settings):
    problem = cls(**settings)
    problem.prepare(Site(watcher=watcher, pool=ProcessPool(workers) if workers else pool))
    return problem


def test_without_noise_each_point_is_simulated_once():
    task = prepared(Exact)
    assert len(Exact.calls) == len({*Exact.calls}) == 64
    assert task.pilot_facts.points == task.simulations.pilot == 64


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
    in_process = prepared(cls)
    Exact.calls.clear()
    monkeypatch.setattr(pilot, "LONG_PILOT", 0.0)
    listener = Listener()
    on_workers = prepared(cls, 2, listener)
    assert Exact.calls == [], "not in this process"
    for name in ("shift", "divisor", "norm", "noise", "sup", "slater", "share", "points", "failed"):
        np.testing.assert_array_equal(
            getattr(in_process.pilot_facts, name),
            getattr(on_workers.pilot_facts, name),
            err_msg=name,
        )
    announced = f"{cls.__name__}: a pilot of 64 simulations on 2 workers, about "
    assert [line for line in listener.notes if line.startswith(announced)]


class Together(Noisy):
    def simulate_many(self, x, gens):
        return np.array([self.simulate(point, gen) for point, gen in zip(x, gens, strict=True)])


class CrashingTogether(Together):
    def simulate(self, x, gen):
        if x[0] > 0.9:
            os._exit(1)
        return super().simulate(x, gen)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seconds", [0.0, 1e-9, 100.0])
def test_a_pilot_is_the_same_however_it_is_cut(monkeypatch, workers, seconds):
    """In messages of one simulation or of many; points that are run together are sent together."""
    monkeypatch.setattr(preparation, "BATCH_SECONDS", seconds)
    for cls in (Exact, Noisy, Together):
        in_process = prepared(cls)
        Exact.calls.clear()
        on_workers = prepared(cls, workers)
        assert Exact.calls == []
        for name in (
            "shift",
            "divisor",
            "norm",
            "noise",
            "sup",
            "slater",
            "share",
            "points",
            "failed",
        ):
            np.testing.assert_array_equal(
                getattr(in_process.pilot_facts, name), getattr(on_workers.pilot_facts, name)
            )


@pytest.mark.parametrize("cls", [Crashing, CrashingTogether])
def test_of_a_message_only_the_simulation_that_ends_its_worker_has_failed(monkeypatch, cls):
    monkeypatch.setattr(preparation, "BATCH_SECONDS", 100.0)
    task = prepared(cls, 1)
    points = task.pilot_design()[0]
    assert (
        task.pilot_facts.failures
        == f"{2 * (points[:, 0] > 0.9).sum()} of 64 pilot simulations failed"
    )


class Stopping(Exact):
    def simulate(self, x, gen):
        if x[0] > 0.9:
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().simulate(x, gen)


def test_a_simulation_that_stops_its_worker_has_failed(monkeypatch):
    monkeypatch.setattr(preparation, "STOPPED_LOOKS", 2)
    with pytest.raises(Misuse, match="Stopping: simulate stopped its worker for 0 s at x ="):
        prepared(Stopping, 2, on_failure="fail")


class ImpureNoisy(Noisy):
    def simulate(self, x, gen):
        return [x[0] + np.random.normal(), x[0] - 0.5]  # noqa: NPY002 - what it must not do


@pytest.mark.parametrize("cls", [Impure, ImpureNoisy])
def test_what_draws_from_shared_generators_is_found_on_workers(cls):
    """Two forks of one process begin with the same numbers."""
    for _ in range(2):
        with pytest.raises(Misuse, match="other values for an equal generator"):
            prepared(cls, 1)


def test_a_simulator_is_sent_without_the_workers_and_the_store_of_its_site():
    problem = prepared(Noisy)
    with problem.at(Site(pool=lambda: "of this process", store=lambda: "likewise")):
        sent_problem = pickle.loads(pickle.dumps(problem))  # noqa: S301 - what has just been pickled
    assert sent_problem._site is problem._site is simulator.NOWHERE
    assert sent_problem.pilot_facts.points == problem.pilot_facts.points


class Leaving(Exact):
    """Leaves what would reach the driver."""

    best_known = (0.25, 1.0)

    def simulate(self, x, gen):
        os.environ["LEFT_BY_A_PILOT"] = "yes"
        self.calls.append(tuple(x))
        return [x[1], x[0] - 0.5]


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_that_a_suite_simulates_runs_in_the_driver(tmp_path, workers):
    """The best known point is simulated, too, and a pilot of few simulations."""
    suite = {"suite": "s", "horizon": 3, "seeds": 2, "algorithms": ["random"]}
    plan(
        Call(
            suite | {"problems": [{f"{__name__}:Leaving": {"pilot": 8}}]},
            out=tmp_path / "run",
            cpus=workers,
        )
    )
    assert Exact.calls == []
    assert "LEFT_BY_A_PILOT" not in os.environ


@pytest.mark.parametrize("cls", [Exact, Noisy])
def test_a_short_pilot_is_made_by_one_worker(monkeypatch, cls):
    """One more would take longer to begin than it saves; a noisy one is begun twice."""
    started, in_process = [], []
    monkeypatch.setattr(pilot, "GRACE", np.inf)  # a busy machine
    monkeypatch.setattr(
        preparation,
        "spawn",
        lambda *arguments: started.append(arguments) or children.spawn(*arguments),
    )
    monkeypatch.setattr(
        cls,
        "run_points",
        lambda self, x, *arguments: (
            in_process.append(x) or Simulator.run_points(self, x, *arguments)
        ),
    )
    prepared(cls, 2)
    assert (len(started), in_process) == (1 + (cls is Noisy), [])


def test_no_fresh_interpreter_is_started_to_see_how_long_a_simulation_takes(monkeypatch):
    monkeypatch.setattr(ProcessPool, "run", lambda *arguments: pytest.fail("a worker is started"))
    monkeypatch.setattr(preparation, "can_fork", lambda: False)
    prepared(Exact, 2)
    assert len(Exact.calls) == 64


def test_a_simulation_that_ends_its_worker_has_failed(monkeypatch):
    monkeypatch.setattr(pilot, "LONG_PILOT", 0.0)
    task = prepared(Crashing, 2)
    assert task.pilot_facts.failures.endswith("of 64 pilot simulations failed")
    with pytest.raises(Misuse, match=r"Crashing: simulate crashed its worker at x = \[0\.9"):
        prepared(Crashing, 2, on_failure="fail")


class Hours(Exact):
    """Each simulation takes a minute of a clock."""

    now = 0.0

    def simulate(self, x, gen):
        type(self).now += 60.0
        return super().simulate(x, gen)


def test_a_long_pilot_says_how_long_the_rest_takes(monkeypatch):
    monkeypatch.setattr(Hours, "now", 0.0)
    monkeypatch.setattr(simulator, "monotonic", lambda: Hours.now)
    monkeypatch.setattr(pilot, "monotonic", lambda: Hours.now)
    listener = Listener()
    prepared(Hours, watcher=listener)
    notes = listener.notes
    assert notes[0] == "Hours: a pilot of 64 simulations, about 63 min"
    assert notes[1] == "Hours: 2 of 64 pilot simulations made, about 62 min left"
    assert len(notes) == 63


class Pooled:
    """Workers whose simulations take ten minutes each of a clock, and which begin only what they
    may.
    """

    is_quick = True

    def __init__(self, workers, clock):
        self.workers, self.clock, self.begun = workers, clock, []

    def run(self, simulator, x, gens, at_once):
        waiting, played, number = [*range(len(x))], {}, {}
        while waiting or played:
            free = [worker for worker in range(at_once()) if worker not in played]
            for worker in free[: len(waiting)]:
                number[worker] = waiting.pop(0)
                played[worker] = self.clock[0] + 600.0
                self.begun.append((worker, self.clock[0]))
            ends = min(played.values())
            if ends > self.clock[0] + 0.5:
                self.clock[0] += 0.5
                yield None
                continue
            self.clock[0] = ends
            for worker in [worker for worker, end in played.items() if end <= ends]:
                del played[worker]
                i = number[worker]
                (result,) = simulator.run_points(x[i : i + 1], [gens[i]])
                yield i, replace(result, seconds=600.0)


@pytest.fixture
def pooled(monkeypatch):
    """Prepares a simulator of ten minutes on so many workers: the workers, the minutes that it
    took, what was said.
    """

    def prepare(cls, workers, watcher=None, **settings):
        clock, watcher = [0.0], watcher or Listener()
        pool = Pooled(workers, clock)
        for module in (simulator, pilot):
            monkeypatch.setattr(module, "monotonic", lambda: clock[0])
        problem = prepared(cls, watcher=watcher, pool=pool, **settings)
        return pool, clock[0] / 60, watcher.notes, problem

    return prepare


@pytest.mark.parametrize("workers", [2, 4, 7, 64, 100])
@pytest.mark.parametrize("takes", [None, 600.0])
def test_a_ten_minute_simulator_begins_its_first_round_within_64_by_workers_simulations(
    pooled, workers, takes
):
    """Per worker, and on the clock but for the second in which nothing is known of the first
    one.
    """
    pool, minutes, notes, problem = pooled(type("Timed", (Exact,), {"takes": takes}), workers)
    rounds = -(-64 // workers)
    counts = Counter(worker for worker, _ in pool.begun)
    assert (sum(counts.values()), max(counts.values())) == (64, rounds)
    assert 10 * rounds <= minutes <= 10 * rounds + 0.1
    assert problem.pilot_facts.seconds == 600.0
    on_workers = f"a pilot of 64 simulations on {min(workers, 64)} workers"
    if takes is None:
        assert notes[0] == f"Timed: {on_workers}; how long it takes is known once one has ended"
    else:
        assert notes[0].startswith(f"Timed: {on_workers}, about ")


def test_a_noisy_one_waits_for_no_worker_between_its_two_runs(pooled):
    pool, minutes, _, _ = pooled(Noisy, 5)
    assert len(pool.begun) == 65
    assert minutes == pytest.approx(10 * (1 + -(-64 // 5)), abs=0.1), (
        "one to see whether it gives the same, then all"
    )


@pytest.mark.parametrize(
    ("takes", "message"),
    [
        (None, "Timed: a pilot of 64 simulations on 4 workers takes more than 180 s"),
        (600.0, "about"),
    ],
)
def test_a_person_is_asked_before_a_long_pilot(pooled, takes, message):
    """Once; before anything of it has begun where the class says how long, else as soon as it is
    known to be long.
    """
    listener, cls = Listener(), type("Timed", (Exact,), {"takes": takes})
    _, _, _, problem = pooled(cls, 4, watcher=listener)
    (question,) = listener.questions
    assert message in question.replace("3 min", "180 s")
    assert problem.pilot_facts.points == 64


def test_who_says_no_pays_for_nothing_more(pooled):
    begun = []
    for takes, most in ((600.0, 0), (None, 4)):
        with pytest.raises(
            pilot.Declined,
            match="the pilot was declined.*a smaller `pilot`, at least 8, takes less",
        ):
            pooled(type("Timed", (Exact,), {"takes": takes}), 4, watcher=Listener(answer=False))
        begun.append(len(Exact.calls))
        assert len(Exact.calls) <= most


def test_nobody_is_asked_for_a_short_pilot():
    listener = Listener()
    prepared(Exact, watcher=listener)
    assert listener.questions == []


@pytest.mark.parametrize("takes", [0, -1.0, "long", np.inf])
def test_a_wrong_duration_is_a_line(takes):
    with pytest.raises(
        Misuse, match="takes is .*; it must be a number of seconds above 0, or None"
    ):
        build(type("Timed", (Exact,), {"takes": takes}), {})


class Declared(Exact):
    takes = 600.0


@pytest.mark.parametrize(
    ("options", "typed", "code"), [(["--yes"], "", 0), ([], "", 0), ([], "maybe\nno\n", 130)]
)
def test_run_asks_on_a_terminal_only(monkeypatch, capsys, options, typed, code):
    """And goes on with a line where nobody can answer, or `--yes` has."""
    (suite := Path("s.yaml")).write_text(
        yaml.safe_dump(SUITE | {"problems": [f"{__name__}:Declared"]})
    )
    stdin = StringIO(typed)
    stdin.isatty = lambda: bool(typed) or "--yes" in options
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["run", str(suite), "--cpus", "0", "--out", "r", *options]) == code
    printed = capsys.readouterr().err
    counts = (
        "at most 68: 3 of the rounds (1 each), up to 1 of points that are recommended and were "
        "not played"
    )
    assert printed.startswith(
        f"simulations of {__name__}:Declared: {counts}, 64 of the pilot; 10 min each: 11.3 h of "
        "work"
    )
    assert "Declared: a pilot of 64 simulations, about 10.7 h" in printed
    assert printed.count(
        "Declared: a pilot of 64 simulations takes about 10.7 h. Go on? [y/n] "
    ) == 2 * (code == 130)
    assert len(Exact.calls) == (0 if code else 64 + 3)
    assert Path("r").exists() == (code == 0)


SUITE = {
    "suite": "s",
    "horizon": 3,
    "seeds": 1,
    "algorithms": ["random"],
    "problems": [f"{__name__}:Exact"],
}


def test_an_interrupted_pilot_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    monkeypatch.setattr(Exact, "stop", 40)
    with interruptible(), pytest.raises(Interrupted):
        cbobench.run(SUITE, out="run", cpus=0)
    assert len(list((tmp_path / "run" / "simulations").iterdir())) == 39
    Exact.calls.clear()
    monkeypatch.setattr(Exact, "stop", 0)
    plan(Call(SUITE, out="run", cpus=0))
    assert len(Exact.calls) == 64 - 39
    assert cbobench.run(SUITE, out="run", cpus=0).played == 1
    assert verify(open_run("run")).damaged == []


def test_failures_of_an_interrupted_pilot_are_not_kept(monkeypatch, tmp_path):
    """Its cause may be mended before the pilot is begun anew; only what was simulated is not paid
    for twice.
    """
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    monkeypatch.setattr(Failing, "stop", 40)
    suite = SUITE | {"problems": [f"{__name__}:Failing"]}
    with interruptible(), pytest.raises(Interrupted):
        plan(Call(suite, out="run", cpus=0))
    failed = sum(x > 0.75 for x, _ in Exact.calls[:39])
    kept_results = [
        json.loads(file.read_text()) for file in (tmp_path / "run" / "simulations").iterdir()
    ]
    assert 0 < failed < 39
    assert [simulation["reason"] for simulation in kept_results] == [""] * (39 - failed)
    Exact.calls.clear()
    monkeypatch.setattr(Failing, "stop", 0)
    plan(Call(suite, out="run", cpus=0))
    assert len(Exact.calls) == 64 - len(kept_results)


def test_an_interrupted_pilot_is_not_kept_in_a_folder_of_another_kind(monkeypatch, tmp_path):
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    monkeypatch.setattr(Exact, "stop", 40)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.tex").touch()
    with interruptible(), pytest.raises(Interrupted):
        plan(Call(SUITE, out="thesis", cpus=0))
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["a.tex"]


def test_show_says_how_many_simulations_a_suite_takes(capsys):
    """At most, before any is made; and how long, if the class says so."""
    suite = SUITE | {"horizon": 10, "seeds": 3, "algorithms": ["random", "cei"]}
    for cls, keys in (
        (Exact, "how long one takes is known once the pilot has begun"),
        (Declared, "10 min each: 21.7 h of work"),
    ):
        Path("s.yaml").write_text(
            yaml.safe_dump(suite | {"problems": [f"{__name__}:{cls.__name__}"]})
        )
        assert main(["show", "s.yaml", "--simulations"]) == 0
        captured = capsys.readouterr()
        counts = (
            "at most 130: 60 of the rounds (1 each), up to 6 of points that are recommended and "
            "were not played"
        )
        assert (
            f"simulations of {__name__}:{cls.__name__}: {counts}, 64 of the pilot; {keys}"
            in captured.err
        )
        assert "simulations" not in captured.out, "the suite may go into a file"
    assert Exact.calls == []
    assert main(["show", f"{__name__}:Exact", "--simulations"]) == 2
    assert "--simulations counts those of a suite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("horizon", None, "the key 'horizon' is missing"),
        ("seeds", "many", "seeds is 'many'"),
        ("problems", ["no"], "'no'"),
    ],
)
def test_a_wrong_suite_is_a_line_to_those_who_count(capsys, key, value, message):
    Path("s.yaml").write_text(
        yaml.safe_dump({k: v for k, v in (SUITE | {key: value}).items() if v is not None})
    )
    assert main(["show", "s.yaml", "--simulations"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_show_imports_nothing_that_a_suite_names(capsys):
    """It is how to look at somebody else's, before it may run code."""
    Path("s.yaml").write_text(yaml.safe_dump(SUITE | {"problems": ["loaded:Evil"]}))
    Path("loaded.py").write_text("raise SystemExit(3)")
    assert main(["show", "s.yaml"]) == 0
    assert "loaded:Evil" in capsys.readouterr().out


def test_show_makes_no_pilot(capsys):
    assert main(["show", f"{__name__}:Exact"]) == 0
    shown = capsys.readouterr().out
    assert "posterior of the problem's kernel: " in shown
    assert "kernel: auto: fitted" in shown
    assert Exact.calls == []
