"""`parallel` of a suite: what is known in which round, what models make of it, and which methods
play on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import AskTell
from cbobench.algorithms.base import OneRun
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.gp.kernels import Matern
from cbobench.play.play import Play, PlayOptions
from tests.helpers import actions, load, long, make, play_here, problem

BOX = partial(problem, "feasible-pocket", candidates=64)
GRID = partial(problem, "rkhs", d=2, n=36)
ASYNCHRONOUS, BATCH = ({"points": 3, "as": way} for way in ("asynchronous", "batch"))
LATE = {
    **dict.fromkeys(["cei", "ckb-ts", "rpol-censored", "penalty-noisy", "sobol"], (BOX, {})),
    **dict.fromkeys(["ckb-ucb", "penalty-noiseless", "stageopt"], (GRID, {})),
    "scbo": (GRID, {"initial": 2}),
}


def played(task, algorithm, parallel, rounds=9, seeds=(0, 1, 2), initial=None):
    options = PlayOptions(range(1, rounds), initial=initial, parallel=parallel)
    play = Play(task, "test", algorithm, algorithm.name, list(seeds), rounds, options)
    return play, actions(list(play))


@dataclass(kw_only=True)
class Diary(OneRun):
    """Plays 0, 1, 2, ... and writes down what it is asked and told."""

    name: ClassVar[str] = "diary"
    late = True

    def start_one(self, setting):
        self.lines = [f"{setting.parallel} under way"]

    def ask_one(self, t):
        self.lines.append(f"ask {t}")
        return t - 1

    def tell_one(self, t, action, f, g):
        assert np.isfinite(f)
        self.lines.append(f"tell {t}: {action}")

    def observe_one(self, t, action, f, g):
        self.lines.append(f"observe {t}")


def test_a_run_of_its_own_is_told_of_earlier_rounds_in_order_with_their_actions():
    expected = ["ask 1", "ask 2", "ask 3", "tell 1: 0", "ask 4", "tell 2: 1", "ask 5", "tell 3: 2"]
    assert played(GRID(), Diary(), ASYNCHRONOUS, 5)[0].algorithm.runs[2].lines == [
        "3 under way",
        *expected,
    ]
    lines = played(GRID(), Diary(), BATCH, 5, initial={"sobol": 2})[0].algorithm.runs[0].lines
    assert lines == [
        "3 under way",
        "ask 3",
        "observe 1",
        "observe 2",
        "tell 3: 2",
        "ask 4",
        "ask 5",
    ]
    alone = played(GRID(), Diary(), None, 2)[0].algorithm.runs[0].lines
    assert alone == ["1 under way", "ask 1", "tell 1: 0", "ask 2", "tell 2: 1"], (
        "negative control: at once"
    )


def dense(points, values, at, kernel, lam):
    """Mean and variance at points from a direct solve."""
    inverse = np.linalg.inv(kernel(points, points) + lam * np.eye(len(points)))
    cross = kernel(at, points)
    return cross @ inverse @ values, 1 - (cross @ inverse * cross).sum(axis=1)


@pytest.mark.parametrize("name", ["ckb-ucb", "epbo", "config"])
@pytest.mark.parametrize("noise", [{}, {"noise_f": 0.0, "noise_g": 0.0}])
def test_a_model_of_observations_chooses_before_the_first_is_told(name, noise):
    task = BOX(kernel="matern52", **noise)
    for parallel in (ASYNCHRONOUS, BATCH):
        assert played(task, make(name), parallel, rounds=5)[1].shape == (5, 3, 2)
    late = BOX(kernel="matern52", delay=4.0, **noise)
    assert played(late, make(name), None, rounds=5)[1].shape == (5, 3, 2)


def observe_play(task, algorithm, parallel, rounds=8):
    """A play, and of replicate 1 the points of the cube that it played and f as observed there."""
    play = Play(
        task, "test", algorithm, algorithm.name, [0, 1, 2], rounds, PlayOptions(parallel=parallel)
    )
    chunks = list(play)
    points = task.box.unit(actions(chunks)[:, 1])
    return play, points, np.concatenate([chunk.observed_f for chunk in chunks])[:, 1]


@pytest.mark.parametrize("pending", ["ignore", "variance"])
@pytest.mark.parametrize("parallel", [ASYNCHRONOUS, BATCH])
def test_means_know_what_was_told_and_variances_what_pending_says(pending, parallel):
    """After 8 rounds with three under way 6 are known, in both ways."""
    algorithm = make("ckb-ucb", kernel="given", pending=pending)
    play, points, values = observe_play(BOX(), algorithm, parallel)
    posterior, at = play.algorithm.posterior, BOX().box.candidates
    mean, variance = dense(points[:6], values[:6], at, BOX().box.kernel, posterior.lam)
    if pending == "variance":
        variance = dense(points, np.zeros(8), at, BOX().box.kernel, posterior.lam)[1]
    np.testing.assert_allclose(posterior.mean[1, 0], mean, atol=1e-7)
    np.testing.assert_allclose(posterior.variance[1], variance, atol=1e-7)


@pytest.mark.parametrize("name", ["cei", *long("ckb-ucb")])
def test_fitted_models_know_pending_points_under_the_hyperparameters_of_what_was_told(name):
    play, points, values = observe_play(
        BOX(), make(name, kernel="fit", pending="variance"), ASYNCHRONOUS
    )
    posterior, plain = (
        play.algorithm.posterior,
        observe_play(BOX(), make(name, kernel="fit"), ASYNCHRONOUS)[0].algorithm.posterior,
    )
    at = plain.sites[0]
    for which in (posterior, plain):
        fits = (which.arrived if which is posterior else which).fits[1][0]

        def kernel(a, b, fits=fits):
            return Matern(2.5, 1.0)(a / fits.lengthscales, b / fits.lengthscales)

        if which is posterior:
            mean = (
                fits.centre + dense(points[:6], values[:6] - fits.centre, at, kernel, fits.ratio)[0]
            )
            unit = dense(points, np.zeros(8), at, kernel, fits.ratio)[1]
            np.testing.assert_allclose(posterior.mean[1, 0], mean, atol=1e-6)
            np.testing.assert_allclose(
                posterior.variance[1, 0], fits.amplitude**2 * unit, atol=1e-6
            )
            assert posterior.arrived.count == 6
            assert posterior.played.count == 8
    far = posterior.arrived.variance[1, 0].mean()
    assert posterior.variance[1, 0].mean() < far, "negative control: what is pending counts"


@pytest.mark.parametrize("name", LATE)
def test_whoever_plays_on_has_the_same_bits_in_any_block_and_plays_otherwise_than_at_once(name):
    prepare, settings = LATE[name]
    task = prepare()
    for parallel in (ASYNCHRONOUS, BATCH):
        block = played(task, make(name, **settings), parallel, initial={"sobol": 4})[1]
        alone = played(task, make(name, **settings), parallel, seeds=[2], initial={"sobol": 4})[1]
        assert np.array_equal(block[:, 2:], alone)
    at_once = played(task, make(name, **settings), None, initial={"sobol": 4})[1]
    assert np.array_equal(at_once, block) == (name == "sobol")


def test_every_method_plays_on_or_says_why_not():
    refused = set()
    for name in ALGORITHMS.names():
        if ALGORITHMS.get(name).reference:
            continue
        if "feedback at once" in ALGORITHMS.get(name).needs and not ALGORITHMS.get(name).late:
            refused.add(name)
            why = (
                ": its class does not say `late = True`"
                if issubclass(ALGORITHMS.get(name), AskTell)
                else ""
            )
            with pytest.raises(
                Misuse, match=f"it needs feedback at once, before the next round is chosen{why}; "
            ):
                make(name).check_late(BOX())
        else:
            make(name).check_late(BOX())
    assert refused == {
        "admmbo",
        "bandit-oco",
        "cma-es",
        "cobyla",
        "cobyqa",
        "egobox",
        "nei",
        "nomad",
        "pymoo-de",
        "pymoo-ga",
        "rpol-sw",
        "scgp-ucb",
        "slsqp",
        "smt-optim",
    }
    with pytest.raises(Misuse, match="kernel is fit"):
        make("rpol-censored", kernel="fit").check_late(BOX())
    with pytest.raises(Misuse, match="delays of its own"):
        make("ckb-ucb").check_late(problem("feasible-pocket-delayed"))


def test_optuna_is_asked_before_it_is_told_and_told_of_the_right_trials():
    pytest.importorskip("optuna")
    play, _ = played(BOX(), make("optuna-tpe", startup=2), ASYNCHRONOUS)
    study = play.algorithm.runs[1].run_optimiser.study
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE"] * 7 + ["RUNNING"] * 2
    options = PlayOptions(parallel=ASYNCHRONOUS)
    second_play = list(
        Play(BOX(), "test", make("optuna-tpe", startup=2), "optuna-tpe", [0, 1, 2], 9, options)
    )
    observed = np.concatenate([chunk.observed_f for chunk in second_play])
    assert [trial.value for trial in study.trials[:7]] == observed[:7, 1].tolist()


SUITE = """\
suite: s
horizon: 9
seeds: 3
initial: {{sobol: 3}}
parallel: {parallel}
problems:
  - feasible-pocket: {{candidates: 64}}
