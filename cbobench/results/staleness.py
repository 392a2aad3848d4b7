"""The one place that decides whether a result is stale: `status`, tables, `run --again stale` and reports ask it."""

from __future__ import annotations

from typing import Protocol

from cbobench.errors import CbobenchError
from cbobench.results.source import libraries, look_again, source_hash
from cbobench.suite.cells import Pair


class Made(Protocol):
    """What a published cell says of the code that played it."""

    @property
    def source(self) -> str: ...

    @property
    def libraries(self) -> str: ...


class Freshness:
    """Compares published cells with the code at hand; looks at the code of a pair once."""

    def __init__(self) -> None:
        look_again()
        self._current: dict[tuple[str, str], str | None] = {}

    def current(self, pair: Pair) -> str | None:
        """Hash of the code that would play a pair now; None where it is not at hand (a user's module elsewhere)."""
        names = pair.problem.name, pair.algorithm.name
        if names not in self._current:
            try:
                self._current[names] = source_hash(*names)
            except CbobenchError:
                self._current[names] = None
        return self._current[names]

    def stale(self, pair: Pair, made: Made) -> bool:
        """Whether the code that played a cell has changed since."""
        return self.current(pair) not in (None, made.source)

    def unknown(self, pair: Pair) -> bool:
        """Whether the code that would play a pair cannot be looked at, so that nothing is known of its freshness."""
        return self.current(pair) is None

    def other_libraries(self, made: Made) -> bool:
        """Whether another NumPy or SciPy played a cell: its bits may differ, but it is not stale for that."""
        return made.libraries != libraries()
