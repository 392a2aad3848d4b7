"""`cbobench status`: what a run holds now, how fast it goes on, and its best designs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from cbobench.errors import DamagedRun, one_line, printable
from cbobench.report.load import Run
from cbobench.report.selection import Selection
from cbobench.report.states import Status, read_status
from cbobench.report.tables.best import describe_by, find_best
from cbobench.report.tables.formats import to_json_value
from cbobench.results.folder import RunFolder, open_run
from cbobench.results.lock import find_player
from cbobench.results.manifest import Manifest
from cbobench.results.query import NO_POSITION, PublishedCells
from cbobench.results.simulations import SIMULATIONS_FOLDER
from cbobench.words import count_noun, describe_rate, time_left

SHOWN_FAILURES = 5


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
            return find_best(run, Selection(run).groups).to_dict("records")
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
    return RunStatus(
        folder=folder,
        record=record,
        state=state,
        player=player,
        rate=rate,
    )


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
