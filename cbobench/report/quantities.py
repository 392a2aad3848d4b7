"""What a table can show of a cell: the metrics, and what else its row holds that a reader compares.

The metrics come from their one table, `cbobench.metrics`; the rest are columns of the cells alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cbobench.errors import unknown, words_of
from cbobench.metrics import METRICS

Array = NDArray[np.float64]
HEADLINE = ("simple_regret", "regret", "violation_hard", "violations")  # what is shown however narrow the terminal
INSTEAD = "simple_value"  # what is shown beside where no optimum is known
SHARE = (0.0, 1.0)
FAR = 1e60  # in place of what a seed never reached: beyond any value, and small enough to calculate with


@dataclass(frozen=True)
class Quantity:
    """One number of a cell.

    Attributes:
        name: the column.
        symbol: in headings.
        label: in words.
        better: which values are better; None where neither is, so that nothing is marked or ranked.
        bounds: what it cannot be below or above.
        whole: whether it counts something.
        censored: whether undefined means that the cell never got there, which is worse than any value.
        tabled: whether tables show it without being asked.
        relative: whether it is measured against f*.
        shared: whether it is of a block of seeds, so that it has no spread over seeds.
    """

    name: str
    symbol: str
    label: str
    better: Literal["lower", "higher"] | None = "lower"
    bounds: tuple[float | None, float | None] = (None, None)
    whole: bool = False
    censored: bool = False
    tabled: bool = True
    relative: bool = False
    shared: bool = False

    @property
    def sign(self) -> int:
        """1 where higher values are better, -1 where lower ones are."""
        return 1 if self.better == "higher" else -1

    def of(self, cells: pd.DataFrame) -> Array:
        """The values of some cells, (n,); NaN where undefined."""
        if self.name not in cells:
            return np.full(len(cells), np.nan)
        values = cells[self.name].to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isfinite(values), values, np.nan)

    def filled(self, values: Array) -> Array:
        """The values as they are ordered: where undefined is worse than any value, `FAR` on the worse side."""
        return np.where(np.isnan(values), -self.sign * FAR, values) if self.censored else values[~np.isnan(values)]


def reached(values: Array | float) -> NDArray[np.bool_]:
    """Where `FAR` had no part in what came of values."""
    return np.asarray(~(np.abs(values) >= FAR / 1e9))


def unfilled(value: float) -> float:
    """What came of `Quantity.filled` values: infinite where `FAR` had a part in it."""
    return value if reached(value) else float(np.sign(value)) * np.inf


EXTRA = (
    Quantity("first_feasible", "first", "First feasible round", bounds=(1, None), whole=True, censored=True),
    Quantity("longest_streak", "streak", "Most rounds in violation in a row", bounds=(0, None), whole=True),
    Quantity("positive_dual", "φ > 0", "Share of rounds with a positive dual variable", None, SHARE),
    Quantity("us_per_round", "µs", "Microseconds per seed and round", None, (0, None), shared=True),
)


def quantities() -> dict[str, Quantity]:
    """Everything that a table can show, by name: what stays in a narrow terminal first."""
    found = {
        m.name: Quantity(
            m.name,
            m.symbol,
            m.label,
            m.better,
            (m.least, None),
            m.whole,
            m.nullable and not m.cumulative,
            m.tabled,
            m.relative,
        )
        for m in METRICS.values()
    }
    found |= {extra.name: extra for extra in EXTRA}
    order = [name for name in HEADLINE if name in found]
    return {name: found[name] for name in [*order, *(n for n in found if n not in order)]}


def chosen(given: str | Iterable[str] | None) -> list[Quantity]:
    """The quantities that a reader names, each by name, symbol or label; those of a table by default.

    Raises:
        Misuse: a word that none of them answers to.
    """
    known = quantities()
    if not given:
        return [q for q in known.values() if q.tabled]
    words = {word.lower(): q for q in known.values() for word in (q.label, q.name)}
    words |= {q.symbol: q for q in known.values()}
    words |= {q.symbol.replace("⁺", "+").replace("₊", "+"): q for q in known.values()}  # as a keyboard has it
    result: dict[str, Quantity] = {}
    for word in words_of("metric", given):
        quantity = words.get(word, words.get(word.lower()))
        if quantity is None:
            raise unknown("metric", word, known)
        result[quantity.name] = quantity
    return list(result.values())


def drawable(given: str | Iterable[str]) -> list[str]:
    """The names of the metrics of rounds that a reader names likewise.

    Raises:
        Misuse: a word that none answers to, or one for a quantity that cells alone have.
    """
    names = [quantity.name for quantity in chosen(given)]
    for name in names:
        if name not in METRICS:
            raise unknown("metric of rounds", name, METRICS)
    return names
