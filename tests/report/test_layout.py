"""How a page is laid out and worded: numbers at axes, whole ticks, broken labels, legends that fit,
captions.
"""

from __future__ import annotations

import pytest

from cbobench.report.figures.layout import _make_tick_format


@pytest.mark.parametrize(
    ("step", "most", "value", "text"),
    [
        (1, 5, 3, "3"),
        (0.25, 1, -0.5, "−0.50"),
        (0.0025, 0.01, 0.0075, "0.0075"),
        (2_500, 10_000, 7_500, "7,500"),
        (50_000, 200_000, 150_000, "150k"),
        (50_000, 200_000, 0, "0"),
        (500, 200_000, 1_500, "1.5k"),
        (50, 200_000, 1_550, "1,550"),
        (100_000_000, 400_000_000, -200_000_000, "−200M"),
        (2.5, 10, 2.5, "2.5"),
    ],
)
def test_numbers_at_an_axis(step, most, value, text):
    assert _make_tick_format(step, most)(value, 0) == text
