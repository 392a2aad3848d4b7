"""The initial design of a suite: every method plays it, learns from it, and is another cell for it."""

from __future__ import annotations

import numpy as np
import pytest

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.gp.box import design
from cbobench.play.play import Play
from cbobench.report.load import Run
from cbobench.rng import generator
from cbobench.suite.load import load
from tests.helpers import actions, learners, make, problem, swept

BOX = problem("feasible-pocket")
GRID = problem("rkhs", d=2, n=36)


def played(task, name, rounds=8, seeds=(0, 1, 2), initial=5, key="test"):
    play = Play(task, key, make(name), name, list(seeds), rounds, (), {"sobol": initial} if initial else None)
    return play, actions(list(play))


@pytest.mark.parametrize("name", learners())
def test_every_method_plays_the_design_and_then_goes_on_alike_in_any_block(name):
    for task in (BOX, GRID):
        if not ALGORITHMS.get(name).needs <= task.offers():
            continue
        expected = design(task.actions, "sobol", 5, [generator("initial design", "test", s) for s in range(3)])
        _, whole = played(task, name)
        assert np.array_equal(whole[:5], expected)
        _, alone = played(task, name, seeds=[2])
        assert np.array_equal(whole[:, 2:], alone)


def test_models_learn_from_it_as_from_rounds_of_their_own():
    play, chosen = played(BOX, "ckb-ucb", rounds=8)
    posterior = play.algorithm.posterior
    expected = play.algorithm.cheapest(2)
    expected.reset(posterior.lam)
    again = Play(BOX, "test", make("ckb-ucb"), "ckb-ucb", [0, 1, 2], 8)
    for t, action in enumerate(chosen, start=1):
        told = again.channel.at(t, action)
        expected.update(BOX.box.unit(action), np.concatenate([told.f[:, None], told.g], axis=1))
    np.testing.assert_allclose(posterior.mean, expected.mean, atol=1e-10)


def test_dual_variables_rest_while_the_design_is_played():
    play = Play(GRID, "test", make("ckb-ucb"), "ckb-ucb", [0, 1], 6, (), {"sobol": 5})
    duals = np.concatenate([chunk.duals for chunk in play])
    assert not duals[:5].any()


@pytest.mark.parametrize(
    ("name", "given", "begun"),
    [
        ("ckb-restart", {"restart": 4}, 9),
        ("penalty-noisy", {"S": 4, "keep": False}, 9),
        ("ckb-ucb", {"anytime": True}, 8),
    ],
)
def test_epochs_and_restarts_are_counted_from_round_one(name, given, begun):
    """Also those that fall into the design: what is known in the end is of the rounds since the last one."""
    play = Play(GRID, "test", make(name, **given), name, [0, 1], 11, (), {"sobol": 10})
    chosen = actions(list(play))
    algorithm = play.algorithm
    expected = algorithm.cheapest(2)
    expected.reset(algorithm.lam_for(8 if given.get("anytime") else 11))
    again = Play(GRID, "test", make(name), name, [0, 1], 11)
    for t, action in enumerate(chosen, start=1):
        told = again.channel.at(t, action)
        if t >= begun:
            expected.update(action, np.concatenate([told.f[:, None], told.g], axis=1))
    np.testing.assert_allclose(algorithm.posterior.mean, expected.mean, atol=1e-10)
    if name == "ckb-ucb":
        step = algorithm.bound_g[:, :, 0] * np.sqrt(8) / algorithm.cap
        np.testing.assert_allclose(algorithm.inverse_step, step)


