"""Fonts for labels in any script: an installed one that has the characters, or a line that says what to install."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable

from cbobench.errors import Advice

PREFERRED = ("Noto", "Source Han", "IPA", "WenQuanYi", "Droid", "Unifont")
"""How the names of families begin that have large parts of Unicode."""
BOXES = "Last Resort"  # a font of matplotlib's own, which has a box for every character
EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH", "IDEOGRAPHIC")
MOST_SHOWN = 5  # characters that a warning shows


def use_fonts_for(labels: Iterable[str]) -> None:
    """Let text that is made from now on take from other installed fonts what its own lacks.

    Changes matplotlib's settings, and so belongs into a context of them. One warning names what no font has.
    """
    import matplotlib as mpl
    from matplotlib import font_manager

    characters = {char for char in "".join(labels) if not char.isascii() and char.isprintable()}
    if not characters:
        return

    def lacking(path: str, chars: set[str]) -> set[str]:
        charmap = font_manager.get_font(path).get_charmap()
        return {char for char in chars if ord(char) not in charmap}

    missing = lacking(font_manager.findfont(font_manager.FontProperties()), characters)
    entries = [entry for entry in font_manager.fontManager.ttflist if not entry.name.startswith(BOXES)]
    # Outlines that are not TrueType's cannot be embedded as such, and are taken last.
    entries.sort(key=lambda e: (not e.fname.endswith(".ttf"), not e.name.startswith(PREFERRED), e.name, e.fname))
    families = list(mpl.rcParams["font.family"])
    for entry in entries:
        if not missing:
            break
        if entry.style != "normal" or entry.name in families:
            continue
        left = lacking(entry.fname, missing)
        if left != missing:
            families.append(entry.name)
            missing = left
    mpl.rcParams["font.family"] = families
    if missing:
        warnings.warn(_describe(sorted(missing)), Advice, stacklevel=4)


def _describe(missing: list[str]) -> str:
    sample = " ".join(missing[:MOST_SHOWN]) + (f" and {len(missing) - MOST_SHOWN} more" if missing[MOST_SHOWN:] else "")
    names = [unicodedata.name(char, "unknown").split()[0] for char in missing]
    east = any(name.startswith(EAST_ASIAN) for name in names)
    font = "Noto Sans CJK (Debian: fonts-noto-cjk)" if east else f"one of the Noto fonts that has {names[0].title()}"
    return f"no installed font has {sample}: figures show boxes instead; install {font}, or draw with --font NAME"
