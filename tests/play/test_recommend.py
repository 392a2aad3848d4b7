"""What is recommended after a round: incumbents by what was observed, models against brute force
and dense search.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.asktell import AskTell
from cbobench.algorithms.base import Algorithm
from cbobench.errors import CellFailure
from cbobench.gp.recommend import LIKELY, PROBABILITY, likely_best
from cbobench.play.play import CHUNK, Play, PlayOptions
from cbobench.play.recommendations import Incumbents
from tests.helpers import LEARNERS, entry, long, long_cases, make, make_arrivals, play, problem


def test_the_quantile():
    assert pytest.approx(norm.ppf(PROBABILITY), abs=1e-15) == LIKELY


def incumbent_by_hand(actions, f, g):
    """Of one replicate after every round: the first best observed one that was seen feasible, else
    the least wrong.
    """
    incumbents = []
    for t in range(len(f)):
        feasible = [i for i in range(t + 1) if (g[i] <= 0).all()]
        if feasible:
            best = max(feasible, key=lambda i: (f[i], -i))
        else:
            best = min(range(t + 1), key=lambda i: (np.maximum(g[i], 0).sum(), i))
        incumbents.append(actions[best])
    return np.array(incumbents)


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("cut", [60, 7, 1])
def test_incumbents_are_their_definition(points, cut):
    rng = np.random.default_rng(0)
    T, S, m = 60, 4, 2
    actions = rng.random((T, S, 3)) if points else rng.integers(0, 9, (T, S))
    f = rng.integers(0, 5, (T, S)).astype(float)
    g = rng.integers(-3, 6, (T, S, m)) + np.linspace(4, -1, T)[:, None, None]
    g[:, 3] += 20  # never feasible
    incumbents = Incumbents(S, 1 + m, np.full(3, np.nan) if points else np.array(-1))
    parts = [slice(i, i + cut) for i in range(0, T, cut)]
    got = [incumbents.after(actions[p], f[p], g[p], [None] * cut) for p in parts]
    for s in range(S):
        np.testing.assert_array_equal(
            np.concatenate(got)[:, s], incumbent_by_hand(actions[:, s], f[:, s], g[:, s])
        )


def test_with_delays_an_action_counts_once_all_of_it_is_told():
    arrivals = [
        make_arrivals([]),
        make_arrivals([(0, 1, 0, 5.0)]),  # f of round 1, g not yet
        make_arrivals([(0, 2, 0, 1.0), (0, 2, 1, 0.3)]),  # round 2 is told, and infeasible
        make_arrivals([(0, 3, 1, -1.0)]),
        make_arrivals(
            [(0, 1, 1, 0.1), (0, 3, 0, -2.0)]
        ),  # round 1 is less infeasible; round 3 is feasible
        make_arrivals([(0, 4, 0, -3.0), (0, 4, 1, -1.0)]),  # feasible too, and worse
    ]
    actions = np.array([[10], [20], [30], [40], [50], [60]])
    unknown = np.full((6, 1), np.nan)
    for cut in (6, 2, 1):
        incumbents = Incumbents(1, 2, np.array(-1))
        parts = [slice(i, i + cut) for i in range(0, 6, cut)]
        got = [
            incumbents.after(actions[p], unknown[p], unknown[p][..., None], arrivals[p])
            for p in parts
        ]
        assert np.concatenate(got)[:, 0].tolist() == [-1, -1, 20, 20, 30, 30]


def test_the_rule_by_brute_force():
    rng = np.random.default_rng(1)
    for m, is_separate in [(1, False), (1, True), (3, False), (3, True)]:
        f, mean = rng.standard_normal((50, 12)), rng.standard_normal((50, m, 12)) - 1
        deviation = rng.random((50, m if is_separate else 1, 12))
        sure = rng.random((50, 12)) < 0.05
        for surely_feasible in (None, sure):
            got = likely_best((f, mean, deviation**2), surely_feasible)
            for s in range(50):
                probability = norm.cdf(-mean[s] / deviation[s])  # of every constraint
                allowed = (probability >= 0.95).all(axis=0) | (
                    False if surely_feasible is None else sure[s]
                )
                if allowed.any():
                    expected = max(np.flatnonzero(allowed), key=lambda i: f[s, i])
                else:
                    expected = probability.min(axis=0).argmax()
                assert got[s] == expected


# Methods without a model of f and every g_j over all actions.
BY_INCUMBENT = {
    "igp-ucb",
    "gp-ts",
    "scgp-ucb",
    "penalty-noiseless",
    "bandit-oco",
    "random",
}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        # Of nei and BoTorch's methods the kernel is always fitted; here it is the problem's.
        *(
            entry(name, {}, long=name in ("cobyla", "cobyqa", "nomad", "smt-optim"))
            for name in LEARNERS
            if name != "nei" and not name.startswith("botorch-")
        ),
        ("fixed-penalty", {"form": "exponential"}),
    ],
)
def test_every_method_recommends_by_the_one_rule(name, settings):
    """A model of f and g, here one fitted afresh to what was observed, by the 0.95 rule; all others
    their incumbent.
    """
    is_shown = "full information of the constraints" in ALGORITHMS.get(name).needs
    task = problem("rkhs", n=30, m=2, noise=0.05, full_information=is_shown)
    model_settings = {
        "lam": 0.1,
        "scaled": False,
        "beta_scale": 0.1,
        "restart": 100,
        "window": 100,
        "variation": "none",
    }
    own_settings = {
        key: value
        for key, value in model_settings.items()
        if key in {parameter.name for parameter in params.params_of(ALGORITHMS.get(name))}
    }
    algorithm = make(name, **own_settings, **settings)
    cells, (chunk,) = play(task, algorithm, seeds=3, horizon=25)
    answer, K = algorithm.recommend(25), task.actions.covariance
    observed = np.concatenate([chunk.observed_f[..., None], chunk.observed_g], axis=2)
    expected = []
    by_incumbent = name in BY_INCUMBENT or isinstance(algorithm, AskTell) or "form" in settings
    for s in range(3):
        chosen = chunk.actions[:, s]
        if by_incumbent:
            expected.append(incumbent_by_hand(chosen, observed[:, s, 0], observed[:, s, 1:])[-1])
            continue
        solved = np.linalg.solve(K[np.ix_(chosen, chosen)] + 0.1 * np.eye(25), K[chosen])
        mean, variance = observed[:, s].T @ solved, K.diagonal() - (K[chosen] * solved).sum(axis=0)
        allowed = (mean[1:] + 1.6448536 * np.sqrt(variance) <= 0).all(axis=0)
        if "a safe seed set" in algorithm.needs:
            allowed |= cells.setting.seed_set[s]
        if allowed.any():
            expected.append(np.where(allowed, mean[0], -np.inf).argmax())
        else:
            expected.append((mean[1:] / np.sqrt(variance)).max(axis=0).argmin())
    if by_incumbent:
        assert answer is None
    else:
        np.testing.assert_array_equal(answer, expected)
    values = cells.instances.values(25, np.array(expected)[None])[0]
    f_star = cells.instances.values(25, cells.instances.best(25)[None])[0, :, 0]
    feasible, metrics = (values[:, 1:] <= 0).all(axis=1), chunk.metrics.values
    violation = np.maximum(values[:, 1:], 0).sum(axis=1)
    np.testing.assert_allclose(metrics["recommended_violation"][-1], violation, atol=1e-9)
    regret = np.where(feasible, f_star - values[:, 0], np.nan)
    np.testing.assert_allclose(metrics["recommended_regret"][-1], regret, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "task", "settings"),
    [
        ("ckb-ucb", "feasible-pocket", {}),
        *long_cases(
            ("cei", "gardner-1", {}),
            ("config", "gramacy", {}),
            ("rpol-ucb", "gramacy", {"kernel": "matern52", "candidates": 256}),
            ("ckb-ucb", "feasible-pocket-delayed", {"delay": 3.0}),
        ),
    ],
)
@pytest.mark.slow
def test_a_model_on_a_box_against_a_dense_search(name, task, settings):
    """No point of a fine grid with the stated probability has a posterior mean that is better by
    much.
    """
    algorithm = make(name, kernel="fit" if name == "cei" else "given")
    prepared = problem(task, **settings)
    cells, _ = play(prepared, algorithm, seeds=3, horizon=30)
    box = prepared.box
    axis = np.linspace(0, 1, 161)
    dense = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    units = np.concatenate(
        [box.unit(algorithm.recommend(30))[:, None], dense[None].repeat(3, axis=0)], axis=1
    )
    value, mean, variance = algorithm.goal(*algorithm.posterior.at(units))
    upper = (mean + LIKELY * np.sqrt(variance)).max(axis=1, initial=-np.inf)
    judged = 0
    for s in range(3):
        allowed = upper[s] <= 0
        assert allowed[0] == allowed.any(), (
            "it finds a point with the stated probability where there is one"
        )
        if allowed[0]:
            judged += 1
            spread = np.ptp(value[s])
            assert value[s, 0] >= value[s, 1:][allowed[1:]].max() - 0.005 * spread
        else:
            odds = (mean[s] / np.sqrt(variance[s])).max(axis=0)
            assert odds[0] <= odds[1:].min() + 0.02
    assert judged or task != "gardner-1"
    assert ((units[:, 0] >= 0) & (units[:, 0] <= 1)).all()


@pytest.mark.parametrize(
    ("name", "task"),
    [
        *product(["ckb-ts", "cei", "admmbo", "bandit-oco", "oracle"], ["rkhs-1d"]),
        *product(["admmbo", "bandit-oco"], ["feasible-pocket"]),
        *long_cases(("ckb-ts", "feasible-pocket"), ("cei", "feasible-pocket")),
    ],
)
@pytest.mark.slow
def test_to_be_asked_changes_nothing_and_when_does_not_matter(name, task):
    prepared = problem(task)
    horizon = 9
    all_rounds = play(prepared, make(name), seeds=2, horizon=horizon, asked=range(1, horizon))[1][0]
    asked_twice = play(prepared, make(name), seeds=2, horizon=horizon, asked=[4, 7])[1][0]
    last = play(prepared, make(name), seeds=2, horizon=horizon)[1][0]
    for chunk in (asked_twice, last):
        np.testing.assert_array_equal(chunk.actions, all_rounds.actions)
        np.testing.assert_array_equal(chunk.observed_f, all_rounds.observed_f)
    for metric in ("recommended_regret", "recommended_violation"):
        every = all_rounds.metrics.values[metric]
        for chunk, rounds in ((asked_twice, [4, 7, horizon]), (last, [horizon])):
            values = chunk.metrics.values[metric]
            asked_rows = np.array(rounds) - 1
            np.testing.assert_array_equal(values[asked_rows], every[asked_rows])
            assert np.isnan(np.delete(values, asked_rows, axis=0)).all()


def test_the_border_of_a_chunk_changes_nothing(monkeypatch):
    task = problem("rkhs-1d", delay=4.0)
    for name in ("random", "ckb-ucb"):
        one_chunk = play(task, make(name), seeds=2, horizon=40, asked=range(1, 40))[1]
        assert len(one_chunk) == 1 < CHUNK
        monkeypatch.setattr("cbobench.play.play.CHUNK", 7)
        parts = play(task, make(name), seeds=2, horizon=40, asked=range(1, 40))[1]
        monkeypatch.undo()
        for metric, values in one_chunk[0].metrics.values.items():
            np.testing.assert_array_equal(
                values, np.concatenate([p.metrics.values[metric] for p in parts]), metric
            )


def test_before_anything_is_told_nothing_is_recommended():
    """Also by methods whose models count what was played."""
    task = problem("feasible-pocket-delayed", delay=30.0, candidates=64)
    for name, settings in (
        ("ckb-ucb", {}),
        ("random", {}),
        ("rpol-censored", {}),
        ("ckb-ucb", {"pending": "variance"}),
    ):
        values = play(task, make(name, **settings), seeds=2, horizon=3, asked=[1, 2])[1][
            0
        ].metrics.values
        assert np.isnan(values["recommended_violation"]).all()
    oracle = play(task, make("oracle"), seeds=2, horizon=5, asked=range(1, 5))[1][0].metrics.values
    assert not oracle["recommended_violation"].any()
    np.testing.assert_allclose(oracle["recommended_regret"], 0, atol=1e-9)


ASYNCHRONOUS, BATCH = ({"points": 3, "as": way} for way in ("asynchronous", "batch"))
GRID = {"name": "rkhs", "n": 25, "noise": 0.1}
BOX = {"name": "feasible-pocket", "candidates": 64}


@pytest.mark.parametrize(
    ("task", "name", "settings", "none"),
    [
        (GRID, "ckb-ucb", {"pending": "variance"}, {1, 2}),
        (GRID, "ckb-ucb", {"pending": "ignore"}, {1, 2}),
        (BOX, "ckb-ucb", {"pending": "variance"}, {1, 2}),
        (BOX, "ckb-ts", {"pending": "variance"}, {1, 2}),
        (BOX, "cei", {"pending": "variance"}, {1, 2}),
        (GRID, "rpol-censored", {}, {1, 2}),
        (GRID, "ckb-restart", {"restart": 4, "pending": "variance"}, {1, 2, 5, 6}),
        (GRID, "ckb-restart", {"restart": 4, "pending": "variance", "anytime": True}, {1, 2, 5, 6}),
        (GRID, "ckb-ucb", {"anytime": True, "pending": "variance"}, {1, 2}),
        (GRID, "ckb-ucb", {"anytime": True}, {1, 2}),
        (GRID, "penalty-noisy", {"S": 4, "keep": False, "pending": "variance"}, {1, 2}),
    ],
)
@pytest.mark.parametrize("parallel", [ASYNCHRONOUS, *long(BATCH)])
def test_pending_points_are_no_data(task, name, settings, none, parallel):
    """Nothing is recommended before the first feedback, nor right after data that are stale were
    thrown away.
    """
    (chunk,) = play(
        problem(**task), make(name, **settings), 2, 8, asked=range(1, 8), parallel=parallel
    )[1]
    unknown = np.isnan(chunk.metrics.values["recommended_violation"])
    if parallel is BATCH and 5 in none:
        none = {1, 2, 5}  # the batch of rounds 4 to 6 is told after round 6
    assert [set(np.flatnonzero(column) + 1) for column in unknown.T] == [none] * 2


@pytest.mark.parametrize(
    ("name", "settings", "lam"),
    [
        ("ckb-ucb", {"anytime": True}, 1.0),
        ("ckb-ts", {"anytime": True}, 1.0),
        ("ckb-ucb", {"anytime": True, "pending": "variance"}, 1.0),
        ("penalty-noisy", {"S": 5, "keep": False}, 1 + 2 / 16),
    ],
)
@pytest.mark.parametrize(
    ("problem_settings", "parallel", "told_count"),
    [({}, None, 16), ({}, ASYNCHRONOUS, 14), ({}, BATCH, 15), ({"delay": 2.0}, None, None)],
    ids=["at once", "asynchronous", "batch", "delayed"],
)
def test_who_begins_anew_recommends_by_all_data(
    name, settings, lam, problem_settings, parallel, told_count
):
    """Round 16 is the first of an epoch, of which a model knows one observation or none; the
    functions are the same.
    """
    task = problem(**GRID, **problem_settings)
    algorithm = make(name, **settings)
    if not algorithm.needs <= task.offers():
        pytest.skip("needs feedback at once")
    cells, (chunk,) = play(task, algorithm, seeds=3, horizon=16, parallel=parallel)
    K, answer = task.actions.covariance, algorithm.recommend(16)
    mean = algorithm.evidence.mean
    if told_count is not None:
        observed = np.concatenate([chunk.observed_f[..., None], chunk.observed_g], axis=2)[
            :told_count
        ]
        for s in range(3):
            chosen = chunk.actions[:told_count, s]
            expected = K[:, chosen] @ np.linalg.solve(
                K[np.ix_(chosen, chosen)] + lam * np.eye(told_count), observed[:, s]
            )
            np.testing.assert_allclose(mean[s].T, expected, atol=1e-7)
    variance = algorithm.evidence.variance
    of_g = variance[:, 1:] if variance.ndim == 3 else variance[:, None]
    assert answer.tolist() == likely_best((mean[:, 0], mean[:, 1:], of_g)).tolist()
    assert (algorithm.evidence.gain > algorithm.posterior.gain).all(), (
        "the play's model begins anew"
    )


@pytest.mark.slow
def test_where_functions_move_a_recommendation_is_judged_by_the_functions_of_its_round():
    task = problem("feasible-pocket-drift", first_change=3, second_change=6)
    cells, (chunk,) = play(task, make("oracle"), seeds=2, horizon=9, asked=range(1, 9))
    np.testing.assert_allclose(chunk.metrics.values["recommended_regret"], 0, atol=1e-8)
    assert np.isnan(chunk.metrics.values["simple_regret"]).all()
    early = play(task, make("oracle"), seeds=2, horizon=3)[1][0]
    np.testing.assert_allclose(early.metrics.values["simple_regret"], 0, atol=1e-8)


class Bad(Algorithm):
    """Plays the first action and recommends whatever it is told to."""

    name = "bad"
    answers: list

    def start(self, setting):
        self.replicates = setting.replicates

    def ask(self, t):
        return np.zeros(self.replicates, dtype=np.intp)

    def recommend(self, t):
        return self.answers[t - 1]


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (
            [np.array([0, 3]), np.array([0, 30])],
            "round 2: 30, recommended for replicate 1, is no action",
        ),
        ([np.array([0, -2]), np.array([0, 0])], "round 1: -2, recommended for replicate 1"),
        ([None, np.array([0, 0])], "recommend gave None in some rounds and actions in others"),
        (
            [np.array([0, 1, 2]), np.array([0, 1, 2])],
            r"recommended have shape \(3,\); it must be \(2,\)",
        ),
    ],
)
def test_a_wrong_answer_fails_the_cell(answers, says):
    algorithm = Bad()
    algorithm.answers = answers
    with pytest.raises(CellFailure, match=says):
        list(Play(problem("rkhs", n=30), "test", algorithm, "bad", [0, 1], 2, PlayOptions([1])))
