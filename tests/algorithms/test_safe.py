"""Safe methods: no unsafe play, safe sets and choices against the plain rules, and look-aheads
against a refit.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from cbobench.algorithms.safe import Lipschitz
from cbobench.errors import Misuse
from cbobench.gp.kernels import kernel
from cbobench.gp.posteriors.features import FeaturePosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.problems.base import Feedback
from tests.helpers import make, play, problem, setting, watch_asks

METRICS = ["none", "input", "kernel"]
SAFE = [
    ("sgp-ucb", {}),
    *((name, {"metric": metric}) for name in ("stageopt", "safeopt") for metric in METRICS),
]


@pytest.mark.parametrize(("name", "settings"), SAFE)
def test_no_violation_when_the_width_is_honest(name, settings):
    """beta from the theory, with the true norm and noise: N = 0 on 20 instances (the theory allows
    one in ten).
    """
    cells, _ = play(problem("rkhs-1d", h=0.25), make(name, **settings), seeds=20, horizon=200)
    assert cells.metrics.final["violations"].tolist() == [0.0] * 20


@pytest.mark.parametrize("name", ["sgp-ucb", "stageopt", "safeopt"])
def test_violations_when_the_width_is_not(name):
    """Negative control: with hardly any width the same methods do violate."""
    cells, _ = play(
        problem("rkhs-1d", h=0.25, noise=2.0),
        make(name, beta=0.01),
        seeds=20,
        horizon=400 if name == "sgp-ucb" else 100,
    )
    assert cells.metrics.final["violations"].sum() > 0


@pytest.mark.parametrize("name", ["sgp-ucb", "stageopt", "safeopt"])
def test_every_play_has_a_safety_bound_or_is_in_the_seed_set(name):
    algorithm, grown = make(name, beta_scale=0.05), []

    def look(t, chosen):
        g = algorithm.belief.g
        bound = g.mean + g.width * g.deviation
        if name == "stageopt":
            bound = np.minimum(bound, algorithm.upper)  # its intervals are intersected over time
        rows = np.arange(len(chosen))
        surely = (bound[rows, :, chosen] <= 0).all(axis=1)
        seed = algorithm.setting.seed_set[rows, chosen]
        assert (surely | seed).all()
        grown.append((surely & ~seed).sum())

    play(problem("rkhs-1d", h=0.25), watch_asks(algorithm, look), seeds=10, horizon=200)
    assert sum(grown) > 0, "no play outside the seed set: the test shows nothing"


@pytest.mark.parametrize("metric", ["input", "kernel"])
def test_fast_safe_set_equals_the_rule_over_all_pairs(metric):
    """S_t = points x' with u(x) + L d(x, x') <= 0 for some x in S_{t-1}, for each constraint; and
    the expanders.
    """
    rng = np.random.default_rng(0)
    replicates, m, n = 4, 2, 25
    points = np.sort(rng.random((n, 1)), axis=0)
    base = (
        np.abs(points - points.T)
        if metric == "input"
        else np.sqrt(2 - 2 * np.exp(-((points - points.T) ** 2) / 0.02))
    )
    distances = np.array([2.0, 3.0])[None, :, None, None] * base
    distances = np.repeat(distances, replicates, axis=0)
    seed = rng.random((replicates, n)) < 0.1
    seed[:, 0] = True
    fast, safe = Lipschitz(base, np.tile([2.0, 3.0], (replicates, 1)), seed), seed.copy()
    certified = np.repeat(seed[:, None], m, axis=1)
    slow = seed.copy()
    upper = np.full((replicates, m, n), 1.0)
    sizes = []
    for _ in range(60):
        upper = np.minimum(upper, upper - 0.2 * rng.random(upper.shape))
        lower = upper - rng.random(upper.shape)
        safe = fast.grow(safe, upper)
        for s in range(replicates):
            for j in range(m):
                for x in np.flatnonzero(slow[s]):
                    certified[s, j] |= upper[s, j, x] + distances[s, j, x] <= 0
        slow = certified.all(axis=1)
        np.testing.assert_array_equal(safe, slow)
        for s in range(replicates):
            reach = [
                any(
                    (lower[s, j, x] + distances[s, j, x][~certified[s, j]] <= 0).any()
                    for j in range(m)
                )
                for x in range(n)
            ]
            np.testing.assert_array_equal(fast.may_reach(lower)[s], reach)
        sizes.append(slow.sum())
    assert sizes[0] < sizes[-1] == replicates * n
    assert len(set(sizes)) > 5


def test_an_input_metric_needs_coordinates():
    task = problem("stocks", data="look-alike")
    with pytest.raises(Misuse, match="no coordinates; allowed here: kernel, none"):
        make("stageopt", metric="input").check(task)


def small(posterior, seed, m=2, rounds=4):
    """A SafeOpt on 12 points with m constraints that was told a few values, asked for its next
    play.
    """
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
def test_the_choice_equals_the_plain_rule(posterior):
    """Maximisers, expanders one by one from the widest, then the widest of all, with refits instead
    of look-aheads.
    """
    expanded = 0
    for seed in range(30):
        algorithm = small(posterior, seed, rounds=1 + seed % 6)
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
    """m = 0: the widest of the possible maximisers, by hand: arm 0 told -2 is no maximiser, arm 2
    is the wider one.
    """
    algorithm = make("safeopt", beta=1.0, lam=1.0)
    facts = {"norm": np.ones((1, 1)), "sup": np.ones((1, 1)), "noise": np.ones((1, 1))}
    algorithm.start(setting(np.diag([1.0, 0.25, 0.81]), constraints=0, **facts))
    chosen = []
    for t, f in enumerate((-8.0, 0.0, 0.0), start=1):
        chosen.append(int(algorithm.ask(t)[0]))
        assert algorithm.safe.all()
        algorithm.tell(t, algorithm.chosen, Feedback(np.array([f]), np.empty((1, 0))))
    assert chosen[:2] == [0, 2]
