"""A page holds the tables of `compare` and the curves of figures, obeys no label, loads nothing,
tells no places of a machine, and is there whole or not.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from cbobench import cli
from cbobench.page import command
from cbobench.page.content import Page, add_run
from cbobench.page.figures import draw_curves, draw_profile
from cbobench.report.compare import compare
from cbobench.report.figures.curves import Panel
from cbobench.report.figures.profiles import Profile
from cbobench.report.figures.style import looks
from cbobench.report.load import Run
from cbobench.results.export import export
from tests.page.conftest import IMAGE, PLAIN, ROUNDS, SCRIPT

pytest.importorskip("plotly", reason="pip install 'cbobench[page]'")
HEADINGS = [
    "made",
    "Curves",
    SCRIPT,
    "easy {{title}}",
    "Ranks and profiles over all problems",
    "Failed and stale cells",
    "What ran",
]


class Elements(HTMLParser):
    """Every element of a page with its attributes, and by tag what elements begin with."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.texts, self.inside = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside is not None:
            self.texts[self.inside][-1] += data


def write(run):
    page = Page()
    add_run(page, Run(run))
    return command.assemble_page(page, "made")


@pytest.fixture(scope="module")
def text(run):
    return write(run)


@pytest.fixture(scope="module")
def elements(text):
    return Elements(text)


def title_of(run, label):
    titles = {name: title for title, name in run.record.labels("problems").items()}
    return titles[label]


def test_sections_come_in_their_order(elements):
    found = [tag for tag, _ in elements.found]
    words = {tag: iter(elements.texts[tag]) for tag in ("h1", "h2", "h3")}
    assert [next(words[tag]) for tag in found if tag in words] == HEADINGS
    assert found.index("table") < found.index("h2"), "the table is first"


def test_tables_are_those_of_compare(run, text):
    for options in ({}, {"ranks": True}):
        assert compare(run, **options).render("html") in text
    assert text.count("no method is significantly better than all others") == 1, "said once"


def test_curves_are_steps_with_the_numbers_of_figures(run):
    opened = Run(run)
    problem = title_of(opened, SCRIPT)
    figure = draw_curves(opened, problem)
    metrics = ["simple_regret", "regret", "violation_hard", "violations"]
    compared = 0
    for trace in figure.data:
        metric = metrics[len(metrics) - int(trace.yaxis[1:] or 1)]
        frame = Panel(metric, problem, statistic="median").data(opened).set_index(["label", "t"])
        label = {escape(IMAGE): IMAGE, f"{escape(PLAIN)} (5 of 6)": PLAIN}.get(trace.name, "third")
        expected = frame.loc[label].loc[[*trace.x]]
        np.testing.assert_array_equal(trace.y, expected["median"])
        ends = np.array([row[:2] for row in trace.customdata], dtype=float)
        np.testing.assert_array_equal(ends, expected[["low", "high"]])
        has_bar = ~np.isnan(trace.error_y.array)
        np.testing.assert_allclose(
            trace.error_y.array[has_bar], (expected["high"] - expected["median"])[has_bar]
        )
        assert has_bar[-1]
        assert (trace.x[0], trace.x[-1], trace.line.shape) == (1, ROUNDS, "hv")
        compared += 1
    assert compared == 3 * len(metrics)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_curves_of_a_bundle_are_those_of_its_run_in_every_round(run, tmp_path, statistic):
    def draw(opened):
        problem = title_of(opened, SCRIPT)
        axis, panel = Figure().subplots(), Panel("simple_regret", problem, statistic=statistic)
        panel.draw(axis, panel.data(opened), looks(opened.record))
        lines = [line for line in axis.get_lines() if line.get_drawstyle() == "steps-post"]
        assert len(lines) == 3
        pairs = [line.get_data() for line in lines]
        traces = draw_curves(opened, problem).data
        pairs += [(trace.x, trace.y) for trace in traces if trace.yaxis == "y4"]
        t = np.arange(1, ROUNDS + 1)  # a step holds until the next one
        return [np.asarray(y)[np.searchsorted(x, t, "right") - 1] for x, y in pairs]

    bundle = Run(export(run, tmp_path / "b.zip", rounds=[1, 9, 30]).file)
    np.testing.assert_array_equal(draw(bundle), draw(Run(run)))


