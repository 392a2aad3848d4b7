"""Rounds to a target of simple regret, from the recorded rounds, a part of a file at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from cbobench.errors import Misuse, show
from cbobench.report.groups import Group
from cbobench.report.load import Run
from cbobench.report.quantities import Array, Quantity
from cbobench.results.rows import positions
from cbobench.results.schema import schema

CURVE = "simple_regret"


def undefined(found: Iterable[Group]) -> dict[str, list[str]]:
    """Labels of the problems without any simple regret, though feasible actions were played, by the reason."""
    groups: dict[str, list[Group]] = {}
    for group in found:
        groups.setdefault(group.problem_label, []).append(group)
    result: dict[str, list[str]] = {}
    for label, some in groups.items():
        goods = [group.good for group in some]
        if all(good[CURVE].isna().all() for good in goods) and any(
            good["first_feasible"].notna().any() for good in goods
        ):
            unknown = any(group.unmeasured for group in some)
            why = "where no optimum is known" if unknown else "where functions move"
            result.setdefault(why, []).append(label)
    return result


def rounds_to(target: float) -> Quantity:
    """The quantity that `reach` adds."""
    label = f"First recorded round with a simple regret of at most {target:g}"
    return Quantity("rounds_to_target", f"t(r ≤ {target:g})", label, bounds=(1, None), whole=True, censored=True)


def reach(run: Run, found: list[Group], target: float) -> None:
    """Give the cells of some groups a column `rounds_to_target`, NaN where the target was not reached.

    Memory grows with the cells, and not with what was recorded.

    Raises:
        Misuse: a target that is no number or negative, or a run that records no simple regret.
    """
    number = isinstance(target, (int, float)) and not isinstance(target, bool) and math.isfinite(target)
    if not number or target < 0:
        raise Misuse(f"target is {show(target)}; simple regret is never negative: give 0 or more, in the units of f")
    goals = {cell: np.array([float(target)]) for group in found for cell in group.good["cell"]}
    first = first_rounds(run, goals)
    for group in found:
        group.good["rounds_to_target"] = [first[cell][0] for cell in group.good["cell"]]


def first_rounds(run: Run, goals: Mapping[str, Array]) -> dict[str, Array]:
    """The first recorded round of some cells with a simple regret of at most each goal.

    Args:
        goals: (k,) by cell id, the same k for all, none larger than the one before it.

    Returns:
        (k,) by cell id; NaN where it was never reached.
    """
    if CURVE not in schema("rounds").names:
        raise Misuse("rounds to a target need the metric simple_regret, which this run does not record")
    result: dict[str, Array] = {}
    for task, cells in run.played.by_task(goals).items():
        position = {cell: i for i, cell in enumerate(cells)}
        wanted = np.array([goals[cell] for cell in cells])
        first = np.full(wanted.shape, np.inf)
        for part in run.folder.row_groups(run.folder.steps, task, ["cell", "t", CURVE]):
            row = positions(part, position)
            t, values = part["t"].to_numpy(), part[CURVE].to_numpy()
            hit = row >= 0
            for k in range(wanted.shape[1]):
                row, t, values = row[hit], t[hit], values[hit]
                with np.errstate(invalid="ignore"):
                    hit = values <= wanted[row, k]
                np.minimum.at(first[:, k], row[hit], t[hit])
        first[np.isinf(first)] = np.nan
        result |= {cell: first[i] for cell, i in position.items()}
    return result
