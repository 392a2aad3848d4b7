"""Runs: the same rows for any worker count, block, interruption and extension; failures as rows; damage refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.report.load import Run

VOLATILE = {"seconds", "seconds_per_round", "peak_memory_mb", "host", "attempt"}


def assert_same_rows(first, second):
    """Rounds and cells of two runs are equal to the last bit; no cell is missing or double."""
    for frames in (
        (cbobench.load_rounds(first), cbobench.load_rounds(second)),
        tuple(cells(r) for r in (first, second)),
    ):
        one, other = (f.sort_values([c for c in ("cell", "t") if c in f], ignore_index=True) for f in frames)
        assert len(one) == len(other) > 0
        for column in one.columns:
            if column in ("g", "observed_g", "dual"):
                assert [_tuple(v) for v in one[column]] == [_tuple(v) for v in other[column]], column
            else:
                pd.testing.assert_series_equal(one[column], other[column], check_exact=True)
    keys = cbobench.load_cells(first)["cell"]
    assert keys.is_unique


def _tuple(values):
    return None if values is None else tuple(values)


def cells(run):
    return cbobench.load_cells(run).drop(columns=list(VOLATILE))


@pytest.fixture
def reference(small_suite, tmp_path):
    """A suite and its run without Ray, in blocks of 50."""
    suite = small_suite(horizon=60, seeds=8)
    cbobench.run(suite, out=tmp_path / "reference", cpus=0, block=50)
    return suite, tmp_path / "reference"


def test_shape_of_a_run(reference):
    _, run = reference
    frame = cbobench.load_cells(run)
    assert len(frame) == 24
    assert (frame["status"] == "ok").all()
    assert (frame["seconds_per_round"] > 0).all()
    rounds = cbobench.load_rounds(run)
    assert len(rounds) == 24 * 60
    last = rounds[rounds["t"] == 60].set_index("cell")
    for metric in ("regret", "regret_plus", "violation", "violation_hard", "violations", "reward"):
        pd.testing.assert_series_equal(last[metric], frame.set_index("cell")[metric], check_exact=True)
    some = cbobench.load_rounds(run, columns=["regret"], algorithm="ckb-ts", seed=[1, 2])
    assert set(some.columns) == {"cell", "problem", "algorithm", "seed", "t", "regret"}
    assert set(some["seed"]) == {1, 2}
    with pytest.raises(Misuse, match="unknown filter 'algorythm'; did you mean 'algorithm'"):
        cbobench.load_cells(run, algorythm="x")
    with pytest.raises(Misuse, match="unknown column 'regrets'"):
        cbobench.load_rounds(run, columns=["regrets"])


def test_a_horizon_that_the_recorded_rounds_do_not_divide(small_suite, tmp_path):
    suite = small_suite(horizon=97, seeds=2, extra="record: {rounds: 13}\n")
    cbobench.run(suite, out=tmp_path / "odd", cpus=0)
    rounds = cbobench.load_rounds(tmp_path / "odd")
    assert len(rounds) == 6 * 13
    assert rounds["t"].max() == 97


@pytest.mark.parametrize("block", [1, 3])
def test_block_size_changes_nothing(reference, tmp_path, block):
    suite, run = reference
    cbobench.run(suite, out=tmp_path / "blocks", cpus=0, block=block)
    assert_same_rows(run, tmp_path / "blocks")


@pytest.mark.slow
@pytest.mark.parametrize("cpus", [1, 2])
def test_ray_changes_nothing(reference, tmp_path, command, cpus):
    suite, run = reference
    done = command("run", suite, "--out", tmp_path / "ray", "--cpus", cpus, "--block", 3)
    assert done.returncode == 0, done.stderr
    assert_same_rows(run, tmp_path / "ray")


@pytest.mark.parametrize("threads", ["1", "2"])
def test_blas_threads_change_nothing(write_suite, tmp_path, command, threads):
    """A product of this size is cut over threads where BLAS may, with other bits; a cell is played with one."""
    text = (
        "suite: t\nhorizon: 30\nseeds: 2\nproblems: [rkhs: {n: 700}, stocks: {data: look-alike}]\nalgorithms: [ckb-ts]"
    )
    suite = write_suite(text)
    cbobench.run(suite, out=tmp_path / "here", cpus=0)
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    done = command("run", suite, "--out", tmp_path / "there", "--cpus", 0, env=environment)
    assert done.returncode == 0, done.stderr
    assert_same_rows(tmp_path / "here", tmp_path / "there")


def test_extension_from_4_to_8_seeds(reference, tmp_path):
    suite, run = reference
    first = cbobench.run(suite, out=tmp_path / "grown", cpus=0, seeds=4, block=3)
    files = {p: p.stat().st_mtime_ns for p in (tmp_path / "grown").rglob("*.parquet")}
    second = cbobench.run(suite, out=tmp_path / "grown", cpus=0)
    assert (first.played, second.played) == (12, 12)
    assert all(p.stat().st_mtime_ns == at for p, at in files.items()), "what was done is not touched"
    assert_same_rows(run, tmp_path / "grown")
    assert cbobench.run(suite, out=tmp_path / "grown", cpus=0).played == 0


def test_adding_an_algorithm_extends_and_fewer_seeds_do_not_shrink(reference, small_suite):
    suite, run = reference
    wider = small_suite(horizon=60, seeds=8, extra="  - random\n")
    assert cbobench.run(wider, out=run, cpus=0).played == 8
    cbobench.run(wider, out=run, cpus=0, seeds=2)
    assert len(cbobench.load_cells(run)) == 32


SLOW = """\
suite: slow
horizon: 3000
seeds: 12
record: {rounds: 50}
problems:
  - rkhs-1d
