"""Functions of the kernel's space on a box: norms, values and optima against other ways to them."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.gp.box_actions import sobol
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.rng import generator
from tests.helpers import problem


@pytest.fixture(scope="module")
def drawn():
    task = problem("rkhs-box", m=2)
    return task, task.draw([generator("rkhs-box", s) for s in range(2)])


def test_values_are_sums_of_kernel_sections(drawn):
    _, instances = drawn
    x = np.random.default_rng(0).random((5, 2, 2))
    values = instances.values(1, x)
    assert values.shape == (5, 2, 3)
    for s, sections in enumerate(instances.functions):
        for i in range(5):
            k = np.exp(-0.5 * ((x[i, s] - sections.supports) ** 2).sum(axis=1) / 0.2**2)
            np.testing.assert_allclose(values[i, s], k @ sections.weights, atol=1e-12)
            np.testing.assert_array_equal(
                values[i, s], sections(x[i, s]), err_msg="a point counts alone"
            )


def test_norms_are_exact_and_bound_every_interpolant(drawn):
    """The norm of the least function through many points grows to the norm from below."""
    task, instances = drawn
    x = sobol(2, 256)
    K = task.actions.kernel(x, x) + 1e-10 * np.eye(256)
    for s, sections in enumerate(instances.functions):
        y = sections(x)
        least = np.sqrt((y * np.linalg.solve(K, y)).sum(axis=0))
        assert (least <= instances.norm[s] * (1 + 1e-6)).all()
        np.testing.assert_allclose(least, instances.norm[s], rtol=0.02)


def test_the_optimum_is_feasible_and_no_dense_sample_is_better(drawn):
    _, instances = drawn
    np.testing.assert_allclose(
        instances.values(1, instances.points[None])[0, :, 0], instances.f_star, atol=1e-12
    )
    assert (instances.values(1, instances.points[None])[0, :, 1:] <= 0).all()
    for s, sections in enumerate(instances.functions):
        values = sections(np.random.default_rng(s).random((8_000, 2)))
        feasible = (values[:, 1:] <= 0).all(axis=1)
        best = values[feasible, 0].max()
        assert best <= instances.f_star[s] + 1e-9
        assert instances.f_star[s] - best < 0.05, "and one comes near"
        margin = min(1.0, -values[:, 1:].max(axis=1).min())
        assert margin - 1e-9 <= instances.slater[s] <= margin + 0.05


def test_a_seed_is_a_function_and_fixed_is_one_for_all(drawn):
    task, instances = drawn
    alone = task.draw([generator("rkhs-box", 1)])
    np.testing.assert_array_equal(alone.f_star, instances.f_star[1:])
    assert len(set(instances.f_star)) == 2
    fixed = problem("rkhs-box", instance="fixed").draw([generator("x", s) for s in range(2)])
    assert fixed.f_star[0] == fixed.f_star[1]


@pytest.mark.parametrize(
    "settings", [{"kernel": "matern12"}, {"d": 7}, {"lengthscale": 0.01}, {"supports": 0}]
)
def test_what_no_search_is_sure_of_is_refused(settings):
    with pytest.raises(Misuse, match=f"{next(iter(settings))} is "):
        build(PROBLEMS.get("rkhs-box"), settings)
