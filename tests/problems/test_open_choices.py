"""What Zhou & Ji leave open, each an option: every reading against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.problems.data import DataFolder
from cbobench.problems.tables.readings import normalised_covariance
from cbobench.problems.tables.recorded import LightSensors, Stocks
from cbobench.rng import generator
from tests.helpers import make, play, problem

# means 3 and 20, deviations 2 and sqrt(300), covariance 0
ROWS = np.array([[1.0, 10.0], [3.0, 40.0], [5.0, 10.0]])


def draw(task, seeds=range(4)):
    return task.draw([generator("instance", "p", s) for s in seeds])


@pytest.mark.parametrize(
    ("how", "scale"),
    [("z-score", (2, np.sqrt(300))), ("min-max", (4, 30)), ("max", (5, 40)), ("common", (40, 40))],
)
def test_covariance_of_normalised_readings_by_hand(how, scale):
    expected = np.diag([4 / scale[0] ** 2, 300 / scale[1] ** 2])
    np.testing.assert_allclose(normalised_covariance(ROWS, how, "rows"), expected, atol=1e-16)
    unit = normalised_covariance(ROWS, how, "rows", unit=True)
    np.testing.assert_allclose(unit, expected / expected.max(), atol=1e-16)
    assert unit.max() == 1


def test_readings_that_cannot_be_normalised_are_refused():
    with pytest.raises(Misuse, match="column 0 has no positive value, so normalise: max"):
        normalised_covariance(-ROWS, "max", "prices")
    with pytest.raises(Misuse, match="column 1 never changes"):
        normalised_covariance(np.array([[1.0, 2.0], [3.0, 2.0]]), "min-max", "prices")
    with pytest.raises(Misuse, match="normalise is 'range'"):
        problem("stocks", data="look-alike", normalise="range")


@pytest.mark.parametrize("name", ["light-sensors", "stocks"])
@pytest.mark.parametrize("how", ["min-max", "common"])
def test_kernels_of_the_look_alikes(name, how):
    plain, normalised = (
        problem(name, data="look-alike"),
        problem(name, data="look-alike", normalise=how),
    )
    rows = plain.table.rows
    np.testing.assert_array_equal(
        normalised.actions.covariance, normalised_covariance(rows, how, "rows")
    )
    np.testing.assert_array_equal(normalised.table.mean, plain.table.mean)
    assert 0 < normalised.actions.prior.max() < 1
    assert (
        problem(name, data="look-alike", normalise=how, unit_variance=True).actions.prior.max() == 1
    )


def test_recorded_readings(original_data):
    """Under `max` and `common` the sensor that varies most is a feasible one, so that round 1
    violates in no trial.
    """
    for how in ("max", "common"):
        light = LightSensors(normalise=how)
        light.prepare(DataFolder(original_data))
        widest = int(light.actions.prior.argmax())
        assert light.table.mean[widest] >= light.level
    for task in (LightSensors(), Stocks()):
        task.prepare(DataFolder(original_data))
        np.testing.assert_array_equal(task.actions.prior, np.ones(task.actions.n))


@pytest.mark.parametrize("h_of", ["norm", "sup", "max"])
def test_which_b_the_threshold_is_half_of(h_of):
    drawn = draw(problem("rkhs-1d", h=0.5, h_of=h_of))
    bound = {
        "norm": drawn.norm[:, 0],
        "sup": np.abs(drawn.f).max(axis=1),
        "max": drawn.f.max(axis=1),
    }[h_of]
    np.testing.assert_allclose(drawn.g[:, 0], 0.5 * bound[:, None] - drawn.f, rtol=0, atol=1e-15)


def test_one_function_for_all_trials():
    task = problem("rkhs-1d", instance="fixed")
    drawn, alone, numbered = (
        draw(task, range(5)),
        draw(task, [77]),
        draw(problem("rkhs-1d", instance=0), [3]),
    )
    for s in range(5):
        for name in ("f", "g", "norm", "noise", "seed_set"):
            np.testing.assert_array_equal(getattr(drawn, name)[s], getattr(alone, name)[0])
            np.testing.assert_array_equal(getattr(numbered, name)[0], getattr(alone, name)[0])
    _, block = play(task, make("random"), seeds=[4, 9], horizon=30)
    _, single = play(task, make("random"), seeds=[9], horizon=30)
    np.testing.assert_array_equal(block[0].observed_f[:, 1], single[0].observed_f[:, 0])
    f = drawn.f[0]
    noise = block[0].observed_f - f[block[0].actions]
    assert (noise[:, 0] != noise[:, 1]).all(), "the noise is each seed's own"


def test_supports_drawn_from_the_grid():
    task = problem("rkhs-1d", supports="uniform")
    drawn = draw(task, [5])
    gen = generator("instance", "p", 5)
    for _ in range(drawn.redraws[0] + 1):
        a, supports = gen.uniform(-1, 1, (1, 100))[0], gen.integers(100, size=(1, 100))[0]
    assert len(set(supports.tolist())) < 100
    x = np.linspace(0, 1, 100)
    f = sum(a[i] * np.exp(-((x - x[supports[i]]) ** 2) / (2 * 0.2**2)) for i in range(100))
    np.testing.assert_allclose(drawn.f[0], f, atol=1e-12)
    norm = np.sqrt(sum(a[i] * f[supports[i]] for i in range(100)))
    np.testing.assert_allclose(drawn.norm[0, 0], norm, rtol=1e-12)


def test_functions_in_units_of_their_largest_value():
    plain, scaled = (
        draw(problem("rkhs-1d", constraint="independent", scaled=on)) for on in (False, True)
    )
    np.testing.assert_allclose(scaled.sup, 1.0, rtol=1e-15)
    np.testing.assert_allclose(scaled.f, plain.f / plain.sup[:, :1], rtol=1e-14)
    np.testing.assert_allclose(scaled.g, plain.g / plain.sup[:, 1:, None], rtol=1e-14)
    np.testing.assert_allclose(scaled.norm, plain.norm / plain.sup, rtol=1e-14)
    half = draw(problem("rkhs-1d", h=0.5, h_of="sup", scaled=True))
    np.testing.assert_allclose(half.g[:, 0], 0.5 - half.f, atol=1e-15)


def test_functions_from_zero_to_one():
    task = problem("rkhs-1d", h=0.5, h_of="sup", scaled="min-max")
    scaled = draw(task)
    assert (scaled.f.min(axis=1), scaled.f.max(axis=1)) == (pytest.approx(0.0), pytest.approx(1.0))
    np.testing.assert_allclose(scaled.g[:, 0], 0.5 - scaled.f, atol=1e-14)
    np.testing.assert_allclose(
        scaled.norm[:, 0], [task.actions.norm(function) for function in scaled.f], rtol=1e-12
    )
    # seeds that are feasible both ways have one shape
    plain = draw(problem("rkhs-1d", h=0.01, h_of="sup"))
    same = [s for s in range(len(plain.f)) if scaled.redraws[s] == plain.redraws[s] == 0]
    low, high = plain.f.min(axis=1, keepdims=True), plain.f.max(axis=1, keepdims=True)
    assert same
    np.testing.assert_allclose(scaled.f[same], ((plain.f - low) / (high - low))[same], atol=1e-13)
