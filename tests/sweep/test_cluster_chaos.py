"""`make chaos`: what it checks can fail. Continuous integration runs it beside the tests."""

from __future__ import annotations

import importlib.util
import shutil

import pyarrow.parquet as pq
import pytest

import cbobench
from tests.conftest import ROOT

CHAOS = ROOT / "benchmarks" / "chaos"


@pytest.fixture
def check(monkeypatch):
    monkeypatch.syspath_prepend(str(CHAOS))
    spec = importlib.util.find_spec("chaos_check")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pair(small_suite, tmp_path):
    """Two runs of one suite, in other blocks."""
    for name, block in (("well", 4), ("run", 1)):
        cbobench.run(small_suite(horizon=8), out=tmp_path / name, cpus=0, block=block)
    return tmp_path / "well", tmp_path / "run"


def rewrite(path, change):
    """Write a Parquet file again with something changed."""
    table = pq.ParquetFile(path).read()
    pq.write_table(change(table), path)


def column(table, name, values):
    return table.set_column(table.column_names.index(name), table.schema.field(name), values)


def test_what_is_lost_doubled_or_changed_is_found(check, pair):
    well, run = pair
    assert check.differences(well, run) == []
    first, second, third, *_ = sorted(path.name for path in (run / "cells").glob("*.parquet"))
    shutil.copy(run / "cells" / first, run / "cells" / "again.parquet")
    shutil.copy(run / "rounds" / first, run / "rounds" / "again.parquet")
    assert any(line.startswith("double: ") for line in check.differences(well, run))
    for kind in ("cells", "rounds"):
        (run / kind / "again.parquet").unlink()
    kept = (run / "cells" / second).read_bytes()
    (run / "cells" / second).unlink()
    assert any(line.startswith("lost: 1 cells") for line in check.differences(well, run))
    (run / "cells" / second).write_bytes(kept)
    (run / "rounds" / second).unlink()
    assert any(line.startswith("rounds: ") for line in check.differences(well, run))
    shutil.copy(run / "rounds" / third, run / "rounds" / second)
    assert check.differences(well, run) != []


@pytest.mark.parametrize("name", ["violation", "observed_g", "action"])
def test_one_bit_is_found(check, pair, name):
    well, run = pair
    path = sorted((run / "rounds").glob("*.parquet"))[0]

    def flip(table):
        *values, last = table[name].to_pylist()
        if isinstance(last, list):
            last = [last[0] + 1e-12, *last[1:]]
        else:
            last += 1 if isinstance(last, int) else 1e-12
        return column(table, name, [[*values, last]])

    rewrite(path, flip)
    assert check.differences(well, run) == [f"rounds: {name} differs"]


def test_a_healthy_cell_that_failed_is_found(check, pair):
    well, run = pair
    path = sorted((run / "cells").glob("*.parquet"))[0]
    rewrite(path, lambda t: column(column(t, "status", [["failed"]]), "error", [["the cell crashed"]]))
    (run / "rounds" / path.name).unlink()
    assert any("healthy, but failed: " in line for line in check.differences(well, run))


def test_dumps_are_told_from_messages(check):
    fine = "chaos: 3 cells\nfailed: x seed 1: ValueError: on purpose\ncbobench: the disk is full\nstopped: 1 of 3 cells"
    assert check.dumps(fine) == []
    for line in (
        "Traceback (most recent call last):",
        '  File "x.py", line 3 in ask',
        "Fatal Python error: Aborted",
        "*** SIGTERM received at time=1 on cpu 0 ***",
        "[2026-01-01 10:00:00,000 E 1 1] core_worker.cc:1: The raylet died",
        "(raylet) a worker died",
    ):
        assert check.dumps(f"{fine}\n{line}") == [line], line
