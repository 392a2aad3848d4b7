"""Two runs, such as of two commits: what became better or worse, fails now, or fails no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse, show
from cbobench.metrics import Metric
from cbobench.report.groups import Group, find_groups, gather, group_by, select_horizon
from cbobench.report.load import Run
from cbobench.report.quantities import fill_unreached, restore_infinite
from cbobench.report.selection import Selection
from cbobench.report.setups import compare_setups, describe_arithmetic, describe_horizons
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.paired import MEDIANS, format_p, pair_difference
from cbobench.report.tables.table import (
    TextTable,
    describe_median_interval,
    find_gap,
    format_interval,
    format_number,
)
from cbobench.stats.paired_tests import SIGNIFICANT, choose_family, count_needed, holm, signed_rank
from cbobench.words import count_noun

CHANGED = ("better", "worse", "newly failing", "fixed", "missing")
COLUMNS = (
    *("problem", "algorithm", "T", "metric", "verdict", "n"),
    *("before", "after", "median difference", "p (Holm)", "w/t/l"),
)
SUMMED = ["n", "expected", "wins", "ties", "losses"]
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
    before = selection.run
    horizon = selection.horizon
    every_group = [find_groups(run, selection.only) for run in (before, after)]
    held = every_group
    latest = {}
    if horizon is None:
        latest = {g.problem: selection.part.horizon_of(g.problem) for g in held[0]}
    else:
        selected = {*select_horizon(before, [*held[0], *held[1]], horizon)}
        held = [[group for group in groups if group in selected] for groups in held]
    rows = _compare_pairs(before, after, held, selection.shown, latest)
    # Each horizon is a family of its own: else tests of one would weaken those of another.
    families = gather((horizon is not None and row["horizon"], row) for row in rows)
    judged = [judge_rows(family, float(factor)) for family in families.values()]
    undecided = "; ".join(dict.fromkeys(filter(None, map(_describe_undecided, judged))))
    frame = pd.DataFrame([row for family in judged for row in family])
    worse = bool(frame["verdict"].isin(["worse", "newly failing", "missing"]).any())
    is_incomparable = frame["verdict"].isin(["missing", "not comparable"]).all()
    reasons = Counter(frame["reason"]) if is_incomparable else {}
    is_hidden = only_changed & ~frame["verdict"].isin(CHANGED)
    hidden = Counter(frame["verdict"][is_hidden])
    frame = frame[~is_hidden].reset_index(drop=True)
    title = f"{before.record.suite}: {before} -> {after}"
    table = _tabulate_changes(frame, selection.shown, title, hidden, undecided)
    if any(group.horizon != latest.get(group.problem, group.horizon) for group in held[0]):
        table = table.with_note([describe_horizons(selection.part, latest)])
    table = table.with_note(describe_arithmetic([*every_group[0], *every_group[1]]))
    incomparable = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
    # Some rows have no counts: without this they would be 8.0.
    frame = frame.astype(dict.fromkeys([name for name in COUNTS if name in frame], "Int64"))
    return Comparison(frame, table, worse, incomparable, undecided)


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
    for key in old | new:
        olds, news = ({group.horizon: group for group in side.get(key, ())} for side in (old, new))
        sample, *_ = (*olds.values(), *news.values())
        reason = _explain_incomparable(before, after, olds, news)
        horizons = [sample.horizon]
        if not reason:
            only = latest.get(sample.problem)
            horizons = [only] if only in olds else [*(olds | news)]
        for horizon in horizons:
            row = {
                "problem": sample.problem,
                "problem_label": sample.problem_label,
                "horizon": horizon,
                "algorithm": sample.algorithm,
                "algorithm_label": sample.algorithm_label,
            }
            if not reason and horizon in olds and horizon in news:
                rows += _compare_cells(row, olds[horizon], news[horizon], quantities)
                continue
            is_held = bool(news) if reason else horizon in news
            verdict = "not comparable" if is_held else "missing"
            why = reason or ("only after" if is_held else "only before")
            rows.append(row | {"metric": None, "verdict": verdict, "reason": why})
    return rows


def _explain_incomparable(
    before: Run, after: Run, old: Mapping[int, Group], new: Mapping[int, Group]
) -> str:
    """Why nothing of a pair can be compared, by its groups of each horizon; "" where something
    can.
    """
    if not old or not new:
        return "only before" if old else "only after"
    if old.keys().isdisjoint(new):
        horizons = (", ".join(map(str, groups)) for groups in (old, new))
        return f"T = {' and '.join(horizons)}"
    sample = next(iter(old.values()))
    old_values, new_values = (
        run.record.variants("problems")[sample.problem].values for run in (before, after)
    )
    differing = [
        f"{name}={old_values[name]} and {new_values[name]}"
        for name in old_values
        if name in new_values and old_values[name] != new_values[name]
    ]
    if differing:
        return f"other problem: {', '.join(differing)}"
    algorithms = (run.record.variants("algorithms")[sample.algorithm] for run in (before, after))
    return compare_setups(*algorithms)


def _compare_cells(
    row: dict[str, Any], old: Group, new: Group, quantities: list[Metric]
) -> list[dict[str, Any]]:
    """The rows of one problem, algorithm and horizon."""
    rows: list[dict[str, Any]] = []
    for verdict, failing, passing in (("newly failing", new, old), ("fixed", old, new)):
        if seeds := sorted(failing.failures & {*passing.seeds.tolist()}):
            shown = [*map(str, seeds[:5]), *(["..."] if len(seeds) > 5 else [])]
            noun = "seed" if len(seeds) == 1 else "seeds"
            reason = f"{noun} {', '.join(shown)}"
            rows.append(row | {"verdict": verdict, "reason": reason, "n": len(seeds)})
    common = np.intersect1d(old.seeds, new.seeds)
    if not len(common):
        return rows or [row | {"verdict": "not comparable", "reason": "no common seed"}]
    for quantity in quantities:
        quantity_row = row | {"metric": quantity.name, "expected": max(old.expected, new.expected)}
        values = [
            group.numbers(quantity.name)[np.isin(group.seeds, common)] for group in (old, new)
        ]
        ordered = [fill_unreached(seed_values, quantity) for seed_values in values]
        before, after = (
            float(restore_infinite(np.median(part))) if len(part) else np.nan for part in ordered
        )
        statistics = pair_difference(new, old, quantity)
        reason = ""
        if np.isnan(values).all():
            reason = "undefined in both"
        elif statistics["n"] == 0:
            reason = "no seed in which both are defined"
        if reason:
            rows.append(quantity_row | {"verdict": "not comparable", "reason": reason})
        else:
            rows.append(quantity_row | {"before": before, "after": after, **statistics})
    return rows


def judge_rows(rows: list[dict[str, Any]], factor: float) -> list[dict[str, Any]]:
    """The rows with verdicts, and those over all problems.

    Args:
        rows: those with a test hold `apart`, the differences by seed (positive is better), which is
            taken out.
        factor: medians that differ by less are no change.
    """
    differing = [row for row in rows if row.get("apart", np.zeros(1)).any()]
    rows = rows + pool_problems(pd.DataFrame(differing))
    _give_verdicts([row for row in rows if "p" in row], factor)
    for row in rows:
        row.pop("apart", None)
    return rows


def pool_problems(tests: pd.DataFrame) -> list[dict[str, Any]]:
    """A row per algorithm and metric that has rows of several problems, with the test whose strata
    these are (see `signed_rank`), and `parts`, the rows behind it.

    Args:
        tests: rows with `apart` (see `pair_difference`); may be none.
    """
    rows = []
    for (algorithm, metric), parts in (
        tests.groupby(["algorithm", "metric"], sort=False) if len(tests) else ()
    ):
        # Two horizons of one play are no two problems: the longer one counts.
        longest = parts.groupby("problem", sort=False)["horizon"].transform("max")
        parts = parts[parts["horizon"] == longest]
        if len(parts) < 2:
            continue
        p, effect = signed_rank(*parts["apart"])
        horizons = parts["horizon"].unique()
        row: dict[str, Any] = {
            "problem": None,
            "problem_label": "all problems",
            "algorithm": algorithm,
            "metric": metric,
            "horizon": horizons[0] if len(horizons) == 1 else None,
            "algorithm_label": parts["algorithm_label"].iloc[0],
            "parts": parts.to_dict("records"),
            "p": p,
            "effect": effect,
            **parts[SUMMED].sum(),
        }
        rows.append(row)
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
    adjusted = holm(np.where(family, [row["p"] for row in tests], np.nan))
    for position, (row, p) in enumerate(zip(tests, adjusted, strict=True)):
        row |= {"verdict": "not significant", "p_holm": float(p)}
        beyond = [
            part["effect"]
            for part in row.pop("parts", [row])
            if not _is_within(part["before"], part["after"], factor)
        ]
        if not p < SIGNIFICANT or row["effect"] == 0:  # NaN: not in the family
            could_differ = differing.copy()
            could_differ[position] = row["n"]
            if beyond and not (family | choose_family(could_differ))[position]:
                row["verdict"] = "undecided"
        elif any(effect * row["effect"] > 0 for effect in beyond):
            row["verdict"] = "better" if row["effect"] > 0 else "worse"
        else:
            row["reason"] = f"within a factor of {factor:g}"


def _describe_undecided(family: list[dict[str, Any]]) -> str:
    """What the seeds are too few for, and how many would do; empty where there is no such row."""
    rows = [row for row in family if row["verdict"] == "undecided"]
    if not rows:
        return ""
    tests = sum(row.get("wins", 0) + row.get("losses", 0) > 0 for row in family)
    return (
        f"{count_noun(len(rows), 'row')} cannot be decided: of {count_noun(tests, 'row')} that "
        "changed none comes out "
        f"with fewer than {count_needed(tests)} seeds, and there are as few as "
        f"{min(row['n'] for row in rows)}; take more seeds, or --only, --metric or --factor"
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
    rows = []
    tested = set[int]()
    for row in frame.to_dict("records"):
        quantity = symbols.get(row.get("metric") or "")
        n = row.get("n", np.nan)
        cells = dict.fromkeys(COLUMNS, "–") | {
            "problem": row["problem_label"],
            "algorithm": row["algorithm_label"],
            "T": format_number(row["horizon"], is_count=True),
            "verdict": row["verdict"],
        }
        if isinstance(row.get("reason"), str):
            cells["verdict"] += f" ({row['reason']})"
        if not np.isnan(n):
            cells["n"] = f"{n:.0f}"
        if quantity is not None:
            cells["metric"] = quantity.symbol
        if quantity is not None and not np.isnan(row.get("p", np.nan)):
            tested.add(int(n))
            # A row over all problems has no medians.
            before, after, *median = (
                row.get(name, np.nan) for name in ("before", "after", *MEDIANS)
            )
            gap = find_gap([before, after])
            cells |= {
                "n": f"{n:.0f}/{row['expected']:.0f}",
                "before": format_number(before, quantity.is_count, gap),
                "after": format_number(after, quantity.is_count, gap),
                "median difference": format_interval(*median),
                "p (Holm)": format_p(row["p_holm"]),
                "w/t/l": f"{row['wins']:.0f}/{row['ties']:.0f}/{row['losses']:.0f}",
            }
        rows.append([*cells.values()])
    lines = [NOTE.format(around=describe_median_interval(tested))]
    if not rows:
        lines = ["no change is significant"]
        if "not comparable" in hidden:
            lines = ["nothing that can be compared changed"]
        elif hidden.keys() <= {"identical"}:
            lines = ["nothing changed"]
    if hidden:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in hidden.items())
        lines.append(f"not shown: {counts}")
    note = "\n".join(filter(None, [*lines, undecided]))
    weights = [0, 0, 0, 0, 0, 0, 2, 2, 1, 4, 3]
    table = TextTable(COLUMNS, rows, title=title, note=note, left=5, weights=weights)
    return table if frame["horizon"].nunique() > 1 else table.without({COLUMNS.index("T")})
