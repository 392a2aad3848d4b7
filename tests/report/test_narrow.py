"""What stays in a table: columns asked for, algorithms with values, seeds set apart by whether a
constraint binds.
"""

from __future__ import annotations

import re

import pytest

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.load import Run
from cbobench.report.quantities import select_metrics
from cbobench.report.tables.formats import render
from cbobench.report.tables.table import Marked, TextTable
from tests.report.made import make

SEEDS = range(6)
LONG = "A very long name of a problem that is " + "very " * 30 + "long"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    cells = {
        (p, a): {
            "regret": [i + 10.0 * k for i in SEEDS],
            "simple_regret": [0.5 * k] * 6,
            "binds": [False] * 6,
        }
        for p in (LONG, "[Q]")
        for k, a in enumerate(("A", "B", "broken"), 1)
    }
    rounds = {key: {"t": [1, 100], "simple_regret": [[0.4, 0.3]] * 6} for key in cells}
    failed = {key: list(SEEDS) for key in cells if key[1] == "broken"}
    return make(
        tmp_path_factory.mktemp("narrow") / "run", cells, seeds=SEEDS, failed=failed, rounds=rounds
    )


@pytest.mark.parametrize("width", [70, 120])
def test_the_target_that_was_asked_for_stays(run, width):
    text = cbobench.compare(run, target=0.4).render("table", width)
    assert max(map(len, text.splitlines())) <= width
    head = next(line for line in text.splitlines() if "algorithm" in line)
    assert "t(r ≤ 0.4)" in head


def test_nothing_good_is_said_and_not_column_by_column(run):
    text = str(cbobench.compare(run, only="*/broken"))
    assert "some failed" in text
    assert "undefined" not in text


def test_latex_rows_may_begin_with_a_bracket():
    text = render(TextTable(["a", "b"], [["[x]", "1"], [Marked("[y]"), "2"]], left=1), "latex")
    assert "\n{}[x] & $1$" in text


def test_tables_of_words_fit_too(monkeypatch):
    table = TextTable(
        ["claim", "statement", "ours"], [["A1", "word " * 40, "number " * 20]], left=3
    )
    monkeypatch.setenv("COLUMNS", "70")
    assert max(map(len, render(table, "table").splitlines())) <= 70


TEN = range(10)
CELLS = {
    ("Q", name): {"regret": [float(i) for i in TEN], "binds": [i < 4 for i in TEN]} for name in "AB"
}


def test_what_is_stale_is_counted_and_explained_once(tmp_path):
    run = Run(make(tmp_path / "run", CELLS, seeds=TEN))
    run.__dict__["stale"] = set(run.cells.query("seed in [1, 2, 7]")["cell"])
    run.__dict__["unchecked"] = set(run.cells.query("seed == 0")["cell"])
    text = " ".join(str(cbobench.compare(run)).split())
    assert "10/10 (3 stale, 1 unchecked)" in text
    for phrase in ("stale: played by code that has changed since; ", "unchecked: it is not"):
        assert text.count(phrase) == 1, "one line below the table, however many rows"


def test_status_names_what_played_and_is_no_more(tmp_path, capsys, monkeypatch):
    run = make(tmp_path / "run", CELLS, seeds=TEN)
    assert main(["status", str(run)]) == 0
    assert "staleness" not in capsys.readouterr().out
    monkeypatch.delitem(ALGORITHMS._classes, "random")
    assert main(["status", str(run)]) == 0
    assert (
        "20 cells could not be checked for staleness: random is nothing that this cbobench has; "
        "look with the version" in capsys.readouterr().out
    )


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A run whose four headline columns take more than eighty columns."""
    cells = {
        ("P", a): {
            "simple_regret": [0.00123 * k + 1e-4 * i if i else float("nan") for i in range(10)],
            "regret": [123.6 * k + i for i in range(10)],
            "violation_hard": [2345.6 * k + 50.0 * i for i in range(10)],
            "violations": [123.0 * k + i for i in range(10)],
        }
        for k, a in enumerate(("a-method", "another", "third"), 1)
    }
    return make(tmp_path_factory.mktemp("wide") / "run", cells, seeds=range(10))


def test_eighty_columns_hold_the_number_of_violations(wide):
    """Its interval and those of other columns give way; what is missing is said."""
    lines = cbobench.compare(wide).render("table", 80).splitlines()
    head = next(line for line in lines if "algorithm" in line).split()
    assert head == ["algorithm", "r", "R", "V⁺", "N"]
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if "third" in line)
    assert (row.count("["), row.split()[-1]) == (1, "373.5"), "r keeps its interval"
    text = " ".join(" ".join(lines).split())
    assert re.search(r"intervals of .*V⁺ and N$", text)
    full = cbobench.compare(wide).render("table", 200)
    assert "intervals of" not in full, "negative control"
    narrow = cbobench.compare(wide).render("table", 60).splitlines()
    assert next(line for line in narrow if "algorithm" in line).split()[-1] == "N"


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("r mean", "simple_regret"),
        ("R mean", "regret"),
        ("Simple regret", "simple_regret"),
        ("rounds in violation", "violations"),
        ("rec r", None),
        ("rec. r", "recommended_regret"),
        ("REC. V", "recommended_violation"),
        ("Stronger cumulative violation", "violation_hard"),
        ("V+", "violation_hard"),
        ("best f", "simple_value"),
        ("φ > 0", "positive_dual"),
        ("first", "first_feasible"),
        ("n", None),
    ],
)
def test_metrics_answer_to_the_words_of_headings(heading, name):
    if name is None:
        with pytest.raises(Misuse, match="unknown metric"):
            select_metrics([heading])
    else:
        assert [q.name for q in select_metrics([heading])] == [name]
