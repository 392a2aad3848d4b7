"""Paired by seed: differences to the best algorithm of a problem, or a named one, and what is not
separable from it.

All algorithms meet the same function and the same noise on a problem and seed, so differences by
seed are tested (Wilcoxon's signed-rank test) where means would hide them. Only seeds that both
have; how many is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbobench.errors import Misuse, show, words_of
from cbobench.metrics import Array, Metric
from cbobench.report.groups import Group, gather, group_by_arena
from cbobench.report.load import Run
from cbobench.report.notes import collect_fair_notes, refuse_lacks
from cbobench.report.quantities import UNREACHED, fill_unreached, join_labels, restore_infinite
from cbobench.report.selection import Selection
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.numbers import describe_median_interval, format_interval
from cbobench.report.tables.table import Marked, TextTable
from cbobench.stats.intervals import interval
from cbobench.stats.paired_tests import (
    SIGNIFICANT,
    compare_sides,
    count_needed,
    decidable,
    difference,
    find_beaten,
    find_winner,
    holm,
    signed_rank,
)
from cbobench.words import count_noun, list_names

ALL = "all problems"
MOST_ROWS = 10  # of problems, below those over all problems
SUMMED = ("n", "expected", "wins", "ties", "losses")
POOLED = (
    f"{ALL}: ranks of each problem's differences, summed; Holm over these rows of a metric; better "
    "on: problems with an effect above 0"
)
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

    Where a seed of one never got there, it has lost: that is worse than any value of the two, by a
    finite distance, so that two such seeds are a tie. Median, test, effect and wins count it (the
    median may then be infinite); the mean cannot.
    """
    _, rows, reference_rows = np.intersect1d(
        group.seeds, reference.seeds, assume_unique=True, return_indices=True
    )
    a, b = group.values(quantity)[rows], reference.values(quantity)[reference_rows]
    is_defined = ~(np.isnan(a) | np.isnan(b))
    better, left, right = quantity.better or "lower", a[is_defined], b[is_defined]
    statistics = difference(left, right, better)
    defined = len(left)
    if quantity.censored and not is_defined.all():
        values = np.concatenate([a, b])
        values = values[~np.isnan(values)]
        # if none ever got there: all are ties
        least, most = (values.min(), values.max()) if len(values) else (0.0, 0.0)
        beyond = most - least + 1
        never = least - beyond if quantity.better == "higher" else most + beyond
        left, right = np.where(np.isnan(a), never, a), np.where(np.isnan(b), never, b)
        means = {name: getattr(statistics, name) for name in ("mean", "mean_low", "mean_high")}
        # A lost seed is infinitely far: the distance within the values would make the median look
        # finite.
        far = np.where(is_defined, left - right, np.sign(left - right) * UNREACHED)
        median, low, high = (
            float(restore_infinite(end)) for end in (np.median(far), *interval(far, "median"))
        )
        statistics = difference(left, right, better)
        statistics = replace(statistics, **means, median=median, median_low=low, median_high=high)
    apart = quantity.sign * (left - right)
    return asdict(statistics) | {"defined": defined, "apart": apart}


