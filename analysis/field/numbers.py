"""The numbers of docs/field.md and the pages below it, from the bundles alone, as `cbobench
compare` has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.bundles import list_played
from analysis.field.groups import GROUPS, bundles_of, plain
from cbobench.metrics import Array
from cbobench.report.field import group_of, open_played
from cbobench.report.groups import Group, find_groups
from cbobench.report.quantities import (
    fill_unreached,
    find_first_rounds,
    find_spread,
    restore_infinite,
    rounds_to_target,
)
from cbobench.report.selection import Selection
from cbobench.report.tables.duels import FLOORS, duel, find_ranks
from cbobench.report.tables.formats import Comparison
from cbobench.suite.variants import Variant


class Field:
    """What the bundles of a group say.

    Args:
        name: of the group.
        bundles: all that its page shows.
    """

    def __init__(self, name: str, bundles: Sequence[Path]) -> None:
        self.name, self.section = name, GROUPS[name]
        self.bundles, self.run = list(bundles), open_played(bundles)

    @cached_property
    def groups(self) -> list[Group]:
        """Each method on each problem, those that have cells."""
        return [group for group in find_groups(self.run) if group.n]

    @cached_property
    def problems(self) -> list[str]:
        """The problems, as pages call them."""
        return list(dict.fromkeys(plain(group.problem_label) for group in self.groups))

    @cached_property
    def methods(self) -> dict[str, list[Group]]:
        """The methods, as pages call them, with their problems."""
        methods: dict[str, list[Group]] = {}
        for group in self.groups:
            methods.setdefault(plain(group.algorithm_label), []).append(group)
        return methods

    def select(self, metric: str) -> Selection:
        """The whole group by one metric."""
        return Selection(self.run, metric=metric)

    @cached_property
    def evaluations(self) -> dict[tuple[str, str], list[float]]:
        """By method and problem, the median of the first evaluation that reaches each target, over
        the method's own seeds; ∞ where half of them never do.
        """
        goals = {
            cell: goal
            for group in self.groups
            for cell, goal in zip(group.good["cell"], self.find_goals(group), strict=True)
        }
        first = find_first_rounds(self.run, goals)
        quantity = rounds_to_target(0.0)
        return {
            (plain(group.algorithm_label), plain(group.problem_label)): [
                find_median(fill_unreached(column, quantity))
                for column in np.array([first[cell] for cell in group.good["cell"]]).T
            ]
            for group in self.groups
        }

    def find_goals(self, group: Group) -> list[Array]:
        """The targets of each cell of a group, in units of f."""
        return [np.array(self.section.targets) * self.find_spread(group.problem)] * group.n

    def find_spread(self, title: str) -> float:
        """The unit of a problem's targets, in the units of its regret."""
        return 1.0 if self.section.absolute else find_spread(self.variants[title])

    @cached_property
    def variants(self) -> dict[str, Variant]:
        """The problems by title."""
        return self.run.record.variants("problems")

    @cached_property
    def spreads(self) -> dict[str, float]:
        """The unit of targets by problem, as pages call it."""
        return {
            plain(group.problem_label): self.find_spread(group.problem) for group in self.groups
        }

    @property
    def is_alike(self) -> bool:
        """Whether regret has the unit of the targets on all problems."""
        return set(self.spreads.values()) == {1.0}

    def rank(self, metric: str) -> pd.DataFrame:
        """The rows of `rank_solvers` by method, as pages call it."""
        ranks = find_ranks(self.select(metric))
        return ranks.set_index(ranks["label"].map(plain))

    def duel(self, name: str, rounds: Sequence[int | None] = (None,)) -> Comparison:
        """One of ours, as pages call it, against each other method by the first metric."""
        metric, _ = self.section.tables[0]
        title = self.methods[name][0].algorithm
        return duel(self.select(metric), title, FLOORS, rounds)

    @cached_property
    def earlier(self) -> list[int]:
        """The last recorded rounds within a third and two thirds of the horizon."""
        group = self.groups[0]
        (cell, *_) = group.good["cell"]
        ((task, ids),) = self.run.played.by_task([cell]).items()
        (part,) = task.rounds(["cell", "t"], ids)
        recorded = part.to_pandas()["t"]
        earlier = [recorded[recorded <= k * group.horizon / 3] for k in (1, 2)]
        return [rounds.max() for rounds in earlier if len(rounds)]

    @cached_property
    def heads(self) -> list[str]:
        """Those of ours that are held one against one, as pages call them."""
        return [
            name
            for head in self.section.heads
            for name in self.methods
            if name.partition("[")[0] == head
        ]


def open_fields(shards: Iterable[str]) -> dict[str, Field]:
    """The groups that are played, from the bundles in the order of the shards."""
    bundles = list_played(shards)
    return {
        name: Field(name, bundles_of(name, bundles))
        for name in GROUPS
        if any(group_of(bundle.stem) == name for bundle in bundles)
    }


def find_median(values: Array) -> float:
    """The median of values without NaN (`fill_unreached`), infinite where half never got there."""
    return float(restore_infinite(np.median(values))) if len(values) else np.nan


def count_reached(rows: Sequence[Sequence[float]]) -> list[tuple[int, float]]:
    """Of medians (problems, targets), on how many problems each target is reached, and the median
    over all problems.
    """
    return [
        (int(np.isfinite(column).sum()), float(np.median(column))) for column in np.array(rows).T
    ]
