"""Tests of claims: each takes plays of a run and gives one part of a verdict, by `RULE`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd

from cbobench.metrics import METRICS
from cbobench.report.load import Run
from cbobench.results.manifest import Variant
from cbobench.stats.growth import exponent
from cbobench.stats.intervals import Array, draw_resamples, interval, percentiles, proportion
from cbobench.stats.paired import SIGNIFICANT, difference, holm

Verdict = Literal["holds", "does not hold", "undecided", "not in these runs"]
RULE = """\
A part of a claim *holds* where its 95 % interval lies wholly on the claim's side, *does not hold* where it lies wholly
on the other side, and is *undecided* otherwise, as with fewer than two seeds. Comparisons are paired by seed, over the
seeds that both have; they need in addition a Wilcoxon signed-rank test below 5 %, adjusted by Holm over the comparisons
of the claim. A number of the paper holds where our interval contains it and lies between half and twice of it, and does
not where it is outside. That something never happens does not hold where one seed shows it. A claim holds where all its
parts do, does not where one does not, and is undecided otherwise.
"""
LINEAR = 0.9  # an exponent of growth above this counts as linear
NONE_SEEN = 3.689  # 95 % upper limit of the mean of a Poisson count, times n, where n counts are all zero


@dataclass(frozen=True)
class Part:
    """One measured part of a claim.

    Attributes:
        what: the quantity, with the methods' labels.
        paper: what the claim says of it.
        verdict: by `RULE`.
        value, low, high: ours with its interval; NaN where there is none.
        n, expected: complete seeds, and how many were asked for.
        p: of the comparison; adjusted once the part is settled.
    """

    what: str
    paper: str
    verdict: Verdict
    value: float
    low: float
    high: float
    n: int
    expected: int
    p: float = math.nan

    @classmethod
    def open(cls, what: str, paper: str, n: int, expected: int, value: float = math.nan) -> Part:
        """A part that is undecided because it has no interval."""
        return cls(what, paper, "undecided", value, math.nan, math.nan, n, expected)


@dataclass(frozen=True)
class Play:
    """One algorithm on one problem in a run: its good cells (`Run.good`)."""

    run: Run
    problem: Variant
    algorithm: Variant

    @property
    def label(self) -> str:
        """The algorithm's label in its run."""
        return self.run.record.labels("algorithms")[self.algorithm.title]

    @property
    def place(self) -> str:
        """The problem's label in its run."""
        return self.run.record.labels("problems")[self.problem.title]

    @property
    def horizon(self) -> int:
        """T of its cells."""
        return self.run.horizon_of(self.problem.title)

    @property
    def expected(self) -> int:
        """Seeds that were asked for."""
        return self.run.expected_of(self.problem.title).get(self.algorithm.title, 0)

    def final(self, column: str) -> pd.Series:
        """A column of the cells by seed, such as a metric at T; seeds where it is undefined are left out."""
        good = self.run.good(self.problem.title, self.algorithm.title)
        return pd.Series(good[column].to_numpy(dtype=np.float64), index=good["seed"].to_numpy()).dropna().sort_index()

    def curve(self, metric: str) -> pd.DataFrame:
        """A cumulative metric: recorded rounds by seeds."""
        return _curve(self.run, metric, self.problem.title, self.algorithm.title)

    def at(self, metric: str, t: float) -> tuple[int, pd.Series]:
        """The last recorded round up to t (else the first), and the metric there by seed."""
        curve = self.curve(metric)
        if curve.empty:
            return round(t), pd.Series(dtype=np.float64)
        position = max(0, int(np.searchsorted(curve.index, t, side="right")) - 1)
        return int(curve.index[position]), curve.iloc[position].dropna()

    def average(self, metric: str, t: float) -> pd.Series:
        """The metric over the rounds up to the last recorded one of these, by seed."""
        rounds, values = self.at(metric, t)
        return values / rounds


@lru_cache(maxsize=64)
def _curve(run: Run, metric: str, problem: str, algorithm: str) -> pd.DataFrame:
    t, values = run.series(metric, problem, algorithm)
    seeds = run.good(problem, algorithm).sort_values("cell")["seed"]
    return pd.DataFrame(values, t, seeds).sort_index(axis=1)


def _symbol(metric: str) -> str:
    return METRICS[metric].symbol if metric in METRICS else metric


def verdict_below(low: float, high: float, bound: float) -> Verdict:
    """Whether an interval lies below the bound."""
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    return "holds" if high < bound else "does not hold" if low > bound else "undecided"


