"""`python -m cbobench`."""

from cbobench.cli import entry

entry()
