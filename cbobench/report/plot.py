"""One metric as a figure, for notebooks: `cbobench.plot`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from cbobench.errors import CbobenchError, Misuse
from cbobench.metrics import METRICS
from cbobench.report.figures import Figure, compose, problems_played
from cbobench.report.groups import Where, opened
from cbobench.report.panels import Panel, Statistic
from cbobench.report.quantities import drawable
from cbobench.report.style import size_of


def plot(
    run: Where,
    metric: str = "regret",
    *,
    problem: str | Iterable[str] | None = None,
    algorithm: str | Iterable[str] | None = None,
    average: bool = False,
    last: int | None = None,
    statistic: Statistic = "median",
    log: str = "",
    size: str | None = None,
) -> Any:
    """Curves of one metric over the rounds of the latest horizon, one panel per problem.

    Args:
        run: an open run, a path or URI, or what `cbobench.run` returned.
        metric: by name, symbol or label.
        problem, algorithm: which ones, by title, label or registered name (all by default).
        average: divide by t.
        last: the last round shown.
        statistic: "median", with a band from quartile to quartile, or "mean", with bars for its 95 % interval.
        log: axes on a logarithmic scale, "x", "y" or "xy".
        size: "single", "double" or "slide" (by default single for one panel, else double).

    Returns:
        A matplotlib figure; its panels are in `figure.axes`.

    Raises:
        Misuse: no run there, or a word that names nothing. CbobenchError: no good cell to draw.

    Example:
        >>> import cbobench
        >>> figure = cbobench.plot("runs/quickstart", "simple_regret", problem="rkhs-1d", log="y")  # doctest: +SKIP
        >>> figure.axes[0].set_title("Simple regret")  # doctest: +SKIP
        >>> figure.savefig("simple_regret.pdf")  # doctest: +SKIP
    """
    if len(named := drawable(metric)) != 1:
        raise Misuse(f"metric is {metric!r}; a plot is of one metric")
    name = named[0]
    for word, given, allowed in (("log", log, ("", "x", "y", "xy")), ("statistic", statistic, get_args(Statistic))):
        if given not in allowed:
            raise Misuse(f"{word} is {given!r}; allowed: {', '.join(map(repr, allowed))}")
    if average and not METRICS[name].cumulative:
        raise Misuse(f"{name} is no sum over rounds, so there is no average of it; leave out average")
    one = opened(run)
    titles = one.record.labels("problems")
    played = problems_played(one)
    wanted = list(titles) if problem is None else one.titles("problem", problem)
    shown = [title for title in wanted if title in played]
    if not shown:
        raise CbobenchError(
            f"{one.folder.uri} has no good cell of {', '.join(titles[t] for t in wanted)} yet: nothing to draw"
        )
    names = list(one.record.labels("algorithms")) if algorithm is None else one.titles("algorithm", algorithm)
    panels = [
        Panel(name, title, titles=names, average=average, title=titles[title], last=last, statistic=statistic, log=log)
        for title in shown
    ]
    look = size_of(size, len(panels))
    with look.context():
        return compose(one, Figure(name, METRICS[name].label, panels), look)[0]
