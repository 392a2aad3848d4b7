"""`watch`: what a run says of itself while others play it, and when nobody does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest

import cbobench
from cbobench.cli import main
from cbobench.report import live
from cbobench.report.watch import as_object, text
from cbobench.results.drivers import SILENCE, Claim, mark
from cbobench.results.export import export
from cbobench.sweep.run import execute, plan
from tests.conftest import ROOT

PATIENCE = 60.0


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A run of which one method lacks seeds."""
    folder = tmp_path_factory.mktemp("half")
    suite = {
        "suite": "half", "horizon": 20, "seeds": 4,
        "problems": ["rkhs-1d"], "algorithms": ["ckb-ucb", "random"],
    }  # fmt: skip
    cbobench.run(suite, out=folder / "run", cpus=0, block=1)
    for path in (folder / "run").glob("*/*random.2-2*.parquet"):
        path.unlink()
    return folder / "run"


def signed(run, news=None, **other):
    """The file of a call that plays what is missing."""
    grid = live.Live(run).record.grids[-1]
    claim = Claim(live.RunFolder.at(run), grid.cells)
    file = run / "drivers" / f"{claim.id}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(asdict(replace(claim.mine, holds=True, **other)) | {"news": news or {}}))
    return file


def test_a_run_that_nobody_plays(half, capsys):
    assert main(["watch", str(half)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "half: idle: 7 of 8 cells ok, 0 failed"
    assert "nobody plays 1 cell of the 1" in said[1]


def test_the_comparison_is_of_seeds_that_all_have(half):
    view = live.Live(half).look()
    assert view.seeds == [("rkhs-1d", 20, 3, 4)]
    frame = view.comparison.frame
    whole = cbobench.compare(half).frame
    assert frame["n"].tolist() == [3, 3]
    assert whole["n"].tolist() == [4, 3]
    random = [f["algorithm"].eq("random") for f in (frame, whole)]
    assert frame[random[0]]["regret_median"].item() == whole[random[1]]["regret_median"].item()
    cells = cbobench.load_cells(half, algorithm="ckb-ucb", seed=[0, 1, 3])
    assert frame[~random[0]]["regret_median"].item() == cells["regret"].median()


def test_a_sign_of_life_says_how_far_it_is(half):
    pair = next(p for p in live.Live(half).record.grids[-1].pairs if p.algorithm.name == "random")
    news = {"rate": 50.0, "left": [3.0, 2.0, 5.0], "playing": {mark(pair, 20): [1, 7]}}
    file = signed(half, news)
    try:
        view = live.Live(half).look()
        assert view.state == "playing"
        assert [(p.ok, p.playing, p.rounds) for p in view.pairs] == [(4, 0, 80), (3, 1, 67)]
        said = as_object(view)
        assert said["cells"] == {"expected": 8, "ok": 7, "failed": 0, "playing": 1, "missing": 1, "of_nobody": 0}
        assert said["rounds"] == {"done": 147, "total": 160, "per_second": 50.0}
        assert 2.0 < said["left"]["high"] <= 5.0
        assert "91 % of the rounds, 50 a second; left: about" in text(view)
        file.write_text(file.read_text().replace('"left": [3.0', '"left": ["x"'))
        assert live.Live(half).look().left is None
    finally:
        file.unlink()


def test_a_call_elsewhere_that_falls_silent_is_told(half, monkeypatch):
    file = signed(half, machine="elsewhere-1")
    try:
        looking = live.Live(half)
        assert looking.look().state == "playing"
        now = time.monotonic()
        for after, state in ((live.QUIET - 1, "playing"), (live.QUIET + 1, "silent"), (SILENCE + 1, "idle")):
            monkeypatch.setattr(live.time, "monotonic", lambda after=after: now + after)
            view = looking.look()
            assert view.state == state, f"after {after} s"
            assert live.QUIET < 30, "told within half a minute"
        assert "ended without a word" in text(view)
        os.utime(file)
        assert looking.look().state == "playing", "it was the network"
    finally:
        file.unlink()


@pytest.mark.slow
def test_a_call_that_is_killed_is_told(small_suite, tmp_path, capsys):
    suite = small_suite(horizon=200_000, seeds=8, extra="record: {rounds: 10}\n")
    words = [sys.executable, "-m", "cbobench", "run", str(suite), "--out", str(tmp_path / "run"), "--cpus", "0"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        deadline = time.monotonic() + PATIENCE
        try:
            while not (tmp_path / "run" / "run.json").exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            looking = live.Live(tmp_path / "run")
            while not (playing := looking.look()).sum("rounds") and time.monotonic() < deadline:
                time.sleep(0.2)
            assert playing.state == "playing"
            assert 0 < playing.sum("rounds") < playing.sum("expected") * 200_000
        finally:
            driver.send_signal(signal.SIGKILL)
            driver.wait()
    view = looking.look()
    assert view.state == "idle"
    assert "ended without a word" in text(view)
    assert main(["watch", str(tmp_path / "run"), "--json", "--once"]) == 1
    assert json.loads(capsys.readouterr().out)["drivers"][0]["state"] == "dead"


def test_a_finished_run_says_so_and_returns(small_suite, tmp_path, capsys):
    execute(plan(small_suite(horizon=20), out=tmp_path / "run", cpus=0), cpus=0)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    assert main(["watch", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith("small: complete: 12 of 12 cells ok, 0 failed\n")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == files, "nothing is written"


def test_a_misspelt_run_is_told_of_its_neighbour(small_suite, tmp_path, capsys):
    execute(plan(small_suite(horizon=5), out=tmp_path / "motors", cpus=0), cpus=0)
    (tmp_path / "motor").mkdir()
    for given in ("motor", "motorz"):
        assert main(["watch", str(tmp_path / given)]) == 2
        assert capsys.readouterr().err.endswith(f"it has no run.json; did you mean {tmp_path / 'motors'}?\n")
    assert main(["watch", str(tmp_path / "else")]) == 2
    assert capsys.readouterr().err.endswith("it has no run.json; give the folder of a run\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is not a run folder: it has no run.json"),
        ("{", "is not JSON"),
        ('{"schema": 99}', "99"),
        ('{"schema": 1}', "run.json"),
    ],
)
def test_what_is_no_run_is_a_line(tmp_path, capsys, content, said):
    (tmp_path / "run").mkdir()
    if content is not None:
        (tmp_path / "run" / "run.json").write_text(content)
    assert main(["watch", str(tmp_path / "run")]) != 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_bundle_is_a_line(small_suite, tmp_path, capsys):
    execute(plan(small_suite(horizon=5), out=tmp_path / "run", cpus=0), cpus=0)
    bundle = export(tmp_path / "run", tmp_path / "run.zip").file
    assert main(["watch", bundle]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"cbobench: {bundle} is a file; nobody plays a bundle; its state: cbobench status"
    ]
