"""The stored figures of the papers: all 21 in both readings, drawn from what is in the repository."""

from __future__ import annotations

import json

import matplotlib as mpl
import pytest

from docs.results import gallery, reproduction

mpl.use("Agg")


@pytest.fixture(scope="module")
def stored():
    return gallery.stored()


def test_all_figures_are_stored_twice(stored):
    about, rows = stored
    figures = gallery.read_figures()
    assert len(figures) == 21
    assert {*about} == {f"{figure.key}_{reading}" for figure, reading in gallery.entries()} == {*rows["figure"]}
    assert gallery.ROWS.stat().st_size + gallery.ABOUT.stat().st_size < 3_000_000


def test_every_figure_has_claims_with_verdicts():
    primary_claims = reproduction.primary(json.loads(reproduction.STORED.read_text())["rows"])
    for figure in gallery.read_figures():
        assert figure.says
        assert figure.decides
        assert all(claim in primary_claims for claim in figure.claims), figure
    assert not any("stale" in key for key in primary_claims)


@pytest.mark.parametrize(
    ("key", "panels"),
    [
        ("zhou_ji_fig1a_best", 1),
        ("shi_eryilmaz_fig1_letter", 1),
        pytest.param("shi_eryilmaz_fig2_best", 6, marks=pytest.mark.long),
    ],
)
def test_a_figure_is_drawn_from_its_rows(stored, key, panels):
    import matplotlib.pyplot as plt

    about, rows = stored
    image = gallery.draw(key, about, rows)
    assert len(image.axes) == panels
    assert all(axis.has_data() for axis in image.axes)
    plt.close(image)


def test_rows_are_those_of_cells_that_are_not_stale(stored):
    _, rows = stored
    assert rows["stale"].fillna(0).max() == 0, "stored from cells of code that has changed: make claims"
