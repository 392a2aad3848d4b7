"""Fitted models: likelihood, slopes and posteriors against scikit-learn's, and the same bits in any
block.
"""

from __future__ import annotations

import math
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime, minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from cbobench.gp.box_actions import Box
from cbobench.gp.fit import EVERY, LEAST_NOISE, Fitted, Objective, descend, fit_all
from cbobench.gp.jets import taylor
from cbobench.gp.posteriors.fitted import FittedPosterior
from tests.helpers import fit, make, problem

BOX = Box(np.array([-1.0, 0.0, 2.0]), np.array([1.0, 5.0, 3.0]), "matern52", meshed=False, size=64)


def data(n: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    return x, 3 + 2 * np.sin(6 * x[:, 0]) + x[:, 1] ** 2 + 0.05 * rng.standard_normal(n)


def regressor(lengthscales, scale, noise):
    kernel = ConstantKernel(scale) * Matern(lengthscales, nu=2.5) + WhiteKernel(noise)
    return GaussianProcessRegressor(kernel, optimizer=None)


ALONE = np.zeros(1, dtype=np.intp)


class Density:
    """An `Objective` of one function, at hyperparameters (k,)."""

    def __init__(self, x, y, noise=None):
        self.batch = Objective(x, y[None], None if noise is None else np.array([noise]))
        self.bounds = list(zip(self.batch.lowest, self.batch.highest, strict=True))

    def __call__(self, logs):
        return tuple(part[0] for part in self.batch(np.array(logs)[None], ALONE))[:2]

    def centre(self, logs):
        return self.batch(logs[None], ALONE)[2][0]

    def read(self, logs):
        return tuple(part[0] for part in self.batch.read(logs[None], ALONE))


@pytest.mark.parametrize("known_noise", [None, 0.01])
def test_the_objective_is_scikit_learns_marginal_likelihood_and_the_priors(known_noise):
    x, y = data(25)
    y = (y - y.mean()) / y.std()
    objective = Density(x, y, known_noise)
    logs = np.array([-0.5, 0.3, 1.0, 0.4, -5.0])[: 4 if known_noise else 5]
    moved = logs + np.array([0.1, -0.4, 0.2, -0.3, 0.5])[: len(logs)]

    def expected(logs):
        lengthscales, scale, noise = objective.read(logs)
        model = regressor(lengthscales, scale, noise).fit(x, y - objective.centre(logs))
        of_lengths = stats.lognorm(math.sqrt(3), scale=math.exp(math.sqrt(2)) * math.sqrt(3))
        density = model.log_marginal_likelihood() + of_lengths.logpdf(lengthscales).sum()
        density += stats.norm().logpdf(logs[3])
        return density + (
            0.0 if known_noise else stats.lognorm(3, scale=math.exp(-9)).logpdf(noise)
        )

    value, slope = objective(logs)
    # Densities are known up to a constant.
    assert objective(moved)[0] - value == pytest.approx(expected(logs) - expected(moved), abs=1e-6)
    numeric = approx_fprime(logs, lambda z: objective(z)[0], 1e-6)
    np.testing.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-4)


