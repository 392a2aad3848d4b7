"""What of a run is done: from its folder alone, without Ray."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cbobench.results.folder import RunFolder
from cbobench.results.published import ABSENT, played
from cbobench.results.record import RunRecord
from cbobench.results.staleness import Freshness
from cbobench.suite.cells import Cell, Cells, Strip


@dataclass
class Status:
    """Cells of a run by state.

    Of those that are done, `stale` ones were played by code that has changed since, `unchecked` ones by code that
    cannot be imported here, `other` ones with other libraries than this machine's. `cpus`: the kinds of CPU that
    played them, where they are known.
    """

    done: Cells
    failed: list[tuple[Cell, str]]
    cpus: set[str]
    stale: Cells
    missing: Cells
    unchecked: Cells
    other: Cells

    def counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in ("done", "failed", "stale", "missing")}


@dataclass
class _Some:
    """Cells that are found strip by strip."""

    strips: list[Strip] = field(default_factory=list)

    def add(self, strip: Strip, wanted: NDArray[np.bool_]) -> None:
        if wanted.any():
            self.strips.append(strip if wanted.all() else strip.only(wanted))

    def cells(self) -> Cells:
        return Cells(tuple(self.strips))


def status(folder: RunFolder) -> tuple[RunRecord, Status]:
    """The state of every cell that was asked for."""
    record = RunRecord.read(folder)
    found, freshness = played(folder), Freshness()
    done, stale, missing, unchecked, other = (_Some() for _ in range(5))
    failures: list[tuple[Cell, str]] = []
    cpus: set[str] = set()
    for strip in record.cells.strips:
        rows = found.find(strip.ids)
        there = rows != ABSENT
        failed = there & found.failed[rows] if len(found) else there
        good = there & ~failed
        missing.add(strip, ~there)
        done.add(strip, good)
        said = [(i, found.table["error"][rows[i]].as_py()) for i in np.flatnonzero(failed).tolist()]
        failures += [(strip.cell(i), error or "") for i, error in said]
        if good.any():
            stale.add(strip, good & found.made_by(rows, partial(freshness.stale, strip.pair)))
            unchecked.add(strip, good & freshness.unknown(strip.pair))
            cpus |= found.cpus(rows[good])
            other.add(strip, good & found.made_by(rows, freshness.other_libraries))
    some = [one.cells() for one in (stale, missing, unchecked, other)]
    return record, Status(done.cells(), failures, cpus, *some)
