"""Whether every file of a run is whole: all damaged ones are named at once, and moved away when asked.

Each file is read to its last byte (pages have checksums), and held against what it should be: its footer, the cells
that the run asked for, and the other file of its task: the last round of every cell says what its row says. Last comes
the digest that it says of itself. (Of files of older versions, without checksums or digests, the same is asked but for
those.) A digest tells of accidents; who means to change a file can make it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cbobench.errors import DamagedRun, Misuse
from cbobench.metrics import METRICS
from cbobench.results.folder import REPAIR, FileGone, RunFolder
from cbobench.results.lease import Lease, find_orphans, refuse_played
from cbobench.results.manifest import CALLS, CHANGED, DIGEST, FILE, REMAKE, Manifest, cell_of_row, rebuild_manifest
from cbobench.results.schema import KINDS
from cbobench.suite.cells import Cells
from cbobench.words import counted

QUARANTINE = "quarantine"
ABSENT = "is missing"
FINITE = ["f", *(name for name, metric in METRICS.items() if not metric.nullable)]
"""Columns of rounds that hold a number in every row."""
WHOLE = [name for name, metric in METRICS.items() if metric.relative and metric.cumulative]
"""Those that hold one in every row or, where nothing is known that they could be against, in none."""
KEPT = [name for name in METRICS if not name.startswith("recommended_")]
"""Metrics that a cell's row and its last recorded round share."""


@dataclass(frozen=True)
class Damage:
    """A file of a run that is not what it should be, by its path in the run, and why."""

    file: str
    why: str


@dataclass
class Verification:
    """What was found.

    Attributes:
        files: how many were read.
        damaged: those that are not what they should be.
        orphans: tasks with rounds and without cells: someone is writing them, or was ended while he did.
        twice: how many cells are published by several tasks with the same attempt, and the same results.
        late: tasks with cells and without rounds, whose cells others have played, too: of a worker that outlived its
            call, and whose rounds were taken for leftovers. They do not count.
        bare: how many files say no digest of what they hold, as those of older versions: changed values may pass there.
        cells, asked: published cells that are whole, and cells asked for (None: no record says).
    """

    files: int = 0
    damaged: list[Damage] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    twice: int = 0
    cells: int = 0
    asked: int | None = None
    bare: int = 0

    @property
    def tasks(self) -> list[str]:
        """The tasks of the damaged files."""
        names = [damage.file.partition("/")[2] for damage in self.damaged if damage.file.partition("/")[0] in KINDS]
        return sorted({name.removesuffix(".parquet") for name in names})


Rows = dict[str, dict[str, Any]]
"""What a file says of each cell."""


def verify(folder: RunFolder) -> Verification:
    """Read all files of a run. Beside a live writer what is published meanwhile is left out.

    Raises:
        Misuse: no run there. StoreFailure: it cannot be reached.
    """
    found = Verification()
    record = _record(folder, found)
    tasks = {kind: folder.names(kind) for kind in ("cells", "audit", "rounds")}  # in this order nothing is torn
    counted: dict[tuple[str, int], tuple[str, Any]] = {}
    whole: dict[str, int] = {}
    bare: dict[str, Rows] = {}
    for task in tasks["cells"]:
        said = _checked(folder, found, "cells", task, record)
        played = _checked(folder, found, "rounds", task, record) if task in tasks["rounds"] else None
        audited = _checked(folder, found, "audit", task, record) if task in tasks["audit"] else None
        if said is None:
            continue
        good = {cell: row for cell, row in said.items() if row["status"] == "ok"}
        if task not in tasks["rounds"] and good:
            bare[task] = good
            continue
        why = None if played is None else _disagree(good, played)
        if why is None and audited is not None and not {*audited} <= {*good}:
            why = "its audit is of other cells"
        for cell, row in said.items() if why is None else ():
            result = tuple(row.get(name) for name in KEPT)
            other, before = counted.setdefault((cell, row["attempt"]), (task, result))
            if other != task and not _same(before, result):
                why = f"its cell {cell} has another result in cells/{other}.parquet"
            found.twice += other != task
        if why is not None:
            found.damaged.append(Damage(f"cells/{task}.parquet", why))
        elif played is not None or not good:
            for cell, row in said.items():
                whole[cell] = max(whole.get(cell, 0), row["attempt"])
    for task, good in bare.items():
        if all(whole.get(cell, 0) >= row["attempt"] for cell, row in good.items()):
            found.late.append(task)
        else:
            found.damaged.append(Damage(f"cells/{task}.parquet", "its rounds are missing"))
    found.orphans = [task for task in find_orphans(folder) if task in tasks["rounds"] and task not in tasks["cells"]]
    for task in found.orphans:
        _checked(folder, found, "rounds", task, record)
    found.cells = len(whole)
    if record is not None:
        found.asked, found.cells = len(record.cells), len({*whole} & {*record.cells})
    return found


