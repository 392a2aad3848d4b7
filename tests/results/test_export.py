"""What is written into a bundle, and what is left out."""

from __future__ import annotations

import json
import zipfile

import numpy as np

import cbobench
from cbobench.results.export import export, fixed_rounds, without_paths
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
    (run / "run.json").write_text(json.dumps(content))
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
