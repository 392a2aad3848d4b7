"""Time limits of plays: what is interrupted, and what is not (what becomes of a cell:
`test_failures`).
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from cbobench.play import watchdog as watching
from cbobench.play.watchdog import Heartbeat, TimedOut
from tests.processes import until


def test_a_play_is_interrupted_at_its_limit_and_what_follows_is_not():
    with Heartbeat() as beat:
        beat.begin(0.2, 0)
        with pytest.raises(TimedOut, match="timed out after 0 s"):
            time.sleep(30)
        time.sleep(1.2)
        beat.begin(0.2, 0)
        beat.rest()
        time.sleep(1.2)


def test_who_was_suspended_has_not_hung(monkeypatch):
    """Stopped and continued, as Slurm does with a job that has to wait; the limit's clock stands
    still meanwhile.
    """
    jump = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + jump)
    monkeypatch.setattr(watching, "time", clock)
    with Heartbeat(seconds=100.0) as beat:
        jump = 3600.0
        until(lambda: beat.left < 99, lambda: "nobody counts")
        before = beat.left
        until(lambda: beat.left < before, lambda: "nobody counts on")
        assert beat.left > 90