def test_a_category_has_one_lengthscale_of_a_hamming_distance():
    rng = np.random.default_rng(2)
    codes, x = rng.integers([4, 3], size=(20, 2)), rng.random((20, 1))
    points = np.concatenate([np.eye(4)[codes[:, 0]], x, np.eye(3)[codes[:, 1]]], axis=1)
    y = rng.standard_normal(20)
    objective = Objective(points, y[None], None, np.array([0, 4, 5]))

    def expected(logs):
        # Two different choices of a category are as far apart as any other two.
        lengths, scale, noise = np.exp(logs[:3]), np.exp(logs[3]), np.exp(logs[4])
        differ = [codes[:, None, k] != codes[None, :, k] for k in (0, 1)]
        squared = 2 * differ[0] / lengths[0] ** 2 + 2 * differ[1] / lengths[2] ** 2
        squared += (x - x.T) ** 2 / lengths[1] ** 2
        a = np.sqrt(5 * squared)
        covariance = scale * (1 + a + a**2 / 3) * np.exp(-a) + noise * np.eye(20)
        centre = objective(logs[None], ALONE)[2][0]
        density = stats.multivariate_normal(np.full(20, centre), covariance).logpdf(y)
        mode = math.sqrt(2) + math.log(8) / 2  # the prior is of eight coordinates
        density += stats.lognorm(math.sqrt(3), scale=math.exp(mode)).logpdf(lengths).sum()
        density += stats.norm().logpdf(logs[3])
        return density + stats.lognorm(3, scale=math.exp(-9)).logpdf(noise)

    logs, moved = np.array([0.2, -0.5, 0.6, 0.4, -3.0]), np.array([-0.4, 0.1, 1.0, 0.1, -2.5])
    cost, other_cost = (objective(z[None], ALONE)[0][0] for z in (logs, moved))
    assert cost - other_cost == pytest.approx(expected(moved) - expected(logs), abs=1e-8)
    numeric = approx_fprime(logs, lambda z: objective(z[None], ALONE)[0][0], 1e-6)
    np.testing.assert_allclose(objective(logs[None], ALONE)[1][0], numeric, rtol=1e-4, atol=1e-4)
    (fitted,) = fit_all(points, y[None], [None], None, firsts=objective.firsts)
    np.testing.assert_array_equal(fitted.lengthscales[:4], fitted.lengthscales[0])
    np.testing.assert_array_equal(fitted.lengthscales[5:], fitted.lengthscales[5])


def test_a_fit_ends_where_no_slope_is_left_and_no_other_start_is_better():
    x, y = data(40)
    fitted = fit(x, y, None)
    objective = Density(x, (y - y.mean()) / y.std())
    best = objective.batch.of(fitted, y.std())
    value, slope = objective(best)
    low, high = np.array(objective.bounds).T
    free = (best > low + 1e-9) & (best < high - 1e-9)
    assert np.abs(slope[free]).max() < 0.2
    rng = np.random.default_rng(1)
    assert all(objective(rng.uniform(low / 2, high / 2))[0] > value - 1e-3 for _ in range(200))
    # the third one does nothing
    assert fitted.lengthscales[0] < fitted.lengthscales[1] < fitted.lengthscales[2]
    assert fitted.ratio * fitted.amplitude**2 == pytest.approx(0.05**2, rel=0.5)


def test_descents_end_as_low_as_scipys_and_alone_as_side_by_side():
    """48 descents beside L-BFGS-B with its own line search; each may end in another local optimum
    now and then.
    """
    behind = []
    for trial in range(12):
        x, first = data(20 + trial, seed=trial)
        y = np.stack(
            [
                first,
                np.sinh(first - 3),
                x.sum(axis=1),
                np.sin(20 * x[:, 1]),
                np.random.default_rng(trial).random(len(x)),
            ]
        )
        y = (y - y.mean(axis=1)[:, None]) / y.std(axis=1)[:, None]
        batch, rows = Objective(x, y, None), np.arange(4)
        starts = np.tile(batch.start(), (4, 1))
        ends, costs, *_ = descend(batch, starts, rows)
        np.testing.assert_array_equal(ends[2:], descend(batch, starts[2:], rows[2:])[0])
        for row, cost in enumerate(costs):
            density = Density(x, y[row])
            options = {"maxiter": 50, "ftol": 1e-5, "gtol": 1e-2}
            behind.append(
                cost
                - minimize(
                    density, starts[row], jac=True, bounds=density.bounds, options=options
                ).fun
            )
    assert np.median(np.abs(behind)) < 1e-3
    assert (np.array(behind) > 0.01).sum() <= 3
    assert np.sum(behind) < 1.0


def test_a_descent_that_knows_the_bends_of_the_last_fit_ends_as_low_and_sooner():
    evaluated, costs = [], []
    for trial in range(10):
        x, y = data(31, seed=trial)
        last = fit(x[:30], y[:30], None)
        objective = Objective(x, (y - y.mean())[None] / y.std(), None)
        start = objective.of(last, y.std())[None]
        for inverses in ([], [last.inverse]):
            counted = Mock(wraps=objective, lowest=objective.lowest, highest=objective.highest)
            costs.append(descend(counted, start, ALONE, inverses)[1][0])
            evaluated.append(counted.call_count)
    np.testing.assert_allclose(costs[1::2], costs[::2], atol=0.02)
    assert sum(evaluated[1::2]) < 0.8 * sum(evaluated[::2])


