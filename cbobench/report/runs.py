"""Two runs, such as of two commits: what became better or worse, fails now, or fails no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse, show
from cbobench.report.formats import TextTable, bracket, number
from cbobench.report.groups import Group, groups
from cbobench.report.load import Run
from cbobench.report.pairs import compared as difference
from cbobench.report.pairs import probability
from cbobench.report.quantities import Quantity, unfilled
from cbobench.stats.paired import SIGNIFICANT, holm

CHANGED = ("better", "worse", "newly failing", "fixed")
COUNTS = ("n", "expected", "defined", "wins", "ties", "losses")
NOTE = (
    "after - before, paired by seed, with 95 % intervals; n: seeds that both have; better and worse: Wilcoxon's "
    "signed-rank test, Holm over the rows of a metric, 5 %; w/t/l: seeds that are better, equal, worse"
)


def compared(
    before: Run, after: Run, only: str | None, shown: list[Quantity], only_changed: bool, factor: float
) -> tuple[pd.DataFrame, TextTable, bool, str]:
    """What changed from one run to another.

    Args:
        only: a glob over "problem/algorithm".
        shown: the quantities to test.
        only_changed: leave out rows that are neither better, worse, newly failing nor fixed.
        factor: at least 1: medians that differ by less are no change.

    Returns:
        One row per problem, algorithm and quantity, or failure, with its `verdict`; its table; whether anything is
        worse or newly failing; and why nothing at all can be compared, empty where something can.
    """
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor < np.inf:
        raise Misuse(f"factor is {show(factor)}; it must be a number of at least 1")
    rows = _rows(before, after, only, shown, float(factor))
    frame = pd.DataFrame(rows)
    worse = bool(frame["verdict"].isin(["worse", "newly failing"]).any())
    reasons = Counter(frame["reason"]) if (frame["verdict"] == "not comparable").all() else {}
    nothing = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
    hidden = frame[~frame["verdict"].isin(CHANGED)] if only_changed else frame.iloc[:0]
    frame = frame.drop(hidden.index).reset_index(drop=True)
    title = f"{before.record.suite}: {before.folder} -> {after.folder}"
    table = _table(frame, shown, title, Counter(hidden["verdict"]))
    counts = [name for name in COUNTS if name in frame]  # some rows have none: without this they would be 8.0
    return frame.astype(dict.fromkeys(counts, "Int64")), table, worse, nothing


def _rows(before: Run, after: Run, only: str | None, shown: list[Quantity], factor: float) -> list[dict[str, Any]]:
    old, new = _named(groups(before, only)), _named(groups(after, only))
    rows: list[dict[str, Any]] = []
    for key in dict.fromkeys([*old, *new]):
        mine = old.get(key, []), new.get(key, [])
        sample = (mine[0] or mine[1])[0]
        row = {"problem": sample.problem, "problem_label": sample.problem_label, "horizon": sample.horizon}
        row |= {"algorithm": sample.algorithm, "algorithm_label": sample.algorithm_label}
        reason = _incomparable(before, after, *mine)
        if reason:
            rows.append(row | {"metric": None, "verdict": "not comparable", "reason": reason})
            continue
        here, there = ({group.horizon: group for group in some} for some in mine)
        for horizon in dict.fromkeys([*here, *there]):
            key_row = row | {"horizon": horizon}
            if horizon in here and horizon in there:
                rows += _pair(key_row, here[horizon], there[horizon], shown)
            else:
                only_in = "only before" if horizon in here else "only after"
                rows.append(key_row | {"metric": None, "verdict": "not comparable", "reason": only_in})
    _judge(rows, factor)
    return rows


def _named(found: list[Group]) -> dict[tuple[str, str], list[Group]]:
    result: dict[tuple[str, str], list[Group]] = {}
    for group in found:
        result.setdefault((group.problem, group.algorithm), []).append(group)
    return result


def _incomparable(before: Run, after: Run, old: list[Group], new: list[Group]) -> str | None:
    """Why nothing of a pair can be compared."""
    if not old or not new:
        return "only after" if not old else "only before"
    horizons = [", ".join(str(group.horizon) for group in some) for some in (old, new)]
    if not {group.horizon for group in old} & {group.horizon for group in new}:
        return f"T = {horizons[0]} and {horizons[1]}"
    was, now = (run.record.variants("problems")[old[0].problem].values for run in (before, after))
    other = [f"{name}={was[name]} and {now[name]}" for name in was if name in now and was[name] != now[name]]
    return f"other problem: {', '.join(other)}" if other else None


def _pair(row: dict[str, Any], old: Group, new: Group, shown: list[Quantity]) -> list[dict[str, Any]]:
    """The rows of one problem, algorithm and horizon."""
    rows: list[dict[str, Any]] = []
    for verdict, failing, passing in (("newly failing", new, old), ("fixed", old, new)):
        seeds = sorted(failing.failures & set(passing.good.index))
        if seeds:
            some = ", ".join(map(str, seeds[:5])) + (", ..." if len(seeds) > 5 else "")
            word = "seed" if len(seeds) == 1 else "seeds"
            rows.append(row | {"verdict": verdict, "reason": f"{word} {some}", "n": len(seeds)})
    common = old.good.index.intersection(new.good.index)
    if not len(common):
        return rows or [row | {"verdict": "not comparable", "reason": "no common seed"}]
    for quantity in shown:
        expected = max(old.expected, new.expected)
        one = row | {"metric": quantity.name, "expected": expected}
        values = [quantity.of(group.good.loc[common]) for group in (old, new)]
        if not any(np.isfinite(some).any() for some in values):
            rows.append(one | {"verdict": "not comparable", "reason": "undefined in both"})
            continue
        ordered = [quantity.filled(some) for some in values]
        middle = [unfilled(float(np.median(some))) if len(some) else np.nan for some in ordered]
        found = difference(new.good, old.good, quantity)
        if found["n"] == 0:
            rows.append(one | {"verdict": "not comparable", "reason": "no seed in which both are defined"})
            continue
        rows.append(one | {"before": middle[0], "after": middle[1], **found})
    return rows


def _judge(rows: list[dict[str, Any]], factor: float) -> None:
    """Verdicts of the rows that have a test."""
    for metric in dict.fromkeys(row["metric"] for row in rows if "p" in row):
        tests = [row for row in rows if "p" in row and row["metric"] == metric]
        for row, p in zip(tests, holm([row["p"] for row in tests]), strict=True):
            row["p_holm"] = float(p)
            significant = p < SIGNIFICANT and row["effect"] != 0
            if significant and _within(row["before"], row["after"], factor):
                row["verdict"], row["reason"] = "not significant", f"within a factor of {factor:g}"
            else:
                row["verdict"] = ("better" if row["effect"] > 0 else "worse") if significant else "not significant"


def _within(before: float, after: float, factor: float) -> bool:
    """Whether two medians differ by no more than a factor; what changes its sign, or leaves 0, differs by any."""
    if factor <= 1 or not (np.isfinite(before) and np.isfinite(after)):
        return False
    return before * after > 0 and max(before / after, after / before) <= factor


def _table(frame: pd.DataFrame, shown: list[Quantity], title: str, hidden: Mapping[str, int]) -> TextTable:
    symbols = {quantity.name: quantity for quantity in shown}
    several = len(frame) > 0 and frame["horizon"].nunique() > 1
    columns = ["problem", "algorithm", *(["T"] if several else []), "metric", "verdict", "n"]
    columns += ["before", "after", "median difference", "p (Holm)", "w/t/l"]
    rows = []
    for row in frame.to_dict("records"):
        quantity = symbols.get(row.get("metric") or "")
        tested = quantity is not None and not np.isnan(row.get("p", np.nan))
        reason = row.get("reason")
        verdict = row["verdict"] + (f" ({reason})" if isinstance(reason, str) else "")
        n = row.get("n", np.nan)
        cells = [row["problem_label"], row["algorithm_label"], *([str(row["horizon"])] if several else [])]
        cells += [quantity.symbol if quantity else "–", verdict]
        if quantity is not None and tested:
            text = bracket(row["median"], row["median_low"], row["median_high"])
            counts = f"{row['wins']:.0f}/{row['ties']:.0f}/{row['losses']:.0f}"
            ends = [number(row[name], quantity.whole) for name in ("before", "after")]
            cells += [f"{n:.0f}/{row['expected']:.0f}", *ends, text, probability(row["p_holm"]), counts]
        else:
            cells += ["–" if np.isnan(n) else f"{n:.0f}", *["–"] * 5]
        rows.append(cells)
    some = ", ".join(f"{count} {verdict}" for verdict, count in hidden.items())
    note = NOTE + (f"\nnot shown: {some}" if some else "")
    if not rows:
        none = "nothing that can be compared changed" if "not comparable" in hidden else "nothing changed"
        note = none + (f"; not shown: {some}" if some else "")
    left = 5 if several else 4
    weights = [0] * (left + 1) + [2, 2, 1, 4, 3]
    return TextTable(columns, rows, title, note, left=left, weights=weights)
