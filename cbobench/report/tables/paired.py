"""Paired by seed: differences to the best algorithm of a problem, or a named one, and what is not
separable from it.

All algorithms meet the same function and the same noise on a problem and seed, so differences by
seed are tested (Wilcoxon's signed-rank test) where means would hide them. Only seeds that both
have; how many is said.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbobench.errors import Misuse, show
from cbobench.metrics import Array, Metric
from cbobench.report.groups import Group, gather, group_by
from cbobench.report.load import Run
from cbobench.report.notes import collect_notes, describe_lacks
from cbobench.report.quantities import UNREACHED, fill_unreached, restore_infinite
from cbobench.report.selection import Selection
from cbobench.report.setups import describe_apart
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.table import (
    Marked,
    TextTable,
    describe_median_interval,
    format_interval,
)
from cbobench.stats.paired_tests import (
    SIGNIFICANT,
    compare_sides,
    count_needed,
    decidable,
    difference,
    find_beaten,
    find_winner,
    holm,
)
from cbobench.words import count_noun, list_names

MEDIANS = ("median", "median_low", "median_high")
NUMBERS = {
    "n": 0,
    "median difference": 0,
    "mean difference": 4,
    "p (Holm)": 2,
    "effect": 3,
    "w/t/l": 1,
}
"""Columns of numbers, and in what order they are taken as long as they fit."""
OVER_ALL = "one against one over all problems: --floor F, below which a difference is a tie"
NO_WINNER = "no method is significantly better than all others"

PAIRED = (
    "algorithm - against, seed by seed: median [{around}], mean [95 % interval]; n: seeds that "
    "both have, of those "
    "asked for; k/n beside a difference: in k of them both got there, the mean is of these, the "
    "median counts the "
    "others as lost; p: Wilcoxon's signed-rank test, Holm over the rows of {family}; * "
    "significant at 5 %; effect: 1 "
    "where the algorithm is better in every seed, -1 where it is worse; w/t/l: seeds in which it "
    "is better, equal, "
    "worse"
)


def pair_difference(group: Group, reference: Group, quantity: Metric) -> dict[str, Any]:
    """The fields of `Difference` for one - other by common seed; `defined`: in how many of the n
    seeds both are; and `apart`, (n,): by how much the one is better.

    Where a seed of one never got there, it has lost: that is worse than any value, by `UNREACHED`,
    and two such seeds are a tie. Median, test, effect and wins count it (the median may then be
    infinite); the mean cannot.
    """
    worse = align_seeds([group, reference], quantity)
    worse = worse[:, ~np.isnan(worse).any(axis=0)]
    is_lost = np.isinf(worse).any(axis=0)
    left, right = -quantity.sign * np.minimum(worse, UNREACHED)
    better = quantity.better or "lower"
    statistics = asdict(difference(left, right, better))
    if is_lost.any():
        ends = restore_infinite(np.array([statistics[name] for name in MEDIANS]))
        statistics |= dict(zip(MEDIANS, ends.tolist(), strict=True))
        reached = asdict(difference(left[~is_lost], right[~is_lost], better))
        statistics |= {name: reached[name] for name in ("mean", "mean_low", "mean_high")}
    apart = quantity.sign * (left - right)
    return statistics | {"defined": int((~is_lost).sum()), "apart": apart}


def score_groups(groups: list[Group], quantity: Metric) -> dict[Group, tuple[float, float]]:
    """The median of each group, and, where medians are equal, its mean; lower is better.

    By the seeds that all have, so that nothing is best for having failed in the hard ones; by its
    own seeds where there are no such. Groups in which nothing is defined there are left out.
    """
    held = [group.seeds for group in groups if np.isfinite(group.values(quantity)).any()]
    common = reduce(np.intersect1d, held) if held else ()
    scores: dict[Group, tuple[float, float]] = {}
    for group in groups:
        values = group.values(quantity)
        if len(common):
            values = values[np.isin(group.seeds, common)]
        defined = values[~np.isnan(values)]
        if len(defined):
            median = np.median(fill_unreached(values, quantity))
            scores[group] = -quantity.sign * median, -quantity.sign * defined.mean()
    return scores


@dataclass(frozen=True)
class BestMarks:
    """Which groups to mark.

    Attributes:
        best: per quantity, the best ones.
        unbeaten: likewise, those that no other is significantly better than; the best are among
            them.
        undecidable: the comparisons of a method of which none could come out with so few seeds, of
            the method with the most; 0 where all methods have one that could.
    """

    best: dict[str, set[Group]]
    unbeaten: dict[str, set[Group]]
    undecidable: int


def mark_best(groups: list[Group], quantities: list[Metric]) -> BestMarks:
    """The best of every problem, and what no other method of the problem is significantly better
    than.

    A method whose seeds are too few for any of its comparisons to come out is not marked: nothing
    is known of it.
    """
    best = defaultdict[str, set[Group]](set)
    unbeaten = defaultdict[str, set[Group]](set)
    undecidable = 0
    judged = [quantity for quantity in quantities if quantity.better]
    for quantity in judged:
        for arena_groups in group_by(groups, "arena").values():
            rivals = [group for group in arena_groups if np.isfinite(group.values(quantity)).any()]
            if len(rivals) < 2:
                continue
            beaten, is_judged = find_beaten(*_compare_rivals(rivals, quantity))
            if not is_judged.all():
                undecidable = max(undecidable, len(rivals) - 1)
            # The best of those that nothing beats, and its equals.
            kept = {rivals[i] for i in np.flatnonzero(is_judged & ~beaten)}
            scores = {g: score for g, score in score_groups(rivals, quantity).items() if g in kept}
            unbeaten[quantity.name] |= kept
            best[quantity.name] |= {g for g in scores if scores[g] == min(scores.values())}
    return BestMarks(best, unbeaten, undecidable)


def describe_winners(selection: Selection) -> str:
    """Which method is best at the first quantity on which problems: every other one is
    significantly worse, by the tests that make the stars.

    "" where there are too few seeds for that anywhere, or a problem has several T. What never got
    there is worst, as in `pair_difference`, also a method that no seed got there with.
    """
    quantity = selection.shown[0]
    problems = {group.problem for group in selection.groups}
    if quantity.better is None or len(problems) < len(selection.arenas):
        return ""
    found: list[Group | None] = []
    can_be_told = False
    for arena, arena_groups in selection.arenas.items():
        # It takes part with a value, or with good cells that never got to one.
        rivals = [
            group
            for group in arena_groups
            if (group.n if quantity.censored else np.isfinite(group.values(quantity)).any())
        ]
        if (arena, quantity.name) in selection.lacks or len(rivals) < 2:
            continue
        position, is_told = find_winner(*_compare_rivals(rivals, quantity))
        can_be_told |= is_told
        found.append(None if position is None else rivals[position])
    if not can_be_told:
        return ""
    winners = gather((group.algorithm_label, group.problem_label) for group in found if group)
    if not winners:
        return f"{quantity.symbol}: {NO_WINNER}"
    named = [f"{label} is best on {list_names(on)}" for label, on in winners.items()]
    line = f"{quantity.symbol}: {'; '.join(named)} (every other method is significantly worse)"
    if None in found:
        return f"{line}; elsewhere {NO_WINNER}"
    return line


def align_seeds(groups: list[Group], quantity: Metric) -> Array:
    """The values of some groups by seed, (groups, seeds), higher is worse; infinite where a seed
    never got there, NaN where a group has no such seed, or no value.
    """
    seeds = reduce(np.union1d, [group.seeds for group in groups])
    aligned = np.full((len(groups), len(seeds)), np.nan)
    for row, group in zip(aligned, groups, strict=True):
        values = -quantity.sign * group.values(quantity)
        if quantity.censored:
            values[np.isnan(values)] = np.inf
        row[np.searchsorted(seeds, group.seeds)] = values
    return aligned


def _compare_rivals(rivals: list[Group], quantity: Metric) -> tuple[Array, NDArray[np.int64]]:
    """The p-values and counts of every two of some groups (see `compare_sides`)."""
    return compare_sides(np.minimum(align_seeds(rivals, quantity), UNREACHED))


def select_paired(groups: list[Group], title: str | None) -> list[Group]:
    """The groups that share problem and T with another one; with a title, with that algorithm's."""
    return [
        group
        for arena_groups in group_by((group for group in groups if group.n), "arena").values()
        if len(arena_groups) > 1
        and (title is None or any(group.algorithm == title for group in arena_groups))
        for group in arena_groups
    ]


