"""How figures look: sizes, fonts, and one colour, dash and marker per
algorithm everywhere.

An algorithm's look is fixed by its registered name. The methods of the papers' figures, which are
seen together, have looks that were chosen for it; every other name, a user's own too, is given one
by a hash of the name. No two of up to
eight algorithms of a run share a colour: of two that would, one takes a free colour. Variants of
one algorithm are a
family: they share its hue and differ in lightness, dash and marker; those of a sweep over a number
go from light to dark in its order. Of more methods than that, a lead is in colour
(`figures.choose_lead`), and the others are grey.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cbobench.errors import Misuse, show, unknown
from cbobench.report.groups import gather
from cbobench.results.manifest import Manifest, Variant


@dataclass(frozen=True)
class Size:
    """A format of figures; lengths in inches, text and lines in points, as printed.

    Attributes:
        width: of the whole figure.
        panel: height of one row of panels.
        tallest: height of all rows together at most.
        columns: panels beside each other at most.
        text, small: of titles and axes, and of ticks and the legend.
        line, marker: widths.
        dpi: of the PNG.
        font: of all text, a family's name; matplotlib's own by default.
    """

    width: float
    panel: float
    tallest: float
    columns: int
    text: float
    small: float
    line: float
    marker: float
    dpi: int
    font: str = ""

    @contextmanager
    def context(self) -> Iterator[None]:
        """A context of all matplotlib settings that a figure depends on, whatever a matplotlibrc
        says.
        """
        import matplotlib as mpl
        import matplotlib.style as styles
        import seaborn as sns

        settings = {
            **sns.axes_style("ticks"),
            "pdf.fonttype": EMBEDDED,
            "ps.fonttype": EMBEDDED,
            "savefig.dpi": self.dpi,
            "svg.hashsalt": "cbobench",
            "font.size": self.text,
            "axes.labelsize": self.text,
            "axes.titlesize": self.text,
            "axes.titlelocation": "left",
            "axes.linewidth": 0.6 * self.line,
            "axes.labelpad": self.text / 4,
            "axes.titlepad": self.text / 2,
            "legend.fontsize": self.small,
            "xtick.labelsize": self.small,
            "ytick.labelsize": self.small,
            "lines.linewidth": self.line,
            "lines.markersize": self.marker,
            "lines.markeredgewidth": 0.7 * self.line,
            **{
                f"{axis}tick.{kind}.{part}": share * self.line / smaller
                for axis in "xy"
                for kind, smaller in (("major", 1), ("minor", 2))
                for part, share in TICKS.items()
            },
        }
        if self.font:
            settings |= {
                "font.family": [self.font, "DejaVu Sans"],  # which has all signs of ours
                "mathtext.fontset": "stix" if self.font == "serif" else "dejavusans",
            }
        with mpl.rc_context():
            styles.use(["default", settings])
            yield


# the type of fonts in PDF and PostScript: TrueType, as publishers refuse matplotlib's own type 3
EMBEDDED = 42
TICKS = {"size": 2.5, "width": 0.6, "pad": 2.0}
SIZES = {
    "single": Size(3.25, 2.1, 8.4, 1, 8.0, 7.0, 1.1, 3.4, 300),  # one column of a two-column page
    "double": Size(6.75, 1.9, 8.4, 3, 8.0, 7.0, 1.1, 3.4, 300),  # its whole width
    "slide": Size(10.0, 4.2, 6.6, 3, 15.0, 13.0, 2.0, 6.0, 150),
}


UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # inches; a point is TeX's
WIDTHS = (1.5, 40.0)  # inches
PANEL = 2.2  # inches of width that a panel takes at least, where the width is any
FAMILIES = ("serif", "sans-serif", "monospace")


def size_of(name: str | None, panels: int, font: str | None = None) -> Size:
    """A size by name or width; by default a single column for one panel, else a double one.

    Args:
        name: one of `SIZES`, or a width with its unit ("3.25in", "8.4cm", "240pt"): text as in a
            column of a paper, and as many panels beside each other as fit.
        font: "serif", "sans-serif", "monospace", or the name of an installed family.

    Raises:
        Misuse: no such size, no such width, or a font that is not installed.
    """
    name = name or ("single" if panels == 1 else "double")
    length = re.fullmatch(r"\s*([\d.]+)\s*([a-z]*)\s*", name)
    if name in SIZES:
        size = SIZES[name]
    elif not length:
        raise unknown("size", name, SIZES, then="or give a width with its unit, such as 3.25in")
    else:
        size = replace(SIZES["single"], width=_parse_width(*length.groups()))
        columns = max(1, int(size.width / PANEL))
        size = size if columns == 1 else replace(size, columns=columns, panel=SIZES["double"].panel)
    if font:
        return replace(size, font=_check_font(font))
    return size


def _parse_width(number: str, unit: str) -> float:
    """A width in inches."""
    try:
        width = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        width = math.nan
    if not WIDTHS[0] <= width <= WIDTHS[1]:
        raise Misuse(
            f"width is {show(number + unit)}; allowed: 1.5in to 40in; units: {', '.join(UNITS)}"
        )
    return width


def _check_font(name: str) -> str:
    """The name of a family, if it is installed."""
    from matplotlib import font_manager

    installed = sorted({entry.name for entry in font_manager.fontManager.ttflist})
    if name not in FAMILIES and name not in installed:
        raise unknown("font", name, [*FAMILIES, *installed], then=f"or give {', '.join(FAMILIES)}")
    return name


# Eight colours from dark to light, five units of CIELAB lightness apart, so that they differ on
# grey paper; each has a contrast of at least `CONTRAST` on white; with normal sight, deuteranopia
# and protanopia every two of them are at least 25 units apart.
PALETTE = {
    "violet": "#320272",
    "rust": "#681100",
    "slate": "#3d4c80",
    "sage": "#2c6845",
    "blue": "#0d5cf7",
    "amber": "#997120",
    "teal": "#259492",
    "pink": "#e957e1",
}
CONTRAST = 3.0  # of every line on white: what WCAG asks of parts of pictures
WHITE = "#ffffff"
BLACK = "#000000"
GREY = "#8c8c8c"  # of methods that are not in the lead
MARKERS = "osD^vPXp<>"
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (4, 1.5),
    (1, 1.2),
    (5, 1.5, 1, 1.5),
    (6, 1.2, 1, 1.2, 1, 1.2),
)
# how far the variants of an algorithm are mixed with white, or light ones with black
SHADES = (0.0, 0.45, 0.25, 0.6)

# Colour, dash and marker of what is shown together by the papers' figures, and by most comparisons
# on boxes (`cei`, `scbo`, `ckb-ucb`, `random`). No name needs to be here.
PUBLISHED = {
    "ckb-ucb": ("blue", 0, "o"),
    "ckb-ts": ("amber", 1, "s"),
    "ckb-rand": ("violet", 2, "^"),
    "stageopt": ("rust", 3, "D"),
    "sgp-ucb": ("sage", 4, "v"),
    "penalty-noiseless": ("rust", 0, "o"),
    "penalty-noisy": ("slate", 0, "P"),
    "bandit-oco": ("amber", 3, "v"),
    "admmbo": ("teal", 2, "X"),
    "rpol-ucb": ("rust", 1, "P"),
    "rpol-censored": ("violet", 2, "s"),
    "rpol-sw": ("rust", 1, "<"),
    "config": ("sage", 3, "X"),
    "ckb-restart": ("violet", 2, "D"),
    "cei": ("teal", 1, ">"),
    "scbo": ("violet", 2, "<"),
    "slsqp": ("slate", 1, "s"),
    "nomad": ("slate", 0, "D"),
    "random": ("pink", 4, "p"),
}
SALT = 53  # the first with which no two shipped names share colour and marker


@dataclass(frozen=True)
class Look:
    """Colour ("#rrggbb"), dash (lengths in line widths, none for a solid line), marker, and whether
    that is filled.

    A look that is not of the `lead` is that of a method in the background.
    """

    colour: str
    dash: tuple[float, ...]
    marker: str
    filled: bool = True
    lead: bool = True

    def points(self) -> dict[str, Any]:
        """What matplotlib's `plot` and `errorbar` take for markers."""
        face = self.colour if self.filled else "white"
        return {
            "color": self.colour,
            "marker": self.marker,
            "markerfacecolor": face,
            "markeredgecolor": self.colour,
        }

    def line(self) -> dict[str, Any]:
        """What matplotlib's `plot` takes for a line with markers; in the background a thin one
        without.
        """
        if not self.lead:
            return {"color": self.colour, "zorder": 1.5, **thin("lines")}
        return self.points() | {"linestyle": (0, self.dash) if self.dash else "-"}


