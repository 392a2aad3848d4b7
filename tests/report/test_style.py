"""Looks of algorithms: unique, fixed by the name alone, told apart on grey paper and by
colour-blind readers.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.report.figures.style import (
    CONTRAST,
    GREY,
    PALETTE,
    PUBLISHED,
    REST,
    Look,
    look_of,
    looks,
    measure_contrast,
    step_of,
    variant_of,
)
from tests.helpers import load

TOGETHER = [  # what one panel shows, in the papers' figures unless said
    ("ckb-ucb", "ckb-ts", "ckb-rand", "stageopt", "sgp-ucb"),
    ("penalty-noiseless", "bandit-oco", "admmbo"),
    ("penalty-noisy", "bandit-oco", "admmbo"),
    ("rpol-ucb", "ckb-ucb", "config"),
    ("rpol-censored", "rpol-ucb", "ckb-ucb", "config"),
    ("rpol-sw", "ckb-ucb", "config", "ckb-restart"),
    ("ckb-ucb", "cei", "scbo", "random"),  # the tutorial's
    ("ckb-ucb", "cei", "scbo", "stageopt", "random"),
]
SIGHT = {  # Machado, Oliveira & Fernandes (2009), complete deficiency, on linear RGB
    "normal": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.072175],
        [0.0193339, 0.119192, 0.9503041],
    ]
)


def lab(colour, sight="normal"):
    """CIELAB (D65) of "#rrggbb" as it is seen."""
    coded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    scaled = XYZ @ np.clip(SIGHT[sight] @ linear, 0, 1) / XYZ.sum(axis=1)
    f = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(first, second, sight="normal"):
    return float(np.linalg.norm(lab(first, sight) - lab(second, sight)))


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_are_told_apart(sight):
    pairs = itertools.combinations(PALETTE.values(), 2)
    assert min(distance(first, second, sight) for first, second in pairs) > 25


def test_every_line_is_seen_on_white():
    """At least 3 to 1, as WCAG 2 asks of parts of pictures: every colour, grey, and every shade of
    a variant.
    """
    assert measure_contrast("#ffffff") == 1
    assert measure_contrast("#000000") == 21
    assert measure_contrast("#fc9cf0") == pytest.approx(1.88, abs=0.01), (
        "negative control: a pink of before"
    )
    assert CONTRAST == 3
    bases = [Look(colour, (), "o") for colour in PALETTE.values()]
    shades = [variant_of(base, i).colour for base in bases for i in range(8)]
    steps = [step_of(base, i, 5).colour for base in bases for i in range(5)]
    worst = min([GREY, *PALETTE.values(), *shades, *steps], key=measure_contrast)
    assert measure_contrast(worst) >= CONTRAST, worst


def test_what_is_drawn_together_differs_in_everything():
    for sample in TOGETHER:
        for first, second in itertools.combinations([look_of(name) for name in sample], 2):
            assert first.dash != second.dash
            assert first.marker != second.marker
            assert abs(lab(first.colour)[0] - lab(second.colour)[0]) > 5
            assert min(distance(first.colour, second.colour, sight) for sight in SIGHT) > 25


def test_a_look_is_fixed_by_the_name_alone(monkeypatch):
    before = {name: look_of(name) for name in ALGORITHMS.names()}
    new = look_of("a-new-algorithm")
    assert isinstance(new, Look)
    assert look_of("a-new-algorithm") == new
    assert all(
        (look_of(name).colour, look_of(name).marker) != (new.colour, new.marker)
        for name in PUBLISHED
    )
    assert look_of("a-new-algorithm", {(new.colour, new.marker)}) != new, (
        "the next choice where that is taken"
    )
    assert {name: look_of(name) for name in ALGORITHMS.names()} == before


class Record:
    """As much of a run's record as looks need."""

    def __init__(self, *names):
        self.names = names

    def variants(self, kind):
        assert kind == "algorithms"
        return {
            f"{name}[{i}]": type("Variant", (), {"name": name, "values": {}})
            for i, name in enumerate(self.names)
        }


def test_in_one_run_nothing_looks_alike_and_own_algorithms_give_way():
    ours = [f"mine:Method{i}" for i in range(36)]
    names = ALGORITHMS.names()
    assert set(PUBLISHED) <= set(names)
    look_of_title = looks(Record(*ours, *names))
    assert len({(look.colour, look.marker) for look in look_of_title.values()}) == len(
        look_of_title
    )
    for title, look in look_of_title.items():
        if ":" not in title:
            assert look == look_of(title.split("[")[0])
    many = looks(Record(*(f"mine:Method{i}" for i in range(120))))
    assert len(many) == 120, "more than there are combinations"


def test_few_algorithms_of_a_run_share_no_colour():
    names = ALGORITHMS.names()
    for pair in itertools.combinations(names, 2):
        item, second = (look.colour for look in looks(Record(*pair)).values())
        assert item != second, pair
    for i in range(0, len(names), 8):
        look_of_title = looks(Record(*names[i : i + 8]))
        assert len({look.colour for look in look_of_title.values()}) == len(look_of_title)
    paper = ("ckb-ucb", "ckb-ts", "ckb-rand", "stageopt", "sgp-ucb")
    assert [*looks(Record(*paper)).values()] == [look_of(name) for name in paper]


def test_a_lead_has_all_colours_to_itself():
    names = ALGORITHMS.names()
    titles = [f"{name}[{i}]" for i, name in enumerate(names)]
    for lead in (titles[:8], titles[20:28], titles[::5][:8]):
        look_of_title = looks(Record(*names), lead)
        assert [*look_of_title] == titles
        assert len({look_of_title[title].colour for title in lead}) == 8
        assert {look_of_title[title] for title in titles if title not in lead} == {REST}
    assert (
        looks(Record(*names[:5]), titles[:2])[titles[0]] == looks(Record(*names[:5]))[titles[0]]
    ), "few keep theirs"


def test_variants_share_the_hue(write_suite):
    suite = "suite: s\nhorizon: 5\nseeds: 1\nproblems: [rkhs-1d]\nalgorithms:\n"
    suite += "  - ckb-rand: {beta_scale: {sweep: [0.1, 0.2, 0.4, 0.8, 1.0]}}\n  - ckb-ucb\n"
    grid = load(write_suite(suite)).grid
    look_of_title = looks(
        type("Record", (), {"variants": lambda self, kind: {v.title: v for v in grid.algorithms}})()
    )
    five = list(look_of_title.values())[:5]
    assert len({look.marker for look in five}) == 5
    assert (np.diff([lab(look.colour)[0] for look in five]) < -5).all(), (
        "from light to dark, in the number's order"
    )
    assert lab(five[0].colour)[0] < 80, "seen on white"
    assert list(look_of_title.values())[5] == look_of("ckb-ucb")