def compare_pairs(selection: Selection, against: str) -> Comparison:
    """Differences by seed to an algorithm.

    Args:
        against: title, label or name of an algorithm.

    Raises:
        Misuse: no such algorithm, or a word for several; no algorithm to pair, or none that can be
            paired.
    """
    title = find_algorithm(selection.run, against)
    compared = select_paired(selection.groups, title)
    refuse_untestable(selection, compared)
    frame = differences(selection, title)
    if frame.empty:
        raise Misuse(
            f"{selection.run} holds no two algorithms with values on one problem: nothing to pair"
        )
    frame = frame.drop(columns="apart")
    family = "a metric and T" if "horizon" in _name_family(frame) else "a metric"
    lines = [PAIRED.format(around=describe_median_interval(frame["n"]), family=family)]
    lines.append(_describe_undecidable(frame))
    if frame["problem"].nunique() > 1:
        lines.append(OVER_ALL)
    table = render_differences(frame, selection, "\n".join(filter(None, lines)))
    table = table.with_note(collect_notes(selection, compared))
    return Comparison(frame, table, unplayable=selection.unplayable)


def refuse_untestable(selection: Selection, compared: list[Group]) -> None:
    """Refuse to test methods against one another that were set up unlike, or have no T in common,
    or quantities of which none can have a value.

    Raises:
        Misuse: they are such.
    """
    apart = describe_apart(selection.every_shown, compared)
    if apart and len({group.algorithm for group in compared}) < 2:
        raise Misuse(apart[0])
    if selection.setups and selection.is_union:
        remedy = "play all runs with the same, or list them without a test: --union"
        raise Misuse(f"{'; '.join(selection.setups)}; {remedy}")
    if len(selection.lacks) == len(selection.arenas) * len(selection.shown):
        raise Misuse("; ".join(describe_lacks(selection)))


