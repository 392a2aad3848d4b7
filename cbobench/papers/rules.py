"""The rules that claims are tested by, one function each. A part's `rule` is the name under which
docs/reproduction.md says it in words.

Every rule compares two samples: ours, and the paper's trials, of which only a mean, an order or a
picture is known. In a simulated replication (`cbobench.papers.claims.replicate`) the paper's trials
are drawn from ours; then a rule tests what those trials would have made a paper say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from cbobench.metrics import METRICS
from cbobench.papers.evidence import Part, Play, Verdict, judge, verdict_of
from cbobench.stats.intervals import (
    Array,
    draw_resamples,
    interval,
    is_carried_by_few,
    percentiles,
    proportion,
)
from cbobench.stats.paired_tests import SIGNIFICANT, difference

SIMILAR = 2.0  # means that differ by less than this factor are similar
FAR = 3.0  # a mean of ours that lies beyond this factor of the paper's may contradict it
ROUND = 1.0  # a mean number of rounds may differ by so much, whatever its factor
# seeds from which a mean of ours is compared with a number by its value, not by its interval alone
ENOUGH = 30
LINEAR = 0.9  # a sum that grows like t^e with e above this is almost linear
MOSTLY = 0.75  # "always" is reproduced if at least this share of trials is so
CURVED = 1.5  # a cost that grows like x^e with e above this is nearer to quadratic than to linear
TRIALS = 50  # of a paper, which its means and shares are taken to be of
SIDES = {False: "below", True: "above"}
SIGNS = {False: "<", True: ">"}


def _symbol(column: str) -> str:
    if column in METRICS:
        return METRICS[column].symbol
    return column


def tell_side(low: float, high: float, bound: float, above: bool) -> Verdict:
    """What an interval says of the claim that a number lies below a bound, or `above` it."""
    lies = {False: high < bound, True: low > bound}
    if lies[above]:
        return "reproduced"
    if lies[not above]:
        return "contradicted"
    return "cannot tell"


@lru_cache(maxsize=32)
def _resamples(n: int, seed: int = 0, size: int | None = None) -> Array:
    """Shares of the seeds in each resample, (draws, n); `size` values are drawn instead of n."""
    drawn = draw_resamples(n, seed=seed, size=size)
    return drawn / drawn.sum(axis=1, keepdims=True)


def _pair(first: pd.Series, second: pd.Series) -> Array:
    """Two values of the seeds that have both, (n, 2)."""
    return pd.concat([first, second], axis=1, join="inner").dropna().to_numpy()


def _read_pairs(metric: str, a: Play, b: Play, t: float | None = None) -> Array:
    return _pair(a.average(metric, t), b.average(metric, t))


def below(metric: str, a: Play, b: Play, t: float | None = None, higher: bool = False) -> Part:
    """a's metric is below b's (`higher`: above), at T or as the average over the first t rounds;
    paired by seed.
    """
    # In a replication the claim is the order of the paper's trials.
    if a.paper and b.paper:
        higher = bool(np.diff(_read_pairs(metric, a.paper, b.paper, t)).sum() < 0)
    pairs = _read_pairs(metric, a, b, t)
    average = ""
    if t is not None:
        average = f"/t at t = {t:.0f}"
    part = Part(
        rule="order",
        what=f"{_symbol(metric)}{average} of {a.label} {SIDES[higher]} {b.label}'s",
        paper=f"difference {SIGNS[higher]} 0",
        n=len(pairs),
        expected=max(a.expected, b.expected),
    )
    # Mean and rank test must agree, and what a few seeds make contradicts nothing.
    d = difference(*pairs.T)
    verdict = tell_side(d.mean_low, d.mean_high, 0.0, above=higher)
    is_weak = verdict == "contradicted" and is_carried_by_few(np.diff(pairs))
    if d.p >= SIGNIFICANT or is_weak:
        verdict = "cannot tell"
    return part.decide(verdict, d.mean, d.mean_low, d.mean_high, 0.0, p=d.p)


def similar(metric: str, a: Play, b: Play, or_better: bool = False) -> Part:
    """The means at T differ by less than a factor of two; if a is lower by more, it is stronger
    than claimed, with `or_better` as claimed.
    """
    # The bounds part the ratios into zones; the claim is that the ratio lies in one of them.
    rule = "similar"
    bounds = [1 / SIMILAR, SIMILAR]
    zone = f"{bounds[0]:g} to {SIMILAR:g}"
    if or_better:
        rule = "not worse"
        bounds = [SIMILAR]
        zone = f"< {SIMILAR:g}"
    # In a replication it is the zone of the paper's trials.
    claimed = len(bounds) - 1
    if a.paper and b.paper:
        ours, theirs = _read_pairs(metric, a.paper, b.paper).sum(axis=0)
        if theirs > 0:
            claimed = np.searchsorted(bounds, ours / theirs)
    pairs = _read_pairs(metric, a, b)
    part = Part(
        rule=rule,
        what=f"{_symbol(metric)} of {a.label} over {b.label}'s",
        paper=zone,
        n=len(pairs),
        expected=max(a.expected, b.expected),
    )
    # Means of 0 or below have no ratio.
    if part.n < 2:
        return part
    means = _resamples(part.n) @ pairs
    if (means <= 0).any():
        return part
    # An interval that lies in two zones cannot tell.
    drawn = means[:, 0] / means[:, 1]
    low, high = percentiles(drawn, part.n)
    first, last = np.searchsorted(bounds, [low, high])
    verdict: Verdict = "cannot tell"
    p = math.nan
    if first == last:
        is_better = first < claimed
        if first == claimed or (is_better and or_better):
            verdict = "reproduced"
        elif is_better:
            verdict = "stronger than claimed"
        elif not any(map(is_carried_by_few, pairs.T)):
            verdict = "contradicted"
            p = _tail(np.searchsorted(bounds, drawn) <= claimed)
    ratio = pairs[:, 0].mean() / pairs[:, 1].mean()
    return part.decide(verdict, ratio, low, high, *bounds, p=p, scale=math.log)


def _tail(claimed: NDArray[np.bool_]) -> float:
    """Two-sided p of a claim, from whether each resample is as claimed."""
    return min(1.0, 2 * (claimed.sum() + 1) / (len(claimed) + 1))


def number(metric: str, play: Play, paper: float, at_most: bool = False) -> Part:
    """The mean at T is the paper's number, or `at_most` that; lower is better."""
    # A count may differ by a round, and no interval reaches below what a metric can be.
    least = None
    unit = 0.0
    if metric in METRICS:
        least = METRICS[metric].least
        if METRICS[metric].is_count:
            unit = ROUND
    # In a replication the number is the mean of the paper's trials.
    if play.paper:
        paper = play.paper.final(metric).mean()
    near = [paper / SIMILAR - unit, paper * SIMILAR + unit]
    far = [paper / FAR - unit, paper * FAR + unit]
    rule = "number"
    said = f"{paper:g}"
    if at_most:
        near[0] = far[0] = -math.inf
        rule = "at most"
        said = f"≤ {paper:g}"
    values = play.final(metric)
    mean = values.mean()
    part = Part(
        rule=rule,
        what=f"{_symbol(metric)} of {play.label}",
        paper=said,
        value=mean,
        n=len(values),
        expected=play.expected,
    )
    if part.n < 2:
        return part
    low, high = map(float, interval(values, bounds=(least, None)))
    p = _same_law(values.to_numpy(), paper)
    # Of enough seeds the mean is compared; of fewer the interval must say it, and no few seeds.
    is_enough = part.n >= ENOUGH
    is_near = near[0] <= mean <= near[1]
    is_accepted = far[0] <= mean <= far[1] and p >= SIGNIFICANT
    is_surely_near = near[0] <= low and high <= near[1]
    verdict: Verdict = "cannot tell"
    if is_surely_near or (is_enough and (is_near or is_accepted)):
        verdict = "reproduced"
    elif is_enough or not is_carried_by_few(values):
        if low > far[1]:
            verdict = "contradicted"
        if high < far[0]:
            verdict = "stronger than claimed"
    return part.decide(verdict, mean, low, high, *far, p=p)


