"""`cbobench verify --replay`: draws cells of published results, builds their pairs again, plays
them again, compares, and says what became of them.
"""

from __future__ import annotations

import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cbobench.arithmetic import arithmetic_kind
from cbobench.errors import CbobenchError, Misuse, printable, show
from cbobench.play.isolation import captured_output, default_warnings
from cbobench.play.task import Task, play_task
from cbobench.problems.base import Problem
from cbobench.replay.differences import find_difference, is_of_other_rule, read_records
from cbobench.replay.draw import PublishedCell, draw, find_other_player, open_sources
from cbobench.replay.stage import Stage, describe_reason, find_contradiction
from cbobench.results.folder import RunFolder
from cbobench.results.provenance import cpu_kind
from cbobench.results.query import read_published
from cbobench.results.source import libraries
from cbobench.words import count_noun

SEEDS = 2**31  # the draw's own seed is below
MISSING = ("ModuleNotFoundError", "ImportError")
"""Errors of a play that lacks a library."""
State = Literal["equal", "differs", "not checked"]


@dataclass(frozen=True)
class Outcome:
    """What became of a drawn cell.

    Attributes:
        published: the cell.
        state: whether it is the same to the last bit, or was not played.
        text: the first difference, or why it was not played; it may hold words of a stranger, to be
            escaped before it is printed.
    """

    published: PublishedCell
    state: State
    text: str = ""


@dataclass(frozen=True)
class Replay:
    """What became of drawn cells.

    Attributes:
        seed: of the draw.
        cells: how many could have been drawn.
        outcomes: of the drawn cells, in order.
        unread: a line per run that cannot be read.
    """

    seed: int
    cells: int
    outcomes: tuple[Outcome, ...]
    unread: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[State]:
        """Return the number of drawn cells in each state."""
        return Counter(outcome.state for outcome in self.outcomes)

    @property
    def verdict(self) -> State:
        """Return "equal" where every drawn cell was checked and is; a run that cannot be read
        differs.
        """
        if self.unread or self.counts["differs"]:
            return "differs"
        if self.counts["not checked"]:
            return "not checked"
        return "equal"


def replay(
    runs: Sequence[str],
    count: int,
    seed: int | None = None,
    stage: Stage | None = None,
    on_draw: Callable[[Sequence[PublishedCell]], None] = lambda drawn: None,
) -> Replay:
    """Play drawn cells of published results again, and compare.

    Args:
        runs: run folders or bundles, paths or URIs.
        count: how many cells are drawn from all of them together.
        seed: of the draw; by default one that nobody can foresee.
        stage: what builds their pairs; by default nothing is imported.
        on_draw: is given the drawn cells before they are played, which may take long.

    Raises:
        Misuse: nothing can be drawn. CbobenchError: no run can be read.
    """
    if count < 1:
        raise Misuse(f"--replay is {show(count)}; it must be a whole number of at least 1")
    if seed is not None and not 0 <= seed < SEEDS:
        raise Misuse(f"--seed is {show(seed)}; it must be a whole number from 0 to {SEEDS - 1}")

    # What can be read is drawn from; the rest is named beside the outcomes.
    sources, unread = open_sources(runs)
    cells = [cell for source in sources for cell in source.list_cells()]
    if not cells:
        raise Misuse("no cell can be drawn: none was played to its end")
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    drawn = draw(cells, count, seed)
    on_draw(drawn)
    outcomes = _check_cells(drawn, Stage() if stage is None else stage)
    return Replay(seed, len(cells), outcomes, tuple(unread))


def _check_cells(drawn: Sequence[PublishedCell], stage: Stage) -> tuple[Outcome, ...]:
    """Return what becomes of drawn cells; those of a run, a pair and a horizon are played
    together.
    """
    outcomes: list[Outcome] = []
    groups: dict[tuple[Hashable, ...], list[PublishedCell]] = {}
    for published in drawn:
        cell = published.cell
        if text := find_contradiction(cell.pair):
            outcomes.append(Outcome(published, "differs", text))
        elif text := find_other_player(published.origin):
            outcomes.append(Outcome(published, "not checked", text))
        else:
            key = id(published.source), cell.pair.key, cell.horizon
            groups.setdefault(key, []).append(published)
    for group in groups.values():
        outcomes += _check_group(group, stage)
    return tuple(sorted(outcomes, key=lambda outcome: drawn.index(outcome.published)))


