"""Panels of the final values of two metrics, one on each axis: the regret-violation plane, and
trade-offs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from cbobench.metrics import METRICS, Metric
from cbobench.report.figures.curves import (
    Boxes,
    Looks,
    Panel,
    ProblemPanel,
    Statistic,
    over_seeds,
    stale,
)
from cbobench.report.figures.profiles import Profile
from cbobench.report.figures.style import Look, legend_label, thin
from cbobench.report.groups import take_values
from cbobench.report.load import Run
from cbobench.report.quantities import name_metrics
from cbobench.report.tables.summary import statistics
from cbobench.report.tables.table import describe_median_interval

ENDS = ("", "_low", "_high")
CARETS = {"x": 5, "y": 6}  # matplotlib's markers that point to the right, and upwards


@dataclass(frozen=True)
class Plane(ProblemPanel):
    """Two metrics at the horizon against each other: a point per algorithm, with a bar in both
    directions.

    The numbers are those of tables (`report.summary.statistics`). Seeds in which a metric is
    undefined are counted in the legend. To the median of what a seed may never reach they count as
    worse than any value: a bar whose end is then infinite ends in an arrow at the edge, and an
    infinite median is a point beside that arrow.

    Args:
        metric, other: of rounds, on the horizontal and the vertical axis.
        problem: title of the problem.
        algorithms: titles of those to show; all by default.
        title: above the panel.
        statistic: means or medians, each with bars for its interval.
        average: divide by the horizon.
        joined: by a line, in the suite's order.
        log: axes on a logarithmic scale, "x", "y" or "xy"; zero and below are not shown.
        metrics: in the words of the problem's user (see `quantities.name_metrics`).
    """

    metric: str
    other: str
    problem: str
    algorithms: Sequence[str] | None = None
    title: str = ""
    statistic: Statistic = "median"
    average: bool = False
    joined: bool = False
    log: str = ""
    metrics: Mapping[str, Metric] = field(default_factory=lambda: METRICS, compare=False)

    @property
    def centres(self) -> dict[str, str]:
        """Columns of the frame with what stands for the seeds, and their metrics."""
        return {"x": self.metric, "y": self.other}

    @property
    def sides(self) -> tuple[str, str]:
        """The metrics on the two axes."""
        return self.metric, self.other

    @property
    def about(self) -> str:
        """What is shown, for captions."""
        across, up = self.labels
        return f"{across} against {up[0].lower() + up[1:]} in the end"

    @property
    def scale(self) -> tuple[str, ...]:
        """Panels of one figure with the same scale share its axis."""
        return self.quantity, self.problem, self.log

    def data(self, run: Run) -> pd.DataFrame:
        """One row per algorithm, NaN where no cell is done: centres `x` and `y`, their ends, and in
        how many seeds each is `_defined`."""
        labels = run.record.labels("algorithms")
        expected = run.expected_of(self.problem)
        ends = ("median", "median_low", "median_high")
        if self.statistic == "mean":
            ends = ("mean", "low", "high")
        rows = []
        for title in self.algorithm_titles(run):
            good = run.good(self.problem, title).sort_values("seed")
            row: dict[str, Any] = {"algorithm": title, "label": labels[title], "n": len(good)}
            row |= {"expected": expected[title], "stale": stale(run, self.problem, title)}
            for name, metric in self.centres.items():
                quantity = self.metrics[metric]
                rounds = run.horizon_of(self.problem) if self.average else 1
                values = quantity.unit * take_values(good, quantity.name) / rounds
                (summary,) = statistics(quantity, [values])
                row |= {name + end: summary[word] for end, word in zip(ENDS, ends, strict=True)}
                row[f"{name}_defined"] = summary["defined"]
            rows.append(row)
        return pd.DataFrame(rows)

    def draw(self, axis: Any, frame: pd.DataFrame, looks: Looks) -> None:
        """Points with bars."""
        for letter in self.log:
            if not frame.empty and (frame[letter] > 0).any():
                axis.set(**{f"{letter}scale": "log"})
        if self.joined and not frame.empty:
            draw_path(axis, frame[frame[["x", "y"]].abs().lt(np.inf).all(axis=1)])
        if self.average and not self.log:
            axis.update_datalim([(0, 0)])
        edges = {name: _find_edges(frame, name) for name in self.centres}
        for row in frame.to_dict("records"):
            self._draw_point(axis, row, edges, looks[row["algorithm"]])
        self.name_axes(axis)

    def _draw_point(
        self, axis: Any, row: Mapping[Any, Any], edges: dict[str, tuple[float, float]], look: Look
    ) -> None:
        """An algorithm's point and bars; infinite ends are drawn at the edges, with an arrow."""
        notes = [
            f"{self.metrics[metric].symbol} in {row[f'{name}_defined']} of {row['n']}"
            for name, metric in self.centres.items()
            if row[f"{name}_defined"] < row["n"]
        ]
        label = legend_label(row, notes)
        at = {
            n: [np.minimum(row[n + end], edge[end == "_high"]) for end in ENDS]
            for n, edge in edges.items()
        }
        bars = {n: np.abs([[low - mid], [high - mid]]) for n, (mid, low, high) in at.items()}
        axis.errorbar(
            at["x"][0],
            at["y"][0],
            bars["y"],
            bars["x"],
            linestyle="none",
            label=label,
            **thin("bars"),
            **look.points(),
        )
        for name in self.centres:
            if np.isinf(row[f"{name}_high"]):
                x, y = (at[n][2 if n == name else 0] for n in ("x", "y"))
                axis.plot(
                    x, y, color=look.colour, marker=CARETS[name], linestyle="none", gid="beyond"
                )

    def describe_seeds(self, seeds: str, counts: Collection[int]) -> str:
        """What is drawn of so many seeds, for captions."""
        bars = "95 % interval" if self.statistic == "mean" else describe_median_interval(counts)
        bars = f"bars around the {self.statistic}: {bars}"
        return over_seeds(self.statistic, bars, seeds, counts)


