"""CONFIG after it declares infeasibility, and which rounds a sliding window keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cbobench.problems.base import Feedback
from tests.helpers import actions, make, play, problem, setting

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


def test_it_stops_on_boxes_and_the_share_can_be_read():
    task = problem("feasible-pocket", candidates=256)
    settings = {"beta": 0.3, "lam": 0.05, "B": "sup", "G": "sup"}
    cells, chunks = play(task, make("config", stop_when_infeasible=True, **settings), seeds=6, horizon=60)
    found = cells.algorithm.declared_infeasible
    still = (np.diff(actions(chunks)[-5:], axis=0) == 0).all(axis=(0, 2))
    assert found.any()
    assert still[found].all()


@pytest.mark.parametrize(("inclusive", "kept"), [(True, 4), (False, 3)])
def test_a_window_keeps_w_plus_one_rounds_or_w(inclusive, kept):
    """Whose moves are summed in Γ is whose observations are kept; its constant knows W alone."""
    algorithm = make("rpol-sw", window=3, inclusive=inclusive, lam=0.1, beta=1.0)
    given = replace(setting(K, horizon=30), changes=((10, np.array([[2.0, 3.0]])),))
    algorithm.start(given)
    lifted = []
    for t in range(1, 21):
        chosen = algorithm.ask(t)
        if algorithm.drift.any():
            lifted.append(t)
            np.testing.assert_allclose(algorithm.drift, algorithm.constant * given.changes[0][1])
        algorithm.tell(t, chosen, Feedback(np.zeros(1), np.zeros((1, 1))))
        assert algorithm.posterior.full.sum() == min(t, kept)
    assert lifted == list(range(11, 11 + kept))
    other = make("rpol-sw", window=3, lam=0.1, beta=1.0)
    other.start(given)
    assert other.constant == algorithm.constant
