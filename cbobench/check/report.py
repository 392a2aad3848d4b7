"""Runs the laws on a class, those whose failure explains others first, and prints the verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.check import methods, problems
from cbobench.check.trial import Finding, Trial, trials
from cbobench.errors import CbobenchError, one_line, reraise_stop
from cbobench.play.isolation import default_warnings
from cbobench.problems import PROBLEMS
from cbobench.problems.data import DataFolder
from cbobench.problems.formulas.box import BoxProblem
from cbobench.registry import registry_of
from cbobench.words import count_noun

Law = Callable[[Any], Iterator[Finding]]
OF_METHODS: dict[str, Law] = {
    "plays": methods.plays,
    "repeatable": methods.repeatable,
    "same bits in any block": methods.same_in_any_block,
    "feedback and setting unchanged": methods.leaves_what_it_is_told,
    "recommending changes nothing": methods.recommending_changes_nothing,
    "no peeking at f and g": methods.no_peeking,
}
OPTIMUM = "optimum as declared"
DERIVED = "optimum as derived"
OF_PROBLEMS: dict[str, Law] = {
    "plays": problems.plays,
    "finite values": problems.finite_values,
    OPTIMUM: problems.optimum_as_declared,
    "repeatable": problems.repeatable,
    "same bits in any block": problems.alone_as_beside,
}
MAKING = ("can be made", "constraints as declared", "can be prepared")
WIDTH = 30  # width of the names
GATES = {*MAKING, DERIVED, "plays", "repeatable"}
"""Where one of these is broken, what follows would only say so again."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a law.

    Attributes:
        finding: what breaks it; None if it holds.
        skipped: whether it was not tested, because another broken law would break it, too.
    """

    law: str
    finding: Finding | None = None
    skipped: bool = False


def kind_of(name: str) -> str:
    """Return whether a name belongs to an algorithm or a problem.

    Raises:
        Misuse: neither, or an import path that fails.
    """
    return registry_of(name, (ALGORITHMS, PROBLEMS), [Path()]).kind


def check(name: str, *given: Any, **options: Any) -> Iterator[Verdict]:
    """Yield the verdicts of all laws on an algorithm or a problem, each at once; see `laws_on`."""
    for _, judge in laws_on(name, *given, **options):
        yield judge()


def laws_on(
    name: str,
    settings: Mapping[str, Any] | None = None,
    data: DataFolder | None = None,
    only: Collection[str] = (),
    short: bool = False,
) -> Iterator[tuple[str, Callable[[], Verdict]]]:
    """Yield the laws on an algorithm or a problem: the name of each, and what judges it, to be
    called before the next is asked for.

    Args:
        name: registered, or an import path.
        settings: parameters other than the defaults.
        data: where the problem is prepared.
        only: these laws, besides those about building it; none for all.
        short: of an algorithm, without the law that takes many rounds, in fewer rounds and places.

    Raises:
        Misuse: no such class, or no such parameter.
    """
    parameters = settings or {}
    broken: list[str] = []
    if kind_of(name) == "algorithm":
        cls = ALGORITHMS.get(name, beside=[Path()])
        laws = _of_method(cls, name, parameters, short)
    else:
        cls = PROBLEMS.get(name, beside=[Path()])
        laws = _of_problem(cls, name, parameters, data or DataFolder())
    if parameters:
        params.resolve(cls, parameters)

    def judge(law: str, subjects: Iterable[Any], find: Law) -> Verdict:
        with default_warnings(), np.errstate(all="ignore"):  # errors are reported in a sentence
            verdict = Verdict(law, skipped=True) if broken else _judge(law, subjects, find)
        if verdict.finding is not None and law in GATES:
            broken.append(law)
        return verdict

    for law, subjects, find in laws:
        if not only or law in {*only, *MAKING}:
            yield law, partial(judge, law, subjects, find)


def _judge(law: str, subjects: Iterable[Any], judge: Law) -> Verdict:
    """Test a law on every place, up to the first that breaks it."""
    try:
        for subject in subjects:
            for finding in judge(subject):
                return Verdict(law, finding)
    except CbobenchError as error:
        return Verdict(law, Finding(str(error)))
    except BaseException as error:  # a user's class may raise any error
        reraise_stop(error)
        return Verdict(law, Finding(f"it fails: {one_line(error)}", "a play must raise nothing"))
    return Verdict(law)


Laws = Iterator[tuple[str, Iterable[Any], Law]]
"""Laws by name, each with its subjects and its judge.

