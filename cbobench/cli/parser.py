"""The parser of the command line: errors are one line, and words are read into values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cbobench.errors import Misuse, nearest, show, unknown

UNDECIDED = 3
"""Exit code where nothing can be told: seeds are too few, or cells cannot be checked here."""
Handler = Callable[[argparse.Namespace, list[str]], int]
"""What a command does, with its options and the command line; gives the exit code."""
Argument = Callable[[Any], object]
"""Adds an argument, or some that exclude each other, to a parser."""

GROUPS = {
    "to begin with": ("new", "run", "compare", "figures", "list"),
    "play": ("status", "data", "completion"),
    "look": ("show", "best"),
    "check": ("check", "claims", "verify"),
    "publish": ("report", "export"),
}
"""The commands as the help shows them: first the five that a newcomer needs."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the nearest command or option."""

    def error(self, message: str) -> NoReturn:
        raise Misuse(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            noun = (
                action.option_strings[0]
                if action.option_strings
                else str(action.metavar or action.dest).lower()
            )
            raise unknown(noun, value, action.choices)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse a command line; an unknown option is refused with the nearest one of its
        command.
        """
        first = arguments[0] if arguments else ""
        if first.startswith("-") and first not in self._option_string_actions:
            self._refuse([first], self)
        options, left = self.parse_known_args(arguments)
        if left and hasattr(options, "other") and not any(word.startswith("-") for word in left):
            # further runs, after an option
            options.other = [*options.other, *left]
            left = []
        if left:
            commands = next(action for action in self._actions if action.dest == "command")
            self._refuse(left, dict(commands.choices or {})[options.command])
        return options

    def _refuse(self, left: Sequence[str], command: argparse.ArgumentParser) -> NoReturn:
        # by their words, as dashes alone make options alike
        options = {flag.lstrip("-"): flag for flag in command._option_string_actions}
        close = nearest(left[0].split("=")[0].lstrip("-"), options)
        hint = f"did you mean {options[close]}?" if close else f"see {command.prog} --help"
        raise Misuse(f"unrecognized arguments: {' '.join(left)}; {hint}")


class GroupedHelp(argparse.HelpFormatter):
    """Help whose commands stand in `GROUPS`."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        lines = {command.dest: self._format_action(command) for command in action._get_subactions()}
        return "".join(
            "".join([f"\n{heading}:\n", *(lines[name] for name in names)])
            for heading, names in GROUPS.items()
        )


class Once(argparse.Action):
    """An option that is given once: a second value would replace the first in silence."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        before = getattr(namespace, self.dest)
        if before is not None:
            raise Misuse(
                f"{option} is given twice ({show(before)}, {show(values)}); use * to match both"
            )
        setattr(namespace, self.dest, values)


def folder(text: str) -> Path:
    """A folder to write to, before hours of work are done for nothing."""
    if (path := Path(text)).exists() and not path.is_dir():
        raise Misuse(f"{text} is a file; give a folder")
    return path


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{show(text)} is not a whole number") from None


def horizon(text: str) -> int | str:
    """A number of rounds, or all."""
    return text if text == "all" else whole_number(text)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{show(text)} is not a number") from None


def replications(text: str) -> int:
    """The number of simulated replications."""
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise Misuse(
            f"--replicate is {show(text)}; it must be a whole number from 1 to 10000, such as 200"
        )
    return int(text)


def argument(*flags: str, **settings: Any) -> Argument:
    """An argument of commands, as `add_argument` takes it; several commands may have it."""
    return lambda parser: parser.add_argument(*flags, **settings)


def exclusive(*arguments: Argument) -> Argument:
    """Arguments of which at most one may be given."""

    def add(parser: Any) -> None:
        group = parser.add_mutually_exclusive_group()
        for add_argument in arguments:
            add_argument(group)

    return add


RUN = argument("run", metavar="RUN", help="run folder, path or URI")
RUNS = argument("runs", metavar="RUN", nargs="+", help="run folders or bundles, paths or URIs")
DATA = argument("--data", type=Path, metavar="FOLDER", help="folder with the original data sets")
RUN_OR_BUNDLE = argument("run", metavar="RUN", help="run folder or bundle, path or URI")
ONLY = argument(
    "--only", metavar="GLOB", action=Once, help='only matching pairs, "problem/algorithm" or one'
)
PLAIN_OR_JSON = argument("--format", choices=("table", "json"), default="table")


class Commands:
    """The commands of a parser, as the modules beside this one add them."""

    def __init__(self, top: Parser) -> None:
        self.top = top
        self._commands = top.add_subparsers(
            dest="command",
            required=True,
            metavar="COMMAND",
            parser_class=Parser,
            title="commands, of which each has --help",
        )

    @property
    def parsers(self) -> dict[str, argparse.ArgumentParser]:
        """The parsers of the commands that were added so far, by name."""
        return dict(self._commands.choices or {})

    def __call__(
        self, handler: Handler, name: str, about: str, *arguments: Argument, imports: bool = False
    ) -> Parser:
        """Add a command.

        Args:
            about: what it does, in a line of the help.
            arguments: its arguments and options, in the order of the help.
            imports: whether it has an option to import the modules that its runs name.
        """
        escaped = about.replace("%", "%%")  # argparse formats help, and not descriptions
        parser: Parser = self._commands.add_parser(
            name, help=escaped, description=about, allow_abbrev=False
        )
        parser.set_defaults(handler=handler)
        if imports:
            parser.add_argument(
                "--imports",
                action="store_true",
                help=(
                    "import the modules of your own that the run names, to tell whether their "
                    "cells are stale"
                ),
            )
        for add_argument in arguments:
            add_argument(parser)
        return parser
