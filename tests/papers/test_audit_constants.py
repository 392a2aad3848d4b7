"""Constants of the audit by hand: bounds at T, gains, norms, and what explorations promise."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp.beliefs import UCB, FunctionBelief, RandUCB
from cbobench.rng import Streams
from tests.helpers import actions, problem
from tests.papers.test_audit import audited

T = 30


@pytest.fixture(scope="module")
def task():
    return problem("rkhs", constraint="independent", m=2, n=40)


def gain_of(task, x):
    """Information gain of the actions x, from the whole kernel matrix."""
    K = task.actions.covariance[np.ix_(x, x)]
    return np.linalg.slogdet(np.eye(len(x)) + K / (1 + 2 / T))[1] / 2


@pytest.mark.parametrize("name", ["ckb-ucb", "ckb-ts", "ckb-rand"])
def test_bounds_at_the_horizon_are_those_of_the_papers(task, name):
    """Theorem 1 by (13), (15) and Lemma 2; Theorem 2 by (22): typed in again from the appendix, for each seed alone."""
    cells, chunks, rows = audited(task, name, horizon=T)
    i, n, alpha, m = cells.instances, 40, 0.1, 2
    for s, row in enumerate(rows):
        x = actions(chunks)[:, s]
        B, G = i.norm[s, 0], i.norm[s, 1:]
        rho = 4 * B / i.slater[s]
        V = G * np.sqrt(T) / rho
        root = np.sqrt(2 * (gain_of(task, x[:-1]) + 1 + np.log((1 + m) / alpha)))
        beta = i.norm[s] + i.noise[s] * root
        sigmas = np.sqrt(4 * (T + 2) * gain_of(task, x))
        assert row["gain"] == row["gain_used"] == pytest.approx(gain_of(task, x), rel=1e-9)
        if name == "ckb-ucb":
            regret, penalised_regret = 2 * beta[0] * sigmas, 2 * (beta[0] + rho * beta[1:].sum()) * sigmas
        else:
            factor = 2 * np.sqrt(np.log(n * T if name == "ckb-ts" else T))
            c = (1 + factor) * beta
            p3 = (1 / (4 * np.e * np.sqrt(np.pi))) ** (1 + m)
            kappa = 4 * B + 4 * rho * G.sum()
            total, missed = c[0] + rho * c[1:].sum(), sum(min(1, 1 / t**2) + min(1, m / t**2) for t in range(1, T + 1))
            regret = penalised_regret = (1 + 2 / p3) * (
                total * sigmas + total * kappa * np.sqrt(2 * T * np.log(1 / alpha))
            )
            regret = penalised_regret = regret + missed * kappa
            assert row["anti_promised"] == pytest.approx(p3)
            assert row["conc_promised"] == pytest.approx(1 - missed / T)
        steps = (T * G**2 / (2 * V)).sum()
        assert row["regret_bound"] == pytest.approx(regret + steps, rel=1e-9)
        assert row["violation_bound"] == pytest.approx(
            2 / rho * (penalised_regret + (V * rho**2 / 2).sum() + steps), rel=1e-9
        )


def test_norms_noise_and_margins_are_those_of_the_draw(task):
    """The audit fits norms to values; the draw knows them from its weights."""
    cells, _, rows = audited(task, "ckb-ucb", horizon=T, B=3.0, G="sup", R=0.2, delta=0.25)
    i = cells.instances
    np.testing.assert_allclose([row["norm"] for row in rows], i.norm, rtol=1e-6)
    np.testing.assert_allclose([row["bound"] for row in rows], np.stack([[3.0, *sup[1:]] for sup in i.sup]))
    np.testing.assert_array_equal([row["noise"] for row in rows], i.noise)
    assert [row["noise_used"] for row in rows] == [[0.2] * 3] * 3
    assert [row["margin_single"] for row in rows] == i.slater.tolist()
    assert [(row["margin_used"], row["dual_cap"]) for row in rows] == [(0.25, 48.0)] * 3


@pytest.mark.parametrize(
    "explore",
    [
        UCB(+1),
        RandUCB(),
        RandUCB("uniform", points=20),
        RandUCB("discrete-gaussian", points=30, low=0.0, high=3.0),
        RandUCB("discrete-gaussian", low=-4.0, high=1.5),
        RandUCB("discrete-gaussian", sign=-1, low=-1.5, high=2.0),
    ],
)
def test_explorations_keep_what_they_promise(explore):
    """Of 4,000 draws, at least as many are optimistic by one width, and within c^(2), as theory says."""
    explore.start(Streams([("test", s) for s in range(4000)]), "explore f", (), 1)
    belief = FunctionBelief(np.zeros((4000, 3)), np.ones((4000, 3)), np.full((4000, 1), 2.0))
    for t in (1, 2, 5, 20):
        explore.begin(t)
        away = explore(belief) / 2.0
        np.testing.assert_allclose(away, np.broadcast_to(np.reshape(explore.multiple, (-1, 1)), away.shape))
        optimistic = (getattr(explore, "sign", 1) * away >= 1).all(axis=1).mean()
        near = (np.abs(away) <= explore.concentration(t, 3)).all(axis=1)
        assert optimistic >= explore.optimism() - 0.03
        assert near.mean() >= 1 - explore.misses(t)
        if isinstance(explore, RandUCB) and explore.law != "normal":
            assert optimistic == pytest.approx(explore.optimism(), abs=0.03)


def test_the_margin_of_a_box_is_not_that_of_its_candidates():
    """A program on candidates finds less slack than a box has: δ in use, the true one, is not called too large."""
    pocket = problem("feasible-pocket")
    _, _, rows = audited(pocket, "ckb-ucb", horizon=T)
    assert rows[0]["margin"] < rows[0]["margin_used"]
    assert not any("δ exceeds" in note for note in rows[0]["notes"])
    assert any("δ exceeds" in note for note in audited(pocket, "ckb-ucb", horizon=T, delta=0.9)[2][0]["notes"])
