"""Curves over rounds: mean with its interval, or median with quartiles, over the seeds of every algorithm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbobench.errors import unknown
from cbobench.metrics import METRICS
from cbobench.report.load import Run, read_values, recorded_rounds
from cbobench.report.quantities import FAR, is_reached
from cbobench.stats import intervals

Array = NDArray[np.float64]
STATISTICS = ("mean", "median")


def centre(values: Array, metric: str, statistic: str = "mean") -> tuple[Array, Array, Array]:
    """What stands for many seeds, and how far it may be trusted or they lie apart.

    Args:
        values: one row per point, one column per seed, (points, seeds).
        metric: whose values these are; nothing that is returned lies below the least it can be.
        statistic: "mean", with its 95 % interval, or "median", with the quartiles.

    Returns:
        The mean, and the interval's ends (NaN for fewer than two seeds); or the median, and the quartiles. Each is
        (points,). A value that is undefined makes a mean undefined; for a median it counts as the worst there is.

    Raises:
        Misuse: another statistic.
    """
    if statistic not in STATISTICS:
        raise unknown("statistic", statistic, STATISTICS)
    if values.shape[1] == 0:
        nothing = np.full(len(values), np.nan)
        return nothing, nothing, nothing
    if statistic == "mean":
        low, high = intervals.interval(values, axis=1, bounds=(METRICS[metric].least, None))
        return values.mean(axis=1), low, high
    ordered = np.where(np.isnan(values), FAR if METRICS[metric].better == "lower" else -FAR, values)
    quartiles = np.quantile(ordered, [0.5, 0.25, 0.75], axis=1)
    median, low, high = np.where(is_reached(quartiles), quartiles, np.nan)
    return median, low, high


def curves(
    run: Run,
    metric: str,
    problem: str,
    *,
    average: bool = False,
    statistic: str = "mean",
    last: int | None = None,
    algorithms: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Curves of one metric on one problem, at the horizon that figures show of it (`Run.horizon_of`).

    Args:
        metric: a column of the rounds table.
        problem: title of the problem.
        average: divide by t.
        statistic: what `low` and `high` are: the ends of the mean's interval, or with "median" the quartiles.
        last: the last round.
        algorithms: titles, all by default.

    Returns:
        One row per (algorithm, t): `algorithm`, `label`, `t`, `mean` or `median`, `low`, `high`, `n`, `expected`,
        `stale` (how many of the n cells other code played); for rewards `f_star`, the mean reward of the best feasible
        action, summed or averaged over rounds as they are.
    """
    expected = run.expected_of(problem)
    columns = ["algorithm", "label", "t", statistic, "low", "high", "n", "expected", "stale"]
    against = ["regret"] * (metric == "reward")  # of f*: reward and regret add up to it
    parts = []
    for algorithm, label in run.record.labels("algorithms").items():
        if algorithm not in expected or (algorithms is not None and algorithm not in algorithms):
            continue
        t = recorded_rounds(run, problem, algorithm)
        if len(t) == 0:
            continue
        values, *others = read_values(run, [metric, *against], problem, algorithm, t)
        kept = slice(None) if last is None else t <= last
        rounds = t[kept, None] if average else 1.0
        points = centre(values[kept] / rounds, metric, statistic)
        part = {"algorithm": algorithm, "label": label, "t": t[kept], "n": values.shape[1]}
        part |= dict(zip((statistic, "low", "high"), points, strict=True))
        part |= {"expected": expected[algorithm], "stale": stale(run, problem, algorithm)}
        for regret in others:
            part["f_star"] = ((values + regret)[kept] / rounds).mean(axis=1)
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)[columns + ["f_star"] * (metric == "reward")] if parts else (
        pd.DataFrame(columns=columns)
    )  # fmt: skip


def stale(run: Run, problem: str, algorithm: str) -> int:
    """How many of a pair's good cells (`Run.good`) were played by code that has changed since."""
    return len(run.stale.intersection(run.good(problem, algorithm)["cell"]))
