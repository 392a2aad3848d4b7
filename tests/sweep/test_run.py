"""Runs: the same rows for any worker count, block, interruption and extension; failures as rows;
damage refused.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache

import pandas as pd
import pytest

import cbobench
from cbobench.errors import Misuse
from cbobench.report.tables.status import read_status
from cbobench.results.folder import open_run
from cbobench.results.source import source_hash
from cbobench.results.verify import verify
from tests.conftest import SMALL
from tests.helpers import assert_same_rows, long, play_here
from tests.processes import assert_gone, below
from tests.sweep.helpers import start_and_wait, write_slow


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A suite and its run in this process, in blocks of 50; read only."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "suite.yaml").write_text(SMALL.format(horizon=60, seeds=8))
    play_here(folder / "suite.yaml", folder / "run", block=50)
    return folder / "suite.yaml", folder / "run"


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
        pd.testing.assert_series_equal(
            last[metric], frame.set_index("cell")[metric], check_exact=True
        )
    selected_rows = cbobench.load_rounds(run, columns=["regret"], algorithm="ckb-ts", seed=[1, 2])
    assert set(selected_rows.columns) == {"cell", "problem", "algorithm", "seed", "t", "regret"}
    assert set(selected_rows["seed"]) == {1, 2}
    with pytest.raises(Misuse, match="unknown filter 'algorythm'; did you mean 'algorithm'"):
        cbobench.load_cells(run, algorythm="x")
    with pytest.raises(Misuse, match="unknown column 'regrets'"):
        cbobench.load_rounds(run, columns=["regrets"])


def test_extension_from_4_to_8_seeds(reference, tmp_path):
    """In other blocks, which change nothing."""
    suite, run = reference
    first = play_here(suite, tmp_path / "grown", seeds=4, block=3)
    files = {p: p.stat().st_mtime_ns for p in (tmp_path / "grown").rglob("*.parquet")}
    second = play_here(suite, tmp_path / "grown")
    assert (first.played, second.played) == (12, 12)
    assert all(p.stat().st_mtime_ns == at for p, at in files.items()), (
        "what was done is not touched"
    )
    assert_same_rows(run, tmp_path / "grown")


def test_adding_an_algorithm_extends_and_fewer_seeds_do_not_shrink(
    reference, small_suite, tmp_path
):
    run = shutil.copytree(reference[1], tmp_path / "run")
    wider = small_suite(horizon=60, seeds=8, extra="  - random\n")
    assert play_here(wider, run).played == 8
    play_here(wider, run, seeds=2)
    assert len(cbobench.load_cells(run)) == 32


@pytest.mark.slow
@pytest.mark.parametrize(
    "players",
    [
        "as it comes",
        *long("fresh workers", "ray"),
    ],
)
def test_a_killed_driver_leaves_a_resumable_run(tmp_path, players):
    """SIGKILL of the driver in the middle, and a resume at once, while orphaned workers, which end,
    may still publish; what is half-written goes.

    The driver's interpreter is what it costs.
    """
    suite = write_slow(tmp_path)
    driver = start_and_wait(suite, tmp_path / "cut", 2, 4, players)
    workers = below(driver.pid)
    assert len(workers) >= 2
    driver.kill()
    driver.communicate()
    assert len(list((tmp_path / "cut" / "cells").glob("*.parquet"))) < 24
    (tmp_path / "cut" / "rounds" / ".x.parquet.0123.tmp").write_text("half")
    notes = []
    play_here(suite, tmp_path / "cut", on_note=notes.append)
    assert any("unfinished files of a call that was killed" in note for note in notes)
    assert not list((tmp_path / "cut").rglob("*.tmp"))
    assert verify(open_run(tmp_path / "cut")).damaged == []
    play_here(suite, tmp_path / "undisturbed")
    assert_same_rows(tmp_path / "undisturbed", tmp_path / "cut")
    assert_gone(workers)


def test_changed_code_is_stale_and_never_mixed_in_silence(small_suite, tmp_path, monkeypatch):
    suite, run = small_suite(), tmp_path / "run"
    play_here(suite, run)
    assert read_status(open_run(run))[1].counts() == {
        "done": 12,
        "failed": 0,
        "stale": 0,
        "missing": 0,
    }
    monkeypatch.setattr(
        "cbobench.results.source.source_hash",
        cache(lambda p, a: "changed" if a == "ckb-ts" else source_hash(p, a)),
    )
    assert read_status(open_run(run))[1].counts() == {
        "done": 12,
        "failed": 0,
        "stale": 4,
        "missing": 0,
    }
    for room in ("results.source", "sweep.blocks"):
        monkeypatch.setattr(f"cbobench.{room}.source_hash", cache(lambda p, a: "changed"))
    played_again = play_here(suite, run, again=["stale"])
    assert played_again.played == 12
    assert set(cbobench.load_cells(run)["source"]) == {"changed"}


def test_to_plan_loads_no_pandas():
    """It takes 30 MB, and a third of the time of a call that has nothing to play."""
    code = "import sys, cbobench.sweep.plan; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
