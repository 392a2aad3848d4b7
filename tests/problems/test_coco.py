"""COCO's constrained suite: values, optimum and errors, held against COCO's package itself."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.problems.formulas import coco as module
from cbobench.problems.formulas.coco import Coco, best_point, open_function
from tests.algorithms.test_contract import check_alone_as_in_a_block
from tests.helpers import prepare, problem

REASON = "pip install 'cbobench[coco]'"
ROOT = Path(__file__).parents[2]
# function, dimension, instance
SOME = [(1, 2, 1), (9, 5, 2), (21, 3, 4), (30, 10, 15), (54, 20, 3)]
# functions with every objective, and with every number of constraints
EACH = {1 + 6 * k + k % 6 for k in range(9)}
each_triple = pytest.mark.parametrize("triple", SOME)


def in_short(function, *case):
    """A case of a function, long where it is none of the few that have everything once."""
    return pytest.param(function, *case, marks=() if function in EACH else pytest.mark.long)


@pytest.fixture
def cocoex():
    return pytest.importorskip("cocoex", reason=REASON)


def opened(triple):
    return Coco(**dict(zip(("function", "dimension", "instance"), triple, strict=True)))


def points(d, count=50):
    return np.random.default_rng(d).uniform(-5, 5, (count, d))


def fresh(cocoex, triple):
    """The function from a suite, which nobody has evaluated."""
    suite = cocoex.Suite(
        "bbob-constrained", "", f"dimensions: {triple[1]} function_indices: {triple[0]}"
    )
    return suite.get_problem_by_function_dimension_instance(*triple)


@each_triple
def test_values_are_those_of_coco(cocoex, triple):
    task, direct = opened(triple), fresh(cocoex, triple)
    x = points(triple[1])
    values = task.formula(x)
    np.testing.assert_array_equal(
        values, [[-direct(point), *direct.constraint(point)] for point in x]
    )
    np.testing.assert_array_equal(task.formula(x.reshape(5, 10, -1)), values.reshape(5, 10, -1))
    np.testing.assert_array_equal([task.low, task.high], [direct.lower_bounds, direct.upper_bounds])
    assert task.constraints == direct.number_of_constraints == values.shape[1] - 1


@each_triple
def test_values_depend_on_the_point_alone(cocoex, triple):
    task, x = opened(triple), points(triple[1])
    values = task.formula(x)
    np.testing.assert_array_equal(task.formula(x[::-1])[::-1], values)
    with ThreadPoolExecutor(4) as pool:
        for part in pool.map(task.formula, [x] * 20):
            np.testing.assert_array_equal(part, values)
    open_function.cache_clear()
    np.testing.assert_array_equal(task.formula(x), values)
    copied = pickle.loads(pickle.dumps(task))  # noqa: S301 - what has just been pickled
    np.testing.assert_array_equal(copied.formula(x), values)


def test_another_process_gives_the_same_bits_and_no_file_is_written(cocoex, tmp_path):
    task = problem("coco", function=54, dimension=10)
    values = task.formula(points(10))
    (tmp_path / "in").write_bytes(pickle.dumps((task, points(10))))
    code = (
        "import pickle; task, x = pickle.load(open('in', 'rb')); "
        "print(task.formula(x).tobytes().hex())"
    )
    command, path = [sys.executable, "-c", code], {"PYTHONPATH": str(ROOT)}
    finished = subprocess.run(
        command, check=True, cwd=tmp_path, env=path, capture_output=True, text=True, timeout=120
    )
    assert finished.stdout.strip() == values.tobytes().hex()
    assert [file.name for file in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("function", "d", "instance"),
    [*(in_short(k, d, 1) for k in range(1, 55) for d in (2, 10)), *SOME],
)
def test_the_optimum_is_that_of_coco(cocoex, function, d, instance, tmp_path, monkeypatch):
    """COCO says that the final target, within 1e-8 of its best value, is hit there, and not beside
    it.
    """
    monkeypatch.chdir(tmp_path)
    triple = function, d, instance
    task, direct, unused = opened(triple), open_function(*triple), fresh(cocoex, triple)
    reference = task.reference
    best = np.array(reference.x)
    values = task.formula(best)
    assert values[0] == reference.f
    assert (values[1:] <= 0).all(), "without a tolerance"
    assert not any(tmp_path.iterdir())
    direct._best_parameter("print")
    np.testing.assert_allclose(np.loadtxt("._bbob_problem_best_parameter.txt"), best, atol=1e-15)
    unused(best + 1e-2 * (unused.initial_solution - best))
    assert not unused.final_target_hit
    unused(best)
    assert unused.final_target_hit
    active = [1, 2, 6, 6 + d // 2, 6 + d, 6 + 3 * d][(function - 1) % 6]
    assert ((values[1:] > -1e-9).sum(), task.m) == (active, active + active // 2)


@pytest.mark.parametrize("function", [*map(in_short, range(1, 55))])
def test_no_feasible_point_is_better_but_infeasible_ones_are(cocoex, function):
    task = Coco(function=function, dimension=2, instance=1 + function % 15)
    best = np.array(task.reference.x)
    gen = np.random.default_rng(function)
    near = best + gen.normal(size=(1000, 2)) * 10.0 ** gen.uniform(-6, 0, (1000, 1))
    values = task.formula(np.clip([*near, *points(2, 2000)], -5, 5))
    feasible = (values[:, 1:] <= 0).all(axis=1)
    assert 0 < feasible.sum() < len(values)
    assert values[feasible, 0].max() <= task.reference.f
    assert values[:, 0].max() > task.reference.f + 1e-6
    assert task.reference.binds is True


@pytest.mark.parametrize("settings", [{"function": 45, "dimension": 5}, {"grid": 30}])
def test_it_plays_the_same_alone_as_in_a_block(cocoex, settings):
    check_alone_as_in_a_block(problem("coco", **settings), "random", 20)


def test_regret_is_against_the_optimum_of_coco(cocoex):
    task = problem("coco", function=20, dimension=3, instance=2)
    drawn = task.draw([np.random.default_rng(0)])
    best = best_point(20, 3, 2)
    np.testing.assert_array_equal(drawn.best(1), [best])
    assert drawn.stars(1, 1)[0] == [[-fresh(cocoex, (20, 3, 2))(best)]]
    assert not drawn.noise.any()
    assert task.identity() == {"coco-experiment": cocoex.__version__}
    with pytest.raises(Misuse, match="no feasible action on a grid of 2 points"):
        problem("coco", function=4, grid=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"function": 55}, "function is 55; it must be at most 54"),
        ({"dimension": 4}, r"dimension is 4; allowed: 2 \| 3 \| 5 \| 10 \| 20 \| 40"),
    ],
)
def test_what_coco_does_not_have_is_refused(settings, message):
    with pytest.raises(Misuse, match=message):
        problem("coco", **settings)


def test_without_coco_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(
        Misuse,
        match=r"the package coco-experiment is not installed here; .*cbobench\[coco\]",
    ):
        prepare("coco")


def test_to_list_problems_needs_no_coco():
    code = (
        "import sys; sys.modules['cocoex'] = None; from cbobench.cli import main; "
        "sys.exit(main(['list', 'problems']))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "coco" in finished.stdout
