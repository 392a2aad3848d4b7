"""What climbs on a box are made of: Taylor models, the quadratic subproblem, where they start; and
their bits.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp import maximise
from cbobench.gp.beliefs import Parts
from cbobench.gp.box_actions import Box
from cbobench.gp.jets import Jet, taylor
from cbobench.gp.maximise import Climbs, Starts, best_step
from cbobench.gp.posteriors.features import InterpolatedPosterior
from cbobench.gp.posteriors.observations import ObservationPosterior
from tests.gp.test_maximise import flat

RANDOM = np.random.default_rng


# Taylor models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_a_quadratic_is_reproduced(d):
    rng, layout = RANDOM(d), taylor(d)
    value, slope, bend = rng.normal(), rng.normal(size=d), rng.normal(size=(d, d))
    bend = bend + bend.T
    model = np.concatenate([[value], slope, bend[layout.rows, layout.columns]])
    assert len(model) == len(layout.steps) == 1 + d + d * (d + 1) // 2
    np.testing.assert_array_equal(layout.slopes(model), slope)
    np.testing.assert_array_equal(layout.bends(model), bend)
    around = (
        value
        + layout.steps @ slope
        + 0.5 * np.einsum("ni,ij,nj->n", layout.steps, bend, layout.steps)
    )
    np.testing.assert_allclose(model @ layout.values, around, rtol=0, atol=1e-15 * 8)
    np.testing.assert_allclose(layout.values @ layout.models, np.eye(len(model)), atol=1e-9)
    # rounding over the squared step
    np.testing.assert_allclose(around @ layout.models, model, rtol=0, atol=1e-6)


def test_differences_follow_a_score_that_changes_within_a_millionth_of_a_side():
    """Of log P(g <= 0) next to an observation: by hand, and missed by steps of the usual length."""
    from scipy.special import log_ndtr
    from scipy.stats import norm

    slope, deviation, z, layout = np.array([1.0, -0.5]), 1e-6, 0.7, taylor(2)
    model = np.concatenate([[z * deviation], slope, np.zeros(3)])
    jet = Jet(model[None, None, None], np.array([[[deviation**2, 0, 0, 0, 0, 0]]]))

    def score(mean, variance, points):
        return Parts.of(log_ndtr(-mean[:, 0] / np.sqrt(variance)))

    rate = norm.pdf(z) / norm.sf(z)
    bend = -(rate**2 - z * rate) * np.outer(slope, slope) / deviation**2
    expected = np.concatenate(
        [[norm.logsf(z)], -rate * slope / deviation, bend[layout.rows, layout.columns]]
    )
    surface = maximise.Surface(score, lambda *_: jet, 0.1)
    by_fineness = {
        fine: surface.model(np.full((1, 1, 2), 0.5), np.ones((1, 1)), fine)[1][0, 0, 0]
        for fine in (True, False)
    }
    np.testing.assert_allclose(by_fineness[True], expected, rtol=2e-3)
    assert (np.abs(by_fineness[False] / expected - 1)[1:3] > 0.5).all()


# The subproblem -----------------------------------------------------------------------------------


def climbs_at(points, models, multipliers, reach):
    """One climb of one replicate."""
    unit = np.ones((1, 1))
    points, models = np.array(points)[None, None], np.array(models)[None, None]
    return Climbs(
        points=points,
        best=points,
        value=0 * unit,
        earlier=unit[..., None],
        models=models,
        at_best=models,
        multipliers=np.array(multipliers, dtype=float)[None, None],
        reach=reach * unit,
        length=unit,
        patience=np.zeros((1, 1), dtype=int),
        done=np.zeros((1, 1), dtype=bool),
        least=0 * unit,
    )


def brute_force(slope, bend, kinked, a, price, low, high):
    """The maximum of slope.p + p.B.p / 2 - Σ price [kinked + a.p]⁺ over low <= p <= high, by SLSQP
    with slacks.
    """
    from scipy.optimize import minimize

    d, m = len(slope), len(kinked)

    def loss(z):
        return -(slope @ z[:d] + z[:d] @ bend @ z[:d] / 2 - price @ z[d:])

    rules = [{"type": "ineq", "fun": lambda z: z[d:] - kinked - a @ z[:d]}] if m else []
    bounds = [*zip(low, high, strict=True), *[(0, None)] * m]
    start = np.concatenate([np.zeros(d), np.maximum(kinked, 0)])
    optimum = minimize(
        loss, start, bounds=bounds, constraints=rules, method="SLSQP", options={"ftol": 1e-15}
    )
    return optimum.x[:d]


@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_the_step_solves_the_quadratic_programme(m, side, seed):
    """Of kinks that are straight, from points inside and on a side of the box, with room for the
    step.
    """
    rng, d, layout = RANDOM(seed), 3, taylor(3)
    root = rng.normal(size=(d, d))
    bend = -root @ root.T - np.eye(d)
    slope, a = 0.5 * rng.normal(size=d), rng.normal(size=(m, d))
    kinked, price = 0.1 * rng.normal(size=m), rng.uniform(0.1, 1.0, size=m)
    point = np.full(d, 0.5)
    if side:
        point[0], slope[0] = 0.0, -20.0  # held there, whatever the kinks want
    models = np.zeros((1 + m, len(layout.steps)))
    models[0, 1 : 1 + d], models[0, 1 + d :] = slope, bend[layout.rows, layout.columns]
    models[1:, 0], models[1:, 1 : 1 + d] = kinked, a
    climbs = climbs_at(point, models, np.zeros(m), 100.0)
    low, high = np.where(point <= 0, 0.0, -50.0), np.full(d, 50.0)
    truth = brute_force(slope, bend, kinked, a, price, low, high)
    for _ in range(40):  # the sweeps go on from the last multipliers, as they do in a climb
        step, climbs.multipliers = best_step(
            climbs, price[None], layout, np.zeros((1, 1), dtype=bool)
        )
    np.testing.assert_allclose(step[0, 0], truth, atol=1e-5)
    assert not side or step[0, 0, 0] == 0.0
    multipliers = climbs.multipliers[0, 0]
    assert (multipliers >= 0).all()
    assert (multipliers <= price).all()
    off = kinked + a @ truth
    np.testing.assert_allclose(multipliers[off > 1e-4], price[off > 1e-4], rtol=1e-9)
    np.testing.assert_allclose(multipliers[off < -1e-4], 0.0, atol=1e-12)


# Scores over posteriors ---------------------------------------------------------------------------

S = 3


def learned(kind, d, functions, rounds=25, replicates=S, which=slice(None)):
    """A posterior after some rounds, of some of three replicates."""
    box = Box(np.zeros(d), np.ones(d), "se" if kind in ("mesh", "exact") else kind, 0.4, 256)
    lam = 1e-6 if kind == "exact" else 0.05
    replicates = len(range(S)[which])
    posterior = (
        InterpolatedPosterior(box, lam, replicates, functions)
        if kind == "mesh"
        else ObservationPosterior(box, lam, replicates, functions, rounds)
    )
    rng = RANDOM(d)
    for _ in range(rounds):
        points = rng.random((S, d))
        centres = np.linspace(0.2, 0.8, functions)
        values = np.stack([np.cos(4 * (points - c)).sum(axis=1) for c in centres], axis=1) - 0.3
        posterior.update(points[which], values[which])
    return box, posterior


def penalised(mean, variance, points):
    """Optimistic f - Σ 2 [optimistic g]⁺."""
    width = 0.5 * np.sqrt(variance)
    smooth, kinked = mean[:, 0] + width, mean[:, 1:] - width[:, None]
    return Parts(smooth, kinked, np.full(kinked.shape[:2], 2.0))


def starts_of(box, posterior):
    def at(points):
        return penalised(*posterior.at(points), points)

    parts = penalised(posterior.mean, posterior.variance, None)
    chosen = np.full((len(posterior.mean), 1, box.d), 0.37)
    return np.concatenate([chosen, Starts(box)(parts, at, chosen)], axis=1), at


@pytest.mark.parametrize(
    ("kind", "d", "m"),
    [
        *(("matern52", d, m) for d, m in ((1, 0), (2, 1), (3, 6), (4, 0))),
        *(("mesh", d, m) for d, m in ((1, 2), (2, 0), (2, 6))),
        ("matern12", 2, 1),
        ("exact", 1, 1),
        ("exact", 2, 2),
    ],
)
def test_climbs_end_no_lower_than_the_best_start_inside_and_the_same_in_any_block(kind, d, m):
    box, many = learned(kind, d, 1 + m)
    block, at = starts_of(box, many)
    points, values = maximise.polish(maximise.Surface(penalised, many.jet, box.spacing), block)
    assert ((points >= 0) & (points <= 1)).all()
    best = values.max(axis=1)
    assert (best >= at(block).total().max(axis=1) - 1e-9).all()
    np.testing.assert_allclose(
        at(points).total()[values > -1e200], values[values > -1e200], atol=1e-6
    )
    dense = RANDOM(0).random((S, 10_000, d))
    dense[:, :4000] = np.clip(1.2 * dense[:, :4000] - 0.1, 0, 1)
    dense_best = np.concatenate(
        [at(part).total() for part in np.split(dense, 10, axis=1)], axis=1
    ).max(axis=1)
    assert (best >= dense_best - 1e-6).all()
    for s in range(S):
        _, single = learned(kind, d, 1 + m, which=slice(s, s + 1))
        alone, _ = starts_of(box, single)
        np.testing.assert_array_equal(block[s], alone[0])
        theirs, reached = maximise.polish(
            maximise.Surface(penalised, single.jet, box.spacing), alone
        )
        np.testing.assert_array_equal(points[s], theirs[0])
        np.testing.assert_array_equal(values[s], reached[0])


def test_a_curved_ridge_is_climbed_to_its_end():
    """Steps that are too long are taken back, and the next ones start from what was known there."""

    def scorer(mean, variance, points):
        x, y = points[..., 0] - 0.6, points[..., 1] - 0.5
        return Parts.of(-20 * (y - 4 * x**2) ** 2 - (x - 0.1) ** 2)

    for start in ([0.3, 0.9], [0.9, 0.3], [0.1, 0.1]):
        points, values = maximise.polish(maximise.Surface(scorer, flat, 0.1), np.array([[start]]))
        assert values.max() > -1e-5
        np.testing.assert_allclose(points[0, values[0].argmax()], [0.7, 0.54], atol=3e-3)
