"""The table of metrics: the definition of each, how it accumulates round by round, and how tables
show it.

The recorder, the Parquet schema, aggregation, tables and figures read `METRICS`, so that no other
code names a metric that is added. All use the noise-free f and g and are exact at every round. Sums
run over rounds one after the other (`cumsum`), so that cutting the horizon into chunks changes no
bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Rounds(NamedTuple):
    """Consecutive rounds of S cells, noise-free.

    Attributes:
        first: the first round, counted from 1.
        f: reward of the played actions, (rounds, S).
        g: their constraint values, (rounds, S, m).
        f_star: reference of regret, (rounds, S): the reward of the best feasible action, or a value
            that the problem declares in its place; NaN if unknown, and then regret is NaN.
        f_plus: value of the best randomised policy, (rounds, S); NaN if unknown (boxes).
        violated: whether any g_j > 0, (rounds, S).
        recommended: (f, g_1, ..., g_m) of the action recommended after the round, (rounds, S, 1 +
            m); NaN without a recommendation, and in rounds for which none was requested (see
            `play.recommendations`).
        moving: whether the functions move in any round of the play.
        beatable: whether f_star is a target or the best known value, so that a feasible action may
            be better.
    """

    first: int
    f: Array
    g: Array
    f_star: Array
    f_plus: Array
    violated: NDArray[np.bool_]
    recommended: Array
    moving: bool = False
    beatable: bool = False


Running = Callable[[Rounds], Array]
"""Takes the next rounds and gives the metric after each of them, (rounds, S); it remembers what
came before.
"""


def _no_accumulator() -> Running:
    raise NotImplementedError("a column that cells have and rounds have not")


@dataclass(frozen=True)
class Metric:
    """One number of a cell: an entry of `METRICS`, which every round has, or another column that
    tables can show.

    Attributes:
        name: the column.
        symbol: in tables.
        label: at the axis of a figure.
        running: makes the accumulator of S cells.
        better: which values are better; None where neither is, so that nothing is marked or ranked.
        cumulative: whether it grows with t, so that dividing by t gives a time average.
        nullable: whether it may be unknown (NaN is then stored as null).
        relative: whether it is measured against f_star or f_plus, and so unknown wherever they are.
        is_count: whether it is a count.
        least: lower bound of values and intervals; None if it may be negative.
        most: upper bound of them.
        shared: whether it is of a block of seeds, so that it has no spread over seeds.
        unit: what is shown is so many times what is stored: -1 for what a problem's user minimises.
    """

    name: str
    symbol: str
    label: str
    running: Callable[[], Running] = _no_accumulator
    better: Literal["lower", "higher"] | None = "lower"
    cumulative: bool = True
    nullable: bool = False
    relative: bool = False
    is_count: bool = False
    least: float | None = None
    most: float | None = None
    shared: bool = False
    unit: float = 1.0

    @property
    def censored(self) -> bool:
        """Whether unknown means that the cell never got there, which is worse than any value."""
        return self.nullable and not self.cumulative

    @property
    def sign(self) -> int:
        """1 where higher values are better, -1 where lower ones are."""
        if self.better == "higher":
            return 1
        return -1

    def label_of(self, average: bool) -> str:
        """Return the label of the metric, or of its time average."""
        if average:
            return self.label.replace("Cumulative", "Average").replace("cumulative", "average")
        return self.label


def total(step: Callable[[Rounds], Array]) -> Callable[[], Running]:
    """Return a metric that sums `step`, (rounds, S) or (rounds, S, m), over the rounds."""

    def begin() -> Running:
        before: Array | None = None

        def running(rounds: Rounds) -> Array:
            nonlocal before
            steps = step(rounds)
            start = np.zeros_like(steps[:1]) if before is None else before
            # The start is the first summand, so that chunks of any size add up in one order.
            sums = np.concatenate([start, steps]).cumsum(axis=0)[1:]
            before = sums[-1:]
            return np.asarray(sums)

        return running

    return begin


def _soft_violation() -> Running:
    """‖[Σ_s g(x_s)]⁺‖₂ over the constraints; slack in one round compensates for excess in
    another.
    """
    sums = total(lambda rounds: rounds.g)()
    return lambda rounds: np.asarray(np.sqrt((np.maximum(sums(rounds), 0.0) ** 2).sum(axis=2)))


def _simple_value() -> Running:
    """The best f among the feasible actions played so far; NaN before the first.

    NaN in all rounds if the functions move during the play, because values of earlier functions do
    not count now.
    """
    best: Array | None = None

    def running(rounds: Rounds) -> Array:
        nonlocal best
        feasible = np.where(rounds.violated, -np.inf, rounds.f)
        start = np.full_like(feasible[:1], -np.inf) if best is None else best
        highest = np.maximum.accumulate(np.concatenate([start, feasible]))[1:]
        best = highest[-1:]
        has_value = (highest > -np.inf) & (not rounds.moving)
        return np.where(has_value, highest, np.nan)

    return running


def _short_of(rounds: Rounds, f: Array) -> Array:
    """f_star - f; at least 0 if f_star may be beaten, because a target is then reached."""
    gap = np.asarray(rounds.f_star - f)
    if rounds.beatable:
        return np.maximum(gap, 0.0)
    return gap


def _simple_regret() -> Running:
    """f* minus `_simple_value`; NaN where that is."""
    value = _simple_value()
    return lambda rounds: _short_of(rounds, value(rounds))


def _recommended_regret() -> Running:
    """f* - f of the action recommended after the round; NaN if it is infeasible or missing."""

    def running(rounds: Rounds) -> Array:
        f = rounds.recommended[:, :, 0]
        g = rounds.recommended[:, :, 1:]
        return np.where((g <= 0).all(axis=2), _short_of(rounds, f), np.nan)

    return running


def _recommended_violation() -> Running:
    """Σ_j [g_j]⁺ of the action recommended after the round; NaN if it is missing."""

    def running(rounds: Rounds) -> Array:
        none = np.isnan(rounds.recommended[:, :, 0])
        return np.where(none, np.nan, np.maximum(rounds.recommended[:, :, 1:], 0.0).sum(axis=2))

    return running


class Rewards(Protocol):
    """Rewards f of the played actions and their references f_star and f_plus, arrays of one shape
    (see `Rounds`).
    """

    @property
    def f(self) -> Array: ...
    @property
    def f_star(self) -> Array: ...
    @property
    def f_plus(self) -> Array: ...


REWARD_STEPS: dict[str, Callable[[Rewards], Array]] = {
    "regret": lambda r: r.f_star - r.f,
    "regret_plus": lambda r: r.f_plus - r.f,
    "regret_positive": lambda r: np.maximum(r.f_star - r.f, 0.0),
    "reward": lambda r: r.f,
}
"""What a round adds to the metrics that are sums over rewards alone. A file with every round does
not hold them.
"""

_TABLE = (
    Metric(
        "regret",
        "R",
        "Cumulative regret",
        total(REWARD_STEPS["regret"]),
        nullable=True,
        relative=True,
    ),
    Metric(
        "regret_plus",
        "R₊",
        "Cumulative regret R₊",
        total(REWARD_STEPS["regret_plus"]),
        nullable=True,
        relative=True,
    ),
    Metric(
        "regret_positive",
        "[R]+",
        "Cumulative positive regret [R]+",
        total(REWARD_STEPS["regret_positive"]),
        nullable=True,
        relative=True,
        least=0.0,
    ),
    Metric(
        "simple_regret",
        "r",
        "Simple regret r",
        _simple_regret,
        cumulative=False,
        nullable=True,
        relative=True,
        least=0.0,
    ),
    Metric(
        "recommended_regret",
        "rec. r",
        "Regret of the recommended action",
        _recommended_regret,
        cumulative=False,
        nullable=True,
        relative=True,
        least=0.0,
    ),
    Metric(
        "recommended_violation",
        "rec. V",
        "Violation of the recommended action",
        _recommended_violation,
        cumulative=False,
        nullable=True,
        least=0.0,
    ),
    Metric("violation", "V", "Cumulative violation V", _soft_violation, least=0.0),
    Metric(
        "violation_hard",
        "V⁺",
        "Stronger cumulative violation V⁺",
        total(lambda r: np.maximum(r.g, 0.0).sum(axis=2)),
        least=0.0,
    ),
    Metric(
        "violations",
        "N",
        "Rounds in violation N",
        total(lambda r: r.violated.astype(np.float64)),
        is_count=True,
        least=0.0,
    ),
    Metric("reward", "F", "Cumulative reward", total(REWARD_STEPS["reward"]), better="higher"),
    Metric(
        "simple_value",
        "best f",
        "Best feasible value so far",
        _simple_value,
        better="higher",
        cumulative=False,
        nullable=True,
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}
"""Every metric by name, in the order of columns."""
