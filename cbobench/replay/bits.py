"""Plays cells anew, as a sweep does, and compares them to the last bit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace

from cbobench.errors import one_line
from cbobench.play.block import start
from cbobench.play.failure import reraise_interrupt
from cbobench.play.isolation import captured_output, default_warnings, isolate_play
from cbobench.play.process import preserve_process
from cbobench.play.task import Task, play_task
from cbobench.problems.base import Problem
from cbobench.replay.differences import (
    OF_RECOMMENDATION,
    find_difference,
    find_false_recommendation,
    find_other_recommendation,
    find_unstored,
    is_of_older_rule,
)
from cbobench.replay.outcomes import Outcome
from cbobench.replay.recomputed import value_recommendation
from cbobench.replay.sources import Candidate, Source
from cbobench.results.folder import RunFolder
from cbobench.results.history import Record, read_records
from cbobench.results.query import read_published
from cbobench.threads import single_thread

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
    for candidate in candidates:
        cell = candidate.cell.id
        if cell not in errors:
            outcomes.append(_compare(problem, candidate, published[cell], played[cell]))
            continue
        error = errors[cell]
        lacks = error.rpartition(": round ")[2].startswith(MISSING) or error.startswith(MISSING)
        text = error if lacks else f"it fails: {error}"
        outcomes.append(Outcome(candidate, "unplayable" if lacks else "differs", text))
    return outcomes


def _compare(problem: Problem, candidate: Candidate, published: Record, played: Record) -> Outcome:
    absent = candidate.source.absent
    text = find_difference(candidate.cell, published, played, absent)
    other = find_other_recommendation(published, played, absent)
    is_older = is_of_older_rule(published.final)
    if not text and other and not is_older:
        text = f"the play is the same, but {other}"
    elif not text and other:
        text = _find_false_values(problem, candidate, published, played)
    return Outcome(
        candidate,
        "differs" if text else "equal",
        text,
        digest=published.digest is not None,
        recommendation="older" if other and is_older else "same",
        unstored=find_unstored(published, played, absent),
    )


def _find_false_values(problem: Problem, candidate: Candidate, published: Record, played: Record) -> str:
    """Return where the values of an older rule's recommendation are not those of what it recommends, or ""."""
    cell = candidate.cell
    names = cell.pair.problem.name, cell.pair.algorithm.name
    with single_thread(), default_warnings(), captured_output(), preserve_process(), isolate_play(*names, cell.seed):
        try:
            play, _ = start(problem, [cell], cell.horizon, candidate.source.manifest.keep)
            values, scales = value_recommendation(play, published.final)
        except BaseException as error:  # a problem may raise any error
            reraise_interrupt(error)
            return f"it fails: {one_line(error)}"
    valued = replace(played, final=played.final | values)
    return find_false_recommendation(
        published, valued, {*candidate.source.absent, *OF_RECOMMENDATION} - {*values}, scales
    )
