"""Curves over rounds: their numbers over seeds, and the panels that draw them, box plots at some
rounds too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbobench.errors import unknown
from cbobench.metrics import METRICS, Metric
from cbobench.report.figures.style import WHITE, Look, legend_label, mix_colour, plain, thin
from cbobench.report.load import Run, read_improvements, read_values, recorded_rounds
from cbobench.report.quantities import UNREACHED, is_reached
from cbobench.results.schema import IMPROVED
from cbobench.stats import intervals

Array = NDArray[np.float64]
Statistic = Literal["mean", "median"]
STATISTICS = get_args(Statistic)


def centre(values: Array, metric: str, statistic: str = "mean") -> tuple[Array, Array, Array]:
    """What stands for many seeds, and how far it may be trusted or they lie apart.

    Args:
        values: one row per point, one column per seed, (points, seeds).
        metric: whose values these are; nothing that is returned lies below the least it can be.
        statistic: "mean", with its 95 % interval, or "median", with the quartiles.

    Returns:
        The mean, and the interval's ends (NaN for fewer than two seeds); or the median, and the
        quartiles. Each is (points,). A value that is undefined makes a mean undefined; for a median
        it counts as the worst there is.

    Raises:
        Misuse: another statistic.
    """
    if statistic not in STATISTICS:
        raise unknown("statistic", statistic, STATISTICS)
    if values.shape[1] == 0:
        return (np.full(len(values), np.nan),) * 3
    quantity = METRICS[metric]
    if statistic == "mean":
        low, high = intervals.interval(values, axis=1, bounds=(quantity.least, None))
        return values.mean(axis=1), low, high
    ordered = np.where(np.isnan(values), -quantity.sign * UNREACHED, values)
    quartiles = np.quantile(ordered, [0.5, 0.25, 0.75], axis=1)
    median, low, high = np.where(is_reached(quartiles), quartiles, np.nan)
    return median, low, high


def stale(run: Run, problem: str, algorithm: str) -> int:
    """How many of a pair's good cells (`Run.good`) were played by code that has changed since."""
    return len(run.stale.intersection(run.good(problem, algorithm)["cell"]))


MARKS = 8  # markers on a curve, with an error bar each
# share of the rounds in which a time average is a transient, which does not set the range
SETTLED = 0.05
BANDS = 4  # curves in colour: more bands hide what is below
APART = 0.012  # between two bars beyond the last round, in lengths of the axis
BEYOND = 0.5  # how far bars widen the range, in units of that of the curves
BEST = {
    "color": "0.35",
    "linewidth": 0.8,
    "linestyle": (0, (6, 3)),
    "label": "f* (best feasible)",
    "zorder": 1,
}
EDGE: dict[str, Any] = {
    "color": "0.8",
    "linewidth": 0.6,
    "linestyle": (0, (1, 2)),
    "zorder": 0.3,
    "gid": "edge",
}
CARETUP, CARETDOWN = 6, 7  # matplotlib's markers of bars that leave the panel
Looks = Mapping[str, Look]


# of its largest value: nothing below is shown on a logarithmic axis, as it says little but rounding
DECADES = 1e-9


def over_seeds(statistic: Statistic, bars: str, seeds: str, counts: Collection[int]) -> str:
    """What stands for the seeds, for captions; `bars`: what means, or medians, have around them."""
    if max(counts, default=0) == 1:
        return f"The values of {seeds}."
    lacking = ", which one seed does not have" if min(counts) == 1 and "interval" in bars else ""
    return f"{statistic.capitalize()}s over {seeds}; {bars}{lacking}."


def marker_offset(position: int, curves: int) -> NDArray[np.float64]:
    """How far along one of some curves its markers are, from 0 to 1; no two curves have one at the
    same place.
    """
    return np.asarray((np.arange(MARKS) + (position + 1) / (curves + 1)) / MARKS)


