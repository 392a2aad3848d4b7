"""CONFIG after it declares infeasibility, windows and restarts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cbobench.problems.base import Feedback
from tests.helpers import make, play, problem, setting, watch_asks

K = np.exp(-((np.linspace(0, 1, 8)[:, None] - np.linspace(0, 1, 8)) ** 2) / (2 * 0.2**2))


def test_it_keeps_its_last_action_from_the_declaration_on():
    """The constraint is +1 wherever one looks for replicate 0, and -1 for replicate 1."""
    rounds, played, declared = 20, {}, {}
    for stop in (False, True):
        algorithm = make("config", stop_when_infeasible=stop, lam=0.01, beta=1.0)
        algorithm.start(setting(K, replicates=2, horizon=rounds))
        played[stop], declared[stop] = [], []
        for t in range(1, rounds + 1):
            chosen = algorithm.ask(t)
            algorithm.tell(t, chosen, Feedback(np.zeros(2), np.array([[1.0], [-1.0]])))
            played[stop].append(chosen.copy())
            declared[stop].append(algorithm.declared_infeasible.copy())
    going, stopped = np.array(played[False]), np.array(played[True])
    first = int(np.array(declared[True])[:, 0].argmax())  # rounds are counted from 0 here
    assert first > 1
    assert (stopped[first:, 0] == stopped[first - 1, 0]).all()
    np.testing.assert_array_equal(stopped[:first], going[:first])
    assert len(set(going[first:, 0])) > 1, "negative control: else it plays on"
    np.testing.assert_array_equal(stopped[:, 1], going[:, 1])
    assert not np.array(declared[True])[:, 1].any()
    assert np.array(declared[True])[first:, 0].all()


@pytest.mark.parametrize(
    ("form", "duals"), [("lcb", [0.0, 0.5 * (1.75 - 0.5**0.5)]), ("observed", [1.625, 3.25])]
)
def test_the_dual_of_pdbo_by_hand(form, duals):
    """η = 1/2, ε = 1/4, λ = β = 1; at arm 0 g has the means 0 and 3/2, the deviations 1 and √½, and
    3 is observed.
    """
    algorithm = make("primal-dual-bo", form=form, lam=1.0, beta=1.0, eta=0.5, eps=0.25)
    algorithm.start(setting(np.diag([1.0, 0.04])))
    for t, dual in enumerate(duals, 1):
        algorithm.tell(t, algorithm.ask(t), Feedback(np.array([2.0]), np.array([[3.0]])))
        np.testing.assert_allclose(algorithm.duals, [[dual]], atol=1e-12)


@pytest.mark.parametrize(("inclusive", "kept_rounds"), [(True, 4), (False, 3)])
def test_a_window_keeps_w_plus_one_rounds_or_w(inclusive, kept_rounds):
    """Whose moves are summed in Γ is whose observations are kept; its constant knows W alone."""
    algorithm = make("rpol-sw", window=3, inclusive=inclusive, lam=0.1, beta=1.0)
    drifting = replace(setting(K, horizon=30), changes=((10, np.array([[2.0, 3.0]])),))
    algorithm.start(drifting)
    lifted = []
    for t in range(1, 21):
        chosen = algorithm.ask(t)
        if algorithm.drift.any():
            lifted.append(t)
            np.testing.assert_allclose(algorithm.drift, algorithm.constant * drifting.changes[0][1])
        algorithm.tell(t, chosen, Feedback(np.zeros(1), np.zeros((1, 1))))
        assert algorithm.posterior.full.sum() == min(t, kept_rounds)
    assert lifted == list(range(11, 11 + kept_rounds))
    default = make("rpol-sw", window=3, lam=0.1, beta=1.0)
    default.start(drifting)
    assert default.constant == algorithm.constant


@pytest.mark.parametrize(
    "task",
    [{"name": "feasible-pocket-delayed", "candidates": 64}, {"name": "rkhs-1d", "delay": 3.0}],
)
@pytest.mark.parametrize(
    ("name", "settings"), [("ckb-restart", {"restart": 5}), ("ckb-ucb", {"anytime": True})]
)
def test_restarts_forget_what_is_under_way(task, name, settings):
    algorithm = make(name, B="sup", G="sup", **settings)
    updates = []
    condition = algorithm.condition

    def spy(t, feedback):
        condition(t, feedback)
        fresh = (feedback.arrivals.round >= algorithm.since).sum()
        updates.append((t, algorithm.since, fresh, algorithm.posterior.gain.copy()))

    algorithm.condition = spy
    play(problem(**task), algorithm, seeds=2, horizon=30)
    for (_, since, fresh, gain), (_, before, _, earlier) in zip(updates[1:], updates, strict=False):
        if since != before and not fresh:
            assert not gain.any(), "a restarted model knows nothing"
        elif since == before:
            assert (gain.sum() > earlier.sum()) == bool(fresh)


def test_config_maximises_f_where_only_a_polished_point_is_allowed():
    """With few candidates and thin widths the allowed set lies between them; its best point is
    played.
    """
    algorithm = make("config", kernel="given", lam=0.05, beta=0.3, B="sup", G="sup")
    achieved = []

    def look(t, chosen):
        if algorithm.hidden[0]:
            point = algorithm.chosen[:, None]
            belief = algorithm.view(*algorithm.posterior.at(point), point)
            achieved.append(algorithm.achieved[0])
            assert achieved[-1] == pytest.approx(algorithm.explore_f(belief.f)[0, 0], abs=1e-3)

    play(
        problem("feasible-pocket", kernel="matern52", candidates=16),
        watch_asks(algorithm, look),
        seeds=1,
        horizon=40,
    )
    assert achieved
