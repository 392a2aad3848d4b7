"""Results of a run as pandas frames. One row per cell or per recorded round; nothing is dropped in
silence.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cbobench.errors import CbobenchError, DamagedRun, Misuse, show, unknown, words_of
from cbobench.results.folder import RunFolder
from cbobench.results.folder import open_run as open_folder
from cbobench.results.manifest import Manifest, Pair, VariantKind, as_words
from cbobench.results.query import (
    NO_POSITION,
    PublishedCells,
    cell_positions,
    read_published,
)
from cbobench.results.rounds import cell_codes
from cbobench.results.schema import IMPROVED, list_kept, schema
from cbobench.results.several import count_shared, join_manifests, join_published
from cbobench.results.source import Freshness

LABELS = {"label": "algorithm", "algorithm_label": "algorithm", "problem_label": "problem"}
MOST_COLUMNS = 60  # columns that an error lists: a reader cannot guess the names of a frame
VECTORS = ("x", "g", "observed_g", "dual")
ROUND_KEY = {"cell", "problem", "algorithm", "seed", "t"}  # columns that every row of rounds has


def to_column(values: Sequence[Any]) -> pd.Series:
    """Values of an input as a column; None is one of them, and no missing value."""
    return pd.Series(values, dtype=object if None in values else None)


def list_values(values: Any) -> list[Any]:
    """One value, or several, as a list."""
    if pd.api.types.is_list_like(values):
        return list(values)
    return [values]


def read_coordinate(declared: Any, value: float) -> Any:
    """What an input of that type is at a coordinate: itself, a whole number, or a choice."""
    if "choice" in declared:
        return declared["choice"][int(value)]
    return int(value) if "int" in declared else value


def read_input(frame: pd.DataFrame, by_problem: Mapping[str, tuple[int, Any]]) -> pd.Series:
    """An input's values in rows with `problem`, `action` and `x`; empty on problems that do not
    have it.
    """
    parts = []
    for title, (position, values) in by_problem.items():
        rows = frame[frame["problem"] == title]
        if isinstance(values, list):
            chosen = to_column(values).take(rows["action"].to_numpy(dtype=np.intp))
            parts.append(pd.Series(chosen.to_numpy(), index=rows.index))
        else:
            column = [read_coordinate(values, x[position]) for x in rows["x"]]
            parts.append(pd.Series(to_column(column).to_numpy(), index=rows.index))
    return pd.concat(parts).reindex(frame.index)


def find_source_column(name: str, names: list[str]) -> str:
    """The column of the files, `names`, that a wanted one is made of.

    Raises:
        Misuse: there is no such column.
    """
    vector, _, position = name.rpartition("_")
    held = [vector for vector in VECTORS if vector in names]
    if vector in held and position.isdecimal() and int(position) > 0:
        return vector
    if name not in (*names, *LABELS):
        raise unknown(
            "column",
            name,
            [*names, *LABELS, *(f"{vector}_1" for vector in held)],
            most=MOST_COLUMNS,
        )
    return LABELS.get(name, name)


def extract_entries(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The table with the entries that were asked for (`g_1`: the first of g), without vectors that
    were not.
    """
    for name in columns:
        if name not in table.column_names and name not in LABELS:
            vector, _, position = name.rpartition("_")
            # NaN where a list has no such entry.
            k = int(position) - 1
            entry = pc.list_slice(table[vector], k, k + 1, return_fixed_size_list=True)
            values = pc.fill_null(pc.list_element(entry, 0), np.nan)
            table = table.append_column(name, values)
    return table.drop_columns([v for v in VECTORS if v in table.column_names and v not in columns])


WHAT: dict[str, VariantKind] = {"problem": "problems", "algorithm": "algorithms"}
RunLike = Any
"""A run: opened, or its folder as a path or URI, or what `cbobench.run` returned; or a list of
them, read as one.
"""


