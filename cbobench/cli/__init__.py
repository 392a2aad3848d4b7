"""The command line.

`cbobench.cli.arguments` parses; a command is a function `do_run`, `do_compare`, ... of the modules beside it.
"""

import sys

from cbobench.arithmetic import find_choice, set_arithmetic

set_arithmetic(find_choice(sys.argv))  # before NumPy, which to parse the other words imports

from cbobench.cli.arguments import entry, main, make_parser

__all__ = ["entry", "main", "make_parser"]
