"""The command line.

`commands.toml` states the commands with their options, and names the function that does what each
says; `parser` makes the parser of it.
"""

from cbobench.cli.arguments import entry, main
from cbobench.cli.parser import make_parser

__all__ = ["entry", "main", "make_parser"]
