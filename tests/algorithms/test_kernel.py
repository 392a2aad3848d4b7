"""`kernel: auto`: the problem's kernel where it is known, fitted models elsewhere, in play, cells,
tables and estimates alike.
"""

from __future__ import annotations

import numpy as np
import pytest

import cbobench
from cbobench.cli import main
from cbobench.play.play import Play, PlayOptions
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.suite.prepare import memory_of
from tests.helpers import (
    actions,
    load,
    long_cases,
    make,
    play,
    prepare,
    prepare_class,
    problem,
    swept,
)

KNOWN = {"rkhs", "rkhs-1d", "expert-guidance"}
AS_FILES_SAY = {name for name in PROBLEMS.names() if name == "table" or name.startswith("measured")}
LOOK_ALIKE = {"light-sensors", "stocks"}
TABLE = "a,y,c\n" + "\n".join(f"{i},{(i - 3) ** 2},{i % 4}" for i in range(9)) + "\n"
ROLES = {"inputs": ["a"], "objective": "y", "constraints": {"c": {"at_most": 2}}}


def test_the_kernel_is_known_where_functions_are_drawn_from_it():
    for name in {*PROBLEMS.names()} - AS_FILES_SAY:
        known = PROBLEMS.get(name).kernel_is_known
        assert known == (name in KNOWN | LOOK_ALIKE), name
    assert not Problem.kernel_is_known


def table(folder, covariance=None):
    (folder / "t.csv").write_text(TABLE)
    settings = {"layout": "configurations", "rows": "t.csv", "amounts": ["a"], **ROLES}
    if covariance is not None:
        np.savetxt(folder / "k.csv", covariance, delimiter=",", header="a,b,c,d,e,f,g,h,i")
        (folder / "k.csv").write_text((folder / "k.csv").read_text().removeprefix("# "))
        settings["covariance"] = "k.csv"
    return prepare_class(PROBLEMS.get("table"), folder, **settings)


def test_of_a_table_it_is_known_if_its_user_gives_it(tmp_path):
    for covariance in (None, np.eye(9)):
        task = table(tmp_path, covariance)
        assert task.kernel_is_known == (covariance is not None)
        played = play(task, make("cei"), seeds=1, horizon=4)[0]
        assert played.algorithm.fits == (covariance is None)


def test_of_readings_it_is_their_covariance(tmp_path):
    (tmp_path / "r.csv").write_text("a,b,c\n1,2,3\n2,1,5\n4,4,4\n")
    task = prepare_class(PROBLEMS.get("table"), tmp_path, layout="readings", rows="r.csv")
    assert task.kernel_is_known
    assert prepare("stocks", data="look-alike").kernel_is_known


@pytest.mark.parametrize(
    ("name", "place", "settings", "means"),
    [
        ("ckb-ucb", "rkhs-1d", {}, "given"),
        ("ckb-ucb", "gramacy", {"grid": 6}, "fit"),
        ("ckb-ucb", "feasible-pocket-delayed", {"delay": 2.0, "grid": 9}, "given"),
        ("cei", "rkhs-1d", {}, "given"),
        ("cei", "gramacy", {"candidates": 64}, "fit"),
        ("ckb-ts", "gramacy", {"candidates": 64}, "fit"),
        *long_cases(
            ("scbo", "rkhs-1d", {}, "given"),
            ("scbo", "gramacy", {"candidates": 64}, "fit"),
            ("admmbo", "gramacy", {"grid": 6}, "fit"),
        ),
    ],
)
def test_it_plays_what_it_means_bit_for_bit(name, place, settings, means):
    task = problem(place, **settings)
    auto, named, wrong = (
        play(task, make(name, kernel=kernel), seeds=2, horizon=14)
        if kernel != "fit" or "feedback at once" in task.offers()
        else None
        for kernel in ("auto", means, "fit" if means == "given" else "given")
    )
    np.testing.assert_array_equal(actions(auto[1]), actions(named[1]))
    assert auto[0].algorithm.fits == (means == "fit")
    assert wrong is None or wrong[0].algorithm.fits == (means != "fit"), "negative control"


def test_where_models_cannot_be_fitted_it_is_the_problem_s():
    """More sampled actions than `MOST`, and a target that one kernel must have; asked to fit, both
    are refused.
    """
    for name, task, settings in (
        ("ckb-ts", problem("gramacy", grid=46), {}),
        ("penalty-noisy", problem("gramacy", grid=6), {"inner": "ts"}),
    ):
        algorithm = make(name, **settings)
        algorithm.check(task)
        assert play(task, algorithm, seeds=1, horizon=2)[0].algorithm.fits is False
        with pytest.raises(cbobench.Misuse, match="kernel is fit, but"):
            make(name, kernel="fit", **settings).check(task)


@pytest.mark.parametrize(("name", "fits"), [("ckb-ucb", True), ("rpol-censored", False)])
def test_with_several_evaluations_under_way_only_the_censored_model_is_given(name, fits):
    task, algorithm = problem("gramacy", grid=6), make(name)
    algorithm.check_late(task)
    parallel = {"points": 2, "as": "batch"}
    assert play(task, algorithm, 1, 6, parallel=parallel)[0].algorithm.fits is fits
    assert play(task, make(name), 1, 6)[0].algorithm.fits is True


def test_on_boxes_alone_means_the_box_also_where_paths_are_sampled_on_its_grid():
    for settings, fits in (({"candidates": 32}, True), ({"grid": 5}, False)):
        algorithm = make("ckb-ts", kernel="fit on boxes")
        task = problem("gramacy", **settings)
        options = PlayOptions(initial={"sobol": 2} if fits else {})
        list(Play(task, "test", algorithm, "ckb-ts", [0], 4, options))
        assert algorithm.fits is fits


def test_memory_is_estimated_of_the_models_that_are_played():
    suite = load(
        {
            "suite": "s", "horizon": 400, "seeds": 1,
            "problems": ["rkhs-1d", {"gramacy": {"grid": 10}}],
            "algorithms": ["ckb-ucb", {"ckb-ucb": {"kernel": "given"}}],
        }
    )  # fmt: skip
    bytes_of = {
        pair.title: memory_of(pair, suite.problems[pair.problem.title], 400)
        for pair in suite.grid.pairs
    }
    assert bytes_of["rkhs-1d/ckb-ucb"] == bytes_of["rkhs-1d/ckb-ucb[kernel=given]"]
    fitted, given = (
        bytes_of[f"gramacy[grid=10]/{m}"] for m in ("ckb-ucb", "ckb-ucb[kernel=given]")
    )
    assert fitted > 2 * given


def test_cells_and_tables_say_whose_models_were_fitted(tmp_path, capsys):
    run = swept(
        tmp_path,
        "suite: s\nhorizon: 5\nseeds: 2\nproblems: [rkhs-1d, {gramacy: {grid: 5}}]\n"
        "algorithms: [cei, ckb-ucb, {epbo: {kernel: given}}, random]\n",
    )
    cells = cbobench.load_cells(run).groupby(["problem", "algorithm"])["fitted"].agg(list)
    assert cells["rkhs-1d", "cei"] == [False, False]
    assert cells["gramacy[grid=5]", "ckb-ucb"] == [True, True]
    assert cells["gramacy[grid=5]", "epbo[kernel=given]"] == [False, False]
    assert cells["gramacy[grid=5]", "random"] == [None, None]
    assert main(["show", str(run)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    fitted = "kernels fitted to the observations, which no theorem covers: cei, ckb-ucb "
    assert f"{fitted}(gramacy[grid=5])." in shown
    assert main(["verify", str(run), "--replay", "4", "--seed", "1"]) == 0
