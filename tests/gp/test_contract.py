"""Every posterior keeps the contract: the same questions, the same answers, and refusals where it
cannot answer.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp.box_actions import Box
from cbobench.gp.posteriors.features import InterpolatedPosterior
from cbobench.gp.posteriors.observations import ObservationPosterior

LAM, S, T = 0.05, 3, 20


MESH = Box(np.zeros(2), np.full(2, 6.0), "se", 0.3, 64)


@pytest.mark.parametrize(
    "build",
    [
        lambda s: InterpolatedPosterior(MESH, LAM, s, 2),
        lambda s: ObservationPosterior(
            Box(np.zeros(2), np.ones(2), "matern52", 0.2, 32), LAM, s, 2, 60
        ),
        lambda s: ObservationPosterior(MESH, 1e-6, s, 2, 60),
        lambda s: ObservationPosterior(MESH, 1e-6, s, 2, 16),
    ],
    ids=["mesh", "observations", "factor", "window"],
)
def test_a_block_changes_no_bit(build):
    """Of means, variances, gains and jets, also where a value is told late. On a finite set:
    test_posterior.py.
    """
    many, single = build(S), build(1)
    rng = np.random.default_rng(2)
    for t in range(1, 61):
        points, values = np.clip(rng.normal(0.4, 0.3, (S, 2)), 0, 1), rng.normal(size=(S, 2))
        many.update(points, values)
        single.update(points[1:2], values[1:2])
        if t == 9:
            many.reveal(1, t, points[1], 1, 0.7)
            single.reveal(0, t, points[1], 1, 0.7)
    places = rng.random((S, 7, 2))
    for ours, theirs in [
        *((getattr(many, name), getattr(single, name)) for name in ("mean", "variance", "gain")),
        *zip(many.at(places), single.at(places[1:2]), strict=True),
        *zip(many.at_observations(), single.at_observations(), strict=True),
        *(
            (getattr(many.jet(places), name), getattr(single.jet(places[1:2]), name))
            for name in ("mean", "variance")
        ),
    ]:
        np.testing.assert_array_equal(ours[1:2], theirs)
