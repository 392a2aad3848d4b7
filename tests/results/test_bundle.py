"""A bundle: read wherever a run is, with the same numbers; what it does not hold, and what is none, is a line."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import zipfile

import bundles
import numpy as np
import pandas as pd
import pyarrow.fs as pafs
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import CbobenchError, DamagedRun, Misuse
from cbobench.report.curves import curves
from cbobench.report.load import Run
from cbobench.results.bundle import FILES, bundle_schema, open_run
from cbobench.results.compact import compact
from cbobench.results.export import export
from cbobench.results.folder import RunFolder
from tests.conftest import ROOT
from tests.report.made import make

SUITE = {
    "suite": "mine", "horizon": 60, "seeds": 6, "algorithms": ["ckb-ucb", "random"],
    "problems": [{"rkhs-1d": {"h": 0.25}}, {"rkhs-1d": {"constraint": "independent", "label": "free"}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "run"
    cbobench.run(SUITE, out=folder, cpus=0, block=2)
    return folder


@pytest.fixture(scope="module")
def bundle(run):
    return run.parent / export(run, run.parent / "mine.zip").file


def repacked(original, out, compression=zipfile.ZIP_STORED, **changed):
    """A bundle with other contents in some files (None: without), by the beginnings of their names."""
    with zipfile.ZipFile(original) as old, zipfile.ZipFile(out, "w", compression) as new:
        for name in old.namelist():
            data = changed.get(name.partition(".")[0], old.read(name))
            if data is not None:
                new.writestr(name, data)
    return out


@pytest.mark.parametrize(
    "options",
    [{}, {"by": "binds"}, {"best": True}, {"against": "random", "metric": ["r", "V⁺"]}, {"ranks": True},
     {"profile": True}, {"target": 0.37}, {"only": "free/*", "metric": "µs"}],
    ids=str,
)  # fmt: skip
def test_tables_of_a_bundle_are_those_of_its_run(run, bundle, options):
    mine, theirs = (cbobench.compare(one, **options) for one in (run, bundle))
    assert mine.render("json") == theirs.render("json")
    assert str(mine) == str(theirs)


def test_a_run_beside_a_bundle_is_a_run_beside_a_run(run, bundle, tmp_path):
    other = cbobench.run(SUITE | {"algorithms": [{"ckb-ucb": {"V": 30.0, "label": "ckb-ucb"}}, "random"], "seeds": 5},
                         out=tmp_path / "other", cpus=0)  # fmt: skip
    small = export(other, tmp_path / "other.zip").file
    wanted = cbobench.compare(run, other)
    for one, two in ((run, small), (bundle, other), (bundle, small)):
        pd.testing.assert_frame_equal(cbobench.compare(one, two).frame, wanted.frame)
    assert cbobench.compare(bundle, run, only_changed=True).frame.empty


def test_curves_hold_the_runs_values_at_the_rounds_that_are_said(run, bundle):
    rounds = json.loads(zipfile.ZipFile(bundle).read("bundle.json"))["rounds"]["60"]
    assert rounds == [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 60]
    whole, held = (cbobench.load_rounds(one, ["regret", "violation"]) for one in (run, bundle))
    pd.testing.assert_frame_equal(whole[whole["t"].isin(rounds)].reset_index(drop=True), held)
    title = Run(run).titles("problem", "free")[0]
    whole, held = (curves(Run(one), "violations", title, statistic="median") for one in (run, bundle))
    pd.testing.assert_frame_equal(whole[whole["t"].isin(rounds)].reset_index(drop=True), held)


def test_any_target_is_found_between_fixed_rounds(tmp_path):
    t = np.arange(1, 101)
    curve = np.where(t < 3, np.nan, np.where(t < 47, 2.0, np.where(t < 71, 1.0, 0.5)))
    cells = {("p", "a"): {"simple_regret": [0.5, 0.5]}}
    run = make(tmp_path / "run", cells, seeds=[0, 1],
               rounds={("p", "a"): {"t": t, "simple_regret": np.stack([curve, curve])}})  # fmt: skip
    bundle = export(run, tmp_path / "b.zip").file
    improved = pd.read_parquet(io.BytesIO(zipfile.ZipFile(bundle).read("improvements.parquet")))
    assert improved[improved["seed"] == 0]["t"].tolist() == [3, 47, 71]
    for target, first in ((3.0, 3), (1.9, 47), (0.5, 71)):
        assert cbobench.summary(bundle, target=target)["rounds_to_target_median"].tolist() == [first]
        assert cbobench.summary(run, target=target)["rounds_to_target_median"].tolist() == [first]


def test_the_same_run_gives_the_same_bytes_however_its_files_are_merged(run, bundle, tmp_path):
    other = tmp_path / "elsewhere" / "again"
    shutil.copytree(run, other)
    compact(open_run(other))
    made = export(other, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()
    assert made.size == bundle.stat().st_size < 60_000
    assert export(other, tmp_path / "again.zip").done == 24, "an earlier bundle is replaced"


def test_a_bundle_may_lie_in_a_bucket(run, bundle, tmp_path, monkeypatch):
    (tmp_path / "bucket").mkdir()
    store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())  # no local one, as far as a folder knows

    def place(self):
        remote = self.uri.startswith("s3://")
        return (store, self.uri[5:].partition("?")[0]) if remote else (pafs.LocalFileSystem(), self.uri)

    monkeypatch.setattr(RunFolder, "_place", property(place))
    made = export(run, "s3://bucket/mine.zip?region=x")
    assert (tmp_path / "bucket" / "mine.zip").read_bytes() == bundle.read_bytes()
    pd.testing.assert_frame_equal(cbobench.load_cells(made.file), cbobench.load_cells(bundle))
    with pytest.raises(Misuse, match="there is no such file"):
        Run("s3://bucket/other.zip?region=x")


def test_absolute_paths_of_the_suite_are_said(tmp_path, capsys):
    run = make(tmp_path / "run", {("p", "a"): {}}, seeds=[0], facts={"rows": "/home/jane/x.csv"})
    assert main(["export", str(run), "--out", str(tmp_path / "b.zip")]) == 0
    seen = capsys.readouterr()
    assert "names a path, as the suite does: rkhs-1d: rows /home/jane/x.csv" in seen.err
    assert re.search(r"b\.zip: 1 of 1 cell done, \d+ kB\n$", seen.out)


def test_marks_of_stale_cells_carry_over(run, bundle, tmp_path, monkeypatch, capsys):
    assert not Run(bundle).stale
    monkeypatch.setattr("cbobench.results.staleness.source_hash", lambda *names: "another")
    assert Run(bundle).stale == Run(run).stale == set(Run(run).cells["cell"])
    for one in (run, bundle):
        assert main(["status", str(one)]) == 0
    mine, theirs = capsys.readouterr().out.split("mine: ")[1:]
    assert mine.splitlines()[:2] == theirs.splitlines()[:2]
    assert "24 stale" in theirs
    assert "to go on" not in theirs


def test_a_run_that_is_played_says_n_of_expected(run, tmp_path):
    part = tmp_path / "part"
    shutil.copytree(run, part)
    lost = [min((part / kind).glob("*.random.4-5.*")) for kind in ("cells", "rounds")]
    assert lost[0].name == lost[1].name
    for file in lost:
        file.unlink()
    made = export(part, tmp_path / "part.zip")
    assert (made.done, made.expected) == (22, 24)
    assert cbobench.compare(part).render("csv") == cbobench.compare(made.file).render("csv")
    assert cbobench.summary(made.file)["n"].sum() == 22


def test_what_is_no_bundle_is_a_line(bundle, tmp_path):
    about = json.loads(zipfile.ZipFile(bundle).read("bundle.json"))
    data, cut, other = bundle.read_bytes(), tmp_path / "cut.zip", tmp_path / "other.zip"
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    for content, error, says in (
        (data[: len(data) // 2], DamagedRun, "is a damaged bundle"),
        (bytes(flipped), DamagedRun, "is a damaged bundle"),
        (b"", Misuse, "is no zip archive"),
        (b"a,b\n1,2\n", Misuse, "is no zip archive"),
    ):
        cut.write_bytes(content)
        with pytest.raises(error, match=says):
            Run(cut)
    newer = json.dumps(about | {"bundle": 2}).encode()
    for changed, error, says in (
        ({"bundle": newer}, DamagedRun, "has bundle version 2, this cbobench reads 1; use the version that wrote it"),
        ({"bundle": None}, Misuse, "it has no bundle.json"),
        ({"bundle": b"[]"}, DamagedRun, "bundle.json is not what cbobench writes"),
        ({"curves": b"PAR1"}, DamagedRun, "curves.parquet is not what was exported"),
        ({"cells": None}, DamagedRun, "cells.parquet is not what was exported"),
        ({"compression": zipfile.ZIP_DEFLATED}, Misuse, "it has no bundle.json"),
    ):
        with pytest.raises(error, match=says):
            Run(repacked(bundle, other, **changed))
    with pytest.raises(Misuse, match="there is no such file$"):
        Run(tmp_path / "absent.zip")
    with pytest.raises(Misuse, match=f"there is no such file; did you mean {bundle}\\?"):
        Run(bundle.with_name(bundle.name.replace(".zip", "s.zip")))
    foreign = io.BytesIO()
    pd.DataFrame({"cell": [1]}).to_parquet(foreign)
    files = about["files"] | {"cells.parquet": hashlib.sha256(foreign.getvalue()).hexdigest()}
    lied = json.dumps(about | {"files": files}).encode()
    with pytest.raises(DamagedRun, match="other columns in cells.parquet"):
        Run(repacked(bundle, other, bundle=lied, cells=foreign.getvalue()))


@pytest.mark.parametrize(
    "words",
    [["figures"], ["claims"], ["audit"], ["verify"], ["verify", "--repair"], ["compact"], ["export"]],
    ids=" ".join,
)
def test_what_a_bundle_cannot_is_a_line(bundle, capsys, words, clean_tree):
    before = bundle.read_bytes()
    assert main([words[0], str(bundle), *words[1:]]) == 2
    assert re.fullmatch(r"cbobench: \S+mine\.zip is a file; .+\n", capsys.readouterr().err)
    assert bundle.read_bytes() == before
    assert clean_tree() == []


def test_nothing_is_played_into_a_file(bundle, capsys):
    assert main(["run", "quickstart", "--out", str(bundle)]) == 2
    assert "is a file; give a folder for the run" in capsys.readouterr().err


def test_columns_that_a_bundle_has_not_are_refused(bundle):
    for name in ("f", "x_1", "dual_1"):
        with pytest.raises(Misuse, match=f"{name}.*allowed|unknown"):
            cbobench.load_rounds(bundle, [name])
    assert "f" not in cbobench.load_rounds(bundle)


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


def test_bundles_of_different_suites_and_horizons_say_so(run, bundle, tmp_path, capsys):
    other = make(tmp_path / "run", {("p", "a"): {}}, seeds=[0])
    small = export(other, tmp_path / "b.zip").file
    assert main(["compare", str(bundle), small]) == 1
    assert "can be compared: only before (4), only after (1)" in capsys.readouterr().err
    longer = cbobench.run(SUITE | {"horizon": 61, "seeds": 1, "algorithms": ["random"]}, out=tmp_path / "long", cpus=0)
    long = export(longer, tmp_path / "long.zip").file
    assert main(["compare", str(bundle), long]) == 1
    assert "T = 60 and 61" in capsys.readouterr().err


def test_the_page_names_every_column_and_field(bundle):
    text = (ROOT / "docs" / "bundles.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##)", text, flags=re.M | re.S))
    named = {name: set(re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?) \|", part, flags=re.M))))
             for name, part in parts.items()}  # fmt: skip
    about = json.loads(zipfile.ZipFile(bundle).read("bundle.json"))
    assert named["bundle.json"] == set(about)
    for call in about["calls"]:
        assert all(f"`{name}`" in parts["bundle.json"] for name in call)
    assert named["cells.parquet"] == set(bundle_schema("cells").names)
    for kind in ("rounds", "improvements"):
        own = set(bundle_schema(kind).names) - named["cells.parquet"] | {"cell", "t"}
        assert all(f"`{name}`" in parts[FILES[kind]] for name in own)
    assert set(bundle_schema("rounds").names) - {"t"} <= named["cells.parquet"]


def test_the_table_of_sizes_is_written_from_runs(run, tmp_path, monkeypatch, capsys):
    page = tmp_path / "bundles.md"
    page.write_text("a\n<!-- sizes -->\nold\n<!-- /sizes -->\nb\n")
    monkeypatch.setattr(bundles, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["bundles.py", str(tmp_path / "none"), "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="no run with a cell in"):
        bundles.main()
    assert "old" in page.read_text()
    monkeypatch.setattr("sys.argv", ["bundles.py", str(run.parent), "--out", str(tmp_path / "out")])
    bundles.main()
    size = (tmp_path / "out" / "run.zip").stat().st_size
    assert f"| `run` | 60 | 24 | 0.4 | {size / 1000:,.0f} |\n<!-- /sizes -->\nb\n" in page.read_text()
