"""Many problems at once: average ranks, and which methods no other is significantly better than."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.metrics import Array, Metric
from cbobench.report.groups import Arena, Group, group_by
from cbobench.report.notes import collect_notes
from cbobench.report.quantities import UNREACHED, fill_unreached, is_reached
from cbobench.report.selection import Selection
from cbobench.report.tables.formats import Comparison
from cbobench.report.tables.paired import describe_need, refuse_untestable
from cbobench.report.tables.table import BEST, Marked, TextTable, format_number, mark_cell
from cbobench.stats import paired_tests as stats
from cbobench.stats.paired_tests import compare_sides, find_beaten
from cbobench.words import count_span, list_names


def rank_algorithms(selection: Selection) -> Comparison:
    """Average ranks over problems by the median over the seeds that all algorithms were asked for,
    1 for the best.

    A method with other seeds, as in a union, would be ranked by other instances. A seed that
    failed, or never reached what may never be reached, is worse than any value. Ranks depend on
    which algorithms are compared.

    Raises:
        Misuse: fewer than two algorithms with good cells on every problem, or nothing that can be
            ranked.
    """
    labels, gaps, arenas, seeds = _find_ranked(selection)
    parts: list[pd.DataFrame] = []
    columns: dict[str, Sequence[str]] = {"algorithm": [*labels.values()]}
    counts = []
    undecidable = []
    for quantity in selection.shown:
        better = quantity.better or "lower"
        blocks, without = _compute_medians(selection, arenas, quantity, seeds)
        average = stats.average_ranks(blocks, better)
        beaten, is_judged = find_beaten(*compare_sides(stats.ranks(blocks, better).T))
        expected = len(blocks) + len(without)
        count = f"{quantity.symbol} {len(blocks)}"
        lacking = f" (not on {list_names(without)})" if without else ""
        counts.append(f"{count}/{expected}{lacking}")

        # Where too few problems could tell, nothing is known of any method.
        is_decidable = bool(is_judged.all())
        if not is_decidable:
            undecidable.append(count)
        is_unbeaten = ~beaten & is_decidable
        is_best = is_unbeaten & (average == min(average[~beaten], default=np.nan))
        part = pd.DataFrame(
            {
                "metric": quantity.name,
                "algorithm": [*labels],
                "algorithm_label": columns["algorithm"],
                "rank": average,
                "blocks": len(blocks),
                "expected": expected,
                "beaten": beaten if is_decidable else None,
                "best": is_best,
            }
        )
        parts.append(part)
        texts = map(format_number, average)
        columns[quantity.symbol] = [*map(mark_cell, texts, is_best, is_unbeaten)]
    # The table is by the rank in its first metric; NaN is last.
    rows = [*zip(*columns.values(), strict=True)]
    table_rows = [rows[i] for i in np.argsort(parts[0]["rank"].to_numpy(), kind="stable")]
    note = (
        "average rank over problems by the median over seeds (a failed one is worse than any "
        "value), 1 is best; "
        f"problems on which all algorithms have a value, of those asked for: {', '.join(counts)}"
    )
    if any(isinstance(cell, Marked) for row in rows for cell in row):
        note += f"; {BEST}; * no method is significantly better (Wilcoxon by problem, Holm, 5 %)"
    if undecidable:
        need = describe_need(len(labels) - 1, "of a method", sides=1, unit="problems")
        note += (
            f"\ntoo few problems to mark who is best: {need}, there are {', '.join(undecidable)}"
        )
    ranked = [group for rivals in arenas.values() for group in rivals]
    if any(group.expected_seeds != seeds[group.arena] for group in ranked):
        span = count_span([*map(len, seeds.values())], "seed")
        asked = max(group.expected for group in ranked)
        note += f"\nby the {span} that all algorithms were asked for, of up to {asked}"
    if gaps:
        note += f"\nleft out, as they lack good cells on some problems: {gaps}"
    table = TextTable(
        columns=[*columns],
        rows=table_rows,
        title=f"{selection.title}: ranks",
        note=note,
        left=1,
        weights=[*range(len(columns))],
    )
    table = table.with_note(collect_notes(selection, selection.groups))
    return Comparison(pd.concat(parts, ignore_index=True), table, unplayable=selection.unplayable)


def rank_solvers(selection: Selection) -> pd.DataFrame:
    """Average ranks as of `rank_algorithms`, by the first quantity, with one entry per solver: all
    variants of an algorithm are one, whose entry is the best of them by these very plays.

    Returns:
        A row per algorithm, a solver's entry first and its variants below it: `algorithm`, `label`,
        `rank`, `is_variant`, and `seeds`, how many all share at least. The rank of a variant is
        that which it has in place of its solver's entry.

    Raises:
        Misuse: as of `rank_algorithms`, or there is one solver.
    """
    labels, _, arenas, seeds = _find_ranked(selection)
    quantity, *_ = selection.shown
    blocks, _ = _compute_medians(selection, arenas, quantity, seeds)
    better = quantity.better or "lower"

    variants = selection.run.record.variants("algorithms")
    frame = pd.DataFrame({"algorithm": [*labels], "label": [*labels.values()]})
    frame["solver"] = [variants[title].name for title in labels]
    if frame["solver"].nunique() < 2:
        raise Misuse("all methods are variants of one: there is no other solver to rank")
    frame["rank"] = stats.average_ranks(blocks, better)
    frame["is_variant"] = frame.sort_values("rank", kind="stable").duplicated("solver")
    for place, solver in enumerate(frame["solver"]):
        is_other = ~frame["is_variant"] & (frame["solver"] != solver)
        entries = [place, *np.flatnonzero(is_other)]
        frame.loc[place, "rank"] = stats.average_ranks(blocks[:, entries], better)[0]

    first = frame["solver"].map(frame[~frame["is_variant"]].set_index("solver")["rank"])
    order = frame.assign(first=first).sort_values(["first", "solver", "is_variant", "rank"]).index
    return frame.assign(seeds=min(map(len, seeds.values()))).loc[order].reset_index(drop=True)


def _find_ranked(
    selection: Selection,
) -> tuple[dict[str, str], str, dict[Arena, list[Group]], dict[Arena, frozenset[int]]]:
    """What is ranked: labels by title; who is left out; by arena the groups, in the same order, and
    the seeds that count, whatever the metric.

    Raises:
        Misuse: as of `rank_algorithms`.
    """
    refuse_untestable(selection, selection.groups)
    labels, gaps = _find_common_algorithms(selection)
    if len(labels) < 2:
        lacking = f", which these lack: {gaps}" if gaps else ""
        raise Misuse(
            f"ranks need two algorithms that have good cells on every problem{lacking}; choose "
            "with --only"
        )
    ranked = [group for title in labels for group in selection.groups if group.algorithm == title]
    arenas = group_by(ranked, "arena")
    seeds = {arena: _find_shared_seeds(rivals) for arena, rivals in arenas.items()}
    return labels, gaps, arenas, seeds


def _find_common_algorithms(selection: Selection) -> tuple[dict[str, str], str]:
    """The labels, by title, of the algorithms that have good cells in every arena; and the others,
    by label, each with the problems on which it has none.
    """
    if not any(group.n for group in selection.groups):
        raise Misuse("no cell is good yet, so nothing can be ranked; see cbobench status")
    common = {}
    described = {}
    for title, groups in group_by(selection.groups, "algorithm").items():
        held = {group.arena for group in groups if group.n}
        label = groups[0].algorithm_label
        lacking = [
            rivals[0].problem_label
            for arena, rivals in selection.arenas.items()
            if arena not in held
        ]
        if lacking:
            described[label] = f"{label} (on {list_names(lacking)})"
        else:
            common[title] = label
    return common, ", ".join(described[label] for label in sorted(described))


def _compute_medians(
    selection: Selection,
    arenas: dict[Arena, list[Group]],
    quantity: Metric,
    seeds: dict[Arena, frozenset[int]],
) -> tuple[Array, list[str]]:
    """Medians on the problems where all algorithms have one, (problems, algorithms), and the labels
    of the others.

    Args:
        arenas: the groups that are ranked; those of each are of the same algorithms.
        seeds: by arena, those that all ranked algorithms were asked for.
    """
    medians = []
    without = []
    for arena, rivals in arenas.items():
        if (arena, quantity.name) in selection.lacks:
            continue  # no method could have a value, so that equal medians would be no tie
        row = [_compute_median(group, quantity, seeds[arena]) for group in rivals]
        if np.isnan(row).any():
            without.append(rivals[0].problem_label)
        else:
            medians.append(row)
    return np.array(medians).reshape(-1, len(rivals)), without


def _find_shared_seeds(ranked: list[Group]) -> frozenset[int]:
    """The seeds that all algorithms of an arena were asked for.

    Raises:
        Misuse: there are none.
    """
    shared = frozenset.intersection(*(group.expected_seeds for group in ranked))
    if not shared:
        first, *others = ranked
        apart = [g for g in others if g.expected_seeds.isdisjoint(first.expected_seeds)]
        disjoint = [*apart, ranked[-1]][0]
        raise Misuse(
            f"the methods share no seed on {first.problem_label}, so they cannot be ranked: "
            f"{first.algorithm_label} and {disjoint.algorithm_label} have others; choose with "
            "--only, or play the same"
        )
    return shared


def _compute_median(group: Group, quantity: Metric, seeds: frozenset[int]) -> float:
    """Over the good and the failed ones of some seeds; NaN if no good one has a value, unless all
    failed.
    """
    held = group.values(quantity)[np.isin(group.seeds, [*seeds])]
    values = fill_unreached(held, quantity)
    failed = len(group.failures & seeds)
    if not len(values) and (len(held) or not failed):
        return np.nan  # good cells without a value, or none of any kind
    median = np.median([*values, *[-quantity.sign * UNREACHED] * failed])
    # halfway between a value and UNREACHED counts as unreached
    return float(median if is_reached(median) else np.sign(median) * UNREACHED)
