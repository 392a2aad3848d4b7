"""The cells that a run was asked for, by id, and what is known of each without making it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from cbobench.suite.cells import Cell, Cells, Strip
from cbobench.suite.cells import Pair as Pair
from cbobench.suite.cells import as_numbers as as_numbers
from cbobench.suite.cells import as_words as as_words

ABSENT = -1


def located(ids: NDArray[np.uint64], known: NDArray[np.uint64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """(k,) the places of ids among the (n,) known ones, which ascend; `ABSENT` where one is not known."""
    if not len(known):
        return np.full(len(ids), ABSENT)
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[at] == ids, places[at], ABSENT)


class Asked(Mapping[str, Cell]):
    """Cells by id, in the order of the suite.

    Args:
        strips: without a cell twice.

    Attributes:
        strips: the same.
        of: (n,) which strip each cell is of.
    """

    def __init__(self, strips: Iterable[Strip]) -> None:
        self.strips = tuple(strips)
        self._cells = Cells(self.strips)
        self._order = np.argsort(self._cells.ids, kind="stable")
        self._sorted = self._cells.ids[self._order]
        self.of = np.repeat(np.arange(len(self.strips)), [len(strip) for strip in self.strips])

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(as_words(self.ids))

    def __getitem__(self, cell: str) -> Cell:
        position = ABSENT
        with suppress(ValueError, TypeError):  # no id at all
            position = int(self.where([cell])[0])
        if position == ABSENT:
            raise KeyError(cell)
        return self._cells[position]

    def values(self) -> ValuesView[Cell]:
        """The cells, each made as it is come to."""
        return _Values(self._cells)

    @property
    def ids(self) -> NDArray[np.uint64]:
        """(n,) the ids as numbers, in order."""
        return self._cells.ids

    def where(self, ids: Sequence[str] | NDArray[np.uint64]) -> NDArray[np.int64]:
        """(k,) positions of cells by their ids, `ABSENT` where one was not asked for."""
        return located(ids if isinstance(ids, np.ndarray) else as_numbers(ids), self._sorted, self._order)

    def pairs(self, ids: Sequence[str]) -> list[Pair]:
        """The pairs of cells that were asked for."""
        return [self.strips[i].pair for i in self.of[self.where(ids)].tolist()]


class _Values(ValuesView[Cell]):
    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells)
