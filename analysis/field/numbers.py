"""The numbers of docs/field.md and the pages below it, from the bundles alone, as `cbobench
compare` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.bundles import list_played
from analysis.field.groups import (
    EXACT,
    GROUPS,
    PLAIN,
    REFERENCE,
    bundles_of,
    group_of,
    is_ours,
    is_rival,
    plain,
)
from analysis.field.spreads import read_spreads
from cbobench.errors import Misuse
from cbobench.metrics import Array, Metric
from cbobench.report.groups import Group, find_groups
from cbobench.report.load import Run
from cbobench.report.quantities import (
    fill_unreached,
    find_first_rounds,
    is_in_spreads,
    quantities,
    restore_infinite,
    rounds_to_target,
)
from cbobench.report.selection import Selection
from cbobench.report.tables.paired import differences
from cbobench.report.tables.ranks import rank_algorithms
from cbobench.results.manifest import Manifest
from cbobench.stats.paired_tests import holm, signed_rank
from cbobench.suite.variants import Variant


def open_played(bundles: Iterable[Path]) -> Run:
    """Some bundles read as one, of each only the pairs that it has cells of.

    A bundle's record lists its whole suite, whose methods may have other settings in another one.
    """
    runs = []
    for bundle in bundles:
        run = Run(bundle)
        played = {*zip(run.cells["problem"], run.cells["algorithm"], strict=True)}
        absent = {
            cells.pair.key
            for cells in run.record.cells.by_pair
            if (cells.pair.problem.title, cells.pair.algorithm.title) not in played
        }
        runs.append(Run(run.folders, drop_pairs(run.record, absent), run.parts))
    return Run.union(runs)


def drop_pairs(record: Manifest, keys: set[tuple[str, str]]) -> Manifest:
    """A record without some pairs, nor the methods that occur in no other."""
    left = record.without(keys) or record
    grids = tuple(
        replace(
            grid,
            unplayable=(),
            algorithms=tuple(
                one for one in grid.algorithms if one in [pair.algorithm for pair in grid.pairs]
            ),
        )
        for grid in left.grids
    )
    return replace(left, grids=grids)


@dataclass(frozen=True)
class Pair:
    """A rival beside one of ours on a problem, over the seeds that both have.

    Attributes:
        median, own_median: of the rival and of ours.
        apart: by how much the rival ends better, seed by seed; a seed that only one of the two
            never got anywhere in is farther than any other.
    """

    problem: str
    rival: str
    seeds: int
    median: float
    own_median: float
    apart: tuple[float, ...]

    @property
    def is_defeat(self) -> bool:
        """Whether the rival has the better median."""
        return self.median < self.own_median


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

    @cached_property
    def own(self) -> list[str]:
        """Titles of ours."""
        return [groups[0].algorithm for name, groups in self.methods.items() if is_ours(name)]

    @cached_property
    def rivals(self) -> list[str]:
        """The rivals, as pages call them."""
        return [name for name in self.methods if is_rival(name)]

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
        problem = self.variants[title]
        if self.section.absolute or is_in_spreads(problem):
            return 1.0
        return read_spreads().get(problem.name, 1.0)

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

    def rank(self, metric: str) -> tuple[dict[str, float], int]:
        """Mean ranks by method over the seeds that all share, best first, and how many these are at
        least; nothing where they share none, or none has played every problem.
        """
        try:
            frame = rank_algorithms(self.select(metric)).frame
        except Misuse:
            return {}, 0
        labels = map(plain, frame["algorithm_label"])
        ranked = dict(zip(labels, frame["rank"].tolist(), strict=True))
        seeds = [
            frozenset.intersection(
                *(g.expected_seeds for g in self.groups if g.problem == title and is_in(g, ranked))
            )
            for title in {group.problem for group in self.groups}
        ]
        ordered = sorted(ranked, key=lambda name: np.nan_to_num(ranked[name], nan=np.inf))
        return {name: ranked[name] for name in ordered}, min(map(len, seeds))

    def pair(
        self, metric: str, titles: Sequence[str], is_asked: Callable[[str], bool] = is_rival
    ) -> list[Pair]:
        """Every rival, or other methods that are asked for, on every problem beside the best of
        some of ours, as `compare --against` does.
        """
        frame = differences(self.select(metric), titles) if titles else pd.DataFrame()
        quantity = quantities()[metric]
        by_title = {(group.problem, group.algorithm): group for group in self.groups}
        pairs = []
        for row in frame.to_dict("records"):
            rival = plain(row["algorithm_label"])
            if not is_asked(rival) or not row["n"]:
                continue
            group, reference = (
                by_title[row["problem"], row[one]] for one in ("algorithm", "against")
            )
            shared = np.intersect1d(group.seeds, reference.seeds)
            pairs.append(
                Pair(
                    problem=plain(row["problem_label"]),
                    rival=rival,
                    seeds=row["n"],
                    median=find_median_over(group, shared, quantity),
                    own_median=find_median_over(reference, shared, quantity),
                    apart=tuple(row["apart"].tolist()),
                )
            )
        return pairs

    def pair_best(self, metric: str) -> list[Pair]:
        """Every rival beside the best of ours."""
        return self.pair(metric, self.own)

    def pair_inexact(self, metric: str) -> list[Pair]:
        """Every rival beside the best of ours that are told nothing of the noise; none where all
        are alike.
        """
        if EXACT not in self.methods:
            return []
        exact = self.methods[EXACT][0].algorithm
        return self.pair(metric, [title for title in self.own if title != exact])

    def pair_plain(self, metric: str) -> list[Pair]:
        """Random search and Sobol's points beside the best of ours."""
        return self.pair(metric, self.own, lambda name: name in PLAIN)

    def pair_reference(self, metric: str) -> list[Pair]:
        """Every rival beside `cei`."""
        titles = [
            groups[0].algorithm
            for name, groups in self.methods.items()
            if name.partition("[")[0] == REFERENCE
        ]
        return self.pair(metric, titles)


