"""Plays cells anew, as a sweep does, and compares them to the last bit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from cbobench.play.isolation import captured_output, default_warnings
from cbobench.play.task import Task, play_task
from cbobench.problems.base import Problem
from cbobench.replay.differences import find_difference
from cbobench.replay.outcomes import Outcome, State
from cbobench.replay.sources import Candidate, Source
from cbobench.results.folder import RunFolder
from cbobench.results.history import read_records
from cbobench.results.query import read_published

MISSING = ("ModuleNotFoundError", "ImportError")
"""Errors of a play that lacks a library."""


def play_again(problem: Problem, source: Source, candidates: Sequence[Candidate]) -> list[Outcome]:
    """Return what became of cells of one pair and horizon that were played again.

    Raises:
        DamagedRun: what is published of them is damaged.
    """
    cells = tuple(candidate.cell for candidate in candidates)
    published = read_records(source.folder, source.published, [cell.id for cell in cells])
    task = Task(cells, source.manifest.keep, source="replay", libraries="replay")
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(place)
        with default_warnings(), captured_output():
            play_task(problem, task, folder)
        replayed = read_published(folder, None)
        rows = replayed.table.select(["cell", "status", "error"]).to_pylist()
        errors = {row["cell"]: row["error"] or "" for row in rows if row["status"] != "ok"}
        played = read_records(folder, replayed, [cell.id for cell in cells if cell.id not in errors])
    outcomes = []
    state: State
    for candidate in candidates:
        cell = candidate.cell.id
        if cell in errors:
            lacks = errors[cell].rpartition(": round ")[2].startswith(MISSING) or errors[cell].startswith(MISSING)
            state, text = "unplayable" if lacks else "differs", errors[cell] if lacks else f"it fails: {errors[cell]}"
        else:
            text = find_difference(published[cell], played[cell], source.absent)
            state = "differs" if text else "equal"
        outcomes.append(Outcome(candidate, state, text, digest=published[cell].digest is not None))
    return outcomes
