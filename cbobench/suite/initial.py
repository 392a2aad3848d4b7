"""The key `initial` of a suite: rounds that every method plays alike, before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse, show
from cbobench.gp.box import DesignName, check_design
from cbobench.problems.base import Problem
from cbobench.suite.parallel import said
from cbobench.suite.variants import INITIAL, PARALLEL, Variant


def initial_of(given: Any, horizon: int, where: str) -> dict[str, int]:
    """The initial design, {name: rounds}.

    Raises:
        Misuse: anything else; `where` (file and line) leads.
    """
    if not isinstance(given, Mapping) or len(given) != 1 or next(iter(given)) not in get_args(DesignName):
        raise Misuse(f"{where}initial is {show(given)}; allowed: {{sobol: rounds}} or {{random: rounds}}")
    name, count = next(iter(given.items()))
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < horizon:
        allowed = f"a whole number from 1 to {horizon - 1}, as the horizon is {horizon}"
        raise Misuse(f"{where}initial: {name} is {show(count)}; allowed: {allowed}")
    return {name: count}


def shaped(algorithm: Variant, initial: dict[str, int], parallel: dict[str, Any]) -> Variant:
    """An algorithm whose rounds are shaped by a suite's `initial` and `parallel`; a yardstick's are not."""
    found = {INITIAL: initial, PARALLEL: parallel}
    if ALGORITHMS.get(algorithm.name).reference or not any(found.values()):
        return algorithm
    values = algorithm.values | {key: value for key, value in found.items() if value}
    return replace(algorithm, values=values, note=said(parallel))


def check_initial(initial: dict[str, int], problems: Mapping[str, Problem], where: str) -> None:
    """Raises `Misuse` where a problem, by title, has fewer actions than the design has rounds."""
    for count in initial.values():
        for title, problem in problems.items():
            try:
                check_design(problem.actions, count)
            except Misuse as error:
                raise Misuse(f"{where}{title}: {error}") from None
