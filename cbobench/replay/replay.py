"""`cbobench verify --replay`: draws cells of published results, builds their pairs again, and plays
them again.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm
from cbobench.errors import CbobenchError, Misuse, printable, show
from cbobench.options import accept_fields
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.registry import Registry
from cbobench.replay.differences import CLOSE
from cbobench.replay.sources import Candidate, Draw, Outcome, Unplayable, draw, open_sources
from cbobench.replay.ways import ask_by_round, play_again
from cbobench.results.manifest import describe_changes
from cbobench.suite.cells import Pair
from cbobench.suite.entries import Entry, SourceLine, build_problems
from cbobench.suite.prepare import check_needs, prepare_problem
from cbobench.suite.settings import ONE, count_parallel
from cbobench.suite.variants import INITIAL, PARALLEL, Variant, canonical
from cbobench.words import count_noun

SEEDS = 2**31  # the draw's own seed is below
T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
REPLAYED = SourceLine(Path("replay"))
NOT_TRUSTED = "if you trust it, add --imports"
"""How the reason ends where a module is not imported."""


@dataclass
class Stage:
    """Builds problems once, and checks methods.

    Attributes:
        data: folder with the original data sets.
        imports: whether modules that a run names may be imported.
    """

    data: Path | None = None
    imports: bool = False
    _problems: dict[str, Problem | str] = field(default_factory=dict)
    _checked: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _variants: dict[str, Variant] = field(default_factory=dict)

    def problem(self, pair: Pair) -> Problem:
        """Return the prepared problem of a pair that can be played here.

        Raises:
            Unplayable: a library, a file or a module is missing, or the pair is another one here.
        """
        problem = _remember(self._problems, pair.problem.key, lambda: self._build(pair.problem))
        if isinstance(problem, str):
            raise Unplayable(f"{pair.problem.brief}: {problem}")
        why = _remember(self._checked, pair.key, lambda: self._check(pair, problem))
        if why is not None:
            raise Unplayable(f"{pair.label}: {why}")
        return problem

    def _build(self, variant: Variant) -> Problem:
        self._refuse_import(PROBLEMS, variant.name)
        axes = {name: [value] for name, value in variant.settings.items()}
        entry = Entry(variant.name, axes, frozenset(), None, 0, ONE)
        folder = DataFolder(self.data)
        ((problem, unprepared),) = build_problems(entry, REPLAYED, self.imports, [Path()])
        current = prepare_problem(entry, problem, unprepared, REPLAYED, folder)
        if current.key != variant.key:
            raise Unplayable(f"it is another problem here ({describe_changes(variant, current)})")
        self._variants[variant.key] = current
        return problem

    def find_false_words(self, pair: Pair) -> str:
        """Return what a run says of a pair that can be played and is not so, or "".

        The parameters that name a variant are among those that build it. The inputs of a problem,
        and the unit of its objective, are those of the problem here.
        """
        for variant in (pair.problem, pair.algorithm):
            for name, value in variant.given.items():
                if name not in variant.settings or canonical(variant.settings[name]) != canonical(
                    value
                ):
                    return (
                        f"{show(variant.title)} names {name} = {show(value)}, and was played "
                        "with another"
                    )
        current = self._variants[pair.problem.key]
        if pair.problem.inputs is not None and canonical(pair.problem.inputs) != canonical(
            current.inputs
        ):
            return "its inputs are others here"
        if pair.problem.objective is None:
            return ""
        stated, actual = (
            pair.problem.objective[1:],
            (current.objective or ["", math.nan, math.nan])[1:],
        )
        # They may be computed, and then differ in a last bit where the arithmetic is another one.
        width = CLOSE * max(map(abs, stated))
        if all(abs(left - right) <= width for left, right in zip(stated, actual, strict=True)):
            return ""
        return f"its objective has the zero and unit {show(stated)}, here {show(actual)}"

    def _check(self, pair: Pair, problem: Problem) -> None:
        variant = pair.algorithm
        self._refuse_import(ALGORITHMS, variant.name)
        cls = ALGORITHMS.get(variant.name, imports=self.imports, beside=[Path()])
        algorithm: Algorithm = params.build(cls, variant.settings)
        values = params.identity(cls, params.resolve(cls, variant.settings))
        values |= {key: variant.values[key] for key in (INITIAL, PARALLEL) if key in variant.values}
        current = Variant(variant.name, variant.given, values, variant.label, variant.settings)
        if current.key != variant.key:
            raise Unplayable(f"it is another method here ({describe_changes(variant, current)})")
        check_needs(type(algorithm), problem)
        algorithm.check(problem)
        if count_parallel(variant) > 1:
            algorithm.check_late(problem)

    def _refuse_import(self, registry: Registry, name: str) -> None:
        if registry.import_path(name) and not self.imports:
            raise Misuse(f"{name} is not imported because a run names it; {NOT_TRUSTED}")


def _remember(cache: dict[Key, T | str], key: Key, build: Callable[[], T]) -> T | str:
    """Return what was built for a key, or in words why it could not be; each is tried once."""
    if key not in cache:
        try:
            cache[key] = build()
        except CbobenchError as error:
            cache[key] = printable(
                str(error).removeprefix(str(REPLAYED(0))).partition("; can play it: ")[0]
            )
    return cache[key]


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
            raise Misuse(
                f"--replay is {show(self.cells)}; it must be a whole number of cells, at least "
                "1, such as 25"
            )
        if self.seed is not None and not 0 <= self.seed < SEEDS:
            raise Misuse(
                f"--seed is {show(self.seed)}; it must be a whole number from 0 to {SEEDS - 1}"
            )


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
        """Whether nothing of what was drawn could be compared here, so that nothing is
        confirmed.
        """
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
    # nobody may know what will be drawn
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    drawn = draw(sources, options.cells, seed, options.by_round)
    if not drawn.candidates and drawn.unchecked:
        cells = count_noun(drawn.unchecked, "cell")
        raise Misuse(
            f"no cell can be drawn: of {cells} to be asked round by round none carries its "
            "history; "
            "set up the libraries of the play, or give a bundle of a newer export"
        )
    if not drawn.candidates:
        raise Misuse("no cell can be drawn: none was played to its end")
    return Plan(drawn, (*unread, *(line for source in sources for line in source.contradictions)))


def replay_plan(plan: Plan, options: ReplayOptions) -> Replay:
    """Play the drawn cells again, and compare."""
    stage = Stage(options.data, options.imports)
    groups: dict[tuple[Any, ...], list[Candidate]] = {}
    for candidate in plan.drawn.candidates:
        cell = candidate.cell
        groups.setdefault(
            (id(candidate.source), cell.pair.key, cell.horizon, candidate.way), []
        ).append(candidate)
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
