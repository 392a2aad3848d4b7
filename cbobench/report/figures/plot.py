"""Metrics as a figure, for notebooks: `cbobench.plot`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from cbobench.errors import CbobenchError, Misuse, show, words_of
from cbobench.metrics import METRICS
from cbobench.params import accept_fields
from cbobench.report.figures.captions import UNKNOWN
from cbobench.report.figures.curves import STATISTICS, Panel, Statistic
from cbobench.report.figures.figures import (
    Figure,
    compose,
    draw_into,
    metrics_of,
    problems_played,
    scale_named,
    scale_of,
)
from cbobench.report.figures.planes import AnyPanel, Plane
from cbobench.report.figures.profiles import Profile
from cbobench.report.figures.style import size_of
from cbobench.report.load import Run, RunLike, open_run

ALIEN = {"curves": (), "plane": ("last",), "profile": ("average", "last", "statistic", "log")}
"""Parameters that do not apply to a kind of figure."""


@dataclass(frozen=True)
class PlotOptions:
    """What a figure shows, and how it looks.

    Attributes:
        run: an open run, a path or URI, or what `cbobench.run` returned; or a list of them, also of
            bundles, read as one run.
        metric: by name, symbol or label; by default regret, against the stronger violation in a
            plane.
        kind: "curves" over the rounds; "plane", two metrics against each other in the end, with 95
            % intervals; or "profile", the performance and the data profile of simple regret over
            the problems.
        problem, algorithm: which ones, by title, label or registered name (all by default).
        average: divide by t.
        last: the last round shown.
        statistic: "median" (the default), with a band from quartile to quartile (of more than four
            a bar at the end), or "mean", with bars for its 95 % interval; in a plane both have bars
            for their intervals.
        log: axes on a logarithmic scale, "x", "y" or "xy"; True is "y", False none. By default
            simple regret is on one.
        highlight: the methods in colour, at most eight, by title, label or registered name; the
            others are grey. By default the best eight of more, by their mean rank over the run's
            problems.
        ax: axes of your own to draw into, one or a sequence with one for each panel: size, font and
            legend are then yours (`ax.legend()`), and the figure of these axes is returned.
        size: "single", "double" or "slide" (by default single for one panel, else double), or a
            width ("3.25in").
        font: "serif", "sans-serif", "monospace", or the name of an installed family.
    """

    run: RunLike
    metric: str | Iterable[str] | None = None
    _: KW_ONLY
    kind: str = "curves"
    problem: str | Iterable[str] | None = None
    algorithm: str | Iterable[str] | None = None
    average: bool = False
    last: int | None = None
    statistic: Statistic | None = None
    log: str | bool | None = None
    highlight: str | Iterable[str] = ()
    ax: Any = None
    size: str | None = None
    font: str | None = None


@accept_fields(PlotOptions)
def plot(options: PlotOptions) -> Any:
    """A figure of the latest horizon: per problem, curves of a metric or two metrics in the end; or
    profiles over all.

    Args: see `PlotOptions`.

    Returns:
        A matplotlib figure; its panels are in `figure.axes`. Whatever a matplotlibrc says, it is
        saved in its size and with TrueType fonts. A notebook shows it; in a script, `figure.show()`
        and `plt.show()` open a window.

    Raises:
        Misuse: no run there, a word that names nothing, or what says nothing of this kind.
            CbobenchError: no good cell to draw.

    Example:
        >>> import cbobench
        >>> figure = cbobench.plot("runs/quickstart", "simple_regret", problem="rkhs-1d")  # doctest: +SKIP
        >>> figure.axes[0].set_title("Simple regret")  # doctest: +SKIP
        >>> figure.savefig("simple_regret.pdf")  # doctest: +SKIP
        >>> figure, (left, right) = plt.subplots(1, 2)  # doctest: +SKIP
        >>> cbobench.plot("runs/quickstart", "r", problem="rkhs-1d", ax=left)  # doctest: +SKIP
        >>> cbobench.plot("runs/quickstart", "N", problem="rkhs-1d", log=True, ax=right)  # doctest: +SKIP
        >>> cbobench.plot("runs/quickstart", ["R", "N"], kind="plane").savefig("plane.pdf")  # doctest: +SKIP
        >>> cbobench.plot(["runs/mine", "theirs.zip"], "r", highlight=["mine"])  # doctest: +SKIP
    """  # noqa: E501
    names = metrics_of(
        options.kind, options.metric or ("regret" if options.kind == "curves" else None)
    )
    _refuse_alien(options, names)
    run = open_run(options.run)
    panels = _make_panels(options, run, names)
    highlight = words_of("highlight", options.highlight) if options.highlight else ()
    if options.ax is not None:
        axes = _find_axes(options.ax, panels)
        draw_into(run, axes, panels, highlight)
        return axes[0].figure
    page = size_of(options.size, len(panels), options.font)
    with page.context():
        image, contents = compose(
            run, Figure(names[0], METRICS[names[0]].label, panels), page, highlight
        )
    if image is None:
        absent = ", ".join(text for sentence, text in contents.found if sentence == UNKNOWN)
        raise CbobenchError(f"nothing to draw: no value is known of {absent}; plot another metric")
    return image


def _refuse_alien(options: PlotOptions, names: Sequence[str]) -> None:
    """Raise `Misuse` for what says nothing of this kind of figure or of its metrics, and for wrong
    values.
    """
    kind = options.kind
    last = options.last
    # The default of each of them is None or False, which is the same as "" for the axes.
    alien = [word for word in ALIEN[kind] if getattr(options, word) not in (None, False, "")]
    own = [word for word in ("size", "font") if getattr(options, word) is not None]
    levels = [name for name in names if not METRICS[name].cumulative]
    verb, pronoun = ("does", "it") if len(alien) == 1 else ("do", "them")
    if options.log is not None and not alien:
        scale_named(options.log)
    for is_refused, why in (
        (
            kind == "curves" and len(names) != 1,
            f"metric is {show(options.metric)}; a plot of curves is of one metric",
        ),
        (alien, f"{' and '.join(alien)} {verb} not apply to a {kind}; leave {pronoun} out"),
        (
            options.statistic not in (None, *STATISTICS),
            f"statistic is {show(options.statistic)}; allowed: {', '.join(map(repr, STATISTICS))}",
        ),
        (
            options.ax is not None and own,
            f"{' and '.join(own)} of axes of your own are yours; leave out, or leave ax out",
        ),
        (
            last is not None and (type(last) is not int or last < 1),
            f"last is {show(last)}; it must be a round, a whole number of at least 1",
        ),
        (
            options.average and levels,
            f"{''.join(levels[:1])} is no sum over rounds, so there is no average of it; leave out "
            "average",
        ),
    ):
        if is_refused:
            raise Misuse(why)


def _make_panels(options: PlotOptions, run: Run, names: Sequence[str]) -> list[AnyPanel]:
    """A panel for each problem that has a good cell, or two profiles over all."""
    labels = run.record.labels("problems")
    played = problems_played(run)
    problems = list(labels) if options.problem is None else run.titles("problem", options.problem)
    drawn = {title: labels[title] for title in problems if title in played}
    if not drawn:
        named = ", ".join(labels[title] for title in problems)
        raise CbobenchError(f"{run} has no good cell of {named} yet: nothing to draw")
    methods = [*run.record.labels("algorithms")]
    if options.algorithm is not None:
        methods = run.titles("algorithm", options.algorithm)
    if options.kind == "profile":
        return [Profile("performance", problems, methods), Profile("data", problems, methods)]
    average = options.average
    last = options.last
    statistic = options.statistic or "median"
    log = scale_of(names[0]) if options.log is None else scale_named(options.log)
    if options.kind == "plane":
        across, up = names
        log = log if options.log else ""
        return [
            Plane(across, up, title, methods, label, statistic, average, log=log)
            for title, label in drawn.items()
        ]
    return [
        Panel(names[0], title, methods, average, label, last, statistic, log)
        for title, label in drawn.items()
    ]


def _find_axes(ax: Any, panels: Sequence[AnyPanel]) -> list[Any]:
    """The axes that a user gave, one for each panel."""
    axes = list(getattr(ax, "flat", ax if isinstance(ax, Iterable) else [ax]))
    if alien := [axis for axis in axes if not hasattr(axis, "get_xaxis_transform")]:
        raise Misuse(f"ax is {show(alien[0])}; allowed: axes of matplotlib, or a sequence of them")
    if len(axes) != len(panels):
        titles = ", ".join(panel.title for panel in panels)
        raise Misuse(
            f"ax has {len(axes)} axes for {len(panels)} panels ({titles}); give one for each, or "
            "choose with problem"
        )
    return axes