def test_a_fit_leaves_a_poor_local_optimum_that_the_last_one_ended_in():
    """A constraint of tension-spring by `cei`; from where the last fit was, L-BFGS ends 3.7 nats
    below.
    """
    x = [
        [0.74, 0.17, 0.96],
        [0.38, 0.62, 0.4],
        [0.07, 0.31, 0.63],
        [0.93, 0.86, 0.23],
        [0.81, 0.44, 0.3],
        [0.22, 0.79, 0.9],
        [0.0, 1.0, 0.0],
        [0.27, 0.49, 0.27],
        [0.24, 0.62, 0.15],
        [0.13, 0.86, 0.03],
        [0.12, 0.9, 0.0],
        [0.11, 0.94, 0.0],
        [0.08, 0.96, 0.0],
    ]
    y = np.array([0.29, 0.29, 0.28, 0.29, 0.29, 0.29, -3.46, 0.29, 0.29, 0.29, 0.29, 0.29, 0.27])
    before = Fitted(np.array([3.8, 0.025, 2.0]), 1.1, 1e-8, 0.0)
    objective = Density(np.array(x), (y - y.mean()) / y.std())
    reached = objective(objective.batch.of(fit(np.array(x), y, before), y.std()))[0]
    low, high = np.log([[0.05] * 3 + [0.1, 1e-8], [10.0] * 3 + [10.0, 0.5]])
    starts = np.random.default_rng(0).uniform(low, high, (50, 5))
    dense = [
        minimize(objective, z, jac=True, method="L-BFGS-B", bounds=objective.bounds).fun
        for z in starts
    ]
    assert reached < min(dense) + 0.01


def test_posteriors_are_scikit_learns_whatever_came_by_a_row_and_what_from_scratch():
    x, y = data(EVERY + 9)
    targets = np.stack([y, np.cos(4 * x[:, 2]) - 0.3], axis=1)
    posterior = FittedPosterior(BOX, 1, 2)
    for point, values in zip(x, targets, strict=True):
        posterior.update(point[None], values[None])
    assert posterior.fitted_at < posterior.count
    points = np.random.default_rng(5).random((50, 3))
    mean, variance = posterior.at(points[None])
    at_seen = posterior.at(x[None])
    for j, fitted in enumerate(posterior.fits[0]):
        scale = fitted.amplitude**2
        model = regressor(fitted.lengthscales, scale, fitted.ratio * scale).fit(
            x, targets[:, j] - fitted.centre
        )
        expected, deviation = model.predict(points, return_std=True)
        np.testing.assert_allclose(mean[0, j], expected + fitted.centre, rtol=1e-6, atol=1e-7)
        latent = deviation**2 - fitted.ratio * scale  # scikit-learn's includes the noise
        np.testing.assert_allclose(variance[0, j], latent, rtol=1e-4, atol=1e-7 * scale)
        joint = model.kernel_.k1(BOX.candidates) - model.kernel_.k1(
            BOX.candidates, x
        ) @ np.linalg.solve(model.kernel_(x), model.kernel_.k1(x, BOX.candidates))
        np.testing.assert_allclose(
            posterior.covariances(0, j, np.arange(64)), joint, atol=1e-6 * scale
        )
        roots = np.stack([posterior.paths(np.tile(z, (1, 2, 1)))[0, j] for z in np.eye(64)])
        np.testing.assert_allclose(roots.T @ roots, joint, atol=1e-5 * scale)
        gain = (
            0.5
            * np.linalg.slogdet(np.eye(len(x)) + model.kernel_.k1(x) / (fitted.ratio * scale))[1]
        )
        assert posterior.gain[0, j] == pytest.approx(gain, rel=1e-6)
        np.testing.assert_allclose(
            posterior.mean[0, j], posterior.at(BOX.candidates[None])[0][0, j], atol=1e-8
        )
    for moment, expected in zip(posterior.at_observations(), at_seen, strict=False):
        np.testing.assert_allclose(moment, expected, rtol=1e-5, atol=1e-8)


