"""The feasibility tolerance: one rule at one door, so that values, optima, seed sets, metrics and
checks agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.gp.actions import Finite
from cbobench.params import build
from cbobench.play.recorder import Recorder
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Instances, Problem, choose_seed_set
from cbobench.problems.channels import AdditiveNoise
from cbobench.problems.formulas.applications import RateAllocation
from cbobench.problems.rkhs.functions import RKHS1D
from cbobench.problems.rkhs.pocket import DriftingPocket, FeasiblePocket
from cbobench.rng import Draws, standard_normal
from tests.helpers import make, play, prepare_class, problem


class Exact(RateAllocation):
    """Without a tolerance: what rounding does."""

    feasibility_tolerance = 0.0


def drawn(task):
    return task.draw([np.random.default_rng(s) for s in range(3)])


@pytest.mark.slow
def test_rounding_makes_no_point_of_the_budget_line_infeasible():
    """Which points keep the budget is decided in whole tenths: 2 a + 4 b + 8 c + 12 d <= 20."""
    settings = {"grid": 9, "seed_size": 10_000}
    task = problem("rate-allocation", **settings)
    rates = [
        [Fraction(x).limit_denominator(100) for x in point]
        for point in task.actions.points.tolist()
    ]
    tenths = np.array(
        [sum(w * x for w, x in zip((2, 4, 8, 12), point, strict=True)) for point in rates]
    )
    within_budget, line = tenths <= 20, tenths == 20
    strict = build(Exact, settings)
    strict.actions = task.actions  # a large covariance, made once
    tolerant, exact = (t.draw([np.random.default_rng(0)]) for t in (task, strict))
    np.testing.assert_array_equal((tolerant.g[0, 0] <= 0), within_budget)
    assert line.sum() == 120
    assert (exact.g[0, 0, line] > 0).sum() == 51, "negative control"
    assert (
        tolerant.f_star[0] == tolerant.f[0][within_budget].max() == pytest.approx(2.9130, abs=5e-5)
    )
    assert exact.f_star[0] == pytest.approx(2.8644, abs=5e-5)
    assert tolerant.f_plus[0] >= tolerant.f_star[0]
    np.testing.assert_array_equal(tolerant.seed_set[0], within_budget)
    assert (tolerant.seed_set[0] & ~exact.seed_set[0]).sum() == 51, (
        "safe methods may start wherever it is feasible"
    )
    assert line[tolerant.best(1)].all()
    metrics = Recorder(tolerant)
    metrics.add(np.tile(tolerant.best(1), (3, 1)))
    assert not any(
        metrics.final[name].any()
        for name in ("regret", "violations", "violation", "violation_hard")
    )
    metrics = Recorder(exact)
    metrics.add(np.tile(tolerant.best(1), (3, 1)))
    assert metrics.final["violations"] == 3, "negative control"


@dataclass(kw_only=True)
class Drifting(DriftingPocket):
    feasibility_tolerance = 0.01


@dataclass(kw_only=True)
class Pocket(FeasiblePocket):
    feasibility_tolerance = 0.01


@dataclass(kw_only=True)
class Random(RKHS1D):
    feasibility_tolerance = 0.01


@dataclass(kw_only=True)
class Own(Problem):
    """A problem of a user's own that knows nothing of the tolerance but to declare it."""

    feasibility_tolerance = 1e-6
    actions = Finite(np.eye(3), names=("good", "best", "bad"))
    constraints = 1

    def draw(self, generators):
        f = np.tile([0.0, 2.0, 3.0], (len(generators), 1))
        g = np.tile([-1.0, 1e-7, 0.5], (len(generators), 1, 1))
        ones = np.ones((len(generators), 2))
        return Instances(
            f,
            g,
            ones,
            ones,
            choose_seed_set(g, 2, generators),
        )

    def feedback(self, instances, streams):
        return AdditiveNoise(
            instances, instances.noise, Draws(streams.role("noise"), standard_normal, (2,))
        )


def test_a_problem_of_ones_own_only_declares_it():
    instances = drawn(build(Own, {}))
    assert instances.g[0, 0].tolist() == [-1.0, 0.0, 0.5]
    assert instances.f_star.tolist() == [2.0] * 3
    cells, _ = play(build(Own, {}), make("oracle"), seeds=2, horizon=4)
    assert not cells.metrics.final["violations"].any()
    assert not cells.metrics.final["regret"].any()


@pytest.mark.parametrize(
    ("cls", "settings"),
    [(Pocket, {}), (Pocket, {"grid": 40}), (Drifting, {}), (Drifting, {"grid": 40}), (Random, {})],
)
def test_every_family_obeys(cls, settings):
    task = prepare_class(cls, **settings)
    tolerant, before = drawn(task), drawn(build(cls.__mro__[1], settings))
    if isinstance(task.actions, Finite):
        points = np.tile(np.arange(task.actions.n)[None, :, None], (1, 1, 3))[0]
    else:
        points = task.box.grid.points[:, None].repeat(3, axis=1)
    ours, theirs = tolerant.values(1, points), before.values(1, points)
    close = (theirs[..., 1:] > 0) & (theirs[..., 1:] <= 0.01)
    assert close.any()
    assert not ours[..., 1:][close].any()
    np.testing.assert_array_equal(ours[..., 1:][~close], theirs[..., 1:][~close])
    np.testing.assert_array_equal(ours[..., 0], theirs[..., 0])
    np.testing.assert_array_equal(tolerant.stars(1, 1)[0] >= before.stars(1, 1)[0], True)


def test_all_others_have_none_and_their_draws_are_untouched():
    assert {n for n in PROBLEMS.names() if PROBLEMS.get(n).feasibility_tolerance} == {
        "rate-allocation"
    }
    g = np.array([1e-300, -1.0])
    assert build(RKHS1D, {}).settle(g) is g


@pytest.mark.parametrize("wrong", [-1e-12, np.inf, np.nan])
def test_a_tolerance_is_finite_and_not_negative(wrong):
    task = problem("rkhs-1d")
    task.feasibility_tolerance = wrong
    with pytest.raises(
        Misuse, match="feasibility_tolerance is .*; it must be at least 0 and finite"
    ):
        drawn(task)
