"""Runs the laws on a class, those whose failure explains others first, and prints the verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cbobench import params
from cbobench.algorithms import ALGORITHMS
from cbobench.check import methods, problems
from cbobench.check.trial import Finding, Trial, find_trials
from cbobench.errors import CbobenchError, one_line, reraise_stop
from cbobench.play.isolation import default_warnings
from cbobench.problems import PROBLEMS
from cbobench.problems.data import DataFolder
from cbobench.problems.formulas.box import BoxProblem
from cbobench.registry import Registry, registry_of
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
    "same bits in any block": problems.same_in_any_block,
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


def find_registry(name: str) -> Registry:
    """Return whether a name belongs to an algorithm or a problem, as the registry that knows it.

    Raises:
        Misuse: neither, or an import path that fails.
    """
    return registry_of(name, (ALGORITHMS, PROBLEMS), [Path()])


def check(
    name: str,
    settings: Mapping[str, Any] | None = None,
    data: DataFolder | None = None,
    only: Collection[str] = (),
    short: bool = False,
    on_law: Callable[[str], None] = lambda law: None,
) -> Iterator[Verdict]:
    """Yield the verdicts of the laws on an algorithm or a problem, each at once.

    Args:
        name: registered, or an import path.
        settings: parameters other than the defaults.
        data: where the problem is prepared.
        only: these laws, besides those about building it; none for all.
        short: of an algorithm, in fewer rounds and places.
        on_law: is given the name of each law before it is tested, which may take long.

    Raises:
        Misuse: no such class, or no such parameter.
    """
    # What is misspelt is refused before any law is tested.
    parameters = settings or {}
    registry = find_registry(name)
    cls = registry.get(name, beside=[Path()])
    if registry is ALGORITHMS:
        laws = _of_method(cls, name, parameters, short)
    else:
        laws = _of_problem(cls, name, parameters, data or DataFolder())
    if parameters:
        params.resolve(cls, parameters)

    # A broken gate ends the tests: what follows is listed, as not tested.
    gate_broken = False
    for law, subjects, find in laws:
        if only and law not in {*only, *MAKING}:
            continue
        on_law(law)
        finding = None
        if not gate_broken:
            with default_warnings(), np.errstate(all="ignore"):  # a sentence reports what fails
                finding = _judge(subjects, find)
        yield Verdict(law, finding, skipped=gate_broken)
        gate_broken = gate_broken or (finding is not None and law in GATES)


def _judge(subjects: Iterable[Any], law: Law) -> Finding | None:
    """Test a law on every subject, up to the first that breaks it."""
    try:
        for subject in subjects:
            for finding in law(subject):
                return finding
    except CbobenchError as error:
        return Finding(str(error))
    except BaseException as error:  # a user's class may raise any error
        reraise_stop(error)
        return Finding(f"it fails: {one_line(error)}", "a play must raise nothing")
    return None


Laws = Iterator[tuple[str, Iterable[Any], Law]]
"""Laws by name, each with its subjects and its judge.

The lists of subjects are filled while `can be made` is judged, so each law is judged before the
next is asked for: `list(laws)` would find nothing to test.
"""


def _of_method(cls: type[Any], name: str, settings: Mapping[str, Any], short: bool) -> Laws:
    trials: list[Trial] = []

    def can_be_made(cls: type[Any]) -> Iterator[Finding]:
        trials.extend(find_trials(cls, name, settings, short))
        yield from ()

    yield "can be made", [cls], can_be_made
    yield "parameters declared", [cls], methods.check_documentation
    for law, judge in OF_METHODS.items():
        yield law, trials, judge


def _of_problem(cls: type[Any], name: str, settings: Mapping[str, Any], data: DataFolder) -> Laws:
    trials: list[Trial] = []

    def can_be_made(cls: type[Any]) -> Iterator[Finding]:
        trials.append(problems.play_at_random(params.build(cls, settings), name))
        yield from ()

    def can_be_prepared(trial: Trial) -> Iterator[Finding]:
        trial.problem.prepare(data)
        yield from ()

    # A class that cannot be made may still be told what its documentation lacks; then each law
    # needs the one before.
    yield "parameters declared", [cls], methods.check_documentation
    yield "can be made", [cls], can_be_made
    yield "constraints as declared", trials, problems.constraints_as_declared
    if issubclass(cls, BoxProblem) and cls.searched:
        yield DERIVED, trials, problems.optimum_as_derived
    yield "can be prepared", trials, can_be_prepared
    for law, judge in OF_PROBLEMS.items():
        if law != OPTIMUM or all(map(problems.states_optimum, trials)):
            yield law, trials, judge


def format_verdict(verdict: Verdict) -> str:
    """Return a verdict on a law that was tested, for a reader."""
    if verdict.finding is None:
        return f"  ok    {verdict.law}"
    return f"  FAIL  {verdict.law:{WIDTH}}  {verdict.finding}"


def summarise(verdicts: Sequence[Verdict]) -> str:
    """Return how many laws are broken, and which were not tested."""
    skipped = "; ".join(verdict.law for verdict in verdicts if verdict.skipped)
    note = f"  not looked at before that is mended: {skipped}\n" if skipped else ""
    broken = sum(verdict.finding is not None for verdict in verdicts)
    if broken:
        return f"{note}{count_noun(broken, 'law')} of {len(verdicts)} broken"
    return f"all {len(verdicts)} laws hold"


def verdicts_as_json(name: str, kind: str, verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts for programs."""
    laws: list[dict[str, Any]] = []
    for verdict in verdicts:
        holds = verdict.finding is None and not verdict.skipped
        law = {"law": verdict.law, "ok": holds, "skipped": verdict.skipped}
        if verdict.finding is not None:
            law |= {"what": verdict.finding.evidence, "fix": verdict.finding.fix}
        laws.append(law)
    return json.dumps({"name": name, "kind": kind, "laws": laws}, indent=1, ensure_ascii=False)
