"""The problems and methods of published cells, built again from what a run says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.algorithms.base import Algorithm
from cbobench.errors import CbobenchError, Misuse, printable, show
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.replay.differences import CLOSE
from cbobench.suite.cells import Pair
from cbobench.suite.checks import check_needs
from cbobench.suite.entries import Entry, SourceLine, build_problems, prepare_variants
from cbobench.suite.settings import ONE, count_parallel
from cbobench.suite.variants import INITIAL, PARALLEL, Variant, canonical, difference

REPLAYED = SourceLine(Path("replay"))
NOT_TRUSTED = "if you trust it, add --imports"
"""How the reason ends where a module is not imported."""


class Unplayable(CbobenchError):
    """A cell cannot be replayed here."""


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
    _checked: dict[tuple[str, str], str] = field(default_factory=dict)
    _variants: dict[str, Variant] = field(default_factory=dict)

    def problem(self, pair: Pair) -> Problem:
        """Return the prepared problem of a pair that can be played here.

        Raises:
            Unplayable: a library, a file or a module is missing, or the pair is another one here.
        """
        key = pair.problem.key
        if key not in self._problems:
            try:
                self._problems[key] = self._build(pair.problem)
            except CbobenchError as error:
                self._problems[key] = _reason(error)
        problem = self._problems[key]
        if isinstance(problem, str):
            raise Unplayable(f"{pair.problem.brief}: {problem}")
        if pair.key not in self._checked:
            try:
                self._check(pair, problem)
                self._checked[pair.key] = ""
            except CbobenchError as error:
                self._checked[pair.key] = _reason(error)
        if why := self._checked[pair.key]:
            raise Unplayable(f"{pair.label}: {why}")
        return problem

    def _build(self, variant: Variant) -> Problem:
        self._refuse_import(variant.name)
        axes = {name: [value] for name, value in variant.settings.items()}
        entry = Entry(variant.name, axes, frozenset(), None, 0, ONE)
        folder = DataFolder(self.data)
        built = build_problems(entry, REPLAYED, self.imports, [Path()])
        ((current, problem),) = prepare_variants(entry, built, REPLAYED, folder, lambda variant: True)
        if current.key != variant.key:
            raise Unplayable(f"it is another problem here ({describe_difference(variant, current)})")
        self._variants[variant.key] = current
        return problem

    def find_false_words(self, pair: Pair) -> str:
        """Return what a run says of a pair that can be played and is not so, or "".

        The parameters that name a variant are among those that build it. The inputs of a problem, and the unit of its
        objective, are those of the problem here.
        """
        for variant in (pair.problem, pair.algorithm):
            for name, value in variant.given.items():
                if name not in variant.settings or canonical(variant.settings[name]) != canonical(value):
                    return f"{show(variant.title)} names {name} = {show(value)}, and was played with another"
        current = self._variants[pair.problem.key]
        if pair.problem.inputs is not None and canonical(pair.problem.inputs) != canonical(current.inputs):
            return "its inputs are others here"
        if pair.problem.objective is None:
            return ""
        stated, own = pair.problem.objective[1:], (current.objective or ["", math.nan, math.nan])[1:]
        # They may be computed, and then differ in a last bit where the arithmetic is another one.
        width = CLOSE * max(map(abs, stated))
        if all(abs(one - other) <= width for one, other in zip(stated, own, strict=True)):
            return ""
        return f"its objective has the zero and unit {show(stated)}, here {show(own)}"

    def _check(self, pair: Pair, problem: Problem) -> None:
        variant = pair.algorithm
        self._refuse_import(variant.name)
        cls = ALGORITHMS.get(variant.name, imports=self.imports, beside=[Path()])
        algorithm: Algorithm = params.build(cls, variant.settings)
        values = params.identity(cls, params.resolve(cls, variant.settings))
        values |= {key: variant.values[key] for key in (INITIAL, PARALLEL) if key in variant.values}
        current = Variant(variant.name, variant.given, values, variant.label, variant.settings)
        if current.key != variant.key:
            raise Unplayable(f"it is another method here ({describe_difference(variant, current)})")
        check_needs(type(algorithm), problem)
        algorithm.check(problem)
        if count_parallel(variant) > 1:
            algorithm.check_late(problem)

    def _refuse_import(self, name: str) -> None:
        if ":" in name and not self.imports:
            raise Misuse(f"{name} is not imported because a run names it; {NOT_TRUSTED}")


def _reason(error: CbobenchError) -> str:
    return printable(str(error).removeprefix(str(REPLAYED(0))).partition("; can play it: ")[0])


def describe_difference(before: Variant, after: Variant) -> str:
    """Return the parameters in which two variants of one name differ: "h 0.25 → 0.5"."""
    changed = difference([before, after])
    return ", ".join(f"{name} {show(old)} → {show(new)}" for name, (old, new) in changed.items())
