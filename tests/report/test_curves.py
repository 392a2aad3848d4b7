"""What stands for many seeds at a round, what a figure says where nothing does, and what a panel's
axes hold.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.report.figures.curves import CARETDOWN, CARETUP, Panel, centre
from cbobench.report.figures.layout import finish, grid
from cbobench.report.figures.style import SIZES, Look
from cbobench.report.load import Run
from cbobench.report.quantities import quantities
from cbobench.report.tables.summary import statistics
from tests.report.made import make


def test_quartiles_are_those_of_tables():
    values = np.random.default_rng(0).standard_cauchy((7, 11)) ** 2
    values[values > 5] = np.nan
    for quantity in (quantities()["simple_regret"], quantities()["reward"]):
        for row in values if quantity.censored else np.nan_to_num(values):
            middle, low, high = (part[0] for part in centre(row[None], quantity.name, "median"))
            (expected,) = statistics(quantity, [row])
            for ours, name in ((middle, "median"), (low, "q25"), (high, "q75")):
                assert ours == expected[name] or (
                    np.isnan(ours) and not np.isfinite(expected[name])
                )


def test_no_statistic_of_a_sample_depends_on_another_sample():
    gen = np.random.default_rng(1)
    for quantity in quantities().values():
        samples = [gen.lognormal(size=n) for n in (0, 1, 2, 5, 9, 150) for _ in range(8)]
        for values in samples:
            values[gen.random(len(values)) < 0.2 * gen.integers(6)] = np.nan
        together, alone = (
            statistics(quantity, samples),
            [statistics(quantity, [values])[0] for values in samples],
        )
        assert repr(together) == repr(alone), "to the last bit"
        for result, values in zip(together, samples, strict=True):
            assert result["defined"] == (~np.isnan(values)).sum()
            assert result["defined"] == 0 or result["mean"] == pytest.approx(np.nanmean(values))


def make_curves(folder, values):
    """A run of four seeds: simple regret in rounds 1 and 100 by method."""
    rounds = {("P", name): {"t": [1, 100], "simple_regret": rows} for name, rows in values.items()}
    cells = {("P", name): {"simple_regret": np.array(rows)[:, -1]} for name, rows in values.items()}
    return make(folder, cells, seeds=range(4), rounds=rounds)


def test_captions_say_which_curves_are_undefined_and_why(tmp_path, words_of):
    values = {
        "A": [[1.0, 0.5]] * 4,
        "late": [[np.nan, 0.5]] * 3 + [[np.nan] * 2],
        "never": [[0.1] * 2] + [[np.nan] * 2] * 3,
    }
    run = Run(make_curves(tmp_path / "run", values))
    problem = next(iter(run.record.labels("problems")))
    for statistic, expected in (
        ("mean", ["late (known in 3", "never (known in 1"]),
        ("median", ["never (known in 1"]),
    ):
        caption = words_of(run, [Panel("simple_regret", problem, statistic=statistic)])
        listed = ", ".join(f"{statistic} of r of {item} of 4 seeds)" for item in expected)
        assert (
            f"Undefined in the end: {listed}. A mean is drawn where every seed has a value"
            in caption
        )


@pytest.mark.usefixtures("unpainted")
def test_what_cannot_be_drawn_is_said_in_the_caption_and_by_the_command(tmp_path, capsys):
    values = {"A": [[1.0, 0.5]] * 4, "never": [[0.1] * 2] + [[np.nan] * 2] * 3}
    run = make_curves(tmp_path / "run", values)
    line = [
        "figures",
        str(run),
        "--out",
        str(tmp_path / "out"),
        "--recipe",
        "summary",
        "--metric",
        "r",
    ]
    assert main([*line, "--highlight", "never"]) == 0
    assert (
        "Undefined in the end: median of r of never (known in 1 of 4 seeds)"
        in next((tmp_path / "out").glob("*.txt")).read_text()
    )
    assert capsys.readouterr().err == ""
    assert main([*line, "--only", "*/never"]) == 1
    assert "summary_made_P: not drawn, no round has a value to draw" in (
        err := capsys.readouterr().err
    )
    assert "has no figure of" not in err


def test_what_is_undefined():
    values = np.array([[1.0, 2.0, np.nan], [np.nan] * 3, [3.0, 1.0, 2.0]])
    mean, low, high = centre(values, "regret")
    assert np.isnan(mean[:2]).all()
    assert np.isnan(low[:2]).all()
    assert mean[2] == 2
    median, low, high = centre(values, "regret", "median")
    assert [median[0], low[0]] == [2.0, 1.5], "undefined is worse than any value"
    assert np.isnan([high[0], median[1]]).all()
    assert [part[2] for part in (low, median, high)] == [1.5, 2.0, 2.5]
    assert np.isnan(centre(values[:, :1], "regret")[1]).all(), "one seed has no interval"
    assert np.isnan(centre(values[:, :0], "regret")[0]).all()
    with pytest.raises(Misuse, match="unknown statistic 'mode'"):
        centre(values, "regret", "mode")


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


LEAVE = "beyond the panel: bars end in an arrow there, curves and bands are cut."


def test_first_rounds_do_not_set_the_range_of_an_average():
    axis, caption = drawn(Panel("regret", "p", average=True), curve("a", 100.0 / T))
    assert axis.get_ylim()[1] < 15
    assert caption == ["Values go from 0.5 to 100, " + LEAVE]
    axis, caption = drawn(Panel("regret", "p"), curve("a", 100.0 / T))
    assert (axis.get_ylim()[1] > 100, caption) == (True, [])


def test_a_long_bar_does_not_flatten_the_curves():
    wide = curve("a", T * 1.0, T * 0.9, T * 90.0)
    axis, caption = drawn(Panel("regret", "p"), wide, curve("b", T * 0.5))
    assert 200 < axis.get_ylim()[1] < 400
    assert len(carets(axis, CARETUP)) == 1
    assert caption == ["Values go from 0.5 to 1.8e+04, " + LEAVE]
    axis, caption = drawn(Panel("regret", "p"), curve("a", T * 1.0, T * 0.9, T * 1.1))
    assert (carets(axis, CARETUP), caption) == ([], [])


def test_bars_that_end_below_zero_are_marked_on_a_logarithmic_axis():
    axis, caption = drawn(Panel("regret", "p", log="y"), curve("a", T * 1.0, T - 50.0, T + 50.0))
    assert carets(axis, CARETDOWN)
    assert caption == ["Values go from -49 to 250, " + LEAVE]


def test_rounds_begin_at_zero():
    axis, _ = drawn(Panel("regret", "p"), curve("a", T * 1.0))
    assert axis.get_xlim()[0] == 0


@pytest.mark.parametrize(("most", "majors"), [(30.0, {"1", "2", "5", "10", "20"}), (1e6, None)])
def test_ticks_of_a_logarithmic_axis_are_whole_values(most, majors):
    axis, _ = drawn(Panel("regret", "p", log="y"), curve("a", np.geomspace(1.0, most, len(T))))
    axis.figure.draw_without_rendering()
    assert not any(tick.label1.get_text() for tick in axis.yaxis.get_minor_ticks())
    message = {label.get_text() for label in axis.get_yticklabels()} - {""}
    assert message
    assert majors is None or majors <= message


def test_zero_is_seen_at_the_edge_of_a_logarithmic_axis():
    """A method that found the optimum stays in sight; a quantity that may be negative has no such
    edge.
    """
    falls = np.where(T < 100, 1.0 / T, 0.0)
    axis, caption = drawn(
        Panel("simple_regret", "p", log="y"), curve("a", falls), curve("b", 1.0 / T)
    )
    assert caption == ["A curve at the lower edge is 0, or below 0.005."]
    low, _ = axis.get_ylim()
    assert low < axis.get_lines()[0].get_ydata().min() == pytest.approx(0.0025)
    axis.figure.canvas.draw()
    ticks = {
        label.get_text(): place
        for label, place in zip(axis.get_yticklabels(), axis.get_yticks(), strict=True)
    }
    assert ticks.pop("0") == pytest.approx(0.0025), "no other number is read off there"
    assert min(ticks.values()) > 1.5 * 0.0025
    second, caption = drawn(Panel("simple_regret", "p", log="y"), curve("b", 1.0 / T))
    second.figure.canvas.draw()
    assert "0" not in [label.get_text() for label in second.get_yticklabels()], "negative control"
    assert caption == [], "negative control"
    third, caption = drawn(
        Panel("simple_regret", "p", log="y"), curve("a", np.where(T < 100, 1.0, 1e-14))
    )
    third.figure.canvas.draw()
    ticks = [label.get_text() for label in third.get_yticklabels()]
    assert "<1e-09" in ticks
    assert "0" not in ticks, "1e-14 is not 0"
    assert caption == ["A curve at the lower edge is 0, or below 1e-09."], (
        "rounding takes no decades"
    )
    assert np.isnan(Panel("regret", "p", log="y").edge(curve("a", falls)))
