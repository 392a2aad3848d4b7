"""What a notebook does and shows: suites as mappings, comparisons as HTML; the example notebooks
run as they are.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import cbobench
from cbobench.errors import CbobenchError, Misuse
from cbobench.report.load import Run
from cbobench.sweep.outcome import Outcome
from tests.conftest import ROOT
from tests.helpers import play_here
from tests.report.made import make
from website import examples

NOTEBOOKS = sorted((ROOT / "website" / "notebooks").glob("*.ipynb"))
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
    for comparison in (cbobench.compare(run), cbobench.compare(run, against="b", metric="R")):
        page = Seen(comparison._repr_html_())
        assert page.tags <= {
            "div",
            "table",
            "caption",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "p",
            "b",
            "small",
            "br",
        }
        assert not page.open
        assert any(HOSTILE in text for text in page.texts)


def test_the_numbers_are_those_of_the_table(run):
    comparison = cbobench.compare(run)
    texts = Seen(comparison._repr_html_()).texts
    cells = [cell for row in comparison.table.rows for cell in row[1:]]
    assert [text for text in texts if text in {*cells}] == cells
    assert "2.0 [1.0, 3.0]" in cells


def test_what_run_returns_shows_its_comparison(run):
    done = Outcome(Run(run).folders[0], 6, 6, 1, (), False, 2, ())
    assert done._repr_html_() == cbobench.compare(run)._repr_html_()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_with_what_they_show(path):
    text = path.read_text(encoding="utf-8")
    code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)], (
        "played once, from top to bottom"
    )
    for cell in code:
        source, (output,) = "".join(cell["source"]), cell["outputs"]  # a table, or one figure
        if source.startswith("%%writefile"):
            assert output["output_type"] == "stream"
        else:
            assert ("image/png" in output["data"]) == ("cbobench.plot" in source)
    assert len(text) < 300_000
    assert not re.search(r"/(?:tmp|home|root|Users|var|opt|mnt|srv|work)\b", text)
    assert str(ROOT) not in text


def test_the_notebook_of_a_method_has_the_method_of_the_page():
    page = (ROOT / "docs" / "own_method.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n# power\.py\n(.*?)^```", page, flags=re.M | re.S)
    book = json.loads(next(path for path in NOTEBOOKS if path.stem == "own_method").read_text())
    cells = ["".join(cell["source"]) for cell in book["cells"]]
    assert f"%%writefile power.py\n{code}".rstrip() in cells


@pytest.mark.long  # `.ci/run` plays them at every push
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_they_are_kept_with(path, tmp_path, monkeypatch):
    for module in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(module, reason="pip install 'cbobench[test]'")
    monkeypatch.setenv("PYTHONPATH", str(Path(cbobench.__file__).parents[1]))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    remaining, played = (
        examples.outputs(json.loads(path.read_text(encoding="utf-8"))),
        examples.play(path, tmp_path),
    )
    assert examples.outputs(played) == remaining, (
        "the code shows something else; run: python -m website.examples"
    )


def test_what_is_measured_is_left_out_of_notebooks_and_the_rest_is_not():
    page = (
        "<table><caption>a</caption><tr><th>m</th><th>µs</th></tr>"
        "<tr><td>1.5</td><td>{}</td></tr></table>"
    )
    rows = examples.determined(page.format(37) + "<p><small>legend</small></p>")
    assert rows == [["a"], ["m"], ["1.5"], ["legend"]]
    assert examples.determined(page.format(38)) == rows[:3]
    assert examples.determined(page.replace("1.5", "1.6").format(37)) != rows[:3]


SUITE = {
    "suite": "mine",
    "horizon": 20,
    "seeds": 6,
    "shared": {"beta_scale": 0.2},
    "problems": [{"rkhs-1d": {"h": 0.25, "label": "quarter"}}],
    "algorithms": ["ckb-ucb", {"ckb-rand": {"slack": {"sweep": [0.0, 0.1]}}}],
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return play_here(SUITE, tmp_path_factory.mktemp("mine") / "run")


def test_a_mapping_plays_what_the_same_file_plays(done, tmp_path, write_suite):
    import yaml

    second_run = play_here(write_suite(yaml.safe_dump(SUITE)), tmp_path / "run")
    ours, theirs = (cbobench.load_cells(item) for item in (done, second_run))
    assert list(ours["cell"]) == list(theirs["cell"])
    assert list(ours["regret"]) == list(theirs["regret"])
    assert SUITE["problems"][0]["rkhs-1d"]["label"] == "quarter", (
        "the caller's mapping stays as it was"
    )


def test_readers_take_what_run_returns(done):
    assert len(cbobench.load_cells(done)) == 18
    assert len(cbobench.load_rounds(done, "regret", algorithm="ckb-ucb")) == 120
    assert len(cbobench.summary(done)) == 3
    assert "quarter" in str(cbobench.compare(done))


def test_no_command_line_finishes_a_mapping(done, capsys):
    from cbobench.cli import main

    for file in Path(done.folder.uri).rglob("*ckb-ucb*"):
        file.unlink()
    assert main(["status", done.folder.uri]) == 1
    assert capsys.readouterr().out == "mine: 12 of 18 cells done, 0 failed, 6 missing, 0 stale\n"
    play_here(SUITE, done.folder.uri)
    assert len(cbobench.load_cells(done)) == 18


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizn": 3}, "the suite: unknown key 'horizn'; did you mean 'horizon'"),
        ({"horizon": "long"}, "the suite: horizon is 'long'; allowed: a whole number"),
        (
            {"algorithms": ["ckb-ubc"]},
            "the suite: unknown algorithm 'ckb-ubc'; did you mean 'ckb-ucb'",
        ),
        ({3: 4}, "the suite: the key 3 is no text"),
    ],
)
def test_mistakes_in_a_mapping_are_one_line(change, message, tmp_path):
    with pytest.raises(Misuse, match=message):
        cbobench.run(SUITE | change, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_no_run_is_refused():
    with pytest.raises(Misuse, match="3 is no run; give a path, a URI, or what"):
        cbobench.load_cells(3)


@pytest.mark.parametrize(
    ("ask", "options", "message"),
    [
        (cbobench.plot, {"metric": "regrt"}, "unknown metric 'regrt'; did you mean 'regret'"),
        (cbobench.plot, {"metric": "longest_streak"}, "unknown metric of rounds 'longest_streak'"),
        (cbobench.plot, {"metric": ["regret", "violations"]}, "one metric"),
        (cbobench.plot, {"metric": "regret", "log": "z"}, "log is 'z'"),
        (cbobench.plot, {"metric": "regret", "statistic": "mode"}, "statistic is 'mode'"),
        (cbobench.plot, {"metric": "simple_regret", "average": True}, "no sum over rounds"),
        (cbobench.plot, {"problem": "quartr"}, "unknown problem 'quartr'; did you mean 'quarter'"),
        (cbobench.plot, {"kind": "plan"}, "unknown kind 'plan'; did you mean 'plane'"),
        (cbobench.plot, {"kind": "plane", "last": 3}, "last does not apply to a plane"),
        (
            cbobench.plot,
            {"kind": "plane", "metric": ["r", "V"], "average": True},
            "simple_regret is no sum",
        ),
        (
            cbobench.plot,
            {"kind": "profile", "average": True, "statistic": "mean"},
            "average and statistic do not apply to a profile",
        ),
        (
            cbobench.plot,
            {"kind": "profile", "metric": "regret"},
            "profiles are of simple_regret, which has targets",
        ),
        (cbobench.plot, {"metric": 3}, "metric is 3; give a name, or a list of names"),
        (cbobench.plot, {"problem": 3.5}, "unknown problem 3.5; allowed: "),
        (
            cbobench.plot,
            {"last": "x"},
            "last is 'x'; it must be a round, a whole number of at least 1",
        ),
        (
            cbobench.compare,
            {"only": 3},
            "only is 3; give a glob over problem/algorithm, such as 'rkhs-1d/",
        ),
        (cbobench.compare, {"against": 3}, "unknown algorithm 3; allowed: ckb-rand"),
        (cbobench.load_rounds, {"columns": [3]}, "columns is .3.; give a name, or a list of names"),
    ],
)
def test_what_is_no_word_is_refused(done, ask, options, message):
    with pytest.raises(Misuse, match=message):
        ask(done, **options)


def test_plot(done, tmp_path):
    figure = cbobench.plot(done, "V⁺", algorithm=["ckb-ucb"])
    axis = figure.axes[0]
    assert axis.get_ylabel().split() == ["Stronger", "violation", "V⁺"]
    assert axis.get_title(loc="left").endswith("quarter")
    figure.savefig(tmp_path / "one.png")
    average = cbobench.plot(done, "regret", problem="quarter", average=True, last=10)
    assert average.axes[0].get_ylabel().startswith("Average regret")


def test_a_plot_of_nothing(tmp_path):
    run = make(tmp_path / "run", {("P", "A"): {}}, seeds=range(2), failed={("P", "A"): range(2)})
    with pytest.raises(CbobenchError, match="no good cell of P"):
        cbobench.plot(run, "regret")