class ProblemPanel:
    """What panels about one problem have in common.

    Attributes:
        metric: of rounds, the first that is shown.
        problem: title of the problem.
        algorithms: titles of those to show, all by default.
        average: whether metrics are divided by t.
        log: axes on a logarithmic scale, "x", "y" or "xy".
        metrics: in the words of the problem's user (see `quantities.name_metrics`).
    """

    metric: str
    problem: str
    algorithms: Sequence[str] | None
    average: bool
    log: str
    metrics: Mapping[str, Metric]

    @property
    def sides(self) -> tuple[str | None, str]:
        """The metrics on the two axes, None for rounds."""
        return None, self.metric

    @property
    def quantity(self) -> str:
        """What the CSV calls it."""
        word = "average_" if self.average else ""
        return " against ".join(word + name for name in self.sides if name)

    @property
    def scale(self) -> tuple[str, ...]:
        """Panels of one figure with the same scale share its axis; decades of two problems have
        little in common.
        """
        return self.quantity, self.log, *[self.problem] * ("y" in self.log)

    @property
    def labels(self) -> list[str]:
        """What stands at the two axes."""
        return [
            self.metrics[name].label_of(self.average) if name else "Round t" for name in self.sides
        ]

    @property
    def columns_read(self) -> list[str]:
        """Columns of the rounds table: of f*, reward and regret add up to it."""
        if self.metric == "reward":
            return ["reward", "regret"]
        return [self.metric]

    def name_axes(self, axis: Any) -> None:
        """Write what stands at the two axes."""
        across, up = map(plain, self.labels)
        axis.set(xlabel=across, ylabel=up)

    def algorithm_titles(self, run: Run) -> list[str]:
        """Titles of the algorithms to show, in the suite's order."""
        expected = run.expected_of(self.problem)
        chosen = expected if self.algorithms is None else self.algorithms
        return [title for title in expected if title in chosen]

    def pairs(self, run: Run) -> list[tuple[str, str]]:
        """Titles of the problems and algorithms to show."""
        return [(self.problem, title) for title in self.algorithm_titles(run)]


