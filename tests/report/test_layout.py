"""How a page is laid out and worded: numbers at axes, whole ticks, broken labels, legends that fit,
captions.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from cbobench.report.layout import _add_legend, _break_text, _make_tick_format
from cbobench.report.style import SIZES


@pytest.fixture
def page():
    """An empty single column."""
    with SIZES["single"].context():
        image, axis = plt.subplots(figsize=(3.25, 2.0), layout="constrained")
        yield image, axis
        plt.close(image)


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


def test_long_labels_are_broken_evenly(page):
    image, axis = page
    label = "a label of some eight words or nine"
    text = axis.set_xlabel(label)
    image.draw_without_rendering()
    wide = text.get_window_extent().width
    _break_text(text, wide + 1, "width")
    assert text.get_text() == label, "it fits"
    _break_text(text, 0.55 * wide, "width")
    lines = text.get_text().split("\n")
    assert (" ".join(lines), len(lines)) == (label, 2)
    assert abs(len(lines[0]) - len(lines[1])) <= 5


@pytest.mark.parametrize(
    ("labels", "columns"), [(["A", "B", "C", "D"], 4), (["a label of twenty-five ab"] * 2, 1)]
)
def test_a_legend_has_as_many_columns_as_fit(page, labels, columns):
    image, axis = page
    for i, label in enumerate(labels):
        axis.plot([0, 1], [i, i], label=f"{label}{i}" if columns == 1 else label)
    height = image.get_figheight()
    _add_legend(image, [axis], SIZES["single"])
    (legend,) = image.legends
    assert legend._ncols == columns
    assert legend.get_window_extent().width <= image.bbox.width
    assert image.get_figheight() == pytest.approx(
        height + legend.get_window_extent().height / image.dpi
    )