def pair_groups(selection: Selection, title: str) -> Iterator[tuple[Group, Group, Metric]]:
    """Every other group beside that of an algorithm, by each quantity that has values there."""
    for arena, quantity in itertools.product(selection.arenas, selection.shown):
        if (arena, quantity.name) in selection.lacks:
            continue  # nothing could be reached, so that equal seeds would be no tie
        # It is compared with even where it never got anywhere.
        arena_groups = selection.arenas[arena]
        reference = next((g for g in arena_groups if g.algorithm == title), None)
        for group in arena_groups:
            if reference is not None and group is not reference:
                yield group, reference, quantity


def differences(selection: Selection, title: str) -> pd.DataFrame:
    """Every algorithm against one with a title.

    Returns:
        One row per problem, quantity and algorithm: titles and labels, `against` and its label,
        `expected`, and the values of `pair_difference` of algorithm - against with `p_holm`,
        adjusted over all rows of a quantity (and of a horizon, where a problem has several).
    """
    rows = []
    for group, reference, quantity in pair_groups(selection, title):
        row = {
            "problem": group.problem,
            "problem_label": group.problem_label,
            "horizon": group.horizon,
            "metric": quantity.name,
            "algorithm": group.algorithm,
            "algorithm_label": group.algorithm_label,
            "against": reference.algorithm,
            "against_label": reference.algorithm_label,
            "expected": max(group.expected, reference.expected),
        }
        rows.append(row | pair_difference(group, reference, quantity))
    if rows:
        tests = pd.DataFrame(rows)
        families = tests.groupby(_name_family(tests), sort=False, dropna=False)["p"]
        return tests.assign(p_holm=families.transform(lambda p: holm(p.to_numpy())))
    return pd.DataFrame()


