"""Results of the seeds of a run: means, medians, intervals and quartiles, as a frame and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import unknown
from cbobench.metrics import METRICS, Array, Metric
from cbobench.report.formats import BEST, CARRIED, MEAN, SECOND, UNJUDGED, Best, Marked, TextTable
from cbobench.report.groups import Group, count_binding, find_groups, group_by_arena, select_horizon
from cbobench.report.load import Run, RunLike, open_run
from cbobench.report.numbers import describe_median_interval, find_gap, format_beside, format_interval, format_number
from cbobench.report.paired import describe_need, mark_best
from cbobench.report.quantities import (
    MOVING,
    add_rounds_to_target,
    fill_unreached,
    find_lack,
    quantities,
    restore_infinite,
    rounds_to_target,
)
from cbobench.stats.intervals import JUDGED, interval, is_carried_by_few

ABOUT = "median [{around}] over seeds"
ONE = "the value of one seed, which has no interval"
MARKED = f"{BEST}; * no method is significantly better (Wilcoxon, Holm, 5 %)"
NEVER = "k/n: k seeds got there, in medians the others are worst"
DOUBTS = {
    "stale": "stale: played by code that has changed since; cbobench verify RUN --replay 3 plays some cells again and "
    "compares them, cbobench run SUITE --again stale plays all of them again",
    "unchecked": "unchecked: it is not known whether the code has changed since, as it is not imported; add --imports",
}
"""What the count of a row says of its cells, and how to clear it."""
STATISTICS = ("mean", "low", "high", "median", "median_low", "median_high", "q25", "q75", "carried", "defined")


def summary(
    run: RunLike,
    *,
    only: str | None = None,
    by: str = "problem",
    target: float | None = None,
    horizon: int | str | None = None,
) -> pd.DataFrame:
    """Results of the seeds of every (problem, algorithm, horizon).

    Args:
        run: an open run, a path or URI, or what `cbobench.run` returned.
        only: a glob over "problem/algorithm", by title, name or label.
        by: "problem" or "algorithm" for the order of rows, "binds" for two rows where the constraint binds in some
            seeds only.
        target: of simple regret; adds the first recorded round at which it was reached, `rounds_to_target`.
        horizon: T; by default the latest of each problem of which a cell is good, "all" for every one.

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
    opened = open_run(run)
    groups, table_quantities = select_groups(opened, only, by, target)
    groups = select_horizon(opened if only is None else opened.only(only), groups, horizon)
    return summarise_groups(groups, table_quantities)


def select_groups(run: Run, only: str | None, by: str, target: float | None) -> tuple[list[Group], list[Metric]]:
    """The groups of a run, and every quantity that they hold; with a target, the rounds to it are one."""
    if by not in ("problem", "algorithm", "binds"):
        raise unknown("order", by, ("problem", "algorithm", "binds"))
    groups, table_quantities = find_groups(run, only, by), [*quantities().values()]
    if target is not None:
        groups = add_rounds_to_target(run, groups, target)
        table_quantities.insert(1, rounds_to_target(target))
    return groups, table_quantities


def summarise_groups(groups: list[Group], table_quantities: list[Metric]) -> pd.DataFrame:
    """One row per group with the statistics of some quantities (see `summary`)."""
    rows = []
    columns = {q.name: statistics(q, [group.values(q) for group in groups]) for q in table_quantities}
    for position, group in enumerate(groups):
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
        for name, column in columns.items():
            row[name] = column[position].pop("mean")
            row |= {f"{name}_{word}": value for word, value in column[position].items()}
        rows.append(row)
    return pd.DataFrame(rows)


def statistics(quantity: Metric, samples: Sequence[Array]) -> list[dict[str, Any]]:
    """The `STATISTICS` of one quantity over the seeds of each sample, (n,), by name; nothing is outside its bounds.

    Samples of as many values are computed together; no number of one depends on another.
    """
    result = [dict.fromkeys(STATISTICS, np.nan) | {"carried": False, "defined": 0} for _ in samples]
    value_pairs = [(values[~np.isnan(values)], fill_unreached(values, quantity)) for values in samples]
    alike: dict[tuple[int, int], list[int]] = {}
    for i, (defined_values, sortable) in enumerate(value_pairs):
        if len(defined_values):
            # The two lengths differ where the quantity is censored.
            alike.setdefault((len(defined_values), len(sortable)), []).append(i)
    for positions in alike.values():
        defined, ordered = (np.stack([value_pairs[i][which] for i in positions]) for which in (0, 1))
        q25, median, q75 = np.quantile(ordered, [0.25, 0.5, 0.75], axis=1)
        mean_columns, median_columns = {"mean": defined.mean(axis=1)}, {"median": median}
        if not quantity.shared:
            bounds = quantity.least, quantity.most
            mean_columns["low"], mean_columns["high"] = interval(defined, "mean", axis=1, bounds=bounds)
            low, high = interval(ordered, "median", axis=1)
            median_columns |= {"median_low": low, "median_high": high, "q25": q25, "q75": q75}
        for k, i in enumerate(positions):
            result[i] |= {name: float(column[k]) for name, column in mean_columns.items()}
            # between a value and UNREACHED there is no half: where half of the seeds have none, no median is finite
            result[i] |= {name: restore_infinite(float(column[k])) for name, column in median_columns.items()}
            result[i] |= {"carried": is_carried_by_few(defined[k]), "defined": len(defined[k])}
    return result


