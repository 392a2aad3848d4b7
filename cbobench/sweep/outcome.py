"""What a sweep did, as `cbobench.run` returns it, and its failures in few lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cbobench.results.folder import RunFolder
from cbobench.surface import load_name
from cbobench.words import count_noun

SHOWN = 5
LONGEST = 80
_CELL = re.compile(r".*? seed \d+: (?:round \d+: )*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Outcome:
    """What a sweep did; of its `tasks`, the `absent` ones said that they were done and are not in
    the folder.

    Where its budget was `spent`, cells are left to play. A notebook shows the run's comparison.
    """

    folder: RunFolder
    cells: int
    played: int
    failed: int
    errors: tuple[str, ...]
    stopped: bool
    tasks: int
    absent: tuple[str, ...]
    spent: bool = False

    def _repr_html_(self) -> str:
        # a sweep knows no table but by the package's public names
        return str(load_name("compare")(self)._repr_html_())


class FailureCounts:
    """Counts errors by kind, ignoring the cell, the round and other numbers, so that thousands of
    equal failures are one line.
    """

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
        """Return the total and the commonest kinds: "12 failed: 10 x ValueError: no, 2 x timed
        out".
        """
        kinds = []
        for kind, count in self.counts.most_common(SHOWN):
            text = _CELL.sub("", self.first[kind], count=1)
            text = text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
            kinds.append(f"{count:,} x {text}")
        remaining = len(self.counts) - len(kinds)
        remainder = [count_noun(remaining, "other kind")] if remaining else []
        return f"{self.total:,} failed: {', '.join([*kinds, *remainder])}"

    def examples(self) -> list[str]:
        """Return the first failure of each of the commonest kinds."""
        return [self.first[kind] for kind, _ in self.counts.most_common(SHOWN)]