def _common_seeds(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the seeds that are in both; nearly always they are the same."""
    return left if np.array_equal(left, right) else np.intersect1d(left, right)


def find_best(groups: list[Group], quantity: Metric, *judges: NDArray[np.int64]) -> Group | None:
    """The first group of the best score (see `score_groups`); None where nothing is defined."""
    scores = score_groups(groups, quantity, *judges)
    return min(scores, key=scores.__getitem__, default=None)


def score_groups(
    groups: list[Group], quantity: Metric, *judges: NDArray[np.int64]
) -> dict[Group, tuple[float, float]]:
    """The median of each group, and, where medians are equal, its mean; lower is better.

    By the seeds that all have, and that are among those of each judge, so that nothing is best for
    having failed in the hard ones; by its own seeds where there are no such. Groups in which
    nothing is defined there are left out.
    """
    held = [group.seeds for group in groups if np.isfinite(group.values(quantity)).any()]
    common = reduce(_common_seeds, [*held, *judges]) if held else np.array([], dtype=np.int64)
    scores: dict[Group, tuple[float, float]] = {}
    for group in groups:
        values = group.values(quantity)
        if len(common) and not np.array_equal(group.seeds, common):
            shared = np.isin(group.seeds, common)
            values = values[shared] if shared.sum() == len(common) else values
        ordered, defined = fill_unreached(values, quantity), values[~np.isnan(values)]
        if len(defined):
            middles = np.median(ordered), defined.mean()
            scores[group] = -quantity.sign * middles[0], -quantity.sign * middles[1]
    return scores


@dataclass(frozen=True)
class BestMarks:
    """Which groups to mark.

    Attributes:
        best: per quantity, the best ones.
        unbeaten: likewise, those that no other is significantly better than; the best are among
            them.
        blocks: the smallest n and expected of the comparisons behind it, where a seed is missing.
        undecidable: the comparisons of a method of which none could come out with so few seeds, of
            the method with the most; 0 where all methods have one that could.
    """

    best: dict[str, set[Group]]
    unbeaten: dict[str, set[Group]]
    blocks: tuple[int, int] | None
    undecidable: int


def mark_best(groups: list[Group], quantities: list[Metric]) -> BestMarks:
    """The best of every problem, and what no other method of the problem is significantly better
    than.

    A method whose seeds are too few for any of its comparisons to come out is not marked: nothing
    is known of it.
    """
    best, unbeaten = ({quantity.name: set[Group]() for quantity in quantities} for _ in range(2))
    incomplete: list[tuple[int, int]] = []
    undecidable = 0
    for quantity in quantities:
        for arena_groups in group_by_arena(groups) if quantity.better else ():
            rivals = [group for group in arena_groups if np.isfinite(group.values(quantity)).any()]
            if len(rivals) < 2:
                continue
            p, counts = compare_sides(align_seeds(rivals, quantity))
            beaten, is_judged = find_beaten(p, counts)
            undecidable = max(undecidable, 0 if is_judged.all() else len(rivals) - 1)
            expected = np.array([group.expected for group in rivals])
            expected = np.maximum(expected[:, None], expected)
            is_short = np.triu(counts < expected, 1)
            incomplete += zip(counts[is_short].tolist(), expected[is_short].tolist(), strict=True)
            kept = {rivals[i] for i in np.flatnonzero(is_judged & ~beaten)}
            unbeaten[quantity.name] |= kept
            scores = [(g, s) for g, s in score_groups(rivals, quantity).items() if g in kept]
            least = min((score for _, score in scores), default=None)
            best[quantity.name] |= {group for group, score in scores if score == least}
    return BestMarks(best, unbeaten, min(incomplete, default=None), undecidable)


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
    winners: list[Group | None] = []
    can_be_told = False
    for arena_groups in selection.arenas:
        # It takes part with a value, or with good cells that never got to one.
        rivals = [
            group
            for group in arena_groups
            if (group.n if quantity.censored else np.isfinite(group.values(quantity)).any())
        ]
        is_lacking = (arena_groups[0].arena, quantity.name) in selection.lacks
        if is_lacking or len(rivals) < 2:
            continue
        winner, could_be_told = find_winner(*compare_sides(align_seeds(rivals, quantity)))
        can_be_told |= could_be_told
        winners.append(None if winner is None else rivals[winner])
    if not can_be_told:
        return ""
    places = gather((best.algorithm_label, best.problem_label) for best in winners if best)
    if not places:
        return f"{quantity.symbol}: {NO_WINNER}"
    named = "; ".join(f"{label} is best on {list_names(on)}" for label, on in places.items())
    line = f"{quantity.symbol}: {named} (every other method is significantly worse)"
    return line + f"; elsewhere {NO_WINNER}" * (None in winners)


def align_seeds(groups: list[Group], quantity: Metric) -> Array:
    """The values of some groups by seed, (groups, seeds), higher is worse; NaN where a group has
    none.

    What never got there is worse than any value, by a finite distance, as in `pair_difference`.
    """
    seeds = reduce(np.union1d, [group.seeds for group in groups])
    held = [-quantity.sign * group.values(quantity) for group in groups]
    if quantity.censored:
        known = np.concatenate(held)
        known = known[~np.isnan(known)]
        never = 2 * known.max() - known.min() + 1 if len(known) else 0.0
        held = [np.where(np.isnan(values), never, values) for values in held]
    aligned = np.full((len(groups), len(seeds)), np.nan)
    for row, group, values in zip(aligned, groups, held, strict=True):
        row[np.searchsorted(seeds, group.seeds)] = values
    return aligned


def select_paired(groups: list[Group], titles: Sequence[str] | None) -> list[Group]:
    """The groups that share problem and T with another one; with titles, with one of these
    algorithms'.
    """
    return [
        group
        for arena_groups in group_by_arena(group for group in groups if group.n)
        if len(arena_groups) > 1
        and (titles is None or any(group.algorithm in titles for group in arena_groups))
        for group in arena_groups
    ]


def compare_pairs(selection: Selection, against: str | Iterable[str] | None = None) -> Comparison:
    """Differences by seed to the best algorithm of each problem and quantity, to a named one, or to
    the best of some.

    Args:
        against: title, label or name of one algorithm, or of several.

    Raises:
        Misuse: no such algorithm, or a word for several; no algorithm to pair, or none that can be
            paired.
    """
    titles = None
    if against is not None:
        titles = [find_algorithm(selection.run, word) for word in words_of("against", against)]
    notes = collect_fair_notes(selection, select_paired(selection.groups, titles), "paired")
    refuse_lacks(selection)
    frame = differences(selection, titles)
    if frame.empty:
        raise Misuse(
            f"{selection.run} holds no two algorithms with values on one problem: nothing to pair"
        )
    pooled = _pool_rows(frame) if titles is not None else []
    frame = frame.drop(columns="apart")
    if selection.by == "algorithm":
        order = list(dict.fromkeys(group.algorithm for group in selection.groups))
        frame = frame.sort_values(
            "algorithm", key=lambda a: a.map(order.index), kind="stable", ignore_index=True
        )
    family = "a metric and T" if "horizon" in _name_family(frame) else "a metric"
    undecidable = _describe_undecidable(frame)
    lines = [
        PAIRED.format(around=describe_median_interval(frame["n"]), family=family),
        *(f"problem by problem {line}" if pooled else line for line in undecidable),
    ]
    shown: list[int] = []
    if pooled:
        lines.append(POOLED)
        first = frame["p_holm"].sort_values(kind="stable").index[:MOST_ROWS]
        shown = [*range(len(pooled)), *(len(pooled) + i for i in sorted(first))]
        columns = [*frame, "better_on", "worse_on"]
        frame = pd.DataFrame([*pooled, *frame.to_dict("records")], columns=columns)
        frame = frame.astype(dict.fromkeys(("horizon", "better_on", "worse_on"), "Int64"))
    table = render_differences(frame, selection, "\n".join(lines))
    table = replace(table, shown=shown if len(shown) < len(frame) else ())
    return Comparison(frame, table.with_note(notes), unplayable=selection.unplayable)


def differences(selection: Selection, titles: Sequence[str] | None = None) -> pd.DataFrame:
    """Every algorithm against the best of its problem, or of those with some titles.

    Returns:
        One row per problem, quantity and algorithm: titles and labels, `against` and its label,
        `expected`, and the values of `pair_difference` of algorithm - against with `p_holm`,
        adjusted over all rows of a quantity (and of a horizon, where a problem has several).
    """
    rows = []
    for arena_groups in selection.arenas:
        for quantity in selection.shown:
            if (arena_groups[0].arena, quantity.name) in selection.lacks:
                continue  # nothing could be reached, so that equal seeds would be no tie
            named = [g for g in arena_groups if titles is None or g.algorithm in titles]
            reference = find_best(named, quantity)
            for group in arena_groups:
                if titles and named:
                    # The best of some is chosen on the seeds on which it is judged. One that is
                    # named is compared with even where it never got anywhere.
                    reference = find_best(named, quantity, group.seeds) or named[0]
                if reference is None or group is reference:
                    continue
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
    frame = pd.DataFrame(rows)
    if rows:
        families = frame.groupby(_name_family(frame), sort=False)["p"]
        frame["p_holm"] = families.transform(lambda p: holm(p.to_numpy()))
    return frame


def _name_family(frame: pd.DataFrame) -> list[str]:
    """The columns that tests of one family share: else those of one horizon would weaken those of
    another.
    """
    several = (frame.groupby("problem")["horizon"].nunique() > 1).any()
    return ["metric", "horizon"] if several else ["metric"]


def pool_problems(tests: Iterable[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    """A row per algorithm and metric that has rows of several problems, with the test whose strata
    these are (see `signed_rank`), and `parts`, the rows behind it.

    Args:
        tests: rows with `apart` (see `pair_difference`).
    """
    problems: dict[tuple[str, str], dict[str, Mapping[Any, Any]]] = {}
    for row in tests:
        rows_by_problem = problems.setdefault((row["algorithm"], row["metric"]), {})
        longest = rows_by_problem.get(row["problem"], row)
        # Two horizons of one play are no two problems: the longer one counts.
        if row["horizon"] >= longest["horizon"]:
            rows_by_problem[row["problem"]] = row
    rows = []
    for (algorithm, metric), rows_by_problem in problems.items():
        if len(parts := list(rows_by_problem.values())) > 1:
            p, effect = signed_rank(*(row["apart"] for row in parts))
            horizon, *others = {row["horizon"] for row in parts}
            row = {
                "problem": None,
                "problem_label": ALL,
                "algorithm": algorithm,
                "metric": metric,
                "horizon": None if others else horizon,
                "algorithm_label": parts[0]["algorithm_label"],
                "parts": parts,
                **{name: sum(row[name] for row in parts) for name in SUMMED},
                "p": p,
                "effect": effect,
            }
            rows.append(row)
    return rows


def _pool_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of `differences` over all problems; those of a metric are a family of tests. One of
    several references has rows only where it is not the best of them, and no such row.
    """
    is_rival = ~frame["algorithm"].isin(frame["against"])
    rows = pool_problems(frame[is_rival & (frame["n"] > 0)].to_dict("records"))
    for row in rows:
        parts = row.pop("parts")
        # Problems without a common seed count, too.
        rival = (frame["algorithm"] == row["algorithm"]) & (frame["metric"] == row["metric"])
        row |= {
            "expected": frame[rival].drop_duplicates("problem")["expected"].sum(),
            "defined": sum(part["defined"] for part in parts),
            "against_label": " or ".join(dict.fromkeys(part["against_label"] for part in parts)),
            "better_on": sum(part["effect"] > 0 for part in parts),
            "worse_on": sum(part["effect"] < 0 for part in parts),
        }
    for family in gather((row["metric"], row) for row in rows).values():
        for row, p in zip(family, holm([row["p"] for row in family]).tolist(), strict=True):
            row["p_holm"] = p
    return rows


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


def _describe_undecidable(frame: pd.DataFrame) -> list[str]:
    """A line where no difference of some metric could be significant, whatever its signs."""
    families = [rows["n"] for _, rows in frame[frame["n"] > 0].groupby(_name_family(frame))]
    most = max((len(n) for n in families if not decidable(int(n.max()), len(n))), default=0)
    return [
        f"too few seeds for any difference to be significant: {describe_need(most)}, there are "
        f"{frame['n'].max()}"
    ] * (most > 0)


def find_algorithm(run: Run, word: str) -> str:
    """The title of one algorithm.

    Raises:
        Misuse: none of that name, or several.
    """
    title, *others = run.titles("algorithm", word)
    if others:
        titles = [title, *others]
        raise Misuse(
            f"{show(word)} names {len(titles)} algorithms of this run; give one of: "
            f"{', '.join(titles)}"
        )
    return title


def render_differences(frame: pd.DataFrame, selection: Selection, note: str) -> TextTable:
    """Paired differences for readers, in the rows' order; the algorithm is first where rows are by
    it.
    """
    quantities = {quantity.name: quantity for quantity in selection.shown}
    rows = frame.to_dict("records")
    columns = {"problem": [*frame["problem_label"]]}
    if frame["horizon"].nunique() > 1:
        columns["T"] = ["–" if pd.isna(t) else str(t) for t in frame["horizon"]]
    metrics = frame["metric"].unique()
    if len(metrics) > 1:
        columns["metric"] = [quantities[name].symbol for name in frame["metric"]]
    algorithms = {"algorithm": [*frame["algorithm_label"]]}
    columns = algorithms | columns if selection.by == "algorithm" else columns | algorithms
    columns["against"] = [*frame["against_label"]]
    left = len(columns)
    columns |= {
        "n": [f"{row['n']}/{row['expected']}" for row in rows],
        "median difference": [_format_difference(row) for row in rows],
        "mean difference": [
            format_interval(row["mean"], row["mean_low"], row["mean_high"]) for row in rows
        ],
        "p (Holm)": [format_p(p) for p in frame["p_holm"]],
        "effect": ["–" if np.isnan(effect) else f"{effect:+.2f}" for effect in frame["effect"]],
        "w/t/l": [f"{row['wins']}/{row['ties']}/{row['losses']}" for row in rows],
    }
    heading = f"{selection.title}: paired differences"
    if len(metrics) == 1:
        only = quantities[metrics[0]]
        heading += f", {only.label.removesuffix(only.symbol).strip()} ({only.symbol})"
    heading += selection.units
    weights = [0] * (left + 2) + [4, 2, 3, 1]
    return TextTable(
        [*columns],
        list(zip(*columns.values(), strict=True)),
        heading,
        note,
        left=left,
        weights=weights,
        caption=_write_caption(frame, selection),
    )


def _write_caption(frame: pd.DataFrame, selection: Selection) -> str:
    """Two sentences for a paper: what the differences are of, and what their columns mean."""
    quantities = [q for q in selection.shown if q.name in set(frame["metric"])]
    rival, *others = frame["against_label"].unique()
    around, least, most = describe_median_interval(frame["n"]), min(frame["n"]), max(frame["n"])
    seeds = f"{least} to " * (least < most) + count_noun(most, "seed")
    return (
        f"{join_labels(quantities)}: differences to {'the method beside it' if others else rival}, "
        f"paired by seed, median [{around}] "
        f"over {seeds}. †: significant at 5 % (p: Wilcoxon's signed-rank test, Holm over the rows "
        "of a metric); effect: 1 where better in every seed, -1 where worse; w/t/l: seeds in which "
        "it is better, equal, worse."
    )


def _format_difference(row: Mapping[Any, Any]) -> str:
    """A median difference with its mark, and in how many seeds both are defined where that is not
    all.
    """
    if pd.isna(row["problem"]):
        text = f"better on {row['better_on']}, worse on {row['worse_on']}"
    else:
        text = format_interval(row["median"], row["median_low"], row["median_high"])
        text += f" {row['defined']}/{row['n']}" * (row["defined"] < row["n"])
    return Marked(text) if row["p_holm"] < SIGNIFICANT else text


def format_p(p: float) -> str:
    """A p-value: three decimals, or that it is below 0.001."""
    return "–" if np.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
