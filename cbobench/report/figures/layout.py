"""The page of a figure: panels in rows with letters and shared scales, one legend below them, and
nothing cut off.

It is drawn on an image of its own kind, which looks the same whoever saves it, and which pyplot
does not know. matplotlib reads its settings when a figure is drawn and when it is saved, which
users do after `cbobench.plot` has returned. So an image brings its settings along: its size, and
fonts that publishers take, hold under any matplotlibrc. An image that pyplot knew would be shown a
second time by notebooks, which show all that pyplot has open.
"""

from __future__ import annotations

import math
import string
import textwrap
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter

from cbobench.metrics import METRICS
from cbobench.report.figures.planes import AnyPanel
from cbobench.report.figures.style import Size, plain
from cbobench.report.groups import gather

FLAT = 0.38  # height of a panel by its width at least
ROOM = 0.04  # of an axis, beyond what is drawn


class Image(Figure):
    """A matplotlib figure that is drawn and saved with the settings of its size.

    Args:
        size: whose width it has.
        height: in inches.
        layout: a layout engine, or its name.
    """

    def __init__(self, size: Size, height: float, layout: Any = "constrained") -> None:
        self.size = size
        with size.context():
            super().__init__(figsize=(size.width, height), layout=layout)
            # In place of the canvas that matplotlib gives every figure, which prints with the
            # settings of the user.
            Canvas(self)

    def draw(self, renderer: Any) -> None:
        """Draw it. Ticks are made now, which would take the user's settings."""
        with self.size.context():
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save it, as matplotlib does; a PNG has the size's resolution by default."""
        with self.size.context():
            super().savefig(fname, **options)

    def show(self, warn: bool = True) -> None:
        """Open a window, in a program that has windows; pyplot knows the image from then on, and
        `plt.show` waits.
        """
        import matplotlib.pyplot as plt

        # pyplot opens windows only for figures that it makes itself, so it is handed this one as
        # new.
        if self.canvas.manager is None:
            plt.figure(FigureClass=lambda **_: self)  # type: ignore[arg-type]
        super().show(warn)

    def _repr_png_(self) -> bytes:
        """What a notebook shows, if matplotlib's own way of it has not begun."""
        sink = BytesIO()
        self.savefig(sink, format="png", dpi=self.dpi)
        return sink.getvalue()


class Canvas(FigureCanvasAgg):
    """Prints with the image's settings where its `savefig` is passed over, as IPython does."""

    figure: Image

    def print_figure(self, *args: Any, **options: Any) -> Any:
        """Save the image."""
        with self.figure.size.context():
            return super().print_figure(*args, **options)


