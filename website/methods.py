"""A page per method: what it is, its rule, a play, its parameters, and what it can play."""

from __future__ import annotations

from typing import Any

from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS
from cbobench.report.tables.formats import escape_markdown
from website.pictures import Drawing, Pictures
from website.words import (
    can_play,
    cells,
    facts,
    file_of,
    joined,
    links,
    parameters,
    said,
    sentence,
    suites_of,
)


def table() -> str:
    """All methods, with what their pages do not need to be opened for."""
    classes = {name: ALGORITHMS.get(name) for name in ALGORITHMS.names()}
    return cells(
        ["name", "about", "source"],
        [[name, cls.about, cls.source] for name, cls in classes.items()],
    )


def page(name: str, pictures: Pictures) -> str:
    """The page of a method."""
    cls = ALGORITHMS.get(name)
    drawing = pictures.of_method(name)
    return joined(
        [
            f"# {name}",
            sentence(cls.about),
            about(cls, drawing),
            "## The rule",
            said(cls),
            "## A play",
            drawing.markdown(),
            "## Parameters",
            parameters(cls),
            "## What it can play",
            playable(name),
        ]
    )


def about(cls: type[Any], drawing: Drawing) -> str:
    """Source, needs and cost."""
    finite = "a finite action set" in cls.needs
    measured = f"; {drawing.cost} µs in the play below" if drawing.cost else ""
    return facts(
        {
            "source": escape_markdown(cls.source),
            "must know": escape_markdown(", ".join(cls.knows)) or "nothing but the actions",
            "plays on": "finite sets" if finite else "finite sets, boxes",
            "needs": escape_markdown(", ".join(sorted(cls.needs - {"a finite action set"})))
            or "nothing else",
            "cost per seed and round": escape_markdown(cls.cost) + measured,
            "code": file_of(cls),
        }
    )


def playable(name: str) -> str:
    """Problems and suites."""
    known = {problem: can_play(name, problem) for problem in PROBLEMS.names()}
    able = [problem for problem, able in known.items() if able]
    depends = [problem for problem, able in known.items() if able is None]
    played = [suite for suite, (_, algorithms) in suites_of().items() if name in algorithms]
    return joined(
        [
            f"With default parameters: {links('problems', able)}."
            if able
            else "No shipped problem as it comes.",
            f"It depends on your files: {links('problems', depends)}." if depends else "",
            "More with other parameters, such as `grid: 20` on a box: [which method can play my "
            "problem](../which_method.md).",
            f"Suites that name it: {links('suites', played)}." if played else "",
        ]
    ).rstrip()
