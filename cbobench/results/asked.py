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

NOT_ASKED = -1


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
        position = NOT_ASKED
        with suppress(ValueError, TypeError):  # no id at all
            position = int(self.where([cell])[0])
        if position == NOT_ASKED:
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
        """(k,) positions of cells by their ids, `NOT_ASKED` where one was not asked for."""
        numbers = ids if isinstance(ids, np.ndarray) else as_numbers(ids)
        if not len(self):
            return np.full(len(numbers), NOT_ASKED)
        at = np.minimum(np.searchsorted(self._sorted, numbers), len(self) - 1)
        return np.where(self._sorted[at] == numbers, self._order[at], NOT_ASKED)

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
