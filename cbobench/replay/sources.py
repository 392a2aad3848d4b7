"""Runs and bundles whose cells are replayed: which cells there are, in which way each can be, and a draw of some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from cbobench.arithmetic import arithmetic_kind
from cbobench.errors import CbobenchError, printable
from cbobench.results.bundle import open_run
from cbobench.results.folder import RunFolder
from cbobench.results.history import carries_history
from cbobench.results.manifest import NO_POSITION, Manifest
from cbobench.results.provenance import cpu_kind
from cbobench.results.query import Origin, PublishedCells, read_published
from cbobench.results.rounds import cell_codes
from cbobench.results.source import other_versions
from cbobench.results.staleness import Freshness
from cbobench.rng import generator
from cbobench.suite.cells import Cell, as_words

Way = Literal["bits", "rounds"]
"""How a cell is replayed: anew and to the last bit, or round by round on its history."""


@dataclass(frozen=True, eq=False)
class Source:
    """A run or a bundle, read once."""

    folder: RunFolder
    manifest: Manifest
    published: PublishedCells

    @classmethod
    def open(cls, run: str) -> Source:
        """Read a run or a bundle. Raises `CbobenchError` where there is none, or a damaged one."""
        folder = open_run(run)
        return cls(folder, Manifest.read(folder), read_published(folder, None))

    @property
    def name(self) -> str:
        """The last part of its address, for lines about its cells."""
        return printable(str(self.folder).rstrip("/").rpartition("/")[2])

    def origin(self, cell: Cell) -> Origin:
        """Return by what a published cell was played."""
        row = self.published.find(np.array([int(cell.id, 16)], dtype=np.uint64))[0]
        return self.published.origins[self.published.origin[row]]

    @cached_property
    def absent(self) -> set[str]:
        """Columns of cells that hold nothing: metrics that are newer than the file, among others."""
        table = self.published.table
        return {name for name in table.column_names if table[name].null_count == len(table)}

    @cached_property
    def histories(self) -> set[str]:
        """Ids of the cells whose every round is there."""
        if self.folder.improvements_kind == "rounds":
            by_pair = self.manifest.cells.by_pair
            keep = self.manifest.keep
            recorded_ids = [cells.ids for cells in by_pair if keep is None or cells.horizon <= keep]
            return {cell for ids in recorded_ids for cell in as_words(ids)}
        ids: set[str] = set()
        for name in self.folder.names("history"):
            for part in self.folder.row_groups("history", name, ["cell"]):
                ids.update(cell_codes(part).dictionary.to_pylist())
        return ids

    @cached_property
    def lost_histories(self) -> int:
        """Cells that should carry their rounds, and do not: a bundle of this version leaves none of them out."""
        if not self.folder.names("history") or self.manifest.keep is not None:
            return 0
        good = self.published.table.filter(pc.equal(self.published.table["status"], "ok"))["cell"].to_pylist()
        return len({cell for cell in good if carries_history(cell)} - self.histories)


def open_sources(runs: Iterable[str]) -> tuple[list[Source], list[str]]:
    """Return the runs that can be read, and a line for each of the others.

    Raises:
        CbobenchError: none of them can be.
    """
    sources: list[Source] = []
    errors: list[CbobenchError] = []
    for run in runs:
        try:
            sources.append(Source.open(run))
        except CbobenchError as error:
            errors.append(error)
    if not sources:
        raise errors[0]
    return sources, [printable(str(error)) for error in errors]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cell that can be drawn, and how it is replayed."""

    source: Source
    cell: Cell
    way: Way
    stale: bool


@dataclass(frozen=True)
class Draw:
    """The cells to replay.

    Attributes:
        candidates: those that were drawn, sorted by id.
        cells: how many good cells the runs hold.
        drawable: how many of them could be drawn in each way.
        unlike: how many were played with other libraries or arithmetic than are here.
        without_history: how many of these carry no history, so that they cannot be drawn.
        seed: of the draw.
    """

    candidates: tuple[Candidate, ...]
    cells: int
    drawable: dict[Way, int]
    unlike: int
    without_history: int
    seed: int


def is_alike(origin: Origin) -> bool:
    """Return whether the libraries and the arithmetic here are those of a play, as far as it recorded them."""
    if other_versions(origin.libraries):
        return False
    if origin.arithmetic is not None:
        return origin.arithmetic == arithmetic_kind()
    return origin.cpu in (None, cpu_kind())


def draw(sources: Sequence[Source], count: int, seed: int, by_round: bool = False) -> Draw:
    """Draw cells that were played to their end, each with equal probability.

    A cell that was played with the libraries and the arithmetic here is replayed to the last bit, another round by
    round, if it carries its history.

    Args:
        count: how many; all, if there are fewer.
        seed: the same one draws the same cells of the same runs.
        by_round: whether all are replayed round by round.
    """
    freshness = Freshness()
    candidates: list[Candidate] = []
    total = unlike = without_history = 0
    for source in sources:
        published = source.published
        alike = [is_alike(origin) for origin in published.origins]
        for pair_cells in source.manifest.cells.by_pair:
            rows = published.find(pair_cells.ids)
            for i in np.flatnonzero(rows != NO_POSITION).tolist():
                if published.failed[rows[i]]:
                    continue
                total += 1
                cell, which = pair_cells.cell(i), int(published.origin[rows[i]])
                unlike += not alike[which]
                way: Way = "bits" if alike[which] and not by_round else "rounds"
                if way == "rounds" and cell.id not in source.histories:
                    without_history += 1
                    continue
                stale = freshness.stale(cell.pair, published.origins[which])
                candidates.append(Candidate(source, cell, way, stale))
    candidates.sort(key=lambda candidate: candidate.cell.id)  # whatever the order of the runs' suites
    chosen = generator("replay", seed).choice(len(candidates), min(count, len(candidates)), replace=False)
    ways: tuple[Way, Way] = ("bits", "rounds")
    drawable = {way: sum(candidate.way == way for candidate in candidates) for way in ways}
    drawn = tuple(candidates[i] for i in sorted(chosen.tolist()))
    return Draw(drawn, total, drawable, unlike, without_history, seed)
