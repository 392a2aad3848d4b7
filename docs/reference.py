"""Derives the reference of a problem on a box and compares it with the stated one: make reference NAME=gramacy

NAME is a registered name, or `module:Class` of a file in the current folder. Printed: the best feasible point, its
reward, the feasible share of the box, the margin (how strictly the constraints can be satisfied), what is active, and
the lines to write into the class. Exit code 1: a stated reference is wrong; 2: there is nothing to derive.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from cbobench.errors import CbobenchError, Misuse, one_line
from cbobench.params import build
from cbobench.problems import PROBLEMS
from cbobench.problems.box import BoxProblem, Formula, Reference
from cbobench.problems.search import Optimum, search


def show(found: Optimum, accuracy: float) -> None:
    """The derived reference, and the same as code."""
    f, *g = found.values.tolist()
    x = found.x.tolist()
    held = ", ".join(found.active) or "nothing"
    print(f"x           {tuple(x)}\nf           {f!r}\ng           {tuple(g)}\nanywhere    {found.highest!r}")
    print(f"active      {held}\nfeasible    {100 * found.share:.4g} % of the box\nmargin      {found.slater:.7g}")
    print(f"reached by  {found.reached} of {found.starts} local searches\n")
    print(f"    reference = Reference(\n        x={tuple(x)},\n        f={f!r},\n        slater={found.slater:.12g},")
    print(f"        share={found.share:.5g},\n        accuracy={accuracy:g},")
    print(f'        how="multistart SLSQP; active: {held}",\n        binds={binds(found, accuracy)},\n    )\n')


def binds(found: Optimum, accuracy: float) -> bool:
    """Whether the best point of the whole box is better than the best feasible one."""
    f = float(found.values[0])
    return found.highest - f > accuracy * (1 + abs(f))


def contradictions(task: BoxProblem, formula: Formula, found: Optimum, stated: Reference) -> list[str]:
    """What is wrong with a stated reference, one line each."""
    mistake = task.mistake(formula, stated)
    lines = [f"the optimum is {mistake}"] if mistake else []
    f = float(found.values[0])
    if not abs(f - stated.f) <= stated.accuracy * (1 + abs(stated.f)) + 1e-12:
        by = f"{'better' if f > stated.f else 'lower'} by {abs(f - stated.f):.3g}"
        lines.append(f"f is {stated.f!r}; found: {f!r}, {by}")
    if not abs(stated.slater - found.slater) <= 0.01 * abs(found.slater):
        lines.append(f"slater is {stated.slater:.6g}; found: {found.slater:.6g}")
    if not abs(stated.share - found.share) <= 0.03 * found.share:
        lines.append(f"share is {stated.share:.4g}; found: {found.share:.4g}")
    if stated.binds is not None and stated.binds != binds(found, stated.accuracy):
        lines.append(f"binds is {stated.binds}; the best f of the whole box is {found.highest!r}")
    return lines


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        raise Misuse("which problem? make reference NAME=gramacy, or NAME=module:Class of your own")
    sys.path.insert(0, str(Path.cwd()))
    name = arguments[0]
    task = build(PROBLEMS.get(name), {})
    if not isinstance(task, BoxProblem):
        raise Misuse(f"{name} has a finite action set: its optimum is found there by looking at every action")
    try:
        stated = task.stated()
    except AttributeError:
        stated = [(task.formula, None)]
    wrong = []
    for number, (formula, reference) in enumerate(stated, start=1):
        if len(stated) > 1:
            print(f"phase {number} of {len(stated)}")
        try:
            found = search(formula, task.box)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # of a formula that is not ready
            raise Misuse(f"the formula of {name} fails: {one_line(error)}") from error
        show(found, reference.accuracy if reference else 1e-9)
        if reference:
            lines = contradictions(task, formula, found, reference)
            print("\n".join(f"stated otherwise: {line}" for line in lines) or "the stated reference agrees", end="\n\n")
            wrong += lines
    return 1 if wrong else 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    try:
        raise SystemExit(main(sys.argv[1:]))
    except CbobenchError as error:
        print(f"reference: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
