"""The state of every cell of a run, from its folder alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from cbobench.results.folder import RunFolder
from cbobench.results.manifest import NO_POSITION, Manifest
from cbobench.results.query import PublishedCells, read_published
from cbobench.results.source import Freshness, Origin
from cbobench.suite.cells import Cell, Cells, PairCells


@dataclass
class Status:
    """Cells of a run by state.

    Attributes:
        stale: done cells played by code that has changed since; of a bundle none are known.
        unchecked: done cells of a run folder whose code cannot be imported here.
        other_libraries: done cells played with other libraries than this machine's.
        cpus, arithmetic: known kinds of CPU, and of arithmetic, that played done cells.
        published: what the states were found by.
    """

    done: Cells
    failed: list[tuple[Cell, str]]
    cpus: set[str]
    arithmetic: set[str]
    stale: Cells
    missing: Cells
    unchecked: Cells
    other_libraries: Cells
    published: PublishedCells

    def counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in ("done", "failed", "stale", "missing")}


def read_status(folder: RunFolder) -> tuple[Manifest, Status]:
    """Return the state of every requested cell, from the folder alone."""
    manifest = Manifest.read(folder).of_latest_suite
    published, freshness = read_published(folder), Freshness(folder.is_bundle)
    by_pair: dict[str, list[PairCells]] = {
        name: [] for name in ("done", "stale", "missing", "unchecked", "other_libraries")
    }
    failures: list[tuple[Cell, str]] = []
    done_origins: set[Origin] = set()
    # A pair at a time, as arrays: code and libraries are compared once for each pair and origin.
    for pair_cells in manifest.cells.by_pair:
        rows = published.find(pair_cells.ids)
        is_published = rows != NO_POSITION
        failed = is_published & published.failed[rows] if len(published) else is_published
        is_done = is_published & ~failed
        states = {"missing": ~is_published, "done": is_done}
        if is_done.any():
            states["stale"] = is_done & published.has_origin(
                rows, partial(freshness.stale, pair_cells.pair)
            )
            states["unchecked"] = is_done & freshness.unknown(pair_cells.pair)
            states["other_libraries"] = is_done & published.has_origin(
                rows, freshness.other_libraries
            )
            done_origins |= {*published.list_origins(rows[is_done])}
        for name, mask in states.items():
            if mask.any():
                by_pair[name].append(pair_cells if mask.all() else pair_cells.only(mask))
        failures += [
            (pair_cells.cell(i), published.table["error"][rows[i]].as_py() or "")
            for i in np.flatnonzero(failed).tolist()
        ]
    cells = {name: Cells(tuple(parts)) for name, parts in by_pair.items()}
    status = Status(
        failed=failures,
        cpus={origin.cpu for origin in done_origins if origin.cpu is not None},
        arithmetic={one.arithmetic for one in done_origins if one.arithmetic is not None},
        published=published,
        **cells,
    )
    return manifest, status
