"""Checks of a suite as a whole: twins, shared parameters that nothing has, unplayable pairs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm, Setting
from cbobench.algorithms.score import ScoreAlgorithm
from cbobench.errors import CbobenchError, Misuse, one_line, reraise_stop, show, unknown
from cbobench.gp.actions import Finite, Scattered
from cbobench.gp.kernels import refuse_covariance
from cbobench.gp.posteriors import choice
from cbobench.problems.base import Drawn, Problem
from cbobench.problems.data import Site
from cbobench.problems.instances import check_drawn
from cbobench.problems.simulator import Simulator
from cbobench.rng import Streams
from cbobench.suite.cells import Pair
from cbobench.suite.settings import count_parallel
from cbobench.suite.variants import Variant
from cbobench.words import join_words

ALTERNATIVES = "; can play it: "  # begins the part of a reason that tables leave out


def check_shared(shared: Mapping[str, Any], algorithms: list[Variant], location: str, imports: bool) -> None:
    """Raises `Misuse` for a shared parameter that no algorithm has."""
    names = {p.name for v in algorithms for p in params.params_of(ALGORITHMS.get(v.name, imports=imports))}
    for name in shared:
        if name not in names:
            raise unknown("shared parameter", name, names, location=location, then="no algorithm of this suite has it")


def _try_start(variant: Variant, problem: Problem, instance: Drawn | None, horizon: int) -> None:
    """Start an algorithm on an instance that every seed shares; what fails here fails in every cell."""
    if instance is not None:
        fresh: Algorithm = params.build(ALGORITHMS.get(variant.name), variant.settings)
        if not fresh.reference:
            check_drawn(instance, problem.actions, 1, problem.constraints)
            streams = Streams([("try", variant.name)])
            fresh.start(Setting.of(problem, instance, horizon, streams, count_parallel(variant)))


def know_instance(problem: Problem, site: Site) -> Drawn | None:
    """As `Problem.known_instance`; what a simulator simulates for it runs at a site."""
    if not isinstance(problem, Simulator):
        return problem.known_instance()
    with problem.at(site):
        return problem.known_instance()


def check_needs(algorithm: type[Algorithm], problem: Problem) -> None:
    """Raise `Misuse` if a problem lacks what an algorithm needs; name the algorithms that would do."""
    missing = sorted(algorithm.needs - problem.offers())
    if missing:
        able = [name for name in ALGORITHMS.names() if ALGORITHMS.get(name).needs <= problem.offers()]
        raise Misuse(f"it needs {' and '.join(missing)}, which the problem lacks{ALTERNATIVES}{', '.join(able)}")


def list_absent(cls: type[Algorithm]) -> list[str]:
    """Return the libraries of a method that are not installed, if an extra installs them."""
    return [name for name in cls.libraries if find_spec(name) is None] if hasattr(cls, "extra") else []


def describe_missing(classes: Mapping[str, type[Any]]) -> str:
    """Return in a line what some methods (by name) lack together, and one command that installs it all.

    "" if fewer than two of them lack anything: such a method says it itself.
    """
    lacking = {name: cls for name, cls in classes.items() if list_absent(cls)}
    if len(lacking) <= 1:
        return ""
    libraries = dict.fromkeys(library for cls in lacking.values() for library in list_absent(cls))
    extras = dict.fromkeys(cls.extra for cls in lacking.values())
    command = f"pip install 'cbobench[{','.join(extras)}]'"
    return f"{join_words(lacking)} need {join_words(libraries)}, not installed here; to install: {command}"


def check_pairs(
    pairs: list[Pair], problems: Mapping[str, Problem], site: Site, horizon: int, path: Path, skip: bool = False
) -> list[tuple[Pair, str]]:
    """Return the unplayable pairs, with reasons.

    Args:
        problems: prepared, by title.
        site: where they were.
        skip: whether some may be unplayable.

    Raises:
        Misuse: a pair is unplayable and none may be, or all are.
    """
    unplayable: list[tuple[Pair, str]] = []
    instances: dict[str, Drawn | None] = {}
    for pair in pairs:
        title, variant = pair.problem.title, pair.algorithm
        problem = problems[title]
        certain = True
        try:
            algorithm: Algorithm = params.build(ALGORITHMS.get(variant.name), variant.settings)
            check_needs(type(algorithm), problem)
            algorithm.check(problem)
            if count_parallel(variant) > 1:
                algorithm.check_late(problem)
            certain = not (isinstance(problem, Simulator) and problem.cut_short)
            if monotonic() >= site.deadline:
                continue  # the dry run is out of time
            if title not in instances:
                check_actions(problem)
                instances[title] = know_instance(problem, site)
            _try_start(variant, problem, instances[title], horizon)
        except BaseException as error:  # a user's algorithm may raise any error
            reraise_stop(error)
            if not certain:
                continue  # a dry run knows too little of it to refuse it
            reason = str(error) if isinstance(error, CbobenchError) else one_line(error)
            unplayable.append((pair, reason.partition(ALTERNATIVES)[0]))
            if not skip or len(unplayable) == len(pairs):
                hint = "" if skip else "; to leave such pairs out: --only, or `skip: unplayable` in the suite"
                classes = {other.algorithm.brief: ALGORITHMS.get(other.algorithm.name) for other in pairs}
                if together := describe_missing(classes) if list_absent(classes[variant.brief]) else "":
                    raise Misuse(f"{path}: {together}{hint}") from error
                raise Misuse(f"{path}: {variant.brief} cannot play {pair.problem.brief}: {reason}{hint}") from error
    return unplayable


def memory_of(pair: Pair, problem: Problem, horizon: int) -> int:
    """Return the bytes that a cell of a pair holds at most (see `choice.replicate_memory`)."""
    algorithm: Algorithm = params.build(ALGORITHMS.get(pair.algorithm.name), pair.algorithm.settings)
    functions, kind = 1 + problem.constraints, algorithm.posterior_kind()
    apart = 1 if "feedback at once" in problem.offers() and kind != "observations" else functions
    lam = 0.0
    if isinstance(algorithm, ScoreAlgorithm):
        lam = algorithm.lam_for(horizon)
        apart *= 1 + (algorithm.evidence_horizon(horizon) is not None)
        if algorithm.pending == "variance":
            apart = 2 * apart if count_parallel(pair.algorithm) > 1 else apart + (apart > 1)
    return choice.replicate_memory(problem.actions, horizon, apart, functions, kind, lam)


def check_actions(problem: Problem) -> None:
    """Raise `Misuse` for a finite set whose matrix is no covariance."""
    if isinstance(problem.actions, Finite) and not isinstance(problem.actions, Scattered):
        refuse_covariance(problem.actions.covariance, "the covariance of its actions")


def check_unique(variants: list[Variant], noun: str, path: Path) -> None:
    for attribute in ("title", "label", "key"):
        first_variants: dict[str, Variant] = {}
        for variant in variants:
            value = getattr(variant, attribute)
            if value in first_variants:
                hint = "remove one" if attribute != "label" else "give them different labels"
                first = first_variants[value].label
                suffix = "" if first == variant.label else f", once as {show(variant.label)}"
                raise Misuse(f"{path}: {noun} {show(first)} stands twice{suffix}; {hint}")
            first_variants[value] = variant
    titles = {variant.title: variant for variant in variants}
    for variant in variants:
        if titles.get(variant.label, variant) is not variant:
            raise Misuse(
                f"{path}: the label {show(variant.label)} is the name of another {noun}; give it another label"
            )
