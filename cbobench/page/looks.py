"""How the page shows an algorithm: the look of every figure (`report.style`) in the library's words, and on black."""

from __future__ import annotations

from typing import Any

from cbobench.report.style import PALETTE, SHADES, looks, mix_colour
from cbobench.results.manifest import Manifest

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "D": "diamond",
    "^": "triangle-up",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
    "p": "pentagon",
    "<": "triangle-left",
    ">": "triangle-right",
}
WIDTH = 2.0  # of lines, pixels
# The palette on black: each within five degrees of its hue on white (OKLCH), each more than four units of CIELAB
# lightness from the next; with normal sight, deuteranopia and protanopia every two of them are at least 20 units apart.
ON_BLACK = {
    "violet": "#ac90fe",
    "rust": "#e57452",
    "slate": "#a7c2fe",
    "sage": "#b7f8c5",
    "blue": "#2473f8",
    "amber": "#e7a318",
    "teal": "#7ee8ea",
    "pink": "#a64c9b",
}
FAINTER = 0.7  # shades of variants, beside those on white


def page_styles(record: Manifest) -> dict[str, dict[str, Any]]:
    """By title of the algorithm: label, colour on white ("light") and on black ("dark"), dash and symbol."""
    look_by_title, labels = looks(record), record.labels("algorithms")
    dark = {PALETTE[name]: colour for name, colour in ON_BLACK.items()}
    base_by_name: dict[str, str] = {}
    last_position: dict[str, int] = {}
    result = {}
    for title, variant in record.variants("algorithms").items():
        look = look_by_title[title]
        # The first variant has the algorithm's own colour, of which the others are shades.
        base = base_by_name.setdefault(variant.name, dark.get(look.colour, look.colour))
        position = last_position[variant.name] = last_position.get(variant.name, -1) + 1
        result[title] = {
            "label": labels[title],
            "light": look.colour,
            "dark": mix_colour(base, FAINTER * SHADES[position % len(SHADES)]),
            "dash": ",".join(f"{WIDTH * length:g}px" for length in look.dash) or "solid",
            "symbol": SYMBOLS[look.marker] + ("" if look.filled else "-open"),
            "width": WIDTH,
        }
    return result
