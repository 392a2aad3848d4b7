"""Reading a run: statistics by hand, tables to the letter, figures and the numbers behind them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench import resources
from cbobench.errors import CbobenchError, Misuse
from cbobench.report.compare import compare
from cbobench.report.curves import curves
from cbobench.report.figures import draw_all
from cbobench.report.formats import TextTable, format_number, render
from cbobench.report.load import Run
from cbobench.report.summary import summary
from cbobench.stats.intervals import interval
from tests.conftest import ROOT
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


def test_summary_is_the_mean_over_cells(finished):
    frame = summary(Run(finished))
    assert list(frame["problem_label"].unique()) == ["h = B/4", "independent g", "light", "stocks"]
    assert list(frame["algorithm_label"][:5]) == ["CKB-UCB", "ckb-ts", "ckb-rand", "stageopt", "SGP"]
    assert (frame["n"] == 4).all()
    assert (frame["expected"] == 4).all()
    cells = cbobench.load_cells(finished, problem=frame["problem"][3], algorithm=frame["algorithm"][3])
    assert frame["regret"][3] == cells["regret"].mean()
    assert frame["violations_median"][3] == cells["violations"].median()


def test_a_partial_group_says_so(finished, tmp_path):
    """Two tasks are taken away: the table shows 0/4 there, and nothing is averaged over what is not there."""
    shutil.copytree(finished, tmp_path / "part")
    for kind in ("cells", "rounds"):
        for file in (tmp_path / "part" / kind).glob("stocks.ckb-*"):
            file.unlink()
    frame = summary(Run(tmp_path / "part"))
    gone = frame[(frame["problem_label"] == "stocks") & frame["algorithm"].str.startswith("ckb")]
    assert gone["n"].tolist() == [0, 0, 0]
    assert gone["regret"].isna().all()
    assert "0/4" in str(compare(Run(tmp_path / "part")))
    for kind in ("cells", "rounds"):
        shutil.rmtree(tmp_path / "part" / kind)
    with pytest.raises(CbobenchError, match="no good cell yet"):
        list(draw_all(Run(tmp_path / "part"), tmp_path))


def test_curves_are_means_over_seeds(finished):
    run = Run(finished)
    problem = run.expected["problem"].iloc[0]
    frame = curves(run, "regret", problem)
    rounds = cbobench.load_rounds(finished, problem=problem, algorithm="ckb-ts")
    at = rounds[rounds["t"] == 17]["regret"]
    row = frame[(frame["algorithm"] == "ckb-ts") & (frame["t"] == 17)].iloc[0]
    np.testing.assert_allclose(row["mean"], at.mean(), rtol=1e-12)
    np.testing.assert_allclose((row["low"], row["high"]), interval(at), rtol=1e-12)
    middle = curves(run, "regret", problem, statistic="median", last=17).query("algorithm == 'ckb-ts'").iloc[-1]
    assert middle["t"] == 17
    np.testing.assert_allclose(middle[["low", "median", "high"]].astype(float), at.quantile([0.25, 0.5, 0.75]))
    average = curves(run, "regret", problem, average=True)
    np.testing.assert_allclose(average["mean"] * average["t"], frame["mean"], rtol=1e-12)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567.0, "1.23e+06"),
        (12345.6, "12,346"),
        (1.23456, "1.235"),
        (12.3456, "12.35"),
        (float("nan"), "–"),
        (0.00001, "1.00e-05"),
    ],
)
def test_numbers(value, text):
    assert format_number(value) == text


TABLE = TextTable(["problem", "algorithm", "R₊"], [["a|b", "x_1", "1 ± 2"], ["a|b", "y", "–"]], "title", "a note")


def test_table_formats_to_the_letter():
    assert render(TABLE, "markdown").splitlines() == [
        "**title**", "", "| problem | algorithm | R₊ |", "| :-- | :-- | --: |",
        r"| a\|b | x_1 | 1 ± 2 |", r"| a\|b | y | – |", "", "a note",
    ]  # fmt: skip
    assert render(TABLE, "latex").splitlines() == [
        r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", r"\caption{title. A note}",
        r"\label{tab:title}", r"\begin{tabular}{llr}", r"\toprule", r"problem & algorithm & R$_+$ \\", r"\midrule",
        r"a$|$b & x\_1 & 1 $\pm$ 2 \\", r"a$|$b & y & -- \\", r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    lines = render(TABLE, "table").splitlines()
    assert lines[0].split() == ["title"]
    assert lines[-1] == "a note"
    assert [line.split() for line in lines[3:5]] == [["a|b", "x_1", "1", "±", "2"], ["y", "–"]]


EXPECTED = {
    "summary_figures_h_B_4", "summary_figures_independent_g", "summary_figures_light", "summary_figures_stocks",
    "figures_regret_h_B_4", "figures_regret_against_the_best_policy_independent_g",
    "figures_regret_light", "figures_stronger_violation_light",
    "figures_regret_stocks", "figures_average_regret_stocks", "figures_stronger_violation_stocks",
}  # fmt: skip


@pytest.fixture(scope="module")
def drawn(finished, tmp_path_factory):
    """The files of every figure, by its name."""
    folder = tmp_path_factory.mktemp("drawn")
    return {figure.name: paths for figure, paths in draw_all(Run(finished), folder)}


@pytest.mark.slow
def test_figures_and_the_numbers_behind_them(finished, drawn):
    assert set(drawn) == EXPECTED
    for paths in drawn.values():
        assert [p.suffix for p in paths] == [".pdf", ".png", ".csv", ".txt"]
        assert all(p.stat().st_size > 500 for p in paths)
    behind = pd.read_csv(drawn["figures_average_regret_stocks"][2])
    assert set(behind["metric"]) == {"average_regret"}
    last = behind[(behind["algorithm"] == "sgp-ucb") & (behind["t"] == 40)]["mean"].item()
    cells = cbobench.load_cells(finished, problem="stocks[data=look-alike]", algorithm="sgp-ucb")
    np.testing.assert_allclose(last, cells["regret"].mean() / 40)
    shown = pd.read_csv(drawn["figures_stronger_violation_light"][2])
    assert set(shown["algorithm"]) == {"ckb-ucb", "ckb-ts", "ckb-rand"}


def test_recipes_are_refused_when_they_are_none(finished, tmp_path):
    with pytest.raises(Misuse, match="unknown recipe 'zhou'"):
        list(draw_all(Run(finished), tmp_path, "zhou"))
    (tmp_path / "mine.py").write_text("x = 1\n")
    with pytest.raises(Misuse, match="has no function figures"):
        list(draw_all(Run(finished), tmp_path, str(tmp_path / "mine.py")))
    with pytest.raises(Misuse, match="draws nothing"):
        list(draw_all(Run(finished), tmp_path, "zhou_ji_2022_claims"))


def test_a_recipe_run_by_path_draws_the_same_bytes(tmp_path):
    curves = {"t": [10, 40], "regret": [[1.0, 2.0], [2.0, 4.0]], "violation_hard": [[1.0, 2.0], [2.0, 4.0]]}
    cells = {("P", "A"): {"regret": [2.0, 4.0]}}
    run = make(tmp_path / "run", cells, seeds=range(2), horizon=40, rounds=dict.fromkeys(cells, curves))
    ((_, paths),) = draw_all(Run(run), tmp_path / "here", "summary")
    words = [sys.executable, ROOT / "analysis" / "summary.py", run, tmp_path / "there"]
    subprocess.run(words, capture_output=True, check=True)
    assert [path.name for path in sorted((tmp_path / "there").iterdir())] == sorted(path.name for path in paths)
    for path in paths:
        assert (tmp_path / "there" / path.name).read_bytes() == path.read_bytes(), f"{path.name} is not the same bytes"


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in sorted(resources.recipes()) if not name.endswith("_claims")])
def test_all_recipes_run_by_path_and_draw_the_same_bytes(name, finished, drawn, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "analysis" / f"{name}.py", finished, tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = {path.name: path for path in (tmp_path / "out").glob("*")}
    prefix = {"summary": "summary_", "zhou_ji_2022": "figures_"}.get(name)  # of other papers the run has no problem
    expected = {path.name: path for stem in drawn if prefix and stem.startswith(prefix) for path in drawn[stem]}
    assert set(found) == set(expected)
    assert bool(found) == (prefix is not None)
    for file, path in expected.items():
        assert found[file].read_bytes() == path.read_bytes(), f"{file} is not the same bytes"


def test_a_recipe_refuses_what_is_no_run(tmp_path):
    wrong = subprocess.run(
        [sys.executable, ROOT / "analysis" / "summary.py", tmp_path], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "is not a run folder" in wrong.stderr
    assert "Traceback" not in wrong.stderr
