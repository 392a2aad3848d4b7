"""What one run of a user's function returns, as numbers: f and every g_j in order, or the values
that a class names.

Another shape is the fault of the class. A value that is none (None, masked, not finite, complex) is
a failure of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

import numpy as np

from cbobench.errors import CellFailure, printable, show
from cbobench.gp.kernels import Array
from cbobench.words import count_noun

PLAIN = {float, int, np.float64}
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
        if type(result) in (list, tuple) and len(result) == count and {*map(type, result)} <= PLAIN:
            return np.array(result, dtype=np.float64)
        if type(result) is np.ndarray and (result.dtype, result.shape) == (np.float64, (count,)):
            return result.copy()
    form = f"return [{', '.join(names)}]"
    if by_name:
        form = f"return {{{', '.join(f'{show(name)}: ...' for name in dict.fromkeys(names))}}}"
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
    if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
        value = value.item() if value.dtype.kind in NUMERIC else str(value)
    if isinstance(value, bool) and name != "f" and not truths:
        raise CellFailure(f"{call} gives {value} for {name}; {BOOLEAN}")
    if isinstance(value, complex):
        return value.real if value.imag == 0 else np.nan
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
