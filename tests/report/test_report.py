"""Reading a run: statistics by hand, tables to the letter, figures and the numbers behind them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.errors import CbobenchError, Misuse
from cbobench.report.figures.curves import Panel
from cbobench.report.figures.figures import draw_all
from cbobench.report.load import Run
from cbobench.report.tables.formats import render
from cbobench.report.tables.table import TextTable
from cbobench.stats.intervals import interval
from tests.helpers import swept
from tests.report.made import make

SUITE = """\
suite: figures
horizon: 40
seeds: 4
shared: {B: sup, G: sup, beta_scale: 0.2}
problems:
  - rkhs-1d: {h: 0.25, label: h = B/4}
  - rkhs-1d: {constraint: independent, label: independent g}
  - light-sensors: {data: look-alike, label: light}
  - stocks: {data: look-alike, label: stocks}
algorithms:
  - ckb-ucb: {label: CKB-UCB}
  - ckb-ts
  - ckb-rand
  - stageopt
  - sgp-ucb: {label: SGP}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("figures"), SUITE)


def test_a_run_without_cells_draws_nothing(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "none", ignore=shutil.ignore_patterns("*.parquet"))
    with pytest.raises(CbobenchError, match="no good cell yet"):
        list(draw_all(Run(tmp_path / "none"), tmp_path))


def test_curves_are_means_over_seeds(finished):
    run = Run(finished)
    problem, *_ = next(iter(run.expected))
    at = cbobench.load_rounds(finished, problem=problem, algorithm="ckb-ts").query("t == 17")[
        "regret"
    ]
    for statistic, *expected in (
        ("mean", *interval(at), at.mean()),
        ("median", *at.quantile([0.25, 0.75, 0.5])),
    ):
        frame = Panel("regret", problem, statistic=statistic).data(run)
        row = frame.query("algorithm == 'ckb-ts' and t == 17").iloc[0]
        np.testing.assert_allclose(
            row[["low", "high", statistic]].astype(float), expected, rtol=1e-12
        )
    frame, average = (
        Panel("regret", problem, average=average, last=30).data(run) for average in (False, True)
    )
    assert frame["t"].max() == 30
    np.testing.assert_allclose(average["mean"] * average["t"], frame["mean"], rtol=1e-12)


TABLE = TextTable(
    ["problem", "algorithm", "R₊"], [["a|b", "x_1", "1 ± 2"], ["a|b", "y", "–"]], "title", "a note"
)


def test_table_formats_to_the_letter():
    assert render(TABLE, "markdown").splitlines() == [
        "**title**", "", "| problem | algorithm | R₊ |", "| :-- | :-- | --: |",
        r"| a\|b | x_1 | 1 ± 2 |", r"| a\|b | y | – |", "", "a note",
    ]  # fmt: skip
    assert render(TABLE, "latex").splitlines() == [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\small",
        r"\setlength{\tabcolsep}{3.0pt}\setlength{\belowcaptionskip}{4pt}",
        r"\caption{title. A note.}",
        r"\label{tab:title}",
        r"\begin{tabular}{@{}lr@{}}",
        r"\toprule",
        r"algorithm & R$_+$ \\",
        r"\midrule",
        r"\multicolumn{2}{@{}l}{\emph{a$|$b}} \\",
        r"x\_1 & 1 $\pm$ 2 \\",
        r"y & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    lines = render(TABLE, "table").splitlines()
    assert (lines[0].split(), lines[-1]) == (["title"], "a note")
    assert [line.split() for line in lines[3:5]] == [["a|b", "x_1", "1", "±", "2"], ["y", "–"]]


EXPECTED = {
    "summary_figures_h_B_4",
    "summary_figures_independent_g",
    "summary_figures_light",
    "summary_figures_stocks",
    "figures_regret_h_B_4",
    "figures_regret_against_the_best_policy_independent_g",
    "figures_regret_light",
    "figures_stronger_violation_light",
    "figures_regret_stocks",
    "figures_average_regret_stocks",
    "figures_stronger_violation_stocks",
}


@pytest.mark.usefixtures("unpainted")
def test_figures_and_the_numbers_behind_them(finished, tmp_path):
    drawn = {figure.name: paths for figure, paths in draw_all(Run(finished), tmp_path)}
    assert set(drawn) == EXPECTED
    behind = pd.read_csv(drawn["figures_average_regret_stocks"][2])
    assert set(behind["metric"]) == {"average_regret"}
    last = behind[(behind["algorithm"] == "sgp-ucb") & (behind["t"] == 40)]["mean"].item()
    cells = cbobench.load_cells(finished, problem="stocks[data=look-alike]", algorithm="sgp-ucb")
    np.testing.assert_allclose(last, cells["regret"].mean() / 40)
    visible = pd.read_csv(drawn["figures_stronger_violation_light"][2])
    assert set(visible["algorithm"]) == {"ckb-ucb", "ckb-ts", "ckb-rand"}


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("zhou", "unknown recipe 'zhou'"),
        ("mine.py", "has no function figures"),
        ("claims.py", "draws nothing"),
    ],
)
def test_recipes_are_refused_when_they_are_none(finished, tmp_path, recipe, message):
    (tmp_path / "mine.py").write_text("x = 1\n")
    (tmp_path / "claims.py").write_text("claims = []\n")
    with pytest.raises(Misuse, match=message):
        list(draw_all(Run(finished), tmp_path, recipe))


@pytest.mark.long  # in this process test_figures draws an SVG twice
def test_a_recipe_draws_the_same_bytes_in_another_process(tmp_path):
    """Over 5 CPU-seconds, which import matplotlib and draw."""
    curves = {
        "t": [10, 40],
        "regret": [[1.0, 2.0], [2.0, 4.0]],
        "violation_hard": [[1.0, 2.0], [2.0, 4.0]],
    }
    cells = {("P", "A"): {"regret": [2.0, 4.0]}}
    run = make(
        tmp_path / "run", cells, seeds=range(2), horizon=40, rounds=dict.fromkeys(cells, curves)
    )
    here, there = tmp_path / "here", tmp_path / "there"
    ((_, paths),) = draw_all(Run(run), here, "summary")
    command = [sys.executable, "-m", "cbobench", "figures", run, "--recipe", "summary"]
    subprocess.run([*command, "--out", there], capture_output=True, check=True)
    assert {path.name for path in there.iterdir()} == {path.name for path in paths}
    for path in paths:
        assert (there / path.name).read_bytes() == path.read_bytes(), path.name
