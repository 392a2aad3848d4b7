"""The command line. Every error is one line; exit codes: 0 done, 1 failed, 2 misuse, 3 undecided,
130 stopped.
"""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

from cbobench.cli.parser import make_parser
from cbobench.errors import (
    Advice,
    CbobenchError,
    mask_secrets,
    one_line,
    printable,
    refuse_strange,
)
from cbobench.threads import THREAD_VARIABLES, address_space_limit, exit_process

STOPPED = 130
LEAST_SPACE = 1_000_000
"""kB of address space with which all libraries load, and a small run is played, read and drawn."""
FRUGAL = {
    **dict.fromkeys(THREAD_VARIABLES, "1"),
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # its own reserves a gigabyte, or all that is left
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal that knows no Greek still gets the table, with question marks
            stream.reconfigure(errors="replace")
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for word in command_line:
            refuse_strange(word, "the argument")
        if not command_line:
            make_parser().print_help()
            return 0
        options = make_parser().parse(command_line)
        _prepare_memory()
        with _print_advice():
            return _handle(options, command_line)
    except CbobenchError as error:
        tell(f"cbobench: {error}")
        return error.exit_code
    except (OSError, MemoryError, RecursionError) as error:
        if isinstance(error, BrokenPipeError):  # the reader (head, less) has gone
            sys.stderr.close()
            return 0
        tell(f"cbobench: {one_line(error)}")
        return 1
    except KeyboardInterrupt:
        tell("cbobench: stopped")
        return STOPPED


def _prepare_memory() -> None:
    """Where address space is limited, let libraries reserve little of it, before they are imported.

    Raises:
        CbobenchError: the limit is so small that to import them fails, or never ends.
    """
    limit = address_space_limit()
    if limit < LEAST_SPACE:
        raise CbobenchError(
            f"address space is limited to {limit:,.0f} kB; allowed: {LEAST_SPACE:,} kB and more, "
            f"so raise the limit (ulimit -v {LEAST_SPACE})"
        )
    if limit < inf:
        os.environ |= FRUGAL


def _open_closed_streams() -> None:
    """Put the null device where a standard stream was closed: the next file would take its number,
    and what is printed.

    Services and `2>&-` close them.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - for the whole process


def _handle(options: Any, command_line: list[str]) -> int:
    """Run the command that the options name; none of ours ends by `sys.exit`.

    Raises:
        CbobenchError: code of the user's did, where no other rule says what becomes of it.
    """
    try:
        do_command = resolve_name(options.handler)
        return int(do_command(options, command_line))
    except SystemExit as error:
        raise CbobenchError(
            f"{one_line(error)} ended the command; raise an error in its place"
        ) from error


@contextmanager
def _print_advice() -> Iterator[None]:
    """Print each `Advice` as one line, once, without the place in the code that Python names."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        before = warnings.showwarning

        def print_line(message: Any, category: type[Warning], *place: Any, **details: Any) -> None:
            if not issubclass(category, Advice):
                before(message, category, *place, **details)
            elif str(message) not in printed:
                printed.add(str(message))
                tell(str(message))

        warnings.showwarning = print_line
        warnings.simplefilter("always", Advice)
        yield


def entry() -> NoReturn:
    """The program `cbobench`."""
    code = main()
    from cbobench.sweep.interrupt import ignore

    ignore()  # no signal changes the exit code from here on
    exit_process(code)


def tell(text: str) -> None:
    """Print a line on standard error, where no program takes it for the output."""
    print(printable(mask_secrets(text)), file=sys.stderr, flush=True)


def print_json(content: Any) -> None:
    """Print content for programs."""
    print(json.dumps(content, indent=1, ensure_ascii=False))
