"""`cbobench verify --replay`: draws cells of published results and plays them again."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, NoReturn

from cbobench.errors import CbobenchError, Misuse, printable, show
from cbobench.options import accept_fields
from cbobench.replay.bits import play_again
from cbobench.replay.by_round import ask_by_round
from cbobench.replay.outcomes import Outcome
from cbobench.replay.sources import Candidate, Draw, draw, open_sources
from cbobench.replay.stage import Stage, Unplayable
from cbobench.words import count_noun

SEEDS = 2**31  # the draw's own seed is below


@dataclass(frozen=True)
class ReplayOptions:
    """What is replayed.

    Attributes:
        runs: run folders or bundles, paths or URIs.
        cells: how many are drawn from all of them together.
        seed: of the draw; by default one that nobody can foresee, which is said.
        by_round: ask every drawn cell round by round on its history.
        data: folder with the original data sets.
        imports: import the modules that the runs name.
    """

    runs: Sequence[str]
    cells: int
    _: KW_ONLY
    seed: int | None = None
    by_round: bool = False
    data: Path | None = None
    imports: bool = False

    def __post_init__(self) -> None:
        if self.cells < 1:
            raise Misuse(f"--replay is {show(self.cells)}; it must be a whole number of cells, at least 1, such as 25")
        if self.seed is not None and not 0 <= self.seed < SEEDS:
            raise Misuse(f"--seed is {show(self.seed)}; it must be a whole number from 0 to {SEEDS - 1}")


@dataclass(frozen=True)
class Replay:
    """What became of drawn cells.

    Attributes:
        drawn: the draw.
        outcomes: of its cells, in order.
        unread: a line per run that cannot be read, or lacks a part.
    """

    drawn: Draw
    outcomes: tuple[Outcome, ...]
    unread: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether anything was found that should not be: a difference, or what cannot be read."""
        return bool(self.unread) or any(outcome.state == "differs" for outcome in self.outcomes)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of what was drawn could be compared here, so that nothing is confirmed."""
        return not any(outcome.is_checked for outcome in self.outcomes)


@dataclass(frozen=True)
class Plan:
    """Cells that were drawn, and what is known before they are replayed.

    Attributes:
        drawn: the draw.
        unread: a line per run that cannot be read, or contradicts itself.
    """

    drawn: Draw
    unread: tuple[str, ...]


def plan_replay(options: ReplayOptions) -> Plan:
    """Draw the cells to replay.

    Raises:
        Misuse: nothing can be drawn. CbobenchError: no run can be read.
    """
    sources, unread = open_sources(options.runs)
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed  # nobody may know what will be drawn
    drawn = draw(sources, options.cells, seed, options.by_round)
    if not drawn.candidates:
        _refuse_empty(drawn)
    return Plan(drawn, (*unread, *(line for source in sources for line in source.contradictions)))


def _refuse_empty(drawn: Draw) -> NoReturn:
    if drawn.unchecked:
        cells = count_noun(drawn.unchecked, "cell")
        raise Misuse(
            f"no cell can be drawn: of {cells} to be asked round by round none carries its history; "
            "set up the libraries of the play, or give a bundle of a newer export"
        )
    raise Misuse("no cell can be drawn: none was played to its end")


def replay_plan(plan: Plan, options: ReplayOptions) -> Replay:
    """Play the drawn cells again, and compare."""
    stage = Stage(options.data, options.imports)
    groups: dict[tuple[Any, ...], list[Candidate]] = {}
    for candidate in plan.drawn.candidates:
        cell = candidate.cell
        groups.setdefault((id(candidate.source), cell.pair.key, cell.horizon, candidate.way), []).append(candidate)
    outcomes = [outcome for group in groups.values() for outcome in _replay_group(stage, group)]
    place = {id(candidate): i for i, candidate in enumerate(plan.drawn.candidates)}
    outcomes.sort(key=lambda outcome: place[id(outcome.candidate)])
    return Replay(plan.drawn, tuple(outcomes), plan.unread)


@accept_fields(ReplayOptions)
def replay(options: ReplayOptions) -> Replay:
    """Play drawn cells of published results again, and compare.

    Args: see `ReplayOptions`.

    Raises:
        Misuse: nothing can be drawn. CbobenchError: no run can be read.
    """
    return replay_plan(plan_replay(options), options)


def _replay_group(stage: Stage, group: list[Candidate]) -> list[Outcome]:
    """Replay cells of one run, pair, horizon and way."""
    source, pair = group[0].source, group[0].cell.pair
    try:
        problem = stage.problem(pair)
    except Unplayable as error:
        return [Outcome(candidate, "unplayable", str(error)) for candidate in group]
    if text := stage.find_false_words(pair):
        return [Outcome(candidate, "differs", text) for candidate in group]
    try:
        if group[0].way == "bits":
            return play_again(problem, source, group)
        return [ask_by_round(problem, candidate) for candidate in group]
    except CbobenchError as error:  # of the store, or of a damaged file
        return [Outcome(candidate, "differs", printable(str(error))) for candidate in group]
