"""Cells that hang, and answers that are lost: said, ended, and never waited for without end."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.play import watch as watching
from cbobench.play.task import Receipt, carry_out
from cbobench.sweep import scheduler as looks
from cbobench.sweep.run import plan
from tests.processes import until
from tests.sweep.helpers import FakeExecutor, scheduler_of
from tests.sweep.poison import write_poison
from tests.sweep.test_poison import rows_of

HANGING = """\
suite: h
horizon: 5
seeds: [2, 3]
timeout: 2
problems: [rkhs-1d]
algorithms:
  - poison_plugin:Poison: {how: {sweep: [none, hang]}}

"""


@pytest.mark.parametrize(
    ("cpus", "players"), [(0, None), pytest.param(2, None, marks=pytest.mark.slow),
                          pytest.param(2, "ray", marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_cell_that_hangs_is_a_row_with_its_stack(write_suite, tmp_path, command, cpus, players):
    """Its block is cut in two until it is alone; one that cannot be interrupted loses its process each time."""
    environment = write_poison(tmp_path)
    suite = write_suite(HANGING.replace("hang]", "hang, deaf hang]" if cpus else "hang]"))
    done = command("run", suite, "--out", "h", "--cpus", cpus, env=environment, players=players)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "Timeout" not in done.stderr
    frame = rows_of("h")
    failed = frame[frame["status"] == "failed"].set_index("how")
    hows = ["deaf hang", "hang"] if cpus else ["hang"]
    assert sorted(failed.index) == hows
    assert set(failed["seed"]) == {2}
    assert failed.loc["hang", "error"] == "round 3: timed out after 2 s"
    if cpus:
        assert re.fullmatch(r"timed out after \d+ s, and could not be interrupted", failed.loc["deaf hang", "error"])
    for trace in failed["traceback"]:
        assert 'poison_plugin.py", line' in trace
        assert "in harm" in trace
    fine = frame[frame["seed"] != 2].groupby("seed")["regret"]
    assert fine.count().eq(1 + len(hows)).all()
    assert fine.nunique().eq(1).all()
    assert not list((tmp_path / "h").rglob("*.tmp"))


def test_without_a_timeout_a_round_may_take_minutes(monkeypatch):
    monkeypatch.setattr(watching, "STALL", 1.0)
    play = SimpleNamespace(round=0)
    with watching.watched(None, 1, 10, None) as watch:
        watch.play = play
        for play.round in range(1, 4):
            time.sleep(0.2)
        assert watch.stall > 1.2, "rounds may take a multiple of the longest so far"
    with pytest.raises(watching.TimedOut, match="timed out after 1 s"), watching.watched(None, 1, 10, None):
        time.sleep(30)

    def rounds_without_end():
        with watching.watched(0.25, 2, 1, None) as whole:
            whole.play = play
            for play.round in range(3000):
                time.sleep(0.01)

    with pytest.raises(watching.TimedOut, match="timed out after 1 s"):
        rounds_without_end()


@pytest.mark.parametrize("wrong", ["0", "-1", "soon", "true", ".inf", "[1]"])
def test_a_timeout_is_a_number_of_seconds(small_suite, tmp_path, wrong):
    with pytest.raises(Misuse, match=r"suite.yaml:\d+: timeout is .*; allowed: a number of seconds per cell"):
        plan(small_suite(extra=f"timeout: {wrong}\n"), out=tmp_path / "run", cpus=0)


def test_a_timeout_changes_no_cell(small_suite, tmp_path):
    """It may be given, changed and taken away in the course of a run."""
    cbobench.run(small_suite(seeds=2), out=tmp_path / "run", cpus=0)
    todo = plan(small_suite(seeds=3, extra="timeout: 1.5e3\n"), out=tmp_path / "run", cpus=0)
    assert (todo.done, {task.timeout for task in todo.tasks}) == (6, {1500.0})


def test_who_was_suspended_has_not_hung(monkeypatch):
    """Stopped and continued, as Slurm does with a job that has to wait; the watch's clock stands still meanwhile."""
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + jump)
    jump = 0.0
    monkeypatch.setattr(watching, "time", clock)
    with watching.watched(4.0, 1, 1, None) as watch:
        watch.play = SimpleNamespace(round=1)
        jump = 3600.0
        until(lambda: watch.played, lambda: "the watch does not look")
        before = watch.played
        until(lambda: watch.played > before, lambda: "the watch does not look again")
        assert watch.played < 4.0


def silent(monkeypatch, todo, players, **limits):
    """A scheduler whose clock goes on when its players are waited for, however long that takes here."""
    monkeypatch.setattr(looks, "time", SimpleNamespace(monotonic=lambda: players.now))
    for name, value in {"QUIET": 0.2, "LOOK": 0.1, "SAY": 1e9, "PATIENCE": 1e9, **limits}.items():
        monkeypatch.setattr(looks, name, value)
    notes = []
    one = scheduler_of(todo, players, notes.append)
    return one, notes


class Deaf(FakeExecutor):
    """Players whose first answers are lost; what was recalled is answered when it is given again."""

    def __init__(self, size, lost, publish):
        super().__init__(size)
        self.lost, self.publish, self.held, self.recalled, self.now = lost, publish, [], [], 0.0

    def collect(self, seconds):
        self.now += 0.01
        for task in list(self.pending):
            if self.lost and task not in self.held:
                self.lost -= 1
                self.held.append(task)
                if self.publish:
                    self.publish(task)
            elif task not in self.held:
                self.pending.remove(task)
                yield task, Receipt(task.name, len(task.cells), 0, task.rounds, (), 0.01)

    def cancel(self, task):
        self.pending.remove(task)
        self.held.remove(task)
        self.recalled.append(task)
        self.lost = 0


def test_a_lost_answer_is_found_in_the_store(small_suite, tmp_path, monkeypatch):
    todo = plan(small_suite(), out=tmp_path / "run", cpus=0, block=1)

    def publish(task):
        carry_out(todo.suite.problems[task.pair.problem.title], task, todo.folder)

    players = Deaf(3, 2, publish)
    crew, notes = silent(monkeypatch, todo, players)
    receipts = list(crew.play())
    assert sum(receipt.ok for receipt in receipts) == 12
    assert len({receipt.task for receipt in receipts}) == 12
    assert len(players.recalled) == 2
    assert notes == [f"{task.name} is done, though its worker's answer was lost" for task in players.recalled]


def test_a_task_that_takes_far_too_long_is_queued_again(small_suite, tmp_path, monkeypatch):
    """Where its pair's other tasks say how long it takes; else it is only named."""
    todo = plan(small_suite(), out=tmp_path / "run", cpus=0, block=1)
    players = Deaf(3, 1, None)
    crew, notes = silent(monkeypatch, todo, players, PATIENCE=0.4, UNUSUAL=2.0)
    assert sum(receipt.ok for receipt in crew.play()) == 12
    name = players.recalled[0].name
    assert notes == [f"no answer for 0 min from {name}; queued again"]


def test_long_silence_names_what_is_in_play(small_suite, tmp_path, monkeypatch):
    todo = plan(small_suite(), out=tmp_path / "run", cpus=0, block=4)
    crew, notes = silent(monkeypatch, todo, Deaf(3, 3, None), SAY=0.5)
    names = [task.name for task in crew.queue]
    receipts = crew.play()

    def note(text):
        notes.append(text)
        if len(notes) == 2:
            raise KeyboardInterrupt

    crew.overdue.note = note
    with pytest.raises(KeyboardInterrupt):
        list(receipts)
    assert notes == [f"no answer for 0 min; in play: {', '.join(names)}"] * 2
