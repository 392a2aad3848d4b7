"""The rules that claims are tested by, one function each. `RULES` says them in words, for the
pages.

Every rule compares two samples: ours, and the paper's trials, of which only a mean, an order or a
picture is known. In a simulated replication (`cbobench.papers.claims.replicate`) the paper's trials
are drawn from ours; then a rule tests what those trials would have made a paper say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from cbobench.metrics import METRICS
from cbobench.papers.evidence import (
    HOLDS,
    Part,
    Play,
    Verdict,
    count_seeds_needed,
    judge,
    verdict_of,
)
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


class Rule(NamedTuple):
    """A rule in words."""

    statement: str
    quantity: str
    reproduced: str
    contradicted: str


RULES = {
    "order": Rule(
        "A is below B",
        "mean of A − B over the seeds that both have, with its 95 % interval; Wilcoxon's "
        "signed-rank test",
        "the interval lies below 0, and p < 5 %",
        "the interval lies above 0, p < 5 % after Holm, and no few seeds carry the mean",
    ),
    "similar": Rule(
        "A is similar to B",
        f"ratio of the means, bootstrapped in pairs; similar is from 1/{SIMILAR:g} to {SIMILAR:g}",
        "the interval lies in that range; stronger if it lies below",
        "the interval lies above it, and no few seeds carry a mean",
    ),
    "not worse": Rule(
        "A is better than B or similar",
        "the same ratio",
        f"the interval lies below {SIMILAR:g}",
        f"the interval lies above {SIMILAR:g}, and no few seeds carry a mean",
    ),
    "number": Rule(
        "a mean is a number",
        "our mean beside the paper's; a bootstrap test that both are means of one law, over n of "
        "ours and the "
        "paper's number of trials",
        f"our mean lies within a factor of {SIMILAR:g} or a round of the paper's, or of {FAR:g} "
        "if the test accepts; "
        f"of fewer than {ENOUGH} seeds the interval must lie there",
        f"our interval lies beyond a factor of {FAR:g} and a round, and the test rejects (p < 5 "
        "% after Holm); of "
        f"fewer than {ENOUGH} seeds no few may carry the mean; on the better side it is stronger",
    ),
    "at most": Rule(
        "a mean is at most a number", "as for a number", "as for a number, or below it", "the same"
    ),
    "always": Rule(
        "a quantity is 0 in all trials",
        "our share of seeds at 0 beside the paper's: Fisher's exact test",
        f"the test accepts, and the share's 95 % interval lies above {MOSTLY:g}",
        "the test rejects (p < 5 % after Holm)",
    ),
    "growth": Rule(
        "an average tends to 0, or stays",
        "e in t^e, as the mean sum grows from T/4 to T; bootstrapped",
        f"tends to 0: the interval lies below {LINEAR:g}; stays: above. From {LINEAR:g} to 1 a "
        "sum is almost linear",
        "the interval lies on the other side (p < 5 % after Holm)",
    ),
    "cost": Rule(
        "cost grows like a power of the size",
        "least-squares slope of the log median on the log size, Student's interval",
        "the interval lies on the claim's side of 1.5",
        "it lies on the other side",
    ),
}


def _symbol(metric: str) -> str:
    return METRICS[metric].symbol if metric in METRICS else metric


BY_SIDE: dict[int, Verdict] = {-1: "reproduced", 0: "cannot tell", 1: "contradicted"}
"""What the side of a bound says on which an interval lies, where a claim is that it lies below."""


def side_of(low: float, high: float, bound: float) -> int:
    """-1 if an interval lies below the bound, 1 above, 0 on both sides or without an end."""
    return int(low > bound) - int(high < bound)


@lru_cache(maxsize=32)
def _resamples(n: int, size: int | None = None) -> Array:
    """Shares of the seeds in each resample, (draws, n); `size` values are drawn instead of n."""
    drawn = draw_resamples(n) if size is None else draw_resamples(n, seed=1, size=size)
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def below(metric: str, a: Play, b: Play, t: float | None = None, higher: bool = False) -> Part:
    """a's metric is below b's (`higher`: above), at T or as the average over the first t rounds;
    paired by seed.
    """
    if a.paper and b.paper:
        higher = bool(_pairs(metric, a.paper, b.paper, t).diff(axis=1).iloc[:, 1].mean() < 0)
    pairs = _pairs(metric, a, b, t)
    word = "above" if higher else "below"
    subject = (
        f"{_symbol(metric)}{'' if t is None else f'/t at t = {t:.0f}'} of {a.label} {word} "
        f"{b.label}'s"
    )
    paper = "difference > 0" if higher else "difference < 0"
    d = difference(pairs.iloc[:, 0].to_numpy(), pairs.iloc[:, 1].to_numpy())
    side = side_of(d.mean_low, d.mean_high, 0.0) * (-1 if higher else 1)
    verdict: Verdict = "cannot tell"
    if side < 0 and d.p < SIGNIFICANT:
        verdict = "reproduced"
    elif (
        side > 0
        and d.p < SIGNIFICANT
        and not is_carried_by_few(pairs.iloc[:, 0] - pairs.iloc[:, 1])
    ):
        verdict = "contradicted"
    part = Part(
        rule="order",
        subject=subject,
        paper=paper,
        verdict=verdict,
        value=d.mean,
        low=d.mean_low,
        high=d.mean_high,
        n=d.n,
        expected=max(a.expected, b.expected),
        p=d.p,
    )
    return part.count_needed(0.0)


def _pairs(metric: str, a: Play, b: Play, t: float | None) -> pd.DataFrame:
    sides = [play.final(metric) if t is None else play.average(metric, t) for play in (a, b)]
    return pd.concat(sides, axis=1, join="inner").dropna()


def similar(metric: str, a: Play, b: Play) -> Part:
    """The means at T differ by less than a factor of two; if a is lower by more, it is stronger
    than claimed.
    """
    return _ratio("similar", metric, a, b)


def not_worse(metric: str, a: Play, b: Play) -> Part:
    """a's mean at T is less than twice b's."""
    return _ratio("not worse", metric, a, b)


def _ratio(rule: str, metric: str, a: Play, b: Play) -> Part:
    bounds = [1 / SIMILAR, SIMILAR] if rule == "similar" else [SIMILAR]
    claimed = len(bounds) - 1  # between the bounds, or below the only one
    if a.paper and b.paper:
        means = _pairs(metric, a.paper, b.paper, None).mean().to_numpy()
        claimed = int(np.searchsorted(bounds, means[0] / means[1])) if means[1] > 0 else claimed
    pairs = _pairs(metric, a, b, None).to_numpy()
    n = len(pairs)
    expected = max(a.expected, b.expected)
    subject = f"{_symbol(metric)} of {a.label} over {b.label}'s"
    paper = f"{bounds[0]:g} to {bounds[1]:g}" if rule == "similar" else f"< {SIMILAR:g}"
    means = _resamples(n) @ pairs if n > 1 else np.zeros((1, 2))
    if (means <= 0).any():
        return Part.open(rule, subject, paper, n, expected)
    ratio = float(pairs[:, 0].mean() / pairs[:, 1].mean())
    drawn = means[:, 0] / means[:, 1]
    low, high = percentiles(drawn, n)
    first, last = np.searchsorted(bounds, [low, high])
    verdict: Verdict = "cannot tell"
    if first == last:
        if first == claimed or (rule == "not worse" and first < claimed):
            verdict = "reproduced"
        elif first < claimed:
            verdict = "stronger than claimed"
        elif not any(is_carried_by_few(values) for values in pairs.T):
            verdict = "contradicted"
    logs = [math.log(x) for x in (ratio, low, high, *bounds)]
    needed = count_seeds_needed(n, *logs) if verdict == "cannot tell" else 0.0
    p = _tail(np.searchsorted(bounds, drawn) <= claimed) if verdict == "contradicted" else math.nan
    return Part(
        rule=rule,
        subject=subject,
        paper=paper,
        verdict=verdict,
        value=ratio,
        low=low,
        high=high,
        n=n,
        expected=expected,
        p=p,
        needed=needed,
    )


def _tail(claimed: NDArray[np.bool_]) -> float:
    """Two-sided p of a claim, from whether each resample is as claimed."""
    return float(min(1.0, 2 * (claimed.sum() + 1) / (len(claimed) + 1)))


def number(metric: str, play: Play, paper: float, trials: int = 50) -> Part:
    """The mean at T is the paper's number, a mean of so many trials; lower is better."""
    return _mean("number", metric, play, paper, trials)