@dataclass(frozen=True)
class SummaryLook:
    """How the table of results is made.

    Attributes:
        named: whether its metrics were asked for, so that none is left out.
        by: the order of rows.
        marked: whether the best are marked.
    """

    named: bool
    by: str = "problem"
    marked: bool = True


def tabulate_summary(
    title: str,
    groups: list[Group],
    frame: pd.DataFrame,
    table_quantities: list[Metric],
    main: list[Metric],
    look: SummaryLook,
) -> TextTable:
    """The default table of `table_quantities`; in a narrow terminal `main` stays longest."""
    named, by = look.named, look.by
    notes, absent = list[str](), list[str]()
    problems = [group.problem_label for group in groups]
    if by != "binds" and (binds := count_binding(groups)):
        counts_of = [binds.get(group.arena) for group in groups]
        # Without an optimum it is not known whether the constraint binds.
        binding_notes = ["" if count is None else f"binds in {count[0]}/{count[1]}" for count in counts_of]
        if len(set(binding_notes)) == 1:
            absent.append(f"the constraint {binding_notes[0]} seeds: there the best action is infeasible")
        else:
            named_notes = zip(problems, binding_notes, strict=True)
            problems = [f"{name} ({note})" if note else name for name, note in named_notes]
            notes.append("binds: seeds in which the best action is infeasible (--by binds sets them apart)")
    first = [("problem", problems), ("algorithm", [group.algorithm_label for group in groups])]
    if by == "algorithm":
        first.reverse()
    if len({g.horizon for g in groups}) > 1:
        first.append(("T", [f"{g.horizon:,}" for g in groups]))
    counts = [g.count for g in groups]
    if len(set(counts)) == 1:
        title += f", n = {counts[0]}"
    else:
        first.append(("n", counts))
    single = max((len(group.good) for group in groups), default=0) == 1  # neither a mean nor an interval says anything
    columns: list[tuple[str, list[str], int]] = [(name, cells, 0) for name, cells in first]
    marks = mark_best(groups, table_quantities if look.marked else [])
    lacking = {
        (arena_groups[0].arena, q.name)
        for arena_groups in group_by_arena(groups)
        for q in table_quantities
        if find_lack(arena_groups, q)
    }
    before: list[tuple[Metric, Any]] = []
    brief = list[int]()
    rows = [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]
    for position, quantity in enumerate(table_quantities):
        medians, means = frame[f"{quantity.name}_median"].to_numpy(), frame[quantity.name].to_numpy()
        twin = next((q for q, old in before if np.array_equal(old, [medians, means], equal_nan=True)), None)
        if not named and (why := _explain_omission(quantity, medians, means, twin, groups)):
            absent.append(why)
            continue
        before.append((quantity, [medians, means]))
        marks_of = (marks.best.get(quantity.name, ()), Best), (marks.unbeaten.get(quantity.name, ()), Marked)
        gaps = _find_gaps(problems, medians)
        cells = [
            "–" if (group.arena, quantity.name) in lacking else _format_median(row, quantity, gap)
            for group, row, gap in zip(groups, rows, gaps, strict=True)
        ]
        cells = [next((mark(cell) for rows_of, mark in marks_of if i in rows_of), cell) for i, cell in enumerate(cells)]
        late = 0 if quantity in main else 2 * SECOND
        # Regret without violations misleads: their number stays second longest.
        place = 1 if quantity.name == "violations" and not named else 2 * position
        if quantity in main:
            brief.insert(0, len(columns))
        columns.append((quantity.symbol, cells, late + place))
        if quantity.better is not None and not single:
            cells = [_format_mean(row, quantity, gap) for row, gap in zip(rows, gaps, strict=True)]
            columns.append((quantity.symbol + MEAN, cells, late + SECOND + 2 * position))
    counted = {n for quantity, _ in before for n in frame["n" if quantity.censored else f"{quantity.name}_defined"]}
    notes.insert(0, ONE if single else ABOUT.format(around=describe_median_interval(counted)))
    if any(marks.unbeaten.values()):
        blocks = marks.blocks
        notes.append(MARKED + (f" on the seeds that both have, at least {blocks[0]}/{blocks[1]}" if blocks else ""))
    if marks.undecidable and not single:
        notes.append(f"too few seeds to mark who is best: {describe_need(marks.undecidable, 'of a method', sides=1)}")
    if any("†" in cell for _, cells, _ in columns for cell in cells):
        notes.append(CARRIED)
    elif not single and max(counted, default=0) < JUDGED and any(name.endswith(MEAN) for name, _, _ in columns):
        notes.append(UNJUDGED)
    censored = {quantity.symbol for quantity in table_quantities if quantity.censored}
    if any("/" in cell for name, cells, _ in columns if name in censored for cell in cells):
        notes.append(NEVER)
    if 1 in {len(g.good) for g in groups} and not single:
        notes.append("one seed has no interval")
    if not any(len(g.good) for g in groups):
        state = "no cell is good, some failed" if any(g.failures for g in groups) else "no cell is done yet"
        notes, absent = [f"{state}; see cbobench status"], []
    note = "; ".join(notes) + (f"\nleft out: {'; '.join(absent)}" if absent else "")
    note += "".join(f"\n{line}" for word, line in DOUBTS.items() if any(f" {word}" in count for count in counts))
    names, texts, weights = zip(*columns, strict=True)
    return TextTable(names, list(zip(*texts, strict=True)), title, note, left=2, weights=weights, brief=brief[:-1])


