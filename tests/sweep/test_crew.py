"""Who plays: forked workers, workers in fresh interpreters, Ray, and Ray after workers; the same rows of all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import cbobench
from cbobench.errors import CbobenchError
from cbobench.play.task import Crashed, Receipt
from cbobench.results.folder import RunFolder
from cbobench.sweep import crew as crews
from cbobench.sweep.crew import Crew
from cbobench.sweep.rayhost import RayHost
from cbobench.sweep.raysweep import IN_FLIGHT, Lost, RaySweep
from cbobench.sweep.run import plan
from cbobench.sweep.workers import Workers, usable_cpus
from tests.conftest import PLAYERS
from tests.processes import assert_gone, below
from tests.sweep.test_run import SLOW, assert_same_rows, cells, start_and_wait


@pytest.mark.slow
@pytest.mark.parametrize(("players", "cpus"), [("as it comes", 1), *((kind, 2) for kind in PLAYERS)])
def test_players_change_nothing(small_suite, tmp_path, command, players, cpus):
    suite = small_suite(seeds=8)
    cbobench.run(suite, out=tmp_path / "here", cpus=0, block=50)
    done = command("run", suite, "--out", tmp_path / "there", "--cpus", cpus, "--block", 3, players=players)
    assert done.returncode == 0, done.stderr
    who = "on Ray" if players == "ray" else f"by {cpus} worker process{'es' if cpus > 1 else ''}"
    assert f"\nplayed {who}\n" in done.stderr
    assert_same_rows(tmp_path / "here", tmp_path / "there")


def test_a_driver_gives_signs_of_life_while_a_cluster_starts(monkeypatch):
    host, beats, starts = RayHost.__new__(RayHost), [], iter([False, False, True])
    host.folder = RunFolder("run", "me")
    monkeypatch.setattr("cbobench.sweep.rayhost.beat", beats.append)
    monkeypatch.setattr(RayHost, "ready", lambda self, seconds: next(starts))
    host.wait()
    assert beats == [host.folder] * 2


@pytest.mark.slow
def test_ray_takes_over_from_workers(small_suite, tmp_path, command):
    """No cell is played twice, and none is lost; the rows are those of a run in one process."""
    suite = small_suite(seeds=8)
    done = command("run", suite, "--out", tmp_path / "both", "--cpus", 2, "--block", 1, players="ray takes over")
    assert done.returncode == 0, done.stderr
    assert "played by 2 worker processes" in done.stderr
    assert "played on Ray from here on" in done.stderr
    assert len(list((tmp_path / "both" / "cells").glob("*.parquet"))) == len(cells(tmp_path / "both")) == 24
    cbobench.run(suite, out=tmp_path / "here", cpus=0)
    assert_same_rows(tmp_path / "here", tmp_path / "both")


def test_a_short_plan_does_not_start_ray(small_suite, tmp_path, command):
    done = command("run", small_suite(), "--out", tmp_path / "r", "--cpus", 2)
    assert done.returncode == 0, done.stderr
    assert "played by 2 worker processes" in done.stderr
    program = "import sys, cbobench; cbobench.run(sys.argv[1], out='r2', cpus=2); assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", program, str(small_suite())], check=True, timeout=120)


@pytest.mark.parametrize("players", ["as it comes", "fresh workers"])
def test_workers_end_with_a_driver_that_is_killed(write_suite, tmp_path, players):
    driver = start_and_wait(write_suite(SLOW), tmp_path / "cut", 2, 1, players)
    workers = below(driver.pid)
    assert len(workers) >= 2  # and Ray, on a machine that is busy
    driver.kill()
    driver.communicate()
    assert_gone(workers)


def test_a_worker_that_cannot_start_is_no_fault_of_its_task(small_suite, tmp_path, monkeypatch):
    todo = plan(small_suite(), out=tmp_path / "run", cpus=2)
    monkeypatch.setattr("cbobench.sweep.spawn.BOOT", "raise SystemExit(3)")
    monkeypatch.setattr("cbobench.sweep.spawn._alone", lambda: False)
    crew = Crew(todo.suite.problems, todo.folder, todo.tasks, cpus=2)
    with pytest.raises(CbobenchError, match="ended before it began; --cpus 0 plays in this process"):
        list(crew.play())
    crew.stop()


def test_a_worker_that_is_killed_before_it_begins_is_replaced(small_suite, tmp_path, monkeypatch):
    """By the kernel, where memory is short; only where none begins the sweep ends."""
    started, start = [], Workers._start

    def killed(self):
        start(self)
        started.append(self.crew[-1].child.pid)
        if len(started) in (1, 3):
            os.kill(started[-1], signal.SIGKILL)

    monkeypatch.setattr(Workers, "_start", killed)
    todo = plan(small_suite(), out=tmp_path / "run", cpus=2)
    crew = Crew(todo.suite.problems, todo.folder, todo.tasks, cpus=2)
    try:
        assert sum(receipt.ok for receipt in crew.play()) == 12
    finally:
        crew.stop()
    assert len(started) == 4


def test_a_problem_that_python_cannot_pickle_reaches_its_worker(small_suite, tmp_path, monkeypatch):
    """Ray's pickler takes functions within functions, too."""
    monkeypatch.setattr("cbobench.sweep.spawn._alone", lambda: False)
    todo = plan(small_suite(), out=tmp_path / "run", cpus=1)
    next(iter(todo.suite.problems.values())).hook = lambda: None
    crew = Crew(todo.suite.problems, todo.folder, todo.tasks, cpus=1)
    try:
        assert sum(receipt.ok for receipt in crew.play()) == 12
    finally:
        crew.stop()