def at_most(metric: str, play: Play, bound: float, trials: int = 50) -> Part:
    """The mean at T is at most a number, which is a mean of so many trials."""
    return _mean("at most", metric, play, bound, trials)


def _mean(rule: str, metric: str, play: Play, paper: float, trials: int) -> Part:
    if play.paper:
        paper = float(play.paper.final(metric).mean())
    values = play.final(metric).to_numpy()
    n = len(values)
    mean = float(values.mean()) if len(values) else math.nan
    known = METRICS.get(metric)
    least = known.least if known else None
    low, high = (float(end) for end in interval(values, bounds=(least, None)))
    unit = ROUND if known and known.is_count else 0.0
    subject = f"{_symbol(metric)} of {play.label}"
    paper_text = f"{'≤ ' if rule == 'at most' else ''}{paper:g}"
    if n < 2:
        return Part.open(rule, subject, paper_text, n, play.expected, mean)
    p = _same_law(values, paper, trials)
    near = (paper / SIMILAR - unit, paper * SIMILAR + unit)
    far = (paper / FAR - unit, paper * FAR + unit)
    if rule == "at most":
        near = (-math.inf, near[1])
        far = (-math.inf, far[1])
    verdict: Verdict = "cannot tell"
    accepted = near[0] <= mean <= near[1] or (far[0] <= mean <= far[1] and p >= SIGNIFICANT)
    if (near[0] <= low and high <= near[1]) or (accepted and n >= ENOUGH):
        verdict = "reproduced"
    elif (high < far[0] or low > far[1]) and (n >= ENOUGH or not is_carried_by_few(values)):
        verdict = "contradicted" if low > far[1] else "stronger than claimed"
    part = Part(
        rule=rule,
        subject=subject,
        paper=paper_text,
        verdict=verdict,
        value=mean,
        low=low,
        high=high,
        n=n,
        expected=play.expected,
        p=p,
    )
    return part.count_needed(*far)


