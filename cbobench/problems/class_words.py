"""What a problem's class says in another way than it is read: a word of its own is ignored, a
signature fails late.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from cbobench.errors import Misuse, show

PLAIN = (bool, int, float, str, tuple, list, dict)
"""Types of values that state something; functions, arrays and objects are a class's own affair."""
CLOSE = 0.8  # share of letters in common from which on a word is taken for a known one

MAXIMISED = "f is maximised as it is returned; to minimise a cost, return -cost"
RETURNED = (
    "g_1, ..., g_m follow f in what is returned, feasible where g_j <= 0; the class says how "
    "many: m = 2"
)
TYPED = 'types of a simulator\'s values are inputs = {"rate": {"float": [1e-4, 0.1], "log": True}}'
CORNERS = "the corners of the box are low and high"
OF_TABLES = {
    **dict.fromkeys(
        ("objective", "minimise", "minimize", "maximise", "maximize", "direction"), MAXIMISED
    ),
    **dict.fromkeys(("constraint", "constraints", "at_most", "at_least"), RETURNED),
    **dict.fromkeys(("log", "one_hot", "amounts"), TYPED),
    **dict.fromkeys(("bounds", "lower", "upper"), CORNERS),
}
"""Words of a table's YAML, and of other programs, with what a class says in their place."""


CALLED_WITH = {"simulate": ("x", "gen"), "simulate_many": ("x", "gens"), "formula": ("x",)}
"""Methods that users write, with what they are called with."""


def refuse_signature(cls: type) -> None:
    """Refuse a method of a user's problem that cannot take what it is called with.

    Else a simulator would fail at every point, with a TypeError in place of a reason.

    Raises:
        Misuse: there is one; the message says how to write it.
    """
    for name, arguments in CALLED_WITH.items():
        method = inspect.getattr_static(cls, name, None)
        if not inspect.isfunction(method):
            continue
        try:
            inspect.signature(method).bind(None, *arguments)
        except TypeError:
            written, right = inspect.signature(method), ", ".join(("self", *arguments))
            use = (
                f"; draw all randomness from {arguments[-1]}, or leave it unused"
                if len(arguments) > 1
                else ""
            )
            bare = ", ".join(str(parameter) for parameter in written.parameters.values())
            raise Misuse(
                f"{cls.__name__}: def {name}({bare}) cannot be called with "
                f"{' and '.join(arguments)}; write "
                f"def {name}({right}){use}"
            ) from None


def refuse_no_constraint(problem: Any) -> None:
    """Refuse a problem whose class says that it has no constraints, before anything is simulated.

    Raises:
        Misuse: m is none.
    """
    m = problem.m
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
        raise Misuse(
            f"{type(problem).__name__}: m is {show(m)}; it must be a whole number of at least 1: "
            "give a constraint g_1, feasible where g_1 <= 0 (-1 everywhere: always)"
        )


def refuse_unread(cls: type) -> None:
    """Refuse public attributes of a user's problem that nothing reads, where a known one is
    probably meant.

    Those are words of `OF_TABLES`, and words close to an attribute of a class of cbobench. Names
    that begin with _, and constants of one's own whose names are like none, pass.

    Raises:
        Misuse: there is one; the message says what to write.
    """
    read_names = {name for base in cls.__mro__ if _is_ours(base) for name in vars(base)}
    settable = [name for base in cls.__mro__ if _is_ours(base) for name in _class_attributes(base)]
    for owner, name, value in _stated(cls):
        complaint = f"{owner.__name__}: {name} = {show(value)} is read by nothing"
        if name in OF_TABLES and (name not in read_names or isinstance(value, dict)):
            raise Misuse(f"{complaint}; {OF_TABLES[name]}")
        if name in read_names:
            continue
        near = [word for word in settable if word[0] == name[0] and abs(len(word) - len(name)) <= 1]
        if close := difflib.get_close_matches(name, near, n=1, cutoff=CLOSE):
            raise Misuse(
                f"{complaint}; did you mean {close[0]!r}? (a constant of your own: call it _{name})"
            )


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("cbobench.")


def _class_attributes(base: type) -> list[str]:
    """The names that a class declares as class attributes."""
    declared: dict[str, Any] = vars(base).get("__annotations__", {})
    return [name for name, annotation in declared.items() if str(annotation).startswith("ClassVar")]


def _stated(cls: type) -> Iterator[tuple[type, str, Any]]:
    """Plain values that users' classes give to public names, without parameters."""
    fields: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
    for owner in cls.__mro__:
        if _is_ours(owner) or owner is object:
            continue
        for name, value in vars(owner).items():
            if not name.startswith("_") and name not in fields and isinstance(value, PLAIN):
                yield owner, name, value
