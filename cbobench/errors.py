"""Errors a user can meet: one line each, saying what was given, what is allowed, and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CbobenchError(Exception):
    """Root of every error that the command line turns into one line."""

    exit_code = 1


class Misuse(CbobenchError):
    """The request cannot be carried out as written (exit code 2). Nothing on disk has changed."""

    exit_code = 2


class DamagedRun(CbobenchError):
    """A run folder holds something that is not what it should be (exit code 1)."""


class CellFailure(CbobenchError):
    """An algorithm or a problem broke its contract while a cell was played; the cell becomes a failed row."""


def one_line(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def nearest(given: str, allowed: Iterable[str]) -> str | None:
    """The allowed name most like the given one, or None when nothing is close."""
    names = list(allowed)
    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(str(given).lower(), list(lower), n=1, cutoff=0.6)
    return lower[close[0]] if close else None


def unknown(what: str, given: object, allowed: Iterable[str], *, where: str = "", then: str = "") -> Misuse:
    """A `Misuse` for a name that does not exist, with the nearest one and the allowed ones."""
    names = sorted(str(name) for name in allowed)
    close = nearest(given, names) if isinstance(given, str) else None
    parts = [f"{where}unknown {what} {given!r}"]
    if close not in (None, given):
        parts.append(f"did you mean {close!r}?")
    shown = ", ".join(names) if names else "none"
    parts.append(f"allowed: {shown}")
    if then:
        parts.append(then)
    return Misuse("; ".join(parts))
