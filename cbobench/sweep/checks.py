"""What is wrong with a suite as a whole: twins, shared parameters nobody has, pairs that cannot be played."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm, Setting
from cbobench.errors import CbobenchError, Misuse, one_line, unknown
from cbobench.gp import choose
from cbobench.problems.base import Drawn, Problem
from cbobench.registry import Registry
from cbobench.rng import Streams
from cbobench.sweep.variants import Suite, Variant


def check_shared(shared: Mapping[str, Any], algorithms: list[Variant], where: str, imports: bool) -> None:
    classes = [_algorithm(v.name, imports) for v in algorithms]
    known = {p.name for cls in classes for p in params.params_of(cls)}
    for name in shared:
        if name not in known:
            raise unknown("shared parameter", name, known, where=where, then="no algorithm of this suite has it")


def _algorithm(name: str, imports: bool) -> type[Any]:
    registry: Registry = ALGORITHMS
    return registry.get(name, imports=imports)


def _try_start(variant: Variant, problem: Problem, instance: Drawn | None, horizon: int) -> None:
    """Start an algorithm on an instance that every seed shares: what fails there fails in every cell."""
    if instance is not None:
        fresh: Algorithm = params.build(ALGORITHMS.get(variant.name), variant.settings)
        if not fresh.reference:
            fresh.start(Setting.of(problem, instance, horizon, Streams([("try", variant.name)])))


BLOCK_MEMORY = 2**29  # bytes that the posteriors of one block may hold
CELL_MEMORY = 2**32  # and those of one cell


def memory_limit(suite: Suite) -> int:
    """How many seeds fit into a block.

    Raises:
        Misuse: one cell alone would need more than `CELL_MEMORY`.
    """
    seeds = []
    for variant, problem in suite.problems:
        apart = 1 if "feedback at once" in problem.offers() else 1 + problem.constraints
        needed = choose.memory(problem.actions, suite.horizon, apart)
        if needed > CELL_MEMORY:
            size = f"{needed / 1e9:.0f} GB per cell at T = {suite.horizon:,}"
            raise Misuse(
                f"{variant.title} would need {size}; allowed: {CELL_MEMORY / 1e9:.0f}; lower the horizon, or set grid"
            )
        seeds.append(max(1, BLOCK_MEMORY // needed))
    return min(seeds)


def check_needs(algorithm: type[Algorithm], problem: Problem) -> None:
    """Raises `Misuse` where a problem lacks what an algorithm needs, naming those that would do."""
    missing = sorted(algorithm.needs - problem.offers())
    if missing:
        able = [name for name in ALGORITHMS.names() if ALGORITHMS.get(name).needs <= problem.offers()]
        raise Misuse(f"it needs {' and '.join(missing)}, which the problem lacks; can play it: {', '.join(able)}")


def check_pairs(problems: list[tuple[Variant, Problem]], algorithms: list[Variant], horizon: int, path: Path) -> None:
    instances: dict[str, Drawn | None] = {}
    for variant in algorithms:
        algorithm = params.build(ALGORITHMS.get(variant.name), variant.settings)
        for problem_variant, problem in problems:
            try:
                check_needs(type(algorithm), problem)
                algorithm.check(problem)
                if problem_variant.key not in instances:
                    instances[problem_variant.key] = problem.known_instance()
                _try_start(variant, problem, instances[problem_variant.key], horizon)
            except Exception as error:  # a user's algorithm may raise anything
                reason = error if isinstance(error, CbobenchError) else one_line(error)
                raise Misuse(f"{path}: {variant.title} cannot play {problem_variant.title}: {reason}") from error


def unique(variants: list[Variant], what: str, path: Path) -> None:
    for attribute in ("title", "label", "key"):
        seen: dict[str, Variant] = {}
        for variant in variants:
            value = getattr(variant, attribute)
            if value in seen:
                hint = "remove one" if attribute != "label" else "give them different labels"
                raise Misuse(f"{path}: {what} {variant.label!r} stands twice; {hint}")
            seen[value] = variant
