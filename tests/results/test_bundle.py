"""A bundle: read wherever a run is, with the same numbers; what it does not hold, and what is none,
is a line.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import CbobenchError, DamagedRun, Misuse
from cbobench.report.figures.curves import Panel
from cbobench.report.load import Run
from cbobench.results.compact import compact
from cbobench.results.export import _absolute_paths, cut_at_path, export
from cbobench.results.folder import open_run
from cbobench.results.manifest import Manifest
from cbobench.results.rounds import MOST_CHARACTERS, make_printable
from tests.helpers import play_here, write_manifest
from tests.report.made import make
from tests.results.forging import all_are, rewrite_bundle

SUITE = {
    "suite": "mine",
    "horizon": 60,
    "seeds": 6,
    "algorithms": ["ckb-ucb", "random"],
    "problems": [
        {"rkhs-1d": {"h": 0.25}},
        {"rkhs-1d": {"constraint": "independent", "label": "free"}},
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "run"
    play_here(SUITE, folder, block=2)
    return folder


@pytest.fixture(scope="module")
def bundle(run):
    return run.parent / export(run, run.parent / "mine.zip").file


def test_a_bundle_is_compared_as_its_run_is(run, bundle):
    expected = cbobench.compare(run, run)
    pd.testing.assert_frame_equal(cbobench.compare(run, bundle).frame, expected.frame)
    assert cbobench.compare(bundle, run, only_changed=True).frame.empty


def test_curves_hold_the_runs_values_at_the_rounds_that_are_said(run, bundle):
    rounds = [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 60]
    all_rounds, held = (
        cbobench.load_rounds(source, ["regret", "violation"]) for source in (run, bundle)
    )
    pd.testing.assert_frame_equal(
        all_rounds[all_rounds["t"].isin(rounds)].reset_index(drop=True), held
    )
    title = Run(run).titles("problem", "free")[0]
    all_rounds, held = (
        Panel("violations", title, statistic="median").data(Run(source)) for source in (run, bundle)
    )
    pd.testing.assert_frame_equal(
        all_rounds[all_rounds["t"].isin(rounds)].reset_index(drop=True), held
    )


def test_any_target_is_found_between_fixed_rounds(tmp_path):
    t = np.arange(1, 101)
    curve = np.where(t < 3, np.nan, np.where(t < 47, 2.0, np.where(t < 71, 1.0, 0.5)))
    cells = {("p", "a"): {"simple_regret": [0.5, 0.5]}}
    run = make(
        tmp_path / "run",
        cells,
        seeds=[0, 1],
        rounds={("p", "a"): {"t": t, "simple_regret": np.stack([curve, curve])}},
    )
    bundle = export(run, tmp_path / "b.zip").file
    with zipfile.ZipFile(bundle) as archive:
        improved = pd.read_parquet(archive.open("improvements/run.parquet"))
    assert improved["t"].tolist() == 2 * [3, 47, 71]
    for target, first in ((3.0, 3), (1.9, 47), (0.5, 71)):
        assert cbobench.summary(bundle, target=target)["rounds_to_target_median"].tolist() == [
            first
        ]
        assert cbobench.summary(run, target=target)["rounds_to_target_median"].tolist() == [first]


def test_the_same_run_gives_the_same_bytes_however_its_files_are_merged(run, bundle, tmp_path):
    copied = tmp_path / "elsewhere" / "again"
    shutil.copytree(run, copied)
    compact(open_run(copied))
    exported = export(copied, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()
    assert exported.size == bundle.stat().st_size < 60_000
    assert export(copied, tmp_path / "again.zip").done == 24, "an earlier bundle is replaced"


def test_a_bundle_may_lie_in_a_bucket(run, bundle, tmp_path, monkeypatch):
    (tmp_path / "bucket").mkdir()
    # no local one, as far as a folder knows
    store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())

    monkeypatch.setattr(
        "cbobench.results.folder.find_store", lambda uri: (store, uri[5:].partition("?")[0])
    )
    exported = export(run, "s3://bucket/mine.zip?region=x")
    assert (tmp_path / "bucket" / "mine.zip").read_bytes() == bundle.read_bytes()
    pd.testing.assert_frame_equal(cbobench.load_cells(exported.file), cbobench.load_cells(bundle))
    with pytest.raises(Misuse, match="does not exist"):
        Run("s3://bucket/other.zip?region=x")


def test_whether_a_bundle_is_of_other_code_only_a_replay_can_tell(run, bundle, monkeypatch, capsys):
    monkeypatch.setattr("cbobench.results.source.source_hash", cache(lambda *names: "another"))
    assert Run(run).stale == set(Run(run).cells["cell"])
    for read in (Run(bundle), Run.union([Run(bundle), Run(run)])):
        assert read.stale == read.unchecked == set()
    for place in (run, bundle):
        assert main(["status", str(place)]) == 0
    of_run, of_bundle = capsys.readouterr().out.split("mine: ")[1:]
    assert "24 stale" in of_run
    assert "stale" not in of_bundle
    assert "to go on" not in of_bundle
    assert main(["status", str(bundle), "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["stale"], content["unchecked"]) == (None, None)


def test_a_run_that_is_played_says_n_of_expected(run, tmp_path):
    part = tmp_path / "part"
    shutil.copytree(run, part)
    lost = [min((part / kind).glob("*.random.4-5.*")) for kind in ("cells", "rounds")]
    assert lost[0].name == lost[1].name
    for file in lost:
        file.unlink()
    exported = export(part, tmp_path / "part.zip")
    assert (exported.done, exported.expected) == (22, 24)
    assert cbobench.compare(part).render("csv") == cbobench.compare(exported.file).render("csv")
    assert cbobench.summary(exported.file)["n"].sum() == 22


def test_what_is_no_bundle_is_a_line(bundle, tmp_path):
    data, cut = bundle.read_bytes(), tmp_path / "cut.zip"
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    for content, error, says in (
        (data[: len(data) // 2], DamagedRun, "is no run folder and no whole bundle"),
        (bytes(flipped), DamagedRun, "cannot be read|is not a whole Parquet file"),
        (b"", DamagedRun, "is no run folder and no whole bundle"),
        (b"a,b\n1,2\n", DamagedRun, "is no run folder and no whole bundle"),
    ):
        cut.write_bytes(content)
        with pytest.raises(error, match=says):
            Run(cut).rounds()
    with zipfile.ZipFile(cut, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", "0" * 10_000)
    with pytest.raises(Misuse, match="its files are compressed"):
        Run(cut)
    with zipfile.ZipFile(cut, "w") as archive:
        archive.writestr("notes.txt", "mine")
    with pytest.raises(Misuse, match="it has no run.json"):
        Run(cut)
    with pytest.raises(Misuse, match="does not exist$"):
        Run(tmp_path / "absent.zip")
    with pytest.raises(Misuse, match=f"does not exist; did you mean {bundle}\\?"):
        Run(bundle.with_name(bundle.name.replace(".zip", "s.zip")))
    foreign = rewrite_bundle(bundle, cut, {"cells": lambda table: table.drop_columns(["status"])})
    with pytest.raises(DamagedRun, match="has other columns than cbobench writes"):
        Run(foreign)


def test_what_cannot_be_exported_writes_nothing(run, tmp_path, clean_tree):
    empty = tmp_path / "empty"
    shutil.copytree(run, empty, ignore=shutil.ignore_patterns("*.parquet"))
    notes = tmp_path / "notes.zip"
    notes.write_text("mine")
    before = clean_tree()
    for folder, out, error, says in (
        (empty, "b.zip", CbobenchError, "has no cell that was played; nothing to export"),
        (tmp_path / "nowhere", "b.zip", Misuse, "is not a run folder"),
        (run, "b.parquet", Misuse, "give the name of a file that ends with .zip"),
        (run, "", Misuse, "give the name of a file"),
        (run, "notes.zip", Misuse, "is there and no bundle of this version; remove it"),
    ):
        with pytest.raises(error, match=says):
            export(folder, tmp_path / out)
    assert clean_tree() == before
    assert notes.read_text() == "mine"


def test_what_a_bundle_cannot_is_a_line(bundle, capsys, clean_tree):
    before = bundle.read_bytes()
    for command in ("figures", "export"):
        assert main([command, str(bundle)]) == 2
        assert re.fullmatch(r"cbobench: .+mine\.zip is a file; .+\n", capsys.readouterr().err)
    assert main(["run", "quickstart", "--out", str(bundle)]) == 2
    assert "is a file; give a folder for the run" in capsys.readouterr().err
    with pytest.raises(Misuse, match="dual_1.*allowed|unknown"):
        cbobench.load_rounds(bundle, ["dual_1"])
    assert bundle.read_bytes() == before
    assert clean_tree() == []


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("cells", all_are("status", "odd"), "a status other than ok and failed"),
        ("cells", all_are("seed", None), "a row without seed"),
        ("rounds", all_are("cell", None), "a row without cell"),
        ("rounds", all_are("t", 0), "a round before the first"),
        ("rounds", lambda table: table.slice(0, len(table) - 3), "does not hold the same rounds"),
    ],
)
def test_a_forged_bundle_is_a_line(bundle, tmp_path, kind, change, message):
    def use(file):
        opened = Run(file)
        Panel("regret", opened.titles("problem", "free")[0]).data(opened)

    with pytest.raises(DamagedRun, match=message):
        use(rewrite_bundle(bundle, tmp_path / "forged.zip", {kind: change}))


def test_nothing_of_a_bundle_names_people_or_places(tmp_path):
    cells = {("p", "a"): {}}
    run = make(tmp_path / "jane_doe" / "run", cells, seeds=[0, 1, 2], failed={("p", "a"): [1]})
    content = json.loads((run / "run.json").read_text())
    content["invocations"] = [
        {"command": ["cbobench", "--out", "/home/jane_doe"], "id": "jane-pc-1", "at": "2026-01-01"}
    ]
    content["grids"][0]["command"] = ["cbobench", "run", "/home/jane_doe/x.yaml"]
    write_manifest(run, content)
    exported = export(run, tmp_path / "b.zip")
    assert (exported.done, exported.failed, exported.expected) == (2, 1, 3)
    with zipfile.ZipFile(exported.file) as archive:
        for name in archive.namelist():
            assert b"jane" not in archive.read(name), name
        assert json.loads(archive.read("run.json"))["invocations"] == [{"at": "2026-01-01"}]
    assert "jane" not in str(cbobench.load_cells(exported.file).to_dict())
    for text, shortened in (
        ("KeyError: 'x'", "KeyError: 'x'"),
        (
            "round 3: FileNotFoundError: no file: '/home/jane doe/a.csv'",
            "round 3: FileNotFoundError: no file: …",
        ),
        (r"OSError: C:\Users\jane doe (own.py:3)", "OSError: …"),
    ):
        assert cut_at_path(text) == shortened


def test_reasons_and_notes_end_where_a_path_begins(tmp_path):
    run = make(tmp_path / "run", {("p", "a"): {}, ("q", "a"): {}}, seeds=[0])
    content = json.loads((run / "run.json").read_text())
    grid = content["grids"][0]
    grid["pairs"] = [["rkhs-1d[called=p]", "random[called=a]"]]
    grid["unplayable"] = [
        ["rkhs-1d[called=q]", "random[called=a]", "OSError: no file /home/jane_doe/x.csv"]
    ]
    grid["problems"][0]["note"] = "f = hits/s; of 3 rows (/home/jane_doe/x.csv)"
    write_manifest(run, content)
    with zipfile.ZipFile(export(run, tmp_path / "b.zip").file) as archive:
        (public,) = json.loads(archive.read("run.json"))["grids"]
    assert public["unplayable"][0][2] == "OSError: no file …"
    assert [problem["note"] for problem in public["problems"]] == ["f = hits/s; of 3 rows (…", ""]


def test_absolute_paths_of_the_suite_are_said(tmp_path, capsys):
    """Of a table that is named by its content the settings hold the path."""
    run = make(tmp_path / "run", {("p", "a"): {}}, seeds=[0])
    content = json.loads((run / "run.json").read_text())
    problem = content["grids"][0]["problems"][0]
    problem["settings"] = {"rows": "/home/jane/x.csv"}
    problem["values"]["rows"] = "5e1f"
    write_manifest(run, content)
    assert _absolute_paths(Manifest.read(open_run(run))) == ["rkhs-1d: rows /home/jane/x.csv"]
    run = make(tmp_path / "other", {("p", "a"): {}}, seeds=[0], facts={"rows": "/home/jane/x.csv"})
    assert main(["export", str(run), "--out", str(tmp_path / "b.zip")]) == 0
    output = capsys.readouterr()
    assert "names a path, as the suite does: rkhs-1d: rows /home/jane/x.csv" in output.err
    assert re.search(r"b\.zip: 1 of 1 cell done, \d+ kB\n$", output.out)


def test_texts_of_any_file_are_read_as_a_terminal_may_see_them():
    raw = "a\x1b]0;b\x07\u202ec\n\td\u200f"
    printable = r"a\x1b]0;b\x07\u202ec\n\td\u200f"
    texts = pa.array(["plain κ = 1/2 語 🙂", raw, None])
    table = pa.table(
        {
            "error": texts,
            "problem": texts.dictionary_encode(),
            "traceback": texts,
            "f": [1.0, 2.0, 3.0],
        }
    )
    table = table.append_column("libraries", pa.array(["numpy 2.0", "x" * 10**6, None]))
    read = make_printable(table)
    assert (
        read["error"].to_pylist()
        == read["problem"].to_pylist()
        == ["plain κ = 1/2 語 🙂", printable, None]
    )
    assert read["traceback"].to_pylist()[1] == "a\\x1b]0;b\\x07\\u202ec\n\\td\\u200f", (
        "its lines stay"
    )
    assert [len(text or "") for text in read["libraries"].to_pylist()] == [9, MOST_CHARACTERS, 0]
    assert read["f"].to_pylist() == [1.0, 2.0, 3.0]
    assert read.schema == table.schema
    assert make_printable(table.slice(0, 0)).schema == table.schema


def test_files_whose_names_a_terminal_would_act_on_are_none_of_a_run(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    names = open_run(run).names("cells")
    for name in ("a\x1b[2J", "a\u202eb", "a\nb"):
        (tmp_path / "run" / "cells" / f"{name}.parquet").write_bytes(b"PAR1")
    assert open_run(tmp_path / "run").names("cells") == names
