"""Problems that know no optimum: tables, figures, ranks and checks go on, and say why there is no
regret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.problems.simulators.simulator import Simulator
from cbobench.report.figures.figures import draw_all
from cbobench.report.load import Run
from tests.helpers import play_here
from tests.report.made import make

MINE = """\
from dataclasses import dataclass
from cbobench.problems.simulators.simulator import Simulator

@dataclass(kw_only=True)
class Shop(Simulator):
    source, about = "a test", "a bowl with noise"
    low, high = (0.0, 0.0), (2.0, 4.0)

    def simulate(self, x, gen):
        f = 100 - (x[0] - 1) ** 2 - (x[1] - 2) ** 2
        return [f + 0.1 * gen.normal(), x[0] + x[1] - 2.5 + 0.1 * gen.normal()]
"""
SUITE = """\
suite: shop
horizon: 6
seeds: 3
problems:
  - mine_shop:Shop: {candidates: 64, repeats: 2, label: shop}
  - rkhs-1d
algorithms: [cei, random]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    (folder / "mine_shop.py").write_text(MINE)
    (folder / "suite.yaml").write_text(SUITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        play_here(folder / "suite.yaml", folder / "run")
    return folder / "run"


def test_tables_show_the_best_feasible_value_and_say_why(run, capsys):
    table = cbobench.compare(run)
    text = str(table).replace("\n", " ")
    assert "R: no optimum of shop is known" in text
    assert main(["show", str(run)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "no optimum is known, so there is no regret" in shown
    assert table.table.columns[2:] == ["best f", "r", "R", "V⁺", "N"]
    alone = cbobench.compare(run, only="shop/*").table
    assert alone.columns[2:] == ["best f", "V⁺", "N"], "in place of r and R"
    printed = str(cbobench.compare(run, only="rkhs-1d/*"))
    assert ("best f" in printed, "no optimum" in printed) == (False, False), "negative control"
    frame = table.frame.set_index("problem_label")
    assert np.isnan(frame.loc["shop", "regret_median"]).all()
    assert np.isfinite(frame.loc["rkhs-1d", "regret_median"]).all()
    assert (frame.loc["shop", "simple_value_median"] > 90).all(), "in the simulator's own units"


def test_a_heading_names_what_is_in_spreads_and_not_in_the_units_of_f(tmp_path):
    suite = {"suite": "s", "horizon": 4, "seeds": 2, "algorithms": ["random", "sobol"]}
    problems = [{"gramacy": {"label": "apart"}}, {"gramacy": {"scaled": False}}]
    done = play_here(suite | {"problems": problems}, tmp_path / "run")
    titles = [
        cbobench.compare(done, only=only, metric=metric).table.title.partition("2/2")[2]
        for only, metric in (("apart/*", "r"), ("apart/*", "N"), (None, ["r", "R", "N"]))
    ]
    assert titles == ["; r in spreads of f", "", "; r and R in spreads of f on apart"]
    assert cbobench.compare(done, only="gramacy/*", metric="r").table.title.endswith("on apart")
    pairs = cbobench.compare(done, only="apart/*", metric="r", against="random")
    assert pairs.table.title.endswith("(r); r in spreads of f")


@dataclass(kw_only=True)
class Level(Simulator):
    source = about = "a test"
    low, high = (0.0,), (1.0,)
    noisy = False
    objective: ClassVar = {"maximise": "gain"}
    constraints: ClassVar = {"excess": {"at_most": 0}}

    def simulate(self, x, gen):
        return {"gain": x[0], "excess": x[0] - 0.5}


@dataclass(kw_only=True)
class Measured(Level):
    constraints: ClassVar = {"excess": {"at_most": 0, "unit": 0.25}}


@pytest.mark.usefixtures("unpainted")
def test_violations_without_a_unit_are_left_out_and_their_rounds_counted(tmp_path):
    suite = {
        "suite": "s", "horizon": 6, "seeds": 2, "algorithms": ["random", "sobol"],
        "problems": [{f"{__name__}:{name}": {"label": name}} for name in ("Level", "Measured")],
    }  # fmt: skip
    done = play_here(suite, tmp_path / "run")
    both, without, within = (
        cbobench.compare(done, only=only) for only in (None, "Level/*", "Measured/*")
    )
    assert without.table.columns[2:] == ["best gain", "N"]
    assert both.table.columns[2:] == within.table.columns[2:] == ["best gain", "V⁺", "N"]
    said = "V⁺: left out, as a constraint of Level has the bound 0 and no `unit:`"
    assert [said in str(table) for table in (both, without, within)] == [True, True, False]
    frame = both.frame.set_index("problem_label")
    assert (frame["violations_median"] > 0).all()
    asked = cbobench.compare(done, only="Level/*", metric="V⁺")
    assert asked.table.columns[2:] == ["V⁺"], "what a reader asks for is shown"
    unlike = "V⁺: a sum of unlike units, as a constraint of Level has the bound 0 and no `unit:`"
    assert unlike in str(asked)
    captions = {
        metrics: [
            " ".join(paths[-1].read_text().split())
            for _, paths in draw_all(Run(done.folder), tmp_path, "summary", metrics=metrics)
        ]
        for metrics in ((), ("V⁺",))
    }
    assert [said in text for text in captions[()]] == [True, False]
    assert ["V⁺" in text.replace(said, "") for text in captions[()]] == [False, True]
    assert [unlike in text for text in captions["V⁺",]] == [True, False]
    for label, unit in (("Level", 1.0), ("Measured", 0.25)):
        rounds = cbobench.load_rounds(done, problem=label)
        excess = np.array([x[0] - 0.5 for x in rounds["x"]])
        np.testing.assert_allclose([g[0] for g in rounds["g"]], excess / unit, err_msg=label)


def test_files_hold_null_and_verify_says_they_are_whole(run):
    shop = cbobench.load_cells(run, problem="shop")
    assert shop[["f_star", "regret", "simple_regret"]].isna().all(axis=None)
    assert shop[["simple_value", "violation", "first_feasible"]].notna().all(axis=None)
    assert [main([command, str(run)]) for command in ("verify", "status")] == [0, 0]
    assert "no optimum is known" in (run / "run.json").read_text()


def test_ranks_and_pairs_count_what_is_known(run):
    ranks = cbobench.compare(run, ranks=True)
    blocks = ranks.frame.groupby("metric")["blocks"].first()
    assert (blocks["simple_regret"], blocks["simple_value"], blocks["violations"]) == (1, 2, 2)
    pairs = cbobench.compare(run, against="random", only="shop/*").frame
    assert set(pairs[pairs["n"] > 0]["metric"]) >= {"simple_value", "violations"}


@pytest.mark.usefixtures("unpainted")
def test_figures_draw_the_best_feasible_value(run, tmp_path):
    assert main(["figures", str(run), "--out", str(tmp_path / "f"), "--only", "shop/*"]) == 0
    caption = next((tmp_path / "f").glob("*.txt")).read_text().replace("\n", " ")
    assert "Best feasible value so far" in caption
    assert "regret of" not in caption
    assert "no optimum is known" in caption
    frame = next((tmp_path / "f").glob("*.csv")).read_text()
    assert "simple_value" in frame
    assert "\nregret" not in frame


PAIRS = [{"against": "random"}, {"ranks": True}]


@pytest.mark.parametrize("options", PAIRS, ids=str)
def test_seeds_that_could_reach_nothing_are_no_ties(run, options):
    """What has no value whatever is played is refused, and left out with a line where other metrics
    are asked for.
    """
    with pytest.raises(Misuse, match=r"^r: no optimum of shop is known; use best f$"):
        cbobench.compare(run, metric="r", only="shop/*", **options)
    several = cbobench.compare(run, metric=["r", "V+"], only="shop/*", **options)
    assert "r: no optimum of shop is known; use best f" in " ".join(str(several).split())
    rows = several.frame[several.frame["metric"] == "simple_regret"]
    assert rows.empty or rows["rank"].isna().all()
    printed = str(cbobench.compare(run, metric="r", only="rkhs-1d/*", **options))
    assert "no optimum" not in printed, "negative control"


@pytest.mark.parametrize("options", PAIRS, ids=str)
def test_functions_that_move_make_no_ties_of_simple_regret(tmp_path, options):
    none = {"simple_regret": [None] * 3, "simple_value": [None] * 3}
    cells = {
        ("P", name): none | {"violation_hard": [k, k, k]}
        for k, name in enumerate(("random", "other"))
    }
    moving = make(tmp_path / "moving", cells, seeds=range(3))
    with pytest.raises(Misuse, match=r"^r: the functions of P move; use R$"):
        cbobench.compare(moving, metric="r", **options)
    never = {pair: columns | {"first_feasible": [None] * 3} for pair, columns in cells.items()}
    text = str(
        cbobench.compare(
            make(tmp_path / "never", never, seeds=range(3)), metric="r", against="random"
        )
    )
    assert "0/3/0" in text, "where no seed got there, all are ties"


def test_the_table_of_results_says_why_a_target_has_no_rounds(run):
    alone = str(cbobench.compare(run, only="shop/*", target=0.0)).replace("\n", " ")
    assert "t(r ≤ 0): no optimum of shop is known" in alone
