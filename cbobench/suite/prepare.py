"""Prepares the problems of a suite and refuses pairs that cannot be played."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm, Setting
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.errors import (
    CbobenchError,
    Misuse,
    one_line,
    printable,
    refuse_strange,
    reraise_stop,
)
from cbobench.gp.actions import Finite, Scattered
from cbobench.gp.kernels import refuse_covariance
from cbobench.gp.posteriors import choice
from cbobench.problems.base import Drawn, Problem
from cbobench.problems.data import Site
from cbobench.problems.instances import check_drawn
from cbobench.rng import Streams
from cbobench.suite import yamlio
from cbobench.suite.cells import Grid, Pair, Suite
from cbobench.suite.settings import ONE, check_initial, count_past
from cbobench.suite.text import Entry, SuiteText, check_unique
from cbobench.suite.variants import Variant, canonical
from cbobench.suite.yamlio import SourceLine
from cbobench.threads import single_thread
from cbobench.watcher import Watcher

ALTERNATIVES = "; can play it: "  # begins the part of a reason that tables leave out
# values of inputs that a manifest holds; of a larger table an action is its number
MOST_INPUTS = 100_000


def prepare(text: SuiteText, site: Site) -> Suite:
    """Prepare the problems of a suite and start every algorithm on every problem.

    Args:
        site: whom problems tell; its folders are filled in.

    Raises:
        Misuse: a problem that cannot be prepared, or a pair that cannot be played.
    """
    notes = _NewNotes(site.watcher)
    site = replace(site, folder=text.call.data, base=text.path.parent, watcher=notes)
    prepared: list[tuple[Variant, Problem]] = []
    for entry, problems in text.problems:
        prepared += _prepare_entry(text, entry, problems, site)
    # Identities are known only now: of a table, say, by the hashes of its files.
    check_unique([variant for variant, _ in prepared], "problem", text.path)
    by_title = {variant.title: problem for variant, problem in prepared}
    check_initial(text.initial, by_title, text.place("initial"))
    # Every algorithm starts once on what all seeds share: what fails there fails in every cell.
    pairs = [
        Pair(problem, algorithm)
        for problem, _ in prepared
        for algorithm, _ in text.algorithms
        if (problem.title, algorithm.title) in text.selected
    ]
    unplayable = _check_pairs(text, pairs, by_title)
    left_out = {id(pair) for pair, _ in unplayable}
    grid = Grid(
        problems=tuple(variant for variant, _ in prepared),
        algorithms=tuple(variant for variant, _ in text.algorithms),
        horizon=text.horizon,
        seeds=tuple(text.seeds),
        pairs=tuple(pair for pair in pairs if id(pair) not in left_out),
        command=text.command,
        unplayable=tuple(unplayable),
    )
    return Suite(
        name=text.name,
        about=text.about,
        keep=text.keep,
        grid=grid,
        problems=by_title,
        timeout=text.timeout,
        floor=text.floor,
        demands={variant.title: demand for variant, demand in text.algorithms if demand != ONE},
    )


class _NewNotes(Watcher):
    """Passes on each note once, as variants of one entry have the same to say."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.passed_on: set[str] = set()

    def note(self, text: str) -> None:
        if text not in self.passed_on:
            self.passed_on.add(text)
            self.watcher.note(text)


def _prepare_entry(
    text: SuiteText, entry: Entry, problems: Sequence[tuple[Problem, Variant]], site: Site
) -> list[tuple[Variant, Problem]]:
    """Return the variants of an entry with their prepared problems; one that fails and that no pair
    of the call plays is left out.
    """
    result = []
    for problem, unprepared in problems:
        try:
            result.append((prepare_problem(entry, problem, unprepared, text.at, site), problem))
        except Misuse:
            if any((unprepared.title, v.title) in text.selected for v, _ in text.algorithms):
                raise
    return result


def prepare_problem(
    entry: Entry, problem: Problem, unprepared: Variant, at: SourceLine, site: Site
) -> Variant:
    """Prepare a problem that `build_problems` has given with its variant; return the variant with
    its identity.

    Raises:
        Misuse: it cannot be prepared, in one line that begins with its place in the suite.
    """
    try:
        with single_thread(), np.errstate(all="ignore"):  # errors are reported in a sentence
            problem.prepare(site)
            problem.known_instance()
        return _identify(problem, unprepared)
    except BaseException as error:  # a user's problem may raise any error
        reraise_stop(error)
        reason = error if isinstance(error, CbobenchError) else one_line(error)
        raise Misuse(f"{at(entry.find_line(str(reason)))}{entry.name}: {reason}") from error


def _identify(problem: Problem, unprepared: Variant) -> Variant:
    """Return the variant of a prepared problem with what identifies it, and what readers are told
    of it.
    """
    fixed = problem.identity()
    note = printable(problem.note())
    inputs = problem.describe_inputs()
    _refuse_unwritable(fixed, "identity()")
    _refuse_unwritable(inputs, "describe_inputs()")
    name, zero, unit = problem.describe_objective()
    problem.settle(np.zeros(1))  # refuses an invalid tolerance
    if problem.feasibility_tolerance:
        fixed |= {"feasibility_tolerance": float(problem.feasibility_tolerance)}
    values = params.identity(type(problem), unprepared.settings) | fixed
    pairs = None if inputs is None else [[name, plain] for name, plain in inputs.items()]
    if pairs is not None and sum(len(plain) for _, plain in pairs) > MOST_INPUTS:
        pairs = None
    if math.isfinite(zero) and math.isfinite(unit):
        objective = [printable(name), zero, unit]
    else:
        objective = None
    return replace(unprepared, values=values, note=note, inputs=pairs, objective=objective)


