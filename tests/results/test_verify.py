"""`cbobench verify`: every damaged file is found and named at once, and played again once it
is removed.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import DamagedRun
from cbobench.results.compact import compact
from cbobench.results.folder import open_run
from cbobench.results.schema import DIGEST, FOOTER
from cbobench.results.verify import verify
from tests.helpers import assert_same_rows, long, play_here, swept
from tests.results.forging import files, rewrite, set_column


def swap(run):
    first, second = files(run)[:2]
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)


def swap_values(run):
    """The rounds of two cells of a task change places: every footer is in order."""

    def change(table):
        order = np.arange(len(table)).reshape(4, -1)[[1, 0, 2, 3]].reshape(-1)
        names = [name for name in table.column_names if name not in ("cell", "seed", "t")]
        for name in names:
            table = set_column(table, name, table[name].take(pa.array(order)).to_pylist())
        return table

    rewrite(files(run)[0], change)


def missing_rounds(run):
    files(run)[0].unlink()


@pytest.mark.parametrize(
    ("damage", "count", "why"),
    [
        (swap, 2, "holds the task"),
        (swap_values, 1, "its rounds of the cell .* are not what was played"),
        (missing_rounds, 1, "its rounds are missing"),
    ],
)
def test_what_does_not_belong_together_is_found_and_played_again(
    played, whole_run, damage, count, why
):
    suite, run = played
    damage(run)
    folder = open_run(run)
    before = {p: p.read_bytes() for p in run.rglob("*.parquet")}
    verdict = verify(folder)
    assert len(verdict.damaged) == count
    for damaged_file in verdict.damaged:
        assert re.search(why, damaged_file.why), damaged_file
    assert {p: p.read_bytes() for p in run.rglob("*.parquet")} == before, "looking changes nothing"
    assert play_here(suite, run, again="damaged").played == 4 * count
    assert_same_rows(whole_run[1], run)
    assert (verify(folder).damaged, verify(folder).cells) == ([], 12)


def test_all_damaged_files_are_named_at_once(played, capsys):
    suite, run = played

    def command(*arguments):
        code = main([*map(str, arguments)])
        return SimpleNamespace(returncode=code, stdout=capsys.readouterr().out)

    assert command("verify", run).stdout.splitlines() == [
        "0 of 7 files are damaged; 12 of 12 cells are whole"
    ]
    files(run)[0].write_bytes(b"")
    files(run)[1].write_bytes(files(run)[1].read_bytes()[:-9])
    files(run, "cells")[2].write_bytes(b"PAR1 not")
    done = command("verify", run)
    assert done.returncode == 1
    head, *lines, hint = done.stdout.splitlines()
    assert head == "3 of 7 files are damaged; 0 of 12 cells are whole"
    assert [line.split(":")[0].strip().split("/")[0] for line in lines] == [
        "rounds",
        "rounds",
        "cells",
    ]
    assert hint == "  cbobench run SUITE --again damaged removes these, and plays what they held"
    with pytest.raises(DamagedRun, match="cbobench verify RUN names all"):
        cbobench.load_cells(run)
    assert len(json.loads(command("verify", run, "--format", "json").stdout)["damaged"]) == 3
    assert play_here(suite, run, again=["damaged"]).played == 12
    files(run)[0].write_bytes(b"")
    assert command("verify", run).stdout.startswith(
        "1 of 7 files is damaged; 8 of 12 cells are whole\n"
    )


def two_blocks(small_suite, tmp_path):
    """A run in tasks of one cell, and beside it the same in tasks of two."""
    for name, block in (("run", 1), ("blocks", 2)):
        play_here(small_suite(horizon=20), tmp_path / name, block=block)
    return tmp_path / "run", open_run(tmp_path / "run")


def paths(content, *above):
    """Where the values of nested JSON stand."""
    inner = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    return [path for key, value in inner for path in paths(value, *above, key)] or [above]


def passes(file, data, folder):
    """Whether a file with other content is called whole; it is put back."""
    original = file.read_bytes()
    file.write_bytes(data)
    damages = verify(folder).damaged
    file.write_bytes(original)
    return not damages


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True)
    return sink.getvalue().to_pybytes()


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    text = (
        "suite: m\nhorizon: 4\nseeds: 2\nproblems: [rkhs-1d]\nalgorithms: "
        "[{ckb-ucb: {label: mine}}]\n"
    )
    return swept(folder, text)


def test_cells_are_not_judged_by_a_record_that_has_changed(played, whole_run):
    suite, run = played
    file = run / "run.json"
    file.write_text(re.sub(r'"horizon": \d+', '"horizon": 77', file.read_text()))
    folder = open_run(run)
    assert [damage.file for damage in verify(folder).damaged] == ["run.json"]
    assert play_here(suite, run, again="damaged").played == 0
    assert verify(folder).damaged == []
    assert_same_rows(whole_run[1], run)


def test_cells_of_a_straggler_do_not_count(small_suite, tmp_path):
    """A worker that outlives its driver publishes cells whose rounds were taken for leftovers;
    others have them, too.
    """
    run, folder = two_blocks(small_suite, tmp_path)
    late = Path(shutil.copy(files(tmp_path / "blocks", "cells")[0], run / "cells"))
    assert len(cbobench.load_cells(run)) == verify(folder).cells == 12
    assert [damage.file for damage in verify(folder).damaged] == [f"cells/{late.name}"]


def test_without_a_record_nobody_knows_what_was_asked_for(played, capsys):
    _, run = played
    (run / "run.json").unlink()
    assert main(["verify", str(run)]) == 1
    assert capsys.readouterr().out.startswith(
        "1 of 7 files is damaged; whole cells: 12 (no record says how many were asked for)\n"
    )
    assert main(["status", str(run)]) == 1
    says = "run.json is missing, its cells are there; the next cbobench run of the suite"
    assert says in capsys.readouterr().err


def flip(run, seed, count):
    """Flip single bits of a run, one after the other: those that change what a reader sees and pass
    `verify`.
    """
    rng, folder, before = random.Random(seed), open_run(run), cbobench.load_rounds(run).map(str)
    passed, refused = [], 0
    for _ in range(count):
        file = rng.choice(files(run))
        data = bytearray(file.read_bytes())
        original, position = bytes(data), rng.randrange(len(data))
        data[position] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        try:
            same = cbobench.load_rounds(run).map(str).equals(before)
        except DamagedRun:
            same = False
            refused += 1
        damaged_names = [damage.file.partition("/")[2] for damage in verify(folder).damaged]
        passed += [] if same or damaged_names == [file.name] else [(file, position)]
        file.write_bytes(original)
    assert verify(folder).damaged == []
    return passed, refused


@pytest.mark.parametrize("count", [12, *long(60)])
def test_flipped_bits_are_no_numbers(played, count):
    """What is read is what was written, or refused; `verify` finds every change that a reader could
    see.
    """
    passed, refused = flip(played[1], 0, count)
    assert passed == []
    assert refused > count // 2


@pytest.mark.parametrize("merged", [False, True])
def test_a_value_that_changed_is_found(small_run, tmp_path, merged):
    """Under the digest of before, its checksums in order; so are other bytes of the same values."""
    run = shutil.copytree(small_run, tmp_path / "run")
    folder = open_run(run)
    if merged:
        play_here(small_run.parent / "suite.yaml", run, seeds=4)
        compact(folder)
    assert verify(folder).damaged == []
    for kind, column in (("cells", "regret"), ("cells", "error"), ("rounds", "f")):
        (file,) = files(run, kind)
        held = pq.read_metadata(file).metadata
        signed = pq.read_table(file).replace_schema_metadata(
            {name: held[name] for name in (FOOTER, DIGEST)}
        )
        others = ["x" if column == "error" else 1.0] * len(signed)
        for table in (set_column(signed, column, others), signed):
            assert not passes(file, parquet(table), folder)


@pytest.mark.parametrize("step", [4, *long(1)])
def test_a_value_that_changed_is_found_in_the_record(small_run, tmp_path, step):
    run = shutil.copytree(small_run, tmp_path / "run")
    folder, clean, file = open_run(run), [], run / "run.json"
    content = json.loads(file.read_text())
    for path in paths(content)[::step]:
        changed = json.loads(file.read_text())
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = "x" if place[path[-1]] != "x" else "y"
        clean += [path] if passes(file, json.dumps(changed).encode(), folder) else []
    assert not passes(file, b"{}", folder)
    assert passes(file, json.dumps(content).encode(), folder), "its layout means nothing"
    assert clean == []
