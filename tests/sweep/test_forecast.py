"""How far a sweep is, and how long the rest takes: to the round, and with its uncertainty."""

from __future__ import annotations

import pytest

from cbobench.play.task import Receipt
from cbobench.play.underway import Listener, Teller
from cbobench.sweep import forecast
from cbobench.sweep.forecast import Forecast
from cbobench.sweep.run import execute, plan
from cbobench.words import time_left


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set."""
    now = [1000.0]
    monkeypatch.setattr(forecast.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def todo(small_suite, tmp_path):
    return plan(small_suite(horizon=100, seeds=4), out=tmp_path / "run", cpus=0, block=2)


def over(task, seconds):
    return Receipt(task.name, len(task.cells), 0, task.rounds, (), seconds)


def test_a_driver_hears_of_rounds():
    listener = Listener("some-call")
    try:
        Teller("some-call", "a", 5)(7)
        Teller("some-call", "a", 5)(6)
        Teller("another-call", "b", 5)(7)
        Teller("", "c", 5)(7)
        heard = listener.heard()
        assert heard in ({"a": 35}, {}), "nothing where there are no such sockets"
        assert listener.heard() == {}
    finally:
        listener.close()


def test_what_others_send_to_a_driver_does_no_harm(monkeypatch):
    class Flood:
        """A socket with something to read, always."""

        count = 0

        def recv(self, size):
            Flood.count += 1
            return strange[Flood.count % len(strange)][:size]

    strange = [b'["a", 1e999]', b"[" * 2000, b"\xff", b"5", b'{"a": 1}', b'["a", null]', b"", b'["a", 3]']
    listener = Listener("")
    monkeypatch.setattr(listener, "link", Flood())
    assert listener.heard() == {"a": 3}
    assert Flood.count < 100_000, "a flood ends"


def test_the_rest_takes_what_its_pair_took(todo, clock):
    tasks = [*todo.tasks]
    assert len(tasks) == 6
    said = Forecast(todo.tasks, 2)
    assert said.left() is None, "nothing is known"
    for task in tasks[:3]:
        said.given(task)
        said.heard(task, over(task, 10.0))
    assert said.rounds() == 600
    assert said.left().seconds == pytest.approx(15.0), "three tasks of 10 s, two at a time"
    assert said.left().low < 15.0 < said.left().high


def test_before_a_task_has_ended_pairs_like_it_tell(todo, clock, monkeypatch):
    monkeypatch.setattr(forecast.Costs, "per_round", lambda self, pair, problem, horizon, cells: 0.1 / cells)
    said = Forecast(todo.tasks, 2, problems=todo.suite.problems)
    assert said.left().seconds == pytest.approx(1200 * 0.05 / 2), "two cells in lock step"
    task = next(iter(todo.tasks))
    said.given(task)
    said.heard(task, over(task, 100.0))
    assert said.left().seconds == pytest.approx((200 * 0.5 + 800 * 0.05) / 2), "what is known of a pair counts first"


def test_what_a_budget_keeps_from_being_played_is_not_left(todo, clock):
    first, second, third, *_ = todo.tasks
    said = Forecast(todo.tasks, 1)
    for task in (first, second, third):
        said.given(task)
    said.heard(first, over(first, 10.0))
    said.hold()
    other = [task for task in (second, third) if task.pair.title != first.pair.title]
    for task in other:
        assert said.left() is None
        said.heard(task, over(task, 10.0))
    assert said.left().seconds == pytest.approx(10.0 * (2 - len(other)))
    said.hold()
    assert said.rounds() == 200 * (1 + len(other))


def test_a_task_in_play_counts_by_its_rounds(todo, clock, monkeypatch):
    (task, *others) = todo.tasks
    said = Forecast(todo.tasks, 1)
    said.given(task)
    told = {task.name: 50}
    monkeypatch.setattr(said.listener, "heard", lambda: told)
    assert said.rounds() == 50
    clock[0] += 9.5
    told[task.name] = 100
    assert said.rounds() == 100
    assert said.left() is None, "other pairs wait of which nothing is known"
    for other in others:
        if other.pair is not task.pair:
            said.given(other)
            said.heard(other, over(other, 1.0))
    left = said.left()
    assert 20 < left.seconds < 40, "half of a task that took 10 s for it, and another one of 20 s"
    assert left.low < left.seconds < left.high
    news = said.news()
    assert news["rounds"] == 100 + 4 * 200
    assert [*news["playing"].values()] == [[2, 100]]


def test_a_sweep_is_heard_while_it_is_played(small_suite, tmp_path):
    todo = plan(small_suite(horizon=50, seeds=2), out=tmp_path / "run", cpus=0)
    crews = []
    execute(todo, cpus=0, on_start=crews.append)
    (crew,) = crews
    assert crew.forecast.rounds() == crew.forecast.total == 300
    assert crew.forecast.left().seconds == 0.0


def test_words_for_what_is_left():
    assert time_left(180.0, 100.0, 300.0) == "about 3 min (2 to 5 min)"
    assert time_left(80.0, 70.0, 110.0) == "about 80 s (70 s to 2 min)"
