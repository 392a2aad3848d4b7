"""The parser of the command line: errors are one line, and words are read into values."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from cbobench import __version__
from cbobench.errors import Misuse, nearest, show, unknown
from cbobench.suite.values import parse_whole

UNDECIDED = 3
"""Exit code where nothing can be told: seeds are too few, or cells cannot be checked here."""
COMMANDS = Path(__file__).with_name("commands.toml")
GROUPS = {
    "to begin with": ("new", "run", "compare", "figures", "list"),
    "play": ("status", "data"),
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
            if action.option_strings:
                noun = action.option_strings[0]
            else:
                noun = str(action.metavar or action.dest).lower()
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
                f"{option} is given twice ({show(before)}, {show(values)}); give it once (in "
                "--only a * matches several)"
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
    if text == "all":
        return text
    return whole_number(text)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{show(text)} is not a number") from None


def replications(text: str) -> int:
    """The number of simulated replications."""
    return parse_whole("--replicate", whole_number(text), 1, 10_000)


ACTIONS = {"once": Once}
TYPES = {
    "folder": folder,
    "horizon": horizon,
    "number": number,
    "path": Path,
    "replications": replications,
    "whole_number": whole_number,
}
"""What `commands.toml` names beyond what argparse knows."""


def make_parser() -> Parser:
    """The whole command line, as `commands.toml` states it."""
    stated = tomllib.loads(COMMANDS.read_text(encoding="utf-8"))
    top = Parser(
        "cbobench",
        description="Benchmark suite for constrained Bayesian optimization.",
        formatter_class=GroupedHelp,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"cbobench {__version__}")
    commands = top.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        parser_class=Parser,
        title="commands, of which each has --help",
    )
    for name, command in stated["commands"].items():
        about = command["about"]
        parser = commands.add_parser(
            name,
            help=about.replace("%", "%%"),  # argparse formats help, and not descriptions
            description=about,
            allow_abbrev=False,
        )
        parser.set_defaults(handler=command["handler"])
        _add_arguments(parser, command["arguments"], stated["shared"])
        if "exclusive" in command:
            group = parser.add_mutually_exclusive_group()
            _add_arguments(group, command["exclusive"], stated["shared"])
        if "actions" in command:
            actions = parser.add_subparsers(
                dest="action", required=True, metavar="ACTION", parser_class=Parser
            )
            for action, own in command["actions"].items():
                action_parser = actions.add_parser(action, help=own["about"])
                _add_arguments(action_parser, own["arguments"], stated["shared"])
    return top


def _add_arguments(parser: Any, arguments: dict[str, Any], shared: dict[str, Any]) -> None:
    """Add arguments to a parser, or to a group of one; what they do not state may be `shared`."""
    for kind, functions in (("action", ACTIONS), ("type", TYPES)):
        for name, function in functions.items():
            parser.register(kind, name, function)
    for flag, settings in arguments.items():
        parser.add_argument(flag, **shared.get(flag, {}) | settings)
