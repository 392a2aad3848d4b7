"""What pages of methods, problems and suites share: tables, lists of links, docstrings, and who can
play whom.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import cbobench
from cbobench import params, resources
from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError
from cbobench.problems import PROBLEMS
from cbobench.problems.base import Problem
from cbobench.problems.data import DataFolder
from cbobench.report.tables.formats import escape_markdown, render
from cbobench.report.tables.table import Code, TextTable
from cbobench.suite import yamlio
from website import names

SUBSCRIPT = re.compile(
    # of what: a letter, a sum, what is in brackets
    r"((?<![^\W_])(?:sum|[^\W\d_][\u0300-\u036f]?)|[|\])]|Proj)"
    r"_([A-Za-zͰ-Ͽ\d]+(?![A-Za-z0-9_])|\{[^{}]*\}|\[[^\[\]]*\])"
)
GIVEN_BY_ALL = {n for _, rooms in names.ROOMS.values() for some in rooms.values() for n in some}
"""Names that docs/api.md explains; pages do not say it again."""


def cells(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table of plain texts, the first column's as code."""
    return render(
        TextTable(columns, [[Code(row[0]), *row[1:]] for row in rows], left=len(columns)),
        "markdown",
    )


def facts(pairs: dict[str, str]) -> str:
    """A Markdown table of two columns of Markdown; what is empty is left out."""
    return "\n".join(
        [
            "| | |",
            "| :-- | :-- |",
            *(f"| {key} | {signs(value)} |" for key, value in pairs.items() if value),
        ]
    )


def parameters(cls: type[Any]) -> str:
    """All parameters of a class as a table."""
    rows = [
        [p.name, json.dumps(p.default, ensure_ascii=False), p.type, p.about]
        for p in params.params_of(cls)
    ]
    return signs(cells(["parameter", "default", "allowed", "meaning"], rows)) if rows else "None."


def links(room: str, those: Iterable[str]) -> str:
    """Links to pages of a room."""
    return ", ".join(f"[`{name}`](../{room}/{name}.md)" for name in those)


def file_of(cls: type[Any]) -> str:
    """The file of a class, as the repository has it where it is ours."""
    path, home = Path(inspect.getfile(cls)), Path(cbobench.__file__).parents[1]
    return f"`{path.relative_to(home) if home in path.parents else path.name}`"


def signs(text: str) -> str:
    """A docstring's symbols as print has them: g_j and T^(2/3) with lowered and raised parts, <= as
    ≤.

    What is code stays as it is: in backticks, or indented as a block (where only the comparisons
    are set).
    """
    done = []
    for line in text.splitlines():
        parts = re.split(r"(`[^`]*`)", line)
        block = line.startswith("    ")
        done.append("".join(part if i % 2 else _set(part, block) for i, part in enumerate(parts)))
    return "\n".join(done)


def _set(text: str, block: bool) -> str:
    text = re.sub(
        r"(?<=\s)\\?(<=|>=|<-)(?=\s|$)",
        lambda found: {"<=": "≤", ">=": "≥", "<-": "←"}[found[1]],
        text,
    )
    if block:
        return text
    text = SUBSCRIPT.sub(lambda match: f"{match[1]}<sub>{match[2].strip('{}')}</sub>", text)
    return re.sub(r"(?<=\S)\^(\([^()]*\)|[A-Za-zͰ-Ͽ\d]+(?:\.\d+)?|[+*])", r"<sup>\1</sup>", text)


def said(cls: type[Any]) -> str:
    """The docstring of a class, then what it derives: those of its bases that are no part of the
    public ones.
    """
    parts = [signs(names.prose(inspect.getdoc(cls) or ""))]
    for base in cls.__mro__[1:]:
        text = (base.__doc__ or "").strip()
        if (
            not base.__module__.startswith("cbobench.")
            or base.__name__ in GIVEN_BY_ALL
            or base.__name__ == "object"
        ):
            continue
        if "Class attributes:" in text or (text.startswith("Base of") and "\n" not in text):
            continue
        parts.append(
            f"*{base.__name__}*, which it derives: {signs(names.prose(inspect.getdoc(base) or ''))}"
        )
    return "\n\n".join(parts)


@cache
def prepared(name: str) -> tuple[Problem | None, dict[str, str], str]:
    """A problem with default parameters (look-alikes of recorded data), those that differ, or why
    there is none.
    """
    cls = PROBLEMS.get(name)
    look_alike = {"data": "look-alike"} if "data" in {p.name for p in params.params_of(cls)} else {}
    try:
        problem: Problem = params.build(cls, look_alike)
        problem.prepare(DataFolder())
    except CbobenchError as error:
        return None, look_alike, str(error)
    return problem, look_alike, ""


def can_play(algorithm: str, problem: str) -> bool | None:
    """Whether a method can play a problem with default parameters; None where that depends on the
    reader's files.
    """
    made = prepared(problem)[0]
    return None if made is None else ALGORITHMS.get(algorithm).needs <= made.offers()


@cache
def suites_of() -> dict[str, tuple[set[str], set[str]]]:
    """The problems and the algorithms that every shipped suite names."""

    def those(entries: Any) -> set[str]:
        return {entry if isinstance(entry, str) else next(iter(entry)) for entry in entries}

    found = {name: yamlio.read(path) for name, path in resources.suites().items()}
    return {
        name: (those(content["problems"]), those(content["algorithms"]))
        for name, content in found.items()
    }


def sentence(text: str) -> str:
    """A line for tables as a sentence of Markdown."""
    return escape_markdown(text[:1].upper() + text[1:]) + ("" if text.endswith(".") else ".")


def joined(parts: Iterable[str]) -> str:
    """Parts of a page, those that are empty left out."""
    return "\n\n".join(part for part in parts if part) + "\n"
