"""Figures are the same whoever saves them, under any matplotlibrc: fonts, size, scripts; pyplot
does not know them.
"""

from __future__ import annotations

import re
import warnings
from io import BytesIO

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib import font_manager

import cbobench
from analysis.papers import gallery
from cbobench.report.figures.layout import Image
from cbobench.report.figures.style import SIZES
from tests.helpers import long
from tests.report.made import make

USERS = {
    "text.usetex": True,
    "savefig.bbox": "tight",
    "savefig.dpi": 33,
    "figure.dpi": 40,
    "pdf.fonttype": 3,
    "ps.fonttype": 3,
    "figure.autolayout": True,
    "savefig.transparent": True,
    "xtick.major.size": 40,
    "font.size": 30,
    "axes.formatter.use_mathtext": True,
    "figure.constrained_layout.use": False,
    "pdf.use14corefonts": True,
}
"""What a matplotlibrc may say."""


def run_of(folder, label="B", problems=("P",)):
    rounds = {"t": [10, 20, 40]} | {
        name: [[1.0, 2, 3], [2.0, 3, 4], [0.5, 4, 9]] for name in ("regret", "violation_hard")
    }
    cells = {
        (problem, method): {"regret": [4.0, 5, 6]}
        for problem in problems
        for method in ("A", label)
    }
    return make(folder, cells, seeds=range(3), horizon=40, rounds=dict.fromkeys(cells, rounds))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("canvas") / "run")


def saved(image, kind, **options):
    sink = BytesIO()
    empty = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    image.savefig(sink, format=kind, metadata=empty, **options)
    return sink.getvalue()


def types(written):
    """The types of the fonts in a PDF or PostScript file."""
    return {
        int(number) for number in re.findall(rb"/(?:Subtype ?/Type|FontType )(3|42)\b", written)
    } | {42 for _ in re.findall(rb"/FontFile2", written)}


def drawn(run):
    """Figures of every way in which they are made."""
    yield cbobench.plot(run, "regret")
    with SIZES["double"].context():
        image = Image(SIZES["double"], 2.0)
        image.subplots().set_title("f")
    yield image


@pytest.mark.parametrize("kind", ["pdf", *long("eps")])
@pytest.mark.filterwarnings("ignore:The PostScript backend")
def test_fonts_are_such_as_publishers_take(run, kind):
    image, plain_figure = cbobench.plot(run, "regret"), plt.figure()
    assert types(saved(image, kind)) == {42}
    plain_figure.text(0, 0, "a")
    assert types(saved(plain_figure, kind)) == {3}, (
        "negative control: matplotlib's own, which has the user's settings"
    )
    plt.close(plain_figure)


def test_so_are_those_that_python_shows_or_pages_draw(run):
    images = [
        *drawn(run),
        cbobench.plot(run, ["R", "V+"], kind="plane"),
        gallery.draw_pair(gallery.read_figures()[0]),
    ]
    assert {type(image) for image in images} == {Image}
    sink = BytesIO()
    images[0].canvas.print_figure(sink, format="pdf")  # as IPython saves
    assert types(sink.getvalue()) == {42}


@pytest.mark.parametrize("kind", [*long("png"), "svg"])
def test_a_matplotlibrc_changes_no_bit(run, kind):
    ours = [saved(image, kind) for image in drawn(run)]
    after = cbobench.plot(run, "regret")
    with mpl.rc_context(USERS):
        theirs = [saved(image, kind) for image in drawn(run)]
        late = saved(after, kind)
    assert theirs == ours
    assert late == ours[0], "made under one, saved under another"


def test_what_the_user_asks_for_is_done(run):
    image = cbobench.plot(run, "regret")
    width, height = (int.from_bytes(saved(image, "png")[at : at + 4], "big") for at in (16, 20))
    assert [width, height] == [int(300 * inches) for inches in image.get_size_inches()]
    tight = saved(image, "png", dpi=100, bbox_inches="tight")
    assert int.from_bytes(tight[16:20], "big") < width / 2


def test_pyplot_knows_a_figure_once_it_is_shown(run):
    image = cbobench.plot(run, "regret")
    assert plt.get_fignums() == []
    assert image._repr_png_().startswith(b"\x89PNG"), "what a notebook shows"
    image.show(warn=False)
    assert plt.gcf() is image
    image.show(warn=False)
    assert (len(plt.get_fignums()), types(saved(image, "pdf"))) == (1, {42})
    plt.close(image)


@pytest.fixture
def cat(tmp_path):
    """A font that has 猫 and 犬, installed."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    for go, place in zip(
        (pen.moveTo, pen.lineTo, pen.lineTo), ((0, 0), (500, 0), (0, 700)), strict=True
    ):
        go(place)
    pen.closePath()
    produced, shape = FontBuilder(1000, isTTF=True), pen.glyph()
    produced.setupGlyphOrder([".notdef", "cat", "dog"])
    produced.setupCharacterMap({ord("猫"): "cat", ord("犬"): "dog"})
    produced.setupGlyf({".notdef": shape, "cat": shape, "dog": shape})
    produced.setupHorizontalMetrics(dict.fromkeys((".notdef", "cat", "dog"), (600, 0)))
    produced.setupHorizontalHeader(ascent=800, descent=-200)
    produced.setupNameTable({"familyName": "Cats", "styleName": "Regular", "psName": "Cats"})
    produced.setupOS2()
    produced.setupPost()
    produced.save(tmp_path / "cats.ttf")
    manager = font_manager.fontManager
    before = [*manager.ttflist]
    manager.addfont(tmp_path / "cats.ttf")
    yield
    manager.ttflist[:] = before
    manager._findfont_cached.cache_clear()


@pytest.mark.usefixtures("cat")
def test_labels_in_any_script_take_the_font_that_a_reader_names(tmp_path):
    run = run_of(tmp_path / "run", "猫 ≥ 犬")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = saved(cbobench.plot(run, "regret", font="Cats"), "pdf")
    assert b"Cats" in written
    assert types(written) == {42}
    with pytest.warns(UserWarning, match="missing from font"):
        saved(cbobench.plot(run, "regret"), "pdf")
