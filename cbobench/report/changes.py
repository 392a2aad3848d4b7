"""Two runs, such as of two commits: what became better or worse, fails now, or fails no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbobench.errors import Misuse, show
from cbobench.metrics import Metric
from cbobench.report.formats import Comparison
from cbobench.report.groups import (
    Group,
    find_groups,
    group_by,
    select_horizon,
    select_latest,
    take_values,
)
from cbobench.report.load import Run
from cbobench.report.notes import describe_arithmetic
from cbobench.report.numbers import (
    describe_median_interval,
    find_gap,
    format_interval,
    format_number,
)
from cbobench.report.paired import format_p, pool_problems
from cbobench.report.paired import pair_difference as difference
from cbobench.report.quantities import fill_unreached, restore_infinite
from cbobench.report.selection import Selection
from cbobench.report.setups import compare_setups
from cbobench.report.text_table import TextTable
from cbobench.stats.paired_tests import SIGNIFICANT, choose_family, count_needed, holm
from cbobench.words import count_noun

CHANGED = ("better", "worse", "newly failing", "fixed", "missing")
COUNTS = ("horizon", "n", "expected", "defined", "wins", "ties", "losses")
NOTE = (
    "after - before, paired by seed: median [{around}]; n: seeds that both have; better and "
    "worse: Wilcoxon's "
    "signed-rank test, Holm over all rows of which enough seeds differ, 5 %; all problems: their "
    "ranks summed; w/t/l: "
    "seeds that are better, equal, worse"
)


def compare_runs(selection: Selection, after: Run, only_changed: bool, factor: float) -> Comparison:
    """What changed from one run to another.

    Args:
        selection: of the run before; with its "all" horizons each is a family of tests.
        only_changed: leave out rows that are neither better, worse, newly failing nor fixed.
        factor: at least 1: medians that differ by less are no change.

    Returns:
        One row per problem, algorithm and quantity, or failure, with its `verdict`, and one per
        algorithm and quantity over all its problems.
    """
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor < np.inf:
        raise Misuse(f"factor is {show(factor)}; it must be a number of at least 1")
    before, horizon = selection.run, selection.horizon
    every_group = [find_groups(run, selection.only) for run in (before, after)]
    held = every_group
    if horizon is not None:
        selected_ids = {
            id(group) for group in select_horizon(before, [*held[0], *held[1]], horizon)
        }
        held = [[group for group in groups if id(group) in selected_ids] for groups in held]
    latest = (
        {}
        if horizon
        else {group.problem: group.horizon for group in select_latest(selection.part, held[0])}
    )
    rows = _compare_pairs(before, after, held, selection.shown, latest)
    # Each horizon is a family of its own: else tests of one would weaken those of another.
    compared = list(dict.fromkeys(row["horizon"] for row in rows))
    families = (
        [rows]
        if horizon is None
        else [[row for row in rows if row["horizon"] == t] for t in compared]
    )
    families = [judge_rows(family, float(factor)) for family in families]
    undecided = "; ".join(
        dict.fromkeys(line for family in families if (line := _describe_undecided(family)))
    )
    frame = pd.DataFrame([row for family in families for row in family])
    worse = bool(frame["verdict"].isin(["worse", "newly failing", "missing"]).any())
    is_incomparable = frame["verdict"].isin(["missing", "not comparable"]).all()
    reasons = Counter(frame["reason"]) if is_incomparable else {}
    hidden = frame[~frame["verdict"].isin(CHANGED)] if only_changed else frame.iloc[:0]
    frame = frame.drop(hidden.index).reset_index(drop=True)
    title = f"{before.record.suite}: {before} -> {after}"
    table = _tabulate_changes(frame, selection.shown, title, Counter(hidden["verdict"]), undecided)
    table = table.with_note(_describe_earlier(before, held, latest, rows))
    table = table.with_note(
        describe_arithmetic(group for groups in every_group for group in groups)
    )
    incomparable = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
    # Some rows have no counts: without this they would be 8.0.
    frame = frame.astype(dict.fromkeys([name for name in COUNTS if name in frame], "Int64"))
    return Comparison(frame, table, worse, incomparable, undecided)


def _describe_earlier(
    before: Run, held: list[list[Group]], latest: Mapping[str, int], rows: list[dict[str, Any]]
) -> list[str]:
    """The horizons with good cells of which nothing is compared, as they are not the latest."""
    compared = {(row["problem"], row["algorithm"], row["horizon"]) for row in rows}
    earlier = [
        g
        for groups in held
        for g in groups
        if g.n and g.horizon != latest.get(g.problem, g.horizon)
    ]
    absent = {g.horizon for g in earlier if (g.problem, g.algorithm, g.horizon) not in compared}
    horizons = ", ".join(f"{t:,}" for t in sorted(absent))
    return [
        f"not compared: T = {horizons}, as it is not the latest of {before} (horizon chooses)"
    ] * bool(absent)


def _compare_pairs(
    before: Run,
    after: Run,
    held: Sequence[list[Group]],
    quantities: list[Metric],
    latest: Mapping[str, int],
) -> list[dict[str, Any]]:
    """The rows of every pair, without verdicts on tests.

    Args:
        held: the groups before, and after.
        latest: by problem, the only horizon that is compared; of pairs that were not asked for it
            before, all are.
    """
    old, new = (group_by(groups, "problem", "algorithm") for groups in held)
    rows: list[dict[str, Any]] = []
    for key in dict.fromkeys([*old, *new]):
        pair_groups = old.get(key, []), new.get(key, [])
        sample = (pair_groups[0] or pair_groups[1])[0]
        row = {
            "problem": sample.problem,
            "problem_label": sample.problem_label,
            "horizon": sample.horizon,
        }
        row |= {"algorithm": sample.algorithm, "algorithm_label": sample.algorithm_label}
        reason = _explain_incomparable(before, after, *pair_groups)
        if reason:
            verdict = "not comparable" if pair_groups[1] else "missing"
            rows.append(row | {"metric": None, "verdict": verdict, "reason": reason})
            continue
        old_by_horizon, new_by_horizon = (
            {group.horizon: group for group in groups} for groups in pair_groups
        )
        only = latest.get(sample.problem)
        for horizon in (
            [only] if only in old_by_horizon else dict.fromkeys([*old_by_horizon, *new_by_horizon])
        ):
            key_row = row | {"horizon": horizon}
            if horizon in old_by_horizon and horizon in new_by_horizon:
                rows += _compare_cells(
                    key_row, old_by_horizon[horizon], new_by_horizon[horizon], quantities
                )
            else:
                is_missing = horizon in old_by_horizon
                verdict, reason = (
                    ("missing", "only before") if is_missing else ("not comparable", "only after")
                )
                rows.append(key_row | {"metric": None, "verdict": verdict, "reason": reason})
    return rows


def _explain_incomparable(
    before: Run, after: Run, old: list[Group], new: list[Group]
) -> str | None:
    """Why nothing of a pair can be compared."""
    if not old or not new:
        return "only after" if not old else "only before"
    horizons = [", ".join(str(group.horizon) for group in groups) for groups in (old, new)]
    if not {group.horizon for group in old} & {group.horizon for group in new}:
        return f"T = {horizons[0]} and {horizons[1]}"
    old_values, new_values = (
        run.record.variants("problems")[old[0].problem].values for run in (before, after)
    )
    differing = [
        f"{name}={old_values[name]} and {new_values[name]}"
        for name in old_values
        if name in new_values and old_values[name] != new_values[name]
    ]
    if differing:
        return f"other problem: {', '.join(differing)}"
    algorithms = (run.record.variants("algorithms")[old[0].algorithm] for run in (before, after))
    return compare_setups(*algorithms) or None


def _compare_cells(
    row: dict[str, Any], old: Group, new: Group, quantities: list[Metric]
) -> list[dict[str, Any]]:
    """The rows of one problem, algorithm and horizon."""
    rows: list[dict[str, Any]] = []
    for verdict, failing, passing in (("newly failing", new, old), ("fixed", old, new)):
        seeds = sorted(failing.failures & set(passing.good.index))
        if seeds:
            seed_list = ", ".join(map(str, seeds[:5])) + (", ..." if len(seeds) > 5 else "")
            word = "seed" if len(seeds) == 1 else "seeds"
            rows.append(
                row | {"verdict": verdict, "reason": f"{word} {seed_list}", "n": len(seeds)}
            )
    common = old.good.index.intersection(new.good.index)
    if not len(common):
        return rows or [row | {"verdict": "not comparable", "reason": "no common seed"}]
    for quantity in quantities:
        expected = max(old.expected, new.expected)
        quantity_row = row | {"metric": quantity.name, "expected": expected}
        values = [take_values(group.good.loc[common], quantity.name) for group in (old, new)]
        if not any(np.isfinite(seed_values).any() for seed_values in values):
            rows.append(quantity_row | {"verdict": "not comparable", "reason": "undefined in both"})
            continue
        ordered = [fill_unreached(seed_values, quantity) for seed_values in values]
        medians = [
            float(restore_infinite(np.median(part))) if len(part) else np.nan for part in ordered
        ]
        statistics = difference(new, old, quantity)
        if statistics["n"] == 0:
            rows.append(
                quantity_row
                | {"verdict": "not comparable", "reason": "no seed in which both are defined"}
            )
            continue
        rows.append(quantity_row | {"before": medians[0], "after": medians[1], **statistics})
    return rows


def judge_rows(rows: list[dict[str, Any]], factor: float) -> list[dict[str, Any]]:
    """The rows with verdicts, and those over all problems.

    Args:
        rows: those with a test hold `apart`, the differences by seed (positive is better), which is
            taken out.
        factor: medians that differ by less are no change.
    """
    tests = [row for row in rows if "apart" in row]
    rows = [*rows, *pool_problems(row for row in tests if row["apart"].any())]
    _give_verdicts([row for row in rows if "p" in row], factor)
    for row in tests:
        del row["apart"]
    return rows


def _give_verdicts(rows: list[dict[str, Any]], factor: float) -> None:
    """Verdicts of the rows that have a test: one family of all metrics, as one of them is enough to
    close the gate.

    What is identical is no test. A row of which too few seeds differ is none either. It is
    undecided if it had been none had all its seeds differed; else its ties are why, and equal seeds
    are no change.
    """
    for row in rows:
        row |= {"verdict": "identical", "p_holm": np.nan}
    tests = [row for row in rows if row["wins"] + row["losses"]]
    differing = np.array([row["wins"] + row["losses"] for row in tests], dtype=np.int64)
    family = choose_family(differing)
    adjusted = np.full(len(tests), np.nan)
    adjusted[family] = holm(np.array([row["p"] for row in tests])[family])
    for position, (row, p) in enumerate(zip(tests, adjusted, strict=True)):
        row["p_holm"] = float(p)
        parts = row.pop("parts", [row])
        beyond = [
            part["effect"]
            for part in parts
            if not _is_within(part["before"], part["after"], factor)
        ]
        if not p < SIGNIFICANT or row["effect"] == 0:  # NaN: not in the family
            is_decidable = family[position] or _is_testable_if_all_differ(
                differing, position, row["n"]
            )
            row["verdict"] = "undecided" if beyond and not is_decidable else "not significant"
        elif any(effect * row["effect"] > 0 for effect in beyond):
            row["verdict"] = "better" if row["effect"] > 0 else "worse"
        else:
            row["verdict"], row["reason"] = "not significant", f"within a factor of {factor:g}"


def _is_testable_if_all_differ(differing: NDArray[np.int64], position: int, n: int) -> bool:
    """Whether one row would be in the family of rows with so many differences, (k,), had all its n
    seeds differed.
    """
    counts = differing.copy()
    counts[position] = n
    return bool(choose_family(counts)[position])


def _describe_undecided(family: list[dict[str, Any]]) -> str:
    """What the seeds are too few for, and how many would do; empty where there is no such row."""
    frame = pd.DataFrame(family)
    rows = frame[frame["verdict"] == "undecided"]
    if rows.empty:
        return ""
    tests = int((frame["wins"] + frame["losses"] > 0).sum())
    need = count_needed(tests)
    return (
        f"{count_noun(len(rows), 'row')} cannot be decided: of {count_noun(tests, 'row')} that "
        "changed none comes out "
        f"with fewer than {need} seeds, and there are as few as {int(rows['n'].min())}; take "
        "more seeds, or --only, "
        "--metric or --factor"
    )


def _is_within(before: float, after: float, factor: float) -> bool:
    """Whether two medians differ by no more than a factor; what changes its sign, or leaves 0,
    differs by any.
    """
    if factor <= 1 or not (np.isfinite(before) and np.isfinite(after)):
        return False
    return before == after or (before * after > 0 and max(before / after, after / before) <= factor)


def _tabulate_changes(
    frame: pd.DataFrame,
    quantities: list[Metric],
    title: str,
    hidden: Mapping[str, int],
    undecided: str,
) -> TextTable:
    symbols = {quantity.name: quantity for quantity in quantities}
    several = len(frame) > 0 and frame["horizon"].nunique() > 1
    columns = ["problem", "algorithm", *(["T"] if several else []), "metric", "verdict", "n"]
    columns += ["before", "after", "median difference", "p (Holm)", "w/t/l"]
    rows, tested = [], set[int]()
    for row in frame.to_dict("records"):
        quantity = symbols.get(row.get("metric") or "")
        reason = row.get("reason")
        verdict = row["verdict"] + (f" ({reason})" if isinstance(reason, str) else "")
        n = row.get("n", np.nan)
        cells = [
            row["problem_label"],
            row["algorithm_label"],
            *([format_number(row["horizon"], is_count=True)] if several else []),
        ]
        cells += [quantity.symbol if quantity else "–", verdict]
        if quantity is not None and not np.isnan(row.get("p", np.nan)):
            tested |= {int(n)}
            text = format_interval(
                *(row.get(name, np.nan) for name in ("median", "median_low", "median_high"))
            )
            counts = f"{row['wins']:.0f}/{row['ties']:.0f}/{row['losses']:.0f}"
            ends = [row.get(name, np.nan) for name in ("before", "after")]
            ends = [format_number(end, quantity.is_count, find_gap(ends)) for end in ends]
            cells += [
                f"{n:.0f}/{row['expected']:.0f}",
                *ends,
                text,
                format_p(row["p_holm"]),
                counts,
            ]
        else:
            cells += ["–" if np.isnan(n) else f"{n:.0f}", *["–"] * 5]
        rows.append(cells)
    hidden_counts = ", ".join(f"{count} {verdict}" for verdict, count in hidden.items())
    note = NOTE.format(around=describe_median_interval(tested))
    note += f"\nnot shown: {hidden_counts}" if hidden_counts else ""
    if not rows:
        no_change = (
            "nothing that can be compared changed"
            if "not comparable" in hidden
            else "nothing changed"
        )
        note = (
            no_change
            if set(hidden) <= {"identical", "not comparable"}
            else "no change is significant"
        )
        note += f"; not shown: {hidden_counts}" if hidden_counts else ""
    note += f"\n{undecided}" if undecided else ""
    left = 5 if several else 4
    weights = [0] * (left + 1) + [2, 2, 1, 4, 3]
    return TextTable(columns, rows, title, note, left=left, weights=weights)
