"""Chebyshev meshes: the kernel, and functions of its space with two derivatives, against
formulas.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbobench.gp.box_actions import Box, sobol
from cbobench.gp.jets import taylor
from cbobench.gp.kernels import SquaredExponential
from cbobench.gp.mesh import LARGEST, resolving

MESHES = [
    (1, 0.03),
    (1, 0.05),
    (1, 0.2),
    (1, 1.0),
    (1, 10.0),
    (2, 0.14),
    (2, 0.2),
    (2, 0.5),
    (2, 3.0),
]


def places(d, seed=0):
    """Random points, and on every side and in every corner, (q, d)."""
    rng = np.random.default_rng(seed)
    inside = rng.random((30, d))
    sides = [
        np.where(np.arange(d) == axis, end, rng.random(d))
        for axis in range(d)
        for end in (0.0, 1.0)
    ]
    return np.concatenate(
        [inside, sides, list(itertools.product((0.0, 1.0), repeat=d)), np.full((1, d), 0.5)]
    )


def resolve_mesh(d, lengthscale):
    mesh = resolving(d, lengthscale)
    assert mesh is not None
    return mesh


@pytest.mark.parametrize(("d", "lengthscale"), MESHES)
def test_products_of_features_are_the_kernel(d, lengthscale):
    mesh, at = resolve_mesh(d, lengthscale), places(d)
    phi = mesh.features(at)
    np.testing.assert_allclose(phi @ phi.T, SquaredExponential(lengthscale)(at, at), atol=1e-12)
    assert phi.shape[1] == len(mesh.pairs) <= mesh.factors.shape[1] ** d


@pytest.mark.parametrize(("d", "lengthscale"), MESHES)
def test_a_field_of_features_is_their_sum(d, lengthscale):
    mesh = resolve_mesh(d, lengthscale)
    weights = np.random.default_rng(0).normal(size=(3, len(mesh.pairs)))
    fields = weights @ mesh.features(mesh.points).T
    np.testing.assert_allclose(mesh.spread(weights), fields, atol=1e-11)
    at = places(d)
    values = mesh.values(fields[:, None], np.stack([at] * 3))[:, 0]
    np.testing.assert_allclose(values, weights @ mesh.features(at).T, atol=1e-11)


def a_function(d, lengthscale, at, squared):
    """A sum of kernel functions, and of products of two (as in a variance): values, slopes and
    bends at (q, d).
    """
    rng = np.random.default_rng(1)
    centres, second_centres, weights = rng.random((12, d)), rng.random((12, d)), rng.normal(size=12)
    apart = at[:, None] - centres
    exponent, slope, bend = (apart**2).sum(2), -apart, -np.eye(d)
    if squared:
        apart = at[:, None] - second_centres
        exponent, slope, bend = exponent + (apart**2).sum(2), slope - apart, 2 * bend
    k = np.exp(-exponent / 2 / lengthscale**2) * weights
    slope = slope / lengthscale**2
    second = slope[..., :, None] * slope[..., None, :] + bend / lengthscale**2
    return k.sum(1), (k[..., None] * slope).sum(1), (k[..., None, None] * second).sum(1)


@pytest.mark.parametrize("squared", [False, True], ids=["mean", "variance"])
@pytest.mark.parametrize(("d", "lengthscale"), MESHES)
def test_values_slopes_and_bends_are_those_of_the_function(d, lengthscale, squared):
    mesh, at, layout = resolve_mesh(d, lengthscale), places(d), taylor(d)
    field = a_function(d, lengthscale, mesh.points, squared)[0]
    fields = np.stack([np.stack([field, 3 * field])] * 2)  # two replicates, two functions
    models = mesh.models(fields, np.stack([at, at[::-1]]))
    assert models.shape == (2, 2, len(at), 1 + d + d * (d + 1) // 2)
    np.testing.assert_allclose(
        models[1, 1, ::-1], 3 * models[0, 0], rtol=1e-9, atol=1e-6 / lengthscale**2
    )
    value, slope, bend = a_function(d, lengthscale, at, squared)
    model = models[0, 0]
    np.testing.assert_allclose(model[:, 0], value, atol=1e-11)
    np.testing.assert_allclose(layout.slopes(model), slope, atol=1e-8 / lengthscale)
    np.testing.assert_allclose(layout.bends(model), bend, atol=1e-6 / lengthscale**2)
    np.testing.assert_allclose(mesh.values(fields, np.stack([at, at]))[0, 0], value, atol=1e-11)


def test_where_no_mesh_resolves_there_is_none():
    assert resolving(3, 1.0) is None
    assert resolving(2, 0.1) is None
    assert resolving(1, 0.1) is not None
    assert resolving(1, 0.005) is None
    assert max(resolve_mesh(d, lengthscale).size for d, lengthscale in MESHES if d == 2) <= LARGEST
    for box in (
        Box(np.zeros(2), np.ones(2), "matern52", 0.2, 50),
        Box(np.zeros(2), np.ones(2), "se", 0.05, 50),
        Box(np.zeros(3), np.ones(3), "se", 0.2, 50),
    ):
        assert box.mesh is None
        np.testing.assert_array_equal(box.candidates, sobol(box.d, 50))
        assert not sobol(box.d, 50).flags.writeable, "others get the same set"


def test_a_box_with_a_mesh_has_its_points_as_candidates():
    asked_for_few, asked_for_many = (
        Box(np.zeros(2), np.full(2, 6.0), "se", 0.2, size) for size in (50, 5000)
    )
    np.testing.assert_array_equal(asked_for_few.candidates, asked_for_many.candidates)
    np.testing.assert_array_equal(asked_for_few.candidates, resolve_mesh(2, 0.2).points)
    assert asked_for_few.spacing == asked_for_many.spacing == resolve_mesh(2, 0.2).spacing
