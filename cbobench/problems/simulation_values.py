"""What one run of a user's function returns, read as f and every g_j, in any of the forms that are
clear.

A form that is none is the fault of the class. A value that is none (None, masked, not finite,
complex) is a failure of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cbobench.errors import CellFailure
from cbobench.gp.kernels import Array
from cbobench.words import count_noun

PLAIN = {float, int, np.float64}
"""Types of numbers that are read as they are."""
NUMERIC = "biufcO"
"""Kinds of arrays that may hold numbers: not text, nor times."""
BOOLEAN = (
    "feasible is where g <= 0, so True would be infeasible: give -1 where it holds, 1 where not"
)


class NoResult(ValueError):
    """A run that has returned nothing."""


def read_run(result: Any, m: int, call: str) -> Array:
    """Return what a run gave as numbers, (1 + m,): f and every g_j; NaN for a value that is none.

    They are complex where an imaginary part is not 0.

    Args:
        result: [f, g_1, ..., g_m], (f, [g_1, ..., g_m]), or a mapping with "f" and "g", or "f" and
            "g_1", ..., "g_m"; lists and other sequences, arrays or series. Labels other than these
            names say nothing.
        m: number of constraints.
        call: what was called, for the error.

    Raises:
        CellFailure: another form, text, or a Boolean constraint. NoResult: it gave None.
    """
    if (
        type(result) in (list, tuple)
        and len(result) == 1 + m
        and all(type(value) in PLAIN for value in result)
    ):
        return np.array(result, dtype=np.float64)
    if type(result) is np.ndarray and result.dtype == np.float64 and result.shape == (1 + m,):
        return result.copy()
    if result is None:
        raise NoResult(f"it returned None; {_describe_forms(m)}")
    values = [
        _read_number(entry, f"g_{j}" if j else "f", call)
        for j, entry in enumerate(_list_values(result, m, call))
    ]
    return np.array(
        values, dtype=np.complex128 if any(isinstance(v, complex) for v in values) else np.float64
    )


def read_runs(results: Any, count: int, m: int, call: str) -> list[Array]:
    """Return what some runs gave as `read_run` does.

    Args:
        results: a sequence of what each run gave, such as an array (count, 1 + m); or a mapping as
            of a run, with values (count,), or (count, m) for "g".
        count: number of runs.

    Raises:
        CellFailure, NoResult: as of `read_run`; results of another number of runs.
    """
    named = _find_names(results)
    if named is not None:
        columns = [_list_entries(column) for column in named.values()]
        full = [column for column in columns if column is not None and len(column) == count]
        if len(full) == len(columns):
            by_run = [dict(zip(named, row, strict=True)) for row in zip(*full, strict=True)]
            return [read_run(values, m, call) for values in by_run]
    rows = None if named is not None else _list_entries(results)
    if rows is None or len(rows) != count:
        raise CellFailure(
            f"{call} gives {_describe(results)} for {count_noun(count, 'point')}; it must give an "
            f"array ({count}, {1 + m})"
        )
    return [read_run(row, m, call) for row in rows]


def _list_values(result: Any, m: int, call: str) -> list[Any]:
    """Return f and every g_j of a run as entries, of which each is still to be read."""
    named = _find_names(result)
    if named is not None:
        names = ["f", *(f"g_{j}" for j in range(1, 1 + m))]
        if {*named} == {*names}:
            return [named[name] for name in names]
        entries = [named["f"], named["g"]] if {*named} == {"f", "g"} else None
    else:
        entries = _list_entries(result)
    while (
        entries is not None
        and len(entries) == 1
        and (inner := _list_entries(entries[0])) is not None
    ):
        entries = inner  # one row, as of functions that take many points
    if entries is not None and len(entries) == 2:
        constraints = _list_entries(entries[1])
        if constraints is not None and len(constraints) == 1 < m:  # one row
            constraints = _list_entries(constraints[0])
        entries = [entries[0], *([entries[1]] if constraints is None else constraints)]
    if entries is None or len(entries) != 1 + m:
        raise CellFailure(f"{call} gives {_describe(result)}; {_describe_forms(m)}")
    return entries


def _find_names(result: Any) -> dict[Any, Any] | None:
    """Return values by name, of a mapping or of what has names as one has; None for all else.

    Series and named tuples have an order, too: where none of their names is "f", that counts.
    """
    if isinstance(result, Mapping):
        return dict(result)
    fields = getattr(result, "_fields", ())
    if isinstance(result, tuple) and "f" in fields:
        return dict(zip(fields, result, strict=True))
    labels = getattr(result, "columns", getattr(result, "index", None))  # of pandas
    names: list[Any] = getattr(labels, "tolist", list)()
    return {name: result[name] for name in names} if "f" in names else None


def _list_entries(value: Any) -> list[Any] | None:
    """Return the entries of a sequence or an array; None for a number, and for what is neither.

    Those of an array with one column or one row are its numbers.
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return list(value)
    if not hasattr(value, "__array__"):
        return None
    # a masked array keeps its mask
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    return None if array.ndim == 0 or array.dtype.kind not in NUMERIC else array.tolist()


def _read_number(value: Any, name: str, call: str) -> float | complex:
    """Return a number; NaN for one that there is not.

    Raises:
        CellFailure: it is none, or a constraint that is true or false.
    """
    entries = _list_entries(value)
    if entries is not None and len(entries) == 1:
        return _read_number(entries[0], name, call)
    if hasattr(value, "__array__") and entries is None:
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        value = array.tolist() if array.dtype.kind in NUMERIC else str(array)
    if value is None:
        return np.nan
    if isinstance(value, bool) and name != "f":
        raise CellFailure(f"{call} gives {value} for {name}; {BOOLEAN}")
    try:
        if entries is None and not isinstance(value, str | bytes):
            return _to_number(value)
    except TypeError:
        pass  # no number
    raise CellFailure(f"{call} gives {_describe(value)} for {name}; it must be a number")


def _to_number(value: Any) -> float | complex:
    """Return the float of a number, or the complex number where that has an imaginary part."""
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except TypeError:
        number = complex(value)
    return number.real if number.imag == 0 else number


def _describe(value: Any) -> str:
    """Return in a few words what kind of a thing a value is."""
    if (named := _find_names(value)) is not None:
        kind = "mapping" if isinstance(value, Mapping) else type(value).__name__
        return f"a {kind} with {', '.join(map(repr, named)) or 'nothing'}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, str | bytes):
        return f"the text {value[:60]!r}"
    if isinstance(value, np.ndarray) and value.dtype.kind not in NUMERIC:
        return f"an array of type {value.dtype}"
    shape = getattr(value, "shape", () if isinstance(value, float | int | complex) else None)
    return f"an object of type {type(value).__name__}" if shape is None else f"shape {tuple(shape)}"


def _describe_forms(m: int) -> str:
    """Return what a run is to return, in words."""
    constraints = "g_1" if m == 1 else "g_1, g_2" if m == 2 else f"g_1, ..., g_{m}"
    forms = f'[f, {constraints}], (f, [{constraints}]) or {{"f": f, "g": [{constraints}]}}'
    return f"it must be ({1 + m},), f and m = {m} constraints: return {forms}"


describe_result, read_number = _describe, _read_number
