"""Constraints that say only yes or no: the classifier against SciPy, quadrature and finite
differences, and when functions are classes.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import multivariate_normal

from cbobench.gp.classes import FEWEST, ClassDensity, are_classes, are_silent, find_mode, fit_class
from cbobench.gp.kernels import Matern
from cbobench.gp.posteriors.fitted import FittedPosterior
from tests.gp.test_fitted import BOX
from tests.helpers import long

KERNEL = Matern(2.5, 1.0)


def labelled(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).random((n, 3))
    return x, np.where(x[:, 0] + 0.5 * x[:, 1] > 0.8, 1.0, -1.0)


@pytest.mark.parametrize("scale", [2.0, 80.0, 1e4])
def test_the_mode_is_where_scipy_finds_the_most_probable_latent_values(scale):
    x, signs = labelled(12)
    covariance = scale * KERNEL(x / 0.4, x / 0.4)
    mode = find_mode(covariance, signs)
    root = np.linalg.cholesky(covariance)

    def cost(v):
        return 0.5 * v @ v - log_ndtr(signs * (root @ v)).sum()

    best = minimize(cost, np.zeros(12), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(mode.latent, root @ best.x, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(covariance @ mode.weights, mode.latent, rtol=1e-6)
    np.testing.assert_allclose(mode.weights, mode.slopes, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("signs", [(1.0, 1.0), (1.0, -1.0)])
def test_the_evidence_is_that_of_quadrature_but_for_laplaces_error(signs):
    covariance = np.array([[1.2, 0.5], [0.5, 0.8]])
    law = multivariate_normal(np.zeros(2), covariance)

    def joint(b, a):
        return law.pdf([a, b]) * ndtr(signs[0] * a) * ndtr(signs[1] * b)

    exact = dblquad(joint, -9, 9, -9, 9, epsabs=1e-7)[0]
    assert find_mode(covariance, np.array(signs)).evidence == pytest.approx(np.log(exact), abs=0.03)


@pytest.mark.parametrize("logs", [(-0.5, 0.3, 1.0, 4.6), (-1.0, -0.3, 2.0, 9.0), (1.0, 0, 0, 1.0)])
def test_slopes_of_the_evidence_are_those_of_differences(logs):
    density = ClassDensity(*labelled(20))
    row = np.zeros(1, dtype=np.intp)

    def cost(z):
        return density(z[None], row)[0][0]

    slope = density(np.array([logs]), row)[1][0]
    numeric = approx_fprime(np.array(logs), cost, 1e-5)
    np.testing.assert_allclose(slope, numeric, rtol=3e-3, atol=2e-3)


def test_a_fit_ends_where_no_other_hyperparameters_are_likelier():
    x, signs = labelled(25)
    density, fitted = ClassDensity(x, signs), fit_class(x, signs, None, True)
    rng = np.random.default_rng(1)
    logs = rng.uniform(density.lowest / 2, density.highest / 2, (100, 4))
    costs = density(logs, np.zeros(100, dtype=np.intp))[0]
    assert costs.min() > -fitted.evidence - 1e-3
    assert fitted.lengthscales[0] < fitted.lengthscales[2], "the third does nothing"


def classifier(replicates=1):
    posterior = FittedPosterior(BOX, replicates, 2)
    posterior.signed = np.array([False, True])
    return posterior


def told(posterior, x, values):
    """Tell points (n, S, d) and values (n, S) of a function beside an f."""
    for points, value in zip(x, values, strict=True):
        posterior.update(points, np.stack([points.sum(axis=1), value], axis=1))
    return posterior


def test_a_probability_is_that_given_where_the_class_was_drawn_from():
    """One observation of which one knows l + ε: the law of l beside it, by quadrature."""
    x, signs = labelled(FEWEST, 2)
    assert are_classes(signs)
    posterior = told(classifier(), x[:, None], signs[:, None])
    fitted = posterior.fits[0][1]
    scaled, beside = x / fitted.lengthscales, np.full((1, 3), 0.4) / fitted.lengthscales
    scale = fitted.amplitude**2
    covariance = scale * KERNEL(scaled, scaled)
    mode = find_mode(covariance, signs)
    pseudo = mode.latent + mode.weights
    joint = np.zeros((FEWEST + 1, FEWEST + 1))
    joint[1:, 1:] = covariance + np.eye(FEWEST)
    joint[0, 1:] = joint[1:, 0] = scale * KERNEL(beside, scaled)[0]
    joint[0, 0] = scale
    law = multivariate_normal(np.zeros(FEWEST + 1), joint)
    reach = 12 * fitted.amplitude
    below, whole = (
        quad(lambda a: law.pdf([a, *pseudo]), -reach, end, limit=400, points=[0.0])[0]
        for end in (0.0, reach)
    )
    mean, variance = (part[0, 1, 0] for part in posterior.at(np.full((1, 1, 3), 0.4)))
    assert ndtr(-mean / np.sqrt(variance)) == pytest.approx(below / whole, rel=1e-5)
    at_points = posterior.at_observations()[0][0, 1]
    np.testing.assert_allclose(at_points, mode.latent, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 1, -1, 1, -1], True),
        ([0, 5, 0, 5, 5], True),
        ([1, -1, 1, -1], False),  # too few to tell
        ([1, 1, 1, 1, 1], False),
        ([1, 2, 1, 2, 1], False),  # both infeasible
        ([-1, 0, 0, -1, 0], False),
        ([1, -1, 1, -1, 1, 0.5], False),
    ],
)
def test_which_values_are_classes(values, expected):
    assert are_classes(np.array(values, dtype=float)) is expected


@pytest.mark.parametrize("third_at", [8, *long(38)])
def test_a_third_value_makes_a_class_a_number_for_good(third_at):
    x, signs = labelled(third_at + 3)
    posterior = told(classifier(), x[:third_at, None], signs[:third_at, None])
    assert posterior.classes[0, 1]
    later = np.full(3, 0.25)
    told(posterior, x[third_at:, None], later[:, None])
    assert not posterior.classes.any()
    np.testing.assert_array_equal(posterior.values[0, 1], [*signs[:third_at], *later])
    plain = FittedPosterior(BOX, 1, 2)
    told(plain, x[:, None], np.concatenate([signs[:third_at], later])[:, None])
    mean, other = (p.at(x[None])[0] for p in (posterior, plain))
    np.testing.assert_allclose(mean[:, 0], other[:, 0], rtol=1e-6)
    np.testing.assert_allclose(mean[0, 1, -3:], 0.25, atol=0.2)


def test_classes_and_numbers_keep_their_bits_in_any_block():
    n = 21  # between two fits
    x = np.random.default_rng(3).random((n, 3, 3))
    numbers = x[..., 0] - 0.5
    values = np.where(numbers > 0, 1.0, -1.0)
    values[:, 1] = numbers[:, 1]
    values[-2:, 2] = 0.5  # switches between two fits
    block = told(classifier(3), x, values)
    assert block.classes[:, 1].tolist() == [True, False, False]
    for s in range(3):
        alone = told(classifier(), x[:, [s]], values[:, [s]])
        for name in ("mean", "variance", "gain"):
            np.testing.assert_array_equal(getattr(block, name)[s], getattr(alone, name)[0])
    plain = told(FittedPosterior(BOX, 1, 2), x[:, [1]], values[:, [1]])
    np.testing.assert_array_equal(plain.mean[0], block.mean[1])


def test_labels_flipped_by_chance_make_the_boundary_soft():
    x = np.random.default_rng(4).random((60, 3))
    truth = np.where(x[:, 0] > 0.5, 1.0, -1.0)
    flipped = np.where(np.arange(60) % 6 == 0, -truth, truth)
    clean, noisy = (fit_class(x, values, None, True) for values in (truth, flipped))
    assert noisy.amplitude < 0.5 * clean.amplitude
    posterior = told(classifier(), x[:, None], flipped[:, None])
    corners = np.array([[[0.05, 0.5, 0.5], [0.95, 0.5, 0.5]]])
    low, high = posterior.at(corners)[0][0, 1]
    assert low < 0 < high


def test_a_constraint_that_was_never_feasible_is_silent_while_it_says_one_thing():
    values = np.array([[[2.0] * 6, [2.0] * 5 + [3.0], [-1.0] * 6]])
    assert are_silent(values).tolist() == [[True, False, False]]
    assert not are_silent(values[..., : FEWEST - 1]).any()
