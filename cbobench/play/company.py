"""Whose code beside ours a play imports: what it changes in its process must reach no other play.

A process that plays a company's cells plays no others. It may be forked from one that has imported
nobody else's code, and else begins as a fresh interpreter.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import NamedTuple

from cbobench import registry
from cbobench.algorithms import ALGORITHMS
from cbobench.problems import PROBLEMS


class Company(NamedTuple):
    """Top-level modules that are not ours.

    Attributes:
        users: those of import paths and entry points.
        libraries: those of a method of ours, from other libraries.
    """

    users: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()

    @property
    def may_fork(self) -> bool:
        """Whether this process has imported nobody's code but that of this company."""
        if registry.IMPORTED:  # a user's module may have imported any library
            return self.users >= registry.IMPORTED
        return not (_list_libraries() - self.libraries) & sys.modules.keys()


def find_company(problem: str, algorithm: str | None = None) -> Company:
    """Return whose code playing a pair imports, or preparing a problem alone.

    Args:
        problem, algorithm: registered names, import paths or names of other packages.
    """
    paths = [PROBLEMS.import_path(problem)]
    if algorithm is not None:
        paths.append(ALGORITHMS.import_path(algorithm))
    users = frozenset(map(registry.find_stranger, paths)) - {""}
    if users or algorithm is None:
        return Company(users)
    return Company(libraries=frozenset(ALGORITHMS.get(algorithm).libraries))


@cache
def _list_libraries() -> frozenset[str]:
    """Return the libraries of all methods of ours."""
    names = ALGORITHMS.names()
    return frozenset(library for name in names for library in ALGORITHMS.get(name).libraries)
