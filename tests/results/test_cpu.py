"""The kind of CPU is recorded with every cell, and said where one table is of several; older files know none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.cli import main
from cbobench.report.load import Run
from cbobench.results.bundle import open_run
from cbobench.results.compact import compact
from cbobench.results.manifest import FILE, rebuild_manifest
from cbobench.results.provenance import cpu_kind, rounding_note
from cbobench.results.schema import ADDED_COLUMNS, FOOTER
from cbobench.results.verify import verify


@pytest.fixture
def run(played):
    return played[1]


SAID = "played on 2 kinds of CPU (A 1; B 2): the last bits may differ"


def change(run, how):
    """Write the cells of each task again, as `how` makes of its table and position, and without digests."""
    for position, file in enumerate(sorted((run / "cells").glob("*.parquet"))):
        table = pq.read_table(file)
        footer = json.loads(table.schema.metadata[FOOTER])
        del footer["digest"]
        pq.write_table(how(table, position).replace_schema_metadata({FOOTER: json.dumps(footer)}), file)


def older(run):
    """The run as it was before the columns that came later."""
    change(run, lambda table, position: table.drop_columns([*ADDED_COLUMNS]))
    return run


def of_two_kinds(run):
    def how(table, position):
        kinds = pa.array(["B 2" if position == 0 else "A 1"] * len(table))
        return table.set_column(table.column_names.index("cpu"), "cpu", kinds)

    change(run, how)
    return run


def test_every_cell_says_its_cpu(run, capsys):
    assert set(cbobench.load_cells(run)["cpu"]) == {cpu_kind()}
    assert main(["status", str(run), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cpus"] == [cpu_kind()]
    assert main(["status", str(run)]) == 0
    assert "CPU" not in capsys.readouterr().out + str(cbobench.compare(run))


@pytest.mark.long
def test_the_kernel_of_the_blas_is_part_of_it():
    """What OpenBLAS takes for another kind of CPU multiplies in another order."""
    program = "import numpy; from cbobench.results.provenance import cpu_kind; print(cpu_kind())"
    found = {}
    for kind in ("Haswell", "Sandybridge"):
        environment = os.environ | {"OPENBLAS_CORETYPE": kind}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        found[kind] = done.stdout
    if "openblas Haswell" not in found["Haswell"]:
        pytest.skip("no OpenBLAS with kernels of this name")
    assert "openblas Sandybridge" in found["Sandybridge"]


def test_several_kinds_are_said_below_every_table(run, tmp_path, capsys):
    alone = str(cbobench.compare(run)).splitlines()
    of_two_kinds(run)
    assert main(["status", str(run)]) == 0
    assert f"  {SAID}\n" in capsys.readouterr().out
    lines = str(cbobench.compare(run)).splitlines()
    lines.remove(SAID)
    assert lines == alone
    assert SAID in cbobench.compare(run).render("latex")
    assert rounding_note({f"kind {i}" for i in range(9)}).startswith("played on 9 kinds of CPU (kind 0; ")
    assert SAID not in str(cbobench.compare(run, only="ckb-ts"))


def test_files_without_the_column_are_read_as_before(run, tmp_path, capsys):
    folder, whole = open_run(older(run)), str(cbobench.compare(run))
    assert cbobench.load_cells(run)["cpu"].isna().all()
    assert main(["status", str(run)]) == 0
    assert "CPU" not in capsys.readouterr().out + whole
    found = verify(folder)
    assert (found.damaged, found.cells) == ([], 12)
    assert cbobench.run(tmp_path / "suite.yaml", out=run, cpus=0).played == 0
    (run / FILE).unlink()
    shutil.rmtree(run / "invocations")
    assert len(rebuild_manifest(folder).cells) == 12
    done = cbobench.run(tmp_path / "suite.yaml", out=run, cpus=0, seeds=5)
    assert (done.played, done.failed) == (3, 0)
    before = Run(run).cells
    assert before["cpu"].isna().sum() == 12
    assert set(before["cpu"].dropna()) == {cpu_kind()}
    assert compact(folder) == (6, 1), "files with the column and without it become one"
    assert Run(run).cells.equals(before)
    assert not verify(folder).damaged
    assert "CPU" not in str(cbobench.compare(run)), "of one kind, as far as it is known"