class Run:
    """A run folder or a bundle, read once; or several of them, read as one.

    Args:
        location: path or URI of the run folder or of a bundle, or that folder when it is open.
        record: of the pairs that count; by default those of the folder's latest suite.
        full_record: of all that the folder was asked for.
        parts: what is published in it, where that is read already; of each folder, if there are
            several.

    Attributes:
        folders: where its files are.
        played: what is published of them all.

    Raises:
        Misuse: no run there. DamagedRun: a truncated or foreign file in it.
    """

    def __init__(
        self,
        location: str | Path | RunFolder | Sequence[RunFolder],
        record: Manifest | None = None,
        parts: Sequence[PublishedCells] | None = None,
        full_record: Manifest | None = None,
    ) -> None:
        self.folders = location if isinstance(location, tuple) else (open_folder(location),)
        every = Manifest.read(self.folders[0]) if record is None else record
        self.record = every.of_latest_suite if record is None else record
        self.full_record = every if full_record is None else full_record
        self.parts = [read_published(one, None) for one in self.folders] if parts is None else parts
        self.played = join_published(self.parts) if len(self.parts) > 1 else self.parts[0]

    def __str__(self) -> str:
        return ", ".join(map(str, self.folders))

    @cached_property
    def is_thinned(self) -> bool:
        """Whether of the rounds of a folder only some are left."""
        return any(folder.is_thinned for folder in self.folders)

    @cached_property
    def shared(self) -> tuple[int, int]:
        """How many cells several of the folders hold, and of how many the results differ."""
        return count_shared(self.parts)

    @classmethod
    def union(cls, runs: Sequence[Run]) -> Run:
        """Several runs read as one; of a cell that several hold, the first counts.

        Raises:
            Misuse: a problem is another one in two of them.
        """
        folders = tuple(folder for run in runs for folder in run.folders)
        parts = [part for run in runs for part in run.parts]
        return cls(folders, join_manifests([run.record for run in runs], [*map(str, runs)]), parts)

    def only(self, glob: str) -> Run:
        """The same run with the matching pairs alone (see `Manifest.only`); `full_record` still
        holds all.
        """
        return Run(self.folders, self.record.only(glob), self.parts, self.full_record)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row per published cell that was asked for, in the suite's order (columns:
        `results.schema`).
        """
        return self._take_rows(self.played.table, self.played.find(self.record.cells.ids))

    def _take_rows(self, table: pa.Table, rows: NDArray[np.int64]) -> pd.DataFrame:
        """Some rows of a table in their order, without those that are `NO_POSITION`."""
        rows = rows[rows != NO_POSITION]
        keep = np.zeros(len(table), dtype=bool)
        keep[rows] = True
        # long columns of text can be filtered, not taken
        frame = self._name_pairs(table.filter(pa.array(keep)))
        order = np.cumsum(keep)[rows] - 1
        if (np.diff(order) == 1).all():
            return frame
        return frame.take(order).reset_index(drop=True)

    def _name_pairs(self, table: pa.Table) -> pd.DataFrame:
        """A frame whose problems and algorithms are named by the run's record.

        A cell's id does not depend on how they were spelt when it was played, so the files' titles
        are not read.
        """
        codes = cell_codes(table)
        pairs = self.record.cells.pairs(codes.dictionary.to_pylist())
        words = {name: pa.array([getattr(pair, name).title for pair in pairs]) for name in WHAT}
        for name, dictionary in {**words, "cell": codes.dictionary}.items():
            column = pa.DictionaryArray.from_arrays(codes.indices, dictionary.cast(pa.string()))
            position = table.column_names.index(name)
            table = table.set_column(position, name, column.cast(pa.string()))
        return table.to_pandas()

    @cached_property
    def stale(self) -> set[str]:
        """Ids of cells that were played by code that has changed since; of a bundle none are
        known.
        """
        return self._select_ids(
            lambda pair, rows: self.played.has_origin(rows, partial(self._code.stale, pair))
        )

    @cached_property
    def unchecked(self) -> set[str]:
        """Ids of cells whose code cannot be imported here, so that nothing is known of their
        freshness.
        """
        return self._select_ids(lambda pair, rows: np.full(len(rows), self._code.unknown(pair)))

    def _select_ids(
        self, holds: Callable[[Pair, NDArray[np.int64]], NDArray[np.bool_]]
    ) -> set[str]:
        """Ids of the published cells for whose pair and rows something holds."""
        cell_ids: set[str] = set()
        for pair_cells in self.record.cells.by_pair:
            rows = self.played.find(pair_cells.ids)
            is_published = rows != NO_POSITION
            if is_published.any():
                matching = pair_cells.ids[is_published][holds(pair_cells.pair, rows[is_published])]
                cell_ids.update(as_words(matching))
        return cell_ids

    @cached_property
    def _code(self) -> Freshness:
        return Freshness(any(folder.is_bundle for folder in self.folders))

    @property
    def horizon(self) -> int:
        """T of the latest grid."""
        return self.record.grids[-1].horizon

    def horizon_of(self, problem: str) -> int:
        """T that tables and figures show of a problem (its title): the last asked for of which a
        cell is good.
        """
        return self._horizons.get(problem, self.horizon)

    @cached_property
    def _horizons(self) -> dict[str, int]:
        titles = {variant.key: title for title, variant in self.record.variants("problems").items()}
        expected = [
            (titles.get(p.key, p.title), grid.horizon)
            for grid in self.record.grids
            for p in grid.problems
        ]
        return dict(expected) | dict(pair for pair in expected if pair in self.held)

    @cached_property
    def held(self) -> set[tuple[str, int]]:
        """Problem (title) and T of the cells that are ok."""
        good = self.cells[self.cells["status"] == "ok"]
        return {*zip(good["problem"], good["horizon"], strict=True)}

    def titles(self, kind: str, names: Any) -> list[str]:
        """Titles of the "problem" or "algorithm" variants that a reader means.

        Args:
            names: one word, or several: each a title, else a label, else a registered name (all
                variants of it).

        Raises:
            Misuse: a word that none of the run's variants answers to.
        """
        labels = self.record.labels(WHAT[kind])
        registered = {t: variant.name for t, variant in self.record.variants(WHAT[kind]).items()}
        titles: list[str] = []
        for word in list_values(names):
            readings = {title: title for title in labels}, labels, registered
            matches = [[t for t, name in names.items() if name == word] for names in readings]
            if not any(matches):
                raise unknown(kind, word, {*labels.values(), *registered.values()})
            titles += next(filter(None, matches))
        return titles

    def select(self, **filters: Any) -> pd.DataFrame:
        """Rows of `cells` whose columns equal the given values (or are among a given list).

        Raises:
            Misuse: a filter names no column, or asks for a problem, algorithm, seed, horizon or
                status that the run does not know.
        """
        frame = self.cells
        allowed: dict[str, set[Any]] = {
            "horizon": {grid.horizon for grid in self.record.grids},
            "status": {"ok", "failed"},
        }
        if "seed" in filters:
            # Pairs share their seeds, which are looked at once.
            shared = {id(pair.seeds): pair.seeds for pair in self.record.cells.by_pair}
            allowed["seed"] = {seed for seeds in shared.values() for seed in seeds}
        for name, value in filters.items():
            if name not in frame.columns:
                raise unknown("filter", name, frame.columns, most=MOST_COLUMNS)
            values = self.titles(name, value) if name in WHAT else list_values(value)
            for choice in values:
                if choice not in allowed.get(name, {choice}):
                    raise unknown(name, choice, allowed[name])
            frame = frame[frame[name].isin(values)]
        return frame

    def good(self, problem: str, algorithm: str) -> pd.DataFrame:
        """The cells of a pair (titles) at `horizon_of` its problem that are ok."""
        return self.cells.loc[self._good.get((problem, algorithm), [])]

    @cached_property
    def _good(self) -> Mapping[Any, Any]:
        """Rows of `good` by pair; a page of many pairs needs each of them several times."""
        is_good = (self.cells["status"] == "ok") & (
            self.cells["horizon"] == self.cells["problem"].map(self.horizon_of)
        )
        return self.cells.loc[is_good, [*WHAT]].groupby([*WHAT]).groups

    def rounds(self, columns: Iterable[str] | None = None, **filters: Any) -> pd.DataFrame:
        """Recorded rounds of the matching cells, sorted by problem, algorithm, seed and t.

        Args:
            columns: the columns wanted (all by default); `problem`, `algorithm`, `seed` and `t` are
                always there. Beside those of the files: entries of vectors as plain columns,
                counted from 1 (`g_1`, `dual_1`, `x_2`, `observed_g_1`; NaN where a cell has none),
                `label` and `problem_label`, and the inputs of a problem by their names, in their
                units (`input f` where a file has a column f; empty on other problems).
            filters: of the cells, such as algorithm="ckb-ucb", seed=[0, 1].
        """
        names = list_kept() if self.is_thinned else schema("rounds").names
        inputs = self._input_columns({*names, *LABELS}) if "action" in names else {}
        cells = self.select(**filters)
        problems = {*cells["problem"]}
        if columns is None:
            played = [name for name, by_problem in inputs.items() if by_problem.keys() & problems]
            columns = [*names, *played]
        else:
            columns = words_of("columns", columns)
        # An input is read of the action, which goes again where nobody asked for it.
        inputs = {name: by_problem for name, by_problem in inputs.items() if name in columns}
        helpers = [name for name in ("action", "x") if inputs and name not in columns]
        columns = [*(name for name in columns if name not in inputs), *helpers]
        sources = {find_source_column(name, names) for name in columns}
        file_columns = [name for name in names if name in sources | ROUND_KEY]

        tasks = self.played.by_task(cells.loc[cells["status"] == "ok", "cell"])
        order = {cell: position for position, cell in enumerate(self.cells["cell"])}
        parts: list[tuple[int, pa.Table]] = []
        for task, task_cells in tasks.items():
            table = pa.concat_tables(task.rounds(file_columns, task_cells))
            parts += sort_by_cell(table, order)
        empty = schema("rounds").empty_table().select(file_columns)
        joined = pa.concat_tables(
            [table for _, table in sorted(parts, key=lambda part: part[0])] or [empty]
        )
        # The joined table holds the rows; without this they would be in memory twice while a frame
        # is made.
        parts.clear()
        coordinates = [name for name in columns if re.fullmatch(r"x_\d+", name)]
        if coordinates and len(joined) and joined["x"].null_count == len(joined):
            labels = self.record.labels("problems")
            named = ", ".join(show(labels[title]) for title in dict.fromkeys(cells["problem"]))
            raise Misuse(
                f"column {show(coordinates[0])}: the actions of {named} are numbers without "
                "coordinates; take 'action'"
            )
        frame = self._name_pairs(extract_entries(joined, columns))
        for name in columns:
            if name in LABELS:
                frame[name] = frame[LABELS[name]].map(self.record.labels(WHAT[LABELS[name]]))
        for name, by_problem in inputs.items():
            frame[name] = read_input(frame, by_problem)
        return frame.drop(columns=helpers)

    def _input_columns(self, column_names: set[str]) -> dict[str, dict[str, tuple[int, Any]]]:
        """The inputs that have names: by column, and by title of the problem, their position and
        values or type.
        """
        columns: dict[str, dict[str, tuple[int, Any]]] = {}
        for title, variant in self.record.variants("problems").items():
            for position, (name, values) in enumerate(variant.inputs or ()):
                if name != f"x_{position + 1}":
                    columns.setdefault(f"input {name}" if name in column_names else name, {})[
                        title
                    ] = position, values
        return columns

    def series(
        self, metric: str, problem: str, algorithm: str
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """One metric of a pair's good cells at `horizon_of` its problem (several, at some rounds:
        `read_values`).

        Args:
            metric: a numeric column of the rounds table.
            problem, algorithm: titles.

        Returns:
            The recorded rounds (rounds,) and the values (rounds, cells), cells by id; both empty
            where none is good.
        """
        t = recorded_rounds(self, problem, algorithm)
        return t, read_values(self, [metric], problem, algorithm, t)[0]

    @cached_property
    def expected(self) -> Counter[tuple[str, int, str]]:
        """How many cells were asked for, by titles and T: (problem, T, algorithm)."""
        counts = Counter[tuple[str, int, str]]()
        for part in self.record.cells.by_pair:
            counts[part.pair.problem.title, part.horizon, part.pair.algorithm.title] += len(part)
        return counts

    def expected_of(self, problem: str) -> dict[str, int]:
        """Cells asked for on a problem (its title) at `horizon_of` it, by title of the
        algorithm.
        """
        arena = problem, self.horizon_of(problem)
        return {
            algorithm: count
            for (title, horizon, algorithm), count in self.expected.items()
            if (title, horizon) == arena
        }

    def named(self, kind: str, names: Iterable[str]) -> list[str]:
        """Titles of every "problem" or "algorithm" variant with one of these registered names, in
        the suite's order.
        """
        wanted = {*names}
        variants = self.record.variants(WHAT[kind])
        return [title for title, variant in variants.items() if variant.name in wanted]


def open_run(source: RunLike) -> Run:
    """The run itself; of several in a list, their union."""
    if isinstance(source, Run):
        return source
    if not isinstance(source, (list, tuple)):
        return Run(source)
    runs = [open_run(one) for one in source]
    if len(runs) == 1:
        return runs[0]
    return Run.union(runs)


def open_readable(sources: Iterable[RunLike]) -> tuple[list[Run], list[str]]:
    """The runs that can be read, and a line for each of the others.

    Raises:
        Misuse: one of them is no run, such as a mistyped folder.
        CbobenchError: none can be read.
    """
    runs: list[Run] = []
    errors: list[CbobenchError] = []
    for source in sources:
        try:
            runs.append(open_run(source))
        except Misuse:
            raise
        except CbobenchError as error:
            errors.append(error)
    if not runs:
        raise errors[0]
    return runs, [str(error) for error in errors]


def load_cells(run: str | Path, **filters: Any) -> pd.DataFrame:
    """One row per cell of a run: final metrics, status, timings. Failed cells are rows with status
    "failed".

    Args:
        run: path or URI of the run folder.
        filters: column values to keep, such as status="ok", algorithm=["ckb-ucb", "ckb-ts"];
            problems and algorithms by title, label or registered name.

    Returns:
        - `cell` (its id), `problem` and `algorithm` (titles), `problem_label` and
          `algorithm_label`, `seed`, `horizon` (rounds), `spec` (the cell in JSON), `digest` (of
          its play, docs/bundles.md), `status` (ok or failed), `error` and `traceback` of a failed
          one;
        - metrics after the last round, each in units of f or g unless it counts (docs/reading.md):
          `regret` R, `regret_plus` R₊, `regret_positive` [R]+, `simple_regret` r,
          `recommended_regret`, `recommended_violation`, `violation` V, `violation_hard` V⁺,
          `violations` N (rounds), `reward` Σ f(x_t), `simple_value` (best feasible f), `f_star` and
          `f_plus` (references of R and R₊, means over rounds);
        - `first_feasible` (round), `longest_streak` (rounds), `positive_dual` (share of rounds),
          `binds` (whether the constraint does), `infeasibility_declared`, `cap_hits`, `redraws`,
          `failed_evaluations`, `failed_fits` (how many), `fitted` (whether models were, see
          docs/methods.md), `feasibility_tolerance` (units of g);
        - `recommended_action` (index) or `recommended_x` (coordinates), `recommended_f`,
          `recommended_g` (noise-free), `recommendation_rule` (how what is recommended was chosen:
          3 today, or of older versions less or nothing);
        - `seconds`, `seconds_per_round` (µs in tables; CPU time of the process and of what it
          started, shared among the seeds of a block), `peak_memory_mb` (MB of the process), `host`,
          `cpu`, `arithmetic`, `source` (hash of the code), `libraries`, `attempt` (from 1).

    Raises:
        Misuse: no run there, or a filter that the run knows nothing of.
    """
    opened = Run(run)
    frame = opened.select(**filters).reset_index(drop=True)
    labels = {f"{kind}_label": frame[kind].map(opened.record.labels(WHAT[kind])) for kind in WHAT}
    return frame.assign(**labels)


def load_rounds(
    run: str | Path, columns: Iterable[str] | None = None, **filters: Any
) -> pd.DataFrame:
    """The recorded rounds of a run: actions, noise-free and observed values, cumulative metrics,
    dual variables.

    Args:
        run: path or URI of the run folder.
        columns: columns to read (all but labels by default); `g_1`, `dual_1`, ... are entries of
            vectors.
        filters: of the cells, such as problem="rkhs-1d", seed=0; see `load_cells`.

    Returns:
        One row per recorded round, sorted by problem, algorithm, seed and t:

        - `cell` (its id), `problem` and `algorithm` (titles), `seed`, `t` (round, from 1); on
          request `problem_label`, `algorithm_label` (or `label`), and inputs by their names, in
          their units;
        - `action` (index in a finite set) or `x` (coordinates on a box, `x_1`, ...), `f`, `g`
          (noise-free), `observed_f`, `observed_g` (as told to the method, with noise; NaN where
          nothing was told at once), `f_star` and `f_plus` (references of the round), all in units
          of f or g;
        - metrics of the rounds up to t: `regret` R, `regret_plus` R₊, `regret_positive` [R]+,
          `simple_regret` r, `recommended_regret`, `recommended_violation`, `violation` V,
          `violation_hard` V⁺, `violations` N (rounds), `reward` Σ f(x_t), `simple_value` (best
          feasible f);
        - `dual` (the price on each constraint, f per g).

    Raises:
        Misuse: no run there, a column or filter that it does not have, or coordinates of actions
            that have none.
    """
    return Run(run).rounds(columns, **filters)


def recorded_rounds(run: Run, problem: str, algorithm: str) -> NDArray[np.int64]:
    """The recorded rounds of a pair's good cells (`Run.good`), (rounds,); empty where none is
    good.
    """
    cells = run.good(problem, algorithm)["cell"]
    round_parts = [np.empty(0, dtype=np.int64)]
    # the same for all cells of a horizon
    for task, task_cells in [*run.played.by_task(cells).items()][:1]:
        parts = task.rounds(["cell", "t"], [*task_cells][:1])
        round_parts += [part["t"].to_numpy() for part in parts]
    return np.unique(np.concatenate(round_parts))


def read_values(
    run: Run, metrics: Sequence[str], problem: str, algorithm: str, t: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Some metrics of a pair's good cells (`Run.good`) at some recorded rounds.

    Args:
        metrics: numeric columns of the rounds table.
        problem, algorithm: titles.
        t: of the recorded rounds, in order, (rounds,).

    Returns:
        (metrics, rounds, cells), cells by id.

    Raises:
        DamagedRun: a cell lacks one of the rounds.
    """
    order = {
        cell: position for position, cell in enumerate(sorted(run.good(problem, algorithm)["cell"]))
    }
    values = np.empty((len(metrics), len(t), len(order)))
    rows_read = 0
    for task, task_cells in run.played.by_task(order).items():
        column_of = {cell: order[cell] for cell in task_cells}
        for part in task.rounds(["cell", "t", *metrics], task_cells):
            column = cell_positions(part, column_of)
            when = part["t"].to_numpy()
            mask = (column >= 0) & np.isin(when, t)
            row = np.searchsorted(t, when[mask])
            column = column[mask]
            for metric, table in zip(metrics, values, strict=True):
                table[row, column] = part[metric].to_numpy()[mask]
            rows_read += len(row)
    if rows_read != len(t) * len(order):
        raise DamagedRun(
            f"{run} does not hold the same rounds of all cells of a horizon; is it all there?"
        )
    return values