def _same_law(values: Array, paper: float) -> float:
    """p of the difference of two means, of all values and of `TRIALS` of the same law, by
    resampling.
    """
    n = len(values)
    apart = np.abs(_resamples(n, seed=1, size=TRIALS) @ values - _resamples(n) @ values)
    return ((apart >= abs(values.mean() - paper) * (1 - 1e-12)).sum() + 1) / (len(apart) + 1)


def never(metric: str, play: Play) -> Part:
    """The metric is 0 at T in every trial. The value is the share of seeds at 0."""
    from scipy.stats import fisher_exact

    values = play.final(metric)
    n = len(values)
    part = Part(
        rule="always",
        what=f"share of seeds with {_symbol(metric)} = 0, {play.label}",
        paper="1",
        n=n,
        expected=play.expected,
    )
    if n == 0:
        return part
    # In a replication the claim is the share of the paper's trials.
    share = 1.0
    if play.paper:
        share = (play.paper.final(metric) == 0).mean()
    zeros = (values == 0).sum()
    theirs = round(share * TRIALS)
    p = fisher_exact([[zeros, n - zeros], [theirs, TRIALS - theirs]]).pvalue
    low, high = proportion(zeros, n)
    verdict: Verdict = "cannot tell"
    if p < SIGNIFICANT:
        verdict = "contradicted"
    elif low > MOSTLY - (1 - share):
        verdict = "reproduced"
    return part.decide(verdict, zeros / n, low, high, MOSTLY, p=p)