def test_cpus_that_may_be_used():
    assert 1 <= usable_cpus() <= (os.cpu_count() or 1)


class Fake:
    """Players that end one task at a time, in the order given."""

    def __init__(self, size, answers=(), watch=lambda: None):
        self.size, self.pending, self.answers, self.watch = size, [], list(answers), watch

    def room(self):
        return self.size - len(self.pending)

    def give(self, task):
        self.pending.append(task)
        self.watch()

    def take(self, seconds):
        if self.pending:
            task = self.pending.pop(0)
            answer = self.answers.pop(0) if self.answers else None
            yield task, answer or Receipt(task.name, len(task.cells), 0, task.rounds, ())

    def retire(self):
        self.size = 0

    def stop(self):
        pass


def crew_of(todo, monkeypatch, players):
    monkeypatch.setattr(crews, "Workers", lambda problems, folder, size: players)
    return Crew(todo.suite.problems, todo.folder, todo.tasks, cpus=3)


def test_never_more_in_play_than_cpus_while_ray_takes_over(small_suite, tmp_path, monkeypatch):
    todo = plan(small_suite(seeds=20), out=tmp_path / "run", cpus=3, block=1)
    both, notes = [], []

    def watch():
        both.append((len(workers.pending), len(ray.pending)))

    workers, ray = Fake(3, watch=watch), Fake(256, watch=watch)
    crew = crew_of(todo, monkeypatch, workers)
    crew.note = notes.append
    ready = [False] * 4 + [True] * 100
    ray.ready = lambda: ready.pop(0)
    crew.starting = ray
    assert len(list(crew.play())) == len(todo.tasks) == 60
    assert max(a + b for a, b in both if a) == 3
    assert any(a and b for a, b in both), "they played side by side"
    assert max(b for _, b in both) > 3, "and in the end Ray held what was left"
    assert notes == ["played on Ray from here on"]


