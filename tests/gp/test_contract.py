"""Every posterior keeps the contract: the same questions, the same answers, and refusals where it
cannot answer.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import cbobench
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import kernel
from cbobench.gp.posteriors.features import FeaturePosterior, InterpolatedPosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from cbobench.gp.posteriors.separate import OwnNoise, SeparatePosterior

LAM, S, T = 0.05, 3, 20
POINTS = np.linspace(0, 1, 15)[:, None]
GRID = Finite(kernel("matern52", 0.3)(POINTS, POINTS), POINTS)
BOX = Box(np.zeros(2), np.ones(2), "se", 0.3, 16)


def make_posteriors(functions=2):
    """The representations of p functions on the grid, told of the same values: features,
    observations, separate.
    """
    posteriors = [
        FeaturePosterior(GRID.features, LAM, S, functions, GRID.covariance.diagonal()),
        ObservationPosterior(GRID, LAM, S, functions, 2 * T),
        SeparatePosterior([ObservationPosterior(GRID, LAM, S, 1, T) for _ in range(functions)]),
    ]
    rng = np.random.default_rng(0)
    for _ in range(T):
        played, values = rng.integers(GRID.n, size=S), rng.normal(size=(S, functions))
        for posterior in posteriors:
            posterior.update(played, values)
    return posteriors


def test_representations_agree():
    features, observations, separate = make_posteriors()
    places = np.array([[0, 3], [14, 3], [7, 7]])
    for posterior in (observations, separate):
        shared = posterior is observations
        for shared_moment, theirs in zip(features.at(places), posterior.at(places), strict=True):
            np.testing.assert_allclose(
                shared_moment
                if shared_moment.ndim == theirs.ndim
                else shared_moment[:, None].repeat(2, 1),
                theirs,
                atol=1e-8,
            )
        for s, j in ((0, 0), (2, 1)):
            columns = features.covariances(s, j, np.array([2, 9]))
            np.testing.assert_allclose(
                columns, posterior.covariances(s, j, np.array([2, 9])), atol=1e-8
            )
        np.testing.assert_allclose(
            features.gain if shared else features.gain[:, None].repeat(2, 1),
            posterior.gain,
            atol=1e-8,
        )


def test_what_a_representation_cannot_do_is_refused():
    features, observations, _ = make_posteriors()
    for refused in (
        lambda: features.jet(np.zeros((S, 1, 1))),
        lambda: features.at_observations(),
        lambda: observations.paths(np.zeros((S, 1, 1))),
    ):
        with pytest.raises(NotImplementedError, match="Posterior"):
            refused()


@pytest.mark.parametrize("make", [0, 1])
def test_some_replicates_only(make):
    """Conditioning a mask leaves the others as they were, to the bit, and does for the rest what an
    update does.
    """
    masked, unmasked = make_posteriors()[make], make_posteriors()[make]
    before = {name: getattr(masked, name).copy() for name in ("mean", "variance", "gain")}
    played, values, mask = np.array([1, 5, 9]), np.ones((S, 2)), np.array([True, False, True])
    masked.update_some(T + 1, played, values, mask)
    unmasked.update(played, values)
    for name, old in before.items():
        np.testing.assert_array_equal(getattr(masked, name)[~mask], old[~mask])
        np.testing.assert_array_equal(getattr(masked, name)[mask], getattr(unmasked, name)[mask])
        assert not np.array_equal(getattr(masked, name)[mask], old[mask])


@pytest.mark.parametrize("actions", [GRID, BOX], ids=["grid", "box"])
def test_noise_that_moves(actions):
    """After λ moved, per function and replicate, all is as if it had been so from the start; others
    keep their bits.
    """

    def make_posterior(lam, s=S):
        return OwnNoise([ObservationPosterior(actions, noise, s, 2, T) for noise in lam])

    rng = np.random.default_rng(1)
    moving, fresh = make_posterior([0.1, 0.1]), make_posterior([0.3, 0.02])
    for _ in range(11):
        played = rng.random((S, 2)) if actions is BOX else rng.integers(GRID.n, size=S)
        values = np.concatenate([rng.normal(size=(S, 2)), np.ones((S, 1))], axis=1)
        moving.update(played, values)
        fresh.update(played, values)
    unmoved = moving.mean[1].copy()
    moving.set_noise(np.array([[0.3, 0.02], [0.1, 0.1], [0.3, 0.02]]))
    np.testing.assert_array_equal(moving.mean[1], unmoved)
    for name in ("mean", "variance"):
        for s in (0, 2):
            np.testing.assert_allclose(getattr(moving, name)[s], getattr(fresh, name)[s], atol=1e-9)
    played = rng.random((S, 2)) if actions is BOX else rng.integers(GRID.n, size=S)
    for posterior in (moving, fresh):
        posterior.update(played, np.ones((S, 3)))
    np.testing.assert_allclose(
        moving.at_observations()[0][0], fresh.at_observations()[0][0], atol=1e-9
    )
    assert moving.mean.shape[1] == moving.functions == 4
    # the constant 1 beside every function
    np.testing.assert_allclose(moving.mean[:, 2:].max(), 1.0, atol=0.2)


def test_slots_that_hold_one_action_are_known():
    """Also where the question comes late, or an old observation left since it was last asked."""
    window = ObservationPosterior(GRID, LAM, 1, 1, 4)
    played_actions = [3, 5, 3, 3, 5, 7]
    for t, action in enumerate(played_actions, start=1):
        window.update(np.array([action]), np.array([[float(t)]]))
        if t in (2, 4, 6):
            mean, variance, held = window.at_observations()
            in_slots = window.points[0, : window.used, 0]
            assert held.all()
            for arm in set(in_slots):
                assert (
                    len(set(mean[0, 0, in_slots == arm]))
                    == len(set(variance[0, in_slots == arm]))
                    == 1
                )
            np.testing.assert_allclose(
                mean[0, 0], window.mean[0, 0, in_slots.astype(int)], atol=1e-9
            )


def test_no_code_asks_which_posterior_it_has():
    package = Path(cbobench.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"isinstance\([^)]*Posterior", text), path
        assert not re.search(
            r"posterior\w*\s*(?::|=.*->)\s*Any|def \w*posterior\w*\([^)]*\) -> Any", text
        ), path


MESH = Box(np.zeros(2), np.full(2, 6.0), "se", 0.3, 64)


@pytest.mark.parametrize(
    "build",
    [
        lambda s: InterpolatedPosterior(MESH, LAM, s, 2),
        lambda s: ObservationPosterior(
            Box(np.zeros(2), np.ones(2), "matern52", 0.2, 32), LAM, s, 2, 60
        ),
        lambda s: ObservationPosterior(MESH, 1e-6, s, 2, 60),
        lambda s: ObservationPosterior(MESH, 1e-6, s, 2, 16),
    ],
    ids=["mesh", "observations", "factor", "window"],
)
def test_a_block_changes_no_bit(build):
    """Of means, variances, gains and jets, also where a value is told late. On a finite set:
    test_posterior.py.
    """
    many, single = build(S), build(1)
    rng = np.random.default_rng(2)
    for t in range(1, 61):
        points, values = np.clip(rng.normal(0.4, 0.3, (S, 2)), 0, 1), rng.normal(size=(S, 2))
        many.update(points, values)
        single.update(points[1:2], values[1:2])
        if t == 9:
            many.reveal(1, t, points[1], 1, 0.7)
            single.reveal(0, t, points[1], 1, 0.7)
    places = rng.random((S, 7, 2))
    for ours, theirs in [
        *((getattr(many, name), getattr(single, name)) for name in ("mean", "variance", "gain")),
        *zip(many.at(places), single.at(places[1:2]), strict=True),
        *zip(many.at_observations(), single.at_observations(), strict=True),
        *(
            (getattr(many.jet(places), name), getattr(single.jet(places[1:2]), name))
            for name in ("mean", "variance")
        ),
    ]:
        np.testing.assert_array_equal(ours[1:2], theirs)
