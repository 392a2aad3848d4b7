"""Results of a run as pandas frames. One row per cell or per recorded round; nothing is dropped in silence."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.errors import unknown
from cbobench.report.columns import entries, labelled, source
from cbobench.results.folder import RunFolder
from cbobench.results.record import RunRecord, What
from cbobench.results.schema import schema
from cbobench.results.staleness import Freshness
from cbobench.results.status import Played, played

WHAT: dict[str, What] = {"problem": "problems", "algorithm": "algorithms"}


class Run:
    """A run folder, read once.

    Args:
        where: path or URI of the run folder.

    Raises:
        Misuse: not a run folder. DamagedRun: a truncated or foreign file in it.
    """

    def __init__(self, where: str | Path) -> None:
        self.folder = RunFolder.at(where)
        self.record = self.whole = RunRecord.read(self.folder)
        self.played: dict[str, Played] = played(self.folder)

    def only(self, glob: str) -> Run:
        """The same run with the matching pairs alone (see `RunRecord.only`); `whole` still holds all."""
        part = Run.__new__(Run)  # what is published is not listed again
        part.folder, part.whole, part.played = self.folder, self.whole, self.played
        part.record = self.record.only(glob)
        return part

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row per published cell that was asked for, in the suite's order (columns: `results.schema`)."""
        return self._rows("cells")

    @cached_property
    def audit(self) -> pd.DataFrame:
        """One row per cell of an audited run that was played to its end (columns: `results.audited`)."""
        return self._rows("audit")

    def _rows(self, kind: str) -> pd.DataFrame:
        """The rows that count of a kind of file with one row per cell."""
        asked = {cell: position for position, cell in enumerate(self.record.cells)}
        latest = {(p.cell, p.attempt) for p in self.played.values() if p.cell in asked}
        tasks = sorted({p.task for p in self.played.values()} & set(self.folder.names(kind)))
        for task in tasks if kind != "cells" else ():  # `played` has looked at those
            self.folder.footer(kind, task)
        tables = [self.folder.read(kind, task) for task in tasks]
        joined = pa.concat_tables(tables) if tables else schema(kind).empty_table()
        pairs = zip(joined["cell"].to_pylist(), joined["attempt"].to_pylist(), strict=True)
        keep = pa.array([pair in latest for pair in pairs], pa.bool_())
        frame = self._named(joined.filter(keep)).drop_duplicates("cell")
        return frame.sort_values("cell", key=lambda column: column.map(asked), ignore_index=True)

    def _named(self, table: pa.Table) -> pd.DataFrame:
        """A frame whose problems and algorithms are named by the run's record.

        A cell's id does not depend on how they were spelt when it was played, so the files' titles are not read.
        """
        codes = codes_of(table)
        known = [self.record.cells.get(cell) for cell in codes.dictionary.to_pylist()]  # None: no row has it
        titles = {
            "problem": [cell and cell.pair.problem.title for cell in known],
            "algorithm": [cell and cell.pair.algorithm.title for cell in known],
        }
        for name, words in titles.items():
            column = pa.DictionaryArray.from_arrays(codes.indices, pa.array(words, pa.string())).cast(pa.string())
            table = table.set_column(table.column_names.index(name), name, column)
        return table.set_column(table.column_names.index("cell"), "cell", codes.cast(pa.string())).to_pandas()

    @cached_property
    def stale(self) -> set[str]:
        """Ids of cells that were played by code that has changed since."""
        cells = self.record.cells
        return {p.cell for p in self.played.values() if p.cell in cells and self._code.stale(cells[p.cell].pair, p)}

    @cached_property
    def unchecked(self) -> set[str]:
        """Ids of cells whose code cannot be imported here, so that nothing is known of their freshness."""
        cells = self.record.cells
        return {p.cell for p in self.played.values() if p.cell in cells and self._code.unknown(cells[p.cell].pair)}

    @cached_property
    def _code(self) -> Freshness:
        return Freshness()

    @property
    def horizon(self) -> int:
        """T of the latest grid: what figures show where a run holds several."""
        return self.record.grids[-1].horizon

    def titles(self, what: str, given: Any) -> list[str]:
        """Titles of the "problem" or "algorithm" variants that a reader means.

        Args:
            given: one word, or several: each a title, else a label, else a registered name (all variants of it).

        Raises:
            Misuse: a word that none of the run's variants answers to.
        """
        variants, labels = self.record.variants(WHAT[what]), self.record.labels(WHAT[what])
        readings = [
            {title: {title} for title in variants},
            {title: {labels[title]} for title in variants},
            {title: {variant.name} for title, variant in variants.items()},
        ]
        found: list[str] = []
        for word in [given] if isinstance(given, str) else given:
            meant = next((m for r in readings if (m := [title for title, said in r.items() if word in said])), [])
            if not meant:
                raise unknown(what, word, set().union(*(said for reading in readings for said in reading.values())))
            found += meant
        return found

    def select(self, **filters: Any) -> pd.DataFrame:
        """Rows of `cells` whose columns equal the given values (or are among a given list).

        Raises:
            Misuse: a filter names no column, or asks for a problem, algorithm, seed, horizon or status that the run
                does not know.
        """
        frame = self.cells
        cells = self.record.cells.values()
        known: dict[str, set[Any]] = {
            "seed": {cell.seed for cell in cells} if "seed" in filters else set(),
            "horizon": {grid.horizon for grid in self.record.grids},
            "status": {"ok", "failed"},
        }
        for name, value in filters.items():
            if name not in frame.columns:
                raise unknown("filter", name, frame.columns)
            values = list(value) if isinstance(value, (list, tuple, set, range, np.ndarray, pd.Series)) else [value]
            if name in WHAT:
                values = self.titles(name, values)
            for one in values if name in known else ():
                if one not in known[name]:
                    raise unknown(name, one, known[name])
            frame = frame[frame[name].isin(values)]
        return frame

    def good(self, problem: str, algorithm: str) -> pd.DataFrame:
        """The cells of a pair (titles) at the latest horizon that are ok."""
        return self.select(problem=problem, algorithm=algorithm, horizon=self.horizon, status="ok")

    def rounds(self, columns: Iterable[str] | None = None, **filters: Any) -> pd.DataFrame:
        """Recorded rounds of the matching cells, sorted by problem, algorithm, seed and t.

        Args:
            columns: the columns wanted (all by default); `problem`, `algorithm`, `seed` and `t` are always there.
                Beside those of the files: entries of vectors as plain columns, counted from 1 (`g_1`, `dual_1`, `x_2`,
                `observed_g_1`; NaN where a cell has none), `label` and `problem_label`.
            filters: of the cells, such as algorithm="ckb-ucb", seed=[0, 1].
        """
        names = schema("rounds").names
        wanted = None
        if columns is not None:
            columns = [columns] if isinstance(columns, str) else list(columns)
            sources = {name: source(name, names) for name in columns}
            wanted = [n for n in names if n in {*sources.values(), "cell", "problem", "algorithm", "seed", "t"}]
        cells = self.select(**filters)
        tasks: dict[str, list[str]] = {}
        for cell in cells.loc[cells["status"] == "ok", "cell"]:
            tasks.setdefault(self.played[cell].task, []).append(cell)
        if not tasks:
            return self._shown(schema("rounds").empty_table().select(wanted or names), columns)
        order = {cell: position for position, cell in enumerate(self.cells["cell"])}
        parts: list[tuple[int, pa.Table]] = []
        for task, some in tasks.items():
            parts += _in_order(_only(self.folder.read("rounds", task, wanted), some), order)
        joined = pa.concat_tables([table for _, table in sorted(parts, key=lambda part: part[0])])
        parts.clear()
        return self._shown(joined, columns)

    def _shown(self, table: pa.Table, columns: list[str] | None) -> pd.DataFrame:
        """A frame of rounds with the columns that were asked for."""
        if columns is None:
            return self._named(table)
        labels = {what: self.record.labels(WHAT[what]) for what in WHAT}
        return labelled(self._named(entries(table, columns)), columns, labels)

    def series(self, metric: str, problem: str, algorithm: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """One metric of the good cells of a pair at the latest horizon, read a part of a file at a time: memory does
        not grow with what else was recorded.

        Args:
            metric: a numeric column of the rounds table.
            problem, algorithm: titles.

        Returns:
            The recorded rounds (rounds,) and the values (rounds, cells), cells by id; both empty where none is good.
        """
        cells = self.good(problem, algorithm)["cell"]
        rows: dict[str, dict[str, int]] = {}
        for position, cell in enumerate(sorted(cells)):
            rows.setdefault(self.played[cell].task, {})[cell] = position
        first = (part["t"].unique().to_numpy() for task in [*rows][:1] for part in self._parts(task, ["t"]))
        t = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *first]))  # the same for all cells of a horizon
        values = np.empty((len(t), len(cells)))
        for task, some in rows.items():
            for part in self._parts(task, ["cell", "t", metric]):
                codes = codes_of(part)
                of = np.array([some.get(cell, -1) for cell in codes.dictionary.to_pylist()], dtype=np.int64)
                column = of[codes.indices.to_numpy()]
                wanted = column >= 0
                row = np.searchsorted(t, part["t"].to_numpy()[wanted])
                values[row, column[wanted]] = part[metric].to_numpy()[wanted]
        return t, values

    def _parts(self, task: str, columns: list[str]) -> Iterator[pa.Table]:
        return self.folder.row_groups("rounds", task, columns)

    @cached_property
    def expected(self) -> pd.DataFrame:
        """One row per (problem, algorithm, horizon) that was asked for, with the number of cells `expected`."""
        counts: dict[tuple[str, str, int], int] = {}
        for cell in self.record.cells.values():
            key = cell.pair.problem.title, cell.pair.algorithm.title, cell.horizon
            counts[key] = counts.get(key, 0) + 1
        rows = [(*key, count) for key, count in counts.items()]
        return pd.DataFrame(rows, columns=["problem", "algorithm", "horizon", "expected"])

    def expected_of(self, problem: str) -> dict[str, int]:
        """Cells asked for at the latest horizon on a problem (its title), by title of the algorithm."""
        asked = self.expected[(self.expected["problem"] == problem) & (self.expected["horizon"] == self.horizon)]
        return {str(title): int(count) for title, count in zip(asked["algorithm"], asked["expected"], strict=True)}

    def named(self, what: str, names: Iterable[str]) -> list[str]:
        """Titles of every "problem" or "algorithm" variant with one of these registered names, in the suite's order."""
        wanted = set(names)
        return [title for title, variant in self.record.variants(WHAT[what]).items() if variant.name in wanted]