def _refuse_unwritable(values: Any, noun: str) -> None:
    """Raises `Misuse` for what a problem says of itself that `run.json` cannot hold, before
    anything is written.
    """
    for place, text, _ in yamlio.texts(values):
        refuse_strange(text, f"{noun}: {place}", lines=True)
    try:
        canonical(values)
    except (TypeError, ValueError) as error:
        allowed = "text, finite numbers, true, false and None, in lists and mappings by text"
        raise Misuse(
            f"{noun} gives what a run cannot store ({one_line(error)}); allowed: {allowed}"
        ) from error


def check_needs(algorithm: type[Algorithm], problem: Problem) -> None:
    """Raise `Misuse` if a problem lacks what an algorithm needs; name the algorithms that would
    do.
    """
    missing = sorted(algorithm.needs - problem.offers())
    if missing:
        able = [
            name for name in ALGORITHMS.names() if ALGORITHMS.get(name).needs <= problem.offers()
        ]
        raise Misuse(
            f"it needs {' and '.join(missing)}, which the problem "
            f"lacks{ALTERNATIVES}{', '.join(able)}"
        )


def _check_pairs(
    text: SuiteText, pairs: Sequence[Pair], problems: Mapping[str, Problem]
) -> list[tuple[Pair, str]]:
    """Return the unplayable pairs, with reasons.

    Args:
        problems: prepared, by title.

    Raises:
        Misuse: a pair is unplayable and none may be, or all are.
    """
    unplayable: list[tuple[Pair, str]] = []
    instances: dict[str, Drawn | None] = {}
    for pair in pairs:
        problem = problems[pair.problem.title]
        try:
            check_pair(pair.algorithm, problem)
            if pair.problem.title not in instances:
                check_actions(problem)
                instances[pair.problem.title] = problem.known_instance()
            instance = instances[pair.problem.title]
            # what fails on an instance that every seed shares fails in every cell
            fresh: Algorithm = params.build(
                ALGORITHMS.get(pair.algorithm.name), pair.algorithm.settings
            )
            if instance is not None and not fresh.reference:
                check_drawn(instance, problem.actions, 1, problem.constraints)
                streams = Streams([("try", pair.algorithm.name)])
                at_once = pair.algorithm.points_at_once
                fresh.start(Setting.of(problem, instance, text.horizon, streams, at_once))
        except BaseException as error:  # a user's algorithm may raise any error
            reraise_stop(error)
            reason = str(error) if isinstance(error, CbobenchError) else one_line(error)
            unplayable.append((pair, reason.partition(ALTERNATIVES)[0]))
            if not text.skips or len(unplayable) == len(pairs):
                raise _refuse_pair(text, pair, reason) from error
    return unplayable


def check_pair(variant: Variant, problem: Problem) -> None:
    """Raise `Misuse` if an algorithm lacks what it needs of a problem, or says that it cannot play
    it.
    """
    cls: type[Algorithm] = ALGORITHMS.get(variant.name)
    check_needs(cls, problem)
    algorithm = params.build(cls, variant.settings)
    algorithm.check(problem)
    if variant.points_at_once > 1:
        algorithm.check_late(problem)


def _refuse_pair(text: SuiteText, pair: Pair, reason: str) -> Misuse:
    """Return what refuses a suite for a pair."""
    hint = "; to leave such pairs out: --only, or `skip: unplayable` in the suite"
    if text.skips:
        hint = ""
    return Misuse(
        f"{text.path}: {pair.algorithm.brief} cannot play {pair.problem.brief}: {reason}{hint}"
    )


def memory_of(pair: Pair, problem: Problem, horizon: int) -> int:
    """Return the bytes that a cell of a pair holds at most (see `choice.replicate_memory`)."""
    algorithm: Algorithm = params.build(
        ALGORITHMS.get(pair.algorithm.name), pair.algorithm.settings
    )
    functions = 1 + problem.constraints
    kind = algorithm.posterior_kind(problem)
    apart = 1 if "feedback at once" in problem.offers() and kind != "observations" else functions
    lam = 0.0
    if isinstance(algorithm, ScoreAlgorithm):
        lam = algorithm.lam_for(horizon)
        apart *= 1 + (algorithm.evidence_horizon(horizon) is not None)
        if algorithm.pending == "variance":
            apart = 2 * apart if pair.algorithm.points_at_once > 1 else apart + (apart > 1)
    told = horizon + count_past(pair.algorithm)
    return choice.replicate_memory(problem.actions, told, apart, functions, kind, lam)


def check_actions(problem: Problem) -> None:
    """Raise `Misuse` for a finite set whose matrix is no covariance."""
    if isinstance(problem.actions, Finite) and not isinstance(problem.actions, Scattered):
        refuse_covariance(problem.actions.covariance, "the covariance of its actions")