The lists of subjects are filled while `can be made` is judged, so each law is judged before the
next is asked for: `list(laws)` would find nothing to test.
"""


def _of_method(cls: type[Any], name: str, settings: Mapping[str, Any], short: bool) -> Laws:
    places: list[Trial] = []

    def can_be_made(cls: type[Any]) -> Iterator[Finding]:
        refusals: list[str] = []
        places.extend(trials(cls, name, settings, refusals, short))
        if not places:
            needs = f"no problem here offers what it needs ({', '.join(sorted(cls.needs))})"
            yield Finding(
                refusals[0] if refusals else needs, "" if refusals else "ask for less in needs"
            )

    yield "can be made", [cls], can_be_made
    yield "parameters declared", [cls], methods.check_documentation
    for law, judge in OF_METHODS.items():
        yield law, places, judge
    if not short:
        yield "growth with rounds as cost says", places[:1], methods.grows_as_it_says


def _of_problem(cls: type[Any], name: str, settings: Mapping[str, Any], data: DataFolder) -> Laws:
    draws: list[problems.Draws] = []

    def can_be_made(cls: type[Any]) -> Iterator[Finding]:
        draws.append(problems.Draws(name, params.build(cls, settings)))
        yield from ()

    def can_be_prepared(draw: problems.Draws) -> Iterator[Finding]:
        draw.problem.prepare(data)
        yield from ()

    # A class that cannot be made may still be told what its documentation lacks; then each law
    # needs the one before.
    yield "parameters declared", [cls], methods.check_documentation
    yield "can be made", [cls], can_be_made
    yield "constraints as declared", draws, problems.constraints_as_declared
    if issubclass(cls, BoxProblem) and cls.searched:
        yield DERIVED, draws, problems.optimum_as_derived
    yield "can be prepared", draws, can_be_prepared
    for law, judge in OF_PROBLEMS.items():
        if law != OPTIMUM or problems.states_optimum(draws):
            yield law, draws, judge


def format_verdict(verdict: Verdict) -> str:
    """Return a verdict for a reader; "" for a law that was not tested."""
    word = "ok" if verdict.finding is None else "FAIL"
    if verdict.skipped:
        return ""
    return f"  {word:4}  {verdict.law.ljust(WIDTH)}  {verdict.finding or ''}".rstrip()


def summarise(verdicts: Sequence[Verdict]) -> str:
    """Return how many laws are broken, and which were not tested."""
    left = [verdict.law for verdict in verdicts if verdict.skipped]
    broken = sum(verdict.finding is not None for verdict in verdicts)
    if broken:
        word = f"{count_noun(broken, 'law')} of {len(verdicts)} broken"
    else:
        word = f"all {len(verdicts)} laws hold"
    return "\n".join(
        [*([f"  not looked at before that is mended: {'; '.join(left)}"] if left else []), word]
    )


def verdicts_as_json(name: str, kind: str, verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts for programs."""
    laws = [
        {"law": v.law, "ok": v.finding is None and not v.skipped, "skipped": v.skipped}
        | ({} if v.finding is None else {"what": v.finding.evidence, "fix": v.finding.fix})
        for v in verdicts
    ]
    return json.dumps({"name": name, "kind": kind, "laws": laws}, indent=1, ensure_ascii=False)
