"""Run folders that are damaged or of something else: refused in one line, and not touched."""

from __future__ import annotations

import re

import pandas as pd
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.errors import DamagedRun, Misuse
from cbobench.report.load import Run
from cbobench.report.tables.summary import summary
from tests.helpers import play_here
from tests.results.forging import all_are, files


def first(run, kind):
    """The file of its first task."""
    return files(run, kind)[0]


def rewrite(file, change):
    table = pq.read_table(file)
    pq.write_table(change(table), file)


def edit(run, old, new):
    """Change the text of the record, which stays as it is signed."""
    file = run / "run.json"
    assert re.search(old, file.read_text())
    file.write_text(re.sub(old, new, file.read_text()))


DAMAGE = {
    "truncated": (
        lambda run: first(run, "rounds").write_bytes(first(run, "rounds").read_bytes()[:-20]),
        "not a whole Parquet file",
    ),
    "empty": (lambda run: first(run, "cells").write_bytes(b""), "not a whole Parquet file"),
    "foreign": (
        lambda run: pd.DataFrame({"a": [1]}).to_parquet(run / "rounds" / "other.parquet"),
        "other.parquet was not written by cbobench",
    ),
    "missing rounds": (
        lambda run: first(run, "rounds").unlink(),
        "is missing, its cells are there; restore it, or: cbobench verify",
    ),
    "fewer rows": (
        lambda run: rewrite(first(run, "cells"), lambda table: table.slice(1)),
        "should hold 4 rows of cells, it has 3",
    ),
    "no code": (
        lambda run: rewrite(first(run, "cells"), all_are("source", None)),
        "holds rows that cbobench did not write",
    ),
    "record": (lambda run: (run / "run.json").write_text("{not json"), "is not JSON"),
    "schema": (
        lambda run: edit(run, r'"schema": \d+', '"schema": 99'),
        "has schema version 99, this cbobench reads 6",
    ),
    "grid": (lambda run: edit(run, '"grids"', '"grits"'), "is not what cbobench writes"),
    "edited record": (
        lambda run: edit(run, '"horizon": 20', '"horizon": 77'),
        "is not what was written: something has changed it since; cbobench run SUITE --again",
    ),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_run_is_refused_and_not_touched(played, how):
    suite, run = played
    damage, message = DAMAGE[how]
    damage(run)
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in run.rglob("*")}
    for call in (lambda: play_here(suite, run), lambda: Run(run)):
        with pytest.raises(DamagedRun, match=message) as error:
            call()
        assert "\n" not in str(error.value)
        assert error.value.exit_code == 1
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in run.rglob("*")} == before


def test_a_folder_of_something_else_is_refused(played, small_suite, write_suite, tmp_path):
    suite, run = played
    other_suite = write_suite(
        suite.read_text().replace("suite: small", "suite: tall"), "other.yaml"
    )
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for asked_suite, out, why in (
        (other_suite, run, "holds the suite 'small', not 'tall'; give another --out"),
        (suite, tmp_path / "full", "not empty and not a run folder"),
        (suite, tmp_path / "full" / "thesis.tex", "is a file"),
        (
            small_suite(horizon=20, extra="record: {rounds: 7}\n"),
            run,
            "records 1,000 rounds, the suite now asks othe",
        ),
    ):
        with pytest.raises(Misuse, match=why):
            play_here(asked_suite, out)
    with pytest.raises(Misuse, match="not a run folder: it has no run.json"):
        Run(tmp_path / "full")


def test_a_parameter_spelt_otherwise_is_the_same_cell(small_suite, tmp_path):
    run, named = tmp_path / "run", "  - ckb-rand: {beta_scale: %s}\n"
    play_here(small_suite(extra=named % "1"), run)
    assert play_here(small_suite(extra=named % "1.0"), run).played == 0
    moved = small_suite(extra="  - ckb-rand\nshared: {beta_scale: 1}\n")
    assert play_here(moved, run).played == 0
    frame = summary(Run(run))
    assert frame["n"].tolist() == frame["expected"].tolist() == [4] * 4
    assert "ckb-rand" in set(frame["algorithm"])
    assert set(cbobench.load_rounds(run)["algorithm"]) == set(frame["algorithm"])
