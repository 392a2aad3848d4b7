"""The held-out problems: formulas against pymoo's and scalar forms, optima searched and proven."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.cec2006 import HeldOut
from cbobench.problems.formulas.shapes import ISLANDS, PLANES, WEIGHTS
from tests.helpers import build_task
from tests.problems.derive_high_dimensional import evaluate, local

HELD_OUT = [n for n in PROBLEMS.names() if issubclass(PROBLEMS.get(n), HeldOut)]
CEC = [n for n in [*HELD_OUT, "cec-g2"] if n.startswith("cec-g")]
PUBLISHED = {  # costs of Liang et al. (2006), and of those who collect the others
    "cec-g1": -15.0,
    "cec-g2": -0.8036191042,
    "cec-g4": -30665.53867178,
    "cec-g6": -6961.81387558,
    "cec-g7": 24.30620906818,
    "cec-g8": -0.0958250415,
    "cec-g9": 680.630057374402,
    "cec-g10": 7049.24802052867,
    "cec-g12": -1.0,
    "cec-g16": -1.90515525853479,
    "cec-g18": -0.866025403784439,
    "cec-g19": 32.6555929502463,
    "cec-g24": -5.50801327159536,
    "mishra-bird": -106.7645367,
    "simionescu": -0.072,
    "townsend": -2.0239884,
}
# kinks, steps, and what is proven below
NOT_SMOOTH = {"cec-g10", "cec-g12", "four-islands", "yes-or-no"}
BETTER = {  # infeasible points with a higher f, of problems of which a sample sees little
    "cec-g1": (1.0,) * 9 + (100.0,) * 3 + (1.0,),
    "cec-g7": (2.0, 2.4, 10.0, 5.0, 1.0, 1.4, 1.3, 10.0, 9.0, 8.0),
    "cec-g9": (8.0, 8.0, 0.0, 10.0, 0.0, 1.0, 1.5),
    "cec-g10": (100.0, 1000.0, 1000.0) + (10.0,) * 5,
    "cec-g18": (10.0, -10.0, 10.0, 10.0, -10.0, 10.0, -10.0, 10.0, 0.0),
    "cec-g19": (0.0,) * 8 + (10.0, 10.0) + (0.0,) * 5,
}
CENTRES = {  # where the margin is as stated, of problems of which a sample sees no feasible point
    "cec-g10": (
        1e4,
        1e4,
        1e4,
        151.5022068137,
        244.2060630617,
        104.2918743304,
        163.0902248962,
        308.1545833477,
    ),
    "cec-g18": (
        -0.4176813,
        0,
        0.4176813,
        -0.7234452,
        -0.4176813,
        -0.7234452,
        0.4176813,
        0,
        0.7234452,
    ),
}


def draw_points(task, count=1000):
    return task.box.scale(np.random.default_rng(17).random((count, task.box.d)))


@pytest.mark.parametrize("name", HELD_OUT)
def test_the_stored_point_is_feasible_and_has_the_published_value(name):
    task = build_task(name)
    values = task.formula(np.array(task.reference.x))
    assert values[0] == task.reference.f
    assert values[1:].max() <= 0, "to the last bit"


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_optima_are_the_published_ones(name):
    reference = build_task(name).reference
    assert -reference.f == pytest.approx(PUBLISHED[name], rel=1e-7 if "-g" not in name else 1e-9)


@pytest.mark.parametrize("name", CEC)
def test_values_are_those_of_pymoo(name):
    """All values, whatever the order of the constraints; Keane's product is restated."""
    problems = pytest.importorskip("pymoo.problems.single.g")
    task, answers = build_task(name), {}
    points = np.concatenate([draw_points(task), np.array([task.reference.x])])
    getattr(problems, f"G{name[5:]}")()._evaluate(points, answers)
    f, ours = -np.asarray(answers["F"]).reshape(-1), task.formula(points)
    g = np.asarray(answers["G"])
    g = g.reshape(len(points), -1) if g.shape[0] == len(points) else g.T
    np.testing.assert_allclose(ours[:, 0], f, rtol=1e-12, atol=1e-13 * np.abs(f).max())
    if name == "cec-g2":
        np.testing.assert_array_equal(ours[:-1, 1:] <= 0, g[:-1] <= 0)
    else:
        size = 1e-13 * np.abs(g).max()
        np.testing.assert_allclose(np.sort(ours[:, 1:]), np.sort(g), rtol=1e-9, atol=size)