algorithms:
  - cei: {{pending: variance}}
  - ckb-ucb: {{kernel: fit, B: 1.0, G: 1.0}}
  - oracle
"""


@pytest.fixture
def suite(write_suite):
    return lambda parallel=3: write_suite(SUITE.format(parallel=parallel))


def test_it_is_part_of_a_cell_and_one_is_none(suite):
    ids = {
        str(q): [cell.id for cell in load(suite(q)).grid.cells]
        for q in (1, 2, "{points: 2, as: batch}")
    }
    path = suite()
    path.write_text(path.read_text().replace("parallel: 3\n", ""))
    assert ids["1"] == [cell.id for cell in load(path).grid.cells]
    learners, yardstick = (
        {tuple(cells[:6]) for cells in ids.values()},
        {tuple(cells[6:]) for cells in ids.values()},
    )
    assert (len(learners), len(yardstick)) == (3, 1)
    path.write_text(path.read_text().replace("{pending: variance}", "{pending: ignore}"))
    explicit_id = load(path).grid.cells[0].id
    path.write_text(path.read_text().replace("cei: {pending: ignore}", "cei"))
    assert explicit_id == load(path).grid.cells[0].id, (
        "a default of which a cell's id does not tell"
    )


def test_pending_points_count_unless_a_suite_says_otherwise(suite):
    path, pendings = suite(), {}
    text = path.read_text().replace("cei: {pending: variance}", "cei")
    for shared in ("", "shared: {pending: ignore}\n"):
        path.write_text(text + shared)
        pendings[shared] = [
            pair.algorithm.settings.get("pending") for pair in load(path).grid.pairs
        ]
    assert list(pendings.values()) == [["variance", "variance", None], ["ignore", "ignore", None]]
    path.write_text(text.replace("cei", "cei: {pending: ignore}").replace("parallel: 3\n", ""))
    assert [pair.algorithm.settings.get("pending") for pair in load(path).grid.pairs] == [
        "ignore",
        "ignore",
        None,
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "0",
            "parallel is 0; allowed: a whole number from 1 to 8",
        ),
        ("many", "parallel is 'many'; allowed: a whole number"),
        (
            "{as: batch}",
            "parallel is {'as': 'batch'}; allowed: a number, or {points: number, as: ",
        ),
        ("{points: 3, as: bulk}", "as: asynchronous or batch}"),
    ],
)
def test_wrong_input_is_a_line(suite, value, message, tmp_path, capsys):
    path = suite(value)
    path.write_text(path.read_text().replace("initial: {sobol: 3}\n", ""))
    assert main(["run", str(path), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_problem_with_delays_and_a_method_that_must_be_told_are_refused_or_skipped(
    suite, tmp_path, capsys
):
    path = suite()
    path.write_text(
        path.read_text()
        .replace("feasible-pocket", "feasible-pocket-delayed")
        .replace("initial: {sobol: 3}\n", "")
    )
    with pytest.raises(Misuse, match="it needs feedback at once"):
        load(path)
    path.write_text(path.read_text().replace("cei: {pending: variance}", "ckb-ts"))
    with pytest.raises(
        Misuse, match="the problem has delays of its own; remove `parallel`, or the delays"
    ):
        load(path)
    path = suite()
    path.write_text(path.read_text().replace("oracle", "admmbo") + "skip: unplayable\n")
    play_here(path, tmp_path / "run", seeds=1)
    assert main(["compare", str(tmp_path / "run")]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert "3 evaluations under way at once (a new one begins when the oldest ends)" in table
    left_out = (
        "admmbo on feasible-pocket[candidates=64]: it needs feedback at once, before the next round"
    )
    assert left_out in table
