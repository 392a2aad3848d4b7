"""Figures of many methods: a lead in colour, the others grey, said in the legend; and figures of a
user's own axes.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import cbobench
from cbobench.cli import main
from cbobench.errors import CbobenchError, Misuse
from cbobench.report.figures.figures import choose_lead
from cbobench.report.figures.style import GREY
from cbobench.report.load import Run
from tests.report.made import make

METHODS = [f"m{i:02d}" for i in range(14)]
T = [1, 10, 40]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fourteen methods on two problems: the later a method, the better; two of them are alike, one
    finds nothing.
    """
    cells, rounds = {}, {}
    for problem in ("P", "Q"):
        for i, method in enumerate(METHODS):
            last = [10.0 ** -(i if i != 6 else 5)] * 3 if i else [np.nan] * 3
            cells[problem, method] = {"simple_regret": last}
            rounds[problem, method] = {
                "t": T,
                "simple_regret": [
                    [1.0, float(10.0 ** (-0.5 * i)), value] if i else [np.nan] * 3 for value in last
                ],
                "regret": [[float(i), 2.0 * i, 3.0 * i]] * 3,
            }
    return make(
        tmp_path_factory.mktemp("lead") / "run", cells, seeds=range(3), horizon=40, rounds=rounds
    )


@pytest.fixture
def axes():
    """Two axes of a figure of the user's."""
    figure, pair = plt.subplots(1, 2)
    yield pair
    plt.close(figure)


def legend_of(image):
    return [text.get_text() for text in image.legends[0].get_texts()]


def test_the_best_of_many_are_in_colour_and_the_others_grey(folder, tmp_path):
    image = cbobench.plot(folder, "r")
    best = [*METHODS[:6:-1], "m05"]
    assert legend_of(image) == [*best, "6 others"], "ranked; of equals the first of the suite"
    for axis in image.axes:
        lines = [line for line in axis.get_lines() if line.get_color() == GREY]
        assert len(lines) == 6
        assert {line.get_marker() for line in lines} == {"None"}
        assert len(axis.get_lines()) == 14
    assert main(["figures", str(folder), "--out", str(tmp_path), "--metric", "r"]) == 0
    caption = next(tmp_path.glob("*.txt")).read_text().replace("\n", " ")
    assert (
        "The best 8 by mean rank are in colour, in this order; in grey follow m06, m04," in caption
    )


def test_a_reader_chooses_what_is_in_colour(folder, tmp_path, capsys):
    image = cbobench.plot(folder, "r", problem="P", highlight=["m01", "m12"])
    assert legend_of(image) == ["m12", "m01", "12 others"]
    assert len([line for line in image.axes[0].get_lines() if line.get_color() != GREY]) == 2
    with pytest.raises(Misuse, match="highlight names 9 methods; allowed: 8"):
        choose_lead(Run(folder), METHODS, METHODS[:9])
    arguments = ["figures", str(folder), "--out", str(tmp_path / "none"), "--highlight"]
    assert main([*arguments, "m1"]) == 2
    assert "unknown algorithm 'm1'" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    for count, bars in ((4, 0), (5, 5)):
        axis = cbobench.plot(folder, "R", problem="P", highlight=METHODS[7 : 7 + count]).axes[0]
        ends = [part for part in axis.collections if part.get_gid() == "end"]
        assert len(ends) == bars, "bands hide each other: of more than four a bar each, beyond"
        assert len({end.get_segments()[0][0][0] for end in ends}) == bars, "no two at one place"
    sparse = choose_lead(Run(folder), METHODS[:3])
    assert (sparse.coloured, sparse.grey) == (tuple(METHODS[:3]), ()), (
        "few methods keep the suite's order and have a colour"
    )


def test_simple_regret_has_a_logarithmic_axis_unless_a_reader_says_no(folder, tmp_path):
    for arguments, scales in (
        ([], ["log", "linear"]),
        (["--log"], ["log", "log"]),
        (["--log", "none"], ["linear", "linear"]),
    ):
        with pytest.MonkeyPatch.context() as patch:
            images = []
            patch.setattr(
                "cbobench.report.figures.layout.save",
                lambda image, *_, images=images: images.append(image),
            )
            assert (
                main(
                    [
                        "figures",
                        str(folder),
                        "--out",
                        str(tmp_path),
                        "--metric",
                        "r",
                        "R",
                        "--only",
                        "P/*",
                        *arguments,
                    ]
                )
                == 0
            )
        assert [axis.get_yscale() for axis in images[0].axes] == scales
    with pytest.raises(Misuse, match="log is 'z'; allowed: True, False, '', 'x', 'y', 'xy'"):
        cbobench.plot(folder, "r", log="z")


def test_a_figure_of_the_users_axes(folder, axes):
    left, right = axes
    figure = cbobench.plot(folder, "r", problem="P", ax=left)
    assert figure is left.figure
    assert left.get_yscale() == "log"
    assert cbobench.plot(folder, "R", problem="P", highlight="m03", ax=right) is figure
    right.legend()
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["m03", "13 others"]
    assert figure.legends == [], "the legend is the user's"
    for axis in axes:
        axis.clear()
    cbobench.plot(folder, "r", ax=axes)
    with pytest.raises(Misuse, match=r"ax has 1 axes for 2 panels \(P, Q\); give one for each"):
        cbobench.plot(folder, "r", ax=left)
    with pytest.raises(Misuse, match="ax is 3; allowed: axes of matplotlib"):
        cbobench.plot(folder, "r", problem="P", ax=3)
    with pytest.raises(Misuse, match="size of axes of your own"):
        cbobench.plot(folder, "r", problem="P", ax=left, size="single")


def test_what_is_not_known_has_no_panel(folder):
    image = cbobench.plot(folder, "r", algorithm=["m13", "m12"])
    assert len(image.axes) == 2, "negative control"
    with pytest.raises(
        CbobenchError, match="nothing to draw: no value is known of simple regret r of P"
    ):
        cbobench.plot(folder, "r", algorithm="m00")
