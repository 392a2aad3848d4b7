"""CKB: three rounds by hand, its duals, and its options."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import CellFailure, Misuse
from cbobench.problems.base import Feedback
from tests.helpers import make, play, problem, setting, watch_asks


def test_three_rounds_by_hand():
    """Independent arms with prior deviations 1, 0.9, 0.8; lambda = 1, beta = 1, B = 1.5, G = 0.5,
    rho = 2, V = 0.5.

    Round 1, phi = 0: f = (1, 0.9, 0.8), so arm 0. g(arm 0) = -1, truncated to -0.5: phi = [0 - 1]^+
      = 0. Observed f = 2, g = 3: arm 0 has means 2/2 = 1 and 3/2, variance 1/2.
    Round 2, phi = 0: f = (1.707 -> 1.5, 0.9, 0.8), so arm 0. g = 1.5 - 0.707 = 0.793 -> 0.5: phi =
      0 + 0.5/0.5 = 1. Observed the same: means 4/3 and 2, variance 1/3.
    Round 3, phi = 1: f = (1.911 -> 1.5, 0.9, 0.8), g = (1.423 -> 0.5, -0.9 -> -0.5, -0.8 -> -0.5),
      score = (1, 1.4, 1.3), so arm 1. phi = 1 - 0.5/0.5 = 0.
    """
    ckb = make("ckb-ucb", lam=1.0, beta=1.0, B=1.5, G=0.5, rho=2.0, V=0.5)
    ckb.start(setting(np.diag([1.0, 0.81, 0.64])))
    feedback = Feedback(np.array([2.0]), np.array([[3.0]]))
    history = []
    for t in (1, 2, 3):
        arm = ckb.ask(t)
        ckb.tell(t, arm, feedback)
        history.append((int(arm[0]), float(ckb.dual[0, 0])))
        if t == 2:
            np.testing.assert_allclose(ckb.posterior.mean[0, :, 0], [4 / 3, 2.0])
            np.testing.assert_allclose(ckb.posterior.variance[0], [1 / 3, 0.81, 0.64])
    assert [arm for arm, _ in history] == [0, 0, 1]
    np.testing.assert_allclose([phi for _, phi in history], [0, 1, 0], atol=1e-12)


def test_theory_parameters():
    """rho = 4B/delta, V = G sqrt(T)/rho, lambda = 1 + 2/T, phi_1 = 0, and B may be the sup norm or
    a number.
    """
    facts = {
        "norm": np.array([[2.0, 3.0]]),
        "sup": np.array([[1.0, 0.5]]),
        "slater": np.array([0.25]),
    }
    ckb = make("ckb-ucb")
    ckb.start(setting(np.eye(3), horizon=400, **facts))
    np.testing.assert_allclose(ckb.cap, 4 * 2 / 0.25)
    np.testing.assert_allclose(ckb.inverse_step, 3 * 20 / 32)
    assert ckb.posterior.lam == 1 + 2 / 400
    assert not ckb.dual.any()
    for choice, bound in (("sup", 1.0), (7.0, 7.0)):
        bounded = make("ckb-ucb", B=choice)
        bounded.start(setting(np.eye(3), horizon=400, **facts))
        np.testing.assert_allclose(bounded.bound_f, bound)


def test_a_function_outside_the_space_has_no_norm_to_use():
    """A constant under a linear kernel: B or G by norm is refused, and only for the functions that
    are modelled.
    """
    points = np.linspace(0.1, 1, 8)[:, None]
    actions_set = setting(points @ points.T).actions
    norms = actions_set.norm(np.stack([points[:, 0], np.ones(8)]))
    np.testing.assert_allclose(norms, [1.0, np.inf])
    facts = {"norm": norms[None]}
    make("igp-ucb").start(setting(points @ points.T, **facts))
    make("ckb-ucb", G="sup").start(setting(points @ points.T, **facts))
    with pytest.raises(
        CellFailure, match="G reads a norm, but a function is not in the kernel's space"
    ):
        make("ckb-ucb").start(setting(points @ points.T, **facts))
    with pytest.raises(CellFailure, match="δ is 0"):
        make("ckb-ucb").start(setting(np.eye(3), slater=np.zeros(1)))


def test_slack_raises_the_dual():
    task = problem("rkhs-1d", constraint="independent")
    _, chunks = play(task, make("ckb-ucb"), seeds=5, horizon=100)
    _, slack = play(task, make("ckb-ucb", slack=0.5), seeds=5, horizon=100)
    assert slack[-1].duals.sum() > chunks[-1].duals.sum()


def test_several_constraints_have_a_dual_each_within_its_cap():
    task = problem("rkhs", n=40, m=3)
    algorithm = make("ckb-rand", rho=0.7, beta_scale=0.2)
    _, chunks = play(task, algorithm, seeds=6, horizon=150)
    duals = chunks[-1].duals
    assert duals.shape == (150, 6, 3)
    assert duals.min() >= 0
    assert duals.max() <= 0.7
    assert len({tuple(column) for column in duals[-1].T}) == 3


def test_anytime_restarts_at_powers_of_two():
    task = problem("rkhs-1d")
    algorithm = make("ckb-ucb", anytime=True)
    gains, lambdas = [], []

    def look(t, chosen):
        gains.append(float(algorithm.posterior.gain[0]))
        lambdas.append(algorithm.posterior.lam)

    play(task, watch_asks(algorithm, look), seeds=1, horizon=40)
    restarts = [t for t, gain in enumerate(gains, start=1) if gain == 0]
    assert restarts == [1, 2, 4, 8, 16, 32]
    np.testing.assert_allclose([lambdas[t - 1] for t in restarts], [1 + 2 / t for t in restarts])


def test_rand_draws_one_width_for_the_score_and_the_dual():
    """The dual step uses the same Z as the scores: with g known exactly up to Z, phi reveals it."""
    algorithm = make("ckb-rand", V=1.0, rho=1e9, B=1e9, G=1e9, lam=1.0, beta=1.0)
    algorithm.start(setting(np.eye(2)))
    arm = algorithm.ask(1)
    z = float(algorithm.explore_g.z[0, 0, 0])
    algorithm.tell(1, arm, Feedback(np.zeros(1), np.zeros((1, 1))))
    np.testing.assert_allclose(algorithm.dual[0, 0], max(0.0, z))


def test_thompson_uses_one_path_for_the_score_and_the_dual():
    algorithm = make("ckb-ts", V=1.0, rho=1e9, B=1e9, G=1e9, lam=1.0, beta=1.0)
    algorithm.start(setting(problem("rkhs", n=9).actions.covariance))
    arm = algorithm.ask(1)
    path = algorithm.belief.g.path[0, 0]
    algorithm.tell(1, arm, Feedback(np.zeros(1), np.zeros((1, 1))))
    np.testing.assert_allclose(algorithm.dual[0, 0], max(0.0, path[arm[0]]))
    assert not np.allclose(path, algorithm.belief.f.path[0])


def test_out_of_range_parameters_are_refused():
    for settings, message in (
        ({"alpha": 1.0}, "alpha is 1.0; it must be below 1"),
        ({"beta_scale": -0.1}, "at least 0"),
        ({"law": "cauchy"}, "'normal'"),
        ({"points": 1}, "at least 2"),
        ({"betta": 1}, "did you mean 'beta'"),
        ({"anytime": 1}, "true | false"),
        ({"B": "l2"}, "'norm'"),
    ):
        with pytest.raises(Misuse, match=message):
            make("ckb-rand", **settings)
