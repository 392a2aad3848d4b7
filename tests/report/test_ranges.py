"""What a panel's axes hold: time averages with 0, bars that do not flatten curves, ticks that read as values."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from cbobench.report.curves import CARETDOWN, CARETUP, Panel
from cbobench.report.figures import MOST, split_crowded
from cbobench.report.layout import finish, grid
from cbobench.report.style import SIZES, Look

mpl.use("Agg")
T = np.arange(1, 201)
LOOKS = {"a": Look("#000000", (), "o"), "b": Look("#0000ff", (), "s")}


def curve(title, mean, low=None, high=None):
    low, high = mean if low is None else low, mean if high is None else high
    fixed = {"algorithm": title, "label": title, "n": 9, "expected": 9, "stale": 0}
    return pd.DataFrame({"t": T, "mean": mean, "low": low, "high": high, **fixed})


def drawn(panel, *curves):
    import matplotlib.pyplot as plt

    frame = pd.concat(curves)
    size = SIZES["single"]
    with size.context():
        image, (axis,) = grid([panel], size, 1)
        panel.draw(axis, frame, LOOKS)
        finish(image, [axis], [panel], size)
    plt.close(image)
    return axis, panel.outside(frame)


def carets(axis, which):
    return [line for line in axis.get_lines() if line.get_marker() == which]


def test_a_time_average_is_drawn_with_zero():
    average = 0.85 + 0.1 / np.sqrt(T)
    axis, _ = drawn(Panel("violation_hard", "p", average=True), curve("a", average))
    assert axis.get_ylim()[0] <= 0
    axis, _ = drawn(Panel("violation_hard", "p"), curve("a", 500 + T * 1.0))
    assert axis.get_ylim()[0] > 400, "negative control: a sum has no zero to tend to"


def test_first_rounds_do_not_set_the_range_of_an_average():
    axis, words = drawn(Panel("regret", "p", average=True), curve("a", 100.0 / T))
    assert axis.get_ylim()[1] < 15
    assert words == ["The first rounds leave the panel: from 0.5 to 100."]
    axis, words = drawn(Panel("regret", "p"), curve("a", 100.0 / T))
    assert (axis.get_ylim()[1] > 100, words) == (True, [])


def test_a_long_bar_does_not_flatten_the_curves():
    wide = curve("a", T * 1.0, T * 0.9, T * 90.0)
    axis, words = drawn(Panel("regret", "p"), wide, curve("b", T * 0.5))
    assert 200 < axis.get_ylim()[1] < 400
    assert len(carets(axis, CARETUP)) == 1
    assert words == ["Bars that leave the panel end in an arrow: they go from 0.5 to 1.8e+04."]
    axis, words = drawn(Panel("regret", "p"), curve("a", T * 1.0, T * 0.9, T * 1.1))
    assert (carets(axis, CARETUP), words) == ([], [])


def test_bars_that_end_below_zero_are_marked_on_a_logarithmic_axis():
    axis, words = drawn(Panel("regret", "p", log="y"), curve("a", T * 1.0, T - 50.0, T + 50.0))
    assert carets(axis, CARETDOWN)
    assert words == ["Bars that end at or below 0 have an arrow downwards."]


def test_rounds_begin_at_zero():
    axis, _ = drawn(Panel("regret", "p"), curve("a", T * 1.0))
    assert axis.get_xlim()[0] == 0


@pytest.mark.parametrize(("most", "majors"), [(30.0, {"1", "2", "5", "10", "20"}), (1e6, None)])
def test_ticks_of_a_logarithmic_axis_are_whole_values(most, majors):
    axis, _ = drawn(Panel("regret", "p", log="y"), curve("a", np.geomspace(1.0, most, len(T))))
    axis.figure.draw_without_rendering()
    assert not any(tick.label1.get_text() for tick in axis.yaxis.get_minor_ticks())
    said = {label.get_text() for label in axis.get_yticklabels()} - {""}
    assert said
    assert majors is None or majors <= said


def test_a_crowded_panel_is_split():
    class Run:
        def expected_of(self, problem):
            return dict.fromkeys((f"m{i}" for i in range(57)), 3)

    panels = split_crowded(Run(), Panel("regret", "p", title="P"))
    assert [len(panel.titles) for panel in panels] == [MOST] * 4 + [57 - 4 * MOST]
    assert panels[0].title == "P 1 of 5"
    few = Panel("regret", "p", titles=[f"m{i}" for i in range(MOST)])
    assert split_crowded(Run(), few) == [few]
