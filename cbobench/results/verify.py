"""Checks every file from which a run is read, and names all damaged ones.

Each file is read to its last byte (pages have checksums) and compared with its footer, with the
requested cells, and with the other files of its task: the last round of each cell must have the
values of its row. Then its digest is checked, which finds accidents, not forgery. Kept simulations
are compared with their digests. Not read is the lock: no result comes from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cbobench.errors import DamagedRun, Misuse
from cbobench.metrics import METRICS
from cbobench.results.folder import REPAIR, FileGone, RunFolder
from cbobench.results.manifest import CHANGED, FILE, REMAKE, Manifest
from cbobench.results.rounds import cell_codes, equal_or_nan
from cbobench.results.schema import KINDS
from cbobench.results.simulations import SIMULATIONS_FOLDER, file_of, read_simulation
from cbobench.suite.cells import Cell, Pair
from cbobench.suite.variants import Variant
from cbobench.words import count_noun

ALWAYS_FINITE = ["f", *(name for name, metric in METRICS.items() if not metric.nullable)]
"""Columns of rounds that are finite in every row."""
FINITE_OR_ABSENT = [
    name for name, metric in METRICS.items() if metric.relative and metric.cumulative
]
"""Columns that are finite in every row of a cell, or null in all of them: there is no reference to
regret.
"""
SHARED_METRICS = [name for name in METRICS if not name.startswith("recommended_")]
"""Metrics that a cell's row shares with its last recorded round."""


@dataclass(frozen=True)
class Damage:
    """A damaged file of a run: its path in the run, and the reason."""

    file: str
    why: str


@dataclass
class Verification:
    """The findings of `verify`.

    Attributes:
        files: number of files read.
        damaged: damaged files.
        cells, expected: whole published cells, and requested cells (None without a manifest).
    """

    files: int = 0
    damaged: list[Damage] = field(default_factory=list)
    cells: int = 0
    expected: int | None = None

    def add_damage(self, file: str, why: str) -> None:
        """Add a damaged file."""
        self.damaged.append(Damage(file, why))


def find_damaged(folder: RunFolder) -> tuple[str, ...]:
    """Return the damaged files, and the other file of a task of which one is damaged: once they are
    removed, what they held is played again.
    """
    files: dict[str, None] = {}
    for damage in verify(folder).damaged:
        kind, _, name = damage.file.partition("/")
        for part in KINDS if kind in KINDS else (kind,):
            files[f"{part}/{name}" if name else part] = None
    return tuple(files)


Rows = dict[str, dict[str, Any]]
"""A row of each cell of a file, by the cell's id."""


def verify(folder: RunFolder) -> Verification:
    """Read all files that hold results, and what was asked for. Files published meanwhile are left
    out.

    Raises:
        Misuse: no run there.
        StoreFailure: it cannot be reached.
    """
    verification = Verification()
    manifest = _check_manifest(folder, verification)
    # Cells are listed first, and published last: so every listed task is complete.
    tasks = {kind: folder.names(kind) for kind in ("cells", "rounds")}
    first_results: dict[tuple[str, int], tuple[str, Any]] = {}
    latest_attempts: dict[str, int] = {}
    cells_without_rounds: dict[str, Rows] = {}
    for task in tasks["cells"]:
        cells, rounds = (
            _check_file(folder, verification, kind, task, manifest) if task in tasks[kind] else None
            for kind in ("cells", "rounds")
        )
        if cells is None:
            continue
        ok_cells = {cell: row for cell, row in cells.items() if row["status"] == "ok"}
        # Whether missing rounds are a damage is known once every task is read: a late writer may
        # have left its cells.
        if task not in tasks["rounds"] and ok_cells:
            cells_without_rounds[task] = ok_cells
            continue
        why = None if rounds is None else _find_other_rounds(ok_cells, rounds)
        # A task that contradicts itself is no witness against another one.
        if why is None:
            why = _find_other_result(first_results, task, cells)
        if why is not None:
            verification.add_damage(f"cells/{task}.parquet", why)
        # Damaged rounds are named already, and their cells are not whole.
        elif rounds is not None or not ok_cells:
            for cell, row in cells.items():
                latest_attempts[cell] = max(latest_attempts.get(cell, 0), row["attempt"])
    _judge_missing_rounds(verification, cells_without_rounds, latest_attempts)
    _check_simulations(folder, verification)
    verification.cells = len(latest_attempts)
    if manifest is not None:
        verification.expected = len(manifest.cells)
        verification.cells = len({*latest_attempts} & {*manifest.cells})
    return verification


