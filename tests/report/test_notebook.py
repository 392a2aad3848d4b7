"""What a notebook shows: comparisons as HTML, labels escaped; the example notebook runs as it stands."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

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
def test_notebooks_are_kept_without_outputs(path):
    code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_as_they_stand(path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="pip install 'cbobench[test]'")
    nbformat = pytest.importorskip("nbformat", reason="pip install 'cbobench[test]'")
    pytest.importorskip("ipykernel", reason="pip install 'cbobench[test]'")
    monkeypatch.setenv("PYTHONPATH", str(Path(cbobench.__file__).parents[1]))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    book = nbformat.read(path, 4)
    nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    shown = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type in ("error", "stream")]
    tables = ["".join(output.data.get("text/html", "")) for output in shown]
    assert sum("<caption" in table for table in tables) == 3, "a run, its paired differences, a bundle"
    assert sum("image/png" in output.data for output in shown) >= 2
