"""Time limits of cells: what is taken for a hang, and what is not (what becomes of one:
`test_failures`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from types import SimpleNamespace

import pytest

from cbobench.play import watchdog as watching
from cbobench.play.task import WorkerCrashed, explain_crash
from cbobench.results.folder import RunFolder
from tests.processes import until


def test_without_a_timeout_a_round_may_take_minutes(monkeypatch):
    monkeypatch.setattr(watching, "STALL", 1.0)
    play = SimpleNamespace(round=0)
    with watching.watch_play(None, 1, 10, None) as watch:
        watch.play = play
        for play.round in range(1, 4):
            time.sleep(0.2)
        assert watch.stall > 1.2, "rounds may take a multiple of the longest so far"
    with (
        pytest.raises(watching.TimedOut, match="timed out after 1 s"),
        watching.watch_play(None, 1, 10, None),
    ):
        time.sleep(30)

    def rounds_without_end():
        with watching.watch_play(0.25, 2, 1, None) as watch:
            watch.play = play
            for play.round in range(3000):
                time.sleep(0.01)

    with pytest.raises(watching.TimedOut, match="timed out after 1 s"):
        rounds_without_end()


def test_who_was_suspended_has_not_hung(monkeypatch):
    """Stopped and continued, as Slurm does with a job that has to wait; the watch's clock stands
    still meanwhile.
    """
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + jump)
    jump = 0.0
    monkeypatch.setattr(watching, "time", clock)
    with watching.watch_play(4.0, 1, 1, None) as watch:
        watch.play = SimpleNamespace(round=1)
        jump = 3600.0
        until(lambda: watch.played, lambda: "the watch does not look")
        before = watch.played
        until(lambda: watch.played > before, lambda: "the watch does not look again")
        assert watch.played < 4.0


@pytest.mark.parametrize(
    ("folder", "name"), [("mock:///run", "t.hung.tmp"), ("{}", "cells/.t.parquet.hung.tmp")]
)
def test_a_pipe_where_stacks_are_expected_holds_nobody_up(tmp_path, monkeypatch, folder, name):
    """Of a run in a bucket, in the folder of everybody's temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "cells").mkdir()
    os.mkfifo(tmp_path / name)
    subprocess.Popen(["sh", "-c", "printf '9\nplanted\n' > $0", tmp_path / name])
    crashed = explain_crash(RunFolder(folder.format(tmp_path)), SimpleNamespace(name="t"), "died")
    assert crashed == WorkerCrashed("died")