def _judge_missing_rounds(
    verification: Verification,
    cells_without_rounds: dict[str, Rows],
    latest_attempts: dict[str, int],
) -> None:
    """Tell the cells of a worker that outlived its driver, which another task has published too,
    from those whose rounds are lost.
    """
    for task, cells in cells_without_rounds.items():
        if any(latest_attempts.get(cell, 0) < row["attempt"] for cell, row in cells.items()):
            verification.add_damage(f"cells/{task}.parquet", "its rounds are missing")


def _check_manifest(folder: RunFolder, verification: Verification) -> Manifest | None:
    """Return the run's manifest if it is whole; a changed one is not used to judge cells."""
    verification.files += 1
    try:
        # A folder without anything is no run, which reading says.
        if not folder.exists(FILE) and any(folder.names(kind) for kind in KINDS):
            raise DamagedRun("is missing")
        return Manifest.from_json(folder.read_json(FILE), FILE)
    except DamagedRun as error:
        why = str(error).removeprefix(f"{FILE} ").removesuffix(f"; {REMAKE}")
        verification.add_damage(FILE, why)
    return None


def _check_simulations(folder: RunFolder, verification: Verification) -> None:
    for name in folder.names(SIMULATIONS_FOLDER, ".json"):
        file = file_of(name)
        try:
            read_simulation(folder, name)
        except Misuse:  # removed meanwhile
            continue
        except DamagedRun as error:
            verification.add_damage(file, str(error).removeprefix(f"{folder.path(file)} "))
        verification.files += 1


def _check_file(
    folder: RunFolder, verification: Verification, kind: str, task: str, manifest: Manifest | None
) -> Rows | None:
    """Return a row of each cell of a file, or None if it is damaged or gone."""
    file = f"{kind}/{task}.parquet"
    try:
        rows = _read_checked(folder, kind, task, manifest)
    except FileGone:
        return None
    except DamagedRun as error:
        why = str(error).removeprefix(f"{folder.path(file)} ").removesuffix(f"; {REPAIR}")
        verification.add_damage(file, why)
        rows = None
    verification.files += 1
    return rows


def _read_checked(folder: RunFolder, kind: str, task: str, manifest: Manifest | None) -> Rows:
    """Return a row of each cell of a file. Raises `DamagedRun`."""
    footer = folder.footer(kind, task)
    rows = (
        _last_rounds(folder.row_groups(kind, task))
        if kind == "rounds"
        else _rows_by_cell(folder.read(kind, task))
    )
    # The footer says which cells the file should hold: rows that are lost leave no other trace.
    if not isinstance(footer["cells"], list) or not all(
        isinstance(cell, str) for cell in footer["cells"]
    ):
        raise DamagedRun("has a footer that cbobench did not write")
    if {*footer["cells"]} != {*rows}:
        raise DamagedRun(
            f"should hold {count_noun(len(footer['cells']), 'cell')}, and holds others"
        )
    for cell, row in rows.items():
        if kind == "cells":
            _check_cell(cell, row, footer)
        if manifest is not None:
            _check_request(cell, row, manifest)
    # The digest comes last: it says that something has changed, and the checks above say what.
    if not folder.digest_matches(kind, task):
        raise DamagedRun(CHANGED)
    return rows


def _rows_by_cell(table: pa.Table) -> Rows:
    rows = {row["cell"]: row for row in table.to_pylist()}
    if len(rows) < len(table):
        raise DamagedRun("holds a cell twice")
    return rows


