"""Which configurations a run recommends: inputs in the user's units, order, seeds, and the line
below tables.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.cli.arguments import main
from cbobench.errors import Misuse
from cbobench.report.tables.best import describe_configurations
from tests.helpers import play_here

ROWS = [
    ("relu", 32, 0.1, 5.0, 1.0),
    ("tanh", 32, 0.1, 7.0, 2.0),
    ("relu", 64, 0.3, 9.0, 4.0),
    ("tanh", 64, 0.3, 8.0, 2.5),
]
TABLE = {
    "layout": "configurations",
    "inputs": ["act", "f", "rate"],
    "one_hot": ["act"],
    "objective": "score",
    "constraints": {"cost": {"at_most": 3}},
    "label": "nets",
}
BOX = {"gardner-1": {"label": "box", "noise_f": 0.0, "noise_g": 0.0}}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A table of four configurations, of which the last is the best feasible one, and a problem on
    a box.
    """
    folder = tmp_path_factory.mktemp("best")
    pd.DataFrame(ROWS, columns=["act", "f", "rate", "score", "cost"]).to_csv(
        folder / "nets.csv", index=False
    )
    suite = {
        "suite": "best", "horizon": 12, "seeds": 3, "algorithms": ["oracle", "random"],
        "problems": [{"table": TABLE | {"rows": str(folder / "nets.csv")}}, BOX],
    }  # fmt: skip
    return play_here(suite, folder / "run").folder


def of_rows(folder, rows, names, objective, seeds, horizon=1, **extra):
    """The run of a table whose first column is its input and whose last one is a constraint, at
    most 1.
    """
    pd.DataFrame(rows, columns=names).to_csv(folder / "t.csv", index=False)
    table = {
        "layout": "configurations",
        "rows": str(folder / "t.csv"),
        "inputs": names[:1],
        "amounts": names[:1],
        "objective": objective,
        "constraints": {names[2]: {"at_most": 1}},
        **extra,
    }
    suite = {"suite": "few", "horizon": horizon, "seeds": seeds, "algorithms": ["random"]}
    return play_here(suite | {"problems": [{"table": table}]}, folder / "run")


def test_cells_say_what_they_recommend(played):
    cells = cbobench.load_cells(played, problem="nets")
    assert set(cells["recommended_action"]) == {3}, "twelve draws of four see the best"
    assert cells["recommended_x"].isna().all()
    np.testing.assert_allclose(cells["recommended_f"], 8.0)
    box = cbobench.load_cells(played, problem="box")
    assert box["recommended_action"].isna().all()
    of_oracle = box[box["algorithm"] == "oracle"]
    np.testing.assert_allclose(of_oracle["recommended_f"], of_oracle["f_star"], atol=1e-9)
    assert all(len(x) == 2 for x in box["recommended_x"])
    regret = box["f_star"] - box["recommended_f"]
    feasible = [max(g) <= 0 for g in box["recommended_g"]]
    np.testing.assert_allclose(
        regret[feasible], box.loc[feasible, "recommended_regret"], atol=1e-12
    )


def test_inputs_have_the_users_names_and_units(played):
    frame = cbobench.load_rounds(played, problem="nets")
    for row in frame.to_dict("records"):
        act, width, rate, score, cost = ROWS[row["action"]]
        assert (row["act"], row["input f"], row["rate"], row["f"]) == (
            act,
            width,
            rate,
            pytest.approx(score),
        )
    sample = cbobench.load_rounds(played, columns=["input f", "act", "regret"])
    assert list(sample.columns) == [
        "cell",
        "problem",
        "algorithm",
        "seed",
        "t",
        "regret",
        "act",
        "input f",
    ]
    assert sample.loc[sample["problem"].str.startswith("gardner"), "act"].isna().all()
    point = cbobench.load_rounds(played, columns=["x_1"], problem="box")
    assert point["x_1"].notna().all()
    with pytest.raises(Misuse, match="unknown column 'acts'"):
        cbobench.load_rounds(played, columns=["acts"])


def test_the_best_comes_first_with_its_seeds(played):
    table = cbobench.best(played, only="nets")
    first = table.frame.iloc[0]
    assert (first["act"], first["input f"], first["rate"]) == ("tanh", 64, 0.3)
    assert (first["rank"], first["f"], first["violation"], first["seeds"], first["feasible"]) == (
        1,
        8.0,
        0.0,
        6,
        6,
    )
    assert first["by"] == "oracle 3/3, random 3/3"
    assert "act tanh, f 64, rate 0.3" in str(table)
    short_table = cbobench.best(played, top=1).table
    assert short_table.columns[2] == "objective"
    assert [row[2] for row in short_table.rows] == ["score 8.000", "f 2.000"]
    box = cbobench.best(played, only="box", top=2).frame
    assert (list(box["rank"]), box.loc[0, "by"]) == ([1, 2], "oracle 3/3")
    assert "3 more: --top" not in str(cbobench.best(played, only="box"))


def test_infeasible_ones_come_last_by_violation(tmp_path):
    rows = [(0, 1, 5), (1, 9, 4), (2, 3, 2), (3, 2, 0)]
    table = cbobench.best(of_rows(tmp_path, rows, ["a", "f", "g"], "f", seeds=40)).frame
    assert list(table["a"]) == [3, 2, 1, 0]
    assert list(table["violation"] > 0) == [False, True, True, True]
    assert table["seeds"].sum() == 40


