"""Safe methods: no unsafe play, and the fast safe set against the plain rule over all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.algorithms.safe import Lipschitz
from cbobench.errors import Misuse
from tests.helpers import actions, make, play, problem

SAFE = [("sgp-ucb", {}), *(("stageopt", {"metric": metric}) for metric in ("none", "input", "kernel"))]


@pytest.mark.parametrize(("name", "settings"), SAFE)
def test_no_violation_when_the_width_is_honest(name, settings):
    """beta from the theory, with the true norm and noise: N = 0 on 20 instances (the theory allows one in ten)."""
    cells, _ = play(problem("rkhs-1d", h=0.25), make(name, **settings), seeds=20, horizon=400)
    assert cells.metrics.final["violations"].tolist() == [0.0] * 20


@pytest.mark.parametrize(("name", "settings"), [("sgp-ucb", {}), ("stageopt", {"metric": "none"})])
def test_violations_when_the_width_is_not(name, settings):
    """Negative control: with hardly any width the same methods do violate."""
    cells, _ = play(problem("rkhs-1d", h=0.25, noise=2.0), make(name, beta=0.01, **settings), seeds=20, horizon=400)
    assert cells.metrics.final["violations"].sum() > 0


@pytest.mark.parametrize("settings", [{}, {"beta_scale": 0.05}])
@pytest.mark.parametrize("name", ["sgp-ucb", "stageopt"])
def test_every_play_has_a_safety_bound_or_is_in_the_seed_set(name, settings):
    algorithm = make(name, **settings)
    ask = algorithm.ask
    grown = []

    def spy(t):
        chosen = ask(t)
        g = algorithm.belief.g
        bound = g.mean + g.width * g.deviation
        if name == "stageopt":
            bound = np.minimum(bound, algorithm.upper)  # its intervals are intersected over time
        rows = np.arange(len(chosen))
        surely = (bound[rows, :, chosen] <= 0).all(axis=1)
        seed = algorithm.setting.seed_set[rows, chosen]
        assert (surely | seed).all()
        grown.append((surely & ~seed).sum())
        return chosen

    algorithm.ask = spy
    play(problem("rkhs-1d", h=0.25), algorithm, seeds=10, horizon=400)
    assert sum(grown) > 0, "no play outside the seed set: the test shows nothing"


@pytest.mark.parametrize("metric", ["input", "kernel"])
def test_fast_safe_set_equals_the_rule_over_all_pairs(metric):
    """S_t = points x' with u(x) + L d(x, x') <= 0 for some x in S_{t-1}, for each constraint; and the expanders."""
    rng = np.random.default_rng(0)
    replicates, m, n = 4, 2, 25
    points = np.sort(rng.random((n, 1)), axis=0)
    base = (
        np.abs(points - points.T) if metric == "input" else np.sqrt(2 - 2 * np.exp(-((points - points.T) ** 2) / 0.02))
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
                any((lower[s, j, x] + distances[s, j, x][~certified[s, j]] <= 0).any() for j in range(m))
                for x in range(n)
            ]
            np.testing.assert_array_equal(fast.may_reach(lower)[s], reach)
        sizes.append(slow.sum())
    assert sizes[0] < sizes[-1] == replicates * n
    assert len(set(sizes)) > 5


def test_the_lipschitz_constant_of_the_input_metric_holds():
    """L = G max d_k/d bounds every drawn g on every pair of points."""
    task = problem("rkhs-1d", constraint="independent")
    algorithm = make("stageopt", metric="input")
    cells, _ = play(task, algorithm, seeds=10, horizon=1)
    g = cells.instances.g[:, 0]
    metric, constants = algorithm._condition()
    assert (np.abs(g[:, :, None] - g[:, None, :]) <= constants[:, :, None] * metric + 1e-9).all()


def test_both_start_from_the_same_seed_set():
    task = problem("rkhs-1d")
    first, chunks = play(task, make("sgp-ucb"), horizon=60)
    second, _ = play(task, make("stageopt"), horizon=60)
    np.testing.assert_array_equal(first.setting.seed_set, second.setting.seed_set)
    seeds = first.setting.seed_set
    assert (seeds.sum(axis=1) == np.minimum(5, (first.instances.g[:, 0] <= 0).sum(axis=1))).all()
    early = actions(chunks)[: int(np.ceil(60 ** (2 / 3)))]
    assert seeds[np.arange(3), early].all()
    assert len(np.unique(early)) > 3, "uniform on the seed set, not one favourite"


def test_stageopt_leaves_expansion_after_its_rounds():
    algorithm = make("stageopt", expand_rounds=7)
    play(problem("rkhs-1d", h=0.25), algorithm, horizon=8)
    assert not algorithm.expanding.any()
    other = make("stageopt", expand_rounds=0.5)
    play(problem("rkhs-1d", h=0.25), other, horizon=30)
    assert other.last_expansion == 15


def test_an_input_metric_needs_coordinates():
    task = problem("stocks", data="look-alike")
    with pytest.raises(Misuse, match="no coordinates; allowed here: kernel, none"):
        make("stageopt", metric="input").check(task)
