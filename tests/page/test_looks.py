"""Colours of the dark page, and which rounds a curve keeps."""

from __future__ import annotations

import itertools

import numpy as np

from cbobench.page import looks, series
from cbobench.report.style import PALETTE
from tests.report.test_style import SIGHT, distance, lab


def test_colours_on_black_are_told_apart():
    for sight, (one, other) in itertools.product(SIGHT, itertools.combinations(looks.ON_BLACK.values(), 2)):
        assert distance(one, other, sight) > 20
    lightness = sorted(lab(colour)[0] for colour in looks.ON_BLACK.values())
    assert np.diff(lightness).min() > 4.5
    assert lightness[0] > 40, "seen on black"
    assert [*looks.ON_BLACK] == [*PALETTE]


def test_rounds_are_thinned_with_both_ends():
    for count, most in itertools.product((1, 2, 40, 80, 1000, 10**6), (2, 40, 80)):
        kept = series.some(count, most)
        assert (kept[0], kept[-1]) == (0, count - 1)
        assert len(kept) <= most
        assert (np.diff(kept) > 0).all()
