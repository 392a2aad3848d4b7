"""What is written into a bundle, and what is left out."""

from __future__ import annotations

import json
import zipfile

import numpy as np

import cbobench
from cbobench.page.facts import facts
from cbobench.report.load import Run
from cbobench.results.bundle import open_run
from cbobench.results.export import _paths, export, fixed_rounds, without_paths
from cbobench.results.manifest import Manifest
from tests.helpers import write_manifest
from tests.report.made import make


def test_fixed_rounds_are_recorded_ones():
    recorded = np.arange(10, 10_001, 10)
    found = fixed_rounds(recorded)
    assert found[[0, -1]].tolist() == [10, 10_000]
    assert set(found) <= set(recorded)
    assert 1000 in found
    assert fixed_rounds(np.array([7])).tolist() == [7]
    assert fixed_rounds(np.arange(0)).tolist() == []


def test_nothing_of_a_bundle_names_people_or_places(tmp_path):
    cells = {("p", "a"): {}}
    run = make(tmp_path / "jane_doe" / "run", cells, seeds=[0, 1, 2], failed={("p", "a"): [1]})
    content = json.loads((run / "run.json").read_text())
    content["invocations"] = [
        {"command": ["cbobench", "--out", "/home/jane_doe"], "id": "jane-pc-1", "at": "2026-01-01"}
    ]
    content["grids"][0]["command"] = ["cbobench", "run", "/home/jane_doe/x.yaml"]
    write_manifest(run, content)
    made = export(run, tmp_path / "b.zip")
    assert (made.done, made.failed, made.expected) == (2, 1, 3)
    with zipfile.ZipFile(made.file) as archive:
        for name in archive.namelist():
            assert b"jane" not in archive.read(name), name
        assert json.loads(archive.read("bundle.json"))["calls"] == [{"at": "2026-01-01"}]
    assert "jane" not in str(cbobench.load_cells(made.file).to_dict())
    for text, kept in (
        ("KeyError: 'x'", "KeyError: 'x'"),
        ("round 3: FileNotFoundError: no file: '/home/jane doe/a.csv'", "round 3: FileNotFoundError: no file: …"),
        (r"OSError: C:\Users\jane doe (own.py:3)", "OSError: …"),
    ):
        assert without_paths(text) == kept


def test_reasons_and_notes_end_where_a_path_begins(tmp_path):
    run = make(tmp_path / "run", {("p", "a"): {}, ("q", "a"): {}}, seeds=[0])
    content = json.loads((run / "run.json").read_text())
    grid = content["grids"][0]
    grid["pairs"] = [["rkhs-1d[called=p]", "random[called=a]"]]
    grid["unplayable"] = [["rkhs-1d[called=q]", "random[called=a]", "OSError: no file /home/jane_doe/x.csv"]]
    grid["problems"][0]["note"] = "f = hits/s; of 3 rows (/home/jane_doe/x.csv)"
    write_manifest(run, content)
    with zipfile.ZipFile(export(run, tmp_path / "b.zip").file) as archive:
        (public,) = json.loads(archive.read("run.json"))["grids"]
    assert public["unplayable"][0][2] == "OSError: no file …"
    assert [problem["note"] for problem in public["problems"]] == ["f = hits/s; of 3 rows (…", ""]


def test_a_cost_is_of_good_cells(tmp_path):
    run = make(tmp_path / "run", {("p", "a"): {}}, seeds=[0, 1, 2], failed={("p", "a"): [1]})
    with zipfile.ZipFile(export(run, tmp_path / "b.zip").file) as archive:
        assert json.loads(archive.read("bundle.json"))["cost"]["seconds"] == 2.0
    assert dict(facts(Run(run)))["Cost"] == "2.000 s of CPU time, of the cells that are ok"


def test_a_table_given_by_an_absolute_path_is_said(tmp_path):
    """What it is named by is the file's content, yet its settings hold the path."""
    run = make(tmp_path / "run", {("p", "a"): {}}, seeds=[0])
    content = json.loads((run / "run.json").read_text())
    problem = content["grids"][0]["problems"][0]
    problem["settings"] = {"rows": "/home/jane/x.csv"}
    problem["values"]["rows"] = "5e1f"
    write_manifest(run, content)
    record = Manifest.read(open_run(run))
    assert _paths(record) == ["rkhs-1d: rows /home/jane/x.csv"]
