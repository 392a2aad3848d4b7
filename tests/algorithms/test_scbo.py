"""SCBO: the counters of its trust region by hand, what counts as success, and where its candidates
lie.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from cbobench.algorithms import scbo
from cbobench.algorithms.scbo import improves
from cbobench.errors import Misuse
from cbobench.gp.thompson import ThompsonMoments
from tests.algorithms.easy import GRID, on_box, started
from tests.helpers import make, problem, setting


def test_counters_by_hand():
    run = started("scbo", on_box(6), length=0.4, longest=1.0, successes=3, failures="theory")
    assert (run.patience, run.successes) == (6, 3)
    sides = []
    for success in (
        [True, True, False, True, True, True, True, True, True] + [False] * 6 + [False] * 5 + [True]
    ):
        run._adapt(success)
        sides.append(run.side)
    assert sides[:5] == [0.4] * 5, "a failure in between starts the count again"
    assert sides[5:9] == [0.8, 0.8, 0.8, 1.0], "doubled, and held at L_max"
    assert sides[9:15] == [1.0] * 5 + [0.5]
    assert sides[15:] == [0.5] * 6
    assert run.failed == 0


def test_restart_under_the_shortest_side():
    # with fitted noise all of it might be taken for noise
    settings = {"lam": 1e-4, "successes": 3, "failures": 4, "anew": "random"}
    run = started(
        "scbo",
        on_box(2, horizon=200),
        length=0.5,
        shortest=0.2,
        initial=3,
        candidates=16,
        **settings,
    )
    rng = np.random.default_rng(0)
    counts, sides = [], []
    for t in range(30):
        x = run.ask_one(t)
        run.tell_one(t, x, -float(t) + rng.normal(), np.array([-1.0]))  # ever worse: only failures
        counts.append(run.model.count)
        sides.append(run.side)
    assert run.patience == 4
    begin = [t for t, count in enumerate(counts) if count == 1]
    assert begin == [0, 11, 22], "3 random points, then twice 4 failures: 0.5, 0.25, 0.125 < 0.2"
    assert run.restarts == 2
    assert {sides[t] for t in begin} == {0.5}
    assert {sides[t] for t in range(7, 10)} == {0.25}


@pytest.mark.parametrize("name", ["scbo", "furbo"])
@pytest.mark.parametrize("place", ["box", "grid"])
def test_a_new_region_begins_where_least_was_played(name, place):
    """Its initial points by brute force; it knows what was played, and its centre is its own."""
    points = np.random.default_rng(1).random((60, 2))
    where = on_box(2) if place == "box" else setting(np.eye(60), points=points)
    short = {"initial": 3, "candidates": 50, "shortest": 0.3}
    run = started(name, where, **short)
    played, seen, new_points = [], 0, 0
    for t in range(24):
        rng = copy.deepcopy(run.generator)
        x = run.ask_one(t)
        unit = np.asarray(x) if place == "box" else run.model.cube.units[x]
        if run.restarts > seen:
            seen, own = run.restarts, []
            assert run.side == run.length
        if seen and len(own) < 3:
            drawn = rng.random((50, 2)) if place == "box" else rng.permutation(60)[:50]
            among = drawn if place == "box" else run.model.cube.units[drawn]
            farthest = max(among, key=lambda u: min(math.dist(u, v) for v in played))
            np.testing.assert_allclose(unit, farthest)
            new_points += 1
        if seen:
            own.append(t)
        run.tell_one(t, x, -float(t), np.array([-1.0]))  # ever worse: the old ones are better
        played.append(unit)
        assert run.model.count == t + 1, "nothing is forgotten"
        assert not seen or run._centre() in own
    assert new_points >= 6


def test_points_under_way_are_far_from_each_other():
    run = started("scbo", on_box(2), initial=3, candidates=50)
    run.tell_one(0, run.ask_one(0), 0.0, np.array([-1.0]))
    run._restart()
    first = run.ask_one(1)
    rng = copy.deepcopy(run.generator)
    second, among = run.ask_one(2), rng.random((50, 2))
    played = [*run.model.played, first]
    farthest = max(among, key=lambda u: min(math.dist(u, v) for v in played))
    np.testing.assert_allclose(second, farthest)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_under_noise_the_recommendation_is_by_the_model_of_all_data(noise):
    where = replace(on_box(2, horizon=200), noise=np.full((1, 2), noise))
    run = started(
        "scbo", where, length=0.5, shortest=0.2, initial=3, candidates=16, lam=1e-3, anew="random"
    )
    assert np.isnan(run.recommend_one(0)).all(), "nothing before there are data"
    for t in range(24):
        x = run.ask_one(t)
        run.tell_one(t, x, -((x - 0.3) ** 2).sum() - t, np.array([x[0] - 0.6]))
    assert run.restarts > 0
    assert run.evidence.count == (24 if noise else run.model.count)
    recommended = run.recommend_one(24)
    means, deviations = ThompsonMoments(run.evidence).at(
        np.append(run.evidence.played, [recommended], 0)
    )
    likely = means[1] + 1.6448536 * deviations[1] <= 1e-9
    assert likely[-1]
    assert means[0, -1] >= means[0, likely].max(), "no played point is better"


def test_what_counts_as_success():
    feasible, infeasible = [1.0, -0.1, -0.2], [5.0, 0.3, 0.4]
    for challenger, before, expected in (
        (feasible, infeasible, True),
        (infeasible, feasible, False),
        ([0.0, 0.5, -1.0], infeasible, True),  # smaller total violation
        ([9.0, 0.8, -1.0], infeasible, False),
        ([1.0005, 0.0, 0.0], feasible, False),  # not by a thousandth
        ([1.002, 0.0, 0.0], feasible, True),
    ):
        assert improves(np.array(challenger), np.array(before), 1e-3) == expected


@pytest.mark.parametrize("name", ["scbo", "furbo"])
@pytest.mark.parametrize(("d", "share"), [(60, 20), (12, 2)])
def test_as_many_coordinates_leave_the_centre_as_in_the_paper(name, d, share, monkeypatch):
    """Binomial, and 1 in place of 0: a coordinate is added only where none was drawn, as the
    authors and BoTorch do.
    """
    monkeypatch.setattr(scbo, "PERTURBED", share)
    run = started(
        name, on_box(d), candidates=4096, **({"inspectors": 8} if name == "furbo" else {})
    )
    moved = run._region(np.full((1, d), 0.5)) != 0.5
    counts = moved.sum(axis=1)
    drawn = binom(d, share / d).pmf(np.arange(d + 1))
    law = np.array([0.0, drawn[0] + drawn[1], *drawn[2:]])
    middle = np.flatnonzero(law * len(counts) > 8)
    observed = np.bincount(np.clip(counts, middle[0], middle[-1]), minlength=d + 1)[middle]
    ends = law[: middle[0] + 1].sum(), law[middle[-1] :].sum()
    cells = np.array([ends[0], *law[middle[1:-1]], ends[1]])
    assert chisquare(observed, cells * len(counts)).pvalue > 0.001
    assert moved.any(axis=0).all()
    assert counts.min() >= 1
    single = moved[counts == 1].sum(axis=0)
    assert share > 2 or chisquare(single).pvalue > 0.001, "the one that is added is any of them"


def test_the_centre_is_judged_by_posterior_means():
    """A lucky observation does not make a centre: it was played often, and its mean is low."""
    run = started("scbo", on_box(), lam=0.1, scaled=False)
    for x, f in [(0.1, 1.0)] + [(0.9, 0.0)] * 9 + [(0.9, 2.0)]:
        run.model.tell(np.array([[x, x]]), np.array([f, -1.0]))
    assert run.model.observed[0].argmax() == 10
    assert run._centre() == 0


def test_a_small_region_of_a_finite_set_holds_the_nearest_actions():
    """At its shortest the region holds one action; its neighbours on the grid are candidates all
    the same.
    """
    run = started("scbo", setting(np.eye(81), points=GRID), length=0.5**7)
    assert sorted(run._region(np.array([40]))) == [31, 39, 40, 41, 49]
    assert len(set(run._region(np.array([0])))) == 5
    two = started("scbo", setting(np.eye(81), points=GRID), length=0.5**7, candidates=2)
    assert len(two._region(np.array([40]))) == 2


def test_the_copula_sees_ranks_alone():
    """Under it any increasing transform of f gives the same play; without it, another one."""

    def played(bend, **values):
        run = started("scbo", on_box(2), initial=4, candidates=64, lam="scaled", **values)
        points = []
        for t in range(1, 37):  # beyond the rounds with a fit after each
            x = run.ask_one(t)
            points.append(x)
            run.tell_one(t, x, bend(-float(((x - 0.4) ** 2).sum())), np.array([x[0] - x[1]]))
        return np.array(points)

    np.testing.assert_array_equal(played(float, copula=True), played(np.exp, copula=True))
    assert (played(float) != played(np.exp)).any(), "negative control"


def test_a_copula_needs_fitted_models():
    with pytest.raises(Misuse, match="copula is true, but the kernel is given"):
        make("scbo", kernel="given", copula=True).check(problem("gramacy"))
