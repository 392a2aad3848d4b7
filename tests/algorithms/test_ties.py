"""While nothing is known, every point of a box is as good as any other: seeds play different ones,
all over it.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import actions, make, play, problem

SEEDS = 64
BOXES = [{}, {"kernel": "matern52"}, {"lengthscale": 0.05}]  # with a mesh; without


def first_plays(name, rounds, **settings):
    """Plays (T, S, d) in the unit cube while no observation has arrived, and the candidates (M,
    d).
    """
    task = problem("feasible-pocket-delayed", delay=1e6, **settings)
    return task.box.unit(
        actions(play(task, make(name), seeds=SEEDS, horizon=rounds)[1])
    ), task.box.scattered


def check(plays, candidates):
    """Candidates, hardly two alike, in all quarters, as often on either side as candidates are."""
    for points in plays:
        apart = np.abs(points[:, None] - candidates).max(axis=2).min(axis=1)
        assert apart.max() < 1e-12
        assert len(np.unique(points, axis=0)) > 0.9 * SEEDS
        quarter = (points > 0.5) @ [1, 2]
        assert (np.bincount(quarter, minlength=4) >= SEEDS // 10).all()
        spread = candidates.std(axis=0)
        np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=4 * spread.max() / np.sqrt(SEEDS))
        np.testing.assert_allclose(points.std(axis=0), spread, rtol=0.3)


@pytest.mark.parametrize(
    ("name", "settings"), [("ckb-ucb", BOXES[0]), ("config", BOXES[1]), ("penalty-noisy", BOXES[2])]
)
def test_ties_are_spread_over_the_box_until_something_arrives(name, settings):
    plays, candidates = first_plays(name, 3, **settings)
    check(plays, candidates)
    together = np.abs(plays[0] - plays[1]).max(axis=1)
    assert (together > 0).mean() > 0.9, "rounds draw anew"


@pytest.mark.parametrize("name", ["cei", "rpol-sw"])
def test_the_first_round_is_such_a_tie_for_all(name):
    task = problem("gramacy")
    plays = task.box.unit(actions(play(task, make(name), seeds=SEEDS, horizon=1)[1]))
    check(plays, task.box.scattered)


def test_what_arrived_ends_the_tie():
    """The check can fail: seeds that know something agree more."""
    task = problem("gramacy", noise_f=0.0, noise_g=0.0)
    plays = task.box.unit(
        actions(play(task, make("igp-ucb", beta=0.1, lam=0.01), seeds=SEEDS, horizon=8)[1])
    )
    with pytest.raises(AssertionError):
        check(plays[-1:], task.box.scattered)