def _explain_omission(
    quantity: Metric, medians: Any, means: Any, twin: Metric | None, groups: list[Group]
) -> str | None:
    """Why a column tells nothing: it is empty, the same in all rows, or the same as another."""
    if quantity.relative and np.isnan(means).all() and all(group.unmeasured for group in groups):
        return f"{quantity.symbol} (no optimum is known)"
    if np.isnan(means).all():
        if all(find_lack(arena_groups, quantity) == MOVING for arena_groups in group_by_arena(groups)):
            return f"{quantity.symbol} (functions move)"
        return f"{quantity.symbol} ({'no seed got there' if quantity.censored and quantity.is_count else 'undefined'})"
    if len(groups) > 1 and len(set(means)) == 1 and len(set(medians)) == 1:
        if quantity.name == "violation" and any(
            (group.values(METRICS["violation_hard"]) > 0).any() for group in groups
        ):
            return f"{quantity.symbol} ({format_number(means[0])} everywhere, as slack in other rounds makes up for V⁺)"
        return f"{quantity.symbol} ({format_number(means[0], quantity.is_count)} everywhere)"
    if twin is not None:
        return f"{quantity.symbol} (equals {twin.symbol})"
    return None


def _find_gaps(problems: Sequence[str], values: Any) -> list[float]:
    """Of each row, the smallest difference between values of its problem, which digits have to show."""
    gaps = {name: find_gap(v for p, v in zip(problems, values, strict=True) if p == name) for name in {*problems}}
    return [gaps[name] for name in problems]


def _format_median(row: dict[str, Any], quantity: Metric, gap: float) -> str:
    """median [low, high], and in how many seeds it is defined where that is not all."""
    name = quantity.name
    if quantity.better is None:
        value = row[f"{name}_median"]
        return f"{100 * value:.1f} %" if quantity.most == 1.0 and value == value else format_number(value)
    if quantity.censored and row["n"] and not row[f"{name}_defined"]:
        # The same sign as where half of the seeds never got there; the frame's NaN tells the two apart.
        return format_number(-quantity.sign * np.inf) + _count_defined(row, quantity)
    return format_interval(*_read_interval(row, name), quantity.is_count, gap) + _count_defined(row, quantity)


def _format_mean(row: dict[str, Any], quantity: Metric, gap: float) -> str:
    """The mean in the digits of the median, with its mark, and of how many seeds it is where that is not all."""
    mean = format_beside(row[quantity.name], *_read_interval(row, quantity.name), quantity.is_count, gap)
    count = _count_defined(row, quantity) if row[f"{quantity.name}_defined"] else ""
    return mean + ("†" if row[f"{quantity.name}_carried"] else "") + count


def _count_defined(row: dict[str, Any], quantity: Metric) -> str:
    """In how many seeds a quantity is defined, of how many, where that is not all."""
    defined = row[f"{quantity.name}_defined"]
    if defined == row["n"] or not row["n"] or not (defined or quantity.censored):
        return ""
    return f" {defined}/{row['n']}"


def _read_interval(row: dict[str, Any], name: str) -> tuple[float, float, float]:
    return row[f"{name}_median"], row[f"{name}_median_low"], row[f"{name}_median_high"]
