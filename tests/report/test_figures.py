"""Figures as they are printed: widths, text, legends, limits, lines, captions, and what a reader
may choose.
"""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from PIL import Image

from cbobench.cli import main
from cbobench.report.figures.captions import identity
from cbobench.report.figures.curves import centre
from cbobench.report.figures.figures import (
    Boxes,
    DrawOptions,
    Figure,
    Panel,
    Plane,
    Profile,
    compose,
    draw,
)
from cbobench.report.figures.style import SIZES, look_of, size_of
from cbobench.report.load import Run
from tests.helpers import long_cases, play_here

SUITE = """\
suite: {name}
horizon: 40
seeds: 5
shared: {{B: sup, G: sup, beta_scale: 0.2}}
problems:
  - rkhs-1d: {{constraint: independent, label: independent g}}
  - rkhs-1d: {{h: 0.25, label: h = B/4}}
algorithms:
  - ckb-ucb: {{label: "CKB-UCB, whose label is far too long for one line of a single column, as some are"}}
  - ckb-ts
  - ckb-rand: {{beta_scale: {{sweep: [0.1, 0.2, 1.0]}}, label: Rand}}
  - sgp-ucb: {{label: SGP}}
"""  # noqa: E501
INDEPENDENT, THRESHOLD = "rkhs-1d[constraint=independent]", "rkhs-1d[h=0.25]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("printed")
    (path / "suite.yaml").write_text(SUITE.format(name="printed"))
    play_here(path / "suite.yaml", path / "run")
    return path / "run"


@pytest.fixture(scope="module")
def run(folder):
    return Run(folder)


def figures():
    """Every kind of panel."""
    curves = [
        Panel(metric, INDEPENDENT, title="$x_1$")
        for metric in ("regret", "violation_hard", "violations")
    ]
    boxes = [
        Boxes(m, INDEPENDENT, a, 10, 40, a)
        for a in ("ckb-ts", "sgp-ucb")
        for m in ("reward", "violation")
    ]
    trade = Plane(
        "regret",
        "violation",
        INDEPENDENT,
        [f"ckb-rand[beta_scale={scale}]" for scale in (0.1, 0.2, 1.0)],
        statistic="mean",
        average=True,
        joined=True,
    )
    return {
        "one": Figure("one", "one", curves[:1]),
        "three": Figure("three", "three", curves),
        "medians": Figure(
            "medians",
            "m",
            [Panel(m, THRESHOLD, statistic="median") for m in ("reward", "regret_plus")],
        ),
        "boxes": Figure("boxes", "boxes", boxes, columns=2),
        "trade": Figure("trade", "trade", [trade]),
        "finals": Figure(
            "finals", "f", [Plane("regret", "violation", THRESHOLD), Profile("performance")]
        ),
        "mixed": Figure(
            "mixed", "mixed", [curves[0], trade, boxes[0], Panel("reward", THRESHOLD, log="xy")]
        ),
    }


@pytest.fixture
def composed(run):
    """A figure as a drawn image, closed in the end."""
    with ExitStack() as stack:

        def make(figure, size="double", font=None):
            look = size_of(size, len(figure.panels), font)
            stack.enter_context(look.context())
            image, contents = compose(run, figure, look)
            stack.callback(plt.close, image)
            image.draw_without_rendering()
            return image, contents

        yield make


def drawn(image):
    """Every text that is to be seen; ticks beyond the limits are not."""
    texts = {
        id(text): text
        for text in image.findobj(Text)
        if text.get_visible() and text.get_text().strip()
    }
    for axis in image.axes:
        for side in (axis.xaxis, axis.yaxis):
            low, high = sorted(side.get_view_interval())
            for tick in side.get_major_ticks():
                if not low <= tick.get_loc() <= high:
                    texts.pop(id(tick.label1), None)
    return list(texts.values())


def cut_off(image):
    """Texts that reach beyond the page, by more than a pixel."""
    boxes = {text.get_text(): text.get_window_extent() for text in drawn(image)}
    page = image.bbox
    return [
        t
        for t, b in boxes.items()
        if min(b.x0, b.y0) < -1 or b.x1 > page.x1 + 1 or b.y1 > page.y1 + 1
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"),
    [("one", "single"), ("boxes", "slide"), ("finals", "single"), ("mixed", "double")]
    + [pytest.param(name, size, marks=pytest.mark.long) for name in figures() for size in SIZES],
)
def test_nothing_is_cut_off_and_everything_is_legible(name, size, composed):
    image, _ = composed(figures()[name], size)
    assert image.get_figwidth() == SIZES[size].width
    assert len(drawn(image)) > 8
    assert min(text.get_fontsize() for text in drawn(image)) >= 7
    assert cut_off(image) == []
    for axis in image.axes:
        room = axis.get_window_extent()
        assert room.width > 0.5 * image.dpi
        assert room.height > 0.5 * image.dpi
        assert axis.yaxis.label.get_window_extent().height <= room.height * 1.15
    below = min(axis.get_tightbbox().y0 for axis in image.axes)
    assert all(legend.get_window_extent().y1 <= below + 1 for legend in image.legends), (
        "the legend hides no panel"
    )
    image.text(0.95, 0.5, "beyond the page, as a control")
    assert cut_off(image) == ["beyond the page, as a control"]