def bird(a, b):
    cost = math.sin(b) * math.exp((1 - math.cos(a)) ** 2) + (a - b) ** 2
    cost += math.cos(a) * math.exp((1 - math.sin(b)) ** 2)
    return -cost, (a + 5) ** 2 + (b + 5) ** 2 - 25


def flower(a, b):
    return -0.1 * a * b, a**2 + b**2 - (1 + 0.2 * math.cos(8 * math.atan(a / b))) ** 2


def heart(a, b):
    t = math.atan2(a, b)
    f = math.cos((a - 0.1) * b) ** 2 + a * math.sin(3 * a + b)
    p = 2 * math.cos(t) - math.cos(2 * t) / 2 - math.cos(3 * t) / 4 - math.cos(4 * t) / 8
    return f, a**2 + b**2 - p**2 - (2 * math.sin(t)) ** 2


def band(a, b, c):
    far = c - (0.5 + 0.3 * math.sin(2 * math.pi * a) * math.cos(2 * math.pi * b))
    return -(math.dist((a, b, c), (0.8, 0.3, 0.2)) ** 2), far - 0.005, -far - 0.005


def islands(a, b):
    return a + b, min(math.dist((a, b), (p, q)) ** 2 - r**2 for p, q, r in ISLANDS)


def verdicts(a, b):
    signs = (1 if math.hypot(a, b) > 0.8 else -1, 1 if b > 0.5 else -1)
    return -(math.dist((a, b), (0.9, 0.8)) ** 2), *signs


def planes(*x):
    g = []
    for j in range(1, 201):
        raw = [math.fmod(j * math.sqrt(p), 1) - 0.5 for p in (2, 3, 5, 7)]
        g.append(sum(r * v for r, v in zip(raw, x, strict=True)) / math.hypot(*raw) - 0.5)
    return -sum(i * (v - 1) ** 2 for i, v in enumerate(x, 1)), *g


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("mishra-bird", bird),
        ("simionescu", flower),
        ("townsend", heart),
        ("thin-band", band),
        ("four-islands", islands),
        ("yes-or-no", verdicts),
        ("two-hundred", planes),
    ],
)
def test_values_are_those_of_a_scalar_form(name, by_hand):
    task = build_task(name)
    points = draw_points(task, 200)
    expected = np.array([by_hand(*x) for x in points.tolist()])
    size = 1e-12 * np.abs(expected).max()
    np.testing.assert_allclose(task.formula(points), expected, rtol=1e-11, atol=size)


@pytest.mark.parametrize("name", ["simionescu", "townsend", "cec-g8"])
def test_formulas_are_defined_where_an_angle_or_a_quotient_is_not(name):
    task = build_task(name)
    with np.errstate(all="raise"):
        at, near = task.formula(np.array([[0.0, 0.0], [0.0, 1e-9]]))
    np.testing.assert_allclose(at[1:], near[1:], atol=1e-8)
    assert np.isfinite(at).all()


@pytest.mark.parametrize("name", [n for n in HELD_OUT if n not in NOT_SMOOTH])
def test_the_optimum_is_derived_again(name):
    """From near the reference, the best of a sample, and anywhere: the best end is it."""
    task, gen = build_task(name), np.random.default_rng(7)
    reference = task.reference
    sample = gen.random((2**13, task.box.d))
    values = evaluate(task, sample)
    order = np.argsort(np.where((values[:, 1:] <= 0).all(axis=1), -values[:, 0], np.inf))
    near = task.box.unit(np.array(reference.x)) + gen.normal(0, 0.01, (2, task.box.d))
    starts = [*near, *sample[order[:4]], *sample[:3]]
    ends = [local(task, u, rounds=3) for u in np.clip(starts, 1e-6, 1 - 1e-6)]
    f = [float(evaluate(task, u)[0]) for u in ends if u is not None]
    assert max(f) == pytest.approx(reference.f, rel=2e-8, abs=2e-8)


