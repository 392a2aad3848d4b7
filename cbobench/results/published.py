"""What of a run is published: the row that counts of every cell, as columns, since there may be a million."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cbobench.errors import DamagedRun
from cbobench.results.asked import ABSENT as ABSENT
from cbobench.results.asked import located
from cbobench.results.folder import REPAIR, SHARD, RunFolder, Unfinished, Vanished, looked
from cbobench.results.schema import schema
from cbobench.suite.cells import as_numbers, as_words

COLUMNS = ["cell", "status", "error", "source", "libraries", "cpu", "attempt"]


class Maker(NamedTuple):
    """Code, libraries and CPU that played a cell; of cells of older versions the CPU is not known."""

    source: str
    libraries: str
    cpu: str | None


@dataclass(frozen=True, slots=True)
class Played:
    """The published row of a cell that counts: the latest attempt, and the task that holds it."""

    cell: str
    task: str
    status: str
    error: str | None
    source: str
    libraries: str
    attempt: int


@dataclass(frozen=True, eq=False)
class Published(Mapping[str, Played]):
    """The rows that count, by the cells' ids.

    Attributes:
        ids: (n,) as numbers, ascending.
        rows: (n,) their positions in the table.
        table: every row that was read, whether it counts or not.
        task, made: (rows of the table,) positions in `tasks` and `makers`.
        tasks: names of the files.
        makers: who played.
        failed, attempt: (rows of the table,).
    """

    ids: NDArray[np.uint64]
    rows: NDArray[np.int64]
    table: pa.Table
    task: NDArray[np.int64]
    made: NDArray[np.int64]
    tasks: list[str]
    makers: list[Maker]
    failed: NDArray[np.bool_]
    attempt: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(as_words(self.ids))

    def __getitem__(self, cell: str) -> Played:
        row = ABSENT
        with suppress(ValueError):  # no id at all
            row = int(self.find(as_numbers([cell]))[0])
        if row == ABSENT:
            raise KeyError(cell)
        state, made = "failed" if self.failed[row] else "ok", self.makers[self.made[row]]
        return Played(
            cell, self.tasks[self.task[row]], state, self.table["error"][row].as_py(), made.source, made.libraries,
            int(self.attempt[row]),
        )  # fmt: skip

    def find(self, ids: NDArray[np.uint64]) -> NDArray[np.int64]:
        """(k,) rows of cells, `ABSENT` where one is not published."""
        return located(ids, self.ids, self.rows)

    def made_by(self, rows: NDArray[np.int64], holds: Callable[[Maker], bool]) -> NDArray[np.bool_]:
        """(k,) whether something holds of who played some rows."""
        known = np.array([holds(maker) for maker in self.makers], dtype=bool)
        return known[self.made[rows]]

    def cpus(self, rows: NDArray[np.int64]) -> set[str]:
        """The kinds of CPU that played some rows, as far as they are known."""
        kinds = [self.makers[i].cpu for i in np.flatnonzero(np.bincount(self.made[rows])).tolist()]
        return {kind for kind in kinds if kind is not None}

    def by_task(self, cells: Iterable[str]) -> dict[str, list[str]]:
        """Published cells by the file that holds them."""
        listed = list(cells)
        found: dict[str, list[str]] = {}
        for cell, task in zip(listed, self.task[self.find(as_numbers(listed))].tolist(), strict=True):
            found.setdefault(self.tasks[task], []).append(cell)
        return found


def played(folder: RunFolder, columns: list[str] | None = COLUMNS) -> Published:
    """The row that counts of every published cell. A cell played twice counts once, by its latest attempt.

    Cells are listed before rounds, and a task publishes its rounds before its cells: whatever is published while this
    reads, the rounds of every cell that it has seen are there. Where files go meanwhile, because a shard replaces them
    (see `results.compact`), it looks again.

    Args:
        columns: to read, `COLUMNS` among them; None for all.

    Raises:
        DamagedRun: a file of the run is truncated or foreign, or a task's rounds are missing.
    """
    return looked(lambda: _published(folder, columns))


def _published(folder: RunFolder, columns: list[str] | None) -> Published:
    names = folder.names("cells")
    rounds = folder.names("rounds")
    replaced: set[str] = set()
    tasks: list[str] = []
    tables: list[pa.Table] = []
    for name in sorted(names, key=lambda name: (not name.startswith(SHARD), name)):
        if name not in replaced:
            footer, table = folder.checked("cells", name, columns)
            replaced.update(footer.get("replaces", ()))
            tasks.append(name)
            tables.append(table)
    known = set()
    for name in rounds:
        if name not in replaced:
            try:
                folder.footer("rounds", name)
                known.add(name)
            except Unfinished:
                if name in names:
                    raise  # else its cells are played again, and it is written again
    sizes = [len(table) for table in tables]
    table = pa.concat_tables(tables) if tables else schema("cells").empty_table()
    task = np.repeat(np.arange(len(tasks)), sizes)
    makers: dict[Maker, int] = {}
    try:
        numbers = as_numbers(table["cell"].to_pylist())
        said = map(Maker, *(table[name].to_pylist() for name in Maker._fields))
        made = np.array([makers.setdefault(maker, len(makers)) for maker in said], dtype=np.int64)
        attempt = np.array(table["attempt"].to_pylist(), dtype=np.int64)  # its own arrays would import pandas
        failed = np.array([state != "ok" for state in table["status"].to_pylist()], dtype=bool)
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise DamagedRun(f"{folder.path('cells')} holds rows that cbobench did not write; {REPAIR}") from error
    bare = ~np.array([name in known for name in tasks], dtype=bool)[task] & ~failed
    order = np.lexsort((-np.arange(len(numbers)), attempt, numbers))
    order = order[~bare[order]]
    latest = order[np.append(numbers[order][1:] != numbers[order][:-1], np.ones(min(1, len(order)), bool))]
    found = Published(numbers[latest], latest, table, task, made, tasks, [*makers], failed, attempt)
    for row in np.flatnonzero(bare):
        other = found.find(numbers[row : row + 1])[0]
        if other == ABSENT or attempt[row] > attempt[other]:  # else a straggler of a call that died
            _refuse(folder, tasks[task[row]])
    return found


def _refuse(folder: RunFolder, task: str) -> None:
    """Raises `DamagedRun` for a task without rounds, or `Vanished` where its cells have gone, too."""
    if not folder.exists(f"cells/{task}.parquet"):
        raise Vanished(f"cells/{task}.parquet is missing")
    raise DamagedRun(
        f"{folder.path('rounds')}/{task}.parquet is missing, its cells are there; restore it, or, when nothing "
        f"writes to the run: {REPAIR}"
    )


def nothing() -> Published:
    """What is published of a run that has not begun."""
    none = np.empty(0, dtype=np.int64)
    table = schema("cells").empty_table()
    return Published(none.astype(np.uint64), none, table, none, none, [], [], none.astype(bool), none)
