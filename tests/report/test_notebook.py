"""What a notebook shows: comparisons as HTML, labels escaped; the example notebook runs as it stands."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import examples
import pytest

import cbobench
from cbobench.report.load import Run
from cbobench.sweep.run import Outcome
from tests.conftest import ROOT
from tests.report.made import make

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
HOSTILE = """<script>alert("1")</script><img src=x onerror='alert(2)'>&amp;"""


class Seen(HTMLParser):
    """The tags and texts of a page, and whether every tag is closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def run(tmp_path):
    cells = {("p", HOSTILE): {"regret": [1.0, 2.0, 3.0]}, ("p", "b"): {"regret": [4.0, 5.0, 6.0]}}
    return make(tmp_path / "run", cells, seeds=[0, 1, 2], failed={("p", "b"): [2]})


def test_labels_are_shown_and_not_obeyed(run):
    for shown in (cbobench.compare(run), cbobench.compare(run, against="b", metric="R")):
        page = Seen(shown._repr_html_())
        assert page.tags <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "b", "small", "br"}
        assert not page.open
        assert any(HOSTILE in text for text in page.texts)


def test_the_numbers_are_those_of_the_table(run):
    made = cbobench.compare(run)
    texts = Seen(made._repr_html_()).texts
    cells = [cell for row in made.table.rows for cell in row[1:]]
    assert [text for text in texts if text in {*cells}] == cells
    assert {"2.0 [1.0, 3.0]", "2.0"} <= set(cells)


def test_what_run_returns_shows_its_comparison(run):
    done = Outcome(Run(run).folder, 6, 6, 1, (), False, 2, ())
    assert done._repr_html_() == cbobench.compare(run)._repr_html_()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_with_what_they_show(path):
    text = path.read_text(encoding="utf-8")
    code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)], "played once, from top to bottom"
    for cell in code:
        assert len(cell["outputs"]) == 1, "a table, or one figure"
        assert ("image/png" in cell["outputs"][0]["data"]) == ("cbobench.plot" in "".join(cell["source"]))
    assert len(text) < 300_000
    assert not re.search(r"/(?:tmp|home|root|Users|var|opt|mnt|srv|work)\b", text)
    assert str(ROOT) not in text


@pytest.mark.long  # `.ci/run` plays them at every push
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_they_are_kept_with(path, tmp_path, monkeypatch):
    for module in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(module, reason="pip install 'cbobench[test]'")
    monkeypatch.setenv("PYTHONPATH", str(Path(cbobench.__file__).parents[1]))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    kept, played = examples.outputs(json.loads(path.read_text(encoding="utf-8"))), examples.play(path, tmp_path)
    assert examples.outputs(played) == kept, "the code shows something else; run: make notebooks"


def test_what_is_measured_is_left_out_of_notebooks_and_the_rest_is_not():
    page = "<table><caption>a</caption><tr><th>m</th><th>µs</th></tr><tr><td>1.5</td><td>{}</td></tr></table>"
    rows = examples.determined(page.format(37) + "<p><small>legend</small></p>")
    assert rows == [["a"], ["m"], ["1.5"], ["legend"]]
    assert examples.determined(page.format(38)) == rows[:3]
    assert examples.determined(page.replace("1.5", "1.6").format(37)) != rows[:3]