def _only(table: pa.Table, cells: list[str]) -> pa.Table:
    """The rows of some cells."""
    codes = codes_of(table)
    kept = np.isin(codes.dictionary.to_numpy(zero_copy_only=False), cells)
    return table if kept.all() else table.filter(pa.array(kept[codes.indices.to_numpy()]))


def _in_order(table: pa.Table, order: dict[str, int]) -> list[tuple[int, pa.Table]]:
    """The rows of a table by the cells' order and t, cut where cells of other tables may lie between."""
    codes = codes_of(table)
    ranks = np.array([order.get(cell, -1) for cell in codes.dictionary.to_pylist()])[codes.indices.to_numpy()]
    index = np.lexsort((table["t"].to_numpy(), ranks))
    table, ranks = table.take(pa.array(index)), ranks[index]
    cuts = np.flatnonzero(np.diff(ranks) > 1) + 1
    bounds = [0, *cuts.tolist(), len(ranks)]
    return [(int(ranks[a]), table.slice(a, b - a)) for a, b in itertools.pairwise(bounds) if b > a]


def codes_of(table: pa.Table) -> pa.DictionaryArray:
    """The cells of a table, as codes into their ids."""
    column = table["cell"]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.unify_dictionaries().combine_chunks()


def load_cells(run: str | Path, **filters: Any) -> pd.DataFrame:
    """One row per cell of a run: final metrics, status, timings. Failed cells are rows with status "failed".

    Args:
        run: path or URI of the run folder.
        filters: column values to keep, such as status="ok", algorithm=["ckb-ucb", "ckb-ts"]; problems and algorithms by
            title, label or registered name.

    Raises:
        Misuse: no run there, or a filter that the run knows nothing of.
    """
    return Run(run).select(**filters).reset_index(drop=True)


def load_rounds(run: str | Path, columns: Iterable[str] | None = None, **filters: Any) -> pd.DataFrame:
    """The recorded rounds of a run: actions, noise-free and observed values, cumulative metrics, dual variables.

    Args:
        run: path or URI of the run folder.
        columns: columns to read (all by default); `g_1`, `dual_1`, ... are entries of vectors, `label` the algorithm's.
        filters: of the cells, such as problem="rkhs-1d", seed=0; see `load_cells`.
    """
    return Run(run).rounds(columns, **filters)
