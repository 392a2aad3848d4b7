"""Every method of the file beside it finds a good feasible point where that is easy, on a box and
on a grid.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.algorithms.easy import bowl
from tests.helpers import long_cases, make, play

LATE = 25  # rounds at the end
METHODS = [
    ("bandit-oco", {}, 400, 21),
    *long_cases(("bandit-oco", {"points": 1, "c": 3.0, "delta_scale": 0.5}, 2000, None)),
    ("admmbo", {"first_g": 20}, 120, None),
    ("cei", {}, 60, 21),
    # no restart within the horizon
    *long_cases(("scbo", {"shortest": 1e-6}, 50, None)),
]


def late(name, settings, horizon, **task):
    """Mean shortfall from f* and mean violation over the last rounds, (seeds,) each."""
    _, chunks = play(bowl(**task), make(name, **settings), seeds=4, horizon=horizon)
    f = np.concatenate([c.metrics.f for c in chunks])[-LATE:]
    g = np.concatenate([c.metrics.g for c in chunks])[-LATE:, :, 0]
    return (-0.08 - f).mean(axis=0), np.maximum(g, 0.0).mean(axis=0)


@pytest.mark.parametrize(("name", "settings", "horizon", "grid"), METHODS)
def test_finds_a_good_feasible_point(name, settings, horizon, grid):
    short, violation = late(name, settings, horizon, grid=grid)
    assert np.median(short) < 0.15
    assert np.median(violation) < 0.1
    assert np.median(np.abs(short)) < 0.25


def test_random_play_does_not():
    short, violation = late("random", {}, 400)
    assert np.median(short) > 0.5
    assert np.median(violation) > 0.2


def test_admmbo_says_when_it_stopped_and_plays_a_played_point_from_then_on():
    algorithm = make("admmbo", first_g=20)
    _, chunks = play(bowl(), algorithm, seeds=1, horizon=160)
    played = chunks[0].actions
    stops = [run.stopped_at for run in algorithm.runs]
    assert all(stops), "negative control: every run stops within this horizon"
    for s, stop in enumerate(stops):
        earlier = {tuple(point) for point in played[:stop, s]}
        assert len(earlier) == stop
        assert {tuple(point) for point in played[stop:, s]} <= earlier
    assert make("admmbo").iterations == 15
    short = make("admmbo", first_g=20, iterations=1, tolerance=0.0)
    play(bowl(), short, seeds=1, horizon=40)
    assert (short.runs[0].stopped_at, short.runs[0].converged) == (2 + 10 + 20, False)
