"""What all code of a process shares, and a user's function may change: it is looked at before, and
put back after.

These are the functions of NumPy, SciPy and Python itself, the current folder, the standard streams
and the rules for warnings. Rules for floating-point errors are put back by `numpy.errstate`,
rounding by `cbobench.float_state`.

A function that was replaced may have been taken over by code that was imported meanwhile, so what
plays next needs a
process where nothing was: `REPLACED` keeps the names.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

LIBRARIES = (
    *("numpy", "numpy.linalg", "numpy.random"),
    *("scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats"),
    *("builtins", "math", "random", "time"),
)
REPLACED: set[str] = set()
"""Functions that code of this process has replaced, such as "numpy.exp"."""


class Surroundings:
    """What a process shares, as it is when this is made. To put it back takes some microseconds."""

    def __init__(self) -> None:
        spaces = [(name, vars(sys.modules[name])) for name in LIBRARIES if name in sys.modules]
        self.libraries = [(name, space, [*space], [*space.values()]) for name, space in spaces]
        self.streams = sys.stdin, sys.stdout, sys.stderr
        self.rules, self.show_warning = [*warnings.filters], warnings.showwarning
        self.folder = _folder()

    def put_back(self, noted: bool = True) -> list[str]:
        """Restore all of it; return the names of the functions that were replaced.

        Args:
            noted: whether these are kept in `REPLACED`.
        """
        sys.stdin, sys.stdout, sys.stderr = self.streams
        warnings.showwarning = self.show_warning
        if warnings.filters != self.rules:
            warnings.resetwarnings()
            warnings.filters.extend(self.rules)  # type: ignore[attr-defined]
        if self.folder is not None and _folder() != self.folder:
            with suppress(OSError):  # it has been removed
                os.chdir(self.folder)
        changed = [library for library in self.libraries if not _is_same(library[1], library[3])]
        names = [name for library in changed for name in _put_functions_back(*library)]
        if noted:
            REPLACED.update(names)
        return names


AROUND: ContextVar[Surroundings | None] = ContextVar("AROUND", default=None)
"""As they were at the beginning of the play that goes on."""


def _is_same(space: dict[str, Any], values: list[Any]) -> bool:
    """Return whether a module holds nothing but these values; False where they cannot be
    compared.
    """
    try:
        return [*space.values()] == values  # what is identical is not looked at further
    except Exception:  # an array has no one answer
        return False


def _put_functions_back(
    library: str, space: dict[str, Any], names: list[str], values: list[Any]
) -> list[str]:
    """Restore the public names of a module, of which it had `values`; return those that were
    replaced.
    """
    stated = zip(names, values, strict=True)
    replaced = [
        pair
        for pair in stated
        if not pair[0].startswith("_") and space.get(pair[0], space) is not pair[1]
    ]
    space.update(replaced)
    return [f"{library}.{name}" for name, _ in replaced]


def take_replaced() -> str:
    """Return in words what was replaced in this process, and forget it; "" where nothing was."""
    names = sorted(REPLACED)
    REPLACED.clear()
    return ", ".join([*names[:3], *["..."] * (len(names) > 3)])


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - a path object would take ten times as long
    except OSError:  # removed
        return None
