"""Finds what is damaged of a run or a bundle: files whose bytes are not those that were written, or
that do not belong together.

Every file holds a digest of its bytes, and every cell one of what was played (`results.rounds`).
Whether what was written is what the code plays, only a replay can tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cbobench.errors import DamagedRun, Misuse
from cbobench.results.folder import REPAIR, FileGone, RunFolder
from cbobench.results.manifest import CHANGED, FILE, REMAKE, Manifest
from cbobench.results.rounds import Digests, cell_codes
from cbobench.results.schema import KINDS, PLAYED
from cbobench.results.simulations import SIMULATIONS_FOLDER, file_of, read_simulation
from cbobench.words import count_noun

CHECKED = ["cell", "status", "digest", "recommended_action", "recommended_x"]
OF_BUNDLES = ("improvements", "plays")


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
        if kind in KINDS:
            files |= dict.fromkeys(f"{part}/{name}" for part in KINDS)
        else:
            files[damage.file] = None
    return tuple(files)


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
    tasks = {kind: folder.names(kind) for kind in ("cells", "rounds", *OF_BUNDLES)}
    whole: set[str] = set()
    for task in tasks["cells"]:
        # Both files are read, whatever the first is like: all damage is to be named.
        is_whole = _check_file(folder, verification, "cells", task)
        has_rounds = task in tasks["rounds"]
        has_whole_rounds = has_rounds and _check_file(folder, verification, "rounds", task)
        # Damage is noted by now; cells of which a file is damaged or gone are not judged.
        if not is_whole or has_rounds != has_whole_rounds:
            continue
        cells = folder.read("cells", task, CHECKED).to_pylist()
        good_cells = {row["cell"]: row for row in cells if row["status"] == "ok"}
        # Failed cells have no rounds, so that a task of them alone may lack the file.
        if has_rounds:
            why = _find_other_play(folder, task, good_cells)
        else:
            why = "its rounds are missing" if good_cells else ""
        if why:
            verification.add_damage(f"cells/{task}.parquet", why)
        else:
            whole |= {row["cell"] for row in cells}

    # Rounds without cells, of a worker that was killed, count for nothing but are read, too.
    unpaired = [("rounds", task) for task in tasks["rounds"] if task not in tasks["cells"]]
    of_bundles = [(kind, task) for kind in OF_BUNDLES for task in tasks[kind]]
    for kind, task in (*unpaired, *of_bundles):
        _check_file(folder, verification, kind, task)
    _check_simulations(folder, verification)

    # Of the whole cells only those that were asked for count, where that is known.
    verification.cells = len(whole)
    if manifest is not None:
        verification.expected = len(manifest.cells)
        verification.cells = len(whole & {*manifest.cells})
    return verification


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


def _check_file(folder: RunFolder, verification: Verification, kind: str, task: str) -> bool:
    """Return whether a file has the bytes that were written, and the cells that its footer says;
    False for one that is gone, too.
    """
    file = f"{kind}/{task}.parquet"
    try:
        cells = {cell for part in folder.row_groups(kind, task, ["cell"]) for cell in _ids(part)}
        expected = folder.footer(kind, task)["cells"]
        # rows that are lost leave no other trace
        if {*expected} != cells:
            raise DamagedRun(f"should hold {count_noun(len(expected), 'cell')}, and holds others")
        if not folder.digest_matches(kind, task):
            raise DamagedRun(CHANGED)
    except FileGone:
        return False
    except DamagedRun as error:
        why = str(error).removeprefix(f"{folder.path(file)} ").removesuffix(f"; {REPAIR}")
        verification.add_damage(file, why)
        verification.files += 1
        return False
    verification.files += 1
    return True


def _ids(part: pa.Table) -> list[str]:
    return [str(cell) for cell in cell_codes(part).dictionary.to_pylist()]


def _find_other_play(folder: RunFolder, task: str, good_cells: dict[str, dict[str, Any]]) -> str:
    """Return why a task's rounds are not those of its cells, or "". A bundle does not have all."""
    if {*folder.footer("rounds", task)["cells"]} != {*good_cells}:
        return "its rounds are of other cells"
    if folder.is_thinned:
        return ""
    digests = Digests()
    try:
        for part in folder.row_groups("rounds", task, ["cell", *PLAYED]):
            digests.add(part)
    except DamagedRun as error:
        return str(error)
    for cell, row in good_cells.items():
        if digests.finish(cell, row) != row["digest"]:
            return f"its rounds of the cell {cell} are not what was played"
    return ""
