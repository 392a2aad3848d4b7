"""What stays in a table: columns that were asked for, algorithms that have values, labels of any kind."""

from __future__ import annotations

import pytest

import cbobench
from cbobench.report.formats import Marked, TextTable, render
from tests.report.made import make

SEEDS = range(6)
LONG = "A very long name of a problem that is " + "very " * 30 + "long"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    cells = {
        (p, a): {"regret": [i + 10.0 * k for i in SEEDS], "simple_regret": [0.5 * k] * 6, "binds": [False] * 6}
        for p in (LONG, "[Q]") for k, a in enumerate(("A", "B", "broken"), 1)
    }  # fmt: skip
    rounds = {key: {"t": [1, 100], "simple_regret": [[0.4, 0.3]] * 6} for key in cells}
    failed = {key: list(SEEDS) for key in cells if key[1] == "broken"}
    return make(tmp_path_factory.mktemp("narrow") / "run", cells, seeds=SEEDS, failed=failed, rounds=rounds)


@pytest.mark.parametrize("width", [60, 120])
def test_the_target_that_was_asked_for_stays_and_no_mean_stands_alone(run, width):
    text = cbobench.compare(run, target=0.4).render("table", width)
    assert max(map(len, text.splitlines())) <= width
    head = next(line for line in text.splitlines() if "algorithm" in line)
    assert "t(r ≤ 0.4)" in head or width < 80
    assert "R mean" not in head or " R " in head.replace("R mean", "")


def test_ranks_are_of_algorithms_that_have_values(run):
    found = cbobench.compare(run, ranks=True, metric="regret")
    assert found.frame.set_index("algorithm_label")["rank"].to_dict() == {"A": 1.0, "B": 2.0}
    assert "left out, without a good cell on some problem: broken" in str(found)


def test_nothing_good_is_said_and_not_column_by_column(run):
    text = str(cbobench.compare(run, only="*/broken"))
    assert "some failed" in text
    assert "undefined" not in text


def test_order_by_algorithm_holds_for_differences_too(run):
    found = cbobench.compare(run, best=True, by="algorithm", metric="regret")
    assert list(found.frame["algorithm_label"]) == ["B", "B", "broken", "broken"]
    assert found.table.columns[0] == "algorithm"


def test_seeds_that_all_bind_or_do_not_say_so(run):
    assert "[Q]: does not bind" in set(cbobench.summary(run, by="binds")["problem_label"])


def test_advice_is_what_the_table_takes(run):
    assert "choose with" not in cbobench.compare(run, best=True).render("table", 60)
    assert "choose with --metric" in " ".join(cbobench.compare(run).render("table", 60).split())


def test_latex_rows_may_begin_with_a_bracket():
    text = render(TextTable(["a", "b"], [["[x]", "1"], [Marked("[y]"), "2"]]), "latex")
    assert "\n{}[x] & 1" in text


def test_tables_of_words_fit_too(monkeypatch):
    table = TextTable(["claim", "statement", "ours"], [["A1", "word " * 40, "number " * 20]], left=3)
    monkeypatch.setenv("COLUMNS", "70")
    assert max(map(len, render(table, "table").splitlines())) <= 70
