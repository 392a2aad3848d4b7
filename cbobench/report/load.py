"""Results of a run as pandas frames. One row per cell or per recorded round; nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cbobench.errors import unknown
from cbobench.sweep.record import RunRecord
from cbobench.sweep.status import Played, current_sources, played
from cbobench.sweep.store import CELLS, ROUNDS, RunFolder


class Run:
    """A run folder, read once.

    Args:
        where: path or URI of the run folder.

    Raises:
        Misuse: not a run folder. DamagedRun: a truncated or foreign file in it.
    """

    def __init__(self, where: str | Path) -> None:
        self.folder = RunFolder.at(where)
        self.record = RunRecord.read(self.folder)
        self.played: dict[str, Played] = played(self.folder)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row per published cell that was asked for (the columns of `store.CELLS`), in the suite's order."""
        asked = {cell: position for position, cell in enumerate(self.record.cells())}
        tables = [self.folder.read("cells", task) for task in sorted({p.task for p in self.played.values()})]
        joined = pa.concat_tables(tables) if tables else CELLS.empty_table()
        frame = joined.to_pandas()
        latest = {(p.cell, p.attempt) for p in self.played.values()}
        pairs = zip(frame["cell"], frame["attempt"], strict=True)
        keep = np.array([pair in latest and pair[0] in asked for pair in pairs], dtype=bool)
        frame = frame[keep].drop_duplicates("cell")
        frame = frame.sort_values("cell", key=lambda column: column.map(asked), ignore_index=True)
        return self._as_asked(frame)

    def _as_asked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Problem and algorithm as the suite names them now; a cell's id does not depend on how they are spelt."""
        cells = self.record.cells()
        frame["problem"] = [cells[cell].problem for cell in frame["cell"]]
        frame["algorithm"] = [cells[cell].algorithm for cell in frame["cell"]]
        return frame

    @cached_property
    def stale(self) -> set[str]:
        """Ids of cells that were played by code that has changed since."""
        now = current_sources(self.record)
        cells = self.record.cells()
        rows = [p for p in self.played.values() if p.cell in cells]
        return {p.cell for p in rows if now[cells[p.cell].problem, cells[p.cell].algorithm] not in (None, p.source)}

    @property
    def horizon(self) -> int:
        """T of the latest grid: what figures show where a run holds several."""
        return self.record.grids[-1].horizon

    def rounds(self, columns: Iterable[str] | None = None, **filters: Any) -> pd.DataFrame:
        """Recorded rounds of the matching cells, sorted by problem, algorithm, seed and t.

        Args:
            columns: the columns wanted (all by default); `problem`, `algorithm`, `seed` and `t` are always there.
            filters: of the cells, such as algorithm="ckb-ucb", seed=[0, 1].
        """
        wanted = None
        if columns is not None:
            columns = [columns] if isinstance(columns, str) else list(columns)
            wanted = [n for n in ROUNDS.names if n in {*columns, "cell", "problem", "algorithm", "seed", "t"}]
            for name in columns:
                if name not in ROUNDS.names:
                    raise unknown("column", name, ROUNDS.names)
        cells = select(self.cells, filters)
        ids = list(cells.loc[cells["status"] == "ok", "cell"])
        tasks: dict[str, list[str]] = {}
        for cell in ids:
            tasks.setdefault(self.played[cell].task, []).append(cell)
        tables = [self.folder.read("rounds", task, wanted, [("cell", "in", some)]) for task, some in tasks.items()]
        if not tables:
            return ROUNDS.empty_table().to_pandas()[wanted or ROUNDS.names]
        frame = self._as_asked(pa.concat_tables(tables).to_pandas())
        order = {cell: position for position, cell in enumerate(self.cells["cell"])}
        frame["_order"] = frame["cell"].map(order)
        return frame.sort_values(["_order", "t"], ignore_index=True).drop(columns="_order")

    @cached_property
    def expected(self) -> pd.DataFrame:
        """One row per (problem, algorithm, horizon) that was asked for, with the number of cells `expected`."""
        rows = [(c.problem, c.algorithm, c.horizon) for c in self.record.cells().values()]
        frame = pd.DataFrame(rows, columns=["problem", "algorithm", "horizon"])
        return frame.groupby(list(frame.columns), sort=False).size().reset_index(name="expected")


def select(frame: pd.DataFrame, filters: dict[str, Any]) -> pd.DataFrame:
    """Rows whose columns equal the given values (or are among a given list).

    Raises:
        Misuse: a filter names no column.
    """
    for name, value in filters.items():
        if name not in frame.columns:
            raise unknown("filter", name, frame.columns)
        values = value if isinstance(value, (list, tuple, set)) else [value]
        frame = frame[frame[name].isin(list(values))]
    return frame


def load_cells(run: str | Path, **filters: Any) -> pd.DataFrame:
    """One row per cell of a run: final metrics, status, timings. Failed cells are rows with status "failed".

    Args:
        run: path or URI of the run folder.
        filters: column values to keep, such as status="ok", algorithm=["ckb-ucb", "ckb-ts"].
    """
    return select(Run(run).cells, filters).reset_index(drop=True)


def load_rounds(run: str | Path, columns: Iterable[str] | None = None, **filters: Any) -> pd.DataFrame:
    """The recorded rounds of a run: actions, noise-free and observed values, cumulative metrics, dual variables.

    Args:
        run: path or URI of the run folder.
        columns: columns to read (all by default).
        filters: of the cells, such as problem="rkhs-1d", seed=0.
    """
    return Run(run).rounds(columns, **filters)