@dataclass(frozen=True)
class Panel(ProblemPanel):
    """Curves of one metric on one problem.

    Args:
        metric: a column of the rounds table.
        problem: title of the problem.
        algorithms: titles of those to show (all by default).
        average: divide by t.
        title: above the panel.
        last: the last round shown.
        statistic: "mean", with bars for its interval, or "median", with a band from quartile to
            quartile.
        bands: whether medians have bands, else a bar each beyond the last round; by default
            where at most `BANDS` curves are in colour.
        log: axes on a logarithmic scale: "x", "y" or "xy", where growth is the point; zero and
            below are not shown.
        metrics: in the words of the problem's user (see `quantities.name_metrics`).
    """

    metric: str
    problem: str
    algorithms: Sequence[str] | None = None
    average: bool = False
    title: str = ""
    last: int | None = None
    statistic: Statistic = "mean"
    log: str = ""
    bands: bool | None = None
    metrics: Mapping[str, Metric] = field(default_factory=lambda: METRICS, compare=False)

    @property
    def centres(self) -> dict[str, str]:
        """Columns of the frame with what stands for the seeds, and their metrics."""
        return {self.statistic: self.metric}

    @property
    def drawn(self) -> list[str]:
        """Columns of the frame with what stands for the seeds, and its ends."""
        return [self.statistic, "low", "high"]

    @property
    def steps(self) -> bool:
        """Whether a value holds until the next one, as what is best so far does."""
        return not (METRICS[self.metric].cumulative or self.average)

    @property
    def drawstyle(self) -> str:
        """How matplotlib joins the points of a curve."""
        return "steps-post" if self.steps else "default"

    @property
    def about(self) -> str:
        """What is shown, for captions."""
        rounds = f", rounds to {self.last:,}" if self.last else ""
        return self.labels[1] + rounds

    def data(self, run: Run) -> pd.DataFrame:
        """Curves at the horizon that figures show of the problem (`Run.horizon_of`).

        Returns:
            One row per (algorithm, t), of simple regret in a bundle also where it falls:
            `algorithm`, `label`, `t`, `mean` or `median`, `low`, `high` (the ends of the mean's
            interval, or the quartiles), `n`, `expected`, `stale` (how many of the n cells other
            code played); for rewards `f_star`, the mean reward of the best feasible action, summed
            or averaged over rounds as they are.
        """
        expected = run.expected_of(self.problem)
        labels = run.record.labels("algorithms")
        columns = ["algorithm", "label", "t", *self.drawn, "n", "expected", "stale"]
        if self.metric == "reward":
            columns.append("f_star")
        rounds_by_title = {
            title: t
            for title in self.algorithm_titles(run)
            if len(t := recorded_rounds(run, self.problem, title))
        }
        # Between the rounds that a bundle stores it still knows when simple regret fell.
        falls = {
            title: read_improvements(run, self.problem, title)
            for title in rounds_by_title
            if self.metric == IMPROVED and run.is_thinned
        }
        # Of all methods, so that every curve has the same rounds.
        moments = {t for steps in falls.values() for t in steps.index}
        parts = []
        for title, t in rounds_by_title.items():
            if title in falls:
                t = np.array(sorted({*t, *moments}), dtype=np.int64)
                held = [falls[title].reindex(t, method="ffill").to_numpy(np.float64)]
            else:
                held = [*read_values(run, self.columns_read, self.problem, title, t)]
            selection = t <= (self.last or np.inf)
            rounds = t[selection, None] if self.average else 1.0
            values = [all_rounds[selection] for all_rounds in held]
            middle, low, high = centre(values[0] / rounds, self.metric, self.statistic)
            unit = self.metrics[self.metric].unit
            if unit < 0:
                # Of minus the values the lower end is the upper one.
                low, high = high, low
            part = {
                "algorithm": title,
                "label": labels[title],
                "t": t[selection],
                self.statistic: unit * middle,
                "low": unit * low,
                "high": unit * high,
                "n": values[0].shape[1],
                "expected": expected[title],
                "stale": stale(run, self.problem, title),
                "f_star": (np.sum(values, axis=0) / rounds).mean(axis=1),
            }
            parts.append(pd.DataFrame(part, columns=columns))
        return pd.concat(parts or [pd.DataFrame(columns=columns)], ignore_index=True)

    def range(self, frame: pd.DataFrame) -> tuple[float, float]:
        """What the vertical axis must hold: the curves, without the transient of time averages but
        with 0, and bars as far as they do not flatten the curves. NaN without a number.
        """
        values = frame[self.drawn].to_numpy(np.float64)
        if self.average:
            values = values[frame["t"] > SETTLED * frame["t"].max()]
            values = np.vstack([values, np.zeros(3)])
        if np.isnan(values[:, 0]).all():
            return np.nan, np.nan
        low = np.nanmin(values[:, 0])
        high = np.nanmax(values[:, 0])
        room = BEYOND * (high - low) if high > low else np.inf
        ends = np.nanmin(values[:, :2]), np.nanmax(values[:, [0, 2]])
        return float(max(ends[0], low - room)), float(min(ends[1], high + room))

    def edge(self, frame: pd.DataFrame) -> float:
        """Where a logarithmic axis has the values that it cannot show, 0 and what is close to it;
        NaN without any.

        Where a quantity may be negative, such values are not shown.
        """
        if "y" not in self.log or METRICS[self.metric].least != 0.0 or frame.empty:
            return np.nan
        values = frame[self.statistic].to_numpy(np.float64)
        if not (values > 0).any():
            return np.nan
        least = max(values[values > 0].min(), DECADES * np.nanmax(values))
        if (values < least).any():
            return float(0.5 * least)
        return np.nan

    def outside(self, frame: pd.DataFrame) -> list[str]:
        """What leaves the panel, for captions."""
        edge = self.edge(frame)
        if not np.isnan(edge):
            return [f"A curve at the lower edge is 0, or below {2 * edge:.1g}."]
        values = frame[self.drawn]
        low, high = (0.0, np.inf) if "y" in self.log else self.range(frame)
        least = values.min().min()
        most = values.max().max()
        if not (least < low or most > high):
            return []
        return [
            f"Values go from {least:.3g} to {most:.3g}, beyond the panel: bars end in an arrow "
            "there, curves and bands are cut."
        ]

    def draw(self, axis: Any, frame: pd.DataFrame, looks: Looks) -> None:
        """Curves with markers that do not lie upon each other, and bars there, or bands."""
        from matplotlib.collections import LineCollection

        if "f_star" in frame and len(frame):
            first = frame[frame["algorithm"] == frame["algorithm"].iloc[0]]
            if first["f_star"].notna().any():
                axis.plot(first["t"], first["f_star"], **BEST)
        for letter in self.log:
            axis.set(**{f"{letter}scale": "log"})
        # What a logarithmic axis cannot show is drawn at its lower edge.
        edge = self.edge(frame)
        if not np.isnan(edge):
            # Only what is 0 is drawn at 0.
            is_zero = frame[self.statistic].between(0, 2 * edge, inclusive="neither").sum() == 0
            tick = "0" if is_zero else f"<{2 * edge:.1g}"
            # A collection, so that the lines of the axis are its curves.
            line = LineCollection(
                [[(0, edge), (1, edge)]],
                transform=axis.get_yaxis_transform(),
                label=f"_{tick}",
                **EDGE,
            )
            axis.add_collection(line, autolim=False)
            frame = frame.assign(**{name: frame[name].clip(lower=edge) for name in self.drawn})
        # Grey curves lie below those of the lead, and are last in a legend.
        curves = [
            (looks[str(title)], curve) for title, curve in frame.groupby("algorithm", sort=False)
        ]
        leading = [pair for pair in curves if pair[0].lead]
        for position, (look, curve) in enumerate(leading):
            share = marker_offset(position, len(leading))
            self._draw_curve(axis, curve, look, share, self.range(frame))
            if self.statistic == "median" and self.bands is False:
                self._draw_end(axis, curve, look, APART * (position + 1))
        for look, curve in curves:
            if not look.lead:
                axis.plot(
                    curve["t"], curve[self.statistic], drawstyle=self.drawstyle, **look.line()
                )
        self._set_data_limits(axis, frame)
        self.name_axes(axis)

    def _set_data_limits(self, axis: Any, frame: pd.DataFrame) -> None:
        """Keep bars that would flatten the curves from setting the range: they leave the panel."""
        if not self.log and len(frame) and not np.isnan(self.range(frame)[0]):
            axis.dataLim.intervaly = self.range(frame)
        if "y" not in self.log:
            return
        # Matplotlib before 3.11 leaves more room below bars.
        values = frame[self.drawn].to_numpy(np.float64)
        values = values[values > 0]
        if len(values):
            # Bands that end at nearly 0 would flatten the curves.
            lowest = values[
                values >= 0.1 * frame.loc[frame[self.statistic] > 0, self.statistic].min()
            ]
            axis.dataLim.intervaly = (lowest if len(lowest) else values).min(), values.max()

    def _draw_curve(
        self,
        axis: Any,
        group: pd.DataFrame,
        look: Look,
        share: Array,
        room: tuple[float, float],
    ) -> None:
        """One curve of the lead.

        Args:
            share: where its markers are, from 0 to 1.
            room: what the vertical axis holds.
        """
        # What is not drawn is not in the legend.
        if group[self.statistic].isna().all():
            return
        points = len(group)
        # On a logarithmic axis markers at equal distances are at equal ratios of rounds.
        mark_places = points**share - 1 if "x" in self.log else points * share
        marks = np.unique(mark_places.astype(int).clip(max=points - 1))
        t, middle, low, high = group[["t", *self.drawn]].to_numpy(np.float64).T
        axis.plot(
            t,
            middle,
            label=legend_label(group.iloc[0]),
            markevery=marks.tolist(),
            drawstyle=self.drawstyle,
            **look.line(),
        )
        # Bands are faint, so that curves are seen through those of others.
        if self.statistic == "median" and self.bands is not False:
            axis.fill_between(
                t,
                low,
                high,
                step="post" if self.steps else None,
                facecolor=(look.colour, 0.09),
                edgecolor=(look.colour, 0.5),
                linewidth=0.4,
                zorder=0.5,
            )
        if self.statistic == "median":
            return
        # Bars stand at the markers, which no other curve has there, so that they stay apart.
        t, middle, low, high = (values[marks] for values in (t, middle, low, high))
        ends = np.maximum(np.stack([middle - low, high - middle]), 0.0)
        has_bar = ~np.isnan(ends).any(axis=0)
        axis.errorbar(
            t[has_bar],
            middle[has_bar],
            ends[:, has_bar],
            ecolor=look.colour,
            fmt="none",
            **thin("bars"),
        )
        least, most = (0.0, np.inf) if "y" in self.log else room
        below = low <= least if self.log else low < least
        for y, caret, cut in ((0, CARETDOWN, below), (1, CARETUP, high > most)):
            # An arrow continues a bar; a point without a bar has none.
            at = t[cut & (low < middle) & (middle < high)]
            if len(at):
                axis.plot(
                    at,
                    [y] * len(at),
                    color=look.colour,
                    marker=caret,
                    linestyle="none",
                    transform=axis.get_xaxis_transform(),
                    clip_on=False,
                    gid="beyond",
                )

    def _draw_end(self, axis: Any, group: pd.DataFrame, look: Look, beyond: float) -> None:
        """The quartiles of the last round as a bar beyond it, where no other curve has its own."""
        ends = group[["t", *self.drawn]].to_numpy(np.float64)
        first, (t, middle, low, high) = ends[0, 0], ends[-1]
        # Of one round there is no length: as if there were one round more, or a decade.
        ratio, length = (t / first, t - first) if t > first else (10.0, 1.0)
        place = t * ratio**beyond if "x" in self.log else t + beyond * length
        if not np.isnan(middle):
            # A quartile that was never reached is beyond the axis. No line, so that the lines of
            # the axis are its curves.
            far = 1e6 * max(abs(middle), 1.0)
            low = np.nan_to_num(low, nan=-far)
            high = np.nan_to_num(high, nan=far)
            axis.vlines(place, low, high, color=look.colour, gid="end", **thin("lines"))

    def describe_seeds(self, seeds: str, counts: Collection[int]) -> str:
        """What is drawn of so many seeds, for captions."""
        shape = "bars at the ends" if self.bands is False else "bands"
        if self.statistic == "median":
            bars = f"{shape} from quartile to quartile"
        else:
            bars = "bars: 95 % intervals of the mean"
        return over_seeds(self.statistic, bars, seeds, counts)


