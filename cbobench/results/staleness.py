"""Decides whether a result is stale, for `status`, tables, `run --again stale` and reports.

Nothing is imported because a run folder names it. A user's module is only examined if this process
has imported it for another reason (the suite that it plays, a notebook's import), or was asked to
(`import_named`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CbobenchError
from cbobench.problems import PROBLEMS
from cbobench.registry import import_object
from cbobench.results.source import look_again, other_versions, source_hash
from cbobench.suite.cells import Pair


class Origin(NamedTuple):
    """Code, libraries, CPU and arithmetic that played a cell; files of older versions lack the last
    two.
    """

    source: str
    libraries: str
    cpu: str | None
    arithmetic: str | None


def _is_examinable(path: str) -> bool:
    """Return whether a class can be examined without importing the user's code; our own modules are
    none of it.
    """
    module = path.partition(":")[0]
    return module in sys.modules or module.split(".")[0] == __name__.split(".")[0]


def find_imports(pair: Pair) -> dict[str, str]:
    """Return the names of a pair that are not of this cbobench, with what getting them would
    import.
    """
    named = ((PROBLEMS, pair.problem.name), (ALGORITHMS, pair.algorithm.name))
    return {name: path for registry, name in named if (path := registry.import_path(name))}


def registered_names() -> set[str]:
    """Return the names of all problems and algorithms of this cbobench."""
    return {*PROBLEMS.names(), *ALGORITHMS.names()}


def import_named(pairs: Iterable[Pair]) -> None:
    """Import the modules that pairs name, as far as possible (`--imports` of the reading
    commands).
    """
    for path in sorted({path for pair in pairs for path in find_imports(pair).values()}):
        with suppress(CbobenchError):
            if not _is_examinable(path):
                import_object(path, beside=[Path()])


class Freshness:
    """Compares published cells with the present code; examines the code of a pair once.

    Args:
        of_bundle: whether they are of a bundle, of which nothing is said: whether other code plays
            the same, only a replay can tell.
    """

    def __init__(self, of_bundle: bool = False) -> None:
        look_again()
        self.of_bundle = of_bundle
        self._current: dict[tuple[str, str], str | None] = {}

    def current(self, pair: Pair) -> str | None:
        """Return the hash of the code that would play a pair now; None for a user's module that is
        not imported.
        """
        names = pair.problem.name, pair.algorithm.name
        if names not in self._current:
            try:
                known = all(map(_is_examinable, find_imports(pair).values()))
                self._current[names] = source_hash(*names) if known else None
            except CbobenchError:
                self._current[names] = None
        return self._current[names]

    def stale(self, pair: Pair, origin: Origin) -> bool:
        """Return whether the code that played a cell has changed since."""
        if self.of_bundle:
            return False
        current_hash = self.current(pair)
        return current_hash is not None and origin.source != current_hash

    def unknown(self, pair: Pair) -> bool:
        """Return whether the code that would play a pair cannot be examined."""
        return not self.of_bundle and self.current(pair) is None

    def other_libraries(self, origin: Origin) -> bool:
        """Return whether other libraries played a cell: its bits may differ, but it is not
        stale.
        """
        return other_versions(origin.libraries)
