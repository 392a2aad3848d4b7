"""A table as a paper prints it: what stands where, and no overfull box where there is a LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import product

import pandas as pd
import pytest

from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.figures.style import SIZES
from cbobench.report.tables.formats import Comparison, render
from cbobench.report.tables.latex import WIDTHS
from cbobench.report.tables.table import Best, Marked, TextTable
from tests.report.made import make

PROBLEMS = [
    "gardner-1",
    "gramacy",
    "hartmann-4",
    "pressure-vessel",
    "tension-spring",
    "welded-beam",
]
METHODS = ["optuna-tpe", "cei", "botorch-scbo", "random"]
CELLS = [
    Best("2.7e-04 [1.1e-05, 9.6e-04]"),
    Marked("0.0126 [0.0011, 0.1340] 9/10"),
    "∞ 2/10",
    "-12,345 [-20,000, -9.1]",
]


def make_results(symbols: list[str]) -> TextTable:
    pairs = [*product(PROBLEMS, METHODS)]
    rows = [
        [f"{p}[noise=0.1]", m, *[CELLS[i % 4]] * len(symbols)] for i, (p, m) in enumerate(pairs)
    ]
    brief = [*range(2, 2 + len(symbols))]
    return TextTable(["problem", "algorithm", *symbols], rows, "t", "n", brief=brief)


def make_differences() -> TextTable:
    pairs = [*product(PROBLEMS, METHODS)]
    words = ["problem", "algorithm", "against"]
    numbers = ["n", "median difference", "mean difference", "p (Holm)", "effect", "w/t/l"]
    rows = [
        [p, m, "cobyla", "10/10", CELLS[0], CELLS[3], "0.012", "+0.75", "1/0/9"] for p, m in pairs
    ]
    weights = [0, 0, 0, 0, 0, 4, 2, 3, 1]
    return TextTable([*words, *numbers], rows, "t", "n", left=3, weights=weights)


def body_of(text: str) -> list[str]:
    lines = text.splitlines()
    return lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]


def test_methods_are_rows_and_problems_columns_each_named_once():
    text = render(make_results(["r"]), "latex")
    lines = body_of(text)
    headings = [line for line in lines if line.startswith(" & ") and "scriptsize" not in line]
    assert re.findall("[a-z]+-?[a-z0-9]+", "".join(headings)) == PROBLEMS
    assert "noise" not in text, "what all problems share tells none from another"
    for method in METHODS:
        assert sum(line.startswith(f"{method} & ") for line in lines) == len(headings)
    assert text.startswith("% needs \\usepackage{booktabs}\n\\begin{table}\n")


def test_a_number_stands_above_its_interval_and_count():
    rows = [["p", str(i), cell] for i, cell in enumerate(CELLS)]
    table = TextTable(["problem", "algorithm", "r"], rows, brief=[2])
    assert body_of(render(table, "latex"))[2:] == [
        r"0 & $\mathbf{2.7\times10^{-4}}$ \\[-0.4ex]",
        r" & {\scriptsize [$1.1\times10^{-5}$, $9.6\times10^{-4}$]} \\",
        r"1 & $0.0126$\rlap{$^{\dagger}$} \\[-0.4ex]",
        r" & {\scriptsize [$0.0011$, $0.1340$] 9/10} \\",
        r"2 & $\infty$ \\[-0.4ex]",
        r" & {\scriptsize 2/10} \\",
        r"3 & $-12{,}345$ \\[-0.4ex]",
        r" & {\scriptsize [$-20{,}000$, $-9.1$]} \\",
    ]
    bare = render(table, "latex", intervals=False)
    assert "scriptsize [" not in bare
    assert r"2.7\times10^{-4}" in bare


def test_differences_stand_under_their_problem_without_what_the_caption_says():
    lines = body_of(render(make_differences(), "latex", size="double"))
    assert lines[0].startswith("algorithm & median difference")
    assert "against" not in lines[0]
    sections = [line for line in lines if "multicolumn" in line]
    assert [re.findall(r"emph{(.*?)}", line)[0] for line in sections] == PROBLEMS


def test_widths_are_those_of_figures():
    assert {name: SIZES[name].width for name in WIDTHS} == WIDTHS


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("intervals", [True, False])
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX here")
def test_latex_sets_it_without_an_overfull_box(size, intervals, tmp_path):
    tables = [make_results(["r"]), make_results(["r", "V⁺", "N"]), make_differences()]
    wide = TextTable(["problem", "algorithm", "r"], [["p" * 60, "m" * 30, "1"]], brief=[2])
    texts = [render(table, "latex", size=size, intervals=intervals) for table in (*tables, wide)]
    geometry = (
        rf"\usepackage[textwidth={WIDTHS['double']}in,textheight=30in,paperheight=35in]{{geometry}}"
    )
    gap = WIDTHS["double"] - 2 * WIDTHS["single"]
    for i, text in enumerate(texts):
        document = "\n".join(
            [
                r"\documentclass[10pt,twocolumn]{article}",
                rf"\usepackage{{booktabs}}{geometry}\setlength{{\columnsep}}{{{gap}in}}",
                r"\begin{document}",
                text,
                r"\end{document}",
            ]
        )
        (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        log = (tmp_path / "paper.log").read_text(encoding="utf-8", errors="replace")
        assert done.returncode == 0, log[-2000:]
        is_overfull = "Overfull" in log
        assert is_overfull == (i == 3 and size == "single"), "and names that cannot fit are seen"


def test_settings_of_a_suite_are_left_out_and_a_users_brackets_are_not():
    for label, shown in (("p[h=0.5]", "p"), ("oven [hard]", "oven [hard]"), ("[a] b", "[a] b")):
        text = render(
            TextTable(["problem", "algorithm", "r"], [[label, "m", "1"]], brief=[2]), "latex"
        )
        assert f" & {shown} " in text.replace("{}[", "[")


def test_greek_and_indices_are_commands():
    text = render(TextTable(["θ", "Ω₃⁷"], [["π", "1"]], left=1), "latex")
    assert r"$\theta$ & $\Omega$$_3$$^7$" in text
    assert r"$\pi$ & $1$" in text


def test_a_size_is_of_latex_alone():
    comparison = Comparison(pd.DataFrame(), make_results(["r"]))
    with pytest.raises(Misuse, match="size and intervals are of latex; format is table"):
        comparison.render(size="single")
    with pytest.raises(Misuse, match="single"):
        comparison.render("latex", size="sinlge")


def test_the_command_prints_the_first_metric_unless_others_are_named(tmp_path, capsys):
    """Its caption has two sentences, in which no word is of a shell and no cell is counted."""
    values = {
        (p, a): {"simple_regret": [0.1, 0.2], "regret": [1.0, 2.0]} for p in "PQ" for a in "AB"
    }
    run = make(tmp_path / "run", values, seeds=range(2))
    for given, symbols in ((), ["r"]), (("--metric", "r", "N"), ["r", "N"]):
        assert main(["compare", str(run), "--format", "latex", *given]) == 0
        text = capsys.readouterr().out
        headings = [line for line in body_of(text) if line.endswith(r"& P & Q \\")]
        assert len(headings) == len(symbols)
        caption = next(line for line in text.splitlines() if line.startswith(r"\caption"))
        assert caption.count(". ") <= 1
        assert not re.search(r"--|cbobench|\(\d+ ", caption)
