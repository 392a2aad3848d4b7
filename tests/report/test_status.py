"""`cbobench status`: what a run says of itself while others play it, and when nobody does."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

import cbobench
from cbobench.cli import main
from cbobench.problems.simulators import simulator
from cbobench.problems.simulators.simulator import Simulator
from cbobench.report.tables import status
from cbobench.results.folder import open_run
from cbobench.results.lock import hold
from tests.helpers import UNREADABLE, play_here


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A run of which one method lacks a seed: of eight cells of 20 rounds, in a file each."""
    folder = tmp_path_factory.mktemp("half")
    suite = {
        "suite": "half", "horizon": 20, "seeds": 4,
        "problems": ["gramacy"], "algorithms": ["ckb-ucb", "random"],
    }  # fmt: skip
    play_here(suite, folder / "run", block=1)
    for path in (folder / "run").glob("*/*random.2-2*.parquet"):
        path.unlink()
    return folder / "run"


def read_json(run, capsys):
    assert main(["status", str(run), "--format", "json"]) == 1
    return json.loads(capsys.readouterr().out)


def test_the_status_says_who_plays_now(half, capsys):
    assert main(["status", str(half)]) == 1
    assert "played now" not in capsys.readouterr().out, "negative control"
    with hold(open_run(half)):
        assert main(["status", str(half)]) == 1
        assert f"  played now by process {os.getpid()} on" in capsys.readouterr().out
        assert read_json(half, capsys)["player"].startswith(f"process {os.getpid()} on")
    assert read_json(half, capsys)["player"] is None


def test_the_rate_is_of_what_was_published_since_the_call_began(half, monkeypatch, capsys):
    """Five cells of 20 rounds in 100 s; one is left."""
    now = time.time()
    for i, path in enumerate(sorted((half / "cells").glob("*.parquet"))):
        written = now - (50 if i < 5 else 200)
        os.utime(path, (written, written))
    assert read_json(half, capsys)["rounds_per_second"] is None, "nobody plays"
    with hold(open_run(half)):
        began = datetime.fromtimestamp(now - 100, UTC).isoformat()
        (half / "lock").write_text(f"process 1 on here since {began}")
        monkeypatch.setattr(status.time, "time", lambda: now)
        content = read_json(half, capsys)
        assert content["rounds_per_second"] == pytest.approx(1.0)
        assert content["seconds_left"] == pytest.approx(20.0)
        assert main(["status", str(half)]) == 1
    assert "  1 rounds/s; left: about 20 s (15 to 26 s)\n" in capsys.readouterr().out


def test_the_best_design_is_the_first_of_best_that_is_feasible(half, capsys):
    frame = cbobench.best(half).frame
    feasible = frame[frame["violation"] <= 0].iloc[0]
    (best,) = read_json(half, capsys)["best"]
    assert best["value"] == feasible["value"]
    assert best["configuration"] == {"x_1": feasible["x_1"], "x_2": feasible["x_2"]}
    assert best["by"] == feasible["by"]
    main(["status", str(half)])
    assert f"best: x_1 {feasible['x_1']:.6g}" in capsys.readouterr().out


@dataclass(kw_only=True)
class Slow(Simulator):
    source = about = "a test"
    low, high = (0.0,), (1.0,)
    noisy = False

    def simulate(self, x, gen):
        return [x[0], x[0] - 0.5]


def test_kept_simulations_are_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(simulator, "SLOW", 0.0)
    suite = {
        "suite": "s", "horizon": 4, "seeds": 2,
        "problems": [f"{__name__}:Slow"], "algorithms": ["random"],
    }  # fmt: skip
    play_here(suite, tmp_path / "run")
    kept = len([*(tmp_path / "run" / "simulations").glob("*.json")])
    assert main(["status", str(tmp_path / "run")]) == 0
    assert "simulations" not in capsys.readouterr().out, "nothing is left to simulate"
    for path in (tmp_path / "run").glob("*/*.parquet"):
        path.unlink()
    assert main(["status", str(tmp_path / "run")]) == 1
    assert f"  {kept} simulations kept\n" in capsys.readouterr().out
    # those of two cells of four rounds, and of what each recommends
    assert 2 * 4 <= kept <= 10


def test_status_ends_in_words_whatever_the_lock_is(half, capsys):
    file = half / "lock"
    with hold(open_run(half)):
        for content in (*UNREADABLE.values(), b"since \x1b[2J", b"process 1 since 9999-99-99"):
            file.write_bytes(content)
            assert main(["status", str(half)]) == 1
    file.unlink()
    for make in (file.mkdir, lambda: os.mkfifo(file), lambda: file.symlink_to("/dev/zero")):
        make()
        assert main(["status", str(half)]) == 1
        file.rmdir() if file.is_dir() else file.unlink()
    out, err = capsys.readouterr()
    assert "\x1b" not in out
    assert "Traceback" not in err
