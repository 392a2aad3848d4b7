"""Panels of figures: mean curves with error bars, box plots over seeds at some rounds, trade-offs of two metrics."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cbobench.metrics import METRICS
from cbobench.report.aggregate import curves, half_width
from cbobench.report.load import Run

ERROR_BARS = 10


def plain(text: str) -> str:
    """A label that matplotlib shows as it is: no formulas, and not hidden from the legend by a leading underscore."""
    return ("\u200b" if text.startswith("_") else "") + text.replace("$", r"\$")


def metric_label(metric: str, average: bool) -> str:
    """What stands at the axis for a metric, or for its time average."""
    return METRICS[metric].label_of(average)


def counted(label: str, n: int, expected: int) -> str:
    """A label that says so where seeds are missing."""
    return plain(label) + ("" if n == expected else f" ({n} of {expected})")


@dataclass(frozen=True)
class Panel:
    """Mean curves of one metric on one problem.

    Args:
        metric: a cumulative column of the rounds table.
        problem: title of the problem.
        algorithms: names to show (all by default): registered names, so every variant of them.
        average: divide by t.
        title: above the panel.
        last: the last round shown.
    """

    metric: str
    problem: str
    algorithms: Sequence[str] | None = None
    average: bool = False
    title: str = ""
    last: int | None = None

    @property
    def quantity(self) -> str:
        """What the CSV calls it."""
        return ("average_" if self.average else "") + self.metric

    def data(self, run: Run) -> pd.DataFrame:
        """One row per (algorithm, t): the mean over seeds and the half width of its interval."""
        frame = curves(run, self.metric, self.problem, average=self.average)
        if self.algorithms is not None:
            frame = frame[frame["algorithm"].isin(run.named("algorithm", self.algorithms))]
        return frame if self.last is None else frame[frame["t"] <= self.last]

    def draw(self, axis: Any, frame: pd.DataFrame, colours: dict[str, Any]) -> None:
        """Curves with staggered error bars."""
        import seaborn as sns

        groups = list(frame.groupby("algorithm", sort=False))
        for position, (title, group) in enumerate(groups):
            n, expected = int(group["n"].iloc[0]), int(group["expected"].iloc[0])
            label = counted(group["label"].iloc[0], n, expected)
            colour = colours[str(title)]
            sns.lineplot(x=group["t"], y=group["mean"], ax=axis, color=colour, label=label, errorbar=None)
            step = max(1, len(group) // ERROR_BARS)
            start = step * (position + 1) // (len(groups) + 1)  # stagger, so that bars do not hide each other
            some = group.iloc[start::step]
            axis.errorbar(some["t"], some["mean"], some["ci"], fmt="none", ecolor=colour, capsize=2, elinewidth=1)
        _finish(axis, "Round t", metric_label(self.metric, self.average), self.title)


@dataclass(frozen=True)
class Boxes:
    """Box plots over seeds of the time average of one metric, for one algorithm, every `step` rounds to `last`.

    Args:
        metric: a cumulative column of the rounds table.
        problem, algorithm: titles.
        step, last: which rounds.
        title: above the panel.
    """

    metric: str
    problem: str
    algorithm: str
    step: int
    last: int
    title: str = ""

    @property
    def quantity(self) -> str:
        """What the CSV calls it."""
        return f"average_{self.metric}"

    def data(self, run: Run) -> pd.DataFrame:
        """One row per (seed, t)."""
        frame = run.rounds([self.metric], problem=self.problem, algorithm=self.algorithm, horizon=run.horizon)
        frame = frame[(frame["t"] % self.step == 0) & (frame["t"] <= self.last)]
        value = frame[self.metric] / frame["t"]
        return frame[["algorithm", "seed", "t"]].assign(value=value).reset_index(drop=True)

    def draw(self, axis: Any, frame: pd.DataFrame, colours: dict[str, Any]) -> None:
        """One box per round: quartiles, whiskers to 1.5 interquartile ranges, outliers as points."""
        import seaborn as sns

        rounds = sorted(frame["t"].unique())
        if rounds:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # seaborn 0.13 passes what matplotlib 3.11 deprecates
                sns.boxplot(
                    x=frame["t"], y=frame["value"], ax=axis, color=colours[self.algorithm], fliersize=2, linewidth=0.8
                )
            shown = range(0, len(rounds), max(1, len(rounds) // 7))
            axis.set_xticks(list(shown), [str(rounds[i]) for i in shown])
        _finish(axis, "Round t", metric_label(self.metric, True), self.title)


@dataclass(frozen=True)
class TradeOff:
    """Two final metrics against each other, one point per variant of an algorithm, with 95 % intervals.

    Args:
        metric, other: cumulative columns, on the horizontal and the vertical axis.
        problem: title of the problem.
        algorithm: registered name, whose variants are joined by a line in the suite's order.
        title: above the panel.
    """

    metric: str
    other: str
    problem: str
    algorithm: str
    title: str = ""

    @property
    def quantity(self) -> str:
        """What the CSV calls it."""
        return f"average_{self.metric} against average_{self.other}"

    def data(self, run: Run) -> pd.DataFrame:
        """One row per variant of the suite, NaN where no cell is done: means over seeds and half widths of averages."""
        cells = run.cells
        good = cells[(cells["status"] == "ok") & (cells["problem"] == self.problem) & (cells["horizon"] == run.horizon)]
        labels, expected = run.record.labels("algorithms"), run.expected_of(self.problem)
        rows = []
        for title in run.named("algorithm", [self.algorithm]):
            if title not in expected:
                continue
            group = good[good["algorithm"] == title]
            row: dict[str, Any] = {"algorithm": title, "label": labels[title], "n": len(group)}
            row["expected"] = expected[title]
            for name, metric in (("x", self.metric), ("y", self.other)):
                values = group[metric].to_numpy(dtype=np.float64) / run.horizon
                row[name] = values.mean() if len(values) else np.nan
                row[f"{name}_ci"] = float(half_width(values))
            rows.append(row)
        return pd.DataFrame(rows)

    def draw(self, axis: Any, frame: pd.DataFrame, colours: dict[str, Any]) -> None:
        """Points joined in order."""
        if not frame.empty:
            done = frame[frame["n"] > 0]
            axis.plot(done["x"], done["y"], color="0.7", zorder=0)
        for row in frame.to_dict("records"):
            axis.errorbar(
                row["x"], row["y"], row["y_ci"], row["x_ci"], fmt="o", capsize=2, color=colours[row["algorithm"]],
                label=counted(row["label"], row["n"], row["expected"]),
            )  # fmt: skip
        _finish(axis, metric_label(self.metric, True), metric_label(self.other, True), self.title)


AnyPanel = Panel | Boxes | TradeOff


def _finish(axis: Any, x: str, y: str, title: str) -> None:
    import seaborn as sns

    axis.set(xlabel=x, ylabel=y)
    axis.set_title(plain(title), fontsize="medium")
    axis.margins(x=0.02)
    if axis.get_legend() is not None:
        axis.get_legend().remove()  # one legend under all panels, where it hides no curve
    sns.despine(ax=axis)