def draw_path(axis: Any, points: pd.DataFrame) -> None:
    """A grey line through points in the suite's order, with what their labels have in brackets
    beside them.
    """
    import matplotlib as mpl

    axis.plot(points["x"], points["y"], color="0.75", zorder=0)
    for (x, y), (to_x, to_y) in itertools.pairwise(points[["x", "y"]].to_numpy()):
        # An arrow in the middle of each piece says which way the suite goes.
        middle = ((x + to_x) / 2, (y + to_y) / 2)
        arrow = {"arrowstyle": "-|>", "color": "0.6", "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", middle, (x, y), arrowprops=arrow, zorder=0)
    beside: dict[str, Any] = {"xytext": (4, 4), "textcoords": "offset points", "color": "0.3"}
    beside["fontsize"] = mpl.rcParams["legend.fontsize"]
    for label, x, y in points[["label", "x", "y"]].itertuples(index=False):
        if match := re.search(r"\((.+)\)$", label):
            axis.annotate(match[1], (x, y), **beside)


def _find_edges(frame: pd.DataFrame, name: str) -> tuple[float, float]:
    """Beyond all that is known: where infinite values are drawn, and further out the arrows of bars
    without an end.
    """
    values = frame.reindex(columns=[name + end for end in ENDS]).to_numpy(np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.nan, np.nan
    most = float(finite.max())
    step = 0.07 * (most - float(finite.min()) or abs(most) or 1.0)
    return most + step, most + 2 * step


AnyPanel = Panel | Boxes | Plane | Profile
"""What the page of a figure may hold."""


def speak(run: Run, panel: AnyPanel) -> AnyPanel:
    """The panel in the words of its problem's user (see `quantities.name_metrics`)."""
    if not isinstance(panel, Panel | Plane):
        return panel
    variants = run.record.variants("problems")
    return replace(panel, metrics=name_metrics([variants[panel.problem]]))
