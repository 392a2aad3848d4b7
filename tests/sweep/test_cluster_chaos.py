"""`make chaos`: what it checks can fail. Continuous integration runs it beside the tests."""

from __future__ import annotations

import shutil

import pyarrow.parquet as pq
import pytest

from benchmarks.chaos import check
from tests.helpers import play_here


@pytest.fixture
def pair(small_suite, tmp_path):
    """Two runs of one suite, in other blocks."""
    for name, block in (("well", 4), ("run", 1)):
        play_here(small_suite(horizon=8), tmp_path / name, block=block)
    return tmp_path / "well", tmp_path / "run"


def test_what_is_lost_doubled_or_changed_is_found(pair):
    well, run = pair
    assert check.differences(well, run) == []
    first, second, third, *_ = sorted(path.name for path in (run / "cells").glob("*.parquet"))
    shutil.copy(run / "cells" / first, run / "cells" / "again.parquet")
    shutil.copy(run / "rounds" / first, run / "rounds" / "again.parquet")
    assert any(line.startswith("double: ") for line in check.differences(well, run))
    for kind in ("cells", "rounds"):
        (run / kind / "again.parquet").unlink()
    kept_bytes = (run / "cells" / second).read_bytes()
    (run / "cells" / second).unlink()
    assert any(line.startswith("lost: 1 cells") for line in check.differences(well, run))
    (run / "cells" / second).write_bytes(kept_bytes)
    (run / "rounds" / second).unlink()
    assert any(line.startswith("rounds: ") for line in check.differences(well, run))
    shutil.copy(run / "rounds" / third, run / "rounds" / second)
    assert check.differences(well, run) != []


def rewrite(path, **changes):
    """Write a Parquet file again with other values in some columns."""
    table = pq.ParquetFile(path).read()
    for name, change in changes.items():
        values = [change(table[name].to_pylist())]
        table = table.set_column(table.column_names.index(name), table.schema.field(name), values)
    pq.write_table(table, path)


def test_one_bit_and_a_healthy_cell_that_failed_are_found(pair):
    well, run = pair
    first, second, *_ = sorted((run / "rounds").glob("*.parquet"))
    rewrite(first, violation=lambda values: [*values[:-1], values[-1] + 1e-12])
    assert check.differences(well, run) == ["rounds: violation differs"]
    failed = {"status": lambda values: ["failed"], "error": lambda values: ["the cell crashed"]}
    rewrite(run / "cells" / second.name, **failed)
    second.unlink()
    assert any("healthy, but failed: " in line for line in check.differences(well, run))


def test_dumps_are_told_from_messages():
    fine = (
        "chaos: 3 cells\nfailed: x seed 1: ValueError: on purpose\ncbobench: the disk is "
        "full\nstopped: 1 of 3 cells"
    )
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
