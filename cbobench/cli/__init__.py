"""The command line.

`commands.toml` states the commands with their options, and names the function that does what each
says; `parser` makes the parser of it.
"""

import sys

from cbobench.arithmetic import find_choice, set_arithmetic

set_arithmetic(find_choice(sys.argv))  # before NumPy, which to parse the other words imports

from cbobench.cli.arguments import entry, main
from cbobench.cli.parser import make_parser

__all__ = ["entry", "main", "make_parser"]
