"""Kernels against scikit-learn's, and features against the matrix they factor."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.gaussian_process.kernels import Matern as SkMatern

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.gp.kernels import IN_CACHE, check_covariance, covariances, kernel

LEFT = np.random.default_rng(0).random((7, 3))
RIGHT = np.random.default_rng(1).random((5, 3))


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("se", RBF(0.3)),
        ("matern12", SkMatern(0.3, nu=0.5)),
        ("matern32", SkMatern(0.3, nu=1.5)),
        ("matern52", SkMatern(0.3, nu=2.5)),
        ("linear", DotProduct(0.0)),
    ],
)
def test_kernel_equals_scikit_learn(name, reference):
    expected = reference(LEFT, RIGHT) / (3 if name == "linear" else 1)
    np.testing.assert_allclose(kernel(name, 0.3)(LEFT, RIGHT), expected, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 7, 20])
def test_covariances_of_many_points_have_the_bits_of_those_of_few(d):
    points = np.random.default_rng(d).random((IN_CACHE, d))
    many = covariances(kernel("matern52", 0.7), points[:2], points)
    few = covariances(kernel("matern52", 0.7), points[1:2], points)
    np.testing.assert_array_equal(many[1:], few)


@pytest.mark.parametrize("name", ["se", "matern12", "matern32", "matern52", "linear"])
def test_features_rebuild_the_covariance(name):
    points = np.linspace(0, 1, 60)[:, None]
    covariance = kernel(name, 0.2)(points, points)
    phi = Finite(covariance).features
    np.testing.assert_allclose(phi @ phi.T, covariance, atol=1e-12 * 60)
    assert phi.shape[1] == {"se": 19, "linear": 1}.get(name, 60)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "square"),
        (np.array([[1, np.nan], [0, 1]]), "missing"),
        (np.array([[1, 0.5], [0.2, 1]]), "not symmetric"),
        (np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]), "semi-definite"),
        (np.diag([1.0, 4.0]), "variance of 4"),
    ],
)
def test_wrong_covariance_is_refused(matrix, message):
    with pytest.raises(Misuse, match=message):
        check_covariance(matrix, "covariance")
