"""What `pending` does with plays under way: the model against a direct solve, and which actions
block repeats.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cbobench.problems.base import Arrivals, Feedback
from tests.helpers import actions, make, make_arrivals, play, problem, setting

MODES = ("ignore", "variance", "credit-now", "block")
N, LAM = 12, 0.1
POINTS = np.linspace(0, 1, N)
K = np.exp(-((POINTS[:, None] - POINTS) ** 2) / (2 * 0.2**2))


def make_feedback(t, *values, replicates=1):
    """Feedback of round t: (round, function, value) that arrive for replicate 0."""
    arrivals = make_arrivals((0, when, function, value) for when, function, value in values)
    return Feedback(np.full(replicates, np.nan), np.full((replicates, 1), np.nan), arrivals)


def started(mode, name="rpol-ucb", **settings):
    algorithm = make(name, pending=mode, lam=LAM, beta=2.0, **settings)
    algorithm.start(replace(setting(K, horizon=50), delayed=True))
    return algorithm


def drive(algorithm, script):
    """Ask and tell; `script` has per round what arrives. The actions played."""
    played = []
    for t, arriving in enumerate(script, start=1):
        played.append(int(algorithm.ask(t)[0]))
        algorithm.tell(t, np.array(played[-1:]), make_feedback(t, *arriving))
    return played


def dense(data):
    """Mean and variance over all actions from pairs (action, value), and the gain."""
    at, y = np.array([a for a, _ in data], dtype=int), np.array([v for _, v in data])
    inverse = np.linalg.inv(K[np.ix_(at, at)] + LAM * np.eye(len(at)))
    mean = K[:, at] @ inverse @ y
    variance = K.diagonal() - (K[:, at] @ inverse * K[:, at]).sum(axis=1)
    return mean, variance, 0.5 * np.linalg.slogdet(np.eye(len(at)) + K[np.ix_(at, at)] / LAM)[1]


def read_moments(algorithm, function):
    """The model's mean, variance and gain of a function."""
    p = algorithm.posterior
    separate = p.variance.ndim == 3
    variance, gain = (
        (p.variance[0, function], p.gain[0, function]) if separate else (p.variance[0], p.gain[0])
    )
    return p.mean[0, function], variance, gain


def agree(moments, direct):
    for moment, expected in zip(moments, direct, strict=True):
        np.testing.assert_allclose(moment, expected, atol=1e-9)


def two_rounds_late(rounds, f, g):
    """Every value arrives two rounds after it is caused."""
    return [
        [(t - 2, 0, f[t - 2]), (t - 2, 1, g[t - 2])] if t > 2 else [] for t in range(1, rounds + 1)
    ]


F, G = (
    {t: float(v) for t, v in enumerate(np.random.default_rng(seed).normal(size=40))}
    for seed in (0, 1)
)


@pytest.mark.parametrize("mode", MODES)
def test_the_model_under_a_constant_delay_is_a_direct_solve(mode):
    algorithm = started(mode)
    played = drive(algorithm, two_rounds_late(9, F, G))
    for function, values in enumerate((F, G)):
        arrived = [(played[s - 1], values[s]) for s in range(1, 8)]
        direct = dense(arrived)
        if mode == "variance":
            direct = (direct[0], *dense([(a, 0.0) for a in played])[1:])
        elif mode == "credit-now":
            direct = dense([(played[s + 1], values[s]) for s in range(1, 8)])
        agree(read_moments(algorithm, function), direct)
    if mode == "block":
        assert played[0:3] == played[:1] * 3
        assert played[3:6] == played[3:4] * 3
        assert played[3] != played[0], "negative control: it does play on"
    elif mode == "ignore":
        assert len(set(played[:3])) > 1


def test_several_arrivals_and_none_are_credited_function_by_function():
    algorithm = started("credit-now")
    played = drive(algorithm, [[], [], [(2, 0, 5.0), (1, 0, 3.0)], [(2, 1, -1.0)], []])
    agree(read_moments(algorithm, 0), dense([(played[2], 3.0), (played[2], 5.0)]))
    agree(read_moments(algorithm, 1), dense([(played[3], -1.0)]))


def test_costs_that_arrive_enter_the_penalty_in_every_mode():
    for mode in MODES:
        algorithm = started(mode, floor=0.0)
        drive(algorithm, [[], [(1, 1, 4.0)], [(2, 1, -9.0)]])
        assert algorithm.duals[0, 0] == 5.0


def test_block_waits_for_all_that_is_modelled_and_learns_the_repeats():
    algorithm = started("block")
    played = drive(algorithm, [[], [(1, 0, 1.0), (2, 1, 0.5)], [(2, 0, 2.0)], [(1, 1, 0.2)], []])
    assert played[:4] == played[:1] * 4, (
        "f of round 1 is there, and g of the repeat, but not g of round 1"
    )
    assert played[4] != played[0]
    agree(read_moments(algorithm, 0), dense([(played[0], 1.0), (played[0], 2.0)]))
    alone = started("block", "igp-ucb")
    played = drive(alone, [[], [(1, 0, 1.0)], []])
    assert played[0] == played[1] != played[2], "a method that models f alone does not wait for g"


def test_a_restart_ends_the_wait():
    algorithm = started("block", "ckb-restart", restart=4)
    played = drive(algorithm, [[] for _ in range(9)])
    assert [len(set(played[i : i + 4])) for i in (0, 4)] == [1, 1]
    assert algorithm.wait.round[0] == 9


@pytest.mark.parametrize("name", ["config", "ckb-ts", "igp-ucb"])
def test_without_a_delay_all_modes_are_one(name):
    """Every value arrives in its own round: the plays of a model that is told at once."""
    task = problem("rkhs-1d")
    bounds = {} if name == "igp-ucb" else {"B": "sup", "G": "sup"}
    chosen = {}
    for mode in MODES:
        algorithm = make(name, pending=mode, **bounds)
        start = algorithm.start

        def late(facts, start=start):
            start(replace(facts, delayed=True))

        def tell(t, acted, feedback, inner=algorithm.tell):
            values = feedback.values
            s, j = np.indices(values.shape)
            arrivals = Arrivals(s.ravel(), np.full(s.size, t), j.ravel(), values.ravel())
            inner(
                t,
                acted,
                replace(feedback, f=np.nan * feedback.f, g=np.nan * feedback.g, arrivals=arrivals),
            )

        algorithm.start, algorithm.tell = late, tell
        chosen[mode] = actions(play(task, algorithm, seeds=3, horizon=40)[1])
    expected = actions(play(task, make(name, **bounds), seeds=3, horizon=40)[1])
    if name == "ckb-ts":  # whose paths of f and g come from one draw each, in other bits
        expected = chosen["ignore"]
    for mode in MODES:
        np.testing.assert_array_equal(chosen[mode], expected, err_msg=mode)
