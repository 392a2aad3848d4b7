"""CPU and arithmetic are recorded with every cell, and said where a table is of several; older
files know none.
"""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.arithmetic import arithmetic_kind
from cbobench.cli import main
from cbobench.results.provenance import cpu_kind, mixed_note
from cbobench.results.schema import FOOTER
from tests.results.forging import files, set_column


@pytest.fixture
def run(played):
    return played[1]


NATIVE = "native: SkylakeX, X86_V4"
SAID = f"played in 2 kinds of arithmetic ({NATIVE}; x86-64-v3): in each a seed may be another play"


def change(run, how):
    """Write the cells of each task again, as `how` makes of its table and position, and without
    digests.
    """
    for position, file in enumerate(files(run, "cells")):
        table = pq.read_table(file)
        footer = json.loads(table.schema.metadata[FOOTER])
        footer.pop("digest", None)
        pq.write_table(
            how(table, position).replace_schema_metadata({FOOTER: json.dumps(footer)}), file
        )


def of_two_kinds(run, column="arithmetic", kinds=(NATIVE, "x86-64-v3")):
    """The cells of the first task are of the first kind, all others of the second."""

    def how(table, position):
        return set_column(table, column, [kinds[position > 0]] * len(table))

    change(run, how)
    return run


def test_every_cell_says_its_cpu_and_arithmetic(run, capsys):
    assert set(cbobench.load_cells(run)["cpu"]) == {cpu_kind()}
    assert main(["status", str(run), "--format", "json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["cpus"], status["arithmetic"]) == ([cpu_kind()], [arithmetic_kind()])
    assert set(cbobench.load_cells(run)["arithmetic"]) == {arithmetic_kind()}
    assert main(["status", str(run)]) == 0
    assert "arithmetic" not in capsys.readouterr().out + str(cbobench.compare(run))


def test_several_kinds_are_said_below_every_table(run, tmp_path, capsys):
    alone = cbobench.compare(run).render(width=400)
    of_two_kinds(run)
    assert main(["status", str(run)]) == 0
    assert f"  {SAID}\n" in capsys.readouterr().out
    text = cbobench.compare(run).render(width=400)
    assert f"\n{SAID}; 4 of 4 compared seeds cross kinds" in text
    assert text.replace(f"\n{SAID}; 4 of 4 compared seeds cross kinds", "") == alone
    assert SAID in cbobench.compare(run).render("latex")
    assert mixed_note({f"kind {i}" for i in range(9)}).startswith(
        "played in 9 kinds of arithmetic (kind 0; "
    )
    assert SAID not in str(cbobench.compare(run, only="ckb-ts"))


def test_several_cpus_of_one_arithmetic_are_one_kind(run, capsys):
    of_two_kinds(of_two_kinds(run, "cpu", ("B 2", "A 1")), kinds=("x86-64-v3", "x86-64-v3"))
    assert main(["status", str(run)]) == 0
    assert "kinds" not in capsys.readouterr().out + str(cbobench.compare(run))
