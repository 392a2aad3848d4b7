"""A page for every method, problem and suite, from its class or file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import cbobench
from analysis.markdown import tabulate
from cbobench import params, resources
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.problems.formulas.box import BoxProblem
from cbobench.report.tables.formats import escape_markdown
from cbobench.suite import yamlio
from cbobench.surface import HOMES

FILES = "It depends on your files."


def describe_method(name: str, picture: str) -> str:
    """The page of a method: what it is, its rule, a play, its parameters, what it can play."""
    cls = ALGORITHMS.get(name)
    made = {problem: prepare(problem)[0] for problem in PROBLEMS.names()}
    able = [key for key, problem in made.items() if problem and cls.needs <= problem.offers()]
    facts = {
        "source": cls.source,
        "must know": ", ".join(cls.knows) or "nothing but the actions",
        "needs": ", ".join(sorted(cls.needs)) or "nothing else",
        "cost per seed and round": cls.cost,
    }
    return f"""# {name}

{state(cls.about)}

{tabulate_facts(cls, facts)}

## The rule

{describe_class(cls)}

{picture}

## Parameters

{list_parameters(cls)}

## What it can play

With default parameters: {link("problems", able)}. More with others, such as `grid: 20` on a box:
[which method can play my problem](/docs/which_method.md).

Suites that name it: {link("suites", find_suites("algorithms", name))}.
"""


def describe_problem(name: str, picture: str) -> str:
    """The page of a problem: what it is, f and the feasible set, the optimum, who can play it."""
    cls = PROBLEMS.get(name)
    problem, _ = prepare(name)
    offers = problem.offers() if problem else frozenset()
    able = [method for method in ALGORITHMS.names() if ALGORITHMS.get(method).needs <= offers]
    has = cls.facts()
    facts = {
        "source": cls.source,
        "actions": has["actions"],
        "constraints": has["constraints"],
        "feasible": has["feasible"],
        "best feasible f": has["best"],
        "noise on f": cls.noise_near_optimum(),
    }
    return f"""# {name}

{state(cls.about)}

{tabulate_facts(cls, facts)}

## What it is

{describe_class(cls)}

{picture}

## Optimum

{describe_optimum(name)}

## Parameters

{list_parameters(cls)}

## Who can play it

With default parameters: {link("methods", able) if problem else FILES}

Suites that name it: {link("suites", find_suites("problems", name))}.
"""


def describe_suite(name: str) -> str:
    """The page of a suite: what it is, how to play it, and its YAML."""
    path = resources.suites()[name]
    problems = [key for key in PROBLEMS.names() if key in names_of(path)["problems"]]
    methods = [key for key in ALGORITHMS.names() if key in names_of(path)["algorithms"]]
    return f"""# {name}

{state(yamlio.read(path).get("about", ""))}

`cbobench run {name}` plays it. Problems: {link("problems", problems)}. Methods:
{link("methods", methods)}. What the keys mean: [suites](/docs/suites.md).

```yaml
{path.read_text(encoding="utf-8").rstrip()}
```
"""


def state(text: str) -> str:
    """A line for tables as a sentence of Markdown."""
    return escape_markdown(text[:1].upper() + text[1:]).rstrip(".") + "."


def link(room: str, names: Iterable[str]) -> str:
    """Links to pages of a room, or that there are none."""
    return ", ".join(f"[`{name}`](/reference/{room}/{name}.md)" for name in names) or "none"


def tabulate_facts(cls: type[Any], facts: dict[str, str]) -> str:
    """A table of facts and where the code of a class is; what is empty is left out."""
    path, home = Path(inspect.getfile(cls)), Path(cbobench.__file__).parents[1]
    place = path.relative_to(home) if home in path.parents else path.name
    rows = [(key, escape_markdown(value)) for key, value in facts.items() if value]
    return tabulate(("", ""), [*rows, ("code", f"`{place}`")])


def list_parameters(cls: type[Any]) -> str:
    """All parameters of a class as a table."""
    rows = [
        (param.name, json.dumps(param.default, ensure_ascii=False), param.type, param.about)
        for param in params.params_of(cls)
    ]
    head = ("parameter", "default", "allowed", "meaning")
    return tabulate(head, [[escape_markdown(cell) for cell in row] for row in rows])


def describe_class(cls: type[Any]) -> str:
    """The docstring of a class, then those of what it derives that docs/api.md does not name."""
    parts = [inspect.getdoc(cls) or ""]
    for base in cls.__mro__[1:]:
        text = inspect.cleandoc(base.__doc__ or "")
        is_ours = base.__module__.startswith("cbobench.") and base.__name__ not in HOMES
        if is_ours and text and not text.startswith("Base of"):
            parts.append(f"*{base.__name__}*, which it derives: {text}")
    return "\n\n".join(parts)


def describe_optimum(name: str) -> str:
    """What is known of the best feasible action, and from where."""
    problem, why = prepare(name)
    varies = PROBLEMS.get(name).facts()["best"] == "varies"
    if problem is None and varies:
        return f"{FILES} ({escape_markdown(why)})"
    if problem and "a known optimum" not in problem.offers():
        return "Nobody knows it."
    if isinstance(problem, BoxProblem):
        return "\n\n".join(tabulate_reference(found) for _, found in problem.stated())
    if varies:
        return "Another one for every seed, found by looking at the functions when they are drawn."
    return "Found by looking at every action."


def tabulate_reference(found: Any) -> str:
    """A stated optimum as a table."""
    binds = {True: "yes", False: "no: the best point of the whole box is feasible", None: "unknown"}
    rows = {
        "x*": ", ".join(f"{value:.8g}" for value in found.x),
        "f*": f"{found.f:.10g}",
        "how it was found": found.how,
        "accuracy, relative to 1 + |f*|": f"{found.accuracy:.3g}",
        "feasible share of the box": f"{found.share:.3%}",
        "Slater margin δ": f"{found.slater:.6g}",
        "do constraints matter": binds[found.binds],
    }
    return tabulate(
        ("", ""), [(escape_markdown(key), escape_markdown(value)) for key, value in rows.items()]
    )


@cache
def prepare(name: str) -> tuple[Problem | None, str]:
    """A problem with default parameters (look-alikes of recorded data), or why there is none."""
    cls = PROBLEMS.get(name)
    takes_data = "data" in {param.name for param in params.params_of(cls)}
    try:
        problem: Problem = params.build(cls, {"data": "look-alike"} if takes_data else {})
        problem.prepare(DataFolder())
    except CbobenchError as error:
        return None, str(error)
    return problem, ""


@cache
def names_of(suite: Path) -> dict[str, set[str]]:
    """The problems and the algorithms that a suite names."""
    content = yamlio.read(suite)
    return {
        key: {entry if isinstance(entry, str) else next(iter(entry)) for entry in content[key]}
        for key in ("problems", "algorithms")
    }


def find_suites(kind: str, name: str) -> list[str]:
    """The shipped suites that name a problem or an algorithm."""
    return [suite for suite, path in resources.suites().items() if name in names_of(path)[kind]]
