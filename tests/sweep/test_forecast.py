"""How far a sweep is, and how long the rest takes: to the round, and with its uncertainty."""

from __future__ import annotations

from cbobench.play.underway import Listener, Teller
from cbobench.sweep.run import execute, plan
from cbobench.words import time_left


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


def test_words_for_what_is_left():
    assert time_left(180.0, 100.0, 300.0) == "about 3 min (2 to 5 min)"
    assert time_left(80.0, 70.0, 110.0) == "about 80 s (70 s to 2 min)"


def test_a_sweep_is_counted_while_it_is_played(small_suite, tmp_path):
    todo = plan(small_suite(horizon=50, seeds=2), out=tmp_path / "run", cpus=0)
    started = []
    execute(todo, cpus=0, on_start=started.append)
    (forecast,) = started
    assert forecast.rounds() == forecast.total == 300
    assert forecast.left().seconds == 0.0
