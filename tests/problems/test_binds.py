"""Whether constraints bind: the best f of all is better than the best feasible one, in every
instance that is drawn.

Of boxes: test_shares.py, test_high_dimensional.py, test_coco.py, test_queue.py and
test_counterexample.py.
"""

from __future__ import annotations

import numpy as np

from tests.algorithms.easy import Bowl
from tests.helpers import problem

GENERATORS = [np.random.default_rng(s) for s in range(3)]


def test_what_is_not_stated_is_not_known():
    assert problem("tests.algorithms.easy:Bowl").draw(GENERATORS).binds is None
    assert Bowl.reference.binds is None


def test_on_finite_sets_it_is_seen_from_all_actions():
    drawn = problem("rkhs", n=40).draw([np.random.default_rng(s) for s in range(40)])
    for s in range(40):
        feasible = (drawn.g[s] <= 0).all(axis=0)
        assert drawn.binds[s] == (drawn.f[s].max() > drawn.f[s][feasible].max())
    assert 0 < drawn.binds.sum() < 40
    assert not problem("rkhs", n=40, constraint="threshold").draw(GENERATORS).binds.any(), (
        "g = h - f never binds"
    )
    assert problem("feasible-pocket", grid=20).draw(GENERATORS).binds.all()
    assert not problem("gardner-1", grid=20).draw(GENERATORS).binds.any()
