"""Ties on boxes, restarts under delays, and widths of combined targets."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from tests.helpers import actions, make, play, problem


@pytest.mark.parametrize("name", ["rpol-ucb", "config", "ckb-ucb"])
def test_rounds_before_anything_has_arrived_are_no_free_ride(name):
    """All candidates tie while nothing is known: they are drawn at random, not in the order of the sequence."""
    task = problem("feasible-pocket-delayed", delay=1000.0)
    _, chunks = play(task, make(name, B="sup", G="sup"), seeds=20, horizon=6)
    played = actions(chunks).reshape(-1, 2)
    assert len(np.unique(played, axis=0)) > 100
    np.testing.assert_allclose(played.mean(axis=0), 3.0, atol=0.5)


def test_a_plateau_of_truncation_is_a_tie():
    """CKB's first plays all reach the bound B."""
    _, chunks = play(problem("feasible-pocket"), make("ckb-ucb", B=0.1), seeds=40, horizon=2)
    assert len(np.unique(actions(chunks)[1], axis=0)) > 35


@pytest.mark.parametrize(
    "task", [{"name": "feasible-pocket-delayed", "candidates": 64}, {"name": "rkhs-1d", "delay": 3.0}]
)
@pytest.mark.parametrize(("name", "settings"), [("ckb-restart", {"restart": 5}), ("ckb-ucb", {"anytime": True})])
def test_restarts_forget_what_is_under_way(task, name, settings):
    algorithm = make(name, B="sup", G="sup", **settings)
    seen = []
    condition = algorithm.condition

    def spy(t, feedback):
        condition(t, feedback)
        fresh = (feedback.arrivals.round >= algorithm.since).sum()
        seen.append((t, algorithm.since, fresh, algorithm.posterior.gain.copy()))

    algorithm.condition = spy
    play(problem(**task), algorithm, seeds=2, horizon=30)
    for (_, since, fresh, gain), (_, before, _, earlier) in zip(seen[1:], seen, strict=False):
        if since != before and not fresh:
            assert not gain.any(), "a restarted model knows nothing"
        elif since == before:
            assert (gain.sum() > earlier.sum()) == bool(fresh)


def test_an_uncapped_queue_restarts_as_well():
    _, chunks = play(problem("rkhs-1d"), make("vq-ucb", anytime=True, beta=0.1, B="sup", G="sup"), horizon=64)
    assert np.isfinite(chunks[0].duals).all()
    assert chunks[0].duals.any()


def test_the_width_of_a_combined_target_knows_all_noise():
    """Algorithm 3's R √(1 + Σ κ²) for equal constants, and the exact spread for others."""
    for f, g, kappa, expected in ((0.1, 0.1, 3.0, 0.1 * np.sqrt(10)), (0.1, 0.5, 2.0, np.sqrt(0.01 + 1.0))):
        algorithm = make("fixed-penalty", kappa=kappa, B="sup", G="sup")
        play(problem("feasible-pocket", candidates=64, noise_f=f, noise_g=g), algorithm, seeds=1, horizon=2)
        assert algorithm.noise_constants()[0, 0] == pytest.approx(expected)
    noisy = make("penalty-noisy", S=5, B="sup", G="sup", mu=2.0)
    play(problem("feasible-pocket", candidates=64), noisy, seeds=1, horizon=12)
    assert noisy.price[0, 0] > 0
    assert noisy.noise_constants()[0, 0] == pytest.approx(0.1 * np.sqrt(1 + noisy.price[0, 0] ** 2))


def test_the_gain_of_a_window_stops_growing():
    algorithm = make("rpol-sw", window=5, gain="greedy", variation="none", B="sup", G="sup")
    widths = []
    ask = algorithm.ask

    def spy(t):
        action = ask(t)
        widths.append(algorithm.widths[0, 0])
        return action

    algorithm.ask = spy
    play(problem("rkhs-1d"), algorithm, seeds=1, horizon=20)
    assert widths[0] < widths[4] < widths[5] < widths[6]
    assert len(set(widths[6:])) == 1, "W + 1 observations"


def test_config_maximises_f_where_only_a_polished_point_is_allowed():
    """With few candidates and thin widths the allowed set lies between them; its best point is played."""
    algorithm = make("config", lam=0.05, beta=0.3, B="sup", G="sup")
    found = []
    ask = algorithm.ask

    def spy(t):
        action = ask(t)
        if algorithm.hidden[0]:
            point = algorithm.chosen[:, None]
            belief = algorithm.view(*algorithm.posterior.at(point), point)
            found.append((algorithm.achieved[0], algorithm.explore_f(belief.f)[0, 0], belief))
        return action

    algorithm.ask = spy
    play(problem("feasible-pocket", kernel="matern52", candidates=16), algorithm, seeds=1, horizon=80)
    assert found
    for achieved, upper, _ in found:
        assert achieved == pytest.approx(upper, abs=1e-3)


@pytest.mark.parametrize(
    ("task", "method"),
    [("feasible-pocket: {kernel: matern52}", "rpol-ucb"), ("feasible-pocket", "rpol-ucb: {lam: 1.0e-4}")],
)
def test_a_run_that_would_not_fit_into_memory_is_refused(task, method, tmp_path):
    import cbobench

    suite = tmp_path / "s.yaml"
    suite.write_text(
        f"suite: s\nhorizon: 50000\nseeds: 1\nproblems:\n  - {task}\nalgorithms:\n  - {method}\n",
        encoding="utf-8",
    )
    with pytest.raises(Misuse, match="GB per cell at T = 50,000"):
        cbobench.run(suite, out=tmp_path / "run", cpus=0)
    assert not (tmp_path / "run").exists()


def test_on_a_mesh_the_longest_run_fits_into_memory(tmp_path):
    from cbobench.suite.load import load
    from cbobench.sweep.blocks import memory_limit

    suite = tmp_path / "s.yaml"
    suite.write_text(
        "suite: s\nhorizon: 50000\nseeds: 1\nproblems:\n  - feasible-pocket\nalgorithms:\n  - rpol-ucb\n",
        encoding="utf-8",
    )
    assert memory_limit(load(suite), 1) == 50