def test_a_width_that_nobody_chose_is_that_of_the_panels(run, tmp_path, monkeypatch):
    widths = []
    monkeypatch.setattr(
        "cbobench.report.figures.layout.save",
        lambda image, *_: widths.append(image.get_figwidth()),
    )
    for name in ("one", "three"):
        draw(run, figures()[name], tmp_path)
    monkeypatch.setattr("cbobench.report.figures.figures.FEW", 5)
    draw(run, figures()["one"], tmp_path)
    assert widths == [3.25, 6.75, 6.75], "a single column for one panel, unless it has many curves"


@pytest.mark.parametrize(
    ("width", "inches"),
    [("12cm", 12 / 2.54), *long_cases(("505.89pt", 7.0))],
)
def test_a_width_and_a_font_are_those_of_a_paper(run, composed, tmp_path, width, inches):
    """Of any width, nothing is cut off; an SVG has the same size in points and the same bytes every
    time.
    """
    options = DrawOptions(width, font="serif", svg=True)
    first, repeated = (
        draw(run, figures()["one"], tmp_path / name, options) for name in ("first", "again")
    )
    assert [path.suffix for path in first] == [".pdf", ".png", ".svg", ".csv", ".txt"]
    svg = first[2].read_bytes()
    assert float(re.search(rb'<svg[^>]* width="([\d.]+)pt"', svg).group(1)) == pytest.approx(
        72 * inches
    )
    assert repeated[2].read_bytes() == svg
    image, _ = composed(figures()["three"], width, "serif")
    assert cut_off(image) == []
    assert {text.get_fontname() for text in drawn(image)} == {"DejaVu Serif"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--width", "3.25"], "width is '3.25'; allowed: 1.5in to 40in; units: in, cm, mm, pt"),
        (["--width", "900cm"], "width is '900cm'; allowed"),
        (["--width", "3in", "--size", "single"], "not allowed with argument"),
        (["--size", "tripple"], "unknown --size 'tripple'"),
        (["--font", "Sans"], "or give serif, sans-serif, monospace"),
        (["--only", "sgp-ucp"], "unknown pair 'sgp-ucp'; did you mean 'sgp-ucb'?"),
        (
            ["--metric", "R", "--recipe", "zhou_ji_2022"],
            "the recipe zhou_ji_2022 has figures of its own; leave --metric out",
        ),
        (
            ["--kind", "plane", "--metric", "R"],
            "a plane is of two metrics, not of regret; give the horizontal and the vertical one",
        ),
        (
            ["--kind", "plane", "--recipe", "zhou_ji_2022"],
            "the recipe zhou_ji_2022 has figures of its own; leave --kind out",
        ),
        (
            ["--kind", "profile", "--statistic", "mean"],
            "profiles are shares of cells, of which there is neither mean nor median",
        ),
        (
            ["--kind", "profile", "--recipe", "guo_zhu_liu_2022", "--metric", "r"],
            "has figures of its own; leave --metric and --kind out",
        ),
    ],
)
def test_wrong_words_are_refused_and_nothing_is_drawn(folder, tmp_path, capsys, arguments, message):
    assert main(["figures", str(folder), "--out", str(tmp_path / "none"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_panels_have_letters_and_share_scales(composed):
    image, _ = composed(figures()["boxes"])
    assert [axis.get_title(loc="left")[:3] for axis in image.axes] == ["(a)", "(b)", "(c)", "(d)"]
    a, b, c, d = (axis.get_ylim() for axis in image.axes)
    assert (a, b) == (c, d)
    assert a != b
    assert [t.get_text() for t in image.legends[0].get_texts()] == ["f* (best feasible)"]


def test_curves_wear_the_look_of_their_algorithm(composed):
    image, _ = composed(figures()["one"])
    assert image.axes[0].get_title(loc="left") == r"\$x_1\$", "no letter, no formula"
    lines = {line.get_label(): line for line in image.axes[0].get_lines()}
    assert lines["ckb-ts"].get_color() == look_of("ckb-ts").colour
    assert lines["SGP"].get_marker() == look_of("sgp-ucb").marker
    assert len(image.legends[0].get_texts()) == 6
    assert image.get_suptitle() == "", "the caption is not in the picture"


def zero_lines(image):
    return [any(line.get_gid() == "zero" for line in axis.get_lines()) for axis in image.axes]


def test_a_zero_line_where_regret_is_negative(composed):
    image, _ = composed(figures()["one"])
    assert image.axes[0].get_ylim()[0] < 0
    assert zero_lines(image) == [True]
    rewards, _ = composed(Figure("rewards", "", [Panel("reward", THRESHOLD)]))
    assert zero_lines(rewards) == [rewards.axes[0].get_ylim()[0] < 0]


def test_nothing_lies_below_what_a_quantity_can_be(run, composed):
    heavy = np.zeros((1, 20))
    heavy[0, :2] = 10_000
    mean, low, high = centre(heavy, "violations")
    assert 0 <= low[0] <= mean[0] == 1000 <= high[0]
    assert [part[0] for part in centre(heavy, "violations", "median")] == [0, 0, 0]
    assert centre(-heavy, "regret")[1][0] < -1000, "regret has no bound"
    for statistic in ("mean", "median"):
        assert (Panel("violations", INDEPENDENT, statistic=statistic).data(run)["low"] >= 0).all()
    image, _ = composed(Figure("low", "", [Panel("violations", INDEPENDENT)]))
    low, high = image.axes[0].get_ylim()
    assert -0.05 * high < low <= 0


def test_rewards_are_drawn_with_the_best_feasible_one(run):
    frame = Panel("reward", THRESHOLD, average=True).data(run)
    np.testing.assert_allclose(
        frame["f_star"], run.cells.query("problem == @THRESHOLD")["f_star"].mean(), rtol=1e-9
    )


def test_files_have_the_printed_width_and_their_caption(run, tmp_path, words_of):
    pdf, png, csv, txt = draw(run, Figure("two", "two", figures()["three"].panels[:2]), tmp_path)
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", pdf.read_bytes())
    assert float(box.group(1)) == pytest.approx(72 * 6.75)
    caption = txt.read_text()
    joined = " ".join(caption.split())
    assert caption.startswith("two.\n(a) $x_1$: Cumulative regret. (b)")
    assert max(map(len, caption.splitlines())) <= 100
    for phrase in (
        "Means over 5 seeds; bars: 95 % intervals of the mean. T = 40.",
        "constraint = independent",
        identity(run),
        "Method Rand (beta_scale = 0.1) (ckb-rand): beta_scale = 0.1",
    ):
        assert phrase in joined
    assert re.search(r"Shared by the algorithms: B = sup, .*lam = theory", joined)
    assert re.fullmatch(r"printed, grid [0-9a-f]{12}", identity(run))
    assert identity(run).encode() in pdf.read_bytes()
    with Image.open(png) as image:
        assert (image.width, image.text["Description"]) == (2025, joined), "300 dpi"
    median = words_of(run, figures()["one"].panels, statistic="median")
    assert "Medians over 5 seeds; bars at the ends from quartile to quartile." in median
    assert {"median", "low", "high"} <= set(pd.read_csv(tmp_path / "words" / "words.csv").columns)
    assert "Boxes over 5 seeds" in words_of(run, figures()["boxes"].panels, statistic="median")


@pytest.mark.usefixtures("unpainted")
def test_what_a_reader_may_choose(folder, tmp_path):
    arguments = ["figures", str(folder), "--out", str(tmp_path / "some"), "--only", "h = B/4/*ckb*"]
    assert (
        main([*arguments, "--metric", "R", "violations", "--size", "single", "--statistic", "mean"])
        == 0
    )
    assert sorted(p.name for p in (tmp_path / "some").glob("*.csv")) == [
        "summary_printed_h_B_4.csv"
    ]
    frame = pd.read_csv(tmp_path / "some" / "summary_printed_h_B_4.csv")
    assert set(frame["metric"]) == {"regret", "violations"}
    assert not frame["algorithm"].str.contains("sgp").any()
    assert "mean" in frame
    part = Run(folder).only("SGP")
    assert [len(part.record.variants(kind)) for kind in ("problems", "algorithms")] == [2, 1]
    assert set(part.cells["algorithm"]) == {"sgp-ucb"}
    assert len(part.full_record.variants("algorithms")) == 6


def test_missing_and_stale_cells_are_marked(folder, tmp_path, words_of):
    shutil.copytree(folder, tmp_path / "part", ignore=shutil.ignore_patterns("*sgp-ucb*"))
    part = Run(tmp_path / "part")
    assert not (part.cells["algorithm"] == "sgp-ucb").any()
    part.__dict__["stale"] = set(part.cells.query("algorithm == 'ckb-ts'")["cell"])
    with SIZES["double"].context():
        image, _ = compose(part, figures()["one"], SIZES["double"])
        plt.close(image)
    entries = {text.get_text() for text in image.legends[0].get_texts()}
    assert "ckb-ts (stale)" in entries
    assert not any("SGP" in entry for entry in entries), "what is not drawn is not in the legend"
    caption = words_of(part, figures()["one"].panels)
    assert "Incomplete: SGP 0 of 5 seeds." in caption
    assert "Stale: 5 of 25 cells, played by code that has changed since." in caption
    empty = Figure("nothing", "", [Panel("regret", INDEPENDENT, ["sgp-ucb"])])
    assert draw(part, empty, tmp_path / "nothing") == []
    assert list((tmp_path / "nothing").iterdir()) == []