def _record(folder: RunFolder, found: Verification) -> Manifest | None:
    """The run's record, if it is whole."""
    for name in folder.calls(CALLS):
        _judge(folder, found, f"{CALLS}/{name}.json", name)
    if not folder.exists(FILE) and (folder.calls(CALLS) or any(folder.names(kind) for kind in KINDS)):
        found.files += 1
        found.damaged.append(Damage(FILE, ABSENT))
    else:
        _judge(folder, found, FILE)
    if any(damage.file == FILE and damage.why != ABSENT for damage in found.damaged):
        return None  # what it asked for is not known: cells are not judged by it
    try:
        return Manifest.read(folder) if Manifest.exists(folder) else None
    except DamagedRun:
        return None


def _judge(folder: RunFolder, found: Verification, file: str, call: str = "") -> None:
    """Look whether a record is what was written, and of the call that its name says."""
    found.files += 1
    try:
        content = folder.read_json(file)
        manifest = Manifest.from_json(content, file)
        found.bare += DIGEST not in content
        if call and manifest.calls != {call}:
            raise DamagedRun("holds another call")
    except DamagedRun as error:
        found.damaged.append(Damage(file, str(error).removeprefix(f"{file} ").removesuffix(f"; {REMAKE}")))


def _checked(folder: RunFolder, found: Verification, kind: str, task: str, record: Manifest | None) -> Rows | None:
    """What a file says of each of its cells, or None where it is damaged or gone."""
    try:
        rows, bare = _read(folder, kind, task, record)
        found.bare += bare
    except FileGone:
        return None
    except DamagedRun as error:
        why = str(error).removeprefix(f"{folder.path(f'{kind}/{task}.parquet')} ").removesuffix(f"; {REPAIR}")
        found.damaged.append(Damage(f"{kind}/{task}.parquet", why))
        rows = None
    found.files += 1
    return rows


def _read(folder: RunFolder, kind: str, task: str, record: Manifest | None) -> tuple[Rows, bool]:
    footer = folder.footer(kind, task)
    if kind == "rounds":
        rows = _last_rounds(folder.row_groups(kind, task))
    else:
        listed = folder.read(kind, task).to_pylist()
        rows = {row["cell"]: row for row in listed}
        if len(rows) < len(listed):
            raise DamagedRun("holds a cell twice")
    if not isinstance(footer["cells"], list) or not all(isinstance(cell, str) for cell in footer["cells"]):
        raise DamagedRun("has a footer that cbobench did not write")
    if {*footer["cells"]} != {*rows}:
        raise DamagedRun(f"should hold {counted(len(footer['cells']), 'cell')}, and holds others")
    for cell, row in rows.items():
        if kind == "cells":
            cell_of_row(row, "it")
            if row["status"] not in ("ok", "failed") or row["attempt"] != footer.get("attempt"):
                raise DamagedRun(f"has status {row['status']!r} and attempt {row['attempt']} for the cell {cell}")
        if record is not None and cell not in record.cells:
            raise DamagedRun(f"holds a cell {cell} that this run did not ask for")
        if record is not None and record.cells[cell].seed != row["seed"]:
            raise DamagedRun(f"holds the cell {cell} with the seed {row['seed']}")
    said = "digest" in footer
    if said and not folder.digest_matches(kind, task):
        raise DamagedRun(CHANGED)
    return rows, not said