def test_the_lowest_value_stands_for_those_of_f_that_are_not_told():
    """In a block as alone; a replicate beside it that was told all keeps its bits."""
    x, f = data(EVERY + 9)
    told = np.stack([f, np.cos(4 * x[:, 2]) - 0.3], axis=1)
    partly = told.copy()
    partly[[0, 1, 5], 0] = np.nan
    block, first, second = (FittedPosterior(BOX, size, 2) for size in (2, 1, 1))
    for i, point in enumerate(x):
        block.update(np.tile(point, (2, 1)), np.stack([partly[i], told[i]]))
        first.update(point[None], partly[[i]])
        second.update(point[None], told[[i]])
        if i == 1:
            np.testing.assert_array_equal(first.observed[0, 0], 0.0)
    for s, alone in enumerate((first, second)):
        np.testing.assert_array_equal(block.mean[s], alone.mean[0])
        np.testing.assert_array_equal(block.observed[s], alone.observed[0])
    lowest = np.where(np.isnan(partly[:, 0]), np.nanmin(partly[:, 0]), f)
    np.testing.assert_array_equal(first.observed[0], [lowest, told[:, 1]])
    np.testing.assert_array_equal(second.observed[0], told.T)


def test_jets_are_the_posteriors_derivatives():
    x, y = data(20)
    posterior = FittedPosterior(BOX, 2, 1)
    for i in range(20):
        posterior.update(np.stack([x[i], 1 - x[i]]), np.array([[y[i]], [y[-i] ** 2]]))
    points = np.random.default_rng(2).uniform(0.1, 0.9, (2, 3, 3))
    jet, layout, h = posterior.jet(points), taylor(3), 1e-4
    for moments, expansion in zip(posterior.at(points), (jet.mean, jet.variance), strict=True):
        np.testing.assert_allclose(expansion[..., 0], moments, rtol=1e-9, atol=1e-12)
    for i in range(3):
        step = h * np.eye(3)[i]
        up, down = posterior.at(points + step), posterior.at(points - step)
        for which, expansion in enumerate((jet.mean, jet.variance)):
            np.testing.assert_allclose(
                expansion[..., 1 + i], (up[which] - down[which]) / (2 * h), rtol=1e-4, atol=1e-5
            )
            bend = (up[which] - 2 * expansion[..., 0] + down[which]) / h**2
            np.testing.assert_allclose(
                layout.bends(expansion)[..., i, i], bend, rtol=1e-2, atol=1e-3
            )


def test_the_floor_of_the_noise_is_in_standardised_units():
    """Not in units of s²: where a smooth function has a large s², λ is below the floor."""
    x = np.linspace(0, 1, 12)[:, None]
    for size in (1e-3, 1.0, 1e3):
        values = size * x[:, 0] ** 2
        for known_noise in (None, 0.0):
            fitted = fit(x, values, None, known_noise)
            noise = fitted.ratio * fitted.amplitude**2
            assert noise >= LEAST_NOISE * values.var() * (1 - 1e-9)
            assert fitted.ratio < LEAST_NOISE
        assert noise == pytest.approx(LEAST_NOISE * values.var()), (
            "a known variance of 0 is the floor"
        )


def test_values_that_are_all_the_same_or_of_any_size_are_fitted():
    x, y = data(9)
    assert np.isfinite(fit(x, np.zeros(9), None).amplitude)
    large, small = fit(x, 1e9 * y, None), fit(x, 1e-9 * y, None)
    np.testing.assert_allclose(large.lengthscales, small.lengthscales, rtol=1e-6)
    assert large.amplitude / small.amplitude == pytest.approx(1e18)
    twice = fit(np.concatenate([x, x]), np.concatenate([y, y + 0.1]), None)  # played twice
    assert isinstance(twice, Fitted)


@pytest.mark.parametrize(
    ("task", "wrong"),
    [
        (
            {"name": "stocks", "data": "look-alike"},
            "kernel is fit, but the actions have no coordinates",
        ),
        (
            {"name": "feasible-pocket-delayed", "grid": 9, "delay": 3.0},
            "kernel is fit, but feedback is delayed",
        ),
        ({"name": "rkhs", "d": 2, "n": 2304}, "sample paths of 2,304 actions"),
    ],
)
def test_what_cannot_be_fitted_is_refused(task, wrong):
    with pytest.raises(Exception, match=wrong):
        make("ckb-ts", kernel="fit").check(problem(**task))
