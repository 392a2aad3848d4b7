"""Which constraints are modelled by their bilog: those whose density under that model is the higher
one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cbobench.gp.box_actions import Box
from cbobench.gp.fit import Objective, bilog, is_bilog_likelier
from cbobench.gp.kernels import Matern
from cbobench.gp.posteriors.fitted import FittedPosterior
from cbobench.gp.thompson import FittedThompson, best_of
from tests.helpers import fit

D = 4
BOX = Box(np.zeros(D), np.ones(D), "matern52", meshed=False, size=32)
UNDECIDED = np.array([False, True, True])


def points(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, D))


def smooth(x: np.ndarray) -> np.ndarray:
    """A sum of the inputs, whose bilog has a bend."""
    return 40 * (x.sum(axis=-1) - 2)


def heavy(x: np.ndarray) -> np.ndarray:
    """Smooth before it was blown up: its largest value is a thousand times its median."""
    return np.sinh(8 * np.sin(3 * x[..., 0]) + 4 * x[..., 1] - 6)


@pytest.mark.parametrize(("function", "by_bilog"), [(smooth, False), (heavy, True)])
def test_heavy_tails_are_pulled_in_and_a_slope_is_left_as_it_is(function, by_bilog):
    for seed in range(4):
        x, y = points(25, seed), function(points(25, seed))
        assert is_bilog_likelier(y, fit(x, y, None), fit(x, bilog(y), None)) == by_bilog


def test_densities_are_compared_in_the_units_of_the_observations():
    """Beside SciPy's density of the bilog: where it is modelled, values' densities are those times
    the slopes.
    """
    x, y = points(12), heavy(points(12))
    fitted = fit(x, bilog(y), None)
    covariance = fitted.amplitude**2 * Matern(2.5, 1.0)(
        x / fitted.lengthscales, x / fitted.lengthscales
    )
    covariance += fitted.ratio * fitted.amplitude**2 * np.eye(12)
    law = multivariate_normal(np.full(12, fitted.centre), covariance)
    standardised = Objective(x, ((bilog(y) - bilog(y).mean()) / bilog(y).std())[None], None)
    logs = standardised.of(fitted, float(bilog(y).std()))
    away = (logs - standardised.location) / standardised.width
    prior = -(0.5 * away**2 + standardised.density * logs).sum()
    assert fitted.evidence == pytest.approx(law.logpdf(bilog(y)) + prior, abs=1e-6)
    step = 1e-6 * (1 + np.abs(y))
    slopes = np.log((bilog(y + step) - bilog(y - step)) / (2 * step)).sum()
    plain = fit(x, y, None)
    for gap in (-0.1, 0.1):
        shifted = replace(plain, evidence=fitted.evidence + slopes + gap)
        assert is_bilog_likelier(y, shifted, fitted) == (gap < 0)
    # In other units of y only a constant is added, so that no choice between other models depends
    # on them.
    assert fit(x, 1e3 * bilog(y), None).evidence == pytest.approx(
        fitted.evidence - 12 * np.log(1e3), abs=1e-3
    )


def evaluate_functions(x: np.ndarray) -> np.ndarray:
    """f, a smooth constraint and one with heavy tails, (..., 3)."""
    return np.stack([np.sin(3 * x[..., 0]), smooth(x), heavy(x)], axis=-1)


def test_a_posterior_models_each_constraint_as_it_is_likelier_and_alike_in_any_block():
    x = np.stack([points(14, 1), points(14, 2)], axis=1)
    together, alone = (FittedPosterior(BOX, s, 3, undecided=UNDECIDED) for s in (2, 1))
    for point in x:
        together.update(point, evaluate_functions(point))
        alone.update(point[1:], evaluate_functions(point[1:]))
    assert together.pulled.tolist() == [[False, False, True]] * 2
    np.testing.assert_array_equal(together.mean[1:], alone.mean)
    np.testing.assert_array_equal(together.variance[1:], alone.variance)
    at_played = together.at_observations()[0]
    np.testing.assert_allclose(at_played[0, 1], smooth(x[:, 0]), atol=1.0)
    np.testing.assert_allclose(at_played[0, 2], bilog(heavy(x[:, 0])), atol=0.3)
    # A play under way is taken as observed at the model's own mean, in the model's units.
    centre = together.centre.copy()
    together.imagine(points(2, 3))
    np.testing.assert_array_equal(together.values[:, :, -1], centre)


def test_violations_are_added_in_one_unit_whatever_is_modelled():
    model = FittedThompson(BOX, 3, None, 20, undecided=UNDECIDED)
    for point in points(14, 1):
        model.tell(point[None], evaluate_functions(point))
    values = model.played_means
    expected = np.stack([values[0], bilog(values[1]), values[2]])
    np.testing.assert_array_equal(model.judged(values), expected)
    model.fitted.pulled[:] = False
    assert model.judged(values) is values, (
        "where none is modelled by its bilog, violations are as they are"
    )
    model.fitted.pulled[0, 2] = True
    # No value of a model at a violation V is above V in the units in which it is added up.
    np.testing.assert_allclose(bilog(model.limits(1.5)[:1]), 1.5)
    assert model.limits(1.5)[1] == 1.5
    # Dropping candidates that cannot win changes no law: the winner is a winner among all.
    candidates = points(300, 5)
    drawn, sample = model.sample(candidates, np.random.default_rng(0))
    assert len(drawn) < 300
    winner = drawn[best_of(model.judged(sample))]
    mean = model.judged(model.at(candidates)[0])
    assert np.maximum(mean[1:, winner], 0).sum() <= np.maximum(mean[1:], 0).sum(axis=0).min() + 1.0