def test_the_heat_exchangers_by_elimination():
    """All six constraints of g10 are active, so two temperatures give the rest."""
    task = build_task("cec-g10")

    def cost(v):
        d, e = v
        return (833.33252 * d - 83333.333) / (300 - d) + 1250 * (e - d) / (400 - e) + 12500 - 25 * e

    options = {"xatol": 1e-9, "fatol": 1e-11}
    end = minimize(cost, (200.0, 300.0), method="Nelder-Mead", options=options)
    assert end.fun == pytest.approx(-task.reference.f, rel=1e-12)
    assert end.x == pytest.approx(task.reference.x[3:5], rel=1e-5)
    for start in draw_points(task, 4):  # SLSQP from anywhere is no better
        end = local(task, task.box.unit(start), rounds=3)
        assert end is None or evaluate(task, end)[0] <= task.reference.f * (1 - 1e-8)


def test_two_hundred_by_the_conditions_of_a_convex_problem():
    """The gradient of the cost is a nonnegative combination of those of the active constraints."""
    task = build_task("two-hundred")
    x = np.array(task.reference.x)
    active = task.formula(x)[1:] > -1e-9
    assert active.sum() == 3
    slope = 2 * WEIGHTS * (1 - x)
    multipliers, residual = nnls(PLANES[active].T, slope)
    assert multipliers.min() > 0
    assert residual < 1e-7 * np.linalg.norm(slope)


def test_closed_forms_by_dense_samples():
    angles = np.linspace(0, 2 * math.pi, 100_001)
    islands_task, steps = build_task("four-islands"), build_task("yes-or-no")
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    rims = np.concatenate([row[:2] + row[2] * (1 - 1e-12) * circle for row in ISLANDS])
    values = islands_task.formula(rims)
    assert (values[:, 1] <= 0).all()
    assert values[:, 0].max() == pytest.approx(islands_task.reference.f, abs=1e-9)
    # Along the two boundaries from inside: the disc's rim, and the line.
    disc = 0.8 * (1 - 1e-12) * circle
    line = np.stack([np.linspace(0, 1, 100_001), np.full(100_001, 0.5)], axis=-1)
    values = steps.formula(np.concatenate([disc[(disc >= 0).all(axis=1)], line]))
    assert set(np.unique(values[:, 1:])) == {-1.0, 1.0}
    best = values[(values[:, 1:] <= 0).all(axis=1), 0].max()
    assert best == pytest.approx(steps.reference.f, abs=2e-5)
    assert best <= steps.reference.f


def test_the_balls_are_the_nearest_of_729():
    task = build_task("cec-g12")
    axis = np.arange(1.0, 10.0)
    centres = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    points = draw_points(task, 200)
    far = ((points[:, None] - centres) ** 2).sum(axis=-1).min(axis=-1) - 1 / 16
    np.testing.assert_allclose(task.formula(points)[:, 1], far, atol=1e-12)
    assert task.reference.share == pytest.approx(729 * math.pi / 48 / 1000, abs=1e-5)


@pytest.mark.parametrize("name", sorted(BETTER))
def test_constraints_bind_where_no_sample_sees_it(name):
    task = build_task(name)
    f, *g = task.formula(np.array(BETTER[name]))
    assert f > task.reference.f
    assert max(g) > 0
    assert task.reference.binds


@pytest.mark.parametrize("name", sorted(CENTRES))
def test_margins_are_reached_where_no_sample_sees_it(name):
    task = build_task(name)
    margin = -task.formula(np.array(CENTRES[name], dtype=float))[1:].max()
    assert margin == pytest.approx(task.reference.slater, rel=1e-4)
