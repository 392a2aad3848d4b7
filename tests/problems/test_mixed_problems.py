"""The optima of mixed designs, derived again: every combination of whole numbers and choices that
could be as good, and SLSQP from several starts on the floats of each.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from cbobench.problems import PROBLEMS
from cbobench.problems.simulators.mixed import MixedDesign
from tests.helpers import make as make_method
from tests.helpers import play, problem

NAMES = [name for name in PROBLEMS.names() if issubclass(PROBLEMS.get(name), MixedDesign)]
PUBLISHED = {
    "mixed-vessel": "6059.714335",
    "mixed-reducer": "2994.471066",
    "coil-spring": "2.658559",
    "mixed-beam": "1.9553",
}
MOVED = {
    "mixed-vessel": [{"shell": 14}, {"radius": 42.1}],  # feasible and dearer; infeasible
    "mixed-reducer": [{"thick": 5.2867}],
    "coil-spring": [{"diameter": 1.2231}],
    "mixed-beam": [{"material": "brass"}],
    "milling": [{"feed": 0.399}],
    "reactor": [{"form": "tank"}],
    "exchanger": [{"baffles": 17}],
}
FEW = 512  # combinations that are all solved
SLACK = 0.02  # of constraints, in their units, in cells where they are no monotone functions
# parts of the range of each float in which bounds are taken, one after the other
PARTS = {"exchanger": (8, 32)}
STARTS = 2


def make(name):
    """The problem without its best point, which the search is not to know."""
    cls = PROBLEMS.get(name)
    return type(cls.__name__, (cls,), {"best_known": None})()


def names_of(problem, kind):
    return [name for name, declared in problem.inputs.items() if kind in declared]


def evaluate(problem, x):
    """-f and every g_j at inputs by name, which may be arrays, g_j in its unit."""
    values = problem.simulate(x, None)
    units = [1.0, *problem.units]
    oriented = [
        rule.sign * (values[rule.column] - rule.bound) / unit
        for rule, unit in zip(problem.rules, units, strict=True)
    ]
    return [-oriented[0], *oriented[1:]]


def cost_and_worst(problem, x):
    cost, *g = evaluate(problem, x)
    return cost, max(g)


def may_be_as_good(problem, choice, rows, parts, most):
    """Which rows of whole numbers have a part of the floats' box where the cost may be `most`.

    A function that is monotone in each float has its least value over a part at one of the corners.
    """
    floats = names_of(problem, "float")
    grids = np.meshgrid(
        *[np.linspace(*problem.inputs[name]["float"], parts + 1) for name in floats],
        indexing="ij",
        sparse=True,
    )
    columns = rows.T.reshape(rows.shape[1], -1, *[1] * len(floats))
    whole = dict(zip(names_of(problem, "int"), columns, strict=True))
    shape = (len(rows), *[parts + 1] * len(floats))
    limits = [most, *[SLACK] * problem.m]
    possible = True
    with np.errstate(all="ignore"):
        values = evaluate(problem, choice | whole | dict(zip(floats, grids, strict=True)))
    for value, limit in zip(values, limits, strict=True):
        least = np.broadcast_to(value, shape)
        for axis in range(1, len(shape)):
            first = [slice(None)] * len(shape)
            second = [slice(None)] * len(shape)
            first[axis], second[axis] = slice(-1), slice(1, None)
            least = np.minimum(least[tuple(first)], least[tuple(second)])
        possible = possible & (least <= limit)
    return possible.any(axis=tuple(range(1, len(shape))))


def combinations(problem, name, most):
    """The values of choices and whole numbers that may be as good as a cost of `most`."""
    choices = names_of(problem, "choice")
    whole = names_of(problem, "int")
    ranges = []
    for key in whole:
        low, high = problem.inputs[key]["int"]
        ranges.append(range(low, high + 1))
    rows = np.array(list(itertools.product(*ranges)))
    options = [problem.inputs[key]["choice"] for key in choices]
    is_small = len(rows) * np.prod([len(values) for values in options]) <= FEW
    for values in itertools.product(*options):
        choice = dict(zip(choices, values, strict=True))
        left = rows
        for parts in () if is_small else PARTS.get(name, (1, 8, 32)):
            left = left[may_be_as_good(problem, choice, left, parts, most)]
        for row in left.tolist():
            yield choice | dict(zip(whole, row, strict=True))


def solve(problem, fixed, scale):
    """The least cost over the floats that SLSQP finds, infinity if nothing is feasible."""
    floats = names_of(problem, "float")
    low, high = np.array([problem.inputs[name]["float"] for name in floats]).T

    def at(unit):
        x = low + np.clip(unit, 0, 1) * (high - low)
        return np.array(evaluate(problem, fixed | dict(zip(floats, x.tolist(), strict=True))))

    best = np.inf
    for start in np.random.default_rng(0).random((STARTS, len(floats))):
        found = minimize(
            lambda unit: at(unit)[0] / scale,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * len(floats),
            constraints={"type": "ineq", "fun": lambda unit: -at(unit)[1:]},
            options={"ftol": 1e-13, "maxiter": 200},
        )
        cost, *g = at(found.x)
        if max(g) <= 1e-8:
            best = min(best, cost)
    return best


def derive(problem, name):
    """The least cost, where what is stated serves to leave out what is certainly worse."""
    stated, _ = cost_and_worst(problem, PROBLEMS.get(name).best_known)
    most = stated + 1e-3 * abs(stated)
    return min(solve(problem, fixed, abs(stated)) for fixed in combinations(problem, name, most))


def is_optimum(problem, x, least):
    """Whether a point is feasible to the last bit, and its cost the least one to 1e-6."""
    cost, worst = cost_and_worst(problem, x)
    return worst <= 0 and cost == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stated_is_the_optimum_and_what_lies_beside_it_is_not(name):
    task, stated = make(name), PROBLEMS.get(name).best_known
    least = derive(task, name)
    assert is_optimum(task, stated, least)
    for moved in MOVED[name]:
        assert not is_optimum(task, stated | moved, least)
    assert cost_and_worst(task, stated)[1] > -1e-6, "a constraint binds"
    if name in PUBLISHED:
        digits = len(PUBLISHED[name].split(".")[1])
        assert f"{least:.{digits}f}" == PUBLISHED[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_stated_optimum_is_feasible_and_has_no_regret(name):
    cells, _ = play(problem(name), make_method("oracle"), seeds=2, horizon=2)
    np.testing.assert_array_equal(cells.metrics.final["regret"], 0)
    np.testing.assert_array_equal(cells.metrics.final["violations"], 0)


def test_regret_of_a_sample_is_against_the_optimum_that_it_leaves_out():
    task = problem("milling", configurations=64)
    assert "a known optimum" not in task.offers()
    assert "64 of the configurations of its inputs are played" in task.note()
    cells, _ = play(task, make_method("random"), seeds=2, horizon=40)
    final = cells.metrics.final
    assert (final["simple_regret"] > 0).all()
    np.testing.assert_allclose(final["simple_value"] + final["simple_regret"], -8.392855, atol=1e-6)
