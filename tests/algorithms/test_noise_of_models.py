"""λ of the models: `lam: true` is the problem's own noise variance, function by function, in its units."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.params import resolve
from tests.helpers import actions, make, play, problem

ALIKE = problem("feasible-pocket", noise_f=0.2, noise_g=0.2)
APART = problem("gramacy", grid=8)


@pytest.mark.parametrize("name", ["cei", "scbo", "admmbo"])
@pytest.mark.parametrize("settings", [{"kernel": "given"}, {"kernel": "fit"}], ids=str)
def test_it_is_the_number_where_all_noise_is_alike(name, settings):
    told, number = ({**settings, "lam": lam} for lam in ("true", 0.2**2))
    one, other, third = (
        actions(play(ALIKE, make(name, **some), seeds=2, horizon=15)[1])
        for some in (told, number, {**settings, "lam": 2.0})
    )
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, third)


def test_every_function_has_its_own():
    task = problem("gramacy", grid=8, noise_f=0.3, noise_g=0.02)
    cells, chunks = play(task, make("ckb-ucb", lam="true", B="sup", G="sup"), seeds=2, horizon=12)
    assert cells.algorithm.posterior.noise_variance(1, 2) == pytest.approx(0.02**2)
    told = np.stack([chunks[0].observed_f, chunks[0].observed_g[..., 0], chunks[0].observed_g[..., 1]], axis=2)
    for j, noise in enumerate((0.3, 0.02, 0.02)):
        expected = ObservationPosterior(task.actions, noise**2, 2, 1, 12)
        for t in range(12):
            expected.update(chunks[0].actions[t], told[t][:, [j]])
        np.testing.assert_allclose(cells.algorithm.posterior.mean[:, j], expected.mean[:, 0], atol=1e-8)
        np.testing.assert_allclose(cells.algorithm.posterior.variance[:, j], expected.variance, atol=1e-8)


def test_without_noise_it_is_as_small_as_is_exact():
    task = problem("gramacy", grid=8, noise_f=0.0, noise_g=0.0)
    cells, _ = play(task, make("rpol-ucb", lam="true", B="sup", G="sup", beta=1.0), seeds=1, horizon=12)
    assert cells.algorithm.posterior.noise_variance(0, 0) == 1e-8


def test_yaml_says_true_for_the_word():
    for name in ("ckb-ucb", "cei", "scbo"):
        assert resolve(ALGORITHMS.get(name), {"lam": True})["lam"] == "true"
    assert resolve(ALGORITHMS.get("ckb-ucb"), {"R": True})["R"] == "true"
    with pytest.raises(Misuse, match="lam is False"):
        resolve(ALGORITHMS.get("cei"), {"lam": False})


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("ckb-ts", {}, "the method samples paths"),
        ("rpol-sw", {}, "a window holds all functions under one λ"),
        ("ckb-ucb", {"gain": "greedy"}, "gain is greedy"),
    ],
)
def test_where_models_share_a_covariance_it_is_refused(name, settings, why):
    with pytest.raises(Misuse, match=f"lam is true.*{why}.*allowed: theory, or a number"):
        make(name, lam="true", **settings).check(APART)


def test_under_delays_it_is_refused():
    task = problem("feasible-pocket-delayed", grid=9, delay=3.0)
    with pytest.raises(Misuse, match="but feedback is delayed"):
        make("ckb-ucb", lam="true").check(task)