def _same_law(values: Array, paper: float, trials: int) -> float:
    """p of the difference of two means, of all values and of so many trials of the same law, by
    resampling.
    """
    n = len(values)
    apart = np.abs(_resamples(n, trials) @ values - _resamples(n) @ values)
    return float(((apart >= abs(values.mean() - paper) * (1 - 1e-12)).sum() + 1) / (len(apart) + 1))


def never(metric: str, play: Play, trials: int = 50) -> Part:
    """The metric is 0 at T in every trial. The value is the share of seeds at 0."""
    from scipy.stats import fisher_exact

    share = 1.0 if play.paper is None else float((play.paper.final(metric) == 0).mean())
    values = play.final(metric).to_numpy()
    n = len(values)
    zeros = int((values == 0).sum())
    low, high = proportion(zeros, n)
    theirs = round(share * trials)
    p = (
        float(fisher_exact([[zeros, n - zeros], [theirs, trials - theirs]]).pvalue)
        if n
        else math.nan
    )
    verdict: Verdict = "cannot tell"
    if p < SIGNIFICANT:
        verdict = "contradicted"
    elif low > MOSTLY - (1 - share):
        verdict = "reproduced"
    ours = zeros / n if n else math.nan
    subject = f"share of seeds with {_symbol(metric)} = 0, {play.label}"
    part = Part(
        rule="always",
        subject=subject,
        paper="1",
        verdict=verdict,
        value=ours,
        low=low,
        high=high,
        n=n,
        expected=play.expected,
        p=p,
    )
    return part.count_needed(MOSTLY)


