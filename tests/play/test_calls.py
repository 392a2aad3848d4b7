"""A round on a finite set is a short list of array calls: how many Python calls it makes is
counted, and held.
"""

from __future__ import annotations

import pytest

from benchmarks.speed import calls

MARGIN = 1.05  # other versions of NumPy and Python take other ways to the same array call


@pytest.mark.parametrize(("name", "seeds"), list(calls.HELD))
def test_a_round_makes_no_more_calls_than_are_held(name, seeds):
    counted = calls.count_calls(calls.make_problem("rkhs", **calls.PROBLEM), name, seeds)
    most = sorted(counted.items(), key=lambda item: -item[1])[:10]
    assert sum(counted.values()) <= MARGIN * calls.HELD[name, seeds], f"most called: {most}"
