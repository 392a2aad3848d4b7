"""Feedback models: noise laws, full information, delays, functions that move."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import cbobench
from cbobench.errors import CellFailure, Misuse
from cbobench.problems.channels import noise_law
from cbobench.rng import Streams, generator
from tests.helpers import actions, long, make, play, play_here, problem


@pytest.mark.parametrize(
    ("law", "tail", "twin"),
    [
        ("gaussian", 3.0, stats.norm()),
        ("uniform", 3.0, stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))),
        ("student-t", 5.0, stats.t(5, scale=np.sqrt(3 / 5))),
        ("pareto", 4.0, stats.lomax(4, loc=-np.sqrt(0.5), scale=3 * np.sqrt(0.5))),
    ],
)
def test_noise_laws_are_standardised(law, tail, twin):
    """Against SciPy's distribution with mean 0 and variance 1; another law fails the same test."""
    drawn = noise_law(law, tail)(np.random.default_rng(0), (20_000,))
    assert twin.mean() == pytest.approx(0, abs=1e-9)
    assert twin.var() == pytest.approx(1)
    assert stats.kstest(drawn, twin.cdf).pvalue > 0.01
    other_law = noise_law("uniform" if law != "uniform" else "gaussian", tail)(
        np.random.default_rng(0), (20_000,)
    )
    assert stats.kstest(other_law, twin.cdf).pvalue < 1e-6


def channel_of(task, seeds=2):
    instances = task.draw([generator("x", s) for s in range(seeds)])
    return instances, task.feedback(instances, Streams([("feedback", s) for s in range(seeds)]))


@pytest.mark.parametrize("settings", [{"candidates": 64}, {"grid": 25}])
def test_what_is_shown_before_acting_is_what_is_told_afterwards(settings):
    task = problem("feasible-pocket", full_information=True, **settings)
    instances, channel = channel_of(task)
    noises = []
    for t in range(1, 20):
        preview = channel.before(t)
        if "grid" in settings:
            action = np.array([t, 2 * t])
            expected = preview(None)[np.arange(2), :, action]
        else:
            unit = np.random.default_rng(t).random((2, 1, 2))
            action = task.box.scale(unit[:, 0])
            expected = preview(unit)[:, :, 0]
        feedback = channel.at(t, action)
        np.testing.assert_allclose(feedback.g, expected, atol=1e-12)
        noises.append(feedback.g - instances.values(t, action[None])[0, :, 1:])
    assert np.std(noises) == pytest.approx(0.1, rel=0.5), "noise, and not the truth, is shown"


def test_delays_are_poisson_and_independent_and_lose_nothing():
    task = problem("feasible-pocket-delayed", candidates=64, delay=4.0)
    prompt = problem("feasible-pocket-delayed", candidates=64, delay=None)
    _, channel = channel_of(task)
    _, direct = channel_of(prompt)
    delays, rng, truth = [], np.random.default_rng(0), {}
    for t in range(1, 1101):
        point = task.box.scale(rng.random((2, 2)))
        if t <= 1000:
            prompt_feedback = direct.at(t, point)
            for s in range(2):
                truth[s, t, 0], truth[s, t, 1] = prompt_feedback.f[s], prompt_feedback.g[s, 0]
        feedback = channel.at(t, point)
        assert np.isnan(feedback.f).all()
        assert np.isnan(feedback.g).all()
        a = feedback.arrivals
        for s, r, j, value in zip(a.replicate, a.round, a.function, a.value, strict=True):
            if r <= 1000:
                assert truth.pop((s, r, j)) == value
                delays.append((s, r, j, t - r))
    assert not truth, "everything arrives, once"
    f, g = (np.array([d for _, _, j, d in sorted(delays) if j == function]) for function in (0, 1))
    late = np.concatenate([f, g])
    assert late.mean() == pytest.approx(4, abs=0.2)
    assert late.var() == pytest.approx(4, abs=0.5)
    assert abs(np.corrcoef(f, g)[0, 1]) < 0.08


