"""Describes any raised error as one line and a traceback that can be stored and printed."""

from __future__ import annotations

import traceback
from pathlib import Path

from cbobench.errors import CbobenchError, find_causes
from cbobench.errors import Interrupted as Interrupted
from cbobench.errors import TimedOut as TimedOut

OURS = Path(__file__).parents[1]
LONGEST_LINE = 300
LONGEST_TRACE = 20_000


def reraise_interrupt(error: BaseException) -> None:
    """Raise `Interrupted` again if it caused an error: a cell may convert it, or fail while it
    passes.
    """
    for cause in find_causes(error):
        if isinstance(cause, Interrupted):
            raise cause


def describe_error(error: BaseException) -> tuple[str, str]:
    """Return one line with the error and its round, and the traceback."""
    kind = type(error).__name__
    try:
        lines = str(error)[: 10 * LONGEST_LINE].strip().splitlines()
        message = lines[0] if lines else ""
    except BaseException as another:  # the user's code makes its text
        reraise_interrupt(another)
        message = "(its text cannot be shown)"
    text = message
    if not isinstance(error, CbobenchError | TimedOut):
        text = (f"{kind}: {message}" if message else kind) + _place(error)
    notes = getattr(error, "__notes__", ())
    rounds = [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
    try:
        trace = "".join(traceback.format_exception(error))
    except BaseException as another:
        reraise_interrupt(another)
        trace = f"{kind} (its traceback cannot be shown)"
    return safe_line(": ".join([*rounds, text])), safe_text(trace)


def _place(error: BaseException) -> str:
    """Return the place in the user's own file where an error was raised, or ""."""
    place = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        if (
            path.suffix == ".py"
            and OURS not in path.parents
            and not {*path.parts} & {"site-packages", "dist-packages"}
        ):
            place = f" ({path.name}:{number})"
    return place


def safe_line(text: str) -> str:
    """Return a line that any terminal and file can hold: escaped and cut."""
    escaped = "".join(map(_escape_character, text[: LONGEST_LINE + 1]))
    return escaped if len(escaped) <= LONGEST_LINE else escaped[: LONGEST_LINE - 4] + " ..."


def safe_text(text: str) -> str:
    """Do the same for several lines; of a long text keep its beginning and end."""
    if len(text) > LONGEST_TRACE:
        half = LONGEST_TRACE // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
    return "".join(c if c == "\n" else _escape_character(c) for c in text)


def _escape_character(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
