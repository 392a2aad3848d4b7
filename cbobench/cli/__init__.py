"""The command line.

`cbobench.cli.arguments` parses; a command is a function `do_run`, `do_compare`, ... of the modules beside it.
"""

from cbobench.cli.arguments import entry, main, make_parser

__all__ = ["entry", "main", "make_parser"]
