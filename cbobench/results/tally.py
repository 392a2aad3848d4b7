"""Failures by kind: thousands of cells that fail alike are one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from cbobench.words import counted

SHOWN = 5
LONGEST = 80
_CELL = re.compile(r".*? seed \d+: (?:round \d+: )*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Tally:
    """Counts lines of failure by what they say: the cell, the round and other numbers apart."""

    def __init__(self, errors: Iterable[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        for error in errors:
            self.add(error)

    def add(self, error: str) -> None:
        """Count a line such as "rkhs-1d / random seed 3: round 7: ValueError: no"."""
        kind = _NUMBER.sub("#", _CELL.sub("", error, count=1))
        self.counts[kind] += 1
        self.first.setdefault(kind, error)

    @property
    def total(self) -> int:
        return self.counts.total()

    def __str__(self) -> str:
        """How many failed, and of what, the commonest first: "12 failed: 10 x ValueError: no, 2 x timed out"."""
        words = [f"{count:,} x {self._words(kind)}" for kind, count in self.counts.most_common(SHOWN)]
        others = len(self.counts) - len(words)
        more = [counted(others, "other kind")] if others else []
        return f"{self.total:,} failed: {', '.join([*words, *more])}"

    def examples(self) -> list[str]:
        """The first failure of each of the commonest kinds."""
        return [self.first[kind] for kind, _ in self.counts.most_common(SHOWN)]

    def _words(self, kind: str) -> str:
        text = _CELL.sub("", self.first[kind], count=1)
        return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
