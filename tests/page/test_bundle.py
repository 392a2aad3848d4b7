"""The page of a bundle has the tables of its run, and tests no claim; a page takes the place of nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

from cbobench import cli
from cbobench.page import assemble
from cbobench.page.content import content
from cbobench.report.load import Run
from cbobench.results.export import export
from tests.page.test_page import LIBRARY, Elements


def test_a_page_takes_the_place_of_nothing_else(run, tmp_path, capsys, monkeypatch):
    (tmp_path / "plotly.min.js").write_text(LIBRARY)
    monkeypatch.setattr(assemble, "library", lambda: tmp_path / "plotly.min.js")
    os.mkfifo(tmp_path / "pipe.html")
    before = (run / "run.json").read_bytes()
    for out in (run / "run.json", tmp_path / "pipe.html"):
        assert cli.main(["report", str(run), "--out", str(out)]) == 2
        assert "a file that ends with .html" in capsys.readouterr().err
    assert (run / "run.json").read_bytes() == before
    assert (tmp_path / "pipe.html").is_fifo()


def test_a_bundle_has_a_page_beside_it_without_what_it_does_not_hold(run, tmp_path, capsys, monkeypatch):
    (tmp_path / "plotly.min.js").write_text(LIBRARY)
    monkeypatch.setattr(assemble, "library", lambda: tmp_path / "plotly.min.js")
    bundle = Path(export(run, tmp_path / "one.zip").file)
    assert cli.main(["report", str(bundle)]) == 0
    assert "a bundle: no claims are tested, no tracebacks" in capsys.readouterr().err
    shown = json.loads(Elements((tmp_path / "one.html").read_text()).scripts[0])
    (mine,), (theirs,) = content([Run(run)])["runs"], shown["runs"]
    assert all(theirs[part] == mine[part] for part in ("tables", "finals", "ranks", "profiles"))
    assert "Hosts" not in dict(theirs["facts"])
    assert theirs["failures"]["rows"][0][4] == "broken"
    assert theirs["failures"]["traces"] == [""]
    assert "rounds that no bundle holds" in shown["unclaimed"], "not tested with what is left of the rounds"
