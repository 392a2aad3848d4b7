"""Which of equal values are taken, and in which order, depends on the values alone."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.gp.actions import smallest


@pytest.mark.parametrize("count", [1, 3, 7, 40])
def test_the_first_of_equal_values_are_taken(count):
    values = np.random.default_rng(0).integers(0, 6, (5, 40)).astype(float)
    values[1] = np.inf
    values[2, 4:] = np.inf
    expected = np.sort(np.argsort(values, axis=1, kind="stable")[:, :count], axis=1)
    assert (smallest(values, count) == expected).all()
    assert (smallest(values[0], count) == expected[0]).all()