def _check_group(group: Sequence[PublishedCell], stage: Stage) -> list[Outcome]:
    """Return what becomes of cells of one run, pair and horizon."""
    pair = group[0].cell.pair
    try:
        problem = stage.prepare(pair)
    except CbobenchError as error:
        return _judge_all(group, "not checked", f"{pair.label}: {describe_reason(error)}")
    if text := stage.find_difference(pair.problem):
        return _judge_all(group, "differs", text)
    try:
        return _play_again(problem, group)
    except CbobenchError as error:  # of the store, or of a damaged file
        return _judge_all(group, "differs", str(error))


def _judge_all(group: Sequence[PublishedCell], state: State, text: str) -> list[Outcome]:
    return [Outcome(published, state, text) for published in group]


def _play_again(problem: Problem, group: Sequence[PublishedCell]) -> list[Outcome]:
    source = group[0].source
    cells = tuple(published.cell for published in group)
    records = read_records(source.published, [cell.id for cell in cells])
    task = Task(cells, source.manifest.keep, source="replay", libraries="replay")

    # What is played goes through a run folder: what is stored of both is compared then.
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(place)
        with default_warnings(), captured_output():
            play_task(problem, task, folder)
        played = read_published(folder, None)
        rows = played.table.select(["cell", "status", "error"]).to_pylist()
        errors = {row["cell"]: row["error"] or "" for row in rows if row["status"] != "ok"}
        completed = [cell.id for cell in cells if cell.id not in errors]
        plays = read_records(played, completed)

    # A play that lacks a library says nothing of the cell; any other failure is another result.
    outcomes = []
    for published in group:
        cell = published.cell.id
        error = errors.get(cell)
        if error is None:
            text = find_difference(cell, records[cell], plays[cell])
            state: State = "differs" if text else "equal"
        else:
            text = f"it fails here: {error}"
            lacks_library = any(name in error for name in MISSING)
            state = "not checked" if lacks_library else "differs"
        outcomes.append(Outcome(published, state, text))
    return outcomes


def describe_draw(drawn: Sequence[PublishedCell]) -> str:
    """Return the line that names the drawn cells, by pair with their seeds, before they are
    played.
    """
    seeds: dict[str, list[int]] = {}
    for published in drawn:
        seeds.setdefault(printable(published.cell.pair.label), []).append(published.cell.seed)
    names = [
        f"{label} seed{'s' if len(numbers) > 1 else ''} {' '.join(map(str, sorted(numbers)))}"
        for label, numbers in sorted(seeds.items())
    ]
    return f"{count_noun(len(drawn), 'cell')} to play again: {', '.join(names)}"


def describe_replay(replay: Replay) -> list[str]:
    """Return the lines that say what became of the drawn cells."""
    drawn = f"{len(replay.outcomes):,} of {count_noun(replay.cells, 'cell')} drawn"
    counts = replay.counts
    parts = [f"{counts['equal']:,} equal"]
    if counts["differs"]:
        parts.append(f"{counts['differs']:,} different")
    if counts["not checked"]:
        parts.append(f"{counts['not checked']:,} not checked")
    lines = [f"{drawn} with --seed {replay.seed}: {', '.join(parts)}"]
    lines += [
        f"  {outcome.published}: {printable(outcome.text)}"
        for outcome in replay.outcomes
        if outcome.state == "differs"
    ]
    lines += [f"  cannot be read: {line}" for line in replay.unread]
    reasons = Counter(outcome.text for outcome in replay.outcomes if outcome.state == "not checked")
    for reason, count in reasons.items():
        lines.append(f"  not checked: {count_noun(count, 'cell')}: {printable(reason)}")
    of_other_rule = [
        outcome
        for outcome in replay.outcomes
        if outcome.state != "not checked" and is_of_other_rule(outcome.published.row)
    ]
    if of_other_rule:
        cells = count_noun(len(of_other_rule), "cell")
        lines.append(f"  recommendations not compared, as another rule made them: {cells}")
    return lines


def replay_as_json(replay: Replay) -> dict[str, Any]:
    """Return the same as plain values."""
    cells = [
        {
            "run": str(outcome.published.source.folder),
            "cell": outcome.published.cell.id,
            "problem": outcome.published.cell.pair.problem.title,
            "algorithm": outcome.published.cell.pair.algorithm.title,
            "seed": outcome.published.cell.seed,
            "state": outcome.state,
            "text": printable(outcome.text),
        }
        for outcome in replay.outcomes
    ]
    return {
        "seed": replay.seed,
        "cells": replay.cells,
        "verdict": replay.verdict,
        "here": {"libraries": libraries(), "arithmetic": arithmetic_kind(), "cpu": cpu_kind()},
        "unread": list(replay.unread),
        "drawn": cells,
    }
