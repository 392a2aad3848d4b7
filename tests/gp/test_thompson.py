"""Joint samples against dense posteriors: the root of their covariance, and who is left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from cbobench.errors import CellFailure
from cbobench.gp import thompson
from cbobench.gp.actions import Finite
from cbobench.gp.box_actions import Box
from cbobench.gp.kernels import kernel
from cbobench.gp.thompson import ThompsonModel, best_of, shortfall

LAMS = [0.05, 1e-6, "scaled", "theory"]
KINDS = [("box", "se"), ("box", "matern52"), ("finite", "matern52")]
COUNT = 30


class Told:
    """A model told of 30 points, and the same posterior by dense algebra."""

    def __init__(
        self, kind, name="se", lam="scaled", *, q=150, scaled=True, lengthscale=0.3, infeasible=0.0
    ):
        rng = np.random.default_rng(3)
        self.kernel = kernel(name, lengthscale)
        points = rng.random((COUNT + q, 3))
        if kind == "box":
            actions = Box(np.zeros(3), np.ones(3), name, lengthscale)
        else:
            actions = Finite(self.kernel(points, points), points)
        self.model = ThompsonModel(actions, 3, lam, 50, scaled)
        self.x, self.asked = points[:COUNT], points[COUNT:]
        x, y, z = self.x.T
        self.values = np.stack(
            [5 + 3 * np.sin(4 * x) - y, y - 0.7 + infeasible, np.cos(9 * z) * x - 0.1 + infeasible]
        )
        for i in range(COUNT):
            self.model.tell(self.x[[i]] if kind == "box" else np.array([i]), self.values[:, i])
        self.where = self.asked if kind == "box" else np.arange(COUNT, COUNT + q)
        f, *g = self.values
        self.centre = np.array([(f.min() + f.max()) / 2, 0.0, 0.0]) if scaled else np.zeros(3)
        self.amplitude = (
            np.array([np.ptp(f) / 4, *np.abs(g).max(axis=1) / 2]) if scaled else np.ones(3)
        )
        number = {"scaled": 0.01, "theory": 1 + 2 / 50}.get(lam, lam)
        self.noise = [
            number * (s**2 if lam == "scaled" and scaled else 1.0) for s in self.amplitude
        ]

    def dense(self, places, function):
        """Mean and covariance by the formula with kernel s² k, noise λ and prior mean c."""
        s, c = self.amplitude[function], self.centre[function]
        k = s**2 * self.kernel(places, self.x)
        gram = s**2 * self.kernel(self.x, self.x) + self.noise[function] * np.eye(COUNT)
        gain = np.linalg.solve(gram, k.T).T
        return c + gain @ (self.values[function] - c), s**2 * self.kernel(
            places, places
        ) - gain @ k.T


class Unit:
    """In place of a generator: one of all normals that are asked for is 1, the rest are 0."""

    def __init__(self, function=0, at=-1):
        self.function, self.at, self.before = function, at, 0

    def standard_normal(self, shape):
        normals = np.zeros(shape)
        if self.before <= self.at < self.before + shape[1]:
            normals[self.function, self.at - self.before] = 1.0
        self.before += shape[1]
        return normals


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_means_and_variances_are_those_of_a_gp_with_that_centre_and_amplitude(
    kind, name, lam, scaled
):
    learned = Told(kind, name, lam, scaled=scaled)
    mean, variance, *_ = learned.model.at(learned.where)
    for j in range(3):
        expected, covariance = learned.dense(learned.asked, j)
        square = learned.amplitude[j] ** 2
        np.testing.assert_allclose(mean[j], expected, atol=1e-6)
        np.testing.assert_allclose(
            variance[j % len(variance)] * square, covariance.diagonal(), atol=1e-7 * square
        )
        np.testing.assert_allclose(
            learned.model.played_means[j], learned.dense(learned.x, j)[0], atol=1e-6
        )


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize(("kind", "name"), KINDS)
@pytest.mark.slow
def test_the_root_of_a_sample_is_that_of_the_dense_covariance(kind, name, lam, monkeypatch):
    """With all actions drawn, in a fixed order, a sample is m + R z; unit vectors z show R, four
    blocks of columns.
    """
    monkeypatch.setattr(thompson, "BLOCK", 10)
    monkeypatch.setattr(thompson, "REACH", np.inf)
    monkeypatch.setattr(thompson, "shortfall", lambda mean, *_: np.arange(mean.shape[1]) % 7.0)
    learned = Told(kind, name, lam, q=36)
    order, centre = learned.model.sample(learned.where, Unit())
    assert sorted(order) == list(range(len(learned.asked)))
    for j in range(3):
        paths = np.stack(
            [learned.model.sample(learned.where, Unit(j, i))[1] for i in range(len(order))]
        )
        np.testing.assert_array_equal(
            np.delete(paths, j, axis=1), np.delete(paths * 0 + centre, j, axis=1)
        )
        root = (paths[:, j] - centre[j]).T
        expected, covariance = learned.dense(learned.asked[order], j)
        np.testing.assert_allclose(centre[j], expected, atol=1e-6)
        np.testing.assert_allclose(root @ root.T, covariance, atol=2e-7 * learned.amplitude[j] ** 2)


@pytest.mark.parametrize("infeasible", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(
    ("kind", "name", "lam"),
    [("box", "se", "scaled"), ("box", "se", 0.05), ("finite", "matern52", 0.05)],
)
def test_who_is_not_drawn_does_not_win(kind, name, lam, infeasible):
    """By the law of the others given what was drawn, dense: the chance that any of them wins is
    under 4e-8.
    """
    learned = Told(kind, name, lam, q=400, infeasible=infeasible)
    drawn_counts = []
    for seed in range(3):
        drawn, values = learned.model.sample(learned.where, np.random.default_rng(seed))
        assert len(set(drawn)) == len(drawn)
        undrawn = np.setdiff1d(np.arange(400), drawn)
        drawn_counts.append(len(drawn))
        goal = values[:, best_of(values)]
        violation = np.maximum(goal[1:], 0.0).sum()
        chance = np.ones(len(undrawn))
        for j in range(3):
            mean, covariance = learned.dense(learned.asked, j)
            among = covariance[np.ix_(drawn, drawn)] + thompson.JITTER * learned.amplitude[
                j
            ] ** 2 * np.eye(len(drawn))
            gain = np.linalg.solve(among, covariance[np.ix_(drawn, undrawn)]).T
            conditional_means = mean[undrawn] + gain @ (values[j] - mean[drawn])
            left = covariance.diagonal()[undrawn] - (gain * covariance[np.ix_(undrawn, drawn)]).sum(
                axis=1
            )
            deviation = np.sqrt(np.maximum(left, 0.0) + thompson.JITTER * learned.amplitude[j] ** 2)
            if j:
                chance *= norm.cdf((violation - conditional_means) / deviation)
            elif violation == 0:
                chance *= norm.sf((goal[0] - conditional_means) / deviation)
        assert chance.sum() < 400 * thompson.NEGLIGIBLE
    assert max(drawn_counts) < 400, "negative control: some are left out"
    assert np.mean(drawn_counts) < 300


def test_violations_that_add_up_to_more_than_the_goals_cannot_win():
    """Twenty constraints of which none alone is above the goal's violation: counted in a million
    draws.
    """
    rng = np.random.default_rng(0)
    mean, deviation = np.full((21, 3), 0.3), np.full((21, 3), 0.4)
    mean[:, 1], mean[:, 2] = 0.05, -1.0
    for limits, violation in ((2.0, lambda g: g), (np.expm1(2.0), np.log1p)):
        bound = np.exp(-shortfall(mean, deviation, None, np.full((20, 1), limits)) / 2)
        draws = mean[1:, :, None] + deviation[1:, :, None] * rng.standard_normal((20, 3, 50_000))
        wins = (violation(np.maximum(draws, 0.0)).sum(axis=0) < 2.0).mean(axis=1)
        assert (wins <= bound + 1e-3).all()
        assert bound[2] == 1.0
    bound = np.exp(-shortfall(mean, deviation, None, np.full((20, 1), 2.0)) / 2)
    assert bound[0] < 0.1


def test_the_best_point():
    values = np.array([[1.0, 3.0, 2.0], [-1.0, 0.1, 0.0]])
    assert best_of(values) == 2
    assert best_of(np.array([[1.0, 3.0], [0.2, 0.3], [0.2, 0.0]])) == 1, (
        "none feasible: least total violation"
    )
    assert best_of(np.array([[1.0, 3.0]])) == 1, "no constraints"


def test_a_lambda_that_is_lost_ends_the_cell():
    learned = Told("box", lam=0.05)
    model = ThompsonModel(learned.model.actions, 3, 1e-15, 200, scaled=False)

    def rounds():
        for i in range(100):
            model.tell(learned.asked[[i]] * 0.01, learned.values[:, i % 30])
            model.at(learned.asked)

    with pytest.raises(CellFailure, match="is lost in double precision"):
        rounds()
