"""A draw of the cells of runs and bundles, and whether a cell can be the same to the last bit
here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbobench.arithmetic import arithmetic_kind
from cbobench.errors import CbobenchError, printable
from cbobench.replay.differences import drop_unknown
from cbobench.results.export import OF_THE_CPU
from cbobench.results.folder import RunFolder, open_run
from cbobench.results.manifest import NO_POSITION, Manifest
from cbobench.results.provenance import cpu_kind, installed_version
from cbobench.results.query import PublishedCells, read_published
from cbobench.results.source import Origin, other_versions
from cbobench.rng import generator
from cbobench.suite.cells import Cell


@dataclass(frozen=True, eq=False)
class Source:
    """A run or a bundle, read once."""

    folder: RunFolder
    manifest: Manifest
    published: PublishedCells

    @property
    def name(self) -> str:
        """The last part of its address, for lines about its cells."""
        return printable(str(self.folder).rstrip("/").rpartition("/")[2])

    def list_cells(self) -> Iterator[PublishedCell]:
        """Yield the cells that were played to their end."""
        published = self.published
        # long texts, which say nothing that a cell is drawn or judged by
        table = drop_unknown(published.table.drop_columns(["spec", "traceback"])).to_pylist()
        for pair_cells in self.manifest.cells.by_pair:
            rows = published.find(pair_cells.ids)
            for i in np.flatnonzero(rows != NO_POSITION).tolist():
                if not published.failed[rows[i]]:
                    origin = published.origins[published.origin[rows[i]]]
                    yield PublishedCell(
                        source=self, cell=pair_cells.cell(i), origin=origin, row=table[rows[i]]
                    )


@dataclass(frozen=True, eq=False)
class PublishedCell:
    """A cell of a run, what played it, and its row in the table of cells."""

    source: Source
    cell: Cell
    origin: Origin
    row: Mapping[str, Any]

    def __str__(self) -> str:
        return printable(f"{self.cell} ({self.source.name})")


def open_sources(runs: Iterable[str]) -> tuple[list[Source], list[str]]:
    """Return the runs that can be read, and a line for each of the others.

    Raises:
        CbobenchError: none of them can be.
    """
    sources: list[Source] = []
    errors: list[CbobenchError] = []
    # One that cannot be read must not keep the others from being checked.
    for run in runs:
        try:
            folder = open_run(run)
            published = read_published(folder, None)
            sources.append(Source(folder, Manifest.read(folder), published))
        except CbobenchError as error:
            errors.append(error)
    if not sources:
        raise errors[0]
    return sources, [printable(str(error)) for error in errors]


def draw(cells: Sequence[PublishedCell], count: int, seed: int) -> list[PublishedCell]:
    """Draw cells, each with equal probability; the same seed draws the same cells of the same
    results, and of others others: nobody can publish what a seed will not draw.
    """
    # whatever the order of the runs' suites
    ordered = sorted(cells, key=lambda published: published.cell.id)
    results = hashlib.sha256()
    for published in ordered:
        results.update(repr(published.row).encode())
    # The stream is named by the results, too, which must be fixed before it can be known.
    order = generator("replay", seed, results.hexdigest()).permutation(len(ordered))
    return [ordered[i] for i in sorted(order[:count].tolist())]


def find_other_player(origin: Origin) -> str:
    """Return in words what played a cell that is another here, so that its bits may be others; ""
    if all is the same.
    """
    # A stranger's text may name any number of libraries: the first other one ends the search.
    for library in origin.libraries.split(", "):
        if other_versions(library):
            here = installed_version(library.partition(" ")[0]) or "not installed"
            return f"played with {library}; here: {here}"
    if origin.arithmetic != arithmetic_kind():
        return f"played by the arithmetic {origin.arithmetic}; here: {arithmetic_kind()}"
    # Other libraries give the same bits on every CPU that can be held to the arithmetic.
    if OF_THE_CPU in origin.libraries and origin.cpu != cpu_kind():
        return f"played with PyTorch on another kind of CPU, {origin.cpu}; here: {cpu_kind()}"
    return ""