@dataclass(frozen=True)
class Boxes(ProblemPanel):
    """Box plots over seeds of the time average of one metric, for one algorithm, every `step`
    rounds to `last`.

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
    average: ClassVar[bool] = True  # type: ignore[misc]
    log: ClassVar[str] = ""  # type: ignore[misc]
    metrics: ClassVar[Mapping[str, Metric]] = METRICS  # type: ignore[misc]

    @property
    def centres(self) -> dict[str, str]:
        """Columns of the frame with values, and their metrics."""
        return {"value": self.metric}

    @property
    def about(self) -> str:
        """What is shown, for captions."""
        return f"{self.labels[1]}, every {self.step} rounds to {self.last:,}"

    def algorithm_titles(self, run: Run) -> list[str]:
        """The title of the algorithm."""
        return [self.algorithm]

    def data(self, run: Run) -> pd.DataFrame:
        """One row per (seed, t); for rewards with f*, that of the seed's best feasible action,
        averaged likewise.
        """
        frame = run.rounds(
            self.columns_read,
            problem=self.problem,
            algorithm=self.algorithm,
            horizon=run.horizon_of(self.problem),
        )
        frame = frame[(frame["t"] % self.step == 0) & (frame["t"] <= self.last)]
        averages = frame[["algorithm", "seed", "t"]].assign(value=frame[self.metric] / frame["t"])
        if self.metric == "reward":
            averages["f_star"] = (frame["reward"] + frame["regret"]) / frame["t"]
        return averages.reset_index(drop=True)

    def draw(self, axis: Any, frame: pd.DataFrame, looks: Looks) -> None:
        """One box per round: quartiles, whiskers to 1.5 times their distance, what lies beyond as
        points.
        """
        if "f_star" in frame and len(frame):
            best = frame.groupby("t")["f_star"].mean()
            axis.plot(best.index, best.to_numpy(), **BEST)
        defined_rows = frame.dropna(subset="value")
        parts = {t: part["value"].to_numpy() for t, part in defined_rows.groupby("t")}
        if parts:
            colour = looks[self.algorithm].colour
            line: dict[str, Any] = {"color": colour, **thin("lines")}
            axis.boxplot(
                list(parts.values()),
                positions=list(parts),
                widths=0.62 * self.step,
                patch_artist=True,
                manage_ticks=False,
                boxprops=line | {"facecolor": mix_colour(colour, 0.65, WHITE)},
                whiskerprops=line,
                capprops=line,
                medianprops={"color": colour, "linewidth": 2 * line["linewidth"]},
                flierprops={
                    "marker": ".",
                    "markersize": 2,
                    "markerfacecolor": colour,
                    "markeredgecolor": "none",
                },
            )
            axis.set_xlim(0, self.last + self.step)
        self.name_axes(axis)

    def describe_seeds(self, seeds: str, counts: Collection[int]) -> str:
        """What is drawn of so many seeds, for captions."""
        return (
            f"Boxes over {seeds}: median and quartiles, whiskers to 1.5 times their distance, "
            "points beyond."
        )
