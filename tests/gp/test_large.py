"""Large finite sets: features come from coordinates, and no matrix of all pairs is formed."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from cbobench.errors import CellFailure, Misuse
from cbobench.gp import actions
from cbobench.gp.actions import LARGEST, Finite, Large, Scattered
from cbobench.gp.kernels import kernel
from cbobench.problems import instances
from cbobench.problems.rkhs import functions as rkhs
from cbobench.suite.call import Call
from cbobench.threads import single_thread
from tests.helpers import make, play, play_here, prepare

POINTS = np.random.default_rng(3).random((300, 2))


def make_both_sets(name="se", lengthscale=0.3):
    """The same set with and without its matrix."""
    k = kernel(name, lengthscale)
    return Finite(k(POINTS, POINTS), POINTS, name), Large(POINTS, k, POINTS, name, None)


@pytest.mark.parametrize("name", ["se", "matern12", "matern32", "matern52", "linear"])
def test_the_prior_is_the_diagonal_to_the_last_bit(name):
    with_matrix, without = make_both_sets(name, 0.37)
    assert without.prior.tolist() == with_matrix.prior.tolist()


@pytest.mark.parametrize("name", ["se", "linear"])
def test_a_set_without_a_matrix_is_the_set_with_one(name):
    with_matrix, without = make_both_sets(name)
    indices = np.array([7, 299, 0])
    np.testing.assert_allclose(
        without.features @ without.features.T, with_matrix.covariance, rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(without.prior, with_matrix.prior, rtol=1e-15)
    np.testing.assert_allclose(without.rows(indices), with_matrix.rows(indices), rtol=1e-15)
    np.testing.assert_allclose(
        without.between(indices, indices), with_matrix.between(indices, indices), rtol=1e-15
    )
    weights = np.random.default_rng(0).uniform(-1, 1, (2, 300))
    np.testing.assert_allclose(without.combine(weights), with_matrix.combine(weights), atol=1e-10)
    rank = with_matrix.features.shape[1]
    assert without.rank_is_at_most(rank)
    assert not without.rank_is_at_most(rank - 1)


@pytest.mark.parametrize("apart", [1.0, 0.05])
@pytest.mark.parametrize("few", [30, 100])
def test_pivots_among_a_few_actions_lose_no_digits(monkeypatch, few, apart):
    points, k = POINTS.copy(), kernel("se", 0.3)
    points[:: 300 // few | 1] *= apart  # in a corner, where little tells of the others
    monkeypatch.setattr(actions, "FEW", few)
    sketched = Large(points, k, points, "se", None)
    covariance, features = k(points, points), sketched.features
    np.testing.assert_allclose(features @ features.T, covariance, rtol=0, atol=3e-12)
    assert features.shape[1] < (np.linalg.eigvalsh(covariance) > 1e-13).sum(), "no more than needed"


@pytest.mark.parametrize(("name", "lengthscale"), [("se", 0.3), ("se", 0.1), ("matern52", 0.3)])
def test_norms_of_a_large_set_are_those_of_a_factorisation_each(monkeypatch, name, lengthscale):
    with_matrix, without = make_both_sets(name, lengthscale)
    rng = np.random.default_rng(1)
    values = np.stack(
        [with_matrix.combine(rng.uniform(-1, 1, (3, 300))) * scale for scale in (1e-3, 1, 1e6)]
    )
    expected = with_matrix.norm(values)
    monkeypatch.setattr(actions, "COLUMNS", 100)
    np.testing.assert_allclose(without.norm(values), expected, rtol=1e-12)
    np.testing.assert_array_equal(
        [[without.norm(row) for row in rows] for rows in values], without.norm(values)
    )
    outside = rng.standard_normal(300)
    assert np.isinf(without.norm(outside)) == (name == "se"), "a rough kernel has features for all"
    assert without.norm(np.zeros(300)) == 0


def test_no_matrix_of_all_pairs_is_formed():
    n = LARGEST + 2000
    tracemalloc.start()
    played, _ = play(prepare("rkhs", n=n), make("ckb-ucb"), seeds=2, horizon=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert played.problem.actions.n == n
    assert np.isfinite(played.metrics.final["regret"]).all()
    assert peak < 8 * n**2 / 5, (
        "Phi alone is n x 1024 numbers at most, of which 20 columns are touched"
    )
    with pytest.raises(CellFailure, match="all pairs of actions"):
        _ = played.problem.actions.covariance


@pytest.mark.parametrize("n", [1001, 1090])
def test_products_with_a_matrix_that_is_not_formed_have_its_bits(n):
    points, k = np.random.default_rng(n).random((n, 2)), kernel("matern52", 0.3)
    scattered = Finite.at(points, k)
    assert isinstance(scattered, Scattered)
    matrix, weights = k(points, points), np.random.default_rng(0).uniform(-1, 1, (3, n))
    with single_thread():  # as in a sweep
        np.testing.assert_array_equal(
            scattered.combine(weights), np.matmul(weights[:, None], matrix)[:, 0]
        )
    np.testing.assert_array_equal(scattered.rows(np.array([5, n - 1])), matrix[[5, n - 1]])
    assert "covariance" not in vars(scattered)
    np.testing.assert_array_equal(scattered.covariance, matrix)


@pytest.mark.parametrize("ahead", [2**22, 0])
def test_draws_ahead_are_those_one_at_a_time(monkeypatch, ahead):
    monkeypatch.setattr(rkhs, "AHEAD", ahead)
    task = prepare("rkhs", n=100, m=6)
    drawn = task.draw([np.random.default_rng(s) for s in range(5)])
    assert drawn.redraws.max() > 4
    for s in range(5):
        gen = np.random.default_rng(s)
        for redraws in range(drawn.redraws[s] + 1):
            f, *g = gen.uniform(-1, 1, (7, 100)) @ task.actions.covariance
            assert (np.array(g) <= 0).all(axis=0).any() == (redraws == drawn.redraws[s])
        np.testing.assert_allclose(drawn.f[s], f, atol=1e-10)
        np.testing.assert_allclose(drawn.g[s], g, atol=1e-10)


def suite(tmp_path, problem, algorithm, horizon="5"):
    path = tmp_path / "s.yaml"
    path.write_text(
        f"suite: s\nhorizon: {horizon}\nseeds: 1\nproblems: [{problem}]\n"
        f"algorithms: [{algorithm}]\n"
    )
    return path


@pytest.mark.parametrize(
    ("task", "method", "message", "horizon"),
    [
        (
            "rkhs: {n: 100000}",
            "scbo",
            r"scbo would need \d+ GB per cell at T = 10,000; .*fewer actions",
            "10000",
        ),
        (
            "rkhs-1d",
            "random",
            r"16 GB per cell .*record: \{rounds: 1000\}",
            "1000000000\nrecord: all",
        ),
        (
            "rkhs: {n: 12000}",
            "stageopt: {metric: kernel}",
            r"metric: kernel .* 1 GB .* allowed: 10,000 .* metric: none",
            "5",
        ),
        (
            "rkhs: {n: 20000}",
            "safeopt: {metric: input}",
            r"metric: input .* 3 GB .* allowed: 10,000",
            "5",
        ),
        (
            "rkhs: {n: 11000, d: 2, kernel: matern12}",
            "ckb-ucb",
            r"matern12 has more than 100 features.*10,000 actions",
            "5",
        ),
        ("rkhs: {n: 20000}", "scbo", None, "5"),
        ("rkhs: {n: 20000}", "stageopt", None, "5"),
    ],
)
@pytest.mark.slow
def test_what_would_not_fit_is_refused_before_the_sweep(
    tmp_path, monkeypatch, task, method, message, horizon
):
    from cbobench.sweep.plan import plan

    monkeypatch.setattr(actions, "LARGEST_RANK", 100)
    suite_file = suite(tmp_path, task, method, horizon)
    if message is None:
        assert plan(Call(suite_file, out=tmp_path / "run", cpus=0)).tasks
        return
    with pytest.raises(Misuse, match=message):
        play_here(suite_file, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_small_machine_refuses_what_it_cannot_hold(tmp_path, monkeypatch):
    from cbobench.sweep import blocks

    monkeypatch.setattr(blocks, "machine_memory", lambda: 10**7)
    with pytest.raises(Misuse, match=r"would need 0.0 GB|this machine has 0.0"):
        play_here(suite(tmp_path, "rkhs: {n: 2000}", "ckb-ucb"), tmp_path / "run")


SETS = {
    "noise": lambda f, g, u: (f, g),
    "ties": lambda f, g, u: (f.round(1), g.round(1)),
    "twice": lambda f, g, u: (f.repeat(2), g.repeat(2)),
    "equal": lambda f, g, u: (0 * f + u, g),
    "feasible": lambda f, g, u: (f, -abs(g)),
    "threshold": lambda f, g, u: (f, u * f.max() - f),  # on a line that falls, up to rounding
    "line": lambda f, g, u: (f, (2 + u) * (f - u * f.max())),  # that rises
    "near a line": lambda f, g, u: (f, 3 * f + 10.0 ** (4 * u - 13) * g),
    "curve": lambda f, g, u: (np.sqrt(g - g.min()), g),  # all are on the hull
    "units": lambda f, g, u: (f + 1e6, g * 10.0 ** (2 * u)),
}


def draw_set(kind, seed, n):
    """f and g of n actions of some kind, of which one is feasible at least."""
    gen = np.random.default_rng(seed)
    f, g = gen.standard_normal((2, n))
    f, g = SETS[kind](f, g + gen.integers(-1, 2), gen.uniform(-1, 1))
    g[f.argmin()] = -abs(g[f.argmin()])
    return f, g


@pytest.mark.parametrize("kind", SETS)
def test_the_best_mixture_of_a_large_set_is_that_of_all_pairs(monkeypatch, kind):
    for seed in range(25):
        f, g = draw_set(kind, seed, 30)
        pairs = instances.best_policy_value(f[None], g[None, None])[0]
        monkeypatch.setattr(instances, "LARGEST", 0)
        edge = instances.best_policy_value(f[None], g[None, None])[0]
        monkeypatch.undo()
        values = [(Fraction(a), Fraction(b)) for a, b in zip(f, g, strict=True)]
        exact = max(
            a + (c - a) * b / (b - d) if d > 0 else a
            for a, b in values
            if b <= 0
            for c, d in values
        )
        assert abs(Fraction(edge) - exact) <= 2e-15 * abs(f).max()
        if kind in ("noise", "feasible", "threshold", "curve", "units"):
            assert edge == pairs, "to the last bit"


@pytest.mark.parametrize("kind", SETS)
def test_the_best_mixture_of_many_actions_is_the_linear_program(kind):
    f, g = draw_set(kind, 5, LARGEST + 1)
    solution = linprog(-f, g[None], [0.0], np.ones((1, len(f))), [1.0])
    value = instances.best_policy_value(f[None], g[None, None])
    np.testing.assert_allclose(value, -solution.fun, rtol=1e-7, atol=1e-7)
