"""Plays cells anew, as a sweep does, and compares them to the last bit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from cbobench.play.isolation import captured_output, default_warnings
from cbobench.play.task import Task, play_task
from cbobench.problems.base import Problem
from cbobench.replay.differences import (
    NOT_COMPARED,
    find_difference,
    find_other_recommendation,
    is_of_older_rule,
)
from cbobench.replay.outcomes import Outcome
from cbobench.replay.sources import Candidate, Source
from cbobench.results.folder import RunFolder
from cbobench.results.history import Record, read_records
from cbobench.results.query import read_published
from cbobench.results.schema import RULE

MISSING = ("ModuleNotFoundError", "ImportError")
"""Errors of a play that lacks a library."""
UNSTORED = {*NOT_COMPARED, RULE}
"""Columns whose absence says nothing of a result."""


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
    for candidate in candidates:
        cell = candidate.cell.id
        if cell not in errors:
            outcomes.append(_compare(candidate, published[cell], played[cell]))
            continue
        error = errors[cell]
        lacks = error.rpartition(": round ")[2].startswith(MISSING) or error.startswith(MISSING)
        text = error if lacks else f"it fails: {error}"
        outcomes.append(Outcome(candidate, "unplayable" if lacks else "differs", text))
    return outcomes


def _compare(candidate: Candidate, published: Record, played: Record) -> Outcome:
    absent = candidate.source.absent
    text = find_difference(candidate.cell, published, played, absent)
    other = find_other_recommendation(published, played, absent)
    is_older = is_of_older_rule(published.final)
    if not text and other and not is_older:
        text = f"the play is the same, but {other}"
    return Outcome(
        candidate,
        "differs" if text else "equal",
        text,
        digest=published.digest is not None,
        recommendation="older" if other and is_older else "same",
        unstored=frozenset(name for name in absent if played.final.get(name) is not None) - UNSTORED,
    )