def test_buttons_change_the_scales(run):
    opened = Run(run)
    figure = draw_curves(opened, title_of(opened, SCRIPT))
    kinds = [figure.layout[axis].type for axis in ("yaxis4", "yaxis3", "yaxis2", "yaxis")]
    assert kinds == ["log", "linear", "linear", "linear"], "simple regret falls towards 0"
    (log_y, linear_y), (log_t, _) = (menu.buttons for menu in figure.layout.updatemenus)
    assert (log_y.label, log_t.label) == ("log y", "log t")
    axes = [f"{name}.type" for name in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert linear_y.args[0] == dict.fromkeys(axes, "linear")
    assert {*log_y.args[0].values(), *log_t.args[0].values()} == {"log"}


@pytest.mark.parametrize("kind", ["performance", "data"])
def test_profiles_are_those_of_figures(run, kind):
    opened = Run(run)
    frame = Profile(kind).data(opened)
    drawn = draw_profile(opened, kind).data
    shares = [curve["share"].to_numpy() for _, curve in frame.groupby("algorithm", sort=False)]
    for trace, share in zip(drawn, shares, strict=True):
        np.testing.assert_array_equal(trace.y, share)
        assert trace.line.shape == "hv"


def test_no_label_leaves_its_place(elements, text):
    figures = sum(tag == "figure" for tag, _ in elements.found)
    scripts = sum(tag == "script" for tag, _ in elements.found)
    assert (figures, scripts) == (4, 2 + 4), "plotly's settings and library, and a call a figure"
    tags = {tag for tag, _ in elements.found}
    assert not tags & {"img", "iframe", "object", "embed", "base"}
    assert not [a for _, attributes in elements.found for a in attributes if a.startswith("on")]
    assert SCRIPT in elements.texts["h3"], "negative control: the label is there, as text"
    assert IMAGE not in text
    assert SCRIPT not in text


def test_nothing_is_loaded_and_only_plotlys_scripts_run(elements, text):
    names = ("src", "href", "srcset", "action", "data")
    assert not [a for _, attributes in elements.found for a in attributes if a in names]
    (policy,) = (
        attributes["content"]
        for _, attributes in elements.found
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    allowed = policy.partition("script-src ")[2]
    assert "unsafe" not in allowed
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, flags=re.S)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert allowed.split() == [f"'sha256-{digest}'" for digest in digests]


def test_failed_cells_are_listed(elements):
    cells = elements.texts["td"]
    place = cells.index("5/6 (1 failed)", cells.index("broken") - 1)
    assert cells[place - 3 : place + 2] == [SCRIPT, PLAIN, f"{ROUNDS}", "5/6 (1 failed)", "broken"]


def test_a_page_lies_in_its_run_or_here(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bundle = export(run, tmp_path / "bundles.zip").file
    for arguments, out in (
        ([str(run)], run / "report.html"),
        ([str(run), bundle], Path("report.html")),
    ):
        assert cli.main(["report", *arguments]) == 0
        assert capsys.readouterr().out.startswith(f"{out} (")
        assert out.read_text().startswith("<!doctype html>")
    assert Path("report.html").read_text().count("<h1>") == 2
    (run / "report.html").unlink()


def test_what_is_no_page_is_refused_in_a_line(run, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.html")
    record = (run / "run.json").read_bytes()
    for out in (tmp_path, tmp_path / "measured.csv", run / "run.json", tmp_path / "pipe.html"):
        assert cli.main(["report", str(run), "--out", str(out)]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert "a file that ends with .html" in message
    assert cli.main(["report", str(tmp_path / "none")]) == 2
    assert (run / "run.json").read_bytes() == record


def test_a_page_that_cannot_be_finished_leaves_the_old_one(run, tmp_path, monkeypatch):
    out = tmp_path / "page.html"
    out.write_text("old")

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(command.Path, "replace", fail)
    assert cli.main(["report", str(run), "--out", str(out)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert out.read_text() == "old"


def test_a_missing_library_is_one_line(run, capsys, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert cli.main(["report", str(run)]) == 2
    assert "pip install 'cbobench[page]'" in capsys.readouterr().err


FAILING = """
from dataclasses import dataclass
from pathlib import Path
from cbobench.algorithms.base import OneRun

@dataclass(kw_only=True)
class Failing(OneRun):
    source = about = "a test"

    def start_one(self, setting):
        pass

    def ask_one(self, t):
        open(Path(__file__).parent / "weather data.csv")

    def tell_one(self, t, action, f, g):
        pass
"""


def test_a_page_tells_no_places_of_a_machine(tmp_path, monkeypatch):
    """Of a run whose folders, files and commands name a person."""
    project = tmp_path / "Ann Smith" / "secret project"
    project.mkdir(parents=True)
    (project / "failing_of_page.py").write_text(FAILING)
    suite = project / "mine.yaml"
    suite.write_text(
        "suite: mine\nhorizon: 3\nseeds: 2\nproblems: [gramacy]\nalgorithms: "
        "['failing_of_page:Failing', random]\n"
    )
    with monkeypatch.context() as patch:
        patch.chdir(project)
        patch.syspath_prepend(project)
        arguments = ["run", str(suite), "--out", str(project / "runs" / "one"), "--cpus", "0"]
        assert cli.main(arguments) == 1
    page = Page()
    add_run(page, Run(project / "runs" / "one"))
    text = "".join(part for part in page.parts if "<script" not in part)
    text += "".join(page.scripts[2:])  # without plotly's own
    people = ("Ann", "Smith", "secret", str(Path.home()), str(Path(np.__file__).parents[1]))
    for place in (*people, platform.node()):
        assert place not in text, place
    assert "…/weather data.csv" in text
    assert escape("run '…/mine.yaml' --out '…/one' --cpus 0") in text
