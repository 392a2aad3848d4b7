"""What users' classes say and return, checked.

A word that nothing reads would be ignored, so it is refused before anything is played. What one
run returns is read as numbers: f and every g_j in order, or the values that a class names. Another
shape is the fault of the class; a value that is none (None, masked, not finite, complex) is a
failure of the run.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from cbobench.errors import CellFailure, Misuse, printable, show
from cbobench.gp.kernels import Array
from cbobench.words import count_noun

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


def refuse_no_constraint(problem: Any) -> None:
    """Refuse a problem whose class says that it has no constraints, before anything is simulated.

    Raises:
        Misuse: m is none.
    """
    m = problem.m
    # True is a whole number to Python, but says no count.
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
    ours = [base for base in cls.__mro__ if _is_ours(base)]
    read_names = {name for base in ours for name in vars(base)}
    settable = [name for base in ours for name in _class_attributes(base)]
    for owner, name, value in _stated(cls):
        complaint = f"{owner.__name__}: {name} = {show(value)} is read by nothing"
        # We read `constraints` as a number; as a mapping it is a table's or a simulator's word.
        if name in OF_TABLES and (name not in read_names or isinstance(value, dict)):
            raise Misuse(f"{complaint}; {OF_TABLES[name]}")
        if name in read_names:
            continue
        # A mistyped word begins alike and is about as long; others are a class's own.
        near = [word for word in settable if word[0] == name[0] and abs(len(word) - len(name)) <= 1]
        if close := difflib.get_close_matches(name, near, n=1, cutoff=CLOSE):
            raise Misuse(
                f"{complaint}; did you mean {close[0]!r}? (a constant of your own: call it _{name})"
            )


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("cbobench.")


def _class_attributes(base: type) -> list[str]:
    """The names that a class declares as class attributes."""
    # Annotations are texts in modules that import `annotations`, as all of ours do.
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


EXACT = {float, int, np.float64}
"""Types of numbers that are read as they are."""
NUMERIC = "biufcO"
"""Kinds of arrays that may hold numbers: not text, nor times."""
UNORDERED = (str, bytes, Mapping, Set)
BOOLEAN = (
    "feasible is where g <= 0, so True would be infeasible: give -1 where it holds, 1 where not"
)


def name_functions(m: int) -> list[str]:
    """f, g_1, ..., g_m."""
    return ["f", *(f"g_{j}" for j in range(1, 1 + m))]


def read_run(result: Any, names: Sequence[str], call: str, by_name: bool = False) -> Array:
    """Return what a run gave as numbers, one per name; NaN for a value that is none.

    Args:
        result: a sequence of them in the order of the names, such as [f, g_1, ..., g_m]; or a
            mapping of just these names.
        call: what was called, for the error.
        by_name: whether it must be a mapping. True and False are then values, as a bound says
            which of them is wanted.

    Raises:
        CellFailure: another shape, what is no number, or a Boolean constraint.
        ValueError: it gave None.
    """
    count = len(names)
    if not by_name:
        # Nearly all runs return this: no value then needs a look of its own.
        if type(result) in (list, tuple) and len(result) == count and {*map(type, result)} <= EXACT:
            return np.array(result, dtype=float)
        if type(result) is np.ndarray and (result.dtype, result.shape) == (np.float64, (count,)):
            return result.copy()
    form = f"return [{', '.join(names)}]"
    if by_name:
        form = f"return {{{', '.join(f'{show(name)}: ...' for name in dict.fromkeys(names))}}}"

    # A run that returns nothing has failed; another shape is the fault of the class.
    if result is None:
        raise ValueError(f"it returned None; {form}")
    if by_name:
        fits = isinstance(result, Mapping) and {*result} == {*names}
    else:
        fits = _is_sequence(result) and len(result) == count
    if not fits:
        raise CellFailure(f"{call} gives {_describe(result)}; {form}")
    values = [result[name] for name in names] if by_name else list(result)
    return np.array(
        [_read_number(v, name, call, by_name) for v, name in zip(values, names, strict=True)]
    )


def read_runs(
    results: Any, count: int, names: Sequence[str], call: str, by_name: bool = False
) -> list[Array]:
    """Return what some runs gave, a sequence of what each gave, as `read_run` does.

    Raises:
        CellFailure, ValueError: as of `read_run`; results of another number of runs.
    """
    if not _is_sequence(results) or len(results) != count:
        raise CellFailure(
            f"{call} gives {_describe(results)} for {count_noun(count, 'point')}; it must give a "
            "list of as many results"
        )
    return [read_run(result, names, call, by_name) for result in results]


def _is_sequence(value: Any) -> bool:
    has_order = isinstance(value, Collection) and not isinstance(value, UNORDERED)
    return has_order and getattr(value, "shape", None) != ()


def _read_number(value: Any, name: str, call: str, truths: bool) -> float:
    """Return a number; NaN for one that there is not.

    Raises:
        CellFailure: it is none, or a constraint that is true or false.
    """
    if value is None or value is np.ma.masked:
        return np.nan
    # A time of NumPy is a whole number as Python's; as a text it is refused below.
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        value = value.item() if value.dtype.kind in NUMERIC else str(value)
    if isinstance(value, bool) and name != "f" and not truths:
        raise CellFailure(f"{call} gives {value} for {name}; {BOOLEAN}")
    # A root of a negative number is complex in Python: the run has no value there.
    if isinstance(value, complex):
        if value.imag == 0:
            return value.real
        return np.nan
    try:
        if not isinstance(value, str | bytes | np.ndarray):
            return float(value)
    except OverflowError:
        return np.inf
    except TypeError:
        pass  # no number
    raise CellFailure(f"{call} gives {_describe(value)} for {name}; it must be a number")


def _describe(value: Any) -> str:
    return f"{type(value).__name__} {printable(show(value))}"