def test_ray_that_does_not_start_is_said_and_the_workers_play_on(small_suite, tmp_path, monkeypatch):
    def refuse(*given):
        raise RuntimeError("no room in /dev/shm\nat all")

    monkeypatch.setattr("cbobench.sweep.rayhost.RaySweep", refuse)
    monkeypatch.setattr("cbobench.sweep.spawn._alone", lambda: True)
    monkeypatch.delitem(sys.modules, "ray", raising=False)  # else it starts afresh, without what is patched
    monkeypatch.setattr(crews, "PATIENCE", 0.0)
    monkeypatch.setattr(crews, "RAY_PAYS", 0.0)
    todo, notes = plan(small_suite(seeds=20), out=tmp_path / "run", cpus=3, block=1), []

    class Slow(Fake):
        """They take no second task before it has been tried."""

        def room(self):
            return super().room() if notes or not given else 0

        def take(self, seconds):
            time.sleep(0.01)
            return super().take(seconds)

    given = []
    crew = crew_of(todo, monkeypatch, Slow(3, watch=lambda: given.append(1)))
    crew.note = notes.append
    assert len(list(crew.play())) == 60
    crew.stop()
    (note,) = notes
    assert note.startswith("Ray did not start (RuntimeError: no room in /dev/shm (test_crew.py:")
    assert note.endswith("); the workers play on")


def test_ray_is_called_where_it_pays(small_suite, tmp_path, monkeypatch):
    todo = plan(small_suite(seeds=20), out=tmp_path / "run", cpus=3, block=1)
    crew = crew_of(todo, monkeypatch, Fake(3))
    crew.given, crew.began = crew.rounds // 10, 0.0
    for elapsed, pays in ((1, False), (5, False), (6, False), (7, True), (60, True)):
        monkeypatch.setattr(crews, "time", SimpleNamespace(monotonic=lambda now=elapsed: now))
        assert (crew._left() > crews.RAY_PAYS) == pays


def test_a_lost_node_and_a_crash(small_suite, tmp_path, monkeypatch):
    """What lost its node is played again whole; what crashed its worker in halves, and a cell three times."""
    todo = plan(small_suite(seeds=2), out=tmp_path / "run", cpus=3)
    crew = crew_of(todo, monkeypatch, Fake(3, [Lost(), *[Crashed("ran out of memory")] * 2]))
    monkeypatch.setattr(crew, "cpus", 3)
    receipts = list(crew.play())
    assert sum(receipt.ok for receipt in receipts) == 6
    crew = crew_of(todo, monkeypatch, Fake(1, [Crashed("ran out of memory")] * 1000))
    receipts = list(crew.play())
    assert sum(receipt.failed for receipt in receipts) == 6
    assert all("ran out of memory 3 times" in receipt.errors[0] for receipt in receipts)
    crew = crew_of(todo, monkeypatch, Fake(1, [Lost()] * 1000))
    with pytest.raises(CbobenchError, match="lost their node"):
        list(crew.play())


class FakeRay:
    """A cluster of one CPU that would grow if it saw demand; tasks end one at a time."""

    def __init__(self):
        self.submitted, self.most, self.ended = 0, 0, 0

    def cluster_resources(self):
        return {"CPU": 1.0}

    def remote(self, problem, task, folder):
        self.submitted += 1
        return self.submitted

    def wait(self, references, **options):
        self.most = max(self.most, len(references))
        return references[:1], references[1:]

    def get(self, reference):
        self.ended += 1
        return Receipt(str(reference), 1, 0, 1, ())

    class exceptions:
        NodeDiedError = ObjectLostError = WorkerCrashedError = OutOfMemoryError = RayTaskError = ZeroDivisionError


def test_a_small_cluster_sees_the_demand_of_a_large_sweep(small_suite, tmp_path, monkeypatch):
    """In flight is a number of tasks, not of today's CPUs: Ray's autoscaler adds machines for tasks that wait."""
    todo = plan(small_suite(seeds=300), out=tmp_path / "run", cpus=0, block=1)
    sweep, ray = object.__new__(RaySweep), FakeRay()
    sweep.ray = sweep.remote = ray
    sweep.folder, sweep.flight, sweep.cpus, sweep.meters = todo.folder, {}, None, Mock()
    sweep.problems = dict.fromkeys(todo.suite.problems)
    monkeypatch.setattr(crews, "started", lambda: True)
    monkeypatch.setattr(crews, "RaySweep", lambda *given: sweep)
    crew = Crew(todo.suite.problems, todo.folder, todo.tasks)
    assert len(list(crew.play())) == len(todo.tasks) == 900
    assert ray.most == IN_FLIGHT < 900, "and the driver does not hold the whole grid"