def open_fields(shards: Iterable[str]) -> dict[str, Field]:
    """The groups that are played, from the bundles in the order of the shards."""
    bundles = list_played(shards)
    return {
        name: Field(name, bundles_of(name, bundles))
        for name in GROUPS
        if any(group_of(bundle.stem) == name for bundle in bundles)
    }


def is_in(group: Group, names: Mapping[str, object]) -> bool:
    """Whether a group's method is one of some."""
    return plain(group.algorithm_label) in names


def find_median(values: Array) -> float:
    """The median of values without NaN (`fill_unreached`), infinite where half never got there."""
    return float(restore_infinite(np.median(values))) if len(values) else np.nan


def find_median_over(group: Group, seeds: NDArray[np.int64], quantity: Metric) -> float:
    """The median of a group over some of its seeds."""
    return find_median(
        fill_unreached(group.values(quantity)[np.isin(group.seeds, seeds)], quantity)
    )


def judge_rivals(pairs: Sequence[Pair]) -> dict[str, tuple[float, float]]:
    """By rival, whether it is better than ours over all problems: p, of Wilcoxon's signed-rank test
    with problems as strata and Holm's adjustment over the rivals, and the effect, above 0 where the
    rival is better.
    """
    by_rival: dict[str, list[tuple[float, ...]]] = {}
    for pair in pairs:
        by_rival.setdefault(pair.rival, []).append(pair.apart)
    tests = [signed_rank(*strata) for strata in by_rival.values()]
    adjusted = holm([p for p, _ in tests]).tolist() if tests else []
    return {
        rival: (p, effect) for rival, p, (_, effect) in zip(by_rival, adjusted, tests, strict=True)
    }


def count_reached(rows: Sequence[Sequence[float]]) -> list[tuple[int, float]]:
    """Of medians (problems, targets), on how many problems each target is reached, and the median
    over all problems.
    """
    return [
        (int(np.isfinite(column).sum()), float(np.median(column))) for column in np.array(rows).T
    ]


def find_noise(field: Field) -> list[float]:
    """The deviations of noise of f that problems of a group have, in spreads, ascending."""
    levels = {variant.values.get("noise_f") for variant in field.variants.values()}
    return sorted(float(level) for level in levels if level)
