"""Builds the problems and checks the methods of published cells with the code at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse, show
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.results.manifest import describe_changes
from cbobench.suite.cells import Pair
from cbobench.suite.prepare import ALTERNATIVES, check_pair, prepare_problem
from cbobench.suite.text import Entry, build_problems
from cbobench.suite.variants import INITIAL, PARALLEL, Variant, canonical, flatten_values
from cbobench.suite.yamlio import SourceLine

# stands for a suite's file in messages, from which `describe_reason` cuts it
REPLAYED = SourceLine(Path("replay"))


@dataclass
class Stage:
    """Builds each problem once.

    Attributes:
        data: folder with the original data sets.
        imports: whether modules that a run names may be imported.
    """

    data: Path | None = None
    imports: bool = False
    _problems: dict[str, tuple[Problem, Variant]] = field(default_factory=dict)

    def prepare(self, pair: Pair) -> Problem:
        """Return the prepared problem of a pair that can be played here.

        Raises:
            CbobenchError: a library, a file or a module is missing, or the pair is another one
                here.
        """
        key = pair.problem.key
        if key not in self._problems:
            self._problems[key] = self._build(pair.problem)
        problem, _ = self._problems[key]
        self._check(pair.algorithm, problem)
        return problem

    def find_difference(self, variant: Variant) -> str:
        """Return what a run says otherwise of a prepared problem than the code at hand, or "".

        An older run may say nothing.
        """
        _, current = self._problems[variant.key]
        # no part of the key by which the two are the same problem
        for name in ("inputs", "objective"):
            said = getattr(variant, name)
            here = getattr(current, name)
            if said is not None and canonical(said) != canonical(here):
                return (
                    f"its run.json gives {show(variant.title)} the {name} {show(said)}, here: "
                    f"{show(here)}"
                )
        return ""

    def _build(self, variant: Variant) -> tuple[Problem, Variant]:
        self._refuse_import(variant.name)
        # An entry as a suite would have it, without axes to vary: it gives one problem.
        entry = Entry(
            name=variant.name,
            axes={name: [value] for name, value in variant.settings.items()},
            swept=frozenset(),
            label=None,
            line=0,
        )
        ((problem, unprepared),) = build_problems(
            entry, REPLAYED, self.imports, [Path()], stored=True
        )
        current = prepare_problem(entry, problem, unprepared, REPLAYED, DataFolder(self.data))
        if current.key != variant.key:
            raise Misuse(f"another problem here ({describe_changes(variant, current)})")
        return problem, current

    def _check(self, variant: Variant, problem: Problem) -> None:
        self._refuse_import(variant.name)
        cls = ALGORITHMS.get(variant.name, imports=self.imports, beside=[Path()])
        values = params.identity(cls, params.resolve(cls, variant.settings))
        # what the suite adds, which is no parameter of the class, but of the variant's key
        values |= {key: variant.values[key] for key in (INITIAL, PARALLEL) if key in variant.values}
        current = Variant(
            name=variant.name,
            given=variant.given,
            values=values,
            label=variant.label,
            settings=variant.settings,
        )
        if current.key != variant.key:
            raise Misuse(f"another method here ({describe_changes(variant, current)})")
        check_pair(variant, problem)

    def _refuse_import(self, name: str) -> None:
        if ":" in name and not self.imports:
            raise Misuse(
                f"{name} is not imported because a run names it; if you trust it, add --imports"
            )


def describe_reason(error: Exception) -> str:
    """Return why a pair cannot be played, without its place and without what others could."""
    return str(error).removeprefix(str(REPLAYED(0))).partition(ALTERNATIVES)[0]


def find_contradiction(pair: Pair) -> str:
    """Return what a run says twice of a pair, and differently, or "".

    The parameters that name a variant are among those that build it, and so are the numbers that
    fix the result; a text may stand there for a file, whose hash fixes the result.
    """
    # Readers see the name and the identity, and a play is made of the settings alone.
    for variant in (pair.problem, pair.algorithm):
        built = flatten_values(variant.settings)
        numbers = {
            name: value
            for name, value in flatten_values(variant.values).items()
            if isinstance(value, float | int) and isinstance(built.get(name), float | int)
        }
        for place, said in (("name", flatten_values(variant.given)), ("identity", numbers)):
            for name, value in said.items():
                if name and built.get(name) != value:
                    return (
                        f"its run.json says {name} = {show(value)} in the {place} of "
                        f"{show(variant.title)}, and {name} = {show(built.get(name))} in what "
                        "builds it"
                    )
    return ""
