"""The command line.

`cbobench.cli.arguments` collects the commands of the modules beside it: `add_commands` adds the
options of each, and `do_run`, `do_compare`, ... are what they do.
"""

import sys

from cbobench.arithmetic import find_choice, set_arithmetic

set_arithmetic(find_choice(sys.argv))  # before NumPy, which to parse the other words imports

from cbobench.cli.arguments import entry, main, make_parser

__all__ = ["entry", "main", "make_parser"]
