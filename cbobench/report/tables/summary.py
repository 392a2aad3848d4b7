"""Results of the seeds of a run: means, medians, intervals and quartiles, as a frame and as a
table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cbobench.metrics import Array, Metric
from cbobench.report.groups import Group, gather
from cbobench.report.load import RunLike
from cbobench.report.notes import collect_notes
from cbobench.report.quantities import fill_unreached, restore_infinite
from cbobench.report.selection import Selection
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.paired import (
    BestMarks,
    describe_need,
    describe_winners,
    mark_best,
    select_paired,
)
from cbobench.report.tables.table import (
    BEST,
    TextTable,
    describe_median_interval,
    find_gap,
    format_interval,
    format_number,
    mark_cell,
)
from cbobench.stats.intervals import interval
from cbobench.words import count_noun

ABOUT = "median [{around}] over seeds"
ONE = "the value of one seed, which has no interval"
MARKED = f"{BEST}; * no method is significantly better (Wilcoxon, Holm, 5 %)"
NEVER = "k/n: k of n seeds got there, the others count as worst"
DOUBTS = {
    "stale": "stale: played by code that has changed since; cbobench verify RUN --replay 3 "
    "plays some "
    "cells again and "
    "compares them, cbobench run SUITE --again stale plays all of them again",
    "unchecked": (
        "unchecked: it is not known whether the code has changed since, as it is not imported; "
        "add --imports"
    ),
}
"""What the count of a row says of its cells, and how to clear it."""
KEYS = (
    *("problem", "algorithm", "problem_label", "algorithm_label", "horizon"),
    *("n", "expected", "failed", "stale", "unchecked"),
)
"""What a frame says of a group beside its numbers."""
STATISTICS = (
    "mean",
    "low",
    "high",
    "median",
    "median_low",
    "median_high",
    "q25",
    "q75",
    "defined",
)


def summary(
    run: RunLike,
    *,
    only: str | None = None,
    target: float | None = None,
    horizon: int | str | None = None,
) -> pd.DataFrame:
    """Results of the seeds of every (problem, algorithm, horizon).

    Args:
        run: an open run, a path or URI, or what `cbobench.run` returned.
        only: a glob over "problem/algorithm", by title, name or label.
        target: of simple regret; adds the first recorded round at which it was reached,
            `rounds_to_target`.
        horizon: T; by default the latest of each problem of which a cell is good, "all" for every
            one.

    Returns:
        One row per group, in the suite's order, with `problem`, `algorithm` (titles), their labels,
        `horizon`, `n` (cells that are ok), `expected`, `failed`, `stale`, `unchecked` (stale or not
        is not known: no code is at hand), `binds` and `binds_known` (in how many seeds the
        constraint binds, of how many where that is known), and for every metric and what else a
        cell holds:

        - `<name>`: the mean over seeds where it is defined; `<name>_low`, `<name>_high`: its 95 %
          interval;
        - `<name>_median`, `<name>_median_low`, `<name>_median_high`: likewise, but with fewer than
          six seeds the range (which holds a median with 50, 75, 87.5, 93.75 % for 2, 3, 4, 5);
          `<name>_q25`, `<name>_q75`: quartiles. Of what a seed may never reach (simple regret,
          first feasible round, a target) these count such seeds as worse than any value: infinite
          where half of the seeds or more have none, NaN where all have;
        - `<name>_defined`: in how many seeds it is defined.

        Microseconds are a block's average: no intervals, no quartiles. A group with n < expected is
        a partial result and shows it. NaN stands for what is undefined, such as the interval of one
        seed.

    Raises:
        Misuse: no run there, or nothing that matches.

    Example:
        >>> import cbobench
        >>> frame = cbobench.summary("runs/quickstart", only="rkhs-1d/*")  # doctest: +SKIP
        >>> frame[["algorithm_label", "n", "regret_median", "regret_q25", "regret_q75"]]  # doctest: +SKIP
    """  # noqa: E501
    selection = Selection.of(run, only, horizon=horizon, target=target)
    return summarise_groups(selection.groups, selection.available)


def summarise_groups(groups: list[Group], table_quantities: list[Metric]) -> pd.DataFrame:
    """One row per group with the statistics of some quantities (see `summary`)."""
    columns = {name: [getattr(group, name) for group in groups] for name in KEYS}
    binds = [group.numbers("binds") for group in groups]
    columns["binds"] = [int(np.nansum(values)) for values in binds]
    columns["binds_known"] = [int((~np.isnan(values)).sum()) for values in binds]
    for quantity in table_quantities:
        rows = statistics(quantity, [group.values(quantity) for group in groups])
        for word in STATISTICS:
            name = quantity.name if word == "mean" else f"{quantity.name}_{word}"
            columns[name] = [row[word] for row in rows]
    return pd.DataFrame(columns)


def statistics(quantity: Metric, samples: Sequence[Array]) -> list[dict[str, Any]]:
    """The `STATISTICS` of one quantity over the seeds of each sample, (n,), by name; nothing is
    outside its bounds.

    Samples of as many values are computed together; no number of one depends on another.
    """
    result = [dict.fromkeys(STATISTICS, np.nan) | {"defined": 0} for _ in samples]
    pairs = [(values[~np.isnan(values)], fill_unreached(values, quantity)) for values in samples]
    # The two lengths differ where the quantity is censored.
    alike = gather((tuple(map(len, pair)), i) for i, pair in enumerate(pairs) if len(pair[0]))
    for positions in alike.values():
        defined, ordered = map(np.stack, zip(*(pairs[i] for i in positions), strict=True))
        q25, median, q75 = np.quantile(ordered, [0.25, 0.5, 0.75], axis=1)
        columns = {"mean": defined.mean(axis=1)}
        ordinals = {"median": median}
        if not quantity.shared:
            bounds = quantity.least, quantity.most
            columns["low"], columns["high"] = interval(defined, "mean", axis=1, bounds=bounds)
            low, high = interval(ordered, "median", axis=1)
            ordinals |= {"median_low": low, "median_high": high, "q25": q25, "q75": q75}
        # between a value and UNREACHED there is no half: where half of the seeds have none, no
        # median is finite
        columns |= {name: restore_infinite(ends) for name, ends in ordinals.items()}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        for i, row in zip(positions, rows, strict=True):
            result[i] |= dict(zip(columns, row, strict=True), defined=defined.shape[1])
    return result


def tabulate(selection: Selection) -> Comparison:
    """Every algorithm's results on every problem of a selection.

    The table has a column for each quantity that is shown, whatever its values are. Its note has
    up to three lines: what an entry is, who is best, what is the matter with these cells.
    """
    groups = selection.groups
    quantities = selection.columns
    frame = summarise_groups(groups, selection.available)
    # Methods that were set up unlike are listed, and not judged.
    is_fair = not (selection.setups and selection.is_union)
    marks = mark_best(groups if is_fair else [], quantities)
    columns = _tabulate_keys(groups)
    prefixes = ("n", *(quantity.name for quantity in quantities))
    rows = frame[[name for name in frame if str(name).startswith(prefixes)]].to_dict("records")
    brief = list[int]()
    has_lost = False
    for quantity in quantities:
        # Digits have to show the smallest difference between the values of a problem.
        gaps = frame.groupby("problem_label")[f"{quantity.name}_median"].transform(find_gap)
        brief.insert(0, len(columns))
        best = marks.best[quantity.name]
        unbeaten = marks.unbeaten[quantity.name]
        cells: list[str] = []
        columns[quantity.symbol] = cells
        for group, row, gap in zip(groups, rows, gaps, strict=True):
            if (group.arena, quantity.name) in selection.lacks:
                cells.append("–")
            else:
                has_lost |= quantity.censored and bool(_count_defined(row, quantity))
                text = _format_median(row, quantity, gap)
                cells.append(mark_cell(text, group in best, group in unbeaten))
    title = f"{selection.title}, n = {describe_count(groups)}{selection.units}"
    verdict = [describe_winners(selection) if is_fair else "", _describe_need(groups, marks)]
    doubts = [line for word, line in DOUBTS.items() if any(getattr(g, word) for g in groups)]
    lines = [
        _describe_entry(groups, frame, quantities, marks, has_lost),
        "; ".join(filter(None, verdict)),
        "; ".join([*doubts, *collect_notes(selection, select_paired(groups, None))]),
    ]
    table = TextTable(
        [*columns],
        list(zip(*columns.values(), strict=True)),
        title,
        "\n".join(filter(None, lines)),
        brief=brief,
    )
    return Comparison(frame, table, unplayable=selection.unplayable)


def count_seeds(groups: Sequence[Group]) -> str:
    """How many seeds are good, in words: 10 seeds, or 8 to 10 of 10 seeds."""
    good = {group.n for group in groups}
    expected = {group.expected for group in groups}
    ends = " to ".join(dict.fromkeys(f"{end:,}" for end in (min(good), max(good))))
    most = count_noun(max(expected), "seed")
    if good == expected:
        return most
    return f"{ends} of {most}"


def describe_count(groups: Sequence[Group]) -> str:
    """How many cells are good, of how many: of all groups, or of the one with the least and the one
    with the most.
    """
    if len({group.count for group in groups}) == 1:
        return groups[0].count
    ordered = sorted((group.n, group.expected) for group in groups)
    ends = (f"{n}/{expected}" for n, expected in (ordered[0], ordered[-1]))
    return " to ".join(dict.fromkeys(ends))


def _tabulate_keys(groups: Sequence[Group]) -> dict[str, list[str]]:
    """The columns that say what a row is of: T where there are several, and n where it differs."""
    words = ("problem", "algorithm")
    keys = {word: [getattr(group, f"{word}_label") for group in groups] for word in words}
    others = {"T": [f"{g.horizon:,}" for g in groups], "n": [g.count for g in groups]}
    return keys | {name: column for name, column in others.items() if len({*column}) > 1}


def _describe_entry(
    groups: Sequence[Group],
    frame: pd.DataFrame,
    table_quantities: Sequence[Metric],
    marks: BestMarks,
    has_lost: bool,
) -> str:
    """What an entry is, and what its marks mean."""
    counts = {group.n for group in groups}
    if not any(counts):
        some_failed = any(group.failures for group in groups)
        state = "no cell is good, some failed" if some_failed else "no cell is done yet"
        return f"{state}; see cbobench status"
    counted = {
        n for q in table_quantities for n in frame["n" if q.censored else f"{q.name}_defined"]
    }
    parts = [ONE if max(counts) == 1 else ABOUT.format(around=describe_median_interval(counted))]
    if any(marks.unbeaten.values()):
        parts.append(MARKED)
    if has_lost:
        parts.append(NEVER)
    if 1 in counts and max(counts) > 1:
        parts.append("one seed has no interval")
    return "; ".join(parts)


def _describe_need(groups: Sequence[Group], marks: BestMarks) -> str:
    """Why there are no marks; "" where there are, or where one seed is no sample."""
    has_several = max((group.n for group in groups), default=0) > 1
    if not marks.undecidable or not has_several:
        return ""
    need = describe_need(marks.undecidable, "of a method", sides=1)
    return f"too few seeds to mark who is best: {need}"


def _format_median(row: Mapping[Any, Any], quantity: Metric, gap: float) -> str:
    """median [low, high], and in how many seeds it is defined where that is not all."""
    ends = _read_interval(row, quantity.name)
    if quantity.better is None:
        is_share = quantity.most == 1.0 and not np.isnan(ends[0])
        if is_share:
            return f"{100 * ends[0]:.1f} %"
        return format_number(ends[0])
    if quantity.censored and row["n"] and not row[f"{quantity.name}_defined"]:
        # The same sign as where half of the seeds never got there; the frame's NaN tells the two
        # apart.
        ends = (-quantity.sign * np.inf, np.inf, np.inf)
    return format_interval(*ends, quantity.is_count, gap) + _count_defined(row, quantity)


def _count_defined(row: Mapping[Any, Any], quantity: Metric) -> str:
    """In how many seeds a quantity is defined, of how many, where that is not all."""
    defined = row[f"{quantity.name}_defined"]
    if defined == row["n"] or not row["n"] or not (defined or quantity.censored):
        return ""
    return f" {defined}/{row['n']}"


def _read_interval(row: Mapping[Any, Any], name: str) -> tuple[float, float, float]:
    return row[f"{name}_median"], row[f"{name}_median_low"], row[f"{name}_median_high"]
