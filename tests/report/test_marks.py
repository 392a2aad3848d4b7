"""Marks of tables: who is best, who may be, how many seeds and problems tell, and how each format
shows it.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import cbobench
from cbobench.report.tables.table import Best, Marked
from tests.helpers import long_cases
from tests.report.made import make


def make_regrets(folder, values, **options):
    """A run of one problem with these regrets by method."""
    cells = {("P", method): {"regret": regrets} for method, regrets in values.items()}
    return make(folder, cells, seeds=range(len(values["A"])), **options)


def test_the_best_and_what_is_not_separable_from_it_is_marked(tmp_path):
    """A beats C in every seed, and B in about half of them; D fails in most of the seeds."""
    base = np.arange(12.0)
    near = base + np.where(np.arange(12) % 2, 0.5, -0.49)
    values = {"A": base, "B": near, "C": base + 3, "D": base + 1}
    run = make_regrets(tmp_path / "run", values, failed={("P", "D"): range(4)})
    compared = cbobench.compare(run, metric="regret")
    kinds = {row[1]: type(row[3]) for row in compared.table.rows}
    assert kinds == {"A": Best, "B": Marked, "C": str, "D": str}
    text = compared.render()
    assert "8/12 (4 failed)" in text
    assert r"\mathbf{" in compared.render("latex")


def apart_everywhere(folder, methods, problems, seeds):
    """Methods of which each is worse than the one before it, in every seed of every problem."""
    cells = {
        (f"P{p}", f"M{m}"): {"regret": [m * (1 + s) for s in range(seeds)]}
        for p in range(problems)
        for m in range(methods)
    }
    return make(folder, cells, seeds=range(seeds))


@pytest.mark.parametrize(
    ("methods", "problems", "options", "need", "of"),
    [
        (2, 1, {}, 5, "a method"),
        (4, 1, {"against": "M0"}, 7, "a metric"),
        *long_cases(
            (4, 1, {}, 6, "a method"),
            (7, 3, {}, 7, "a method"),
            (7, 3, {"against": "M0"}, 10, "a metric"),
        ),
    ],
)
def test_the_seeds_that_are_said_to_be_needed_are_needed(
    tmp_path, methods, problems, options, need, of
):
    """One less marks nothing and makes no difference significant, however far apart the methods
    are.
    """
    sparse, sufficient = (
        cbobench.compare(
            apart_everywhere(tmp_path / str(n), methods, problems, n), metric="regret", **options
        )
        for n in (need - 1, need)
    )
    count = (methods - 1) * (problems if options else 1)
    message = f"{count} comparison{'s' * (count > 1)} of {of} need{'s' * (count == 1)} {need} seeds"
    line = "any difference to be significant" if options else "to mark who is best"
    assert f"too few seeds {'for' * bool(options)} {line}: {message}".replace("  ", " ") in str(
        sparse
    )
    assert "too few seeds to mark" not in str(sufficient)
    assert "too few seeds for" not in str(sufficient)
    marked = [
        sum(
            isinstance(cell, Marked)
            for row in c.table.rows
            for cell in row
            if row[0] != "all problems"
        )
        for c in (sparse, sufficient)
    ]
    assert marked == [0, problems * (methods - 1 if options else 1)]


def starred(run, **options):
    """Of each method whether its regret has a star, by label."""
    rows = cbobench.compare(run, metric="regret", **options).table.rows
    return {row[1]: isinstance(row[2], Marked) for row in rows}


def test_what_is_worse_than_a_starred_method_has_no_star(tmp_path):
    """C is beaten by B in every seed, and by A, which has the best median, in nine of ten: too few
    by itself.
    """
    a = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.2, 0.1, 0.2, 9.0])
    b = np.linspace(0.35, 0.45, 10)
    c = b + np.linspace(0.05, 0.5, 10)[::-1]
    values = {"A": a, "B": b, "C": c, "D": c + 5, "E": c + 6, "F": c + 7, "G": c + 8}
    run = make_regrets(tmp_path / "run", values)
    best = cbobench.compare(run, metric="regret", against="A").frame.set_index("algorithm_label")
    assert best.loc["C", "p_holm"] > 0.05
    marks = starred(run)
    assert (marks["A"], marks["C"]) == (True, False)
    assert not any(marks[label] for label in "DEFG")


LATEX_FORMS = {
    "A": r"\$\\mathbf",
    "twin": r"\$\\mathbf",
    "B": r"\$[\d.]+\$\\rlap",
    "C": r"\$[\d.]+\$ ",
}


def test_bold_is_the_best_alone_in_every_format(tmp_path):
    """A star is a lighter mark than bold; of methods that are equal in every seed each is the
    best.
    """
    base = np.arange(12.0)
    near = base + np.where(np.arange(12) % 2, 0.5, -0.4)
    values = {"A": base, "B": near, "C": base + 3, "twin": base}
    run = make_regrets(tmp_path / "run", values)
    compared = cbobench.compare(run, metric="regret")
    visible = dict(row[1:3] for row in compared.table.rows)
    for text, bold, star, legend in (
        (compared.render(), "*{}*", " {}*", "*best*; * no method is significantly better"),
        (
            compared.render("markdown"),
            " **{}** ",
            r" {}\* ",
            r"bold: best; \* no method is significantly better",
        ),
        (
            compared._repr_html_(),
            "<b>{}</b>",
            ">{}*<",
            "bold: best; * no method is significantly better",
        ),
    ):
        assert bold.format(visible["A"]) in text
        assert star.format(visible["B"]) in text
        assert visible["C"] in text
        for form in (bold, star, "{}*", r"{}\*", "{}$"):
            assert form.format(visible["C"]) not in text
        assert text.count(bold.format(visible["twin"])) == 2
        assert bold.format(visible["B"]) not in text
        assert legend in " ".join(text.split())
    latex = compared.render("latex").splitlines()
    for method, form in LATEX_FORMS.items():
        assert sum(bool(re.match(f"{method} & {form}", line)) for line in latex) == 1
    assert any(
        r"bold: best; $^\dagger$ no method is significantly better" in line for line in latex
    )


@pytest.mark.parametrize(
    ("methods", "problems"),
    [(2, 5), (5, 6), *long_cases((2, 4), (3, 6), (5, 7))],
)
def test_ranks_are_marked_where_the_problems_can_tell(tmp_path, methods, problems):
    """Of the methods that are worse in every problem than the one before none has a star, of three
    that are alike all.

    Five methods take seven problems: four comparisons, and 4 / 2^7 is below 5 %.
    """
    run = apart_everywhere(tmp_path / "run", methods, problems, 3)
    compared = cbobench.compare(run, ranks=True, metric="regret")
    sufficient = (methods - 1) / 2**problems < 0.05
    kinds = [type(row[1]) for row in compared.table.rows]
    assert kinds == [Best, *[str] * (methods - 1)] if sufficient else kinds == [str] * methods
    assert compared.frame["beaten"].tolist() == (
        [False] + [True] * (methods - 1) if sufficient else [None] * methods
    )
    assert ("too few problems to mark" in str(compared)) != sufficient
    gen = np.random.default_rng(problems)
    cells = {
        (f"P{p}", f"M{m}"): {"regret": gen.normal(10, 1, 3)}
        for p in range(problems)
        for m in range(3)
    }
    alike = cbobench.compare(
        make(tmp_path / "alike", cells, seeds=range(3)), ranks=True, metric="regret"
    )
    assert alike.frame["beaten"].tolist() == [False if problems > 5 else None] * 3
    assert any(isinstance(row[1], Best) for row in alike.table.rows) == (problems > 5)


TEN = np.arange(10.0)
NEAR = TEN + np.where(np.arange(10) % 2, 0.3, -0.2)
NONE = "no method is significantly better than all others"
ALL = "(every other method is significantly worse)"
NEVER = [np.nan] * 10
RARE = [0.1, 0.1, 0.1, 0.1, *[np.nan] * 6]


@pytest.mark.parametrize(
    ("metric", "values", "says"),
    [
        ("R", {"P": {"B": TEN + 1, "A": TEN, "C": TEN + 2}}, f"R: A is best on P {ALL}"),
        ("R", {"P": {"A": TEN, "B": NEAR, "C": TEN + 2}}, f"R: {NONE}"),
        ("R", {"P": {"A": TEN, "B": TEN}}, f"R: {NONE}"),
        ("R", {"P": {"A": TEN - 5, "B": TEN - 6}}, f"R: B is best on P {ALL}"),  # around 0
        ("best f", {"P": {"A": TEN, "B": TEN + 1}}, f"best f: B is best on P {ALL}"),
        ("r", {"P": {"A": TEN + 1, "B": NEVER}}, f"r: A is best on P {ALL}"),
        ("r", {"P": {"A": RARE, "B": NEVER}}, f"r: {NONE}"),
        ("R", {"P": {"A": TEN, "B": TEN + 1}, "Q": {"A": TEN, "B": TEN + 1}},
         f"R: A is best on P, Q {ALL}"),
        ("R", {"P": {"A": TEN, "B": TEN + 1}, "Q": {"A": TEN + 1, "B": TEN}},
         f"R: A is best on P; B is best on Q {ALL}"),
        ("R", {"P": {"A": TEN, "B": TEN + 1}, "Q": {"A": TEN, "B": NEAR}},
         f"R: A is best on P {ALL}; elsewhere {NONE}"),
    ],
)  # fmt: skip
def test_a_line_says_who_is_best_by_the_tests_of_the_stars(tmp_path, metric, values, says):
    name = {"R": "regret", "r": "simple_regret", "best f": "simple_value"}[metric]
    cells = {(p, a): {name: v} for p, methods in values.items() for a, v in methods.items()}
    table = cbobench.compare(make(tmp_path / "run", cells, seeds=range(10)), metric=metric).table
    assert table.note.split("\n")[1] == says
    for problem in [p for p in values if f" on {p}" in says.partition(" (")[0]]:
        rows = [row for row in table.rows if row[0] == problem]
        assert sum(isinstance(row[2], Marked) for row in rows) <= 1, "a winner alone has a star"


def test_where_nothing_is_compared_nobody_is_best(tmp_path):
    run = make_regrets(tmp_path / "two", {"A": TEN, "B": TEN + 1})
    assert "A is best on P" in str(cbobench.compare(run, metric="R")), "negative control"
    text = str(cbobench.compare(run, metric="R", only="P/A"))
    assert "is best on" not in text
    assert NONE not in text