def test_recorded_observations_are_null_until_told(tmp_path):
    suite = {
        "suite": "s", "horizon": 30, "seeds": 2, "record": "all",
        "problems": [{"feasible-pocket-delayed": {"candidates": 64, "delay": 3}}],
        "algorithms": [{"rpol-censored": {"B": "sup", "G": "sup"}}],
    }  # fmt: skip
    rounds = cbobench.load_rounds(play_here(suite, tmp_path / "run"))
    assert rounds["observed_f"].isna().mean() > 0.8
    assert rounds["action"].isna().all()
    assert np.stack(rounds["x"]).shape == (60, 2)
    assert rounds["regret_plus"].isna().all()
    assert rounds["regret"].notna().all()


def test_drift_has_a_dynamic_optimum():
    task = problem("feasible-pocket-drift", candidates=64, first_change=10, second_change=25)
    oracle, chunks = play(task, make("oracle"), seeds=2, horizon=40)
    assert np.abs(oracle.metrics.final["regret"]).max() < 1e-8
    assert not oracle.metrics.final["violation_hard"].any()
    played = actions(chunks)
    for before, after in ((9, 10), (24, 25)):  # counted from 0: rounds 10 | 11 and 25 | 26
        assert not np.allclose(played[before], played[after])
    np.testing.assert_array_equal(played[10], played[24])
    assert [when for when, _ in oracle.instances.changes()] == [10, 25]
    assert oracle.metrics.stars[0, 0] == pytest.approx(
        np.mean([-0.2532] * 10 + [0.6703] * 15 + [-0.6775] * 15), abs=1e-3
    )


def test_a_stored_optimum_that_is_beaten_is_an_error():
    task = problem("feasible-pocket", candidates=64)
    task.__class__ = type("Wrong", (type(task),), {"reference": replace(task.reference, f=-0.3)})
    with pytest.raises(CellFailure, match="beats the stored optimum -0.3"):
        play(task, make("oracle"), seeds=1, horizon=3)


REFUSED = [
    (
        "sgp-ucb",
        "feasible-pocket",
        "needs a finite action set and a safe seed set.*can play it: admmbo",
    ),
    ("scgp-ucb", "rkhs-1d", "needs full information of the constraints"),
    ("scbo", {"stocks": {"data": "look-alike"}}, "needs coordinates"),
    ("penalty-noisy", "feasible-pocket-delayed", "needs feedback at once.*rpol-censored"),
    ("stageopt", "feasible-pocket-drift", "a safe seed set"),
]


@pytest.mark.parametrize(("name", "task", "message"), REFUSED)
def test_pairs_that_cannot_be_played_are_refused_before_anything_runs(
    tmp_path, name, task, message
):
    suite = {"suite": "s", "horizon": 30, "seeds": 2, "problems": [task], "algorithms": [name]}
    with pytest.raises(Misuse, match=message):
        play_here(suite, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("horizon", [200, *long(3000)])
def test_no_constant_penalty_works(horizon):
    """Proposition 1: the violation of a constant multiplier grows linearly; that of methods which
    adapt it does not.
    """
    task = problem(
        "no-fixed-penalty", grid=81, noise_f=0.05, noise_g=0.0, penalty="exponential", kappa=1.0
    )
    same = {"beta": 1.0, "B": "sup", "G": "sup", "lam": 0.05}

    def exponent(algorithm):
        _, chunks = play(task, algorithm, seeds=3, horizon=horizon)
        violation = np.concatenate([c.metrics.values["violation"] for c in chunks]).mean(axis=1)
        t = np.arange(1, horizon + 1)
        late = t >= horizon // 10
        return np.polyfit(np.log(t[late]), np.log(np.maximum(violation[late], 1e-3)), 1)[0]

    constant = exponent(make("fixed-penalty", kappa=1.0, form="exponential", **same))
    adaptive = {
        "penalty-noiseless": exponent(make("penalty-noiseless", S=20, **same)),
        "ckb-ucb": exponent(make("ckb-ucb", **same)),
    }
    assert constant >= 0.95
    assert max(adaptive.values()) < 0.8, adaptive


@pytest.mark.parametrize("name", ["queue-stability", "expert-guidance"])
def test_without_full_information_nothing_is_shown(name):
    task = problem(name, full_information=False)
    assert problem(name).offers() - task.offers() == {"full information of the constraints"}
    assert channel_of(task)[1].before(1) is None
