"""Colours of the dark page, and which rounds a curve keeps."""

from __future__ import annotations

import itertools

import numpy as np

from cbobench.page.content import ON_BLACK, thin_positions
from cbobench.report.style import PALETTE
from tests.report.test_style import SIGHT, distance, lab


def test_colours_on_black_are_told_apart():
    for sight, (first, second) in itertools.product(
        SIGHT, itertools.combinations(ON_BLACK.values(), 2)
    ):
        assert distance(first, second, sight) > 20
    lightness = sorted(lab(colour)[0] for colour in ON_BLACK.values())
    assert np.diff(lightness).min() > 4.5
    assert lightness[0] > 40, "seen on black"
    assert [*ON_BLACK] == [*PALETTE]


def hue(colour):
    """Degrees in OKLCH (Ottosson 2020), where colours that look of one hue have one."""
    coded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(
        [
            [0.4122215, 0.5363325, 0.0514460],
            [0.2119035, 0.6806995, 0.1073970],
            [0.0883025, 0.2817188, 0.6299787],
        ]
        @ linear
    )
    _, a, b = [
        [0.2104543, 0.7936178, -0.0040720],
        [1.9779985, -2.4285922, 0.4505937],
        [0.0259040, 0.7827718, -0.8086758],
    ] @ cones
    return np.degrees(np.arctan2(b, a))


def turn(first, second):
    return abs((hue(first) - hue(second) + 180) % 360 - 180)


def test_a_colour_keeps_its_hue_on_black():
    assert max(turn(ON_BLACK[name], colour) for name, colour in PALETTE.items()) < 5
    assert turn("#978bf4", PALETTE["blue"]) > 10, "lavender is no blue"


def test_rounds_are_thinned_with_both_ends():
    for count, most in itertools.product((1, 2, 40, 80, 1000, 10**6), (2, 40, 80)):
        positions = thin_positions(count, most)
        assert (positions[0], positions[-1]) == (0, count - 1)
        assert len(positions) <= most
        assert (np.diff(positions) > 0).all()