def vanishes(metric: str, play: Play, t: float | None = None, stays: bool = False) -> Part:
    """The time average tends to 0: between t/4 and t (default T) the mean sum over seeds grows like
    t^e, e < 0.9.

    With `stays` the claim is the opposite: e > 0.9, the sum is almost linear. If the sum is not
    positive at t, e = -∞.
    """
    end, last = play.at(metric, t or play.horizon)
    start, first = play.at(metric, end / 4)
    sums = _pair(first, last)
    value = math.nan
    if len(sums):
        value = float(_grow(sums.sum(axis=0), start, end))
    # In a replication the claim is the side on which the paper's trials lie.
    if play.paper:
        theirs = _pair(play.paper.at(metric, start)[1], play.paper.at(metric, end)[1])
        stays = bool(_grow(theirs.sum(axis=0), start, end) > LINEAR)
    part = Part(
        rule="growth",
        what=f"growth exponent of {_symbol(metric)} to t = {end}, {play.label}",
        paper=f"{SIGNS[stays]} {LINEAR}",
        value=value,
        n=len(sums),
        expected=play.expected,
    )
    if part.n < 2 or start == end:
        return part
    drawn = _grow(_resamples(part.n) @ sums, start, end)
    low, high = percentiles(drawn, part.n)
    verdict = tell_side(low, high, LINEAR, above=stays)
    return part.decide(verdict, value, low, high, LINEAR, p=_tail((drawn > LINEAR) == stays))


def _grow(sums: Array, start: int, end: int) -> Array:
    """log(sum at end / sum at start) / log(end / start), for (..., 2): ±∞ where a sum is not
    positive.
    """
    first, last = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.log(last / first) / math.log(end / start)
    return np.where(last <= 0, -np.inf, np.where(first <= 0, np.inf, slope))


def power(column: str, points: Sequence[tuple[float, Play]], above: bool = False) -> Part:
    """The median of a column of the cells grows like x^e with e below 1.5, or `above`: e by least
    squares in logarithms, with Student's interval.

    Args:
        points: (x, play), x such as the number of actions; three at least.
    """
    from scipy.stats import linregress

    sizes, plays = zip(*points, strict=True)
    cells = [play.final(column) for play in plays]
    part = Part(
        rule="cost",
        what=f"exponent of {_symbol(column)} in the size, {plays[0].algorithm.name}",
        paper=f"{SIGNS[above]} {CURVED:g}",
        n=min(map(len, cells)),
        expected=max(map(len, cells)),
    )
    medians = pd.Series([values.median() for values in cells], index=sizes)
    known = medians[medians > 0]
    if len(known) < 3:
        return part
    line = linregress(np.log(known.index), np.log(known))
    half = stdtrit(len(known) - 2, 0.975) * line.stderr
    slope = line.slope
    verdict = tell_side(slope - half, slope + half, CURVED, above)
    return part.decide(verdict, slope, slope - half, slope + half)  # no number of seeds would tell


RANKS = ("contradicted", "cannot tell", "reproduced in part", "reproduced", "stronger than claimed")


def any_of(subject: str, choices: Sequence[Sequence[Part]]) -> Part:
    """One of several groups of parts holds. Gives the group that comes nearest, as one part with
    its least n.
    """
    best = max(
        map(judge, choices),
        key=lambda group: (RANKS.index(verdict_of(group)), sum(part.holds for part in group)),
    )
    # A group that holds in part does not hold.
    verdict = verdict_of([part for part in best if not part.holds] or best)
    return Part(
        rule=best[0].rule,
        what=f"{subject}: {'; '.join(part.what for part in best)}",
        paper=f"all {len(best)}",
        verdict=verdict,
        value=float(sum(part.holds for part in best)),
        n=min(part.n for part in best),
        expected=max(part.expected for part in best),
        needed=max(part.needed for part in best),
    )
