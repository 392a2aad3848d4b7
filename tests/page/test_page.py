"""A page holds the numbers of `compare` and of the curves, obeys no label, loads nothing, and is
there whole or not.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import platform
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cbobench import cli
from cbobench.page import command
from cbobench.page.content import ROUNDS as CURVE_ROUNDS
from cbobench.page.content import (
    SEED_ROUNDS,
    collect_curves,
    content,
    describe_running,
    labels_of,
    pack_numbers,
    tabulate_knowledge,
)
from cbobench.page.paths import shorten_paths
from cbobench.report.compare import compare
from cbobench.report.curves import curves
from cbobench.report.load import Run
from cbobench.report.planes import Plane
from cbobench.report.profiles import Profile
from cbobench.report.text_table import Best, Marked, explain_bold
from cbobench.results.export import export
from cbobench.results.lease import Lease
from cbobench.suite.cells import Cells
from tests.page.conftest import IMAGE, MANY, PLAIN, ROUNDS, SCRIPT, SEEDS, make_page_run, odd

LIBRARY = "var Plotly = {};"


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of its scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "script" and self.scripts:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "plotly.min.js"
    path.write_text(LIBRARY)
    return path


@pytest.fixture(scope="module")
def opened(run):
    return Run(run)


@pytest.fixture(scope="module")
def page(opened, library):
    return command.assemble_page(content([opened]), library)


@pytest.fixture(scope="module")
def data(page):
    return json.loads(Elements(page).scripts[0])


def numbers(text, width):
    values = np.frombuffer(base64.b64decode(text), dtype="<f4")
    return values.reshape(-1, width)


def title_of(run, kind, label):
    return next(title for title, name in run.record.labels(kind).items() if name == label)


def test_tables_are_those_of_compare(opened, data):
    options_by_kind = {
        "Results": {}, "Against the best of each problem": {"best": True}, "Ranks": {"ranks": True},
        "Profiles": {"profile": True},
    }  # fmt: skip
    tables = data["runs"][0]["tables"]
    assert [table["kind"] for table in tables] == [*options_by_kind]
    for table, options in zip(tables, options_by_kind.values(), strict=True):
        comparison = compare(opened, **options)
        assert table["rows"] == [[*row] for row in comparison.table.rows]
        heading = (
            comparison.table.title,
            explain_bold(comparison.table.note),
            [*comparison.table.columns],
        )
        assert (table["title"], table["note"], table["columns"]) == heading
        for name, kind in (("marked", Marked), ("best", Best)):
            assert table[name] == [
                [i, j]
                for i, row in enumerate(comparison.table.rows)
                for j, cell in enumerate(row)
                if isinstance(cell, kind)
            ]
        lines = list(csv.reader(io.StringIO(comparison.render("csv"))))
        assert sorted(line for digit_lines in table["digits"] for line in digit_lines) == sorted(
            lines
        )
        for row, digit_lines in zip(table["rows"], table["digits"][1:], strict=True):
            assert digit_lines
            assert all(row[table["columns"].index("algorithm")] in line for line in digit_lines), (
                "of this row"
            )
    frame = compare(opened).frame
    [head], *rows = tables[0]["digits"]
    assert [float(row[0][head.index("regret_median")]) for row in rows] == frame[
        "regret_median"
    ].tolist(), "all digits"
    assert any(table["marked"] for table in tables)


@pytest.mark.parametrize(("statistic", "first"), [("median", 0), ("mean", 3)])
def test_curves_are_those_of_figures(opened, data, statistic, first):
    run = data["runs"][0]
    compared = 0
    for pair in run["pairs"]:
        t = run["rounds"][pair["t"]]
        assert len(t) <= CURVE_ROUNDS
        assert (t[0], t[-1]) == (1, 120)
        for metric, text in pair["curves"].items():
            frame = curves(
                opened, metric, pair["problem"], statistic=statistic, algorithms=[pair["algorithm"]]
            )
            expected = frame.set_index("t").loc[t, [statistic, "low", "high"]].to_numpy().T
            np.testing.assert_allclose(
                numbers(text, len(t))[first : first + 3], expected, rtol=1e-6
            )
            assert set(frame["n"]) == {pair["n"]}
            compared += 1
    assert compared >= 6 * 4


def test_curves_of_single_seeds_are_what_was_recorded(opened, data, monkeypatch):
    run = data["runs"][0]
    pair = run["pairs"][1]
    t = run["rounds"][pair["seeds_t"]]
    frame = opened.rounds(["regret"], problem=pair["problem"], algorithm=pair["algorithm"])
    expected = frame.pivot(index="seed", columns="t", values="regret").loc[pair["seeds"], t]
    np.testing.assert_allclose(numbers(pair["by_seed"]["regret"], len(t)), expected, rtol=1e-6)
    assert sorted(pair["seeds"]) == [*range(1, SEEDS)], "all seeds that are good"
    monkeypatch.setattr("cbobench.page.content.VALUES", 2 * 6 * len(run["metrics"]) * SEED_ROUNDS)
    fewer_pairs = collect_curves(opened)["pairs"]
    assert {(len(pair["seeds"]), pair["expected"]) for pair in fewer_pairs} == {(2, SEEDS)}, (
        "fewer, and of how many"
    )


def test_pairs_without_a_cell_are_there_and_T_is_said(tmp_path):
    odd_run = Run(odd(tmp_path / "run"))
    page_run = content([odd_run])["runs"][0]
    labels = odd_run.record.labels("algorithms")
    pairs = {labels[pair["algorithm"]]: pair for pair in page_run["pairs"]}
    assert [*pairs] == [*MANY]
    assert (pairs["lost"]["n"], pairs["lost"]["expected"], pairs["lost"]["curves"]) == (
        0,
        SEEDS,
        {},
    )
    assert [pairs[label]["lacking"]["simple_regret"] for label in ("good", "half", "late")] == [
        0,
        2,
        5,
    ]
    assert {*page_run["ends"].values(), page_run["end"]} == {"T = 120 (no cell of T = 240 is good)"}
    ends = {
        (profile["problem"], profile["at"][-1], profile["shares"])
        for profile in page_run["profiles"]
        if profile["kind"] == "data"
    }
    assert ends == {("", ROUNDS, False), (next(iter(page_run["problems"])), ROUNDS, False)}
    assert dict(page_run["facts"])["Asked for"] == "1 problem, 12 methods, T = 120, 240"


def test_numbers_beyond_float32_are_no_gaps():
    values = np.array([[1e39, np.nan], [-2.0, 1e-3]])
    text = pack_numbers(values)
    assert text.startswith(":")
    np.testing.assert_array_equal(
        np.frombuffer(base64.b64decode(text[1:]), "<f8").reshape(2, 2), values
    )
    assert not pack_numbers(values[1:]).startswith(":")


def test_planes_and_profiles_are_those_of_figures(opened, data):
    run = data["runs"][0]
    for problem in opened.record.labels("problems"):
        for place, statistic in ((1, "median"), (0, "mean")):
            frame = Plane("regret", "violation_hard", problem, statistic=statistic).data(opened)
            for row in frame.to_dict("records"):
                final = next(
                    f
                    for f in run["finals"]
                    if (f["problem"], f["algorithm"]) == (problem, row["algorithm"])
                )
                values = final["values"]["regret"]
                ends = values[1:4] if place else [values[0], *values[4:6]]
                assert ends == [row["x"], row["x_low"], row["x_high"]]
                assert (final["n"], final["expected"]) == (row["n"], row["expected"])
    alone = [("data", problem) for problem in opened.record.labels("problems")]
    assert [(profile["kind"], profile["problem"]) for profile in run["profiles"]] == [
        ("performance", ""),
        ("data", ""),
        *alone,
    ]
    for profile in run["profiles"]:
        frame = Profile(profile["kind"], [profile["problem"]] if profile["problem"] else None).data(
            opened
        )
        shares = [
            np.frombuffer(base64.b64decode(curve["share"]), "<f4") for curve in profile["curves"]
        ]
        np.testing.assert_allclose(np.concatenate(shares), frame["share"], rtol=1e-6)


def test_no_label_leaves_its_place(page, data):
    elements = Elements(page)
    assert [tag for tag, _ in elements.found].count("script") == 1 + 1 + len(command.SCRIPTS)
    assert not [
        tag for tag, _ in elements.found if tag in ("img", "iframe", "object", "embed", "base")
    ]
    assert not [a for _, attributes in elements.found for a in attributes if a.startswith("on")]
    assert SCRIPT in data["runs"][0]["problems"].values(), (
        "negative control: the label is there, as data"
    )
    assert IMAGE not in page
    assert SCRIPT not in page
    assert "easy {{title}}" in page, "no label is taken for a place of the template"


def test_nothing_is_loaded(page):
    elements = Elements(page)
    places = [
        v
        for _, a in elements.found
        for k, v in a.items()
        if k in ("src", "href", "srcset", "action", "data")
    ]
    assert all(place.startswith("#") for place in places), places
    policy = next(
        a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert "unsafe" not in policy.split("script-src")[1]
    sources = [
        (command.HERE / name).read_text()
        for name in (*command.SCRIPTS, "page.css", "template.html")
    ]
    assert not re.search(
        r"https?:|@import|url\(|\bfetch\(|XMLHttpRequest|innerHTML|outerHTML|insertAdjacent",
        "".join(sources),
    )


def test_failed_cells_are_listed(data):
    failures = data["runs"][0]["failures"]
    assert failures["count"] == 1
    assert failures["rows"][0][:5] == [SCRIPT, PLAIN, 120, 0, "broken"]


def test_runs_stand_side_by_side(run, tmp_path, library):
    other_folder = make_page_run(tmp_path / "two", scale=3.0, seed=1, failed=0)
    before, after = Run(run), Run(other_folder)
    page_data = content([before, after])
    assert [page_run["label"] for page_run in page_data["runs"]] == ["one", "two"]
    lines = [line for digit_lines in page_data["changes"][0]["digits"] for line in digit_lines]
    assert lines == list(csv.reader(io.StringIO(compare(before, after).render("csv"))))
    assert labels_of([before]) == ["made"]


@pytest.fixture
def shipped(library, monkeypatch):
    monkeypatch.setattr(command, "library", lambda: library)


@pytest.mark.usefixtures("shipped")
def test_what_is_wrong_is_one_line_and_leaves_nothing(run, tmp_path, capsys):
    empty = shutil.copytree(run, tmp_path / "empty", ignore=shutil.ignore_patterns("*.parquet"))
    odd, damaged = (shutil.copytree(run, tmp_path / name) for name in ("odd", "damaged"))
    record = odd / "run.json"
    record.write_text(record.read_text().replace('"schema": 5', '"schema": 3', 1))
    rounds = sorted(damaged.glob("rounds/*"))[0]
    rounds.write_bytes(rounds.read_bytes()[:200])
    os.mkfifo(tmp_path / "pipe.html")
    before, record_bytes = set(tmp_path.rglob("*")), record.read_bytes()
    for arguments, reason in (
        ([str(empty)], "has no cell yet"),
        ([str(odd)], "schema version 3"),
        ([str(damaged)], rounds.name),
        ([str(tmp_path / "none")], "none"),
        ([str(run), str(run)], "given twice"),
        ([str(run), "--out", str(tmp_path)], "is a folder"),
        ([str(run), "--out", str(tmp_path / "measured.csv")], "ends with .html"),
        ([str(run), "--out", str(record)], "a file that ends with .html"),
        ([str(run), "--out", str(tmp_path / "pipe.html")], "a file that ends with .html"),
        ([str(run), "--out", str(tmp_path / "no" / "page.html")], "is no folder"),
    ):
        assert cli.main(["report", *arguments]) in (1, 2), arguments
        message = capsys.readouterr().err
        assert message.count("\n") == 1, message
        assert reason in message
    assert (set(tmp_path.rglob("*")), record.read_bytes()) == (before, record_bytes)


@pytest.mark.usefixtures("shipped")
def test_a_page_that_cannot_be_finished_leaves_the_old_one(run, tmp_path, monkeypatch):
    out = tmp_path / "page.html"
    out.write_text("old")
    monkeypatch.setattr(
        command.Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space left"))
    )
    assert cli.main(["report", str(run), "--out", str(out)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert out.read_text() == "old"


@pytest.mark.usefixtures("shipped")
def test_the_command_says_where_the_page_is_and_that_a_run_is_not_over(tmp_path, capsys):
    part = make_page_run(tmp_path / "part")
    sorted(part.glob("cells/*"))[0].unlink()
    out = tmp_path / "page.html"
    assert cli.main(["report", str(part), "--out", str(out)]) == 0
    output, note = (
        capsys.readouterr(),
        f"incomplete: {SEEDS} of {6 * SEEDS} cells are not played yet",
    )
    assert output.out.startswith(f"{out} (")
    assert note in output.err
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "part"}
    assert out.read_text().startswith("<!doctype html>")
    assert json.loads(Elements(out.read_text()).scripts[0])["runs"][0]["notes"] == [note]


def test_a_missing_library_is_one_line(run, capsys, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert cli.main(["report", str(run)]) == 2
    assert "pip install 'cbobench[page]'" in capsys.readouterr().err


def test_a_run_that_is_played_says_so(run):
    run = Run(run)
    with Lease(run.folder, Cells(run.record.cells.by_pair)):
        assert describe_running(run).startswith("still running: 1 call, begun 20")
    assert describe_running(run) == ""


def test_it_says_what_each_method_is_told(data):
    settings = data["runs"][0]["settings"][0]
    assert settings["title"] == "What each method is told"
    assert [row[1:] for row in settings["rows"]] == [["nothing", "–"]] * 3
    values = {
        "cei": {"lam": "scaled", "delta": 0.05, "keep": None},
        "mine:Own": {"lam": 0.1, "keep": False},
    }
    variants = {name: SimpleNamespace(name=name, values=chosen) for name, chosen in values.items()}
    record = SimpleNamespace(
        labels=lambda kind: {name: name for name in variants}, variants=lambda kind: variants
    )
    rows = tabulate_knowledge(SimpleNamespace(record=record), ("lam", "keep")).rows
    assert rows[0][0] == "cei"
    assert rows[0][1][:9] == "kernel, λ"
    assert rows[0][2] == "lam scaled"
    assert rows[1] == ["mine:Own", "not known here", "lam 0.1, keep false"], (
        "forgotten data are a choice"
    )


@pytest.mark.usefixtures("shipped")
def test_a_bundle_has_a_page_beside_it_without_what_it_does_not_hold(run, data, tmp_path, capsys):
    bundle = Path(export(run, tmp_path / "one.zip").file)
    assert cli.main(["report", str(bundle)]) == 0
    assert "a bundle: no claims are tested, no tracebacks" in capsys.readouterr().err
    bundle_data = json.loads(Elements((tmp_path / "one.html").read_text()).scripts[0])
    (of_run,), (theirs,) = data["runs"], bundle_data["runs"]
    assert all(theirs[part] == of_run[part] for part in ("tables", "finals", "ranks", "profiles"))
    assert "Machines" not in dict(theirs["facts"])
    assert theirs["failures"]["rows"][0][4] == "broken"
    assert theirs["failures"]["traces"] == [""]
    assert "rounds that no bundle holds" in bundle_data["unclaimed"], (
        "not tested with what is left of the rounds"
    )


FAILING = """
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from cbobench.algorithms.base import OneRun

