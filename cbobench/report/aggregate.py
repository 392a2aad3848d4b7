"""Statistics over seeds: means and medians with their intervals, and quartiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import unknown
from cbobench.report.groups import Group, Where, groups, opened
from cbobench.report.load import Run
from cbobench.report.quantities import Array, Quantity, quantities, reach, rounds_to, unfilled
from cbobench.stats.intervals import SURE, attained, carried, interval

STATISTICS = ("mean", "low", "high", "median", "median_low", "median_high", "q25", "q75", "carried", "defined")


def summary(run: Where, *, only: str | None = None, by: str = "problem", target: float | None = None) -> pd.DataFrame:
    """What the seeds of every (problem, algorithm, horizon) came to.

    Args:
        run: an open run, a path or URI, or what `cbobench.run` returned.
        only: a glob over "problem/algorithm", by title, name or label.
        by: "problem" or "algorithm" for the order of rows, "binds" for two rows where the constraint binds in some
            seeds only.
        target: of simple regret; adds the first recorded round at which it was reached, `rounds_to_target`.

    Returns:
        One row per group, in the suite's order, with `problem`, `algorithm` (titles), their labels, `horizon`, `n`
        (cells that are ok), `expected`, `failed`, `stale`, `unchecked` (stale or not is not known: no code is at
        hand), `binds` and `binds_known` (in how many seeds the constraint binds, of how many where that is known), and
        for every metric and what else a cell holds:

        - `<name>`: the mean over seeds where it is defined; `<name>_low`, `<name>_high`: its 95 % interval;
        - `<name>_median`, `<name>_median_low`, `<name>_median_high`: likewise, but with fewer than six seeds the range
          (which holds a median with 50, 75, 87.5, 93.75 % for 2, 3, 4, 5); `<name>_q25`, `<name>_q75`: quartiles.
          Of what a seed may never reach (simple regret, first feasible round, a target) these count such seeds as
          worse than any value: infinite where half of the seeds or more have none, NaN where all have;
        - `<name>_carried`: whether a few seeds carry the mean; `<name>_defined`: in how many seeds it is defined.

        Microseconds are a block's average: no intervals, no quartiles. A group with n < expected is a partial result
        and shows it. NaN stands for what is undefined, such as the interval of one seed.

    Raises:
        Misuse: no run there, or nothing that matches.

    Example:
        >>> import cbobench
        >>> frame = cbobench.summary("runs/quickstart", only="rkhs-1d/*")  # doctest: +SKIP
        >>> frame[["algorithm_label", "n", "regret_median", "regret_q25", "regret_q75"]]  # doctest: +SKIP
    """
    found, shown = gathered(opened(run), only, by, target)
    return summarised(found, shown)


def gathered(run: Run, only: str | None, by: str, target: float | None) -> tuple[list[Group], list[Quantity]]:
    """The groups of a run, and every quantity that they hold; with a target, the rounds to it are one."""
    if by not in ("problem", "algorithm", "binds"):
        raise unknown("order", by, ("problem", "algorithm", "binds"))
    found, shown = groups(run, only, by), [*quantities().values()]
    if target is not None:
        reach(run, found, target)
        shown.insert(1, rounds_to(target))
    return found, shown


def summarised(found: list[Group], shown: list[Quantity]) -> pd.DataFrame:
    """One row per group with the statistics of some quantities (see `summary`)."""
    rows = []
    for group in found:
        row: dict[str, Any] = {
            "problem": group.problem,
            "algorithm": group.algorithm,
            "problem_label": group.problem_label,
            "algorithm_label": group.algorithm_label,
            "horizon": group.horizon,
            "n": len(group.good),
            "expected": group.expected,
            "failed": group.failed,
            "stale": group.stale,
            "unchecked": group.unchecked,
        }
        binds = group.good.get("binds", pd.Series(dtype=bool)).dropna()
        row |= {"binds": int(binds.sum()), "binds_known": len(binds)}
        for quantity in shown:
            some = statistics(quantity, quantity.of(group.good))
            row[quantity.name] = some.pop("mean")
            row |= {f"{quantity.name}_{name}": value for name, value in some.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def statistics(quantity: Quantity, values: Array) -> dict[str, Any]:
    """The `STATISTICS` of one quantity over seeds, (n,), by name; nothing of them is outside its bounds."""
    defined, ordered = values[~np.isnan(values)], quantity.filled(values)  # these two differ where it is censored
    result: dict[str, Any] = dict.fromkeys(STATISTICS, np.nan)
    result |= {"carried": carried(defined), "defined": len(defined)}
    if len(defined):
        q25, median, q75 = np.quantile(ordered, [0.25, 0.5, 0.75])
        result |= {"mean": defined.mean(), "median": unfilled(float(median))}
    if len(defined) and not quantity.shared:
        low, high = interval(defined, "mean", bounds=quantity.bounds)
        result |= {"low": float(low), "high": float(high)}
        low, high = interval(ordered, "median")
        found = {"median_low": low, "median_high": high, "q25": q25, "q75": q75}
        # between a value and FAR there is no half: where half of the seeds have none, there is no finite median
        result |= {name: unfilled(float(value)) for name, value in found.items()}
    return result


def around_medians(counts: Iterable[int]) -> str:
    """What stands around medians over so many seeds each: an interval, or their range and what it attains."""
    several = {n for n in counts if n > 1}
    few = ", ".join(f"{100 * attained(n):.3g} % for {n}" for n in sorted(several, reverse=True) if n < SURE)
    if not few:
        return "95 % interval"
    return f"95 % interval, or range below {SURE} seeds: {few}" if max(several) >= SURE else f"range: {few} seeds"