def _last_rounds(groups: Iterator[pa.Table]) -> Rows:
    """Of each cell its last recorded round, and how many were recorded."""
    rows: Rows = {}
    for part in groups:
        for name in FINITE:
            column = part[name]
            if column.null_count < len(column) and not np.isfinite(column.to_numpy()).all():
                raise DamagedRun(f"holds {name} that is not finite")
        unknown = {name: ~np.isfinite(part[name].to_numpy()) for name in WHOLE}
        if not np.isfinite(pc.list_flatten(part["g"]).to_numpy()).all():
            raise DamagedRun("holds g that is not finite")
        cells = part["cell"].cast(pa.string()).to_numpy()
        t = part["t"].to_numpy()
        starts = np.flatnonzero(np.append([True], cells[1:] != cells[:-1])[: len(cells)]).tolist()
        for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
            before = rows.get(cells[start], {"t": 0, "count": 0})
            if t[start] <= before["t"] or (np.diff(t[start:end]) <= 0).any():
                raise DamagedRun(f"holds the rounds of the cell {cells[start]} in another order")
            for name, where in unknown.items():
                if where[start:end].any() and (part[name][start:end].null_count < end - start):
                    raise DamagedRun(f"holds {name} that is not finite")
            last = {name: part[name][end - 1].as_py() for name in ("t", "seed", *METRICS)}
            rows[cells[start]] = last | {"count": before["count"] + end - start}
    if len({row["count"] for row in rows.values()}) > 1:
        raise DamagedRun("holds more rounds of one cell than of another")
    return rows


def _disagree(cells: Rows, rounds: Rows) -> str | None:
    """Why a task's rounds are not those of its cells, or None."""
    if {*cells} != {*rounds}:
        return "its rounds are of other cells"
    for cell, row in cells.items():
        if rounds[cell]["t"] != row["horizon"]:
            return f"its rounds of the cell {cell} end with {rounds[cell]['t']}, it has {row['horizon']}"
        for name in KEPT:
            if not _same((row[name],), (rounds[cell][name],)):
                return f"its cell {cell} ends with {name} = {row[name]}, its rounds with {rounds[cell][name]}"
    return None


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def repair(folder: RunFolder, found: Verification) -> list[str]:
    """Move what is damaged, with the other files of its task, into `quarantine/`, and make a lost run.json again.

    Nothing is deleted; the next run plays the cells again. No call can begin meanwhile, and what one has played since
    the run was verified stays.

    Returns:
        The files that were moved.

    Raises:
        Misuse: someone plays into the folder.
    """
    refuse_played(folder, "repair it")
    if not found.damaged:
        return []
    with Lease(folder, _asked_for(folder)) as lease:
        lease.start_heartbeat_thread()
        return _quarantine(lease.folder, verify(folder))


def _asked_for(folder: RunFolder) -> Cells:
    """What any call may play, as far as the run says; where neither record nor cells can be read, none can begin."""
    with suppress(DamagedRun, Misuse):
        record = Manifest.read(folder) if Manifest.exists(folder) else rebuild_manifest(folder)
        return Cells(record.cells.strips)
    return Cells()


def _quarantine(folder: RunFolder, found: Verification) -> list[str]:
    records = [damage.file for damage in found.damaged if damage.file.partition("/")[0] not in KINDS]
    files = [f"{kind}/{task}.parquet" for task in found.tasks for kind in ("cells", "rounds", "audit")]
    moved = [file for file in (*files, *records) if folder.exists(file)]
    for file in moved:
        folder.move(file, _free(folder, f"{QUARANTINE}/{file}"))
    if records:
        with suppress(Misuse):  # no cell is left to make it from: the next call begins anew
            (Manifest.read(folder) if Manifest.exists(folder) else rebuild_manifest(folder)).write(folder)
    return moved


def _free(folder: RunFolder, name: str) -> str:
    """The name, or the first with a number behind it that is not taken."""
    tries = 0
    while folder.exists(f"{name}.{tries}" if tries else name):
        tries += 1
    return f"{name}.{tries}" if tries else name