@pytest.mark.parametrize(
    ("initial", "points", "told"),
    [(5, 1, range(6, 9)), (0, 3, range(1, 7)), (5, 3, [6])],
)
def test_a_price_moves_by_the_mean_of_the_costs_that_were_told_of_rounds_of_its_own(initial, points, told):
    design_of, under_way = ({"sobol": initial} if initial else None), {"points": points, "as": "asynchronous"}
    algorithm = make("penalty-noisy", S=8, mu=0.5)
    play = Play(GRID, "test", algorithm, "penalty-noisy", [0, 1], 9, (), design_of, under_way if points > 1 else None)
    chunks = list(play)
    g, duals = (np.concatenate([getattr(chunk, what) for chunk in chunks]) for what in ("observed_g", "duals"))
    assert not duals[:8].any()
    costs = g[[t - 1 for t in told]]
    expected = 0.5 * np.maximum(costs.mean(axis=0), 0) if len(costs) else np.zeros_like(g[0])
    np.testing.assert_allclose(duals[8], expected, rtol=1e-12)


def test_a_dual_of_observed_costs_hears_nothing_of_a_design_that_is_told_late():
    algorithm = make("primal-dual-bo", form="observed", eps=0.0)
    given = {"points": 4, "as": "asynchronous"}
    chunks = list(Play(GRID, "test", algorithm, "primal-dual-bo", [0, 1, 2], 8, (), {"sobol": 5}, given))
    assert not chunks[0].duals.any(), "rounds up to 5 are told after round 8, and all are the design's"


def test_a_method_that_samples_paths_learns_at_the_very_points_of_the_design():
    play, chosen = played(BOX, "ckb-ts", rounds=6)
    points = play.algorithm.grid_points
    for x in chosen[:5].reshape(-1, BOX.actions.d):
        assert (points == x).all(axis=1).any()


def test_designs_spread_over_the_box_and_hold_no_action_twice():
    some = design(BOX.actions, "sobol", 16, [generator("a", s) for s in range(20)])
    units = BOX.actions.unit(some)
    for quarter in (units < 0.5, units >= 0.5):  # per axis half of 16 points; random ones have 2 to 14
        assert (np.abs(quarter.sum(axis=0) - 8) <= 2).all()
    assert len(np.unique(some[:, 0], axis=0)) == 16
    for name in ("sobol", "random"):
        index = design(GRID.actions, name, 36, [generator("a", 1)])
        assert sorted(index[:, 0]) == list(range(36))


@pytest.mark.parametrize(("task", "count", "seeds"), [(BOX, 5, 1_000), (GRID, 5, 500)], ids=["box", "finite"])
def test_designs_of_different_seeds_are_independent(task, count, seeds):
    """All are different (few actions: nearly all), and two share a point about as often as two random ones do."""
    some = design(task.actions, "sobol", count, [generator("initial design", "test", s) for s in range(seeds)])
    if task is BOX:
        some = (some * np.array([1.0, np.pi])).sum(axis=2)  # a number per point
    each = np.sort(some, axis=0)
    assert len(np.unique(each, axis=1).T) >= (seeds if task is BOX else 0.95 * seeds)
    n = task.actions.size if task is BOX else task.actions.n
    shared = np.mean([len(np.intersect1d(each[:, s], each[:, s + 1])) for s in range(0, 500, 2)])
    assert shared == pytest.approx(count * count / n, abs=5 * count / np.sqrt(n * 250))


SUITE = """\
suite: s
horizon: 12
seeds: 2
initial: {sobol: 4}
problems:
  - gardner-1
algorithms:
  - cei
  - random
  - oracle
"""


def test_it_is_part_of_a_cell_and_recorded(tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    suite = load(tmp_path / "suite.yaml")
    (tmp_path / "without.yaml").write_text(SUITE.replace("initial: {sobol: 4}\n", ""))
    without = load(tmp_path / "without.yaml")
    same = [a.id == b.id for a, b in zip(suite.grid.cells, without.grid.cells, strict=True)]
    assert same == [False] * 4 + [True] * 2  # a yardstick plays no design
    rounds = cbobench.load_rounds(swept(tmp_path, SUITE))
    first = rounds[rounds["t"] <= 4].pivot_table(index=["seed", "t"], columns="algorithm", values="regret")
    np.testing.assert_array_equal(first["cei"], first["random"])
    values = Run(tmp_path / "run").record.variants("algorithms")["cei"].values
    assert values["initial design"] == {"sobol": 4}
