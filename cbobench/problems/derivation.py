"""Output of `cbobench reference`: the optimum that a search finds, beside the stated one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cbobench.errors import CbobenchError, Misuse, one_line, reraise_stop
from cbobench.problems.base import Problem
from cbobench.problems.box import BoxProblem
from cbobench.problems.instances import Formula
from cbobench.problems.optimum import Optimum, Reference, check_formula, search
from cbobench.problems.rkhs import RKHSBox
from cbobench.problems.simulator import Simulator

MIN_AGREEING = 3  # searches that must end at the optimum


def lines_of(optimum: Optimum, accuracy: float) -> Iterator[str]:
    """The derived reference, and the same as code."""
    f, *g = optimum.values.tolist()
    x = optimum.x.tolist()
    active = ", ".join(optimum.active) or "nothing"
    yield (
        f"x           {tuple(x)}\nf           {f!r}\ng           {tuple(g)}\nanywhere    "
        f"{optimum.highest!r}"
    )
    yield (
        f"active      {active}\nfeasible    {100 * optimum.share:.4g} % of the box\nmargin      "
        f"{optimum.slater:.7g}"
    )
    yield (
        f"reached by  {optimum.reached} of {optimum.starts} local searches: {confidence(optimum)}\n"
    )
    yield (
        f"    reference = Reference(\n        x={tuple(x)},\n        f={f!r},\n        "
        f"slater={optimum.slater:.12g},"
    )
    yield f"        share={optimum.share:.5g},\n        accuracy={accuracy:g},"
    yield (
        f'        how="multistart SLSQP; active: {active}",\n        '
        f"binds={binds(optimum, accuracy)},\n    )\n"
    )


def confidence(optimum: Optimum) -> str:
    """Rates the agreement of the searches in words."""
    if optimum.reached < MIN_AGREEING:
        return "hardly any agree, so there may be better points; search again with more --starts"
    if 4 * optimum.reached < optimum.starts:
        return (
            "a few agree, the others ended lower or infeasible; more --starts would make it surer"
        )
    return "they agree"


def binds(optimum: Optimum, accuracy: float) -> bool:
    """Whether the best point of the whole box is better than the best feasible one."""
    f = float(optimum.values[0])
    return optimum.highest - f > accuracy * (1 + abs(f))


def contradictions(
    task: BoxProblem, formula: Formula, optimum: Optimum, stated: Reference
) -> list[str]:
    """Lists the errors of a stated reference."""
    mistake = task.mistake(formula, stated)
    lines = [f"the optimum is {mistake}"] if mistake else []
    f = float(optimum.values[0])
    if not abs(f - stated.f) <= stated.accuracy * (1 + abs(stated.f)) + 1e-12:
        lines.append(
            f"f is {stated.f!r}; found: {f!r}, {'better' if f > stated.f else 'lower'} by "
            f"{abs(f - stated.f):.3g}"
        )
    if not abs(stated.slater - optimum.slater) <= 0.01 * abs(optimum.slater):
        lines.append(f"slater is {stated.slater:.6g}; found: {optimum.slater:.6g}")
    if not abs(stated.share - optimum.share) <= 0.03 * optimum.share:
        lines.append(f"share is {stated.share:.4g}; found: {optimum.share:.4g}")
    if stated.binds is not None and stated.binds != binds(optimum, stated.accuracy):
        lines.append(f"binds is {stated.binds}; the best f of the whole box is {optimum.highest!r}")
    return lines


def describe_reference(task: Problem, name: str, starts: int) -> Iterator[tuple[str, bool]]:
    """Yields lines to print, each with whether it contradicts the stated reference.

    Args:
        name: of the problem, for messages.
        starts: local searches from the best sampled points, and as many from anywhere.

    Raises:
        Misuse: a search cannot find the problem's optimum, or the formula fails.
    """
    # What has no one optimum is refused with the reason, before anything is searched.
    if isinstance(task, Simulator):
        raise Misuse(
            f"{name} is a simulator, whose optimum no search can prove; declare a target or a "
            "best_known"
        )
    if isinstance(task, RKHSBox):
        raise Misuse(
            f"{name} draws a function per seed and finds its optimum then; there is no one "
            "reference"
        )
    if not isinstance(task, BoxProblem):
        raise Misuse(
            f"{name} has a finite action set: its optimum is found there by looking at every action"
        )
    formulas = task.formulas()
    # Functions that move have an optimum in each phase.
    for number, (formula, reference) in enumerate(formulas, start=1):
        if len(formulas) > 1:
            yield f"phase {number} of {len(formulas)}", False
        check_formula(formula, task.box, task.m, name)
        try:
            with np.errstate(all="ignore"):
                optimum = search(formula, task.box, starts)
        except CbobenchError:
            raise
        except BaseException as error:  # a user's formula may raise anything
            reraise_stop(error)
            raise Misuse(f"the formula of {name} fails: {one_line(error)}") from error
        yield from (
            (line, False) for line in lines_of(optimum, reference.accuracy if reference else 1e-9)
        )
        if reference:
            wrong = contradictions(task, formula, optimum, reference)
            yield from ((f"stated otherwise: {line}", True) for line in wrong)
            yield ("" if wrong else "the stated reference agrees\n"), False
