"""The initial design of a suite: every method plays it, learns from it, and is another cell for
it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from inspect import signature

import numpy as np
import pytest
from scipy.stats import qmc

import cbobench
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CellFailure
from cbobench.gp.box_actions import design
from cbobench.play.play import Play, PlayOptions
from cbobench.report.load import Run
from cbobench.rng import generator
from tests.check.test_check import SIBLINGS
from tests.helpers import LEARNERS, actions, entry, load, make, problem, swept

BOX = partial(problem, "feasible-pocket")
GRID = partial(problem, "rkhs", d=2, n=36)


def played(task, name, rounds=8, seeds=(0, 1, 2), initial=5, key="test"):
    options = PlayOptions(initial={"sobol": initial} if initial else None)
    play = Play(task, key, make(name), name, list(seeds), rounds, options)
    return play, actions(list(play))


@pytest.mark.parametrize("name", [entry(name, long=name in SIBLINGS) for name in LEARNERS])
def test_every_method_plays_the_design_and_then_goes_on_alike_in_any_block(name):
    for task in (BOX(), GRID()):
        if not ALGORITHMS.get(name).needs <= task.offers():
            continue
        expected = design(
            task.actions, "sobol", 5, [generator("initial design", "test", s) for s in range(2)]
        )
        _, together = played(task, name, rounds=7, seeds=(0, 1))
        assert np.array_equal(together[:5], expected)
        _, alone = played(task, name, rounds=7, seeds=[1])
        assert np.array_equal(together[:, 1:], alone)


def test_dual_variables_rest_while_the_design_is_played():
    play = Play(
        GRID(), "test", make("ckb-ucb"), "ckb-ucb", [0, 1], 6, PlayOptions(initial={"sobol": 5})
    )
    duals = np.concatenate([chunk.duals for chunk in play])
    assert not duals[:5].any()


@pytest.mark.parametrize(
    ("name", "settings", "begun"),
    [
        ("ckb-restart", {"restart": 4}, 9),
        ("penalty-noisy", {"S": 4, "keep": False}, 9),
        ("ckb-ucb", {"anytime": True}, 8),
        ("ckb-ucb", {}, 1),
    ],
)
def test_epochs_and_restarts_are_counted_from_round_one(name, settings, begun):
    """Also those in the design, from which models learn: what is known in the end is of the rounds
    since then.
    """
    play = Play(
        GRID(), "test", make(name, **settings), name, [0, 1], 11, PlayOptions(initial={"sobol": 10})
    )
    chosen = actions(list(play))
    algorithm = play.algorithm
    expected = algorithm.cheapest(2)
    expected.reset(algorithm.lam_for(8 if settings.get("anytime") else 11))
    second_play = Play(GRID(), "test", make(name), name, [0, 1], 11)
    for t, action in enumerate(chosen, start=1):
        feedback = second_play.channel.at(t, action)
        if t >= begun:
            expected.update(action, feedback.values)
    np.testing.assert_allclose(algorithm.posterior.mean, expected.mean, atol=1e-10)
    if "anytime" in settings:
        step = algorithm.bound_g[:, :, 0] * np.sqrt(8) / algorithm.cap
        np.testing.assert_allclose(algorithm.inverse_step, step)


@pytest.mark.parametrize(
    ("initial", "points", "told_rounds"),
    [(5, 1, range(6, 9)), (0, 3, range(1, 7)), (5, 3, [6])],
)
def test_a_price_moves_by_the_mean_of_the_costs_that_were_told_of_rounds_of_its_own(
    initial, points, told_rounds
):
    design_of, under_way = (
        ({"sobol": initial} if initial else None),
        {"points": points, "as": "asynchronous"},
    )
    algorithm = make("penalty-noisy", S=8, mu=0.5)
    options = PlayOptions(initial=design_of, parallel=under_way if points > 1 else None)
    play = Play(GRID(), "test", algorithm, "penalty-noisy", [0, 1], 9, options)
    chunks = list(play)
    g, duals = (
        np.concatenate([getattr(chunk, column) for chunk in chunks])
        for column in ("observed_g", "duals")
    )
    assert not duals[:8].any()
    costs = g[[t - 1 for t in told_rounds]]
    expected = 0.5 * np.maximum(costs.mean(axis=0), 0) if len(costs) else np.zeros_like(g[0])
    np.testing.assert_allclose(duals[8], expected, rtol=1e-12)


def test_a_dual_of_observed_costs_hears_nothing_of_a_design_that_is_told_late():
    algorithm = make("primal-dual-bo", form="observed", eps=0.0)
    parallel = {"points": 4, "as": "asynchronous"}
    options = PlayOptions(initial={"sobol": 5}, parallel=parallel)
    chunks = list(Play(GRID(), "test", algorithm, "primal-dual-bo", [0, 1, 2], 8, options))
    assert not chunks[0].duals.any(), (
        "rounds up to 5 are told after round 8, and all are the design's"
    )


ASYNCHRONOUS = {"points": 3, "as": "asynchronous"}
ROUGH = partial(problem, "hartmann-4", candidates=64)


@pytest.mark.parametrize(
    ("task", "settings", "parallel"),
    [
        (BOX, {}, None),
        (ROUGH, {"lam": 0.1}, None),
        (ROUGH, {"lam": 0.1, "pending": "variance"}, ASYNCHRONOUS),
        (partial(problem, "feasible-pocket-delayed", delay=2.0, candidates=64), {"lam": 0.1}, None),
    ],
    ids=["smooth", "rough", "pending", "delayed"],
)
def test_a_method_that_samples_paths_learns_at_the_very_points_of_the_design(
    task, settings, parallel
):
    """Its model, of candidates and the design, is a direct solve; the design's points may be played
    again.
    """
    task, algorithm = task(), make("ckb-ts", kernel="given", **settings)
    play = Play(
        task,
        "test",
        algorithm,
        "ckb-ts",
        [0, 1, 2],
        9,
        PlayOptions(initial={"sobol": 5}, parallel=parallel),
    )
    (chunk,) = list(play)
    assert np.array_equal(chunk.actions[:5], design(task.actions, "sobol", 5, streams(3)))
    model, box, kernel = algorithm.posterior, task.box, task.box.kernel
    told_count = 7 if parallel else 9
    for s in range(3):
        points = np.concatenate([algorithm.grid_points, chunk.actions[:5, s]])
        at, x = box.unit(points), box.unit(chunk.actions[:, s])
        every, first = kernel(x, x) + model.lam * np.eye(9), slice(0, told_count)
        if task.delay is None:
            mean = kernel(at, x[first]) @ np.linalg.solve(
                every[first, first], chunk.observed_f[first, s]
            )
            np.testing.assert_allclose(model.mean[s, 0], mean, atol=1e-6)
            variance = 1 - (kernel(at, x) * np.linalg.solve(every, kernel(x, at)).T).sum(axis=1)
            np.testing.assert_allclose(model.variance[s], variance, atol=1e-6)
        for point in chunk.actions[5:, s]:
            assert (points == point).all(axis=1).any()
    assert not (algorithm.grid_points[:, None] == chunk.actions[:5, 0]).all(axis=2).any(), (
        "negative control"
    )


def test_a_sampled_path_has_the_covariance_of_the_model_at_the_design_too():
    algorithm = make("ckb-ts", kernel="given", lam=0.1)
    list(Play(ROUGH(), "test", algorithm, "ckb-ts", [0, 1], 7, PlayOptions(initial={"sobol": 5})))
    model = algorithm.posterior
    roots = model.paths(np.tile(np.eye(model.rank), (2, 1, 1)))  # (S, r + c, n + c)
    assert roots.shape == (2, model.rank, 64 + 5)
    np.testing.assert_allclose((roots**2).sum(axis=1), model.variance, atol=1e-9)


def test_values_that_arrive_late_enter_at_the_points_of_the_design():
    """`reveal` after plays with zeros for values is `update` with the values."""
    algorithms = [make("ckb-ts", kernel="given", lam=0.1) for _ in range(2)]
    for algorithm in algorithms:
        list(
            Play(ROUGH(), "test", algorithm, "ckb-ts", [0, 1], 6, PlayOptions(initial={"sobol": 5}))
        )
    prompt, later = (algorithm.posterior for algorithm in algorithms)
    values = np.array([[1.0, -2.0], [3.0, 0.5]])
    for action in (3, 64 + 2):
        prompt.reset(0.1)
        later.reset(0.1)
        prompt.update(np.full(2, action), values)
        later.update(np.full(2, action), np.zeros((2, 2)))
        for s, function in np.ndindex(2, 2):
            later.reveal(s, 1, action, function, values[s, function])
        np.testing.assert_allclose(later.mean, prompt.mean, atol=1e-9)
        assert np.ptp(prompt.mean[0, 0]) > 0.1


@pytest.mark.parametrize("seeds", [[0, 1], [1]])
def test_fitted_models_that_sample_paths_know_the_design(seeds):
    """Those of `ckb-ts` believe at the design's actions what they do at what was observed there."""
    algorithm = make("ckb-ts", kernel="fit")
    task = problem("feasible-pocket", candidates=32)
    (chunk,) = list(
        Play(task, "test", algorithm, "ckb-ts", seeds, 7, PlayOptions(initial={"sobol": 5}))
    )
    low, high = algorithm.grid_points.min(axis=0), algorithm.grid_points.max(axis=0)
    np.testing.assert_allclose(
        algorithm.posterior.points.swapaxes(0, 1), (chunk.actions - low) / (high - low)
    )
    mean, variance, _ = algorithm.posterior.at_observations()
    np.testing.assert_allclose(algorithm.posterior.mean[..., 32:], mean[..., :5], atol=1e-6)
    np.testing.assert_allclose(algorithm.posterior.variance[..., 32:], variance[..., :5], atol=1e-6)


