"""Formulas on a box: their optima are derived again, sampled for something better, and compared
with other packages.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import qmc

from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.box import BoxProblem, Reference
from cbobench.problems.formulas.cec2006 import HeldOut
from cbobench.problems.formulas.coco import Coco
from cbobench.problems.formulas.high_dimensional import HighDimensional
from cbobench.problems.formulas.literature import PublishedProblem
from tests.helpers import make, play, problem
from tests.problems.derive_high_dimensional import evaluate, local

# Values of the published problems at `points`, to twelve digits, as other packages compute them.
# Each function is of a package that has it right:
# - gramacy, hartmann-4: BoTorch 0.18.1, with the constants of opfunu 1.0.4 for six dimensions;
# - pressure-vessel: pymoo 0.6.2, in inches and without its divisors;
# - welded-beam: BoTorch, but least weld and buckling load from enoppy 0.1.1 (pdo_2022);
# - tension-spring: enoppy (rwco_2020);
# - speed-reducer: BoTorch's weight, constraints of enoppy (ihaoavoa_2022), the sixth of pdo_2022.
FROZEN = Path(__file__).parent / "literature_values.npz"


# Others: test_high_dimensional.py, test_coco.py, test_held_out.py.
ELSEWHERE = (HighDimensional, Coco, HeldOut)
BOXES = [
    n
    for n in PROBLEMS.names()
    if issubclass(c := PROBLEMS.get(n), BoxProblem) and not issubclass(c, ELSEWHERE)
]
CASES = {  # formula, box and what is claimed, of every phase
    name + (f", phase {k}" if name == "feasible-pocket-drift" else ""): SimpleNamespace(
        formula=formula, box=task.box, reference=reference
    )
    for name in BOXES
    for task in [build(PROBLEMS.get(name), {})]
    for k, (formula, reference) in enumerate(task.stated(), 1)
}
LITERATURE = [n for n in BOXES if issubclass(PROBLEMS.get(n), PublishedProblem)]
# to prepare
QUICK = {"gardner-1", "gramacy", "hartmann-4", "pressure-vessel", "ackley-10", "keane-10"}


def points(d):
    """The 1,000 points of the unit cube, the same for every problem in d dimensions."""
    return np.random.default_rng(20140601).random((1000, d))


@cache
def derived(name: str) -> float:
    """The best f that a multistart finds: from the best points of a sample, near the reference, and
    at random.
    """
    case = CASES[name]
    d = case.box.d
    gen = np.random.default_rng(7)
    sample = qmc.Sobol(d, scramble=False).random_base2(12)
    values = evaluate(case, sample)
    feasible = (values[:, 1:] <= 0).all(axis=1)
    best = sample[feasible][np.argsort(-values[feasible, 0])[:3]]
    near = case.box.unit(np.array(case.reference.x)) + gen.normal(0, 0.02, (2, d))
    ends = [
        local(case, u, rounds=3)
        for u in np.clip([*best, *near, *gen.random((3, d))], 1e-6, 1 - 1e-6)
    ]
    return max(float(evaluate(case, end)[0]) for end in ends if end is not None)


def is_derived(name: str, reference: Reference) -> bool:
    return abs(derived(name) - reference.f) <= reference.accuracy * (1 + abs(reference.f))


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_derived_again(name):
    case = CASES[name]
    x = np.array(case.reference.x)
    values = case.formula(x)
    assert values[0] == pytest.approx(case.reference.f, abs=1e-14, rel=1e-15)
    assert values[1:].max() <= (0.0 if name in LITERATURE else 1e-15), (
        "feasible; the pocket's closed form may round"
    )
    assert is_derived(name, case.reference)
    for sign in (-1, 1):  # negative control
        wrong = case.reference.f + sign * 10 * case.reference.accuracy * (1 + abs(case.reference.f))
        assert not is_derived(name, replace(case.reference, f=wrong))


def test_the_pocket_and_its_trap():
    case = CASES["feasible-pocket"]
    assert case.reference.x == pytest.approx((4.712, 1.253), abs=5e-4)
    assert case.reference.f == pytest.approx(-0.2532, abs=5e-5)
    assert case.reference.share == pytest.approx(0.0177, abs=5e-5)
    trap = minimize(
        lambda x: -case.formula(x)[0],
        (1.5, 4.7),
        bounds=[(0, 6)] * 2,
        constraints={"type": "ineq", "fun": lambda x: -case.formula(x)[1]},
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    assert trap.x == pytest.approx((np.pi / 2, np.pi + np.arcsin(0.95)), abs=1e-6), "the other lobe"
    assert -trap.fun == pytest.approx(-5.39, abs=5e-3)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((0, 0), (-1, 0.5)),
        ((np.pi / 2, 0), (0, -0.5)),
        ((0, np.pi), (1, -1.5)),
        ((np.pi / 2, np.pi / 2), (-1, -1.5)),
        ((np.pi, np.pi), (1, 0.5)),
        ((np.pi / 6, np.pi / 3), (-0.75, -0.5)),
        ((3 * np.pi / 2, 0), (2, -0.5)),
    ],
)
def test_gardner_by_hand(point, expected):
    """No package on PyPI has it: cost cos 2x cos y + sin x, constraint cos(x + y) <= 0.5."""
    case = CASES["gardner-1"]
    np.testing.assert_allclose(case.formula(np.array(point, dtype=float)), expected, atol=1e-14)


@pytest.mark.parametrize("name", sorted(set(LITERATURE) - {"gardner-1"}))
def test_values_are_those_of_other_packages(name):
    case = CASES[name]
    ours = evaluate(case, points(case.box.d))
    expected = np.load(FROZEN)[name]
    if name == "tension-spring":  # only ours is clipped
        expected[:, 2] = np.clip(expected[:, 2], -100, 100)
    size = np.abs(expected).max(axis=0) * 1e-13  # differences of large numbers cancel
    agrees = np.abs(ours - expected) <= 1e-11 * np.abs(expected) + size
    assert agrees.all(), f"the formula of {name} is wrong"
    # negative control
    assert (np.abs(1.0001 * ours - expected) > 1e-11 * np.abs(expected) + size).any(axis=0).all()


def test_the_springs_pole_is_clipped():
    values = CASES["tension-spring"].formula(
        np.array([[0.5, 0.5, 9.0], [0.5, 0.5 + 1e-9, 9.0], [0.5, 0.5 - 1e-9, 9.0]])
    )
    np.testing.assert_array_equal(values[:, 2], [100.0, 100.0, -100.0])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in QUICK else pytest.mark.long)
        for n in PROBLEMS.names()
        if issubclass(PROBLEMS.get(n), PublishedProblem)
    ],
)
def test_what_is_played_is_in_units_of_the_spread(name):
    """Scaled: mean 0 and deviation 1 over the box, the same feasible set, and a margin that some
    point has.
    """
    task, plain = problem(name, candidates=64), build(PROBLEMS.get(name), {})
    drawn = task.known_instance()
    u = np.minimum(qmc.Sobol(task.box.d, scramble=False).random_base2(13) + 0.5 / 2**13, 1)
    values, unscaled = drawn.values(1, task.box.scale(u)[None])[0], evaluate(plain, u)
    assert values[:, 0].mean() == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(values.std(axis=0), 1, rtol=1e-6)
    np.testing.assert_array_equal(values[:, 1:] <= 0, unscaled[:, 1:] <= 0)
    assert drawn.values(1, drawn.best(1)[None])[0, 0, 0] == pytest.approx(
        drawn.stars(1, 1)[0][0, 0], abs=1e-12
    )
    assert 0 < drawn.slater[0] <= 1
    assert np.isfinite(drawn.norm).all()
    cells, _ = play(task, make("oracle"), seeds=2, horizon=5)
    assert np.abs(cells.metrics.final["regret"]).max() < 1e-9
    assert cells.metrics.final["violations"].max() == 0
