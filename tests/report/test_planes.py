"""The regret-violation plane: its numbers are those of tables, by hand; what is undefined or
missing is said.
"""

from __future__ import annotations

from contextlib import ExitStack

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import cbobench
from cbobench.cli import main
from cbobench.report.figures.figures import KINDS, Figure, Plane, compose
from cbobench.report.figures.style import SIZES
from cbobench.report.load import Run
from tests.report.made import make

NAN = np.nan
CELLS = {  # of eight seeds; "late" never played a feasible action in two of them, "never" in five
    ("P", "good"): {
        "regret": [-3.0, -1, 0, 1, 2, 3, 5, 40],
        "violation_hard": [0.0, 0, 0, 0, 0, 0, 1, 2],
        "violations": [0, 0, 0, 0, 0, 0, 4, 7],
        "simple_regret": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
    },
    ("P", "late"): {
        "regret": [8.0, 9, 10, 11, 12, 13, 14, 15],
        "violation_hard": [3.0, 4, 5, 6, 7, 8, 9, 50],
        "violations": [30, 31, 32, 33, 34, 35, 36, 37],
        "simple_regret": [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, NAN, NAN],
    },
    ("P", "never"): {
        "regret": [-8.0] * 8,
        "violation_hard": [20.0] * 8,
        "violations": [99] * 8,
        "simple_regret": [0.1, 0.1, 0.1, NAN, NAN, NAN, NAN, NAN],
    },
    ("Q", "good"): {"regret": [1.0] * 8},
    ("Q", "late"): {"regret": [2.0] * 8, "violation_hard": [1.0] * 8},
    ("Q", "never"): {"regret": [3.0] * 8, "violation_hard": [2.0] * 8},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(make(tmp_path_factory.mktemp("planes") / "run", CELLS, seeds=range(8)))


@pytest.fixture
def composed(run):
    """A figure of one panel as an axis, closed in the end."""
    with ExitStack() as stack:

        def make_run(panel, of=run):
            with SIZES["single"].context():
                image, contents = compose(of, Figure("one", "one", [panel]), SIZES["single"])
            stack.callback(plt.close, image)
            return image, contents

        yield make_run


def title(run, label, kind="problems"):
    return next(title for title, text in run.record.labels(kind).items() if text == label)


def plane(run, *metrics, problem="P", **options):
    return Plane(*(metrics or KINDS["plane"]), title(run, problem), **options)


@pytest.mark.parametrize("statistic", ["median", "mean"])
@pytest.mark.parametrize("metrics", [("regret", "violation_hard"), ("simple_regret", "violations")])
def test_the_numbers_are_those_of_tables(run, metrics, statistic):
    frame = plane(run, *metrics, statistic=statistic).data(run).set_index("label")
    table = cbobench.compare(run, only="P/*").frame.set_index("algorithm_label")
    word = "_median" if statistic == "median" else ""
    assert list(frame.index) == ["good", "late", "never"]
    for axis, metric in zip("xy", metrics, strict=True):
        for end in ("", "_low", "_high"):
            np.testing.assert_array_equal(frame[axis + end], table[f"{metric}{word}{end}"])
        np.testing.assert_array_equal(frame[f"{axis}_defined"], table[f"{metric}_defined"])
    second = plane(run, *metrics, problem="Q", statistic=statistic).data(run)
    assert second["x"].tolist() != frame["x"].tolist(), "negative control"


def test_a_trade_off_is_a_joined_plane_of_averages(run, composed):
    problem = title(run, "P")
    trade = Plane(
        "regret",
        "violation_hard",
        problem,
        statistic="mean",
        average=True,
        joined=True,
    )
    same = plane(run, statistic="mean", average=True)
    pd.testing.assert_frame_equal(trade.data(run), same.data(run))
    assert trade.quantity == "average_regret against average_violation_hard"
    assert len(composed(trade)[0].axes[0].get_lines()) == 1 + len(
        composed(same)[0].axes[0].get_lines()
    )


def drawn(image):
    """The (x, y) of all points that are seen, by label."""
    axis = image.axes[0]
    return {
        label: tuple(np.concatenate(container[0].get_data()).tolist())
        for container, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }


def test_what_is_undefined_is_said(run, composed):
    panel = plane(run, "simple_regret", "violations")
    frame = panel.data(run).set_index("label")
    assert frame["x_defined"].tolist() == [8, 6, 3]
    assert frame.loc["late", "x"] == pytest.approx(0.85), "two seeds are worse than any value"
    assert (frame.loc["late", "x_high"], frame.loc["never", "x"]) == (np.inf, np.inf)
    image, contents = composed(panel)
    points = drawn(image)
    assert list(points) == ["good", "late (r in 6 of 8)", "never (r in 3 of 8)"]
    assert points["late (r in 6 of 8)"] == pytest.approx((0.85, 33.5))
    arrows = [line for line in image.axes[0].get_lines() if line.get_gid() == "beyond"]
    assert [line.get_ydata()[0] for line in arrows] == [33.5, 99], "of late and of never"
    assert len({line.get_xdata()[0] for line in arrows}) == 1
    edge = points["never (r in 3 of 8)"][0]
    assert image.axes[0].get_xlim()[1] > arrows[0].get_xdata()[0] > edge > 0.86, (
        "further than all that is known"
    )
    upright = composed(plane(run, "violations", "simple_regret"))[0].axes[0]
    assert [line.get_marker() for line in upright.get_lines() if line.get_gid() == "beyond"] == [
        6,
        6,
    ], "upwards"
    means = plane(run, "simple_regret", "violations", statistic="mean").data(run).set_index("label")
    assert means.loc["never", "x"] == pytest.approx(0.1), "of the seeds that have one"


def test_nothing_defined_at_all(tmp_path, composed):
    small_run = make(tmp_path / "run", {("P", "A"): {"simple_regret": [NAN, NAN]}}, seeds=range(2))
    image, _ = composed(plane(Run(small_run), "simple_regret", "violations"), Run(small_run))
    assert "not known here" in [text.get_text() for text in image.axes[0].texts]
    assert list(drawn(image)) == ["A (r in 0 of 2)"]


def test_zero_lines_and_bounds(run, composed):
    axis = composed(plane(run))[0].axes[0]
    lines = [line for line in axis.get_lines() if line.get_gid() == "zero"]
    assert [list(line.get_xdata()) == [0, 0] for line in lines] == [True, False], (
        "one upright, one level"
    )
    assert axis.get_xlim()[0] < -8, "regret may be negative"
    assert -1 < axis.get_ylim()[0] < 0, "violation may not"
    far = composed(
        plane(run, "violations", "violation_hard", algorithms=[title(run, "never", "algorithms")])
    )[0]
    assert not [line for line in far.axes[0].get_lines() if line.get_gid() == "zero"], (
        "negative control"
    )
    counts = composed(plane(run, "violations", "regret"))[0].axes[0].get_xticks()
    assert all(float(tick).is_integer() for tick in counts)


def test_captions_count_what_is_missing(tmp_path, composed, words_of):
    cells = {key: CELLS[key] for key in (("P", "good"), ("P", "late"), ("P", "never"))}
    failed = {("P", "good"): [2], ("P", "never"): range(8)}
    small_run = Run(make(tmp_path / "run", cells, seeds=range(8), failed=failed))
    message = (
        "Medians over 7 to 8 seeds; bars around the median: 95 % interval. "
        "Incomplete: good 7 of "
        "8, never 0 of 8"
    )
    assert message in words_of(small_run, [plane(small_run)])
    assert plane(small_run).data(small_run)["n"].tolist() == [7, 8, 0]
    assert list(drawn(composed(plane(small_run), small_run)[0])) == [
        "good (7 of 8)",
        "late",
        "never (0 of 8)",
    ]
    sparse = Run(
        make(tmp_path / "few", {("P", "A"): {"regret": [2.0, 3, 4, 5, 6]}}, seeds=range(5))
    )
    assert "Medians over 5 seeds; bars around the median: range: 93.8 % for 5 seeds." in words_of(
        sparse, [plane(sparse)]
    )
    single = Run(make(tmp_path / "one", {("P", "A"): {"regret": [2.0]}}, seeds=range(1)))
    assert "The values of one seed." in words_of(single, [plane(single)])
    row = pd.read_csv(tmp_path / "words" / "words.csv").iloc[0]
    assert (row["x"], np.isnan(row["x_low"]), np.isnan(row["y_high"])) == (2.0, True, True)


@pytest.mark.usefixtures("unpainted")
def test_the_command_line_draws_planes(run, tmp_path):
    arguments = ["figures", str(run), "--kind", "plane", "--out"]
    assert main([*arguments, str(tmp_path / "one"), "--only", "P/*", "--metric", "r", "N"]) == 0
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "plane_made_P.csv",
        "plane_made_P.txt",
    ]
    behind = pd.read_csv(tmp_path / "one" / "plane_made_P.csv")
    table = cbobench.compare(run, only="P/*").frame
    np.testing.assert_array_equal(behind["x_high"], table["simple_regret_median_high"])
    assert main([*arguments, str(tmp_path / "mean"), "--statistic", "mean", "--size", "slide"]) == 0
    assert len(list((tmp_path / "mean").glob("*.csv"))) == 2
    assert (
        pd.read_csv(tmp_path / "mean" / "plane_made_P.csv")["x"][0]
        == cbobench.summary(run)["regret"][0]
    )


def test_planes_in_python(run):
    figure = cbobench.plot(run, ["R", "N"], kind="plane", statistic="mean", log="y")
    assert [axis.get_xlabel() for axis in figure.axes] == ["Cumulative regret"] * 2
    assert [axis.get_yscale() for axis in figure.axes] == ["log", "linear"], (
        "on Q nothing is above 0"
    )
    assert (
        cbobench.plot(run, kind="plane", problem="P", average=True).axes[0].get_xlabel()
        == "Average regret"
    )