def test_tables_end_with_the_winner(played):
    text = str(cbobench.best(played))
    assert (
        "best of nets: act tanh, f 64, rate 0.3: score = 8.000, the optimum (recommended by" in text
    )
    assert re.search(
        r"best of box: x_1 4.71239, x_2 0: f = 2.000, the optimum, in its own units "
        r"\(recommended by oracle 3/3\)",
        text,
    )
    text = str(cbobench.best(played, only="random"))
    assert re.search(
        r"best of box: x_1 .*: f = \S+, f\* = 2.000, in its own units "
        r"\(recommended by random 1/3\)",
        text,
    ), "it missed it"
    assert "best of" not in str(cbobench.compare(played))


def test_run_prints_the_winner_below_its_table(played, capsys, tmp_path):
    suite = {
        "suite": "s",
        "horizon": 3,
        "seeds": 1,
        "problems": ["gramacy"],
        "algorithms": ["oracle"],
    }
    (tmp_path / "s.yaml").write_text(json.dumps(suite))
    assert (
        main(
            [
                "run",
                str(tmp_path / "s.yaml"),
                "--cpus",
                "1",
                "--engine",
                "inline",
                "--out",
                str(tmp_path / "run"),
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("best: ")
    assert lines[-1].startswith("results: ")


def test_functions_that_differ_by_seed_have_no_winner(tmp_path):
    suite = {
        "suite": "drawn",
        "horizon": 5,
        "seeds": 2,
        "problems": ["rkhs-1d"],
        "algorithms": ["random"],
    }
    done = play_here(suite, tmp_path / "run")
    assert "best:" not in str(cbobench.best(done))
    assert len(cbobench.best(done).frame) > 0, "asked for, the actions are listed"


def test_on_the_command_line(played, capsys, tmp_path):
    assert main(["best", str(played.uri), "--only", "nets", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["act"] == "tanh"
    bundle = tmp_path / "b.zip"
    cbobench.export(played, bundle)
    assert main(["best", str(bundle), "--only", "nets"]) == 0
    assert "tanh" in capsys.readouterr().out
    assert main(["best", str(played.uri), "--top", "0"]) == 2
    assert capsys.readouterr().err == "cbobench: top is 0; it must be at least 1\n"


def test_the_objective_is_the_users_column_with_its_sign_and_unit(tmp_path, capsys):
    rows, names = [(0, 12.5, 0), (1, 12.1, 0), (2, 11.9, 2)], ["a", "time_s", "g"]
    run = of_rows(tmp_path, rows, names, {"minimise": "time_s"}, seeds=4, horizon=6, label="slow")
    table = cbobench.best(run)
    first = table.frame.iloc[0]
    assert (first["objective"], first["value"], first["f"]) == ("time_s", 12.1, -12.1)
    assert (table.table.columns[2], table.table.rows[0][2]) == ("time_s", "12.10")
    assert "best: a 1: time_s = 12.10, the optimum" in str(table)
    assert main(["show", str(tmp_path / "run")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "slow: f = minus time_s; g: g at most 1" in shown
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert content["grids"][0]["problems"][0]["objective"] == ["time_s", 0.0, -1.0]


def test_a_formula_in_units_of_its_spread_is_shown_as_its_page_does(tmp_path, capsys):
    """gramacy's best value is -0.59979; in units of its spread it is 0.9803, and `show` says
    which one tables show.
    """
    quiet = {"noise_f": 0.0, "noise_g": 0.0}
    suite = {
        "suite": "units", "horizon": 2, "seeds": 2, "algorithms": ["oracle"],
        "problems": [{"gramacy": quiet | {"label": "a"}}, {"gardner-1": quiet | {"label": "b"}},
                     {"gramacy": quiet | {"label": "plain", "scaled": False}}],
    }  # fmt: skip
    run = play_here(suite, tmp_path / "run")
    table = cbobench.best(run, only="a/*")
    row = table.frame.iloc[0]
    assert (row["objective"], row["value"]) == ("f", pytest.approx(-0.59979, abs=1e-5))
    assert row["f"] == pytest.approx(0.9803, abs=1e-4)
    assert table.table.rows[0][2] == "-0.5998"
    assert re.search(r"best of a: .*: f = -0.5998, the optimum", str(cbobench.best(run)))
    assert main(["show", str(tmp_path / "run")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "a, b: f counts from its mean; f and every g_j are in standard deviations over the box"
        in shown
    )
    assert shown.count("in standard deviations over") == 1, "one line for all that say the same"


def test_digits_grow_until_points_are_told_apart():
    box = [["x", {"float": [0.0, 1.0]}], ["y", {"float": [0.0, 1.0]}]]
    points = [{"x": 0.25, "y": 0.5}, {"x": 0.25, "y": 0.5 + 1e-9}, {"x": 0.25, "y": 0.5}]
    assert describe_configurations(points, box) == [
        "x 0.25, y 0.5",
        "x 0.25, y 0.500000001",
        "x 0.25, y 0.5",
    ]
    assert describe_configurations([{"x": 1 / 3, "y": 0.0}], box) == ["x 0.333333, y 0"]
    ulp = [{"x": 1 / 3}, {"x": float(np.nextafter(1 / 3, 1))}]
    assert len({*describe_configurations(ulp, None)}) == 2
    far = [["x", [1e6 + 1 / 3, 1e6 + 2 / 3]], ["kind", ["a", "b"]]]
    assert describe_configurations([{"x": 1e6 + 1 / 3, "kind": "a"}], far) == [
        "x 1000000.333333, kind a"
    ]