def _name_family(frame: pd.DataFrame) -> list[str]:
    """The columns that tests of one family share: else those of one horizon would weaken those of
    another.
    """
    several = (frame.groupby("problem")["horizon"].nunique() > 1).any()
    if several:
        return ["metric", "horizon"]
    return ["metric"]


def describe_need(
    comparisons: int, subject: str = "of a metric", sides: int = 2, unit: str = "seeds"
) -> str:
    """How many seeds so many comparisons of a metric, or of a method, need for one of them to come
    out.
    """
    verb = "needs" if comparisons == 1 else "need"
    return (
        f"{count_noun(comparisons, 'comparison')} {subject} {verb} "
        f"{count_needed(comparisons, sides)} {unit}"
    )


def _describe_undecidable(frame: pd.DataFrame) -> str:
    """A line where no difference of some metric could be significant, whatever its signs."""
    tests = frame[frame["n"] > 0].groupby(_name_family(frame))["n"]
    sizes = [len(n) for _, n in tests if not decidable(int(n.max()), len(n))]
    if not sizes:
        return ""
    need = describe_need(max(sizes))
    return (
        f"too few seeds for any difference to be significant: {need}, there are {frame['n'].max()}"
    )


def find_algorithm(run: Run, word: str) -> str:
    """The title of one algorithm.

    Raises:
        Misuse: none of that name, or several.
    """
    titles = run.titles("algorithm", word)
    if len(titles) > 1:
        raise Misuse(
            f"{show(word)} names {len(titles)} algorithms of this run; give one of: "
            f"{', '.join(titles)}"
        )
    return titles[0]


def render_differences(frame: pd.DataFrame, selection: Selection, note: str) -> TextTable:
    """Paired differences for readers, in the rows' order."""
    quantities = {quantity.name: quantity for quantity in selection.shown}
    metrics = frame["metric"].unique()
    words = ["problem", "T", "metric", "algorithm", "against"]
    if len(metrics) == 1:
        words.remove("metric")
    if frame["horizon"].nunique() < 2:
        words.remove("T")
    rows = []
    for row in frame.to_dict("records"):
        cells = {
            "problem": row["problem_label"],
            "T": f"{row['horizon']}",
            "metric": quantities[row["metric"]].symbol,
            "algorithm": row["algorithm_label"],
            "against": row["against_label"],
            "n": f"{row['n']}/{row['expected']}",
            "median difference": _format_difference(row),
            "mean difference": format_interval(row["mean"], row["mean_low"], row["mean_high"]),
            "p (Holm)": format_p(row["p_holm"]),
            "effect": "–" if np.isnan(row["effect"]) else f"{row['effect']:+.2f}",
            "w/t/l": f"{row['wins']}/{row['ties']}/{row['losses']}",
        }
        rows.append([cells[name] for name in (*words, *NUMBERS)])
    heading = f"{selection.title}: paired differences"
    if len(metrics) == 1:
        only = quantities[metrics[0]]
        heading += f", {only.label.removesuffix(only.symbol).strip()} ({only.symbol})"
    return TextTable(
        [*words, *NUMBERS],
        rows,
        title=heading + selection.units,
        note=note,
        left=len(words),
        weights=[*[0] * len(words), *NUMBERS.values()],
    )


def _format_difference(row: Mapping[Any, Any]) -> str:
    """A median difference with its mark, and in how many seeds both are defined where that is not
    all.
    """
    text = format_interval(*(row[name] for name in MEDIANS))
    if row["defined"] < row["n"]:
        text += f" {row['defined']}/{row['n']}"
    if row["p_holm"] < SIGNIFICANT:
        return Marked(text)
    return text


def format_p(p: float) -> str:
    """A p-value: three decimals, or that it is below 0.001."""
    if np.isnan(p):
        return "–"
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}"