def vanishes(metric: str, play: Play, t: float | None = None, stays: bool = False) -> Part:
    """The time average tends to 0: between t/4 and t (default T) the mean sum over seeds grows like
    t^e, e < 0.9.

    With `stays` the claim is the opposite: e > 0.9, the sum is almost linear. If the sum is not
    positive at t, e = -∞.
    """
    end, start, pairs = _two_sums(metric, play, t)
    n = len(pairs)
    ends = (math.nan, math.nan)
    subject = f"growth exponent of {_symbol(metric)} to t = {end}, {play.label}"
    if play.paper:
        _, _, theirs = _two_sums(metric, play.paper, t)
        stays = bool(_grow(theirs.mean(axis=0)[None], start, end)[0] > LINEAR)
    value = float(_grow(pairs.mean(axis=0)[None], start, end)[0]) if n and end > start else math.nan
    p = math.nan
    if n > 1 and end > start:
        drawn = _grow(_resamples(n) @ pairs, start, end)
        ends = percentiles(drawn, n)
        p = _tail(drawn > LINEAR if stays else drawn < LINEAR)
    side = side_of(*ends, LINEAR) * (-1 if stays else 1)
    part = Part(
        rule="growth",
        subject=subject,
        paper=f"{'>' if stays else '<'} {LINEAR}",
        verdict=BY_SIDE[side],
        value=value,
        low=ends[0],
        high=ends[1],
        n=n,
        expected=play.expected,
        p=p,
    )
    return part.count_needed(LINEAR)


def _two_sums(metric: str, play: Play, t: float | None) -> tuple[int, int, Array]:
    """The later round, the earlier one, and the sums at both, (n, 2)."""
    end, last = play.at(metric, play.horizon if t is None else t)
    start, first = play.at(metric, end / 4)
    return end, start, pd.concat([first, last], axis=1, join="inner").dropna().to_numpy()


def _grow(sums: Array, start: int, end: int) -> Array:
    """log(sum at end / sum at start) / log(end / start), for (draws, 2): ±∞ where a sum is not
    positive.
    """
    first, last = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.log(last / first) / math.log(end / start)
    return np.where(last <= 0, -np.inf, np.where(first <= 0, np.inf, slope))


def power(
    column: str,
    points: Sequence[tuple[float, Play]],
    at_most: float | None = None,
    at_least: float = 0,
) -> Part:
    """The median of a column of the cells grows like x^e: e by least squares in logarithms, with
    Student's interval.

    Args:
        points: (x, play), x such as the number of actions; three at least.
        at_most, at_least: the claim's bound of e; give one of the two.
    """
    medians = [(x, play.final(column).median()) for x, play in points]
    x, y = np.log(np.array([pair for pair in medians if pair[1] > 0]).reshape(-1, 2)).T
    n, expected = (f(len(play.final(column)) for _, play in points) for f in (min, max))
    subject = f"exponent of {_symbol(column)} in the size, {points[0][1].algorithm.name}"
    paper = f"< {at_most:g}" if at_most is not None else f"> {at_least:g}"
    if len(x) < 3:
        return Part.open("cost", subject, paper, n, expected)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    residuals = y - y.mean() - slope * centred
    half = float(
        stdtrit(len(x) - 2, 0.975)
        * np.sqrt(residuals @ residuals / (len(x) - 2) / (centred @ centred))
    )
    low = slope - half
    high = slope + half
    side = side_of(low, high, at_most) if at_most is not None else -side_of(low, high, at_least)
    return Part(
        rule="cost",
        subject=subject,
        paper=paper,
        verdict=BY_SIDE[side],
        value=slope,
        low=low,
        high=high,
        n=n,
        expected=expected,
        needed=0.0 if side else math.inf,
    )


def any_of(subject: str, choices: Sequence[Sequence[Part]]) -> Part:
    """One of several groups of parts holds. Gives the group that comes nearest, as one part with
    its least n.
    """
    order = ["contradicted", "cannot tell", "reproduced in part", *HOLDS]
    groups = [judge(group) for group in choices]
    best = max(
        groups,
        key=lambda group: (order.index(verdict_of(group)), sum(part.holds for part in group)),
    )
    verdict = verdict_of(best)
    if verdict == "reproduced in part":  # a group that holds in part does not hold
        verdict = verdict_of([part for part in best if not part.holds])
    n = min(part.n for part in best)
    expected = max(part.expected for part in best)
    label = f"{subject}: {'; '.join(part.subject for part in best)}"
    held = sum(part.holds for part in best)
    needed = max(part.needed for part in best)
    return Part(
        rule=best[0].rule,
        subject=label,
        paper=f"all {len(best)}",
        verdict=verdict,
        value=held,
        low=math.nan,
        high=math.nan,
        n=n,
        expected=expected,
        needed=needed,
    )
