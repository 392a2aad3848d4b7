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


def test_a_sample_is_drawn_in_the_order_of_the_actions(monkeypatch):
    """Which action gets which normal must not hang on how NumPy sorts."""
    from cbobench.gp.actions import Finite
    from cbobench.gp.kernels import SquaredExponential
    from cbobench.gp.thompson import BLOCK, ThompsonModel

    points = np.linspace(0, 1, 4 * BLOCK)[:, None]
    model = ThompsonModel(Finite.at(points, SquaredExponential(0.05)), 2, 0.1, 10, scaled=False)
    for action, f in ((10, 1.0), (90, 0.5), (150, -1.0)):
        model.tell(np.array([action]), np.array([f, -1.0]))
    drawn, _ = model.sample(np.arange(len(points)), np.random.default_rng(0))
    assert len(drawn) > BLOCK
    assert (np.diff(drawn[:BLOCK]) > 0).all()
