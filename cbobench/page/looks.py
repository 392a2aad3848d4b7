"""How the page shows an algorithm: the look of every figure (`report.style`) in the library's words, and on black."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbobench.report.style import Look

Array = NDArray[np.float64]
SYMBOLS = {
    "o": "circle", "s": "square", "D": "diamond", "^": "triangle-up", "v": "triangle-down", "P": "cross", "X": "x",
    "p": "pentagon", "<": "triangle-left", ">": "triangle-right",
}  # fmt: skip
WIDTH = 2.0  # of lines, pixels
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])
DARKEST, LIGHTEST, REACH = 20.0, 77.0, (94.0, 46.0)  # lightness of the palette on white, and of the same two on black


def shown(look: Look) -> dict[str, Any]:
    """Colour on white ("light") and on black ("dark"), dash and symbol."""
    dash = ",".join(f"{WIDTH * length:g}px" for length in look.dash) or "solid"
    symbol = SYMBOLS[look.marker] + ("" if look.filled else "-open")
    return {"light": look.colour, "dark": on_black(look.colour), "dash": dash, "symbol": symbol, "width": WIDTH}


def on_black(colour: str) -> str:
    """The colour of the same hue with the lightness turned round: what is darkest on white is lightest on black.

    Differences of lightness stay, and with them what tells colours apart for every kind of sight; chroma gives way
    where the screen has none so light.
    """
    lightness, a, b = _lab(colour)
    share = np.clip((lightness - DARKEST) / (LIGHTEST - DARKEST), 0, 1)
    turned = REACH[0] + share * (REACH[1] - REACH[0])
    for chroma in np.linspace(1, 0, 41):
        linear = _linear(np.array([turned, chroma * a, chroma * b]))
        if (linear >= -1e-9).all() and (linear <= 1 + 1e-9).all():
            break
    coded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.clip(linear, 0, 1) ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * part):02x}" for part in np.clip(coded, 0, 1))


def _lab(colour: str) -> Array:
    """CIELAB (D65) of "#rrggbb"."""
    coded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    scaled = XYZ @ linear / XYZ.sum(axis=1)
    f = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _linear(lab: Array) -> Array:
    """Linear RGB of a CIELAB colour, outside [0, 1] where no screen has it."""
    y = (lab[0] + 16) / 116
    f = np.array([y + lab[1] / 500, y, y - lab[2] / 200])
    scaled = np.where(f**3 > 216 / 24389, f**3, (116 * f - 16) * 27 / 24389)
    return np.asarray(np.linalg.solve(XYZ, scaled * XYZ.sum(axis=1)))
