"""Run folders that are damaged or of something else: refused in one line, and not touched."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.errors import DamagedRun, Misuse
from cbobench.report.load import Run
from cbobench.report.summary import summary
from cbobench.sweep.run import execute, plan


def damage(run, how):
    file = sorted((run / "cells").glob("*.parquet"))[0]
    rounds = run / "rounds" / file.name
    if how == "truncated":
        rounds.write_bytes(rounds.read_bytes()[:-20])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "foreign":
        pd.DataFrame({"a": [1]}).to_parquet(run / "rounds" / "other.parquet")
    elif how == "missing rounds":
        rounds.unlink()
    elif how == "fewer rows":
        table = pq.read_table(file)
        pq.write_table(table.slice(1), file)
    elif how == "no code":
        table = pq.read_table(file)
        at = table.column_names.index("source")
        pq.write_table(table.set_column(at, "source", pa.nulls(len(table), table.schema.field(at).type)), file)
    elif how == "record":
        (run / "run.json").write_text("{not json")
    elif how == "schema":
        content = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(content | {"schema": 99}))
    elif how == "grid":
        content = json.loads((run / "run.json").read_text())
        del content["grids"]
        (run / "run.json").write_text(json.dumps(content))
    elif how == "edited record":
        text = (run / "run.json").read_text()
        (run / "run.json").write_text(text.replace('"horizon": 20', '"horizon": 77'))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("truncated", "not a whole Parquet file"),
        ("empty", "not a whole Parquet file"),
        ("foreign", "other.parquet was not written by cbobench"),
        ("missing rounds", "is missing, its cells are there; restore it, or, when nothing writes"),
        ("fewer rows", "should hold 4 rows of cells, it has 3"),
        ("no code", "holds rows that cbobench did not write"),
        ("record", "is not JSON"),
        ("schema", "has schema version 99, this cbobench reads 4"),
        ("grid", "is not what cbobench writes"),
        (
            "edited record",
            "is not what was written: something has changed it since; cbobench verify RUN",
        ),
    ],
)
def test_a_damaged_run_is_refused_and_not_touched(played, how, message):
    suite, run = played
    damage(run, how)
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in run.rglob("*")}
    for call in (lambda: cbobench.run(suite, out=run, cpus=0), lambda: Run(run)):
        with pytest.raises(DamagedRun, match=message) as error:
            call()
        assert "\n" not in str(error.value)
        assert error.value.exit_code == 1
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in run.rglob("*")} == before


def test_a_folder_of_something_else_is_refused(played, small_suite, write_suite, tmp_path):
    suite, run = played
    other = write_suite(suite.read_text().replace("suite: small", "suite: tall"), "other.yaml")
    with pytest.raises(Misuse, match="holds the suite 'small', not 'tall'; give another --out"):
        cbobench.run(other, out=run, cpus=0)
    keeps = small_suite(horizon=20, extra="record: {rounds: 7}\n")
    with pytest.raises(Misuse, match="records 1,000 rounds, the suite now asks otherwise"):
        cbobench.run(keeps, out=run, cpus=0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    with pytest.raises(Misuse, match="not empty and not a run folder"):
        cbobench.run(suite, out=tmp_path / "full", cpus=0)
    with pytest.raises(Misuse, match="is a file"):
        cbobench.run(suite, out=tmp_path / "full" / "thesis.tex", cpus=0)
    with pytest.raises(Misuse, match="not a run folder: it has no run.json"):
        Run(tmp_path / "full")


def test_a_parameter_spelt_otherwise_is_the_same_cell(small_suite, tmp_path):
    run, named = tmp_path / "run", "  - ckb-rand: {beta_scale: %s}\n"
    cbobench.run(small_suite(extra=named % "1"), out=run, cpus=0)
    assert cbobench.run(small_suite(extra=named % "1.0"), out=run, cpus=0).played == 0
    moved = small_suite(extra="  - ckb-rand\nshared: {beta_scale: 1}\n")
    assert cbobench.run(moved, out=run, cpus=0).played == 0
    frame = summary(Run(run))
    assert frame["n"].tolist() == frame["expected"].tolist() == [4] * 4
    assert "ckb-rand" in set(frame["algorithm"])
    assert set(cbobench.load_rounds(run)["algorithm"]) == set(frame["algorithm"])


def test_a_call_in_between_is_kept(small_suite, tmp_path):
    """Two calls that planned at the same time: the second keeps the first one's cells."""
    suite, run = small_suite(), tmp_path / "run"
    first, second = (plan(suite, out=run, only=name, cpus=0, command=[name]) for name in ("ckb-ucb", "ckb-ts"))
    execute(first, cpus=0)
    execute(second, cpus=0)
    assert set(Run(run).cells["algorithm"]) == {"ckb-ucb", "ckb-ts"}