def below(metric: str, a: Play, b: Play, t: float | None = None, higher: bool = False) -> Part:
    """a's metric is below b's (`higher`: above), at T or as the average over the first t rounds; paired by seed."""
    both = [play.final(metric) if t is None else play.average(metric, t) for play in (a, b)]
    pairs = pd.concat(both, axis=1, join="inner").dropna()
    word = "above" if higher else "below"
    what = f"{_symbol(metric)}{'' if t is None else f'/t at t = {t:.0f}'} of {a.label} {word} {b.label}'s"
    expected = max(a.expected, b.expected)
    paper = "difference > 0" if higher else "difference < 0"
    d = difference(pairs.iloc[:, 0].to_numpy(), pairs.iloc[:, 1].to_numpy())
    low, high = (-d.mean_high, -d.mean_low) if higher else (d.mean_low, d.mean_high)
    return Part(what, paper, verdict_below(low, high, 0.0), d.mean, d.mean_low, d.mean_high, d.n, expected, d.p)


def near(metric: str, play: Play, paper: float) -> Part:
    """The mean at T is the paper's number: its interval contains that.

    It is undecided if the interval reaches below half or above twice the number. If all seeds are zero, the interval is
    that of Poisson counts.
    """
    values = play.final(metric).to_numpy()
    n, mean = len(values), float(values.mean()) if len(values) else math.nan
    least = METRICS[metric].least if metric in METRICS else None
    low, high = (float(end) for end in interval(values, bounds=(least, None)))
    if n > 1 and not values.any():
        high = NONE_SEEN / n
    verdict: Verdict = "holds"
    if n > 1 and not low <= paper <= high:
        verdict = "does not hold"
    elif n < 2 or (mean != paper and not (paper / 2 <= low and high <= 2 * paper)):
        verdict = "undecided"
    return Part(f"{_symbol(metric)} of {play.label}", f"{paper:g}", verdict, mean, low, high, n, play.expected)


def never(metric: str, play: Play) -> Part:
    """The metric is 0 at T in every seed. The value is the share of seeds at 0."""
    values = play.final(metric).to_numpy()
    n, zeros = len(values), int((values == 0).sum())
    low, high = proportion(zeros, n)
    verdict: Verdict = "undecided" if n < 2 else "holds" if zeros == n else "does not hold"
    share = zeros / n if n else math.nan
    return Part(
        f"share of seeds with {_symbol(metric)} = 0, {play.label}", "1", verdict, share, low, high, n, play.expected
    )


def mean_never(metric: str, play: Play) -> Part:
    """`never` with the mean as its value: for a metric that is never negative, it is 0 only if every seed is."""
    values = play.final(metric).to_numpy()
    mean = float(values.mean()) if len(values) else math.nan
    low, high = interval(values, bounds=(0.0, None)) if values.any() else (math.nan, math.nan)
    what = f"mean {_symbol(metric)}, {play.label}"
    return replace(never(metric, play), what=what, paper="0", value=mean, low=float(low), high=float(high))


def similar(metric: str, a: Play, b: Play, factor: float = 2.0) -> Part:
    """The means at T differ by less than a factor, by the bootstrap interval of their ratio, paired by seed."""
    pairs = pd.concat([a.final(metric), b.final(metric)], axis=1, join="inner").dropna().to_numpy()
    n, expected = len(pairs), max(a.expected, b.expected)
    what, paper = f"{_symbol(metric)} of {a.label} over {b.label}'s", f"{1 / factor:g} to {factor:g}"
    if n < 2:
        return Part.open(what, paper, n, expected)
    means = draw_resamples(n) @ pairs / n
    ratio = float(pairs[:, 0].mean() / pairs[:, 1].mean()) if pairs[:, 1].mean() > 0 else math.nan
    if (means <= 0).any():
        return Part.open(what, paper, n, expected, ratio)
    low, high = percentiles(means[:, 0] / means[:, 1], n)
    outside, inside = high < 1 / factor or low > factor, 1 / factor <= low and high <= factor
    verdict: Verdict = "does not hold" if outside else "holds" if inside else "undecided"
    return Part(what, paper, verdict, ratio, low, high, n, expected)


def sublinear(metric: str, play: Play) -> Part:
    """The mean over seeds grows like t^e with e < 1 over the last half of the rounds; e with its interval."""
    curve = play.curve(metric).dropna(axis=1)
    n = curve.shape[1]
    what = f"growth exponent of {_symbol(metric)}, {play.label}"
    if len(curve) < 2 or n == 0:
        return Part.open(what, "< 1", n, play.expected)
    grown = exponent(curve.index.to_numpy(dtype=np.float64), curve.to_numpy())
    verdict = verdict_below(grown.low, grown.high, 1.0)
    return Part(what, "< 1", verdict, grown.exponent, grown.low, grown.high, n, play.expected)


