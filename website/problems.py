"""A page per problem: its formula, a picture of f and the feasible set, the optimum, and who can
play it.
"""

from __future__ import annotations

from typing import Any

from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.problems.formulas.box import BoxProblem
from cbobench.report.tables.formats import escape_markdown
from website import words
from website.pictures import Pictures
from website.words import (
    can_play,
    cells,
    facts,
    file_of,
    joined,
    links,
    prepared,
    said,
    sentence,
    suites_of,
)


def table() -> str:
    """All problems, with what their pages do not need to be opened for."""
    rows = []
    for name in PROBLEMS.names():
        cls = PROBLEMS.get(name)
        has = cls.facts()
        rows.append([name, cls.about, has["actions"], has["constraints"], has["feasible"]])
    return cells(["name", "about", "actions", "constraints", "feasible"], rows)


def page(name: str, pictures: Pictures) -> str:
    """The page of a problem."""
    cls = PROBLEMS.get(name)
    has = cls.facts()
    return joined(
        [
            f"# {name}",
            sentence(cls.about),
            facts(
                {
                    "source": escape_markdown(cls.source),
                    "actions": escape_markdown(has["actions"]),
                    "constraints": escape_markdown(has["constraints"]),
                    "feasible": escape_markdown(has["feasible"]),
                    "best feasible f": escape_markdown(has["best"]),
                    "noise on f": escape_markdown(cls.noise_near_optimum()),
                    "code": file_of(cls),
                }
            ),
            "## What it is",
            said(cls),
            pictures.of_problem(name).markdown(),
            "## Optimum",
            optimum(name),
            "## Parameters",
            words.parameters(cls),
            "## Who can play it",
            players(name),
        ]
    )


def optimum(name: str) -> str:
    """What is known of the best feasible action, and from where."""
    problem, _, why = prepared(name)
    varies = PROBLEMS.get(name).facts()["best"] == "varies"
    if problem is None and varies:
        return f"It depends on your files ({escape_markdown(why)})."
    if not isinstance(problem, BoxProblem):
        if varies:
            return (
                "Another one for every seed, found when the seed's functions are drawn, by "
                "looking at them alone."
            )
        return "Found by looking at every action."
    return "\n\n".join(_stated(found) for _, found in problem.stated())


def _stated(found: Any) -> str:
    x = ", ".join(f"{value:.8g}" for value in found.x)
    binds = {
        True: "yes",
        False: "no, the best point of the whole box is feasible",
        None: "not known",
    }[found.binds]
    return facts(
        {
            "x*": f"({x})",
            "f*": f"{found.f:.10g}",
            "how it was found": escape_markdown(found.how),
            "accuracy, relative to 1 + \\|f*\\|": f"{found.accuracy:.3g}",
            "feasible share of the box": f"{100 * found.share:.3g} %",
            "Slater margin δ": f"{found.slater:.6g}",
            "do constraints matter": binds,
        }
    )


def players(name: str) -> str:
    """Methods and suites."""
    known = {method: can_play(method, name) for method in ALGORITHMS.names()}
    able = [method for method, able in known.items() if able]
    played = [suite for suite, (problems, _) in suites_of().items() if name in problems]
    return joined(
        [
            f"With default parameters: {links('methods', able)}."
            if able
            else (
                "It depends on your files: [which method can play my problem](../which_method.md)."
            ),
            f"Suites that name it: {links('suites', played)}." if played else "",
        ]
    ).rstrip()