@dataclass(kw_only=True)
class Failing(OneRun):
    source = about = "a test"

    def start_one(self, setting):
        self.setting = setting

    def ask_one(self, t):
        if self.setting.horizon == 3:
            open(Path(__file__).parent / "weather data.csv")
        return np.linalg.cholesky(np.zeros((2, 2)) - 1)

    def tell_one(self, t, action, f, g):
        pass
"""


def test_a_page_tells_no_places_of_a_machine(tmp_path, monkeypatch):
    """Of a run whose folders, files and commands name a person, of a machine that is not this one
    any more.
    """
    project = tmp_path / "Ann Smith" / "secret project"
    project.mkdir(parents=True)
    (project / "failing_of_page.py").write_text(FAILING)
    suite = project / "mine.yaml"
    suite.write_text(
        "suite: mine\nhorizon: 3\nseeds: 2\nproblems: [gramacy]\nalgorithms: "
        "['failing_of_page:Failing']\n"
    )
    with monkeypatch.context() as patch:
        patch.chdir(project)
        patch.syspath_prepend(project)
        arguments = ["run", str(suite), "--out", str(project / "runs" / "one"), "--cpus", "0"]
        assert cli.main([*arguments, "--horizon", "2"]) == cli.main(arguments) == 1
    page_data = content([Run(project / "runs" / "one")])
    text = json.dumps(page_data, ensure_ascii=False)
    for place in (
        "Ann",
        "Smith",
        "secret",
        str(Path.home()),
        str(Path(np.__file__).parents[1]),
        platform.node(),
    ):
        assert place not in text, place
    (run,) = page_data["runs"]
    traces = "".join(run["failures"]["traces"])
    frames = [line.strip() for line in traces.splitlines() if line.startswith("  File ")]
    assert all(
        re.fullmatch(r'File "(…/)?[\w./-]+\.py[xi]?", line \d+, in \S+', frame) for frame in frames
    ), frames
    assert 'File "…/failing_of_page.py", line 16, in ask_one' in frames
    assert any(frame.startswith('File "cbobench/play/play.py"') for frame in frames)
    assert any(frame.startswith('File "numpy/linalg/') for frame in frames)
    assert dict(run["facts"])["Run"] == "…/one"
    assert dict(run["facts"])["Machines"] == "1"
    assert run["settings"][3]["rows"][1][1].endswith("run '…/mine.yaml' --out '…/one' --cpus 0")


@pytest.mark.parametrize(
    ("text", "shortened"),
    [
        (
            'File "/a/b/site-packages/numpy/linalg/linalg.py", line 1, in f',
            'File "numpy/linalg/linalg.py", line 1, in f',
        ),
        ('File "/usr/lib/python3.12/json/decoder.py", line 3', 'File "json/decoder.py", line 3'),
        ('File "/x/git/cbobench/play/play.py", line 3', 'File "cbobench/play/play.py", line 3'),
        ('File "/x y/git/mine.py", line 3', 'File "…/mine.py", line 3'),
        ("empty: '/home/ann b/sec ...", "empty: '…/sec ..."),
        ("cbobench run /home/ann/s.yaml --out=~/runs/one", "cbobench run …/s.yaml --out=…/one"),
        ("at file:///home/ann/x.csv: empty", "at …/x.csv: empty"),
        ("PATH=/home/ann/bin:/opt/tools/bin", "PATH=…/bin:…/bin (2)"),
        ("table[rows=/home/ann/x.csv]/cei", "table[rows=…/x.csv]/cei"),
        ("s3://bucket/ann/run?region=eu", "s3://bucket/ann/run?region=eu"),
        (
            "req/s, 3/4, and/or, 1 / 2, </script>, /data",
            "req/s, 3/4, and/or, 1 / 2, </script>, /data",
        ),
    ],
)
def test_how_a_path_is_shortened(text, shortened):
    assert shorten_paths(text) == shortened
    assert shorten_paths({text: [text]}) == {shortened: [shortened]}


def test_paths_that_end_alike_stay_apart_and_numbers_stay():
    packed = {
        "curves": {"r": "/abc/def/AAA="},
        "by_seed": {"r": "/abc/def/AAA="},
        "share": "/abc/def/AAA=",
    }
    page = {
        "/home/ann/a/x.csv": "/home/ann/b/x.csv",
        "pairs": [packed],
        "profiles": [{"curves": [packed | {"a": "/x/y/z"}]}],
    }
    assert shorten_paths(page) == {
        "…/x.csv": "…/x.csv (2)",
        "pairs": [packed],
        "profiles": [{"curves": [packed | {"a": "…/z"}]}],
    }
