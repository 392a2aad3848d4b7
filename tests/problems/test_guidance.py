"""Expert guidance: the closed form of MMD², its unbiased estimate, and what is shown before
acting.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.problems.rkhs.guidance import EXPERT, Policies
from cbobench.rng import Streams, generator
from tests.helpers import problem


def by_quadrature(mean, spread, bandwidth):
    """MMD² of two normal laws as a double integral on a fine grid."""
    y = np.linspace(-12, 12, 1201)

    def density(m, s):
        values = np.exp(-0.5 * ((y - m) / s) ** 2)
        return values / values.sum()

    difference = density(mean, spread) - density(*EXPERT)
    kernel = np.exp(-0.5 * ((y[:, None] - y) / bandwidth) ** 2)
    return difference @ kernel @ difference


@pytest.mark.parametrize("bandwidth", [0.5, 1.0])
def test_closed_form(bandwidth):
    mean, spread = np.array([0.4, -2.0, 1.5]), np.array([0.7, 0.3, 1.5])
    distances = Policies(mean, spread, bandwidth).distance()
    np.testing.assert_allclose(
        distances,
        [by_quadrature(m, s, bandwidth) for m, s in zip(mean, spread, strict=True)],
        atol=1e-9,
    )
    assert abs(distances[0]) < 1e-12, "the expert itself"


def test_the_estimate_is_the_sum_over_pairs():
    """Of a sample not with itself, which would be biased: the unbiased estimate of the closed
    form.
    """
    policies = Policies(np.array([0.3, -1.0]), np.array([0.5, 0.9]), 0.8)
    scenarios = generator("test", "one").standard_normal((2, 4))
    expert = EXPERT[0] + EXPERT[1] * scenarios[1]
    for i in range(2):
        sample = policies.mean[i] + policies.spread[i] * scenarios[0]

        def mean(left, right, apart):
            pairs = [
                (a, b)
                for j, a in enumerate(left)
                for k, b in enumerate(right)
                if not apart or j != k
            ]
            return np.mean([np.exp(-((a - b) ** 2) / (2 * 0.8**2)) for a, b in pairs])

        by_hand = (
            mean(sample, sample, True)
            + mean(expert, expert, True)
            - 2 * mean(sample, expert, False)
        )
        np.testing.assert_allclose(policies.estimate(scenarios)[i], by_hand)


def test_what_is_shown_is_what_is_told_and_does_not_depend_on_the_block():
    task = problem("expert-guidance")
    streams = [("test", s) for s in range(3)]
    drawn = task.draw([np.random.default_rng(s) for s in range(3)])
    single_draw = task.draw([np.random.default_rng(1)])
    channel, alone = (
        task.feedback(drawn, Streams(streams)),
        task.feedback(single_draw, Streams(streams[1:2])),
    )
    previews = []
    for t in range(1, 6):
        preview, played = channel.before(t)(None), np.array([0, 7 * t, 80])
        feedback = channel.at(t, played)
        np.testing.assert_array_equal(feedback.g[:, 0], preview[np.arange(3), 0, played])
        np.testing.assert_array_equal(alone.before(t)(None)[0], preview[1])
        np.testing.assert_array_equal(alone.at(t, played[1:2]).f[0], feedback.f[1])
        previews.append(preview)
    assert not np.array_equal(previews[0], previews[1]), "fresh samples each round"
    assert not np.array_equal(previews[0][0], previews[0][1]), "and for each replicate"


def test_the_noise_constant_is_the_spread_of_the_estimates():
    task = problem("expert-guidance")
    drawn = task.draw([np.random.default_rng(0)])
    channel = task.feedback(drawn, Streams([("test", 0)]))
    estimates = np.stack([channel.before(t)(None)[0, 0] for t in range(1, 301)])
    np.testing.assert_allclose(drawn.noise[0, 1], estimates.std(axis=0).max(), rtol=0.15)


def test_instances():
    task = problem("expert-guidance")
    drawn = task.draw([np.random.default_rng(s) for s in range(20)])
    assert np.isfinite(drawn.norm).all()
    assert (drawn.slater > 0.05).all()
    assert 0.1 < (drawn.g[0, 0] <= 0).mean() < 0.5
    binding = drawn.f.max(axis=1) > drawn.f_star
    assert binding.mean() > 0.5, "guidance costs reward in most draws"
    assert not np.array_equal(drawn.f[0], drawn.f[1])
    with pytest.raises(
        Misuse, match=r"tolerance is 0.0001; the nearest policy has an MMD² of 0.00"
    ):
        problem("expert-guidance", tolerance=1e-4)