def test_a_design_that_the_setting_does_not_name_is_refused():
    play = Play(
        BOX(), "test", make("ckb-ts"), "ckb-ts", [0, 1], 7, PlayOptions(initial={"sobol": 5})
    )
    play.setting = replace(play.setting, design=None)
    with pytest.raises(
        CellFailure, match="the points of round 1 are not those of the setting's design"
    ):
        list(play)


def streams(count):
    return [generator("initial design", "test", s) for s in range(count)]


@pytest.mark.parametrize("count", [1, 5, 16, 100])
@pytest.mark.parametrize("name", ["gardner-1", "ackley-50"])
def test_a_design_on_a_box_is_scipys_sobol_sequence(name, count):
    """Scrambled by the seed's own stream, and nothing but scaled to the box."""
    task = problem(name)
    newer = "rng" in signature(qmc.Sobol).parameters
    points = design(task.actions, "sobol", count, streams(3))
    low, high = np.array(task.low), np.array(task.high)
    for s, stream in enumerate(streams(3)):
        sequence = qmc.Sobol(
            task.box.d, scramble=True, **{"rng" if newer else "seed": stream}
        ).random_base2(7)
        np.testing.assert_allclose(
            points[:, s], low + (high - low) * sequence[:count], rtol=0, atol=1e-12
        )
    scattered = task.box.scale(task.box.scattered)
    assert not any((scattered == x).all(axis=1).any() for x in points.reshape(-1, task.box.d)), (
        "no shared candidate"
    )


