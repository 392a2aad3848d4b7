"""The command line: its arguments, and one function per command (`do_run`, `do_compare`, ...)."""

from cbobench.cli.arguments import entry, main, make_parser

__all__ = ["entry", "main", "make_parser"]
