"""The figures of a page, drawn by plotly: numbers and colours are those of `cbobench figures`.

And paths in its texts: a reader elsewhere needs the name of a file, and not where it lies on
somebody's machine.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any, Literal

import numpy as np
import pandas as pd

from cbobench.errors import printable
from cbobench.metrics import METRICS, Metric
from cbobench.report.figures.curves import Panel
from cbobench.report.figures.figures import scale_of
from cbobench.report.figures.profiles import Profile
from cbobench.report.figures.style import looks
from cbobench.report.load import Run
from cbobench.report.quantities import VIOLATION, lacks_unit
from cbobench.report.selection import Selection

Figure = Any  # of plotly, which is imported only where a page is written
ROUNDS = 160  # points of a curve at most
BAR_EVERY = 20  # points, from the last one on
# pixels: a row of curves, and what stands above and below all
ROW = 240
MARGIN = 150

START = r"(?:file://)?(?:~|…)?/(?!/)"
PATH = re.compile(
    rf"(?:(?<=&#x27;)|(?<=&quot;)){START}[^&\n<]*"  # behind a quote, where it may hold spaces
    rf"|(?<![\w./~…<-]){START}[^\s&<>()\[\]{{}},;:|=*?]+"
)
PACKAGE = re.compile(
    r".*/(?:(?:site-packages|dist-packages|lib/python3\.\d+)/(?=.)|(?=cbobench/.*\.py$))"
)
"""What stands before the path of a file within its package."""


def plain(text: str) -> str:
    """A label as plotly shows it to the letter: it would take tags in it for its own."""
    return shorten_paths(escape(printable(text)))


def draw_curves(run: Run, problem: str) -> Figure | None:
    """Medians over the rounds on one problem, with quartiles at some of them: a row for each metric
    of the table that rounds have. None where none has a value.
    """
    left_out = {VIOLATION} if lacks_unit(run.record.variants("problems")[problem]) else {}
    names = METRICS.keys() - left_out
    shown = [quantity for quantity in Selection.of(run).shown if quantity.name in names]
    frames = {quantity: _read_curves(run, problem, quantity) for quantity in shown}
    rows = {quantity: frame for quantity, frame in frames.items() if len(frame)}
    if not rows:
        return None

    # One figure holds all rows, so that a click in the legend hides a method in each.
    figure = _draw_steps(
        run,
        pd.concat(rows.values()),
        x="t",
        y="median",
        error_y="above",
        error_y_minus="below",
        facet_row="metric",
        hover_data={"low": ":.4g", "high": ":.4g"},
        labels={"t": "Round t"},
        height=ROW * len(rows) + MARGIN,
    )

    # Metrics have scales of their own, which a reader may change.
    figure.layout.annotations = ()  # headings of rows, which axes say
    figure.update_yaxes(matches=None)
    for i, quantity in enumerate(reversed(rows), 1):  # plotly counts rows upwards
        scale = "log" if scale_of(quantity.name) else "linear"
        figure.update_yaxes(title_text=plain(quantity.label), type=scale, row=i)
    figure.update_layout(
        updatemenus=[
            _offer_scales("y", figure.select_yaxes(), place=0.0),
            _offer_scales("t", figure.select_xaxes(), place=1.0),
        ]
    )
    return figure


def draw_profile(run: Run, kind: Literal["performance", "data"]) -> Figure:
    """A profile over all problems.

    Raises:
        Misuse: simple regret is not known.
    """
    frame = Profile(kind).data(run)
    precision = f"Precision x, in units of {frame['unit'].iloc[0]}"
    across, upwards = {
        "performance": (precision, "Cells within x of f*"),
        "data": ("Round t, in units of T", "Targets reached"),
    }[kind]
    return _draw_steps(
        run,
        frame,
        x="at",
        y="share",
        log_x=True,
        labels={"at": across, "share": upwards},
        height=ROW + MARGIN,
    )


def _read_curves(run: Run, problem: str, quantity: Metric) -> pd.DataFrame:
    """The curves of a metric where they have values, at some of the stored rounds."""
    metrics = {**METRICS, quantity.name: quantity}
    panel = Panel(quantity.name, problem, statistic="median", metrics=metrics)
    frame = panel.data(run).dropna(subset="median").assign(metric=plain(quantity.label))
    curves = [_thin(curve) for _, curve in frame.groupby("algorithm", sort=False)]
    if curves:
        return pd.concat(curves)
    return frame


def _thin(curve: pd.DataFrame) -> pd.DataFrame:
    """Some points of a curve, more of them early on, where it changes most; some of these, the last
    among them, have a bar from quartile to quartile.
    """
    shown = curve[["median", "low", "high"]].fillna(np.inf)
    is_step = (shown != shown.shift()).any(axis=1)
    curve = curve[is_step | (curve["t"] == curve["t"].max())]
    positions = np.geomspace(1, len(curve), ROUNDS).round().astype(np.int64) - 1
    points = curve.iloc[np.unique(positions)]
    has_bar = np.arange(len(points))[::-1] % BAR_EVERY == 0
    return points.assign(
        above=(points["high"] - points["median"]).where(has_bar),
        below=(points["median"] - points["low"]).where(has_bar),
    )


def _draw_steps(run: Run, frame: pd.DataFrame, **settings: Any) -> Figure:
    """Steps between the points of each method, named with how many cells it has where some lack."""
    import plotly.express as px

    look_by_title = looks(run.record)
    names = {}
    colours = {}
    columns = ["algorithm", "label", "n", "expected"]
    for title, label, n, expected in frame[columns].drop_duplicates("algorithm").to_numpy():
        lacks_cells = n != expected
        name = plain(f"{label} ({n} of {expected})" if lacks_cells else label)
        names[title] = name
        colours[name] = look_by_title[title].colour
    figure = px.line(
        frame.assign(method=frame["algorithm"].map(names)),
        color="method",
        line_dash="method",
        color_discrete_map=colours,
        line_shape="hv",
        template="plotly_white",
        **settings,
    )
    below = -60 / (settings["height"] - MARGIN)  # of the height of what is drawn
    figure.update_layout(legend={"orientation": "h", "y": below, "title": ""}, margin={"r": 10})
    return figure


def _offer_scales(what: str, axes: Any, place: float) -> dict[str, Any]:
    """Buttons above a figure for the scale of some axes."""
    names = [axis.plotly_name for axis in axes]
    buttons = [
        {
            "label": f"{scale} {what}",
            "method": "relayout",
            "args": [{f"{name}.type": scale for name in names}],
        }
        for scale in ("log", "linear")
    ]
    return {
        "type": "buttons",
        "direction": "right",
        "showactive": False,
        "buttons": buttons,
        "x": place,
        "xanchor": "auto",
        "y": 1.0,
        "yanchor": "bottom",
    }


def shorten_paths(html: str) -> str:
    """Escaped text, or HTML, in which every absolute path is shortened.

    A file of a package is named from the package on, another one by its last name alone.
    """
    return PATH.sub(lambda match: _shorten(match[0]), html)


def _shorten(path: str) -> str:
    place = path.removeprefix("file://").rstrip("/")
    if place.startswith("/") and place.count("/") == 1:
        return path  # one name behind a slash may be anything
    if package := PACKAGE.match(place):
        return place[package.end() :]
    return f"…/{place.rpartition('/')[2]}"
