"""Many problems at once: average ranks with their critical difference, and profiles against fixed references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cbobench.errors import Misuse
from cbobench.report.formats import Marked, TextTable, format_number
from cbobench.report.groups import Group, group_by_arena
from cbobench.report.load import Run
from cbobench.report.profiles import COCO_PRECISIONS, PRECISIONS, SHARES, check_regret_known, performance, share_solved
from cbobench.report.quantities import UNREACHED, Array, Quantity, find_undefined_regret, is_reached
from cbobench.stats import ranks as stats


def rank_algorithms(groups: list[Group], quantities: list[Quantity], title: str) -> tuple[pd.DataFrame, TextTable]:
    """Average ranks over problems by the median over each algorithm's seeds, 1 for the best.

    A seed that failed, or never reached what may never be reached, is worse than any value. Ranks, and the critical
    difference most of all, depend on which algorithms are compared.

    Raises:
        Misuse: fewer than two algorithms with good cells on every problem.
    """
    titles, labels = _find_common_algorithms(groups)
    if len(titles) < 2:
        raise Misuse("ranks need two algorithms that have good cells on every problem; choose with --only")
    rows: list[dict[str, Any]] = []
    differences = []
    for quantity in quantities:
        blocks, expected = _compute_medians(groups, titles, quantity)
        average = stats.average_ranks(blocks, quantity.better or "lower")
        gap = stats.critical_difference(len(titles), len(blocks)) if len(blocks) else np.nan
        p = stats.friedman(blocks)[1]
        differences.append(f"{quantity.symbol} {format_number(gap)} ({len(blocks)}/{expected})")
        for algorithm, rank in zip(titles, average, strict=True):
            row = {"metric": quantity.name, "algorithm": algorithm, "algorithm_label": labels[algorithm], "rank": rank}
            row |= {"blocks": len(blocks), "expected": expected, "critical_difference": gap, "friedman_p": p}
            rows.append(row | {"separable_from_best": bool(rank - average.min() > gap)})
    frame = pd.DataFrame(rows)
    cells = [
        [labels[algorithm]]
        + [
            format_number(row["rank"])
            if row["separable_from_best"] or np.isnan(row["rank"])
            else Marked(format_number(row["rank"]))
            for row in rows
            if row["algorithm"] == algorithm
        ]
        for algorithm in titles
    ]
    note = (
        "average rank over problems by the median over seeds (a failed one is worse than any value), 1 is best; * "
        f"within the critical difference of the best (Nemenyi, 5 %): {', '.join(differences)}; in brackets: problems "
        "on which all algorithms have a value, of those asked for"
    )
    absent = sorted({group.algorithm_label for group in groups} - set(labels.values()))
    if absent:
        note += f"\nleft out, without a good cell on some problem: {', '.join(absent)}"
    weights = [0, *range(len(quantities))]
    return frame, TextTable(
        ["algorithm", *(q.symbol for q in quantities)], cells, f"{title}: ranks", note, left=1, weights=weights
    )


def _find_common_algorithms(groups: list[Group]) -> tuple[list[str], dict[str, str]]:
    """Titles of the algorithms that have good cells in every arena, in order, and their labels."""
    sets = [{group.algorithm for group in arena_groups if len(group.good)} for arena_groups in group_by_arena(groups)]
    if not any(sets):
        raise Misuse("no cell is good yet, so nothing can be ranked; see cbobench status")
    titles = [title for title in dict.fromkeys(group.algorithm for group in groups) if all(title in s for s in sets)]
    return titles, {group.algorithm: group.algorithm_label for group in groups if group.algorithm in titles}


def _compute_medians(groups: list[Group], titles: list[str], quantity: Quantity) -> tuple[Array, int]:
    """Medians on the problems where all algorithms have one, (problems, algorithms), and of how many problems."""
    medians: list[list[float]] = []
    for arena_groups in group_by_arena(groups):
        if quantity.relative and all(group.unmeasured for group in arena_groups):
            continue
        by_algorithm = {group.algorithm: group for group in arena_groups}
        medians.append([_compute_median(by_algorithm[title], quantity) for title in titles])
    values = np.array(medians).reshape(-1, len(titles))
    return values[~np.isnan(values).any(axis=1)], len(values)


def _compute_median(group: Group, quantity: Quantity) -> float:
    """Over the good and the failed seeds; NaN without a good one that has a value."""
    values = quantity.sortable(group.values(quantity))
    median = np.median([*values, *[-quantity.sign * UNREACHED] * group.failed]) if len(values) else np.nan
    # halfway between a value and UNREACHED counts as unreached
    return float(median if is_reached(median) else np.sign(median) * UNREACHED)


def profile_algorithms(
    run: Run, groups: list[Group], title: str, absolute: bool = False
) -> tuple[pd.DataFrame, TextTable]:
    """Performance and data profiles of simple regret, one row per algorithm (see `report.profiles`).

    Args:
        absolute: of COCO's targets, in units of f, instead of those in units of |f*|.

    Raises:
        Misuse: a run that records no simple regret.
    """
    check_regret_known(run, groups)
    precisions = COCO_PRECISIONS if absolute else PRECISIONS
    within, by = performance(groups, precisions, absolute), share_solved(run, groups, SHARES, absolute)
    rows = []
    for algorithm in within:
        algorithm_groups = [group for group in groups if group.algorithm == algorithm]
        row: dict[str, Any] = {"algorithm": algorithm, "algorithm_label": algorithm_groups[0].algorithm_label}
        row |= {
            "n": sum(len(group.good) for group in algorithm_groups),
            "expected": sum(group.expected for group in algorithm_groups),
        }
        row |= {f"within_{p:g}": float(share) for p, share in zip(precisions, within[algorithm], strict=True)}
        row |= {f"solved_by_{s:g}": float(share) for s, share in zip(SHARES, by[algorithm], strict=True)}
        rows.append(row)
    columns = ["algorithm", "n", *(f"r ≤ {p:g}" for p in precisions), *(f"{s:g} T" for s in SHARES)]
    keys = [*(f"within_{p:g}" for p in precisions), *(f"solved_by_{s:g}" for s in SHARES)]
    cells = [
        [row["algorithm_label"], f"{row['n']}/{row['expected']}", *(f"{100 * row[key]:.0f} %" for key in keys)]
        for row in rows
    ]
    listed = f"{', '.join(f'{p:g}' for p in PRECISIONS)} times |f*|"
    unit, targets = ("", "COCO's 41 from 100 to 1e-06, in units of f") if absolute else (" |f*|", listed)
    note = (
        f"r ≤ x: share of the cells asked for whose final simple regret is at most x{unit}; s T: share of (cell, "
        f"target) pairs solved by round s T, targets {targets}; no number of a row depends on another row"
    )
    for why, labels in find_undefined_regret(groups).items():
        note += f"\nnot defined, and so not solved, {why}: {', '.join(labels)}"
    weights = [0, 0, 0, 0, 0, 1, 4, 0, 3, 2, 0]
    return pd.DataFrame(rows), TextTable(columns, cells, f"{title}: profiles", note, left=1, weights=weights)
