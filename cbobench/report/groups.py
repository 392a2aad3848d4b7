"""The cells of a run in groups that tables and tests are about: one per problem, algorithm and
horizon.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbobench.errors import Misuse, show
from cbobench.metrics import Array, Metric
from cbobench.report.load import Run
from cbobench.results.manifest import as_words

Arena = tuple[str, int, bool | None]
"""Problem, T, and whether the constraint binds where that sets seeds apart: what groups share to be
compared.
"""
KEY = ("problem", "algorithm", "horizon")  # what the cells of a group share
WORDS = {True: "binds", False: "does not bind"}


@dataclass(frozen=True)
class Worded(Metric):
    """A metric in the words of the problems' user.

    Attributes:
        unit: what is shown is so many times what is stored: -1 for what they minimise.
    """

    unit: float = 1.0


def unit_of(quantity: Metric) -> float:
    """What is shown of a quantity, in units of what is stored."""
    return quantity.unit if isinstance(quantity, Worded) else 1.0


def take_values(cells: pd.DataFrame, quantity: Metric) -> Array:
    """A quantity of some cells, (n,); NaN where undefined."""
    if quantity.name not in cells:
        return np.full(len(cells), np.nan)
    values = cells[quantity.name].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(values), values, np.nan)


class Columns:
    """The quantities of a frame of cells, each converted once for all groups that have rows in
    it.
    """

    def __init__(self, cells: pd.DataFrame) -> None:
        self.cells = cells
        self._values: dict[str, Array] = {}

    def take(self, quantity: Metric, rows: NDArray[np.intp]) -> Array:
        """Return a quantity of some rows, (n,)."""
        if quantity.name not in self._values:
            self._values[quantity.name] = take_values(self.cells, quantity)
        return self._values[quantity.name][rows]


@dataclass(frozen=True)
class Group:
    """Seeds of one problem, algorithm and horizon.

    Attributes:
        problem, algorithm: titles; `problem_label`, `algorithm_label`: what a reader sees.
        horizon: T.
        expected_seeds: seeds of the cells asked for.
        failures, outdated, unknown: seeds whose cells failed, are stale, or are unchecked (no code
            is at hand to tell whether they are stale).
        good: rows of the cells that are ok, by seed; all who ask for the group share them.
        binds: where the group holds only the seeds in which the constraint binds, or does not:
            which of the two.
        columns: the frame of which `good` is some rows, and which; None where `good` is no part of
            one. One column of a thousand groups is taken much faster from it.
    """

    problem: str
    algorithm: str
    problem_label: str
    algorithm_label: str
    horizon: int
    expected_seeds: frozenset[int]
    failures: frozenset[int]
    outdated: frozenset[int]
    unknown: frozenset[int]
    good: pd.DataFrame
    binds: bool | None = None
    columns: tuple[Columns, NDArray[np.intp]] | None = None

    def values(self, quantity: Metric) -> Array:
        """A quantity of the good cells as it is shown, (n,), NaN where undefined; taken from the
        frame once.
        """
        if quantity.name not in self._values:
            self._values[quantity.name] = (
                take_values(self.good, quantity)
                if self.columns is None
                else self.columns[0].take(quantity, self.columns[1])
            )
        values = self._values[quantity.name]
        return values if unit_of(quantity) == 1.0 else unit_of(quantity) * values

    @cached_property
    def _values(self) -> dict[str, Array]:
        return {}

    @cached_property
    def unmeasured(self) -> bool:
        """Whether its cells know nothing that regret could be against."""
        return len(self.good) > 0 and bool(self.good["f_star"].isna().all())

    @cached_property
    def seeds(self) -> NDArray[np.int64]:
        """The seeds of the good cells, ascending, (n,)."""
        return self.good.index.to_numpy()

    @property
    def arena(self) -> Arena:
        """What groups must share to be compared."""
        return self.problem, self.horizon, self.binds

    @property
    def expected(self) -> int:
        """How many cells were asked for."""
        return len(self.expected_seeds)

    @property
    def failed(self) -> int:
        """How many cells failed."""
        return len(self.failures)

    @property
    def stale(self) -> int:
        """How many cells are stale."""
        return len(self.outdated)

    @property
    def unchecked(self) -> int:
        """How many cells are unchecked."""
        return len(self.unknown)

    @property
    def count(self) -> str:
        """n of expected, and what is the matter with the rest."""
        notes = ", ".join(
            f"{getattr(self, w)} {w}" for w in ("failed", "stale", "unchecked") if getattr(self, w)
        )
        return f"{len(self.good)}/{self.expected}" + (f" ({notes})" if notes else "")


def find_groups(run: Run, only: str | None = None, by: str = "problem") -> list[Group]:
    """The groups of a run in the suite's order.

    Args:
        only: a glob over "problem/algorithm", or one of them, each by title, name or label; * and ?
            are wildcards.
        by: "algorithm" sorts by algorithm; "binds" sets the seeds apart in which the constraint
            binds, on problems where some do and some do not.

    Raises:
        Misuse: the glob matches nothing.
    """
    groups_by_glob = _open_groups.setdefault(run, {})
    if only not in groups_by_glob:
        groups_by_glob[only] = _group_cells(run, only)
    groups = [*groups_by_glob[only]]
    if by == "binds":
        return _split_by_binding(groups)
    if by == "algorithm":
        order = list(run.record.labels("algorithms"))
        groups.sort(key=lambda group: order.index(group.algorithm))
    return groups


_open_groups: WeakKeyDictionary[Run, dict[str | None, list[Group]]] = WeakKeyDictionary()
"""What `find_groups` has found of runs that are open: a figure asks several times."""


def _group_cells(run: Run, only: str | None) -> list[Group]:
    labels = run.record.labels("problems"), run.record.labels("algorithms")
    cells_of_key: dict[tuple[str, str, int], dict[str, int]] = {}
    for pair_cells in (run.record if only is None else run.record.only(only)).cells.by_pair:
        key = pair_cells.pair.problem.title, pair_cells.pair.algorithm.title, pair_cells.horizon
        cells_of_key.setdefault(key, {}).update(
            zip(as_words(pair_cells.ids), map(int, pair_cells.seeds), strict=True)
        )
    good, failed = (
        run.cells[run.cells["status"] == status].set_index("seed").sort_index()
        for status in ("ok", "failed")
    )
    good["us_per_round"] = 1e6 * good["seconds_per_round"]
    parts, failing = (dict(list(cells.groupby([*KEY], sort=False))) for cells in (good, failed))
    columns, rows_of_key = Columns(good), good.groupby([*KEY], sort=False).indices
    none = np.empty(0, dtype=np.intp)
    groups = []
    for key, seeds in cells_of_key.items():
        problem, algorithm, horizon = key
        failures = frozenset(failing[key].index) if key in failing else frozenset()
        outdated, unknown = (
            frozenset(seeds[i] for i in cell_ids & seeds.keys())
            for cell_ids in (run.stale, run.unchecked)
        )
        names = problem, algorithm, labels[0][problem], labels[1][algorithm]
        good_rows = parts.get(key, good.iloc[:0])
        rows = np.asarray(rows_of_key.get(key, none), dtype=np.intp)
        seed_sets = frozenset(seeds.values()), failures, outdated, unknown
        groups.append(Group(*names, horizon, *seed_sets, good_rows, columns=(columns, rows)))
    return groups


def select_latest(run: Run, groups: list[Group]) -> list[Group]:
    """The groups of the horizon that figures show of each problem (`Run.horizon_of`)."""
    return [group for group in groups if group.horizon == run.horizon_of(group.problem)]


def select_horizon(run: Run, groups: list[Group], horizon: int | str | None) -> list[Group]:
    """The groups of one horizon, or of "all"; by default of the latest of each problem
    (`select_latest`).

    Raises:
        Misuse: a horizon that none of the groups has.
    """
    if horizon is None or horizon == "all":
        return groups if horizon else select_latest(run, groups)
    selected = [
        group for group in groups if group.horizon == horizon and not isinstance(horizon, bool)
    ]
    if not selected:
        horizons = ", ".join(map(str, sorted({group.horizon for group in groups})))
        raise Misuse(f"horizon is {show(horizon)}; allowed: {horizons}, all")
    return selected


def _split_by_binding(groups: list[Group]) -> list[Group]:
    """Groups of problems whose constraint binds in some seeds only, in two: first where it does.

    Seeds of which that is not known, as no cell of theirs is good, are a third.
    """
    binding = find_binding(groups)
    result: list[Group] = []
    for arena in dict.fromkeys((group.problem, group.horizon) for group in groups):
        arena_groups = [group for group in groups if (group.problem, group.horizon) == arena]
        seeds = binding.get((*arena, None), {})
        if len(set(seeds.values())) < 2:
            word = f": {WORDS[next(iter(seeds.values()))]}" if seeds else ""
            result += [
                replace(group, problem_label=group.problem_label + word) for group in arena_groups
            ]
            continue
        for binds, word in WORDS.items():
            result += [
                _set_apart(
                    group, {s for s in group.expected_seeds if seeds.get(s) is binds}, binds, word
                )
                for group in arena_groups
            ]
        unknown_groups = [
            _set_apart(
                group, group.expected_seeds - seeds.keys(), None, "not known whether it binds"
            )
            for group in arena_groups
        ]
        result += unknown_groups if any(group.expected_seeds for group in unknown_groups) else []
    return result


def select_seeds(group: Group, seeds: Set[int]) -> Group:
    """The group of some of the seeds."""
    return replace(
        group,
        expected_seeds=group.expected_seeds & seeds,
        good=group.good[group.good.index.isin(seeds)],
        columns=None,
        failures=group.failures & seeds,
        outdated=group.outdated & seeds,
        unknown=group.unknown & seeds,
    )


def _set_apart(group: Group, seeds: Set[int], binds: bool | None, word: str) -> Group:
    """The group of the seeds in which the constraint binds, or does not, with that in its label."""
    return replace(
        select_seeds(group, seeds), problem_label=f"{group.problem_label}: {word}", binds=binds
    )


def find_binding(groups: list[Group]) -> dict[Arena, dict[Any, bool]]:
    """Whether the constraint binds, by seed, as far as any algorithm's cells say."""
    binding: dict[Arena, dict[Any, bool]] = {}
    for group in groups:
        if "binds" in group.good:
            binds = group.good["binds"].dropna().astype(bool)
            binding.setdefault(group.arena, {}).update(zip(binds.index, binds, strict=True))
    return binding


def group_by(groups: Iterable[Group], *names: str) -> dict[Any, list[Group]]:
    """Groups by the values of some attributes, in order."""
    key = attrgetter(*names)
    result: dict[Any, list[Group]] = {}
    for group in groups:
        result.setdefault(key(group), []).append(group)
    return result


def group_by_arena(groups: Iterable[Group]) -> list[list[Group]]:
    """Groups that can be compared with one another, in order."""
    return list(group_by(groups, "arena").values())
