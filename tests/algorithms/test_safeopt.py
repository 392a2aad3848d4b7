"""SafeOpt: no unsafe play, its look-ahead against a refit, its choice against the plain rule, and its limits."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from cbobench.gp.kernels import kernel
from cbobench.gp.posteriors.features import FeaturePosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.problems.base import Feedback
from tests.helpers import actions, make, play, problem, setting

METRICS = ["none", "input", "kernel"]


@pytest.mark.parametrize("metric", METRICS)
def test_no_violation_when_the_width_is_honest(metric):
    """beta from the theory, with the true norm and noise: N = 0 on 20 instances (the theory allows one in ten)."""
    cells, chunks = play(problem("rkhs-1d", h=0.25), make("safeopt", metric=metric), seeds=20, horizon=300)
    assert cells.metrics.final["violations"].tolist() == [0.0] * 20
    played, seeds = actions(chunks), cells.setting.seed_set
    outside = ~seeds[np.arange(20), played]
    assert outside.any() or metric == "input", "negative control: it does leave the seed set"


@pytest.mark.parametrize("metric", ["none", "kernel"])
def test_violations_when_the_width_is_not(metric):
    task = problem("rkhs-1d", h=0.25, noise=2.0)
    cells, _ = play(task, make("safeopt", metric=metric, beta=0.01, L=0.001), seeds=20, horizon=300)
    assert cells.metrics.final["violations"].sum() > 0


@pytest.mark.parametrize("settings", [{}, {"beta_scale": 0.05}])
def test_every_play_has_a_safety_bound_or_is_in_the_seed_set(settings):
    algorithm = make("safeopt", **settings)
    ask, grown = algorithm.ask, []

    def spy(t):
        chosen = ask(t)
        g, rows = algorithm.belief.g, np.arange(len(algorithm.belief.f.mean))
        surely = ((g.mean + g.width * g.deviation)[rows, :, chosen] <= 0).all(axis=1)
        seed = algorithm.setting.safe_seed[rows, chosen]
        assert (surely | seed).all()
        assert algorithm.safe[algorithm.setting.safe_seed].all()
        grown.append((surely & ~seed).sum())
        return chosen

    algorithm.ask = spy
    play(problem("rkhs-1d", h=0.25), algorithm, seeds=10, horizon=200)
    assert sum(grown) > 0, "no play outside the seed set: the test shows nothing"


def small(posterior, seed, m=2, rounds=4):
    """A SafeOpt on 12 points with m constraints that was told a few values, asked for its next play."""
    x = np.linspace(0, 1, 12)[:, None]
    covariance = kernel("matern32", 0.3)(x, x)
    safe = np.eye(12, dtype=bool)[:1] | np.eye(12, dtype=bool)[5:6]
    horizon = 2000 if posterior is FeaturePosterior else 9
    algorithm = make("safeopt", beta=1.5, lam=0.05)
    algorithm.start(setting(covariance, constraints=m, horizon=horizon, seed_set=safe, points=x))
    assert isinstance(algorithm.posterior, posterior)
    rng = np.random.default_rng(seed)
    for t in range(1, rounds + 1):
        chosen = algorithm.ask(t)
        g = 4 * x[chosen[0], 0] - 3 + 0.3 * np.arange(m) + 0.1 * rng.normal(size=m)
        algorithm.tell(t, chosen, Feedback(rng.normal(size=1) - 20 * x[chosen[0]], g[None]))
    algorithm.ask(rounds + 1)
    return algorithm


@pytest.mark.parametrize("posterior", [FeaturePosterior, ObservationPosterior])
def test_look_ahead_equals_a_refit(posterior):
    """Fed with the value l_j at x, a copy of the posterior has the bounds that the rank-one look-ahead computes."""
    found = set()
    for seed in range(8):
        algorithm = small(posterior, seed)
        belief, outside = algorithm.belief, np.flatnonzero(~algorithm.safe[0])
        some = np.flatnonzero(algorithm.safe[0])
        for j in range(2):
            quick = algorithm._expands(0, j, some, outside, belief)
            for x, claimed in zip(some, quick, strict=True):
                trial = copy.deepcopy(algorithm.posterior)
                trial.update(np.array([x]), np.full((1, 3), algorithm.lower[0, j, x]))
                bound = trial.mean[0, 1 + j] + 1.5 * np.sqrt(trial.variance[0])
                assert claimed == (bound[outside] <= 0).any()
                found.add(bool(claimed))
    assert found == {True, False}


@pytest.mark.parametrize("posterior", [FeaturePosterior, ObservationPosterior])
def test_covariance_columns(posterior):
    algorithm = small(posterior, 0)
    played = algorithm.posterior
    x = np.linspace(0, 1, 12)[:, None]
    columns = played.covariances(0, 0, np.arange(12))
    np.testing.assert_allclose(np.diagonal(columns), played.variance[0], atol=1e-9)
    np.testing.assert_allclose(columns, columns.T, atol=1e-9)
    assert np.abs(columns - kernel("matern32", 0.3)(x, x)).max() > 0.3


def test_the_choice_equals_the_plain_rule():
    """Maximisers, expanders one by one from the widest, then the widest of all, with refits instead of look-aheads."""
    expanded = 0
    for seed in range(30):
        algorithm = small(ObservationPosterior, seed, rounds=1 + seed % 6)
        trial = algorithm.posterior
        deviation = np.sqrt(trial.variance[0])
        low, high = trial.mean[0] - 1.5 * deviation, trial.mean[0] + 1.5 * deviation
        safe = (high[1:] <= 0).all(axis=0) | algorithm.setting.safe_seed[0]
        width = (high - low).max(axis=0)
        maximisers = safe & (high[0] >= low[0][safe].max())
        best = width[maximisers].max()
        for x in sorted(np.flatnonzero(safe & (width > best)), key=lambda x: -width[x]):
            expands = []
            for j in (1, 2):
                after = copy.deepcopy(trial)
                after.update(np.array([x]), np.full((1, 3), low[j, x]))
                bound = after.mean[0, j] + 1.5 * np.sqrt(after.variance[0])
                expands.append((bound[~safe] <= 0).any())
            if all(expands):
                best, expanded = width[x], expanded + 1
                break
        assert width[algorithm.chosen[0]] == pytest.approx(best, rel=1e-9)
        assert safe[algorithm.chosen[0]]
    assert expanded > 2


def test_without_constraints_everything_is_safe():
    """m = 0: the widest of the possible maximisers, by hand: arm 0 told -2 is no maximiser, arm 2 is the wider one."""
    algorithm = make("safeopt", beta=1.0, lam=1.0)
    facts = {"norm": np.ones((1, 1)), "sup": np.ones((1, 1)), "noise": np.ones((1, 1))}
    algorithm.start(setting(np.diag([1.0, 0.25, 0.81]), constraints=0, **facts))
    chosen = []
    for t, f in enumerate((-8.0, 0.0, 0.0), start=1):
        chosen.append(int(algorithm.ask(t)[0]))
        assert algorithm.safe.all()
        algorithm.tell(t, algorithm.chosen, Feedback(np.array([f]), np.empty((1, 0))))
    assert chosen[:2] == [0, 2]


@pytest.mark.parametrize("threshold", [0.0, 10.0])
def test_threshold_stops_expansion(threshold):
    algorithm = make("safeopt", threshold=threshold, beta_scale=0.2)
    algorithm.threshold_hits = 0
    look = algorithm._expands

    def spy(*args):
        algorithm.threshold_hits += 1
        return look(*args)

    algorithm._expands = spy
    play(problem("rkhs-1d", h=0.25), algorithm, seeds=3, horizon=100)
    assert (algorithm.threshold_hits > 0) == (threshold == 0.0)


def test_delayed_feedback_is_served():
    _, chunks = play(problem("rkhs-1d", delay=3.0), make("safeopt"), seeds=3, horizon=60)
    assert len(np.unique(actions(chunks))) > 3
