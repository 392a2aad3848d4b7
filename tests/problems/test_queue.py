"""Queue stability: the derived optimum, arrivals that are Poisson, and what is shown before
acting.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from cbobench.errors import Misuse
from cbobench.gp.box_actions import sobol
from cbobench.rng import Streams
from tests.helpers import problem


def best_of_multistart(task):
    rule = {"type": "ineq", "fun": lambda x: -task.formula(x)[1]}
    ends = [
        minimize(
            lambda x: -task.formula(x)[0],
            s,
            bounds=[(0, 8)] * 2,
            constraints=[rule],
            options={"ftol": 1e-14},
        )
        for s in 8 * sobol(2, 8)
    ]
    return sorted(-end.fun for end in ends if end.success and task.formula(end.x)[1] < 1e-10)


@pytest.mark.parametrize("arrivals", [0.5, 8.0, 14.0, 35.0])
def test_reference_optimum_is_derived_again(arrivals):
    task = problem("queue-stability", arrivals=arrivals)
    optima, optimum = best_of_multistart(task), task.optimum
    assert abs(optima[-1] - optimum.f) < 1e-8
    f, g = task.formula(np.array(optimum.x))
    assert (f, optimum.binds, task.formula(np.zeros(2))[0] > f) == (optimum.f, True, True)
    assert -1e-9 < g <= 0
    assert task.draw([np.random.default_rng(0)]).stars(1, 1)[0].item() == optimum.f
    if arrivals == 14:
        np.testing.assert_allclose(optimum.x, task.reference.x, atol=1e-8)
        np.testing.assert_allclose(
            [optimum.f, optimum.slater, optimum.share],
            [task.reference.f, task.reference.slater, task.reference.share],
            atol=1e-9,
        )
        assert optima[0] < optimum.f - 0.01, "one node alone or both: two local optima"
    if arrivals == 8:
        assert optimum.x[1] < 1e-6, "one node alone is enough"


def test_few_and_many_arrivals():
    with pytest.raises(
        Misuse, match=r"arrivals is 37; all 16 GPUs serve 36.92 jobs: stay below that"
    ):
        problem("queue-stability", arrivals=37.0)
    task = problem("queue-stability", arrivals=36.91)  # node 2 has all its GPUs
    assert task.formula(np.array(task.optimum.x))[1] <= 0


@pytest.mark.parametrize("settings", [{}, {"grid": 5}])
def test_arrivals_are_poisson_common_to_all_allocations_and_shown_before(settings):
    task = problem("queue-stability", candidates=32, **settings)
    streams = [("test", s) for s in range(3)]
    drawn = task.draw([np.random.default_rng(s) for s in range(3)])
    channel, alone = (
        task.feedback(drawn, Streams(streams)),
        task.feedback(drawn, Streams(streams[1:2])),
    )
    points = task.box.scale(task.box.candidates) if not settings else task.actions.points
    clean = task.formula(points)[:, 1]
    arrived = []
    for t in range(1, 601):
        preview = channel.before(t)(None)
        assert preview.shape == (3, 1, len(points))
        deviation = preview[:, 0] - clean
        np.testing.assert_allclose(deviation, deviation[:, :1] + np.zeros(len(points)), atol=1e-10)
        played = np.full(3, 3) if settings else np.tile(points[3], (3, 1))
        feedback = channel.at(t, played)
        np.testing.assert_allclose(feedback.g[:, 0], preview[:, 0, 3], atol=1e-10)
        if t <= 50:
            np.testing.assert_array_equal(alone.at(t, played[1:2]).g[0], feedback.g[1])
        arrived.append(deviation[:, 0] + task.arrivals)
    counts = np.array(arrived)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    np.testing.assert_allclose([counts.mean(), counts.var()], [14, 14], rtol=0.1)
    assert not np.array_equal(counts[:, 0], counts[:, 1])