def vanishes(metric: str, play: Play, t: float | None = None, stays: bool = False) -> Part:
    """The time average tends to 0: between t/4 and t (default T) the mean sum over seeds grows like t^e, e < 0.9.

    With `stays` the claim is the opposite: e > 0.9, the sum is almost linear. If the sum is not positive at t, e = -∞.
    Unlike `sublinear`, it accepts sums that fall or are negative, such as R and V.
    """
    end, last = play.at(metric, play.horizon if t is None else t)
    start, first = play.at(metric, end / 4)
    pairs = pd.concat([first, last], axis=1, join="inner").dropna().to_numpy()
    n, ends = len(pairs), (math.nan, math.nan)
    what = f"growth exponent of {_symbol(metric)} to t = {end}, {play.label}"
    value = float(_two_points(pairs.mean(axis=0)[None], start, end)[0]) if n and end > start else math.nan
    if n > 1 and end > start:
        ends = percentiles(_two_points(draw_resamples(n) @ pairs / n, start, end), n)
    verdict = verdict_below(-ends[1], -ends[0], -LINEAR) if stays else verdict_below(*ends, LINEAR)
    return Part(what, f"{'>' if stays else '<'} {LINEAR}", verdict, value, *ends, n, play.expected)


def _two_points(sums: Array, start: int, end: int) -> Array:
    """log(sum at end / sum at start) / log(end / start), for (draws, 2): ±∞ where a sum is not positive."""
    first, last = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.log(last / first) / math.log(end / start)
    return np.where(last <= 0, -np.inf, np.where(first <= 0, np.inf, slope))


def power(column: str, points: Sequence[tuple[float, Play]], at_most: float | None = None, at_least: float = 0) -> Part:
    """The median of a column of the cells grows like x^e: e by least squares in logarithms, with Student's interval.

    Args:
        points: (x, play), x such as the number of actions; three at least.
        at_most, at_least: the claim's bound of e; give one of the two.
    """
    from scipy.special import stdtrit

    medians = [(x, play.final(column).median()) for x, play in points]
    x, y = np.log(np.array([pair for pair in medians if pair[1] > 0]).reshape(-1, 2)).T
    n, expected = (f(len(play.final(column)) for _, play in points) for f in (min, max))
    what = f"exponent of {_symbol(column)} in the size, {points[0][1].algorithm.name}"
    paper = f"< {at_most:g}" if at_most is not None else f"> {at_least:g}"
    if len(x) < 3:
        return Part.open(what, paper, n, expected)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    rest = y - y.mean() - slope * centred
    half = float(stdtrit(len(x) - 2, 0.975) * np.sqrt(rest @ rest / (len(x) - 2) / (centred @ centred)))
    low, high = slope - half, slope + half
    verdict = verdict_below(low, high, at_most) if at_most is not None else verdict_below(-high, -low, -at_least)
    return Part(what, paper, verdict, slope, low, high, n, expected)


def adjust_parts(parts: Iterable[Part]) -> list[Part]:
    """Adjust p by Holm over all parts; a comparison that is no longer significant becomes undecided."""
    found = list(parts)
    adjusted = holm([part.p for part in found])
    return [
        replace(part, p=float(p), verdict="undecided" if p >= SIGNIFICANT else part.verdict)
        for part, p in zip(found, adjusted, strict=True)
    ]


def verdict_of(parts: Sequence[Part]) -> Verdict:
    """The verdict of a claim whose parts must all hold."""
    verdicts = [part.verdict for part in parts]
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if verdicts and set(verdicts) == {"holds"} else "undecided"


def any_of(what: str, choices: Sequence[Sequence[Part]]) -> Part:
    """One of several groups of parts holds. Gives the group that comes nearest, as one part with its least n."""
    groups = [adjust_parts(group) for group in choices]
    order = {"holds": 0, "undecided": 1, "does not hold": 2}
    best = min(groups, key=lambda group: (order[verdict_of(group)], sum(order[part.verdict] for part in group)))
    held = sum(part.verdict == "holds" for part in best)
    n, expected = min(part.n for part in best), max(part.expected for part in best)
    shown = f"{what}: {'; '.join(part.what for part in best)}"
    return Part(shown, f"all {len(best)}", verdict_of(best), held, math.nan, math.nan, n, expected)