def grid(panels: Sequence[AnyPanel], size: Size, columns: int) -> tuple[Any, list[Any]]:
    """An empty image with one axis per panel, of the size's width.

    Args:
        columns: panels beside each other, if the size has room for them.
    """
    rows = -(-len(panels) // min(len(panels), columns, size.columns))
    across = -(-len(panels) // rows)  # rows of about the same length
    height = min(rows * max(size.panel, FLAT * size.width / across), size.tallest)
    pad = size.small / 72
    engine = ConstrainedLayoutEngine(w_pad=pad / 2, h_pad=pad / 4, wspace=0.02, hspace=0.05)
    image = Image(size, height, engine)
    axes = list(image.subplots(rows, across, squeeze=False).flat)
    for axis in axes[len(panels) :]:
        axis.remove()
    return image, axes[: len(panels)]


def finish(
    image: Any,
    axes: Sequence[Any],
    panels: Sequence[AnyPanel],
    size: Size,
) -> None:
    """Letters, ticks, shared scales, zero lines and the legend; then long labels are broken where
    they do not fit.
    """
    for position, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
        letter = f"({string.ascii_lowercase[position % 26]}) " if len(panels) > 1 else ""
        axis.set_title(plain(letter + panel.title))
        if not _has_numbers(axis):
            axis.text(
                0.5,
                0.5,
                "not known here",
                transform=axis.transAxes,
                ha="center",
                va="center",
                color="0.4",
            )
        sns.despine(ax=axis)
    set_limits(axes, panels)
    for axis, panel in zip(axes, panels, strict=True):
        set_ticks(axis, axis.get_window_extent().width / image.dpi, size, panel)
        mark_edge(axis)
        draw_zeros(axis)
    _add_legend(image, axes, size)
    # How much room a label has is known only once the page is laid out, with its legend.
    image.get_layout_engine().execute(image)
    for axis in axes:
        room = axis.get_window_extent()
        if axis.yaxis.label.get_window_extent().height > room.height:
            # The caption has the whole name.
            axis.set_ylabel(axis.get_ylabel().replace(" cumulative", ""))
        _break_text(axis.yaxis.label, room.height, "height")
        _break_text(axis.xaxis.label, room.width, "width")
        _break_title(axis, room.width)


def draw_zeros(axis: Any) -> None:
    """A grey line at 0 where an axis has values on both sides of it."""
    for side, draw_line in ((axis.xaxis, axis.axvline), (axis.yaxis, axis.axhline)):
        low, high = side.get_view_interval()
        if low < 0 < high:
            draw_line(0, color="0.6", linewidth=0.6, zorder=0.2, gid="zero")


def mark_edge(axis: Any) -> None:
    """A tick where a logarithmic axis has what it cannot show (`Panel.edge`), in place of any
    number: "0", or what it is less than.
    """
    lines = [line for line in axis.collections if line.get_gid() == "edge"]
    if not lines:
        return
    side, edge, word = axis.yaxis, float(lines[0].get_segments()[0][0][1]), lines[0].get_label()[1:]
    written = side.get_major_formatter()
    low, high = side.get_view_interval()
    major, minor = (
        [tick for tick in locator() if 1.5 * edge < tick <= high and low < tick]
        for locator in (side.get_major_locator(), side.get_minor_locator())
    )
    side.set_major_locator(FixedLocator([edge, *major]))
    side.set_minor_locator(FixedLocator(minor))
    side.set_major_formatter(lambda value, place: word if value == edge else written(value, place))


def save(
    image: Any, paths: Sequence[Path], dpi: int, caption: str, facts: Mapping[str, str]
) -> None:
    """Write an image as PDF, PNG and SVG, with its caption and other facts as metadata, and no time
    stamp.

    It is laid out once for all files, at the PNG's resolution.
    """
    subject = " ".join(caption.splitlines())
    image.set_dpi(dpi)
    image.get_layout_engine().execute(image)
    image.set_layout_engine(None)  # else it would be laid out for every file, and drawn twice
    empty = {".pdf": "CreationDate", ".png": "Software", ".svg": "Date"}
    for path in paths:
        about = "Subject" if path.suffix == ".pdf" else "Description"
        metadata = {empty[path.suffix]: None, about: subject, **facts}
        image.savefig(path, dpi=dpi, metadata=metadata)


def _has_numbers(axis: Any) -> bool:
    """Whether there is a number to be seen."""
    return bool(np.isfinite(axis.dataLim.get_points()).all())


def set_limits(axes: Sequence[Any], panels: Sequence[AnyPanel]) -> None:
    """Limits with a little room, not below what the quantities can be, and the same for panels of
    one scale.
    """
    known = [pair for pair in zip(axes, panels, strict=True) if _has_numbers(pair[0])]
    for axis, panel in known:
        axis.margins(ROOM)
        axis.autoscale_view()
        for side, metric in zip((axis.xaxis, axis.yaxis), panel.sides, strict=True):
            low, high = side.get_view_interval()
            is_linear = side.get_scale() == "linear"
            # Rounds and shares are not negative.
            floor = METRICS[metric].least if metric else 0.0
            if floor is not None and low - floor < 0.25 * (high - low) and is_linear:
                # a curve at the floor is seen
                room = ROOM / 2 * (high - floor) if side is axis.yaxis else 0.0
                axis.set(**{f"{side.axis_name}lim": (floor - room, high)})
    for together in gather((panel.scale, axis) for axis, panel in known).values():
        lows, highs = zip(*(axis.get_ylim() for axis in together), strict=True)
        for axis in together:
            axis.set_ylim(min(lows), max(highs))


def set_ticks(axis: Any, width: float, size: Size, panel: AnyPanel) -> None:
    """As many ticks as there is room for numbers; whole ones on an axis that counts; on a
    logarithmic axis 1, 2 and 5 times powers of ten, or those alone if there are many.
    """
    across, up = panel.sides
    for side, room, metric in (
        (axis.xaxis, width * 72 / (4 * size.small), across),
        (axis.yaxis, 6, up),
    ):
        is_count = metric is not None and METRICS[metric].is_count and not panel.average
        if side.get_scale() == "linear":
            bins = max(2, min(6, int(room)))
            side.set_major_locator(MaxNLocator(bins, steps=[1, 2, 2.5, 5, 10], integer=is_count))
            ticks = side.get_major_locator()()
            step = float(np.diff(ticks).min()) if len(ticks) > 1 else 1.0
            side.set_major_formatter(_make_tick_format(step, float(np.abs(ticks).max(initial=0.0))))
        elif side.get_scale() == "log":
            low, high = side.get_view_interval()
            is_short = high < 100 * low
            side.set_major_locator(
                LogLocator(subs=(1.0, 2.0, 5.0) if is_short else (1.0,), numticks=9)
            )
            side.set_minor_formatter(NullFormatter())
            if is_short:
                side.set_major_formatter(lambda value, _: f"{value:,.6g}")


def _make_tick_format(step: float, most: float) -> Callable[[float, int], str]:
    """How the numbers at an axis are written: with as many decimals as the step has, thousands as
    k, millions as M.
    """
    unit, letter = next(
        ((u, w) for u, w in ((1e6, "M"), (1e3, "k")) if most >= 100 * u and step >= u / 10), (1, "")
    )
    places = next(
        (p for p in range(6) if math.isclose(step / unit, round(step / unit, p), rel_tol=1e-6)), 6
    )
    return lambda value, _: f"{value / unit:,.{places}f}{letter if value else ''}".replace("-", "−")


def _add_legend(image: Any, axes: Sequence[Any], size: Size) -> None:
    """One legend below all panels, in as many columns as fit; the image grows by its height."""
    letters = int(size.width * 72 / (0.75 * size.small))
    lines = {
        textwrap.fill(label, letters): line
        for axis in axes
        for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    # The widest legend that fits takes the least height from the panels.
    for columns in range(min(len(lines), 6), 0, -1):
        legend = image.legend(
            lines.values(),
            lines,
            loc="outside lower center",
            frameon=False,
            ncols=columns,
            handlelength=2.8,
            columnspacing=1.2,
            handletextpad=0.5,
            labelspacing=0.35,
            borderaxespad=0.2,
            borderpad=0.2,
        )
        if columns == 1 or legend.get_window_extent().width <= 0.98 * image.bbox.width:
            height = legend.get_window_extent().height / image.dpi
            image.set_figheight(image.get_figheight() + height)
            return
        legend.remove()


def _break_title(axis: Any, room: float) -> None:
    """Break a title where it is too long; also within a label, name[parameter=value,...]."""
    title = axis.set_title(axis.get_title(loc="left"), loc="left")
    if title.get_window_extent().width > room:
        title.set_text(title.get_text().replace("[", " [").replace(",", ", "))
        _break_text(title, room, "width")


def _break_text(text: Any, room: float, side: str) -> None:
    """Break a text into as few lines as fit, of about the same length."""
    label = text.get_text()
    lines = math.ceil(getattr(text.get_window_extent(), side) / room)
    if lines > 1:
        width = next(
            w
            for w in range(len(label) // lines, len(label) + 1)
            if len(textwrap.wrap(label, w)) <= lines
        )
        text.set_text(textwrap.fill(label, width))
