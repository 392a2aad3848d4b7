"""The cells of a run in groups that tables and tests are about: one per problem, algorithm and
horizon.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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

Arena = tuple[str, int]
"""Problem and T: what groups share to be compared."""
KEY = ("problem", "algorithm", "horizon")  # what the cells of a group share


def take_values(cells: pd.DataFrame, name: str) -> Array:
    """A column of some cells as numbers, (n,); NaN where undefined, or where there is no such
    column.
    """
    if name not in cells:
        return np.full(len(cells), np.nan)
    values = cells[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(values), values, np.nan)


class Columns:
    """The columns of a frame of cells by seed, each converted once for all groups that have rows
    in it.
    """

    def __init__(self, cells: pd.DataFrame) -> None:
        self.cells = cells
        self.seeds = cells.index.to_numpy()
        self._numbers: dict[str, Array] = {}
        self._words: dict[str, NDArray[Any]] = {}

    def numbers(self, name: str) -> Array:
        """Return a column as `take_values` does, (cells,)."""
        if name not in self._numbers:
            self._numbers[name] = take_values(self.cells, name)
        return self._numbers[name]

    def words(self, name: str) -> NDArray[Any]:
        """Return a column as it is, (cells,); None where undefined."""
        if name not in self._words:
            column = self.cells[name].astype(object)
            self._words[name] = column.where(column.notna(), None).to_numpy()
        return self._words[name]


@dataclass(frozen=True, eq=False)
class Group:
    """Seeds of one problem, algorithm and horizon.

    Attributes:
        problem, algorithm: titles; `problem_label`, `algorithm_label`: what a reader sees.
        horizon: T.
        expected_seeds: seeds of the cells asked for.
        failures, outdated: seeds whose cells failed, or are stale.
        unchecked: how many cells no code is at hand for to tell whether they are stale.
        columns, rows: the frame of the run's cells that are ok, and which of its rows are the
            group's, by seed. A column of a thousand groups is taken much faster from one frame.
    """

    problem: str
    algorithm: str
    problem_label: str
    algorithm_label: str
    horizon: int
    expected_seeds: frozenset[int]
    failures: frozenset[int]
    outdated: frozenset[int]
    unchecked: int
    columns: Columns
    rows: NDArray[np.intp]

    @cached_property
    def good(self) -> pd.DataFrame:
        """The cells that are ok, by seed; all who ask for the group share them."""
        return self.columns.cells.iloc[self.rows]

    @property
    def n(self) -> int:
        """How many cells are ok."""
        return len(self.rows)

    def values(self, quantity: Metric) -> Array:
        """A quantity of the good cells as it is shown, (n,), NaN where undefined."""
        return quantity.unit * self.numbers(quantity.name)

    def numbers(self, name: str) -> Array:
        """A column of the good cells as numbers, (n,), NaN where there is none."""
        return self.columns.numbers(name)[self.rows]

    def words(self, name: str) -> NDArray[Any]:
        """A column of the good cells as it is, (n,), None where there is none."""
        return self.columns.words(name)[self.rows]

    @cached_property
    def unmeasured(self) -> bool:
        """Whether its cells know nothing that regret could be against."""
        return self.n > 0 and bool(np.isnan(self.numbers("f_star")).all())

    @cached_property
    def seeds(self) -> NDArray[np.int64]:
        """The seeds of the good cells, ascending, (n,)."""
        return self.columns.seeds[self.rows]

    @property
    def arena(self) -> Arena:
        """What groups must share to be compared."""
        return self.problem, self.horizon

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
    def count(self) -> str:
        """n of expected, and what is the matter with the rest."""
        words = ("failed", "stale", "unchecked")
        notes = ", ".join(f"{getattr(self, w)} {w}" for w in words if getattr(self, w))
        count = f"{self.n}/{self.expected}"
        if notes:
            return f"{count} ({notes})"
        return count


def find_groups(run: Run, only: str | None = None) -> list[Group]:
    """The groups of a run by problem, in the suite's order.

    Args:
        only: a glob over "problem/algorithm", or one of them, each by title, name or label; * and ?
            are wildcards.

    Raises:
        Misuse: the glob matches nothing.
    """
    by_glob = _open_groups.setdefault(run, {})
    if only not in by_glob:
        by_glob[only] = _group_cells(run, only)
    # Of several runs that are read as one, those of the second come after those of the first.
    place = {title: i for i, title in enumerate(run.record.labels("problems"))}
    return sorted(by_glob[only], key=lambda group: place[group.problem])


_open_groups: WeakKeyDictionary[Run, dict[str | None, list[Group]]] = WeakKeyDictionary()
"""What `find_groups` has found of runs that are open: a figure asks several times."""


def _group_cells(run: Run, only: str | None) -> list[Group]:
    problems = run.record.labels("problems")
    algorithms = run.record.labels("algorithms")
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
    columns = Columns(good)
    rows, failed_rows = (cells.groupby([*KEY], sort=False).indices for cells in (good, failed))
    none = np.empty(0, dtype=np.intp)
    return [
        Group(
            problem=key[0],
            algorithm=key[1],
            problem_label=problems[key[0]],
            algorithm_label=algorithms[key[1]],
            horizon=key[2],
            expected_seeds=frozenset(seeds.values()),
            failures=frozenset(failed.index[failed_rows.get(key, none)].tolist()),
            outdated=frozenset(seeds[cell] for cell in run.stale & seeds.keys()),
            unchecked=len(run.unchecked & seeds.keys()),
            columns=columns,
            rows=np.asarray(rows.get(key, none)),
        )
        for key, seeds in cells_of_key.items()
    ]


def select_horizon(run: Run, groups: list[Group], horizon: int | str | None) -> list[Group]:
    """The groups of one horizon, or of "all"; by default of the one that figures show of each
    problem (`Run.horizon_of`).

    Raises:
        Misuse: a horizon that none of the groups has.
    """
    if horizon == "all":
        return groups
    if horizon is None:
        return [group for group in groups if group.horizon == run.horizon_of(group.problem)]
    selected = [group for group in groups if group.horizon == horizon]
    if not selected or isinstance(horizon, bool):
        horizons = ", ".join(map(str, sorted({group.horizon for group in groups})))
        raise Misuse(f"horizon is {show(horizon)}; allowed: {horizons}, all")
    return selected


def gather(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """The values of each key, in order."""
    result: dict[Any, list[Any]] = {}
    for key, value in pairs:
        result.setdefault(key, []).append(value)
    return result


def group_by(groups: Iterable[Group], *names: str) -> dict[Any, list[Group]]:
    """Groups by the values of some attributes, in order."""
    key = attrgetter(*names)
    return gather((key(group), group) for group in groups)


def list_horizons(horizons: Iterable[int]) -> str:
    """Some T in a sentence, in order."""
    return ", ".join(f"{t:,}" for t in sorted(horizons))