def _check_cell(cell: str, row: dict[str, Any], footer: dict[str, Any]) -> None:
    """Raise `DamagedRun` for a row that contradicts itself or its file's footer."""
    if not _is_consistent(row):
        raise DamagedRun(f"holds a cell {cell} that does not say what it is")
    if row["status"] not in ("ok", "failed") or row["attempt"] != footer.get("attempt"):
        raise DamagedRun(
            f"has status {row['status']!r} and attempt {row['attempt']} for the cell {cell}"
        )


def _is_consistent(row: dict[str, Any]) -> bool:
    """Return whether the id and the columns of a row are those of its `spec`."""
    try:
        spec = json.loads(row["spec"])
        problem, algorithm = (
            Variant(spec[role]["name"], {}, dict(spec[role]["values"]), row[role], {})
            for role in ("problem", "algorithm")
        )
        cell = Cell(Pair(problem, algorithm), spec["horizon"], spec["seed"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return False
    return (cell.id, cell.seed, cell.horizon) == (row["cell"], row["seed"], row["horizon"])


def _check_request(cell: str, row: dict[str, Any], manifest: Manifest) -> None:
    """Raise `DamagedRun` for a row with another seed than was asked for. A cell that nobody asked
    for is no damage: its suite may not be in the record.
    """
    if cell in manifest.cells and manifest.cells[cell].seed != row["seed"]:
        raise DamagedRun(f"holds the cell {cell} with the seed {row['seed']}")


def _last_rounds(groups: Iterator[pa.Table]) -> Rows:
    """Return the last recorded round of each cell, and the number of recorded rounds."""
    rows: Rows = {}
    for part in groups:
        for name in ALWAYS_FINITE:
            column = part[name]
            if column.null_count < len(column) and not np.isfinite(column.to_numpy()).all():
                raise DamagedRun(f"holds {name} that is not finite")
        non_finite = {name: ~np.isfinite(part[name].to_numpy()) for name in FINITE_OR_ABSENT}
        if not np.isfinite(pc.list_flatten(part["g"]).to_numpy()).all():
            raise DamagedRun("holds g that is not finite")
        codes = cell_codes(part)
        numbers, ids = codes.indices.to_numpy(), codes.dictionary.to_pylist()
        t = part["t"].to_numpy()
        starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(t)], strict=True):
            cell = ids[numbers[start]]
            before = rows.get(cell, {"t": 0, "count": 0})
            if t[start] <= before["t"] or (np.diff(t[start:end]) <= 0).any():
                raise DamagedRun(f"holds the rounds of the cell {cell} in another order")
            for name, mask in non_finite.items():
                if mask[start:end].any() and (part[name][start:end].null_count < end - start):
                    raise DamagedRun(f"holds {name} that is not finite")
            last = {name: part[name][end - 1].as_py() for name in ("t", "seed", *METRICS)}
            rows[cell] = last | {"count": before["count"] + end - start}
    if len({row["count"] for row in rows.values()}) > 1:
        raise DamagedRun("holds more rounds of one cell than of another")
    return rows


def _find_other_rounds(cells: Rows, rounds: Rows) -> str | None:
    """Return why a task's rounds do not match its cells, or None."""
    if {*cells} != {*rounds}:
        return "its rounds are of other cells"
    for cell, row in cells.items():
        last = rounds[cell]
        if last["t"] != row["horizon"]:
            return f"its rounds of the cell {cell} end with {last['t']}, it has {row['horizon']}"
        for name in SHARED_METRICS:
            if not equal_or_nan(row[name], last[name]):
                return (
                    f"its cell {cell} ends with {name} = {row[name]}, its rounds with {last[name]}"
                )
    return None


def _find_other_result(
    first_results: dict[tuple[str, int], tuple[str, Any]], task: str, cells: Rows
) -> str | None:
    """Return why a task contradicts an earlier one, or None.

    Args:
        first_results: the task and the result of each cell and attempt so far; this task's are
            added.
    """
    for cell, row in cells.items():
        result = tuple(row.get(name) for name in SHARED_METRICS)
        first_task, first_result = first_results.setdefault((cell, row["attempt"]), (task, result))
        if first_task != task and not all(map(equal_or_nan, first_result, result)):
            return f"its cell {cell} has another result in cells/{first_task}.parquet"
    return None