def test_designs_hold_no_action_twice():
    for name in ("sobol", "random"):
        index = design(GRID().actions, name, 36, [generator("a", 1)])
        assert sorted(index[:, 0]) == list(range(36))
        again = design(GRID().actions, name, 72, [generator("a", 1)])
        assert sorted(again[:, 0]) == sorted([*range(36), *range(36)])
        assert sorted(again[:36, 0]) == list(range(36))
    assert len(design(replace(BOX().actions, size=16), "sobol", 40, [generator("a", 1)])) == 40, (
        "more than candidates"
    )


def test_designs_of_different_seeds_are_independent():
    """Nearly all are different, and two share an action as random ones do. On a box they are those
    of SciPy, as above.
    """
    count, actions_set = 5, GRID().actions
    sorted_points = np.sort(design(actions_set, "sobol", count, streams(500)), axis=0)
    assert len(np.unique(sorted_points, axis=1).T) >= 475
    n = actions_set.n
    shared = np.mean(
        [
            len(np.intersect1d(sorted_points[:, s], sorted_points[:, s + 1]))
            for s in range(0, 500, 2)
        ]
    )
    assert shared == pytest.approx(count * count / n, abs=5 * count / np.sqrt(n * 250))


SUITE = """\
suite: s
horizon: 12
seeds: 2
initial: {sobol: 4}
problems:
  - gardner-1
algorithms:
  - ckb-ucb
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
    first = rounds[rounds["t"] <= 4].pivot_table(
        index=["seed", "t"], columns="algorithm", values="regret"
    )
    np.testing.assert_array_equal(first["ckb-ucb"], first["random"])
    values = Run(tmp_path / "run").record.variants("algorithms")["ckb-ucb"].values
    assert values["initial design"] == {"sobol": 4}