REST = Look(GREY, (), ".", lead=False)


def look_of(name: str, used_looks: Iterable[tuple[str, str]] = ()) -> Look:
    """The look of an algorithm by its registered name; the name's next choice where colour and
    marker are taken.
    """
    if name in PUBLISHED:
        colour, dash, marker = PUBLISHED[name]
        return Look(PALETTE[colour], DASHES[dash], marker)
    free = {(c, m) for c in PALETTE.values() for m in MARKERS}
    free -= {(PALETTE[c], m) for c, _, m in PUBLISHED.values()}
    free = free - set(used_looks) or free
    attempt = 0
    while True:
        word = hashlib.sha256(f"{SALT} {attempt} {name}".encode()).digest()
        colour = [*PALETTE.values()][word[0] % len(PALETTE)]
        marker = MARKERS[word[2] % 10]
        if (colour, marker) in free:
            return Look(colour, DASHES[word[1] % 5], marker)
        attempt += 1


def variant_of(look: Look, position: int) -> Look:
    """The look of an algorithm's variant by its position in the suite, the first one's being the
    algorithm's own.
    """
    dash = DASHES.index(look.dash)
    marker = MARKERS.index(look.marker)
    return Look(
        deepen(mix_colour(look.colour, SHADES[position % len(SHADES)])),
        DASHES[(dash + position) % len(DASHES)],
        MARKERS[(marker + 3 * position) % len(MARKERS)],
        filled=position % 2 == 0,
    )


