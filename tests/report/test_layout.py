"""How a page is laid out and worded: numbers at axes, whole ticks, broken labels, legends that fit, captions."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from cbobench.errors import Misuse
from cbobench.report.captions import _join_values, _shared_parameters
from cbobench.report.layout import _break_text, _legend, _tick_format, _ticks
from cbobench.report.style import SIZES, legend_label, plain, size_of, thin

mpl.use("Agg")


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
    assert _tick_format(step, most)(value, 0) == text


@pytest.mark.parametrize(("counts", "whole"), [((True, True), [True, True]), ((False, True), [False, True])])
def test_axes_that_count_have_whole_ticks(page, counts, whole):
    image, axis = page
    axis.plot([0, 2.2], [0, 2.2])
    _ticks(axis, 3.0, SIZES["single"], counts)
    for side, expected in zip((axis.xaxis, axis.yaxis), whole, strict=True):
        assert all(float(tick).is_integer() for tick in side.get_majorticklocs()) is expected


def test_as_many_ticks_as_numbers_fit(page):
    image, axis = page
    axis.plot([0, 10_000], [0, 1])
    found = []
    for width in (3.0, 0.8):
        _ticks(axis, width, SIZES["single"], (False, False))
        low, high = axis.get_xlim()
        found.append(sum(low <= tick <= high for tick in axis.get_xticks()))
    assert found[0] > found[1] >= 2
    axis.set_xscale("log")
    before = axis.xaxis.get_major_locator()
    _ticks(axis, 0.8, SIZES["single"], (False, False))
    assert axis.xaxis.get_major_locator() is before, "a logarithmic axis keeps its own"


def test_long_labels_are_broken_evenly(page):
    image, axis = page
    words = "a label of some eight words or nine"
    text = axis.set_xlabel(words)
    image.draw_without_rendering()
    wide = text.get_window_extent().width
    _break_text(text, wide + 1, "width")
    assert text.get_text() == words, "it fits"
    _break_text(text, 0.55 * wide, "width")
    lines = text.get_text().split("\n")
    assert " ".join(lines) == words
    assert len(lines) == 2
    assert abs(len(lines[0]) - len(lines[1])) <= 5


@pytest.mark.parametrize(("labels", "columns"), [(["A", "B", "C", "D"], 4), (["a label of twenty-five ab"] * 2, 1)])
def test_a_legend_has_as_many_columns_as_fit(page, labels, columns):
    image, axis = page
    for i, label in enumerate(labels):
        axis.plot([0, 1], [i, i], label=f"{label}{i}" if columns == 1 else label)
    height = image.get_figheight()
    _legend(image, [axis], SIZES["single"])
    (legend,) = image.legends
    assert legend._ncols == columns
    assert legend.get_window_extent().width <= image.bbox.width
    assert image.get_figheight() == pytest.approx(height + legend.get_window_extent().height / image.dpi)


def test_a_legend_holds_each_algorithm_once(page):
    image, axis = page
    other = image.add_subplot(2, 1, 2)
    for one in (axis, other):
        one.plot([0, 1], [0, 1], label="A")
    other.plot([0, 1], [0, 1], label="B")
    _legend(image, [axis, other], SIZES["single"])
    assert [text.get_text() for text in image.legends[0].get_texts()] == ["A", "B"]


def test_labels_say_what_is_missing():
    assert legend_label("A", 20, 20) == "A"
    assert legend_label("A", 18, 20) == "A (18 of 20)"
    assert legend_label("A", 18, 20, 3, ["r in 9 of 18"]) == "A (18 of 20, r in 9 of 18, stale)"
    assert legend_label("A", 20, 20, more=["r in 9 of 20"]) == "A (r in 9 of 20)"
    assert plain("$x_1$") == r"\$x_1\$"
    assert plain("_hidden") == "\u200b_hidden", "matplotlib leaves labels out that begin with an underscore"


def test_sizes_by_name_and_thin_lines():
    assert [size_of(None, panels).width for panels in (1, 2)] == [3.25, 6.75]
    assert size_of("slide", 1).width == 10
    with pytest.raises(Misuse, match="unknown size 'sllide'; did you mean 'slide'"):
        size_of("sllide", 1)
    for name in ("single", "slide"):
        with SIZES[name].context():
            assert thin("lines")["linewidth"] < SIZES[name].line
            assert set(thin("bars")) == {"elinewidth", "capthick", "capsize"}
    with SIZES["slide"].context():
        wide = thin("lines")["linewidth"]
    with SIZES["single"].context():
        assert thin("lines")["linewidth"] < wide


def test_captions_name_what_is_shared_once():
    def variant(**values):
        return type("Variant", (), {"values": values})

    some = [variant(B=1, lam="theory", own=1), variant(B=1, lam=2.0), variant(B=1)]
    assert _shared_parameters(some) == {"B": 1}
    assert _shared_parameters(some[:1]) == {}, "one alone shares nothing"
    assert _shared_parameters([variant(W=None), variant(W=None)]) == {"W": None}


def test_captions_list_values_in_order():
    assert _join_values({"b": None, "a": "sup", "c": True}) == "a = sup, b = null, c = true"
    assert _join_values({"grid": list(range(100))}) == "grid = [0, 1, 2, 3,...", "a long value is cut"
    assert _join_values({"grid": [1, 2.5]}) == "grid = [1, 2.5]"