algorithms:
  - ckb-ucb
  - ckb-ts
"""


@pytest.mark.slow
def test_a_killed_driver_leaves_a_resumable_run(write_suite, tmp_path, command):
    """SIGKILL of the driver in the middle, and a resume at once, while orphaned workers may still publish."""
    suite = write_suite(SLOW)
    cbobench.run(suite, out=tmp_path / "whole", cpus=0)
    words = [
        sys.executable,
        "-m",
        "cbobench",
        "run",
        str(suite),
        "--out",
        str(tmp_path / "cut"),
        "--cpus",
        "2",
        "--block",
        "1",
    ]
    driver = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    published = tmp_path / "cut" / "cells"
    deadline = time.monotonic() + 60
    while len(list(published.glob("*.parquet")) if published.exists() else []) < 4:
        assert time.monotonic() < deadline, "the run did not start"
        assert driver.poll() is None, "the run ended too early to be killed"
        time.sleep(0.02)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    before = len(list(published.glob("*.parquet")))
    assert before < 24
    done = command("run", suite, "--out", tmp_path / "cut", "--cpus", 2)
    assert done.returncode == 0, done.stderr
    assert_same_rows(tmp_path / "whole", tmp_path / "cut")
    assert not list((tmp_path / "cut").rglob(".*.parquet.*.tmp")) or before < 24


@pytest.mark.slow
def test_ctrl_c_leaves_a_resumable_run(write_suite, tmp_path):
    suite = write_suite(SLOW)
    words = [
        sys.executable,
        "-m",
        "cbobench",
        "run",
        str(suite),
        "--out",
        str(tmp_path / "cut"),
        "--cpus",
        "0",
        "--block",
        "1",
    ]
    driver = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    published = tmp_path / "cut" / "cells"
    while not published.exists() or not list(published.glob("*.parquet")):
        assert driver.poll() is None
        time.sleep(0.02)
    driver.send_signal(signal.SIGINT)
    _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "stopped: " in errors
    assert "to go on: cbobench run" in errors
    assert not list((tmp_path / "cut").rglob("*.tmp"))
    assert 0 < len(Run(tmp_path / "cut").cells) < 24


BROKEN = '''
from dataclasses import dataclass
from cbobench.algorithms.ckb import CKBUCB
from cbobench.params import param


@dataclass(kw_only=True)
class Broken(CKBUCB):
    """Fails on purpose in some replicates."""

    how: str = param("raise", "how")

    def learn(self, t, chosen, feedback):
        super().learn(t, chosen, feedback)
        bad = self.setting.norm[:, 0] > 5.0
        if t == 20 and bad.any():
            if self.how == "raise":
                raise ValueError("on purpose")
            if self.how == "exit":
                raise SystemExit(0)
            if self.how == "nan":
                self.dual[bad] = float("nan")

    def ask(self, t):
        actions = super().ask(t)
        if t == 20 and self.how == "range":
            actions = actions.copy()
            actions[self.setting.norm[:, 0] > 5.0] = -1
        return actions
'''


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raise", "ValueError: on purpose"),
        ("exit", "SystemExit: 0"),
        ("nan", "not finite|not a number"),
        ("range", "round 20: action -1"),
    ],
)
def test_a_failed_cell_is_a_row_and_the_others_stand(write_suite, tmp_path, monkeypatch, how, message):
    (tmp_path / "mine_broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = (
        f"suite: b\nhorizon: 60\nseeds: 12\nproblems: [rkhs-1d]\nalgorithms:\n  - mine_broken:Broken: {{how: {how}}}\n"
    )
    outcome = cbobench.run(write_suite(text), out=tmp_path / "b", cpus=0)
    frame = cbobench.load_cells(tmp_path / "b")
    failed = frame[frame["status"] == "failed"]
    assert 0 < len(failed) < 12
    assert outcome.failed == len(failed)
    assert failed["error"].str.contains(message).all()
    assert failed["traceback"].str.contains("Traceback").all()
    assert failed["regret"].isna().all()
    assert set(cbobench.load_rounds(tmp_path / "b")["cell"]) == set(frame.loc[frame["status"] == "ok", "cell"])
    good = text.replace(f"mine_broken:Broken: {{how: {how}}}", "mine_broken:Broken: {how: not}")
    cbobench.run(write_suite(good, "good.yaml"), out=tmp_path / "g", cpus=0)
    fine = cbobench.load_cells(tmp_path / "g").set_index("seed")["regret"]
    spared = frame[frame["status"] == "ok"].set_index("seed")["regret"]
    assert len(spared) == len(fine.loc[spared.index])


@pytest.mark.slow
def test_a_cell_that_crashes_its_worker_is_found_and_the_others_stand(write_suite, tmp_path, command):
    """The block is cut in two until the cell at fault is alone; it is tried three times."""
    (tmp_path / "mine_crash.py").write_text(
        "import os\nfrom cbobench.algorithms.references import Random\n\n\nclass Crash(Random):\n"
        "    def ask(self, t):\n"
        "        if t == 3 and any(scope[-1] == 2 for scope in self.setting.streams.scopes):\n"
        "            os._exit(1)\n        return super().ask(t)\n"
    )
    text = "suite: c\nhorizon: 5\nseeds: 4\nproblems: [rkhs-1d]\nalgorithms: [mine_crash:Crash, random]\n"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = command("run", write_suite(text), "--out", tmp_path / "c", "--cpus", 2, env=environment)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("c, T = 5"), "only the table is on standard output"
    assert "raylet" not in done.stdout
    frame = cbobench.load_cells(tmp_path / "c")
    failed = frame[frame["status"] == "failed"]
    assert failed[["algorithm", "seed"]].values.tolist() == [["mine_crash:Crash", 2]]
    assert failed["error"].item() == "the cell crashed its worker 3 times"
    assert len(frame) == 8


def test_failed_cells_are_played_again_on_request(write_suite, tmp_path, monkeypatch):
    (tmp_path / "mine_again.py").write_text(
        BROKEN.replace("t == 20 and bad.any()", "t == 20 and bad.any() and not __import__('os').environ.get('WELL')")
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "suite: b\nhorizon: 30\nseeds: 12\nproblems: [rkhs-1d]\nalgorithms: [mine_again:Broken]\n"
    suite = write_suite(text)
    failed = cbobench.run(suite, out=tmp_path / "b", cpus=0).failed
    assert failed > 0
    assert cbobench.run(suite, out=tmp_path / "b", cpus=0).played == 0
    monkeypatch.setenv("WELL", "yes")
    again = cbobench.run(suite, out=tmp_path / "b", cpus=0, again=["failed"])
    assert (again.played, again.failed) == (failed, 0)
    frame = cbobench.load_cells(tmp_path / "b")
    assert (frame["status"] == "ok").all()
    assert len(frame) == 12
    assert frame["attempt"].value_counts().to_dict() == {1: 12 - failed, 2: failed}
    assert len(cbobench.load_rounds(tmp_path / "b")) == 12 * 30


def test_changed_code_is_stale_and_never_mixed_in_silence(small_suite, tmp_path, monkeypatch):
    from cbobench.sweep import provenance
    from cbobench.sweep.status import status
    from cbobench.sweep.store import RunFolder

    suite, run = small_suite(), tmp_path / "run"
    cbobench.run(suite, out=run, cpus=0)
    assert status(RunFolder.at(run))[1].counts() == {"done": 12, "failed": 0, "stale": 0, "missing": 0}
    monkeypatch.setattr(
        "cbobench.sweep.status.source_hash", lambda p, a: "changed" if a == "ckb-ts" else provenance.source_hash(p, a)
    )
    assert status(RunFolder.at(run))[1].counts() == {"done": 12, "failed": 0, "stale": 4, "missing": 0}
    monkeypatch.setattr("cbobench.sweep.provenance.source_hash", lambda p, a: "changed")
    again = cbobench.run(suite, out=run, cpus=0, again=["stale"])
    assert again.played == 12
    assert set(cbobench.load_cells(run)["source"]) == {"changed"}


def test_an_object_store_works_like_a_disk(reference, tmp_path, monkeypatch):
    """Written as to an object store: one buffered upload per file, no rename."""
    suite, run = reference
    monkeypatch.setattr("cbobench.sweep.store.RunFolder.local", False)
    (tmp_path / "store" / "cells").mkdir(parents=True)
    (tmp_path / "store" / "rounds").mkdir()
    cbobench.run(suite, out=tmp_path / "store", cpus=0)
    assert_same_rows(run, tmp_path / "store")


def test_a_run_by_uri_is_the_run_by_path(reference):
    suite, run = reference
    assert cbobench.run(suite, out=f"file://{run}", cpus=0).played == 0
    with pytest.raises(Misuse, match="cannot use 'gopher://x' as a run folder"):
        Run("gopher://x")