def swept_parameter(variants: Sequence[Variant]) -> str | None:
    """The only parameter in which variants of one name differ, if its values are numbers that all
    differ.
    """
    names = {name for variant in variants for name in variant.values}
    values = {name: [variant.values.get(name) for variant in variants] for name in names}
    differing = [name for name in names if len({*map(str, values[name])}) > 1]
    if len(variants) < 3 or len(differing) != 1:
        return None
    (name,) = differing
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values[name])
    if numeric and len({*values[name]}) == len(variants):
        return name
    return None


def step_of(look: Look, position: int, count: int) -> Look:
    """The look of a value in a sweep over a number, from light to dark in its order."""
    light = deepen(mix_colour(look.colour, 0.6, WHITE))
    dark = mix_colour(look.colour, 0.7, BLACK)
    colour = mix_colour(light, position / (count - 1), dark)
    return Look(colour, (), MARKERS[position % len(MARKERS)], position < len(MARKERS))


def mix_colour(colour: str, share: float, towards: str = "") -> str:
    """A colour with a share of another; by default of black or white, away from its own
    lightness.
    """
    start = bytes.fromhex(colour[1:])
    if not towards:
        is_light = np.dot([*start], (0.3, 0.6, 0.1)) > 110
        towards = BLACK if is_light else WHITE
    ends = zip(start, bytes.fromhex(towards[1:]), strict=True)
    return f"#{bytes(round(a + share * (b - a)) for a, b in ends).hex()}"


