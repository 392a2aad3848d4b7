"""`cbobench status`: what a run holds now, how fast it goes on, and its best designs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import numpy as np

from cbobench.errors import DamagedRun, one_line, printable
from cbobench.report.load import Run
from cbobench.report.selection import Selection
from cbobench.report.tables.best import describe_by, find_best
from cbobench.report.tables.formats import to_json_value
from cbobench.results.folder import RunFolder, open_run
from cbobench.results.lock import find_player
from cbobench.results.manifest import Manifest
from cbobench.results.query import NO_POSITION, PublishedCells, read_published
from cbobench.results.simulations import SIMULATIONS_FOLDER
from cbobench.results.source import Freshness, Origin
from cbobench.suite.cells import Cell, Cells, PairCells
from cbobench.words import count_noun, describe_rate, time_left

SHOWN_FAILURES = 5


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
    published = read_published(folder)
    freshness = Freshness(folder.is_bundle)
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


@dataclass(frozen=True)
class RunStatus:
    """A run at a moment.

    Attributes:
        folder, record: of the run.
        state: of its cells.
        player: who plays into it now; "" for nobody.
        rate: seed-rounds a second that were published since that call began; None where nobody
            plays, or nothing has come since.
    """

    folder: RunFolder
    record: Manifest
    state: Status
    player: str
    rate: float | None

    @property
    def is_complete(self) -> bool:
        """Whether every cell is done."""
        return not self.state.failed and not len(self.state.missing)

    @property
    def seconds_left(self) -> float | None:
        """Until no cell is missing, at the rate so far; None where that is not known."""
        if self.rate is None:
            return None
        missing = self.state.missing.by_pair
        rounds = sum(pair_cells.horizon * len(pair_cells) for pair_cells in missing)
        return rounds / self.rate

    @cached_property
    def kept(self) -> int:
        """How many simulations it keeps."""
        if not isinstance(self.folder, RunFolder):
            return 0
        return len(self.folder.names(SIMULATIONS_FOLDER, ".json"))

    @cached_property
    def best(self) -> list[dict[Any, Any]]:
        """The best design of each problem, of what is published (`find_best`).

        Raises:
            DamagedRun: what the cells recommend is no action of their problem.
        """
        if not len(self.state.done):
            return []
        run = Run(self.folder, self.record)
        try:
            return find_best(run, Selection(run).groups)
        except (LookupError, TypeError, ValueError) as error:
            raise DamagedRun(
                f"{self.folder} recommends what is no action of its problem: {one_line(error)}"
            ) from error

    def describe(self) -> list[str]:
        """Lines on the cells, on who plays them and how fast, on failures and the best designs."""
        counts = self.state.counts()
        cells = count_noun(len(self.record.cells), "cell")
        progress = f"{counts['done']:,} of {cells} done, {counts['failed']:,} failed"
        progress += f", {counts['missing']:,} missing"
        if not self.folder.is_bundle:
            progress += f", {counts['stale']:,} stale"
        lines = [f"{self.record.suite or self.folder}: {progress}"]
        if self.player:
            lines.append(f"  played now by {printable(self.player)}")
        if self.rate is not None and self.seconds_left is not None:
            lines.append(f"  {describe_rate(self.rate)}; left: {time_left(self.seconds_left)}")
        if self.kept and not self.is_complete:
            lines.append(f"  {count_noun(self.kept, 'simulation')} kept")
        for cell, error in self.state.failed[:SHOWN_FAILURES]:
            lines.append(f"  failed: {printable(f'{cell}: {error}')}")
        more = counts["failed"] - SHOWN_FAILURES
        if more > 0:
            lines.append(f"  ... and {more:,} more (--format json lists all)")
        lines += [f"  not played: {line}" for line in self.record.unplayable]
        lines += [f"  {line}" for line in self.record.leftovers]
        lines += [f"  {best['line']}" for best in self.best]
        return lines

    def to_json(self) -> dict[str, Any]:
        """The same as a value of JSON (docs/clusters.md)."""
        content: dict[str, Any] = {
            "suite": self.record.suite,
            "folder": str(self.folder),
            "expected": len(self.record.cells),
            **self.state.counts(),
            "unchecked": len(self.state.unchecked),
            "other_libraries": len(self.state.other_libraries),
            "cpus": sorted(self.state.cpus),
            "arithmetic": sorted(self.state.arithmetic),
            "player": printable(self.player) or None,
            "rounds_per_second": self.rate,
            "seconds_left": self.seconds_left,
            "simulations": {"kept": self.kept},
            "failures": [
                {
                    "cell": cell.id,
                    "problem": printable(cell.pair.problem.title),
                    "algorithm": printable(cell.pair.algorithm.title),
                    "seed": cell.seed,
                    "error": printable(error),
                }
                for cell, error in self.state.failed
            ],
            "best": [_to_json(best) for best in self.best],
        }
        if self.folder.is_bundle:  # whether its code is another, only a replay can tell
            content |= {"stale": None, "unchecked": None}
        if self.record.unplayable:
            content["unplayable"] = self.record.unplayable
        return content


def _to_json(best: Mapping[Any, Any]) -> dict[str, Any]:
    """A best design, in all digits."""
    inputs = best["configuration"].items()
    return {
        "problem": printable(best["problem_label"]),
        "configuration": {printable(name): to_json_value(value) for name, value in inputs},
        "objective": printable(best["objective"]),
        "value": to_json_value(best["value"]),
        "by": printable(describe_by(best["by"])),
    }


def look(location: str) -> RunStatus:
    """The run at a path or URI, as it is now."""
    folder = open_run(location)
    # Before the cells: a call that has ended meanwhile has published all of its own.
    player = find_player(folder) if isinstance(folder, RunFolder) else ""
    record, state = read_status(folder)
    rate = None
    with suppress(ValueError):  # nobody plays, or not one of ours
        began = datetime.fromisoformat(player.rpartition(" since ")[2]).timestamp()
        rounds = count_rounds_since(folder, record, state.published, began)
        rate = rounds / max(1.0, time.time() - began) or None
    return RunStatus(folder=folder, record=record, state=state, player=player, rate=rate)


def count_rounds_since(
    folder: RunFolder, manifest: Manifest, published: PublishedCells, since: float
) -> int:
    """Return the seed-rounds of the cells that were published after a time.

    Args:
        since: in seconds, by the clock of the folder.
    """
    listing = folder.listing("cells")
    written = [listing.get(f"{task.name}.parquet") for task in published.tasks]
    is_recent = np.array(
        [info is not None and (info.mtime_ns or 0) / 1e9 > since for info in written], dtype=bool
    )
    rounds = 0
    for pair_cells in manifest.cells.by_pair:
        rows = published.find(pair_cells.ids)
        tasks = published.task[rows[rows != NO_POSITION]]
        rounds += pair_cells.horizon * int(is_recent[tasks].sum())
    return rounds
