"""What the page of commands says on the site besides its table: every command's arguments and
options.
"""

from __future__ import annotations

import argparse
import re
from textwrap import wrap

from cbobench.cli import make_parser
from website.words import cells, sentence


def linked(text: str) -> str:
    """The table of commands, with links to what follows."""
    return re.sub(
        r"^\| `cbobench ([a-z]+)` \|", r"| [`cbobench \1`](#cbobench-\1) |", text, flags=re.M
    )


def options() -> str:
    """A section per command."""
    top = next(
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    parts = []
    for name, sub in top.choices.items():
        rows = [
            [shown(action), (action.help or "").replace("%%", "%")]
            for action in sub._actions
            if action.help and action.dest != "help"
        ]
        about = sentence(sub.description or "")
        usage = "\n".join(
            wrap(
                " ".join(sub.format_usage().split()).removeprefix("usage: "),
                88,
                subsequent_indent="    ",
            )
        )
        parts.append(
            f"## cbobench {name}\n\n{about}\n\n```\n{usage}\n```\n\n{cells(['', 'meaning'], rows)}"
        )
    return "\n\n".join(parts)


def shown(action: argparse.Action) -> str:
    """An argument as it is typed."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    word = ", ".join(action.option_strings)
    return (
        word
        if action.nargs == 0
        else f"{word} {action.metavar or '|'.join(map(str, action.choices or ['…']))}"
    )