def measure_contrast(colour: str) -> float:
    """How much lighter white is than a colour, from 1 to 21, as WCAG 2 defines it."""
    coded = np.array([*bytes.fromhex(colour[1:])]) / 255
    linear = np.where(coded > 0.04045, ((coded + 0.055) / 1.055) ** 2.4, coded / 12.92)
    return float(1.05 / (linear @ (0.2126, 0.7152, 0.0722) + 0.05))


def deepen(colour: str) -> str:
    """The colour, with as much black as it takes to be seen on white."""
    darker = (mix_colour(colour, i / 100, BLACK) for i in range(101))
    return next(mixed for mixed in darker if measure_contrast(mixed) >= CONTRAST)


def looks(record: Manifest, lead: Sequence[str] | None = None) -> Mapping[str, Look]:
    """The look of every algorithm of a run by title; a name that no figure of the papers has gives
    way first.

    Args:
        lead: titles of those in colour, the others are grey; by default all have one.
    """
    variants = record.variants("algorithms")
    seen = variants
    if lead is not None and len({variant.name for variant in variants.values()}) > len(PALETTE):
        # All together would share colours: those of a lead have eight to themselves.
        seen = {title: variant for title, variant in variants.items() if title in lead}
    given = _give_looks(seen)
    return {title: given[title] if lead is None or title in lead else REST for title in variants}


def _give_looks(variants: Mapping[str, Variant]) -> Mapping[str, Look]:
    """A look to every variant by title."""
    by_name = gather((variant.name, title) for title, variant in variants.items())
    result: dict[str, Look] = {}
    used: set[Look] = set()
    # Of each algorithm, before its variants differ.
    others: list[Look] = []
    for name in sorted(by_name, key=lambda name: (name not in PUBLISHED, ":" in name, name)):
        look = look_of(name, {(other.colour, other.marker) for other in others})
        taken = {other.colour for other in others}
        # With more algorithms than colours some must share one.
        if look.colour in taken and len(by_name) <= len(PALETTE):
            free = [colour for colour in PALETTE.values() if colour not in taken]
            choice = hashlib.sha256(name.encode()).digest()[0] % len(free)
            look = replace(look, colour=free[choice])
        markers = {other.marker for other in others}
        if look.marker in markers and name not in PUBLISHED:
            unused = (marker for marker in MARKERS if marker not in markers)
            look = replace(look, marker=next(unused, look.marker))
        others.append(look)
        titles = by_name[name]
        if parameter := swept_parameter([variants[title] for title in titles]):
            titles = sorted(titles, key=lambda title: variants[title].values[parameter])
            result |= {title: step_of(look, i, len(titles)) for i, title in enumerate(titles)}
            continue
        # Looks repeat after a while: then two variants share one, which is better than no end.
        steps = (variant_of(look, position) for position in range(100 + len(titles)))
        for title in titles:
            result[title] = next((step for step in steps if step not in used), look)
            used.add(result[title])
    return {title: result[title] for title in variants}


def thin(kind: str) -> dict[str, float]:
    """What matplotlib takes for the "bars" of errors, or for other "lines", thinner than curves of
    the size in use.
    """
    import matplotlib as mpl

    width = 0.65 * float(mpl.rcParams["lines.linewidth"])
    if kind == "bars":
        return {"elinewidth": width, "capthick": width, "capsize": 2 * width}
    return {"linewidth": width}


def plain(text: str) -> str:
    """A label that matplotlib shows as it is: no formulas, and not hidden from the legend by a
    leading underscore.
    """
    return ("\u200b" if text.startswith("_") else "") + text.replace("$", r"\$")


def legend_label(row: Any, extra_notes: Iterable[str] = ()) -> str:
    """A label of the legend, which says so where seeds are missing, or cells are stale, and what
    more there is.

    Args:
        row: of a panel's frame, with `label`, `n`, `expected` and `stale`.
    """
    notes = [*extra_notes]
    if row["n"] != row["expected"]:
        notes.insert(0, f"{row['n']:,} of {row['expected']:,}")
    if row["stale"]:
        notes.append("stale")
    label = plain(row["label"])
    return f"{label} ({', '.join(notes)})" if notes else label