def read_improvements(run: Run, problem: str, algorithm: str) -> pd.DataFrame:
    """Simple regret of a pair's good cells (`Run.good`) in every round in which that of one fell:
    a row per such round, by t, and a column per cell, by id; NaN before the first value.
    """
    cells = sorted(run.good(problem, algorithm)["cell"])
    columns = ["cell", "t", IMPROVED]
    parts = [
        part.to_pandas().astype({"cell": str})
        for task, task_cells in run.played.by_task(cells).items()
        for part in task.improvements(task_cells)
    ]
    rows = pd.concat([pd.DataFrame(columns=columns), *parts])
    return rows.pivot(index="t", columns="cell", values=columns[2]).reindex(columns=cells).ffill()


def sort_by_cell(table: pa.Table, order: dict[str, int]) -> list[tuple[int, pa.Table]]:
    """Yield the rows of a table sorted by the cells' order and t, split where other tasks' cells
    may lie between.
    """
    ranks = cell_positions(table, order)
    index = np.lexsort((table["t"].to_numpy(), ranks))
    table = table.take(pa.array(index))
    ranks = ranks[index]
    cuts = np.flatnonzero(np.diff(ranks) > 1) + 1
    bounds = [0, *cuts.tolist(), len(ranks)]
    return [(int(ranks[a]), table.slice(a, b - a)) for a, b in itertools.pairwise(bounds) if b > a]
