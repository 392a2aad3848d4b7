"""The lock-step posterior against a dense solve, and its own laws."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp.actions import Finite
from cbobench.gp.kernels import kernel
from cbobench.gp.posteriors.features import FeaturePosterior
from tests.helpers import long, problem

GRID = np.linspace(0, 1, 100)[:, None]


def dense(covariance, lam, actions, values):
    """Posterior mean, covariance and information gain by one direct solve over the distinct actions
    played.
    """
    played, index, count = np.unique(actions, return_inverse=True, return_counts=True)
    averages = np.stack([np.bincount(index, v) / count for v in values.T], axis=1)
    gram = covariance[np.ix_(played, played)]
    inner = gram + np.diag(lam / count)
    solved = np.linalg.solve(inner, np.concatenate([averages, covariance[played]], axis=1))
    p = values.shape[1]
    mean = covariance[:, played] @ solved[:, :p]
    cov = covariance - covariance[:, played] @ solved[:, p:]
    root = np.sqrt(count)
    gain = 0.5 * np.linalg.slogdet(np.eye(len(played)) + root[:, None] * gram * root / lam)[1]
    return mean.T, cov, gain


def after(covariance, rounds, values, actions, lam):
    posterior = FeaturePosterior(
        Finite(covariance).features, lam, replicates=1, functions=values.shape[1]
    )
    for t in range(rounds):
        posterior.update(actions[t : t + 1], values[t : t + 1])
    return posterior


def check(posterior, covariance, lam, actions, values, scale):
    mean, cov, gain = dense(covariance, lam, actions, values)
    np.testing.assert_allclose(posterior.mean[0] / scale, mean / scale, atol=1e-8)
    np.testing.assert_allclose(posterior.variance[0], cov.diagonal(), atol=1e-8)
    np.testing.assert_allclose(
        posterior.covariances(0, 0, np.arange(len(posterior.prior))), cov, atol=1e-8
    )
    np.testing.assert_allclose(posterior.gain[0], gain, rtol=1e-8)


def covariances(name):
    if name in ("light-sensors", "stocks"):
        return problem(name, data="look-alike").actions.covariance
    return kernel(name, 0.2)(GRID, GRID)


def long_history(covariance, scale, rounds=100_000):
    """Plays as a bandit's: most on a few actions, some everywhere."""
    rng = np.random.default_rng(5)
    n = len(covariance)
    favourite = rng.integers(0, n, 3)
    actions = np.where(
        rng.random(rounds) < 0.9, favourite[rng.integers(0, 3, rounds)], rng.integers(0, n, rounds)
    )
    truth = scale * rng.standard_normal((n, 2))
    return actions, truth[actions] + scale * rng.standard_normal((rounds, 2))


@pytest.mark.parametrize("rounds", [2_000, *long(100_000)])
@pytest.mark.parametrize(
    ("name", "scale", "lam"),
    [("se", 1, 0.01), ("matern52", 1, 1.0), ("light-sensors", 500, 1.002), ("stocks", 100, 30.0)],
)
@pytest.mark.slow
def test_equals_a_dense_solve_after_many_rounds(name, scale, lam, rounds):
    covariance = covariances(name)
    actions, values = long_history(covariance, scale, rounds)
    check(after(covariance, rounds, values, actions, lam), covariance, lam, actions, values, scale)


def worst_z(samples, cov):
    """Largest standardised deviation of the sample moments (N, n) from mean 0 and covariance
    `cov`.
    """
    count = len(samples)
    spread = cov.diagonal()
    mean_z = samples.mean(axis=0) / np.sqrt(spread / count)
    expected_error = np.sqrt((np.outer(spread, spread) + cov**2) / count)
    cov_z = (samples.T @ samples / count - cov) / expected_error
    return max(np.abs(mean_z).max(), np.abs(cov_z).max())


@pytest.mark.slow
def test_joint_samples_have_the_posterior_moments():
    covariance = covariances("se")
    rng = np.random.default_rng(4)
    actions, values = rng.integers(0, 60, 40), rng.standard_normal((40, 1))
    posterior = after(covariance, 40, values, actions, 1.0)
    z = rng.standard_normal((1, 40_000, posterior.rank))
    samples = posterior.paths(z)[0]
    cov = posterior.covariances(0, 0, np.arange(len(posterior.prior)))
    limit = 6.0  # about 10,000 statistics: the largest is near 4 when all is well
    assert worst_z(samples, cov) < limit
    independent = rng.standard_normal(samples.shape) * np.sqrt(cov.diagonal())
    assert worst_z(independent, cov) > 10 * limit, (
        "negative control: samples that are independent per arm must fail"
    )
