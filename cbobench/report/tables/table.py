"""A table of strings, its cells and its note: what every format renders."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

BEST = "*best*"  # what a note says of `Best` cells, as a terminal shows them
INTERVAL = re.compile(r" \[[^]]*\]")  # after a median


class Marked(str):
    """A cell with a star, in every format."""


class Best(Marked):
    """A cell that stands out: between stars in a terminal, bold elsewhere."""


class Code(str):
    """A cell that is typed as it stands: in backticks in Markdown."""


@dataclass(frozen=True)
class TextTable:
    """Strings in rows under a heading; where two columns or more are words, the first one sections
    the rows.

    Attributes:
        columns, rows: headings, and as many cells per row; a `Marked` one has a star, a `Best` one
            stands out.
        title, note: above and below.
        left: how many leading columns are words (left-aligned).
        weights: per column, in what order columns are taken as long as they fit; 0 is never left
            out, nor is any column where there are none.
        folded: whether the first column is in lines of its own, above the rows that share it.
        brief: columns that may be shown without intervals, by position; the first gives way first.
        shown: positions of the rows that a terminal shows; all where there are none.
        caption: what stands with it in a paper; by default its title and the note's first line.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""
    left: int = 2
    weights: Sequence[int] = ()
    folded: bool = False
    brief: Sequence[int] = ()
    caption: str = ""
    shown: Sequence[int] = ()

    def with_note(self, sentences: Sequence[str]) -> TextTable:
        """The table with one more line below it."""
        return replace(self, note="\n".join(filter(None, [self.note, "; ".join(sentences)])))

    def without(self, dropped: set[int]) -> TextTable:
        """The table without some columns, by position."""
        positions = [i for i in range(len(self.columns)) if i not in dropped]
        return replace(
            self,
            columns=[self.columns[i] for i in positions],
            rows=[[row[i] for i in positions] for row in self.rows],
            weights=[self.weights[i] for i in positions] if self.weights else (),
            left=sum(i < self.left for i in positions),
        )

    def fit(self, fits: Callable[[TextTable], bool]) -> TextTable:
        """The table without columns that have weights, then with each, by weight, that still
        fits.
        """
        dropped = {i for i, weight in enumerate(self.weights) if weight}
        for i in sorted(dropped, key=lambda i: self.weights[i]):
            if fits(self.without(dropped - {i})):
                dropped.remove(i)
        return self.without(dropped)


def mark(cell: str, text: str, best: str, marked: str, plain: str = "{}") -> str:
    """The text of a cell in the marks of a format, each with {} for it: of `Best`, of other
    `Marked` cells, and of the others.
    """
    form = best if isinstance(cell, Best) else marked if isinstance(cell, Marked) else plain
    return form.replace("{}", text)


def strip_interval(text: str) -> str:
    """A cell, or another text, without the intervals behind its numbers."""
    return type(text)(INTERVAL.sub("", text))


def explain_bold(note: str) -> str:
    """A note that explains bold cells where a terminal has stars around them.

    Only its first line, which holds no labels, explains them.
    """
    first_line, *other_lines = note.split("\n")
    return "\n".join([first_line.replace(BEST, "bold: best"), *other_lines])
