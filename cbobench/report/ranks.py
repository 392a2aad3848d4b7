"""Many problems at once: average ranks, and which methods no other is significantly better than."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.metrics import Array, Metric
from cbobench.report.formats import Comparison
from cbobench.report.groups import Group, group_by_arena
from cbobench.report.notes import collect_fair_notes, refuse_lacks
from cbobench.report.numbers import format_number
from cbobench.report.paired import describe_need
from cbobench.report.quantities import UNREACHED, fill_unreached, is_reached
from cbobench.report.selection import Selection
from cbobench.report.text_table import BEST, Best, Marked, TextTable
from cbobench.stats import rank_tests as stats
from cbobench.stats.paired_tests import compare_sides, find_beaten
from cbobench.words import list_names

SharedSeeds = dict[tuple[str, int], frozenset[int]]
"""By arena, the seeds that all ranked algorithms were asked for."""


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
    groups, quantities = selection.groups, selection.shown
    notes = collect_fair_notes(selection, groups, "ranks")
    refuse_lacks(selection)
    titles, labels = _find_common_algorithms(groups)
    absent = sorted({group.algorithm_label for group in groups} - set(labels.values()))
    gaps = ", ".join(_describe_gaps(groups, absent))
    if len(titles) < 2:
        lacking = f", which these lack: {gaps}" if absent else ""
        raise Misuse(
            f"ranks need two algorithms that have good cells on every problem{lacking}; choose "
            "with --only"
        )
    # By arena: whatever the metric, the same seeds count.
    seeds = {
        arena_groups[0].arena: _find_shared_seeds(arena_groups, titles)
        for arena_groups in selection.arenas
    }
    rows: list[dict[str, Any]] = []
    counts, undecidable = [], []
    for quantity in quantities:
        blocks, without = _compute_medians(selection, titles, quantity, seeds)
        expected = len(blocks) + len(without)
        average = stats.average_ranks(blocks, quantity.better or "lower")
        beaten, is_judged = find_beaten(
            *compare_sides(stats.ranks(blocks, quantity.better or "lower").T)
        )
        is_decidable = bool(is_judged.all())
        count = f"{quantity.symbol} {len(blocks)}/{expected}"
        counts.append(f"{count} (not on {list_names(without)})" if without else count)
        undecidable += [] if is_decidable else [f"{quantity.symbol} {len(blocks)}"]
        least = min(
            (rank for rank, lost in zip(average, beaten, strict=True) if not lost), default=np.nan
        )
        for algorithm, rank, lost in zip(titles, average, beaten, strict=True):
            row = {
                "metric": quantity.name,
                "algorithm": algorithm,
                "algorithm_label": labels[algorithm],
                "rank": rank,
                "blocks": len(blocks),
                "expected": expected,
                "friedman_p": stats.friedman(blocks)[1],
                "beaten": bool(lost) if is_decidable else None,
                "best": bool(is_decidable and not lost and rank == least),
            }
            rows.append(row)
    frame = pd.DataFrame(rows)
    # The table is by the rank in its first metric; rows are metric by metric, and NaN is last.
    first_ranks = {row["algorithm"]: row["rank"] for row in rows[: len(titles)]}
    by_rank = sorted(
        titles, key=lambda algorithm: np.nan_to_num(first_ranks[algorithm], nan=np.inf)
    )
    cells = [
        [labels[algorithm], *(_format_rank(row) for row in rows if row["algorithm"] == algorithm)]
        for algorithm in by_rank
    ]
    note = (
        "average rank over problems by the median over seeds (a failed one is worse than any "
        "value), 1 is best; "
        f"problems on which all algorithms have a value, of those asked for: {', '.join(counts)}"
    )
    if any(isinstance(cell, Marked) for row in cells for cell in row):
        note += f"; {BEST}; * no method is significantly better (Wilcoxon by problem, Holm, 5 %)"
    if undecidable:
        need = describe_need(len(titles) - 1, "of a method", sides=1, unit="problems")
        note += (
            f"\ntoo few problems to mark who is best: {need}, there are {', '.join(undecidable)}"
        )
    if shared := _describe_shared_seeds(groups, titles, seeds):
        note += f"\n{shared}"
    if absent:
        note += f"\nleft out, as they lack good cells on some problems: {gaps}"
    columns, weights = ["algorithm", *(q.symbol for q in quantities)], [0, *range(len(quantities))]
    table = TextTable(columns, cells, f"{selection.title}: ranks", note, left=1, weights=weights)
    return Comparison(frame, table.with_note(notes), unplayable=selection.unplayable)


def _format_rank(row: dict[str, Any]) -> str:
    """A rank with its mark; none where the problems are too few for one."""
    text = format_number(row["rank"])
    return Best(text) if row["best"] else Marked(text) if row["beaten"] is False else text


def _find_common_algorithms(groups: list[Group]) -> tuple[list[str], dict[str, str]]:
    """Titles of the algorithms that have good cells in every arena, in order, and their labels."""
    sets = [
        {group.algorithm for group in arena_groups if group.n}
        for arena_groups in group_by_arena(groups)
    ]
    if not any(sets):
        raise Misuse("no cell is good yet, so nothing can be ranked; see cbobench status")
    titles = [
        title
        for title in dict.fromkeys(group.algorithm for group in groups)
        if all(title in s for s in sets)
    ]
    return titles, {
        group.algorithm: group.algorithm_label for group in groups if group.algorithm in titles
    }


def _compute_medians(
    selection: Selection, titles: list[str], quantity: Metric, seeds: SharedSeeds
) -> tuple[Array, list[str]]:
    """Medians on the problems where all algorithms have one, (problems, algorithms), and the labels
    of the others.
    """
    medians: list[list[float]] = []
    labels: list[str] = []
    for arena_groups in selection.arenas:
        if (arena_groups[0].arena, quantity.name) in selection.lacks:
            continue  # no method could have a value, so that equal medians would be no tie
        by_algorithm = {group.algorithm: group for group in arena_groups}
        shared = seeds[arena_groups[0].arena]
        labels.append(arena_groups[0].problem_label)
        medians.append([_compute_median(by_algorithm[title], quantity, shared) for title in titles])
    values = np.array(medians).reshape(-1, len(titles))
    lacking = np.isnan(values).any(axis=1)
    return values[~lacking], [label for label, lacks in zip(labels, lacking, strict=True) if lacks]


def _describe_gaps(groups: list[Group], labels: Sequence[str]) -> list[str]:
    """Each of some methods with the problems on which it has no good cell."""
    arenas = {group.arena: group.problem_label for group in groups}
    described = []
    for label in labels:
        held = {group.arena for group in groups if group.algorithm_label == label and group.n}
        gaps = list_names(problem for arena, problem in arenas.items() if arena not in held)
        described.append(f"{label} (on {gaps})")
    return described


def _find_shared_seeds(arena_groups: list[Group], titles: list[str]) -> frozenset[int]:
    """The seeds that all of some algorithms were asked for.

    Raises:
        Misuse: there are none.
    """
    ranked = [group for group in arena_groups if group.algorithm in titles]
    shared = frozenset.intersection(*(group.expected_seeds for group in ranked))
    if not shared:
        first = ranked[0]
        disjoint = next(
            (group for group in ranked if not group.expected_seeds & first.expected_seeds),
            ranked[-1],
        )
        raise Misuse(
            f"the methods share no seed on {first.problem_label}, so they cannot be ranked: "
            f"{first.algorithm_label} and {disjoint.algorithm_label} have others; choose with "
            "--only, or play the same"
        )
    return shared


def _describe_shared_seeds(groups: list[Group], titles: list[str], seeds: SharedSeeds) -> str:
    """How many seeds count, where an algorithm has others; empty where all have the same."""
    seed_counts = [group.expected for group in groups if group.algorithm in titles]
    if all(
        group.expected_seeds == seeds[group.arena] for group in groups if group.algorithm in titles
    ):
        return ""
    counts = [len(shared) for shared in seeds.values()]
    span = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return f"by the {span} seeds that all algorithms were asked for, of up to {max(seed_counts)}"


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
