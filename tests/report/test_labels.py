"""Labels and words of any kind: in no format do they become anything but text, and numbers keep
their kind.
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import printable
from cbobench.report.figures.figures import draw_all, write_numbers
from cbobench.report.load import Run
from cbobench.report.tables.formats import (
    escape_formula,
    escape_markdown,
    render,
    render_html,
    render_records,
)
from cbobench.report.tables.table import Best, Code, Marked, TextTable
from tests.helpers import play_here
from tests.report.made import make

HOSTILE = "_<b>x</b> a|b _i_ *j* `c` [t](u) ~s~ $_$ &lt; \\ 50 % #1 {y} ^ & 1"
BROKEN = "red\nand\ttabbed"
OBEYED = "\x1b[31mred\x1b[0m\x07\x9b2J\r\u202eoverride\ue000\n"
SEEDS = range(6)


def test_printable():
    assert printable("κ = 1/2, é\xa0ß 語 🙂") == "κ = 1/2, é\xa0ß 語 🙂"
    assert printable(OBEYED) == r"\x1b[31mred\x1b[0m\x07\x9b2J\r\u202eoverride\ue000\n"


def unescaped(text):
    """What a Markdown reader shows of a text without live punctuation; None where some is live."""
    if re.search(r"(?<!\\)(\\\\)*[*|<>~$`]|(?<![\w\\])_|(?<!\\)_(?!\w)|\]\(|(?<!\\)&\w+;", text):
        return None
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def test_markdown_shows_labels_to_the_letter():
    assert unescaped(escape_markdown(HOSTILE)) == HOSTILE
    assert unescaped(HOSTILE) is None, "negative control"
    assert escape_markdown("x_1, a_b_c") == "x_1, a_b_c"
    assert escape_markdown("__a__ _") == r"\_\_a\_\_ \_"
    assert escape_markdown(Best("a|b")) == r"**a\|b**"
    assert escape_markdown(Marked("a|b")) == r"a\|b\*"
    assert escape_markdown(Code("a|b_")) == r"`a\|b_`"
    assert escape_markdown(Code("a`b")) == r"a\`b"
    table = TextTable([HOSTILE, "b"], [[HOSTILE, "1"]], HOSTILE, f"{HOSTILE}\n{HOSTILE}", left=1)
    lines = render(table, "markdown").splitlines()
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    assert bars == [0, 0, 3, 3, 3, 0, 0, 0]


def test_latex_shows_labels_to_the_letter():
    row = render(TextTable(["a", "b"], [[HOSTILE, "1"]], left=1), "latex").splitlines()[-4]
    left = re.sub(
        r"\\[a-z]+\{\}|\\[%#{}_&$]|\$[|<>_+]\$|\$\^\*\$|\$\\[a-z]+\$",
        "",
        row.removesuffix(r" & $1$ \\").replace(r"~\%", r"\%"),
    )
    assert not set(left) & set("\\%#{}_&$^~<>|*`"), left


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    cells = {
        (BROKEN, algorithm): {
            "regret": np.arange(6.0) + i,
            "simple_regret": [np.nan] * 4 + [0.5] * 2,
        }
        for i, algorithm in enumerate((HOSTILE, BROKEN))
    }
    rounds = {key: {"t": [1, 100], "regret": [[0.0, 1.0]] * 6} for key in cells}
    return [
        str(make(folder / name, cells, seeds=SEEDS, failed={(BROKEN, BROKEN): lost}, rounds=rounds))
        for name, lost in (("a", [0]), ("b", [0, 1]))
    ]


@pytest.mark.parametrize("style", ["table", "csv"])
def test_nothing_that_a_terminal_obeys_is_printed(hostile, style, capsys):
    for arguments in ([hostile[0]], [hostile[0], "--ranks"], hostile):
        assert main(["compare", *arguments, "--format", style]) in (0, 1)
        out = capsys.readouterr().out
        assert not [c for c in out if not c.isprintable() and c != "\n"]
        assert "red" in out


def test_a_run_whose_labels_a_terminal_would_obey_is_refused(hostile, tmp_path, capsys):
    record = Path(hostile[0], "run.json").read_text()
    (tmp_path / "run.json").write_text(record.replace(json.dumps(BROKEN), json.dumps(OBEYED)))
    for command in ("status", "compare", "figures"):
        assert main([command, str(tmp_path)]) in (1, 2)
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)
        assert captured.err.rstrip("\n").isprintable()
        assert "U+001B" in captured.err


def test_a_figure_shows_labels_to_the_letter(hostile):
    figure = cbobench.plot(hostile[0], "regret")
    figure.canvas.draw()
    visible = {
        text.get_text()
        for axis in figure.axes
        for text in (axis.get_legend() or figure.legends[0]).get_texts()
    }
    assert any(HOSTILE in " ".join(text.split()).replace(r"\$", "$") for text in visible), visible


def test_json_is_valid_and_tells_infinite_from_undefined(hostile):
    comparison = cbobench.compare(hostile[0], metric=["simple_regret", "rec. r"])

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    rows = json.loads(comparison.render("json"), parse_constant=refuse)
    assert (rows[0]["simple_regret_median"], rows[0]["simple_regret"]) == ("inf", 0.5), (
        "the median as in CSV"
    )
    empty = json.loads(
        cbobench.compare(hostile[0], metric="simple_regret", against=HOSTILE).render("json")
    )
    assert empty[0]["mean"] == 0.0


def test_counts_of_two_runs_are_whole_in_csv(hostile):
    comparison = cbobench.compare(*hostile, metric="regret")
    rows = list(csv.DictReader(io.StringIO(comparison.render("csv"))))
    assert {row["verdict"] for row in rows} == {"identical", "newly failing"}
    compared = next(row for row in rows if row["algorithm_label"] == HOSTILE)
    names = ("n", "expected", "defined", "wins", "ties", "losses", "horizon")
    assert [compared[name] for name in names] == ["6", "6", "6", "0", "6", "0", "100"]
    failing = next(row for row in rows if row["verdict"] == "newly failing")
    assert (failing["n"], failing["wins"], failing["metric"]) == ("1", "", "")
    assert failing["reason"] == "seed 1"
    assert json.loads(comparison.render("json"))[1]["wins"] is None


STARRED = TextTable(
    ["a", "b"],
    [["x", Best("1")], ["y", Marked("2")]],
    "t",
    "median; *best*; * so\n*best*: x 1; * 2: f = 1, f* = 0.9803 (recommended)",
    left=1,
)


def test_a_star_in_a_note_is_a_star_unless_it_explains_cells_in_bold():
    """f* is no mark, nor is a star in a label; where cells are bold, the note says bold."""
    latex, markdown, html = (
        render(STARRED, "latex"),
        render(STARRED, "markdown"),
        render_html(STARRED),
    )
    for text, star in ((latex, r"$^\dagger$"), (markdown, r"\*"), (html, "*")):
        assert f"edian; bold: best; {star} so" in text
        assert "fbold" not in text
        assert text.count("bold:") == 1
    assert "f$^*$ = 0.9803" not in latex.partition("begin{table}")[2], "it is above the table"
    assert "% *best*: x 1; * 2: f = 1, f* = 0.9803" in latex
    assert r"f\* = 0.9803" in markdown
    assert "f* = 0.9803" in html
    assert "median; *best*; * so" in render(STARRED, "table")
    assert render(TextTable(["a"], [["x"]], "", "*best*", left=1), "markdown").endswith(
        "\nbold: best"
    )


@pytest.mark.parametrize(
    "line",
    ["- x", "+ x", "# x", "###### x", "1. x", "12) x", "===", "---", "  - x", "1.", "-", "--  "],
)
def test_no_line_of_a_note_becomes_a_list_a_heading_or_a_rule(line):
    note = render(
        TextTable(["a"], [["1"]], "", f"median\n{line}", left=1), "markdown"
    ).splitlines()[-1]
    assert unescaped(note) == line
    assert re.match(r"\s*\d*\\", note), note
    plain = "-3 x", "1.5 x", "#x", "=x", "a - b", "x"
    for same in plain:
        assert (
            render(
                TextTable(["a"], [["1"]], "", f"median\n{same}", left=1), "markdown"
            ).splitlines()[-1]
            == same
        )


def test_signs_in_a_row_stay_apart_in_latex():
    """Else two hyphens are a dash, two apostrophes a quotation mark."""
    row = render(TextTable(["a", "b"], [["a--b ---x '' ,,", "–"]], left=1), "latex").splitlines()[
        -4
    ]
    assert row == r"a-{}-b -{}-{}-x '{}' ,{}, & -- \\"


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "-1+2", "＝1", "-", "=", "+1_000"]
)
def test_no_label_is_a_formula(text, tmp_path):
    rows = list(
        csv.reader(io.StringIO(render_records([{text: text, "n": -1.5, "m": "-1.5"}], "csv")))
    )
    assert rows == [[f"'{text}", "n", "m"], [f"'{text}", "-1.5", "-1.5"]]
    assert json.loads(render_records([{text: text}], "json")) == [{text: text}], (
        "JSON has no formulas"
    )
    for plain in ("a=b", "-1", "+2.5e-3", "-.5", "-inf", "x", "", "–", "'=1", -1.0, None):
        assert escape_formula(plain) is plain


def test_no_label_is_a_formula_beside_a_figure(tmp_path):
    frame = pd.DataFrame(
        {"label": ["=1+1", "a"], "t": [1, 2], "mean": [-1.5, np.nan], "known": [True, False]}
    )
    write_numbers(frame, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "label,t,mean,known\n'=1+1,1,-1.5,True\na,2,,False\n"
    assert frame["label"].tolist() == ["=1+1", "a"]


@pytest.mark.usefixtures("unpainted")
def test_what_all_variants_share_is_said_once(tmp_path):
    quiet = {"noise_f": 0.0, "noise_g": 0.0}
    problems = [{"gramacy": quiet}, {"gardner-1": quiet}]
    methods = [{"ckb-ucb": {"kernel": "fit"}}, {"ckb-ts": {"kernel": {"sweep": ["fit", "given"]}}}]
    suite = {"suite": "s", "horizon": 2, "seeds": 1, "problems": problems, "algorithms": methods}
    done = Run(play_here(suite, tmp_path / "run").folder)
    assert [*done.record.labels("problems").values()] == ["gramacy", "gardner-1"]
    names = ["ckb-ucb[kernel=fit]", "ckb-ts[kernel=fit]", "ckb-ts[kernel=given]"]
    assert [*done.record.labels("algorithms").values()] == names
    for options in ({}, {"ranks": True}, {"metric": "R", "against": "ckb-ucb"}):
        text = str(cbobench.compare(done, **options))
        assert (
            text.count("noise_f") == text.count("all problems: noise_f = 0.0, noise_g = 0.0") == 1
        )
    for _, paths in draw_all(done, tmp_path / "out", "summary", metrics=["R"]):
        assert paths[-1].read_text().count("noise_f") == 1
    one = Run(done.folders).only("gramacy/ckb-ucb*")
    assert [*one.record.labels("problems").values()] == ["gramacy[noise_f=0.0,noise_g=0.0]"]
